"""The best alpha of six decades with a proof, beside a cross-validation of 100 alphas.

    SAFESIFT_DATA=folder python benchmarks/certify_alpha.py [a9a mnist] [--exact] [--limit 2000]

Squared hinge + l2, an intercept, five folds, alphas from 1e-6 to 1; epsilon = 0.001, or 0 with
--exact. MNIST: 20 000 rows, digit 9 against the rest. "×" is the CPU time of `certify_alpha` over
that of `SafeClassifierCV` with 100 alphas of the same range, in the same process, after both have
run on a few rows; "wall ×" is that of the clock, which other processes disturb. What is not proved
after so many alphas is unresolved.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import results
from datasets import a9a, mnist
from rich.table import Table
from tables import wide_console

import safesift as ss

DATA = {"a9a": lambda: a9a(), "mnist": lambda: tuple(part[:20_000] for part in mnist())}
COLUMNS = (
    "data", "epsilon", "alpha", "error", "least", "solved for", "resolved", "cv", "cpu seconds",
    "×", "wall ×",
)  # fmt: skip


def spent(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds, seconds of the clock, and what came of it."""
    began, cpu = time.perf_counter(), time.process_time()
    found = function()
    return time.process_time() - cpu, time.perf_counter() - began, found


def measure(name: str, epsilon: float, limit: int) -> dict[str, Any]:
    X, y = DATA[name]()
    grid = np.geomspace(1.0, 1e-6, 100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ss.SafeClassifierCV(alphas=grid[::50], cv=2).fit(X[:500], y[:500])  # compiled loops
    ss.certify_alpha(X[:500], y[:500], alphas=(0.1, 1.0), epsilon=0.1)
    cv, cv_wall, _ = spent(lambda: ss.SafeClassifierCV(alphas=grid, cv=5).fit(X, y))
    cpu, wall, found = spent(lambda: ss.certify_alpha(X, y, epsilon=epsilon, max_solves=limit))
    return {
        "data": name,
        "epsilon": epsilon,
        "alpha": found.alpha,
        "error": found.error,
        "least": found.least,
        "solved for": len(found.trials),
        "resolved": found.resolved,
        "cv": cv,
        "cpu seconds": cpu,
        "×": cpu / cv,
        "wall ×": wall / cv_wall,
        "n unresolved": len(found.unresolved),
        "unresolved": [tuple(one) for one in found.unresolved[:5]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=[*DATA])
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--limit", type=int, default=2000)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.data:
        rows.append(measure(name, 0.0 if arguments.exact else 1e-3, arguments.limit))
        print(rows[-1], flush=True)
    table = Table(*COLUMNS, title="certified alphas")
    for row in rows:
        cells = (row[column] for column in COLUMNS)
        table.add_row(*(f"{one:.4g}" if isinstance(one, float) else str(one) for one in cells))
    wide_console().print(table)
    name = "certify_alpha_exact" if arguments.exact else "certify_alpha"
    # of other data what was measured before
    before = results.read(name).get("alphas", [])
    others = [row for row in before if row["data"] not in arguments.data]
    results.write(name, {"alphas": [*others, *rows]})


if __name__ == "__main__":
    main()
