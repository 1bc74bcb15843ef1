"""The pages lead to each other: no link of theirs points nowhere."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# made by `make docs`, and not there before
_MADE = ("gallery/", "tutorials/")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


@cache
def text(page: Path) -> str:
    """A page without its code, in which brackets are no links and # no heading."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """What GitHub, and Sphinx after it, make of the headings of a page."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text(page)))
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    nowhere = []
    for link in _LINK.findall(text(page)):
        if link.startswith(("https://", "http://", *_MADE)):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            nowhere.append(link)
    assert nowhere == []
