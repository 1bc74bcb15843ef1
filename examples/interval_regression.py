"""Interval targets: easy ones are discarded
=========================================

The paper's toy: the difficult intervals alone give the same model.

Twenty intervals, two features of which one matters, an l1 penalty, 20 steps of the ellipsoid
method. Run `python examples/interval_regression.py [PICTURE]`; it draws interval_regression.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import safesift as ss

ALPHA = 0.02
DIFFICULT, EASY = "#d62728", "#1f77b4"


# %%
# The data
# --------
def intervals(n_samples: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """A signal from the first feature only, known up to intervals of their own widths."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(n_samples, 2))
    signal = 2.0 * X[:, 0] + 0.1 * rng.normal(size=n_samples)
    below, above = rng.uniform(0.1, 1.0, size=(2, n_samples))
    return X, np.column_stack([signal - below, signal + above])


# %%
# The picture
# -----------
def draw(X: np.ndarray, Y: np.ndarray, keep: np.ndarray, pred: np.ndarray, path: Path) -> None:
    """Intervals over the feature that matters: red where kept, blue where discarded."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for rows, colour, name in (
        (~keep, EASY, "easy: discarded"),
        (keep, DIFFICULT, "difficult: kept"),
    ):
        middle, half = Y[rows].mean(axis=1), 0.5 * np.ptp(Y[rows], axis=1)
        label = f"{name} ({rows.sum()})"
        axes.errorbar(
            X[rows, 0], middle, half, fmt="none", ecolor=colour, capsize=4, lw=2, label=label
        )
    axes.plot(X[:, 0], pred, "k.", ms=7, label="prediction")
    axes.set(xlabel="informative feature", ylabel="target", title="Safe interval regression")
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


# %%
# Screening, and two fits that agree
# ----------------------------------
def main(path: Path) -> None:
    X, Y = intervals()
    result = ss.screen(
        X, Y, loss="squared_interval", penalty="l1", alpha=ALPHA,
        screening=ss.regions.Ellipsoid(n_steps=20), fit_intercept=False,
    )  # fmt: skip
    keep = result.kept
    on_all = ss.IntervalRegressor(alpha=ALPHA, penalty="l1", fit_intercept=False, tol=1e-12)
    on_kept = ss.IntervalRegressor(
        alpha=result.alpha_kept, penalty="l1", fit_intercept=False, tol=1e-12
    )  # fmt: skip
    on_all.fit(X, Y)
    on_kept.fit(X[keep], Y[keep])
    print(f"{keep.sum()} of {len(keep)} intervals kept after 20 steps of the ellipsoid method")
    print(f"coefficients on all intervals:  {on_all.coef_.round(6)}")
    print(f"coefficients on the kept ones:  {on_kept.coef_.round(6)}")
    same = np.allclose(on_all.coef_, on_kept.coef_, atol=1e-6)
    print("the same model" if same else "FAILED: another model")
    draw(X, Y, keep, on_all.predict(X), path)
    print(f"drawn to {path}")


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument.endswith(".png")]
    main(Path(arguments[0] if arguments else "interval_regression.png"))
