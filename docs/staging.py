"""What sphinx-gallery runs: copies of the examples, beside which they may write their pictures.

Tutorials (`tutorial_*.py`) are a gallery of their own. Links of the pages to files of the
repository are turned to the pages of the site that show them.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
# gallery -> its heading, and what is said below it
GALLERIES = {
    "tutorials": ("Tutorials", "Start here: from data to a model and a proof, step by step."),
    "gallery": (
        "Examples",
        "Programs of one or two pages, each about one thing. They run as they are: "
        "``python examples/label_errors.py``. Pictures and numbers are those of the machine that "
        "built these pages; where an example can use data of ``SAFESIFT_DATA``, the small stand-in "
        "was used.",
    ),
}
# files of the repository that are pages of the site
_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "paper/README.md": "paper.md",
}
# text, path and anchor of a link, or of a picture, that stays within the repository
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![\w+.-]+:|/|#)([^)#\s]+)(#[^)\s]*)?\)")


def gallery_of(example: Path | str) -> str:
    return "tutorials" if Path(example).stem.startswith("tutorial_") else "gallery"


def examples() -> list[Path]:
    return sorted(EXAMPLES.glob("*.py"))


def stage(folder: Path) -> None:
    """Copy every example into the folder of its gallery, under a heading."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, (heading, words) in GALLERIES.items():
        (folder / name).mkdir(parents=True)
        text = f"{heading}\n{'=' * len(heading)}\n\n{words}\n"
        (folder / name / "GALLERY_HEADER.rst").write_text(text)
    for example in examples():
        shutil.copy2(example, folder / gallery_of(example))


def linked(text: str, origin: str) -> str:
    """A Markdown file of the repository, its links led to where the site has what they point to.

    Files that are no pages of the site are offered for download; folders, which cannot be, are
    left as words.

    Parameters
    ----------
    text : str
    origin : str
        The file, by its path in the repository.

    Returns
    -------
    str
        For a page that lies directly in docs.

    Examples
    --------
    >>> print(linked("[a](../examples/kernels.py), [b](paths.md#x), [c](../tests)", "docs/a.md"))
    [a](gallery/kernels.rst), [b](paths.md#x), c
    >>> print(linked("[a](../LICENSE), ![b](pictures/kernels.png)", "docs/a.md"))
    [a](path:../LICENSE), ![b](pictures/kernels.png)
    >>> print(linked("[a](docs/paths.md), [b](README.md), [c](#x)", "CONTRIBUTING.md"))
    [a](paths.md), [b](index.md), [c](#x)
    """
    folder = posixpath.dirname(origin)

    def turned(found: re.Match[str]) -> str:
        mark, words, anchor = found[1], found[2], found[4] or ""
        path = posixpath.normpath(posixpath.join(folder, found[3]))
        if (ROOT / path).is_dir():
            return words
        page = posixpath.relpath(path, "docs") if mark else _page(path)
        return f"{mark}[{words}]({page}{anchor})"

    return _LINK.sub(turned, text)


def _page(path: str) -> str:
    """Of a path in the repository, from docs."""
    folder, name = posixpath.split(path)
    if folder == "examples" and name.endswith(".py"):
        return f"{gallery_of(name)}/{Path(name).stem}.rst"
    if path in _PAGES:
        return _PAGES[path]
    here = posixpath.relpath(path, "docs")
    return f"path:{here}" if here.startswith("../") else here


def forget(folder: Path, reference: str) -> None:
    """Remove the pages of names that the reference no longer lists."""
    for page in folder.glob("*.rst"):
        if f"   {page.stem.removeprefix('safesift.')}\n" not in reference:
            page.unlink()
