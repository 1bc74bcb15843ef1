"""Whether every link within a built site leads somewhere: `python docs/links.py build/site`.

Pages, pictures, scripts, styles and anchors are looked for on disk; what leads out of the site is
not asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SOURCES = ("href", "src", "data", "poster")


class _Page(HTMLParser):
    """What a page links to, and the anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value for name, value in attrs if value}
        self.links += [known[name] for name in _SOURCES if name in known]
        self.anchors |= {known[name] for name in ("id", "name") if name in known}


@cache
def _read(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def pages(site: Path) -> list[Path]:
    """But for templates, which themes leave among their scripts."""
    found = sorted(site.rglob("*.html"))
    return [path for path in found if "_static" not in path.relative_to(site).parts]


def broken(site: Path) -> Iterator[str]:
    """The page and the link, for every one that leads nowhere."""
    for path in pages(site):
        for link in _read(path).links:
            if not _leads_somewhere(path, link, site):
                yield f"{path.relative_to(site)}: {link}"


def _leads_somewhere(page: Path, link: str, site: Path) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file() or not target.is_relative_to(site.resolve()):
        return False
    if not parts.fragment or target.suffix != ".html":
        return True
    return unquote(parts.fragment) in _read(target).anchors


def main(folder: str) -> int:
    site = Path(folder).resolve()
    found = list(broken(site))
    n_pages = len(pages(site))
    print(*found, f"{n_pages} pages, {len(found)} broken links", sep="\n")
    return 1 if found or not n_pages else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
