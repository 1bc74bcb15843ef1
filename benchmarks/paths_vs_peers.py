"""Total time of regularisation paths and of single fits, ours against the peers.

    python benchmarks/paths_vs_peers.py [--only mnist covtype/hinge] [--quick] [--repeats 3]

Everybody reaches the same relative gap (1e-6), measured on all rows by the same evaluator, with
the same number of threads, the data in the storage that is fastest for each, conversion and
compilation not counted. How that is done and how to read the tables: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import results
from cases import CASES, SINGLE, Case
from datasets import MORE_DATASETS
from peers import PEERS
from runner import Outcome, Runner
from runs import OURS, Stage, save
from tables import paths_table, peers_table, singles_table, wide_console

QUICK_ROWS = 2000
# A peer is out of the race after that many times the time of the best peer so far, or of ours
# (more than any target), though not before it had a few seconds.
_SLOWER_THAN_PEER, _SLOWER_THAN_OURS, _LEAST_LIMIT = 3.0, 150.0, 10.0


def chosen(only: list[str]) -> list[Case]:
    """The cases of the given names, or whose names begin so; without, all but made-up data."""
    if not only:
        return [case for case in CASES if case.data != "synthetic"]
    known = {case.name for case in CASES}
    found = [
        case
        for case in CASES
        if any(case.name == name if name in known else case.name.startswith(name) for name in only)
    ]
    if not found:
        raise SystemExit(f"--only: none of {only} begins the name of a case: "
                         + ", ".join(case.name for case in CASES))  # fmt: skip
    return found


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


def race(case: Case, runner: Runner, data: str, limit: float) -> dict[str, Any]:
    """Ours first, which gives the lower bounds, then the peers, each in processes of its own."""
    limits = {"single": limit, "path": limit}
    ours = runner.run(data, case.task, OURS, _stages(case, limits, {}))
    outcomes = {OURS: ours}
    limits = _tightened(limits, ours, _SLOWER_THAN_OURS)
    for name, peer in PEERS.items():
        if peer.supports(case.task):
            stages = _stages(case, limits, ours.floors)
            outcomes[name] = runner.run(data, case.task, name, stages)
            limits = _tightened(limits, outcomes[name], _SLOWER_THAN_PEER)
    return case.summary(outcomes)


def _stages(case: Case, limits: dict[str, float], floors: dict[str, list]) -> list[Stage]:
    alphas = {"single": (SINGLE,), "path": tuple(map(float, case.alphas))}
    return [
        Stage(name, alphas[name], limits[name], tuple(floors.get(name, [-np.inf] * len(a))))
        for name, a in alphas.items()
    ]


def _tightened(limits: dict[str, float], outcome: Outcome, times: float) -> dict[str, float]:
    tightened = dict(limits)
    for name, stage in outcome.stages.items():
        if stage.reached:
            tightened[name] = min(limits[name], max(times * stage.seconds, _LEAST_LIMIT))
    return tightened


def merged(old: Iterable[dict], new: Iterable[dict]) -> list[dict]:
    """The new figures in place of old ones of the same case, in the order of the cases."""
    by_name = {record["case"]: record for record in (*old, *new)}
    return [by_name[case.name] for case in CASES if case.name in by_name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="DATA[/TASK]")
    parser.add_argument(
        "--quick", action="store_true", help=f"{QUICK_ROWS} rows, one repeat, nothing written"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds per solver and path")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    cases = chosen(args.only)
    if args.quick:
        args.repeats, args.limit = 1, min(args.limit, 5.0)
    console, records = wide_console(), []
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), QUICK_ROWS if args.quick else None)
        runner = Runner(Path(folder), args.tol, args.repeats, args.threads)
        for case in cases:
            records.append(race(case, runner, store.path(case.data), args.limit))
            console.print(peers_table(records[-1]))
    if not args.quick:
        records = merged(results.read("paths_vs_peers").get("cases", []), records)
        settings = {"tol": args.tol, "threads": args.threads, "limit": args.limit}
        results.write("paths_vs_peers", {"settings": settings, "cases": records})
    console.print(paths_table(records), singles_table(records))


if __name__ == "__main__":
    main()
