"""Mining a rare class: seconds and memory, as ratios to training on everything.

    python benchmarks/mining.py [mnist covtype a9a] [--repeats 3] [--quick]

Squared hinge + l2, alpha = 1e-4, no intercept. Of MNIST (digit 0) and a9a the rare class is cut
down to 0.5 % of the rows; covtype's class 4 is that rare by itself. Mining begins with the rare
rows and a thousand normal ones; the other normal rows are the pool. Columns:

* "LinearSVC", "our fit": seconds on all rows, in memory, tol 1e-6 and 1e-8;
* "mining": seconds for the certified model of all rows, from the pool in memory;
* "left": seconds of LinearSVC on what is left, and how many times less than on all rows;
* "memory": peak that Python and NumPy allocate to read all rows from a file and fit them, and how
  many times less it is where the pool is streamed from that file.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import results
from datasets import folder
from rich.table import Table
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC
from tables import wide_console

import safesift as ss

ALPHA, SHARE, FIRST, MEMORY = 1e-4, 0.005, 1000, "256 MB"


class Rows(NamedTuple):
    """Normal rows in random order, and rare ones."""

    normal: np.ndarray
    rare: np.ndarray

    @property
    def all(self) -> tuple[np.ndarray, np.ndarray]:
        return np.vstack(self), np.repeat([0, 1], list(map(len, self)))

    @property
    def first(self) -> tuple[np.ndarray, np.ndarray]:
        return Rows(self.normal[:FIRST], self.rare).all


def split(X: np.ndarray, is_rare: np.ndarray) -> Rows:
    """At most SHARE rare rows; a constant column stands for the intercept."""
    rng = np.random.default_rng(0)
    X = np.column_stack([X, np.ones(len(X))])
    normal = rng.permutation(np.flatnonzero(~is_rare))
    rare = np.flatnonzero(is_rare)[: round(SHARE * len(normal))]
    return Rows(X[normal], X[rare])


def mnist() -> Rows:
    with np.load(folder() / "mnist.npz") as file:
        return split(file["X_train"].reshape(60_000, -1) / 255.0, file["y_train"] == 0)


def covtype() -> Rows:
    with np.load(folder() / "covtype.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return split(X / np.sqrt(X.shape[1]), y == 4)


def a9a() -> Rows:
    X, y = load_svmlight_file(str(folder() / "a9a.svmlight.bz2"), n_features=123)
    return split(X.toarray(), y > 0)


def synthetic() -> Rows:
    rng = np.random.default_rng(0)
    X, is_rare = rng.normal(size=(20_000, 20)), np.arange(20_000) < 100
    X[is_rare] += 1.0
    return split(X / np.sqrt(20), is_rare)


CASES: dict[str, Callable[[], Rows]] = {"mnist": mnist, "covtype": covtype, "a9a": a9a}


def svm(rows: Rows, n_all: int) -> LinearSVC:
    """Sums its loss: C belongs to all rows."""
    model = LinearSVC(C=1 / (2 * n_all * ALPHA), fit_intercept=False, dual=False, tol=1e-6)
    return model.fit(*rows.all)


def fit(X: np.ndarray, y: np.ndarray) -> ss.SafeClassifier:
    return ss.SafeClassifier(alpha=ALPHA, fit_intercept=False, tol=1e-8, random_state=0).fit(X, y)


def mine(pool: Any, rows: Rows) -> ss.MiningResult:
    X, y = rows.first
    return ss.mine_hard(pool, fit(X, y), X, y, label=0, memory=MEMORY)


def least_seconds(function: Callable[[], Any], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def peaks(rows: Rows) -> tuple[int, int]:
    """Peak bytes of a fit to all rows read from a file, and of mining that file."""

    def fit_all() -> None:
        with np.load(path) as file:
            fit(*Rows(file["X"], rows.rare).all)

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "pool.npz"
        np.savez(path, X=rows.normal)
        return _peak(fit_all), _peak(lambda: mine(path, rows))


def _peak(function: Callable[[], Any]) -> int:
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measure(name: str, rows: Rows, repeats: int) -> dict[str, Any]:
    X, y = rows.all
    pool = rows.normal[FIRST:]
    mined, everything = mine(pool, rows), fit(X, y)
    kept = np.append(mined.model.kept_[:FIRST], np.zeros(len(pool), dtype=bool))
    kept[FIRST + mined.indices] = True
    left = Rows(rows.normal[kept], rows.rare)
    memory_all, memory_mined = peaks(rows)
    return {
        "data": name, "shape": list(X.shape), "n_rare": len(rows.rare), "n_kept": mined.n_kept,
        "passes": mined.passes, "held": max(one.n_held for one in mined.history),
        "proved": mined.proved, "gap": mined.dual_gap,
        "difference": float(np.abs(mined.model.coef_ - everything.coef_).max()),
        "svm_s": least_seconds(lambda: svm(rows, len(y)), repeats),
        "fit_s": least_seconds(lambda: fit(X, y), repeats),
        "mining_s": least_seconds(lambda: mine(pool, rows), repeats),
        "left_s": least_seconds(lambda: svm(left, len(y)), repeats),
        "memory_all": memory_all, "memory_mined": memory_mined,
    }  # fmt: skip


def table(records: list[dict[str, Any]]) -> Table:
    shown = Table(title="Mining a rare class", title_justify="left")
    for column in ("data", "rows", "kept", "held", "passes", "LinearSVC s", "our fit s",
                   "mining s", "left s", "memory MB"):  # fmt: skip
        shown.add_column(column, justify="left" if column == "data" else "right")
    for one in records:
        faster = one["svm_s"] / one["left_s"]
        smaller = one["memory_all"] / one["memory_mined"]
        shown.add_row(
            one["data"], f"{one['shape'][0]} × {one['shape'][1]}", str(one["n_kept"]),
            str(one["held"]), str(one["passes"]), f"{one['svm_s']:.2f}",
            f"{one['fit_s']:.2f}", f"{one['mining_s']:.2f}",
            f"{one['left_s']:.3f} (÷ {faster:.0f})",
            f"{one['memory_all'] / 1e6:.0f} (÷ {smaller:.1f})",
        )  # fmt: skip
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(CASES), help="data sets")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="made-up data, no results written")
    args = parser.parse_args()
    cases = {"synthetic": synthetic} if args.quick else {name: CASES[name] for name in args.names}
    records = [measure(name, load(), args.repeats) for name, load in cases.items()]
    if not args.quick:
        results.write("mining", {"cases": records})
    wide_console().print(table(records))


if __name__ == "__main__":
    main()
