"""Total time of fits, of regularisation paths and of cross-validations, ours against the peers.

    python benchmarks/paths_vs_peers.py [--only mnist covtype/hinge '*+ones'] [--busy] [--ours]
        [--missing] [--again] [--tol 1e-3] [--quick] [--table]

Everybody reaches the same relative gap, measured on all rows by the same evaluator, with the same
number of threads, the data in the storage that is fastest for each, conversion and compilation not
counted. How that is done, how to run it in pieces and how to read the tables:
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import numpy as np
import results
from book import RACE, Book, Place
from cases import CASES, TOLS, Case
from datasets import MORE_DATASETS
from report import Report, case_sheet, ridge_sheet
from rich.console import Console
from runner import BUSY, QUIET, Runner
from runs import CV, OURS, PATH, SINGLE, Floors, Stage, save
from tables import wide_console

QUICK_ROWS = 2000
# A peer is out of the race after that many times the time of the best one so far, though not
# before it had a few seconds. Beside a load only such peers run as stay within it without.
_SLOWER_THAN_PEER, _LEAST_LIMIT = 2.0, 4.0
# nor is anybody waited for beyond so many times our own time: no target is above it
_SLOWER_THAN_OURS = 100.0


def chosen(only: Sequence[str]) -> list[Case]:
    """The cases of the given names, patterns or beginnings; without, all but made-up data."""
    if not only:
        return [case for case in CASES if not case.data.startswith("synthetic")]
    known = {case.name for case in CASES}
    found = [case for case in CASES if any(_means(name, case.name, known) for name in only)]
    if not found:
        raise SystemExit(f"--only: none of {only} is the name of a case or begins it: "
                         + ", ".join(case.name for case in CASES))  # fmt: skip
    return found


def _means(words: str, name: str, known: set[str]) -> bool:
    if words in known:
        return words == name
    return name.startswith(words) or fnmatchcase(name, words)


class Store:
    """Data sets in a folder, loaded and written when first asked for."""

    def __init__(self, folder: Path, rows: int | None) -> None:
        self._folder, self._rows = folder, rows
        self._paths: dict[str, str] = {}

    def path(self, name: str) -> str:
        if name not in self._paths:
            X, y = MORE_DATASETS[name]()
            if self._rows is not None and len(y) > self._rows:
                rows = np.random.default_rng(0).permutation(len(y))[: self._rows]
                X, y = X[rows], y[rows]
            self._paths[name] = save(self._folder, name, X, y)
        return self._paths[name]


@dataclass(frozen=True)
class Race:
    """Which solvers run which stages, from what the book knows already."""

    book: Book
    runner: Runner
    store: Store
    tols: tuple[float, ...]
    limit: float
    only_ours: bool
    only_missing: bool
    again: bool = False

    def run(self, case: Case) -> None:
        """Ours first, which gives the lower bounds, then the peers."""
        for solver in (OURS, *([] if self.only_ours else self._in_order(case))):
            stages = [one for name in case.stages for one in self._stages(case, solver, name)]
            if not stages:
                continue
            data, storages = self.store.path(case.data), self._known_storages(case, solver)
            outcome = self.runner.run(data, case.task, solver, stages, storages)
            facts = {"limit": self.limit, "tols": sorted({stage.tol for stage in stages})}
            self.book.put(case.name, self.runner.load, solver, outcome, facts)

    def _in_order(self, case: Case) -> list[str]:
        """Those first that are quick on the same data, with whatever intercept, or on others."""
        kin = [other for other in CASES if other.task.kind == case.task.kind]
        same = [other for other in kin if other.data == case.data]
        return sorted(case.peers(), key=lambda peer: (self._multiple(peer, same),
                                                      self._multiple(peer, kin)))  # fmt: skip

    def _multiple(self, peer: str, cases: list[Case]) -> float:
        """The median of its times over ours, lower bounds as if they were times."""
        found = []
        for case, tol, name in product(cases, TOLS, (SINGLE, PATH, CV)):
            place = Place(case.name, tol, QUIET)
            theirs, ours = (self.book.stage(place, who, name) for who in (peer, OURS))
            if theirs is not None and ours is not None:
                found.append(theirs.seconds / ours.seconds)
        return float(np.median(found)) if found else math.inf

    def _stages(self, case: Case, solver: str, name: str) -> list[Stage]:
        """Large gaps before small ones."""
        return [
            Stage(name, tol, case.alphas(name), self._limit(case, solver, name, tol),
                  self._floors(case, name), self._known_tols(case, solver, name, tol))
            for tol in sorted(self.tols, reverse=True) if self._wanted(case, solver, name, tol)
        ]  # fmt: skip

    def _wanted(self, case: Case, solver: str, name: str, tol: float) -> bool:
        place = Place(case.name, tol, self.runner.load)
        known = self.book.stage(place, solver, name) or self.book.fact(place, solver, "failure")
        if self.only_missing and known:
            return False
        return solver == OURS or not self._knows(solver) or self._near(case, solver, name, tol)

    def _knows(self, solver: str) -> bool:
        """Whether tolerances and storages are not searched for: they are the same beside a load."""
        return self.runner.load == BUSY or (self.again and solver != OURS)

    def _near(self, case: Case, solver: str, name: str, tol: float) -> bool:
        """Whether a peer was among the best without a load, as far as that is known."""
        place = Place(case.name, tol, QUIET)
        best = self._best_peer(case, place, name)
        quiet = self.book.stage(place, solver, name)
        if quiet is not None and self._left_behind(place, name, quiet.seconds):
            return False
        if best is None or quiet is None:
            return best is None
        return quiet.reached and quiet.seconds <= _SLOWER_THAN_PEER * best

    def _left_behind(self, place: Place, name: str, seconds: float) -> bool:
        """Whether so many seconds without the load are more than ours takes beside it."""
        if self.runner.load == QUIET:
            return False
        ours = self.book.stage(place._replace(load=self.runner.load), OURS, name)
        return ours is not None and ours.reached and seconds > ours.seconds

    def _limit(self, case: Case, solver: str, name: str, tol: float) -> float:
        if solver == OURS:
            return self.limit
        place = Place(case.name, tol, self.runner.load)
        best, ours = self._best_peer(case, place, name), self.book.stage(place, OURS, name)
        enough = [_SLOWER_THAN_PEER * best] if best is not None else []
        enough += [_SLOWER_THAN_OURS * ours.seconds] if ours is not None and ours.reached else []
        return min(self.limit, max(min(enough, default=self.limit), _LEAST_LIMIT))

    def _best_peer(self, case: Case, place: Place, name: str) -> float | None:
        known = (self.book.stage(place, peer, name) for peer in case.peers())
        return min((one.seconds for one in known if one is not None and one.reached), default=None)

    def _floors(self, case: Case, name: str) -> Floors | None:
        """They say the same whatever is asked for, and beside whatever load."""
        places = (Place(case.name, tol, load) for tol in TOLS for load in (QUIET, BUSY))
        known = (self.book.floors(place, name) for place in places)
        return next((floors for floors in known if floors is not None), None)

    def _known_tols(self, case: Case, solver: str, name: str, tol: float) -> tuple | None:
        if not self._knows(solver):
            return None
        quiet = self.book.stage(Place(case.name, tol, QUIET), solver, name)
        return tuple(quiet.tols) or None if quiet is not None else None

    def _known_storages(self, case: Case, solver: str) -> dict[str, str]:
        if not self._knows(solver):
            return {}
        places = [Place(case.name, tol, QUIET) for tol in self.tols]
        found = {name: [self.book.storage(p, solver, name) for p in places] for name in case.stages}
        return {name: next(filter(None, known)) for name, known in found.items() if any(known)}


def publish(book: Book, console: Console, *, kept: bool) -> None:
    """Print the tables, and write them beside the figures."""
    report = Report(book)
    for sheet in report.sheets:
        console.print(sheet.table())
    ridge = ridge_sheet() if book.name == RACE else None
    if kept and ridge is not None:
        console.print(ridge.table())
    console.print("\n".join(report.preface()))
    if kept:
        text = report.markdown() + ("" if ridge is None else "\n" + ridge.markdown())
        (results.FOLDER / f"{book.name}.md").write_text(text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="DATA[/TASK]", help="names, beginnings, patterns"
    )
    parser.add_argument("--tol", nargs="+", type=float, default=TOLS, help="relative gaps")
    parser.add_argument("--busy", action="store_true", help="one spinning process per core beside")
    parser.add_argument("--ours", action="store_true", help="the peers' times are those known")
    parser.add_argument("--missing", action="store_true", help="only what is not in the results")
    parser.add_argument(
        "--again", action="store_true", help="at the peers' tolerances that are known: no search"
    )
    parser.add_argument("--table", action="store_true", help="run nothing, print what is known")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_ROWS} rows, one repeat, nothing written"
    )
    parser.add_argument("--book", default=RACE, help="the file of results, of another machine, say")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds per solver and stage")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.quick:
        args.repeats, args.limit = 1, min(args.limit, 2.0)
    return args


def main() -> None:
    args = arguments()
    # so that what was started is ended
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    cases = [] if args.table else chosen(args.only)
    console, book = wide_console(), Book(args.book, kept=not args.quick)
    load = BUSY if args.busy else QUIET
    with tempfile.TemporaryDirectory() as folder:
        race = Race(
            book, Runner(Path(folder), args.repeats, args.threads, load),
            Store(Path(folder), QUICK_ROWS if args.quick else None), tuple(args.tol), args.limit,
            args.ours, args.missing, args.again,
        )  # fmt: skip
        for case in cases:
            race.run(case)
            console.print(case_sheet(book, case, load).table())
    publish(book, console, kept=not args.quick)


if __name__ == "__main__":
    main()
