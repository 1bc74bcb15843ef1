"""How much the curvature region decides, where the gap ball sees nothing, and what it costs.

    python benchmarks/curvature_power.py [mnist a9a covtype news20 imdb l1] [--json FILE]

Squared hinge + l2 along a path of ten alphas from 1e-3 to 1e-5. At each alpha the centre is the
optimum of the previous one, then one and two Newton steps further. Per region: percent of the
samples dropped / decided. "limit" is what the optimum allows to drop. Cost: seconds of the region
over seconds of one product of the matrix with 100 vectors, in the same run.

"l1": safe logistic + l1 on MNIST after 20, 30 and 60 epochs (passes over the rows) of accelerated
proximal gradient steps, and of proximal Newton steps.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace

import numpy as np
from datasets import DATASETS  # the file beside this one
from scipy.sparse.linalg import LinearOperator, cg

from safesift.problem.decisions import decide
from safesift.problem.evaluation import Evaluation
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.regions import Curvature, Region
from safesift.regions.ball import plain_ball
from safesift.solvers import solve
from safesift.solvers.first_order import short_run

ALPHAS = np.geomspace(1e-3, 1e-5, 10)
SMALL = 1000


def newton_step(problem: Problem, at: Evaluation) -> Evaluation:
    """A full Newton step on the active set: Cholesky for few columns, conjugate gradients else."""
    curvature = problem.shares * problem.loss.curvature(at.pred, problem.y)
    d = problem.design.n_columns
    if d <= SMALL:
        H = problem.design.gram(curvature) + problem.alpha * np.eye(d)
        return problem.evaluate(at.point - np.linalg.solve(H, at.subgradient))

    def product(u: np.ndarray) -> np.ndarray:
        u = np.ravel(u)
        design = problem.design
        return problem.alpha * u + design.rmatvec(curvature * design.matvec(u))

    step, _ = cg(LinearOperator((d, d), product), at.subgradient, rtol=1e-6, maxiter=200)
    return problem.evaluate(at.point - step)


def optimum(problem: Problem, at: Evaluation) -> Evaluation:
    """Newton steps with a halving line search until nothing improves."""
    for _ in range(50):
        following = newton_step(problem, at)
        while following.value > at.value and not np.allclose(following.point, at.point):
            following = problem.evaluate(0.5 * (following.point + at.point))
        settled = at.value - following.value <= 1e-15 * at.value
        at = following if following.value <= at.value else at
        if settled:
            break
    return at


class Meter:
    """Shares decided and costs relative to a product with 100 vectors."""

    def __init__(self, problem: Problem, name: str) -> None:
        self.name, self.records = name, []
        wide = np.random.default_rng(0).normal(size=(problem.design.n_columns, 100))
        self._unit = np.median([_seconds(lambda: problem.design.matvec(wide))[0] for _ in range(3)])

    def row(self, label: str, problem: Problem, at: Evaluation, limit: float) -> None:
        columns = [f"{self.name:<9}{problem.alpha:<9.1e}{label:<10}{100 * limit:6.1f}"]
        for region in self._regions(problem):
            seconds, bounds = _seconds(
                lambda r=region: r.build(problem.certify(at)).own_bounds(problem)
            )
            decisions = decide(problem, bounds, "always")
            dropped, decided = decisions.dropped.mean(), 1.0 - decisions.undecided.mean()
            columns.append(
                f"{100 * dropped:6.1f} /{100 * decided:6.1f} {seconds / self._unit:6.1f}"
            )
            self.records.append({
                "data": self.name, "alpha": problem.alpha, "centre": label, "limit": limit,
                "region": repr(region), "dropped": float(dropped), "decided": float(decided),
                "seconds": seconds, "products": seconds / self._unit,
            })  # fmt: skip
        print("  ".join(columns), flush=True)

    def _regions(self, problem: Problem) -> list[Region]:
        return [plain_ball(problem), Curvature(rank=100), Curvature()]


def _seconds(function):
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def l2_path(name: str) -> list[dict]:
    X, y = DATASETS[name]()
    problem = make_problems(
        X, y, loss="squared_hinge", penalty="l2", alpha=ALPHAS[0], fit_intercept=False
    ).problem
    at, meter = optimum(problem, short_run(problem)), Meter(problem, name)
    for alpha in ALPHAS[1:]:
        problem = replace(problem, alpha=float(alpha))
        warm = problem.evaluate(at.point)
        at = optimum(problem, warm)
        limit = float(np.mean(problem.y * at.pred > 1.0))
        for steps in range(3):
            meter.row(f"{steps} steps", problem, warm, limit)
            warm = newton_step(problem, warm)
    return meter.records


def l1_epochs() -> list[dict]:
    X, y = DATASETS["mnist"]()
    records = []
    for alpha in (1e-3, 1e-4, 1e-5):
        problem = make_problems(
            X, y, loss="safe_logistic", penalty="l1", alpha=alpha, fit_intercept=False
        ).problem
        limit = float(np.mean(problem.y * solve(problem, tol=1e-9, solver="newton").at.pred > 1.0))
        meter = Meter(problem, "mnist l1")
        for epochs in (20, 30, 60):
            first_order = short_run(problem, max_passes=epochs)
            meter.row(f"{epochs} FISTA", problem, first_order, limit)
            # a Newton step reads the rows twice: for the Gram matrix, and at the new point
            second_order = solve(problem, tol=1e-12, max_iter=epochs // 2, solver="newton").at
            meter.row(f"{epochs} Newton", problem, second_order, limit)
        records += meter.records
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*DATASETS, "l1"], help="which tables")
    parser.add_argument("--json", help="write every figure here, as JSON lines")
    args = parser.parse_args()
    print("percent dropped / decided, and cost in products with 100 vectors\n"
          f"{'data':<9}{'alpha':<9}{'centre':<10}{'limit':>6}  {'plain ball':<21}  "
          f"{'curvature, rank 100':<21}  curvature")  # fmt: skip
    records = [r for name in args.names for r in (l1_epochs() if name == "l1" else l2_path(name))]
    if args.json:
        with open(args.json, "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)


if __name__ == "__main__":
    main()
