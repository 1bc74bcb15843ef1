"""`screen` on data as they come: rows it keeps and seconds it takes, against the estimator's fit.

    python benchmarks/screen_vs_fit.py [NAME ...] [--repeats 3]

Raw columns, intercept, squared hinge + l2. Aimed at: no more than 1 % more rows than
`SafeClassifier(...).kept_`, in at most 1.3 times its time. "quick" is `effort="quick"`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import results
from datasets import folder
from rich.table import Table
from screening_cost import median_seconds
from sklearn import datasets
from tables import wide_console

import safesift as ss

MOST_ROWS, MOST_TIME = 1.01, 1.3
Samples = tuple[np.ndarray, np.ndarray]


def wine_of_one_class() -> Samples:
    X, y = datasets.load_wine(return_X_y=True)
    return X, y == 1


def mnist() -> Samples:
    """Pixels 0…255, digit 3 against the rest."""
    with np.load(folder() / "mnist.npz") as file:
        return file["X_train"][:10_000].reshape(10_000, -1), file["y_train"][:10_000] == 3


def covtype(rows: int | None = 50_000) -> Samples:
    with np.load(folder() / "covtype.npz") as file:
        return file["X"][:rows].astype(np.float64), file["y"][:rows] == 2


def scaled_covtype() -> Samples:
    X, y = covtype(465_000)
    X -= X.mean(axis=0)
    spread = X.std(axis=0)
    return X / np.where(spread > 0, spread, 1.0), y


CASES: dict[str, tuple[Callable[[], Any], float]] = {
    "breast cancer": (lambda: datasets.load_breast_cancer(return_X_y=True), 1e-4),
    "wine, class 1": (wine_of_one_class, 1e-3),
    "wine": (lambda: datasets.load_wine(return_X_y=True), 1e-3),
    "digits": (lambda: datasets.load_digits(return_X_y=True), 1e-4),
    "mnist": (mnist, 1e-4),
    "covtype": (covtype, 1e-4),
    "covtype, scaled": (scaled_covtype, 1e-4),
}


def measure(name: str, repeats: int) -> dict[str, Any]:
    load, alpha = CASES[name]
    X, y = load()
    calls = {
        "fit": lambda: ss.SafeClassifier(alpha=alpha, random_state=0).fit(X, y),
        "screen": lambda: ss.screen(X, y, alpha=alpha, random_state=0),
        "quick": lambda: ss.screen(X, y, alpha=alpha, effort="quick"),
    }
    found = {key: call() for key, call in calls.items()}
    kept = {key: np.asarray(getattr(one, "kept_", None) if key == "fit" else one.kept)
            for key, one in found.items()}  # fmt: skip
    return {
        "data": name, "shape": list(X.shape), "alpha": alpha,
        "kept": {key: int(rows.sum()) for key, rows in kept.items()},
        "seconds": {key: median_seconds(call, repeats) for key, call in calls.items()},
    }  # fmt: skip


def table(records: list[dict[str, Any]]) -> Table:
    shown = Table(title="Rows kept and seconds", title_justify="left")
    shown.add_column("data")
    for column in ("rows", "fit", "screen", "quick", "fit s", "screen s", "quick s", "met"):
        shown.add_column(column, justify="right")
    for record in records:
        kept, seconds = record["kept"], record["seconds"]
        met = (
            kept["screen"] <= MOST_ROWS * kept["fit"]
            and seconds["screen"] <= MOST_TIME * seconds["fit"]
        )
        shown.add_row(
            record["data"], str(record["shape"][0]), *map(str, kept.values()),
            *(f"{s:.3g}" for s in seconds.values()), "yes" if met else "no",
        )  # fmt: skip
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(CASES), help="data sets")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    records = [measure(name, args.repeats) for name in args.names]
    wide_console().print(table(records))
    if set(args.names) == set(CASES):
        results.write("screen_vs_fit", {"records": records})


if __name__ == "__main__":
    main()
