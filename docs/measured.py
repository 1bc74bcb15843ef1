"""Pages of measured figures, made from `benchmarks/results/*.json` whenever the site is built.

A `Figure` says which file it reads, which rows of it, and what is in which column. Files that are
not there are left out, and so are rows without a number; what a row does not have is a dash.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import FIGURES, Column, Figure, count, small

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
# whose versions are told beside a machine
_PEERS_OF_NOTE = ("numpy", "scipy", "scikit-learn", "numba")
# the race that the front page tells of: the first of these in which LinearSVC has arrived
_FRONT = ("covtype/squared_hinge-l2", "mnist/squared_hinge-l2", "a9a/squared_hinge-l2")

Reader = Callable[[str], dict[str, Any]]


def read(name: str, folder: Path = RESULTS) -> dict[str, Any]:
    """What is in a file of results; nothing where there is none."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def page(figures: Iterable[Figure] = FIGURES, reader: Reader = read) -> str:
    """The page of all figures, in Markdown."""
    parts = [section(figure, reader(figure.source)) for figure in figures]
    return "\n\n".join([_PREFACE, *(part for part in parts if part)]) + "\n"


def section(figure: Figure, facts: dict[str, Any]) -> str:
    """A heading, what is measured, the table, on which machine; nothing without rows."""
    known = list(figure.rows(facts))
    columns = [one for one in figure.columns if any(_is_told(one.text(row)) for row in known)]
    rows = [[column.text(row) for column in columns] for row in known]
    rows = [cells for cells in rows if any(map(_is_told, cells[1:]))]
    if not rows:
        return ""
    words = f"{figure.words} `benchmarks/{figure.script}` measures it."
    return "\n\n".join([f"## {figure.title}", words, table(columns, rows), machine(facts)])


def _is_told(cell: str) -> bool:
    return cell != Column.NOTHING


def table(columns: Iterable[Column], rows: Iterable[list[str]]) -> str:
    columns = list(columns)
    rule = ["---:" if column.is_number else "---" for column in columns]
    lines = [[column.heading for column in columns], rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine(facts: dict[str, Any]) -> str:
    """On what it was measured, and with which versions."""
    versions = {"Python": facts.get("versions", {}).get("python")}
    versions |= {name: facts.get("versions", {}).get(name) for name in _PEERS_OF_NOTE}
    versions |= {"torch": facts.get("torch")}
    told = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    where = [facts.get("device"), facts.get("machine"), told]
    return "*" + "; ".join(part for part in where if part) + "*"


@dataclass(frozen=True)
class Front:
    """The one figure of the front page: a certified path beside LinearSVC's."""

    data: str
    n_rows: int | None
    n_alphas: int
    tol: float
    ours: float
    theirs: float
    machine: str

    @property
    def times(self) -> float:
        return self.theirs / self.ours

    def markdown(self) -> str:
        rows = "" if self.n_rows is None else f" ({count(self.n_rows)} rows)"
        return (
            f"**{self.ours:.2g} s against {self.theirs:.2g} s**\n\n"
            f"{self.n_alphas} models of {self.data}{rows} along a path of alphas, each to a "
            f"relative duality gap of {small(self.tol)}: ours, with the proof, against the faster "
            f"of LinearSVC's two solvers, which has to be told how far to go. That is "
            f"{self.times:.0f} times less, on {self.machine}; [other data give less, and some "
            "none](measured.md)."
        )


def front(reader: Reader = read) -> Front:
    """From the race of paths: squared hinge, l2, no intercept, the smaller gap, a quiet machine."""
    race = reader("paths_vs_peers")
    quiet = {
        record["case"]: record
        for record in race.get("records", [])
        if record["load"] == "quiet" and record["tol"] == 1e-6
    }
    for case in _FRONT:
        solvers = quiet.get(case, {}).get("solvers", {})
        paths = {name: entry["stages"].get("path", {}) for name, entry in solvers.items()}
        arrived = {name: path for name, path in paths.items() if path.get("reached")}
        theirs = [path["seconds"] for name, path in arrived.items() if name.startswith("LIBLINEAR")]
        if "safesift" in arrived and theirs:
            ours = arrived["safesift"]
            number = solvers["safesift"]["machine"]
            data = case.partition("/")[0]
            return Front(
                data, n_rows(data, reader), len(ours["tols"]), 1e-6, ours["seconds"],
                min(theirs), race["machines"][number]["machine"],
            )  # fmt: skip
    raise ValueError(
        "paths_vs_peers.json must have a path of safesift and of LIBLINEAR that arrived on one of "
        f"{', '.join(_FRONT)}: run benchmarks/paths_vs_peers.py on it."
    )


def n_rows(data: str, reader: Reader = read) -> int | None:
    """How many rows a data set of the benchmarks has, where a file tells."""
    known = {one["data"]: one["shape"][0] for one in reader("price_of_ridge").get("data", [])}
    return known.get(data)


def race() -> str:
    """All tables of the race of paths, as `benchmarks/report.py` makes them from its book."""
    sys.path.append(str(ROOT / "benchmarks"))
    from book import Book
    from report import Report

    return Report(Book(kept=True)).markdown()


def write(folder: Path) -> None:
    """Both pages; what has not changed is left alone, so that it is not built again."""
    for name, text in (("measured.md", page()), ("measured_race.md", race())):
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


_PREFACE = """# Measured figures

Every number here is read from [`benchmarks/results`](benchmarks.md) when the site is built; the
scripts that measure them say on which data, and how. Times are seconds. [Paths against the
peers](measured_race.md) has the whole race, with what was aimed at and what was missed.

```{toctree}
:hidden:

measured_race
```"""


if __name__ == "__main__":
    print(page())
