"""Error bars that keep their promise
==================================

Jackknife+ intervals of a robust regression::

    python examples/error_bars.py [error_bars.png]

The elevation of a piece of forest from its other attributes (covtype, where SAFESIFT_DATA names a
folder with covtype.npz; scikit-learn's diabetes data otherwise), Huber loss. All models without one
sample come from one `leave_one_out`; the intervals of rows that nobody has seen cover 90 in 100 of
them, and for certain, whatever the distribution, 80.
"""

import os
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import safesift as ss

TRAIN, TEST = 5000, 2000


# %%
# The data
# --------
def regression() -> tuple[np.ndarray, np.ndarray, str]:
    """Standardised, in random order."""
    file = Path(os.environ.get("SAFESIFT_DATA", ".")) / "covtype.npz"
    if file.exists():
        with np.load(file) as data:
            rows = np.random.default_rng(0).permutation(len(data["X"]))[: TRAIN + TEST]
            whole = data["X"][rows].astype(float)
        X, y, name = whole[:, 1:], whole[:, 0], "elevation, metres"
    else:
        X, y = load_diabetes(return_X_y=True)
        rows = np.random.default_rng(0).permutation(len(y))
        X, y, name = X[rows], y[rows], "progression of the disease"
    spread = X.std(axis=0)
    return (X[:, spread > 0] - X[:, spread > 0].mean(axis=0)) / spread[spread > 0], y, name


# %%
# All models without a sample, and intervals for new rows
# -------------------------------------------------------
def main() -> None:
    X, y, name = regression()
    n = min(TRAIN, len(y) * 3 // 4)
    loss = ss.losses.Huber(float(np.std(y)) / 2)
    began = time.perf_counter()
    loo = ss.leave_one_out(X[:n], y[:n], loss=loss, alpha=1e-2)
    between = time.perf_counter()
    plus = ss.jackknife_plus(loo, X[n:], level=0.9)
    minmax = ss.jackknife_plus(loo, X[n:], level=0.9, method="minmax")
    print(
        f"{n} models in {between - began:.2f} s, intervals in {time.perf_counter() - between:.2f} s"
    )
    for found in (plus, minmax):
        width = np.median(found.upper - found.lower)
        print(
            f"  {found.method}: {found.coverage(y[n:]):.3f} covered, guaranteed "
            f"{found.guaranteed:.1f}, median width {width:.4g}"
        )
    figure, axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    shown = np.argsort(plus.lower + plus.upper)[:: max(len(y[n:]) // 120, 1)]
    inside = (plus.lower <= y[n:]) & (y[n:] <= plus.upper)
    places = np.arange(len(shown))
    axes.vlines(places, plus.lower[shown], plus.upper[shown], color="#4477aa", alpha=0.45, lw=2)
    for covered, color in ((True, "#333333"), (False, "#dd7733")):
        rows = inside[shown] == covered
        label = "inside" if covered else "outside"
        axes.plot(places[rows], y[n:][shown][rows], ".", ms=6, color=color, label=label)
    axes.set_xlabel("rows that nobody has trained on, by their prediction")
    axes.set_ylabel(name)
    axes.set_title(f"jackknife+ at 0.9: {100 * inside.mean():.1f} % inside", loc="left")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "error_bars.png", dpi=110)


if __name__ == "__main__":
    main()
