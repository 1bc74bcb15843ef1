"""An SVM for the price of ridge regression: what a path costs beside one Ridge fit.

    python benchmarks/price_of_ridge.py [mnist covtype] [--rows N] [--repeats 3]

Squared hinge + l2, no intercept, relative gap 1e-6, all on the same dense matrix, in units of one
`Ridge(solver="cholesky")` fit. Targets: ten alphas from 1e-3 to 1e-5 at most 2 of these units for
MNIST, 4 for the others; without screening a path of a hundred alphas and a 5-fold cross-validation
of 20 at least twice the time that they take with it (docs/paths.md says why they do not); the
cross-validation at most 4 times the one path of 20.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import results
from datasets import MORE_DATASETS
from screening_cost import median_seconds
from sklearn.linear_model import Ridge
from tables import Sheet, number, wide_console
from verdicts import at_least, at_most

import safesift as ss

MODEL = {"loss": "squared_hinge", "penalty": "l2", "fit_intercept": False, "tol": 1e-6}
# the most Ridge fits that ten alphas may cost; of the others covtype's
MOST_RIDGE = {"mnist": 2.0, "covtype": 4.0}
UNSCREENED = ", unscreened"


def calls(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], object]]:
    def path(n_alphas: int, **options: object) -> object:
        return ss.safe_path(X, y, alphas=alphas(n_alphas), **MODEL, **options)

    def cross_validation(**options: object) -> object:
        return ss.SafeClassifierCV(alphas=alphas(20), cv=5, **MODEL, **options).fit(X, y)

    return {
        "ridge": lambda: Ridge(solver="cholesky", fit_intercept=False).fit(X, y),
        "path of 10": lambda: path(10),
        "path of 20": lambda: path(20),
        "path of 100": lambda: path(100),
        "path of 100" + UNSCREENED: lambda: path(100, screening=None),
        "cross-validation": cross_validation,
        "cross-validation" + UNSCREENED: lambda: cross_validation(screening=None),
    }


def alphas(n: int) -> np.ndarray:
    return np.geomspace(1e-3, 1e-5, n)


def measure(name: str, rows: int | None, repeats: int) -> dict[str, object]:
    X, y = MORE_DATASETS[name]()
    if rows is not None:
        chosen = np.random.default_rng(0).permutation(len(y))[:rows]
        X, y = X[chosen], y[chosen]
    X, seconds = np.ascontiguousarray(X), {}
    for label, call in calls(X, y).items():
        call()  # what is compiled, and pages that are touched for the first time
        seconds[label] = median_seconds(call, repeats)
    return {"data": name, "shape": list(X.shape), "seconds": seconds}


def sheet(records: list[dict]) -> Sheet:
    shown = Sheet(
        "Multiples of a Ridge fit: seconds, and ratios with their targets",
        ("data", "what", "seconds", "ratio", "target", "verdict"), 2,
    )  # fmt: skip
    for record in records:
        s, most = record["seconds"], MOST_RIDGE.get(record["data"], MOST_RIDGE["covtype"])
        shown.add(record["data"], "one Ridge fit", number(s["ridge"]), "", "", "")
        for what, over, under, target, judge in (
            ("path of 10 / Ridge", "path of 10", "ridge", most, at_most),
            *(
                (f"{one} without screening / with", one + UNSCREENED, one, 2.0, at_least)
                for one in ("path of 100", "cross-validation")
            ),
            ("cross-validation / path of 20", "cross-validation", "path of 20", 4.0, at_most),
        ):
            verdict = judge(s[over] / s[under], target)
            sign = "≤" if judge is at_most else "≥"
            shown.add("", what, number(s[over]), number(verdict.ratio), f"{sign} {target:g}",
                      verdict.words)  # fmt: skip
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["mnist", "covtype"], help="data sets")
    parser.add_argument("--rows", type=int, help="so many rows only, and no results written")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    records = [measure(name, args.rows, args.repeats) for name in args.names]
    if args.rows is None:
        results.write("price_of_ridge", {"data": records})
    wide_console().print(sheet(records).table())


if __name__ == "__main__":
    main()
