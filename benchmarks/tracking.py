"""Following a stream against refitting at every step: electricity, a moving window.

    SAFESIFT_DATA=folder python benchmarks/tracking.py [--repeats 3] [--quick]

45 312 rows in time order, drifting; a window of 10 000 rows that moves by 100. Squared hinge + l2,
alpha = 1e-3, no intercept (LinearSVC would penalise it), features as they come, in [0, 1], mapped
to [-1, 1]. At every step the tracker is updated and everybody else fits the window anew, one after
the other, so that all see the machine in the same state; of the repeats the fastest counts, step by
step. Where the machine has other things to do, long fits are interrupted more often than short
updates, so that processor time is measured as well, and the ratios to go by are the smaller ones
(run it with OMP_NUM_THREADS=1). The relative gap of every model of every window is certified on all
its rows, outside the clock. LinearSVC runs at its default tolerance, and at
the loosest one (of powers of ten) that reaches a relative gap of 1e-6 in every window.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import results
from datasets import electricity
from rich.table import Table
from sklearn.svm import LinearSVC
from tables import wide_console

import safesift as ss
from safesift.problem.inputs import make_problems

ALPHA, GAP = 1e-3, 1e-6
TRACKER = "SafeTracker"
COLD = "SafeClassifier, cold"
DEFAULT, CERTIFIED = "LinearSVC, default tolerance", "LinearSVC, relative gap 1e-6"
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)

Windows = list[slice]


def windows(n: int, window: int, step: int) -> Windows:
    """The first window, and all that follow."""
    return [slice(start, start + window) for start in range(0, n - window + 1, step)]


def relative_gap(X: np.ndarray, y: np.ndarray, coef: np.ndarray) -> float:
    """On all rows of a window."""
    problem = make_problems(
        X, y, loss="squared_hinge", penalty="l2", alpha=ALPHA, fit_intercept=False
    ).problem
    return problem.certify(problem.evaluate(np.ravel(coef))).gap / problem.constant_value


def linear_svc(window: int, **options: Any) -> LinearSVC:
    return LinearSVC(C=1.0 / (2.0 * window * ALPHA), fit_intercept=False, **options)


def loosest_tolerance(X: np.ndarray, y: np.ndarray, some: Windows, window: int) -> float:
    """At which LinearSVC has the gap in all of some windows; the tightest if none has."""
    for tol in TOLERANCES:
        model = linear_svc(window, tol=tol)
        if all(relative_gap(X[w], y[w], model.fit(X[w], y[w]).coef_) <= GAP for w in some):
            return tol
    return TOLERANCES[-1]


def contenders(X: np.ndarray, y: np.ndarray, all_: Windows) -> dict[str, Callable[[int], Any]]:
    """For each a function from the number of a window to a fitted model; the clock runs on it."""
    window, step = all_[0].stop, all_[1].start
    tol = loosest_tolerance(X, y, all_[1:], window)
    model = ss.SafeClassifier(alpha=ALPHA, fit_intercept=False)
    tracker = ss.SafeTracker(model).fit(X[all_[0]], y[all_[0]])

    def follow(k: int) -> Any:
        new = slice(all_[k].stop - step, all_[k].stop)
        return tracker.update(add=(X[new], y[new]), remove=slice(0, step))

    def refit(estimator: Any) -> Callable[[int], Any]:
        return lambda k: estimator.fit(X[all_[k]], y[all_[k]])

    return {
        TRACKER: follow,
        COLD: refit(model),
        DEFAULT: refit(linear_svc(window)),
        CERTIFIED: refit(linear_svc(window, tol=tol)),
    }


def race(X: np.ndarray, y: np.ndarray, all_: Windows) -> Iterator[dict[str, Any]]:
    """What happened at every step: seconds and gaps by name, and the tracker's own record."""
    entries = contenders(X, y, all_)
    entries[COLD](0)  # imports and compilation
    for k in range(1, len(all_)):
        seconds, cpu_seconds, gaps = {}, {}, {}
        for name, fit in entries.items():
            start, cpu_start = time.perf_counter(), time.process_time()
            model = fit(k)
            seconds[name] = time.perf_counter() - start
            cpu_seconds[name] = time.process_time() - cpu_start
            gaps[name] = relative_gap(X[all_[k]], y[all_[k]], model.coef_)
            if name == TRACKER:
                update = model.history_[-1]
        yield {"seconds": seconds, "cpu_seconds": cpu_seconds, "gaps": gaps, "update": update}


def fastest(runs: list[list[dict[str, Any]]], clock: str) -> dict[str, np.ndarray]:
    """For every contender and step the least of the repeats."""
    return {
        name: np.min([[record[clock][name] for record in run] for run in runs], axis=0)
        for name in runs[0][0][clock]
    }


def summary(runs: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Totals of the fastest repeats, ratios to the tracker, largest gaps, rows read."""
    names = list(runs[0][0]["seconds"])
    best, cpu = fastest(runs, "seconds"), fastest(runs, "cpu_seconds")
    updates = [record["update"] for record in runs[0]]
    return {
        "steps": len(updates),
        "seconds": {name: float(best[name].sum()) for name in names},
        "ratios": {name: float(best[name].sum() / best[TRACKER].sum()) for name in names},
        "cpu_ratios": {name: float(cpu[name].sum() / cpu[TRACKER].sum()) for name in names},
        "largest_gaps": {
            name: float(max(record["gaps"][name] for run in runs for record in run))
            for name in names
        },
        "certified_gap": max(update["relative_gap"] for update in updates),
        "mean_passes": float(np.mean([update["passes"] for update in updates])),
        "mean_changed": float(np.mean([update["n_changed"] for update in updates])),
        "not_local": sum(not update["local"] for update in updates),
        "refitted": sum(update["why"] != "" for update in updates),
        "rebuilt": sum(update["rebuilt"] for update in updates),
        "cpu_seconds_per_step": {name: cpu[name].round(6).tolist() for name in names},
        "rows_read": [update["rows_read"] for update in updates],
    }


def draw(facts: dict[str, Any], n_rows: int) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for name, seconds in facts["cpu_seconds_per_step"].items():
        ratio = f", {facts['cpu_ratios'][name]:.1f} times as long" if name != TRACKER else ""
        left.plot(np.cumsum(seconds), label=name + ratio)
    left.set(xlabel="steps of 100 rows", ylabel="seconds of processor time, in all", yscale="log")
    right.plot(facts["rows_read"], ".", ms=3, color="tab:blue")
    right.axhline(n_rows, color="tab:gray", ls="--", lw=1, label="the whole window")
    right.set(xlabel="steps of 100 rows", ylabel="rows read by an update", yscale="log")
    for panel in (left, right):
        panel.grid(True, alpha=0.3)
        panel.legend(frameon=False, fontsize="small")
    figure.suptitle(f"electricity, a window of {n_rows} rows")
    figure.tight_layout()
    results.FOLDER.mkdir(exist_ok=True)
    figure.savefig(results.FOLDER / "tracking.png", dpi=110)
    plt.close(figure)


def table(facts: dict[str, Any]) -> Table:
    shown = Table(title=f"{facts['steps']} steps", title_justify="left")
    for column in ("", "seconds", "ratio", "ratio of processor time", "largest relative gap"):
        shown.add_column(column, justify="right" if column else "left")
    for name, seconds in facts["seconds"].items():
        ratios = [f"{facts[kind][name]:.2f}" for kind in ("ratios", "cpu_ratios")]
        shown.add_row(name, f"{seconds:.3g}", *ratios, f"{facts['largest_gaps'][name]:.1e}")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="20 steps, nothing is written")
    args = parser.parse_args()
    X, y = electricity()
    all_ = windows(len(y), 10_000, 100)[: 21 if args.quick else None]
    facts = summary([list(race(X, y, all_)) for _ in range(args.repeats)])
    wide_console().print(table(facts))
    print(
        f"an update reads {facts['mean_passes']:.3f} of the window, {facts['mean_changed']:.1f} "
        f"rows change their piece; {facts['not_local']} updates read as many rows as there are, "
        f"{facts['refitted']} were refits; certified gap {facts['certified_gap']:.1e}"
    )
    if not args.quick:
        results.write("tracking", facts)
        draw(facts, 10_000)


if __name__ == "__main__":
    main()
