"""Test scores as more and more training samples are deleted, method by method.

    python benchmarks/compression.py [mnist a9a covtype-elevation] [--jobs N]
    python benchmarks/compression.py --quick      # made-up data, a trial that writes nothing

As in the paper's section on compression: MNIST pixels (10 000 rows, digit 9 against the rest) and
a9a with the squared hinge, and one regression, covtype's elevation (20 000 rows), with the squared
ε-insensitive loss; l2, with an intercept. Every repeat has its own fifth to test on, the same for
all methods, and ranks, weights and fits on the rest; every method is trained on as `ss.compress`
says: with its weights, and at its alpha. "ahead" is the difference between the mean of hybrid and
that of the better one of screening and random; the claim is that it is nowhere below minus one
standard error of hybrid's mean.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import results
from datasets import MORE_DATASETS
from matplotlib.figure import Figure
from rich.table import Table
from tables import wide_console

import safesift as ss
from safesift.problem.training import Training

FRACTIONS = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
METHODS = ("hybrid", "screening", "random", "margin", "leverage")
CASES: dict[str, dict[str, Any]] = {
    "mnist": {"rows": 10_000, "repeats": 5, "alpha": 1e-4, "loss": "squared_hinge"},
    "a9a": {"rows": None, "repeats": 10, "alpha": 1e-4, "loss": "squared_hinge"},
    "covtype-elevation": {
        "rows": 20_000, "repeats": 10, "alpha": 1e-4,
        "loss": ss.losses.SquaredEpsilonInsensitive(0.1),
    },
}  # fmt: skip
QUICK = {"synthetic": {"rows": 1000, "repeats": 2, "alpha": 1e-3, "loss": "squared_hinge"}}


def curve_of(name: str, case: dict[str, Any], jobs: int) -> ss.CompressionCurve:
    X, y = MORE_DATASETS[name]()
    rows = np.random.default_rng(0).permutation(len(y))[: case["rows"]]
    return ss.compression_curve(
        X[rows], y[rows], loss=case["loss"], alpha=case["alpha"], fractions=FRACTIONS,
        methods=METHODS, n_repeats=case["repeats"], fit_intercept=True, n_jobs=jobs,
        random_state=0, verbose=1,
    )  # fmt: skip


def ahead(curve: ss.CompressionCurve) -> np.ndarray:
    """By how much hybrid is better than screening and random, fraction by fraction."""
    return curve.of("hybrid") - np.fmax(curve.of("screening"), curve.of("random"))


def holds(curve: ss.CompressionCurve) -> np.ndarray:
    """Where hybrid is at least as good as both, within one standard error of its mean."""
    error = curve.standard_error[curve.methods.index("hybrid")]
    # two fits of one problem may differ by a test sample or two
    return ahead(curve) >= -np.maximum(error, 1e-4)


def table(name: str, curve: ss.CompressionCurve) -> Table:
    title = f"{name}: test {curve.metric}, all samples {curve.full.mean():.4f}"
    shown = Table(title=title, title_justify="left")
    for column in ("deleted", "kept", *curve.methods, "ahead", "holds"):
        shown.add_column(column, justify="right")
    for k, fraction in enumerate(curve.fractions):
        cells = zip(curve.mean[:, k], curve.standard_error[:, k], strict=True)
        shown.add_row(
            f"{100 * fraction:g} %", str(curve.n_kept[k]),
            *(f"{mean:.4f}±{error:.4f}" for mean, error in cells),
            f"{ahead(curve)[k]:+.4f}", "yes" if holds(curve)[k] else "NO",
        )  # fmt: skip
    return shown


def as_dict(curve: ss.CompressionCurve, case: dict[str, Any]) -> dict[str, Any]:
    return {
        "loss": str(case["loss"]), "alpha": case["alpha"], "repeats": case["repeats"],
        "metric": curve.metric, "methods": list(curve.methods),
        "fractions_deleted": curve.fractions.tolist(),
        "n_kept": curve.n_kept.tolist(), "all_samples": float(curve.full.mean()),
        "scores": curve.scores.round(6).tolist(), "scores_of_all": curve.full.tolist(),
        "mean": dict(zip(curve.methods, curve.mean.tolist(), strict=True)),
        "standard_error": dict(zip(curve.methods, curve.standard_error.tolist(), strict=True)),
        "hybrid_ahead": ahead(curve).tolist(), "holds_everywhere": bool(holds(curve).all()),
    }  # fmt: skip


def from_dict(facts: dict[str, Any]) -> ss.CompressionCurve:
    return ss.CompressionCurve(
        np.array(facts["fractions_deleted"]), np.array(facts["n_kept"]), tuple(facts["methods"]),
        np.array(facts["scores"]), np.array(facts["scores_of_all"]), facts["metric"],
        Training(),
    )  # fmt: skip


def draw(curves: dict[str, ss.CompressionCurve]) -> None:
    size = (5.2 * len(curves), 4.2)
    figure = Figure(figsize=size, dpi=80, layout="constrained", facecolor="white")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, (name, curve) in zip(panels, curves.items(), strict=True):
        curve.plot(axes).set_title(name, loc="left")
    figure.savefig(results.FOLDER / "compression.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="data sets, all by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--quick", action="store_true", help="a trial on made-up data")
    args = parser.parse_args()
    cases = QUICK if args.quick else {name: CASES[name] for name in args.names or CASES}
    for name, case in cases.items():
        curve = curve_of(name, case, args.jobs)
        wide_console().print(table(name, curve))
        if not args.quick:
            known = results.read("compression").get("curves", {}) | {name: as_dict(curve, case)}
            results.write("compression", {"curves": known})
            draw({name: from_dict(known[name]) for name in CASES if name in known})


if __name__ == "__main__":
    main()
