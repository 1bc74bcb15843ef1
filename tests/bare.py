"""Run the Python blocks of a page as if only some extras were installed.

`python -m tests.bare README.md '[["cli"], [12, 40]]'` runs the blocks at these lines with the extra
cli, and prints as JSON what was raised: where, of which type, and what it said. What a block prints
is compared elsewhere.
"""

from __future__ import annotations

import doctest
import importlib.machinery
import io
import json
import re
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# import name -> the extra that brings it
_EXTRAS = {
    "click": "cli", "rich": "cli", "pyarrow": "cli", "matplotlib": "plot", "PIL": "plot",
    "imblearn": "sampler", "distributed": "dask", "dask": "dask", "safesift_paper": "paper",
}  # fmt: skip
# what only tests install, or the reader has for other reasons
_NEVER = ("pandas", "polars", "torch", "cvxpy", "clarabel", "hypothesis", "mpmath", "pytest")
_COMMAND = re.compile(r"pip install ((?:'[^']*'|[.\w/-]+)(?: \./paper)?)")


@dataclass
class Block:
    """Python of a page: where it stands, and which extras the section has the reader install."""

    line: int
    source: str
    extras: frozenset[str]


@dataclass
class Page:
    """A Markdown page: its blocks of Python, and the lines that a shell is to run."""

    blocks: list[Block] = field(default_factory=list)
    commands: list[Block] = field(default_factory=list)


def read(path: Path) -> Page:
    """What a page has run, with the extras of the last install command above it in its section.

    Where a section has none, it is the first command of the page's introduction that counts.
    """
    page, lines = Page(), path.read_text().splitlines()
    introduction = _COMMAND.findall("\n".join(lines).partition("\n## ")[0])
    of_page = extras = _installed(introduction[0]) if introduction else frozenset()
    for number, line in enumerate(lines, start=1):
        if line.startswith("## "):
            extras = of_page
        for command in _COMMAND.findall(line):
            extras = _installed(command)
        if line == "```python":
            end = lines.index("```", number)
            page.blocks.append(Block(number + 1, "\n".join(lines[number:end]) + "\n", extras))
        if line.startswith("    safesift "):
            page.commands.append(Block(number, line, extras))
    return page


def _installed(command: str) -> frozenset[str]:
    named = re.findall(r"\[([\w,]+)\]", command)
    extras = {extra for names in named for extra in names.split(",")}
    # the paper's package depends on these two
    return frozenset(extras | ({"paper", "cli", "plot"} if "./paper" in command else set()))


class _Without(importlib.machinery.PathFinder):
    """Finds what is installed, but for some packages."""

    absent: Collection[str] = ()

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] in cls.absent:
            return None
        return super().find_spec(name, path, target)


def block_imports(extras: Collection[str]) -> None:
    """From now on nothing is found that these extras do not bring."""
    optional = {package for package, extra in _EXTRAS.items() if extra not in extras}
    _Without.absent = optional | set(_NEVER)
    finders = [f for f in sys.meta_path if f is not importlib.machinery.PathFinder]
    # packages installed from a checkout have finders of their own, after all others
    sys.meta_path[:] = [f for f in finders if not _finds(f, _Without.absent)]
    sys.meta_path.append(_Without)


def _finds(finder: Any, packages: Collection[str]) -> bool:
    return bool(set(getattr(sys.modules.get(finder.__module__), "MAPPING", ())) & set(packages))


def failures(blocks: list[Block]) -> Iterator[dict[str, Any]]:
    """Run blocks one after the other in one namespace; what was raised."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        for example in doctest.DocTestParser().get_examples(block.source):
            try:
                with redirect_stdout(io.StringIO()):
                    exec(compile(example.source, "<block>", "single"), names)
            except Exception as error:
                if example.exc_msg is not None:
                    continue  # what the page is about
                yield {
                    "line": block.line + example.lineno,
                    "source": example.source,
                    "type": type(error).__name__,
                    "message": str(error),
                    "trace": traceback.format_exc(limit=-3),
                }


def main() -> None:
    path, (extras, lines) = Path(sys.argv[1]), json.loads(sys.argv[2])
    block_imports(extras)
    print(json.dumps(list(failures([b for b in read(path).blocks if b.line in lines]))))


if __name__ == "__main__":
    main()
