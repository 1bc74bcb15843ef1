"""All models without one sample each, beside refits and beside `SafeTracker`.

    SAFESIFT_DATA=folder python benchmarks/leave_one_out.py [a9a covtype mnist] [--busy]

Squared hinge + l2, alpha = 1e-4, without and with an intercept; digit 9 of MNIST against the rest,
class 2 of covtype. "fit" is one `SafeClassifier`; "all" is `leave_one_out`, bounds included, less
two such fits (it solves at alpha and at alpha·(W − 1)/W itself): the time after the fit. Of some
rows drawn at random the model without each is solved for by our own solver from the model of all
(to a relative gap of 1e-14) and found by `SafeTracker.update(remove=row)`; the factors are of all
rows at that price over "all". "difference" is the largest one of these refits' predictions from
ours, where the refit is as exact as that. With --busy, one process per core spins beside it. Then,
on real data, the coverage of `jackknife_plus` at level 0.9 on rows that were not trained on, with
MAPIE's time where it is installed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import results
from datasets import a9a, covtype, covtype_elevation, mnist, mnist_digits
from rich.table import Table
from tables import wide_console

import safesift as ss
from safesift.problem.inputs import make_problems
from safesift.solvers.driver import solve
from safesift.workflows.leaving_out.base import base_at

ALPHA = 1e-4
DATA = {"a9a": a9a, "covtype": covtype, "mnist": mnist}
COLUMNS = (
    "data", "intercept", "n", "p", "fit", "all", "looked at", "moved", "widest", "refits ×",
    "tracker ×", "difference",
)  # fmt: skip


def timed(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """The fastest of some repeats, and what came of the last."""
    best, found = np.inf, None
    for _ in range(repeats):
        began = time.perf_counter()
        found = function()
        best = min(best, time.perf_counter() - began)
    return best, found


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy(wanted: bool) -> Iterator[None]:
    """A process per core that does nothing but compute."""
    count = os.cpu_count() or 1 if wanted else 0
    spinning = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for one in spinning:
        one.start()
    try:
        yield
    finally:
        for one in spinning:
            one.terminate()


def measure(name: str, intercept: bool, n_refits: int) -> dict[str, Any]:
    X, y = DATA[name]()
    model = {"alpha": ALPHA, "fit_intercept": intercept}
    ss.leave_one_out(X[:500], y[:500], **model)  # compiled loops
    fit, _ = timed(lambda: ss.SafeClassifier(tol=1e-10, **model).fit(X, y), 2)
    whole, loo = timed(lambda: ss.leave_one_out(X, y, **model), 2)
    after = max(whole - 2.0 * fit, 0.0)
    row = {
        "data": name,
        "intercept": intercept,
        "n": X.shape[0],
        "p": X.shape[1],
        "fit": fit,
        "all": after,
        "total": whole,
        "moved": float(loo.n_changed.mean()),
        "share that moves others": float((loo.n_changed > 0).mean()),
        "widest": float((loo.upper - loo.lower).max()),
        "solved for": loo.n_refits,
    }
    return row | compared(X, y, loo, model, after, n_refits)


def compared(
    X: Any, y: Any, loo: ss.LeaveOneOut, model: dict[str, Any], after: float, n_refits: int
) -> dict[str, Any]:
    """Refits and a tracker's updates without some rows."""
    n = len(y)
    rows = np.random.default_rng(0).choice(n, n_refits, replace=False)
    problem = make_problems(X, y, loss="squared_hinge", penalty="l2", **model).problem
    (start,) = loo.points
    difference, seconds = 0.0, []
    for i in rows:
        weights = np.ones(n)
        weights[i] = 0.0
        without = problem.reweighted(weights)
        spent, fit = timed(lambda one=without: solve(one, tol=1e-8, start=start))
        seconds.append(spent)
        base = base_at(without, fit.at.point)  # Newton's steps to the end
        exact = fit.at.pred[i] if base is None else base.at.pred[i]
        difference = max(difference, abs(float(exact) - float(loo.decision[i])))
    tracker = ss.SafeTracker(ss.SafeClassifier(**model)).fit(X, y)
    updates = []
    for i in rows[:20]:
        spent, _ = timed(lambda one=int(i): tracker.update(remove=[one]))
        updates.append(spent)
        tracker.update(add=(X[[int(i)]], y[[int(i)]]))
    return {
        "refits ×": n * float(np.median(seconds)) / after,
        "tracker ×": n * float(np.median(updates)) / after,
        "difference": difference,
    }


# --- coverage -------------------------------------------------------------------------------


def coverage(name: str, make: Callable[[], Any], train: int, test: int) -> dict[str, Any]:
    """Of both kinds of intervals on rows that were not trained on."""
    X, y = make()
    chosen = np.random.default_rng(0).permutation(len(y))[: train + test]
    old, new = chosen[:train], chosen[train:]
    seconds, loo = timed(lambda: ss.leave_one_out(X[old], y[old], loss="huber", alpha=ALPHA))
    row: dict[str, Any] = {"data": name, "train": train, "test": test, "seconds": seconds}
    for method in ("plus", "minmax"):
        spent, found = timed(lambda how=method: ss.jackknife_plus(loo, X[new], 0.9, how))
        row[method], row[f"{method} seconds"] = found.coverage(y[new]), spent
        row[f"{method} width"] = float(np.median(found.upper - found.lower))
    row["standard error"] = float(np.sqrt(0.9 * 0.1 / test))
    row["mapie seconds"] = mapie_seconds(X[old], y[old], X[new])
    return row


def mapie_seconds(X: Any, y: Any, new: Any) -> float | None:
    """The same intervals by n fits, of 500 rows at most; None where MAPIE is not installed."""
    try:
        from mapie.regression import (
            CrossConformalRegressor,
            JackknifeAfterBootstrapRegressor,  # noqa: F401
        )
    except ImportError:
        return None
    rows = min(len(y), 500)
    model = ss.SafeRegressor(loss="huber", alpha=ALPHA)

    def intervals() -> Any:
        regressor = CrossConformalRegressor(model, confidence_level=0.9, cv=rows)
        regressor.fit_conformalize(X[:rows], y[:rows])
        return regressor.predict_interval(new[:100])

    return timed(intervals)[0] * (len(y) / rows) ** 2


def shown(rows: list[dict[str, Any]], columns: tuple[str, ...], title: str) -> Table:
    table = Table(*columns, title=title)
    for row in rows:
        cells = (row.get(column) for column in columns)
        table.add_row(*(f"{one:.3g}" if isinstance(one, float) else str(one) for one in cells))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=[*DATA])
    parser.add_argument("--refits", type=int, default=200)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--no-coverage", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with busy(arguments.busy):
        for name in arguments.data:
            for intercept in (False, True):
                rows.append(measure(name, intercept, arguments.refits))
                print(rows[-1], flush=True)
    columns = tuple(one for one in COLUMNS if one != "looked at")
    wide_console().print(shown(rows, columns, "all models without one sample each"))
    name = "leave_one_out_busy" if arguments.busy else "leave_one_out"
    before = results.read(name)  # of other data what was measured before
    others = [row for row in before.get("models", []) if row["data"] not in arguments.data]
    found: dict[str, Any] = {"models": [*others, *rows], "coverage": before.get("coverage", [])}
    if not arguments.no_coverage:
        covered = [
            coverage("covtype elevation", covtype_elevation, 5_000, 2_000),
            coverage("MNIST digits", mnist_digits, 4_000, 2_000),
            coverage("a9a labels as numbers", a9a, 5_000, 2_000),
        ]
        names = ("data", "train", "plus", "minmax", "standard error", "seconds", "mapie seconds")
        wide_console().print(shown(covered, names, "coverage at level 0.9"))
        found["coverage"] = covered
    results.write(name, found)


if __name__ == "__main__":
    main()
