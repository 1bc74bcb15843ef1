"""A page about results, for somebody who did not run the code: one HTML file, and nothing else.

Data flow: results → `Subject` (what the page is about) → sections (`proved`, `rows`, `features`,
`levels`) → `page` (skeleton, style, script) → file.
"""

from safesift.faces.reports.writing import check_page, write_report

__all__ = ["check_page", "write_report"]
