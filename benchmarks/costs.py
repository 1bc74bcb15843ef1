"""The costs by which a solver is chosen, beside what they are: passes over the data per level.

    python benchmarks/costs.py [--only mnist made-1000] [--limit 20] [--repeats 3] [--within 10]

Every solver that suits a problem solves it, a single fit and a path of ten alphas, to a relative
gap of 1e-6; its seconds per level are divided by those of one evaluation, which is what a pass
costs. Beside that stands what its `cost` says. The solver that is chosen is marked with a star, one
that took longer than the limit, and is not measured again, with >; those that are said to cost
more than --within times as much as the chosen one are left out, since they are never chosen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import datasets
import numpy as np
import results
from growth import make_data
from rich.table import Table
from tables import wide_console

import safesift as ss
from safesift.arithmetic import threads
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.solvers import SOLVERS, choose

ALPHAS = {"single": np.array([1e-4]), "path": np.geomspace(1e-3, 1e-5, 10)}
TOL = 1e-6
DATA: dict[str, Callable[[], tuple]] = {
    "a9a": datasets.a9a, "covtype": datasets.covtype, "mnist": datasets.mnist,
    "mnist-fourier": datasets.mnist_fourier, "news20": datasets.news20, "imdb": datasets.imdb,
    **{f"made-{p}": partial(make_data, 10_000, p) for p in (100, 500, 1000, 2000, 5000, 10_000)},
}  # fmt: skip
LOSSES = ("squared_hinge", "hinge", "logistic", "safe_logistic")


@dataclass(frozen=True)
class Measured:
    """A solver on one problem: passes per level, estimated and measured."""

    data: str
    loss: str
    intercept: bool
    stage: str
    solver: str
    chosen: bool
    estimated: float
    measured: float
    late: bool

    @property
    def ratio(self) -> float:
        return self.estimated / self.measured


def seconds(call: Callable[[], object], repeats: int, limit: float) -> float:
    """The median of some runs after a first one; of the first where that took long."""
    times: list[float] = []
    while len(times) <= repeats and (not times or times[0] <= limit):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:] or times))


def pass_seconds(problem: Problem) -> float:
    point = np.full(problem.design.n_columns, 1e-3)
    with threads.using(None):
        problem.evaluate(point)
        return seconds(lambda: problem.evaluate(point), 9, 1.0)


def races(only: list[str]) -> Iterator[tuple[str, object, object, str, bool]]:
    for data, load in DATA.items():
        if only and not any(data.startswith(name) for name in only):
            continue
        X, y = load()
        for loss in LOSSES:
            for intercept in (False, True):
                yield data, X, y, loss, intercept


def measure(only: list[str], repeats: int, limit: float, within: float) -> Iterator[Measured]:
    for data, X, y, loss, intercept in races(only):
        how = {"loss": loss, "penalty": "l2", "fit_intercept": intercept}
        problem = make_problems(X, y, alpha=1e-4, **how).problem
        one = pass_seconds(problem)
        for stage, alphas in ALPHAS.items():
            chosen = choose(problem, len(alphas)).name
            most = within * SOLVERS[chosen].cost(problem, len(alphas))
            for name, solver in SOLVERS.items():
                estimated = solver.cost(problem, len(alphas))
                if solver.refusal(problem) or not estimated <= most:
                    continue
                call = partial(ss.safe_path, X, y, alphas=alphas, tol=TOL, solver=name, **how)
                spent = seconds(call, repeats, limit)
                yield Measured(data, loss, intercept, stage, name, name == chosen, estimated,
                               spent / one / len(alphas), spent > limit)  # fmt: skip


def table(found: list[Measured]) -> Table:
    shown = Table(title="Passes per level", title_justify="left")
    for column in ("data", "loss", "stage", "solver", "estimated", "measured", "ratio"):
        shown.add_column(column, justify="left" if column in ("data", "loss") else "right")
    for one in found:
        loss = one.loss + (" + intercept" if one.intercept else "")
        shown.add_row(one.data, loss, one.stage, one.solver + " *" * one.chosen,
                      f"{one.estimated:.3g}", ">" * one.late + f"{one.measured:.3g}",
                      f"{one.ratio:.2g}")  # fmt: skip
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--within", type=float, default=10.0)
    args = parser.parse_args()
    found: list[Measured] = []
    for one in measure(args.only, args.repeats, args.limit, args.within):
        found.append(one)
        # of other data what was measured before; and what there is by now is not lost
        new = {row.data for row in found}
        before = [row for row in results.read("costs").get("costs", []) if row["data"] not in new]
        results.write("costs", {"costs": [*before, *map(vars, found)]}, "costs")
    wide_console().print(table(found))


if __name__ == "__main__":
    main()
