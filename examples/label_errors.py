"""Find wrong labels
=================

They are on samples that are most at odds with the model of all others::

    python examples/label_errors.py [label_errors.png]

Handwritten digits (MNIST where SAFESIFT_DATA names a folder with mnist.npz, scikit-learn's small
ones otherwise), three in a hundred labels replaced by another digit. `leave_one_out` ranks the
samples by how far the decision value of their own label is below the largest other one, in the
model that never saw them. Beside it cleanlab, where it is installed, on probabilities of five folds
of a logistic regression; and the model that has seen all labels, which has learnt some of the wrong
ones.
"""

import os
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict

import safesift as ss

SHARE, ROWS = 0.03, 5000


# %%
# Digits, some with a wrong label
# -------------------------------
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Pixels of norm 1 and labels."""
    file = Path(os.environ.get("SAFESIFT_DATA", ".")) / "mnist.npz"
    if file.exists():
        with np.load(file) as data:
            X, y = data["X_train"][:ROWS].reshape(ROWS, -1).astype(float), data["y_train"][:ROWS]
    else:
        X, y = load_digits(return_X_y=True)
    X = X[:, X.any(axis=0)]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y.astype(int)


def planted(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels of which some are wrong, and which."""
    rng = np.random.default_rng(0)
    wrong = rng.random(len(y)) < SHARE
    return np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y), wrong


# %%
# What others do
# --------------
def cleanlab_ranking(X: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """The most doubtful first; None where cleanlab is not installed."""
    try:
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        return None
    model = ss.SafeClassifier(loss="logistic", alpha=1e-3)
    probabilities = cross_val_predict(model, X, y, cv=5, method="predict_proba")
    return np.argsort(get_label_quality_scores(y, probabilities), kind="stable")


# %%
# Who is most suspicious
# ----------------------
def main() -> None:
    X, true = digits()
    y, wrong = planted(true)
    began = time.perf_counter()
    loo = ss.leave_one_out(X, y, alpha=1e-3)
    seconds = time.perf_counter() - began
    n_wrong = int(wrong.sum())
    rankings = {"leave-one-out": loo.suspects(len(y))}
    own = np.searchsorted(loo.classes, y)[:, None]
    mine = np.take_along_axis(loo.fitted, own, axis=1)[:, 0]
    others = loo.fitted.copy()
    np.put_along_axis(others, own, -np.inf, axis=1)
    rankings["model of all samples"] = np.argsort(mine - others.max(axis=1), kind="stable")
    ranked = cleanlab_ranking(X, y)
    if ranked is not None:
        rankings["cleanlab, five folds"] = ranked
    print(f"{len(y)} models without a sample, {X.shape[1]} pixels, 10 digits: {seconds:.1f} s")
    print(f"{n_wrong} wrong labels; precision among the first {n_wrong}:")
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for name, order in rankings.items():
        precision = np.cumsum(wrong[order]) / np.arange(1, len(order) + 1)
        print(f"  {name}: {precision[n_wrong - 1]:.3f}")
        axes.plot(np.arange(1, 3 * n_wrong + 1), precision[: 3 * n_wrong], lw=2, label=name)
    axes.axvline(n_wrong, color="#999999", lw=1, ls=":")
    axes.set_xlabel("samples looked at, the most suspicious first")
    axes.set_ylabel("share of wrong labels among them")
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "label_errors.png", dpi=110)


if __name__ == "__main__":
    main()
