"""A rare class: nearly all rows are trivial
=========================================

A proof says which::

    python examples/anomaly_detection.py [anomaly_detection.png]

One class is cut down to 0.5 % of the rows. `mine_hard` begins with the rare rows and a thousand
normal ones, goes through the other normal rows in blocks, and keeps the few that can matter: its
model is that of all rows. Where there is room for all rows, `SampleScreener` does the same at once.
To see that nothing is lost, LinearSVC is trained on everything and on what is left. MNIST and a9a
are read from the folder SAFESIFT_DATA; without it noisy copies of scikit-learn's digits stand in.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.metrics import average_precision_score, precision_recall_curve
from sklearn.svm import LinearSVC

import safesift as ss

ALPHA, SHARE, FIRST = 1e-4, 0.005, 1000
COLOURS = {"all": "#9ecae1", "kept": "#d62728"}


# %%
# Rare rows among many
# --------------------
# Raw rows, which of them are rare, and the largest value they have.
def mnist(folder):
    with np.load(folder / "mnist.npz") as file:
        return file["X_train"].reshape(60_000, -1), file["y_train"] == 0, 255.0


def a9a(folder):
    X, y = load_svmlight_file(str(folder / "a9a.svmlight.bz2"), n_features=123)
    return X.toarray().astype(np.uint8), y > 0, 1.0


def noisy_digits():
    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(images), 20_000)
    return images[rows] + rng.normal(0, 1.6, (20_000, 64)), digits[rows] == 0, 16.0


def data_sets():
    """Raw rows, which of them are rare, and the largest value."""
    folder = Path(os.environ.get("SAFESIFT_DATA", "data"))
    if not (folder / "mnist.npz").exists():
        return {"noisy digits, 0 is rare": noisy_digits()}
    return {"MNIST, 0 is rare": mnist(folder), "a9a, high incomes are rare": a9a(folder)}


def rare_class(is_rare):
    """Numbers of normal and of rare rows, to train and to test with."""
    rng = np.random.default_rng(0)
    normal, rare = (rng.permutation(np.flatnonzero(rows)) for rows in (~is_rare, is_rare))
    cut = 3 * len(normal) // 4
    n_rare = [round(SHARE * n_rows) for n_rows in (cut, len(normal))]
    return (normal[:cut], rare[: n_rare[0]]), (normal[cut:], rare[n_rare[0] : n_rare[1]])


# %%
# Mining, screening, training
# ---------------------------
# LinearSVC is what the others are compared with.
def svm(normal, rare, n_all):
    """LinearSVC sums its loss, so its C belongs to all rows, whichever it is given."""
    model = LinearSVC(C=1 / (2 * n_all * ALPHA), fit_intercept=False, dual=False, tol=1e-6)
    return model.fit(*labelled(normal, rare))


def screen(normal, rare):
    return ss.SampleScreener(alpha=ALPHA, fit_intercept=False).fit(*labelled(normal, rare))


def labelled(normal, rare):
    return np.vstack([normal, rare]), np.repeat([0, 1], [len(normal), len(rare)])


def timed(function, *arguments):
    start = time.perf_counter()
    return function(*arguments), time.perf_counter() - start


def mine(features, normal, rare):
    """The pool is made block by block: its features are never in memory as a whole."""
    X = np.vstack([features(normal[:FIRST]), features(rare)])
    y = np.repeat([0, 1], [FIRST, len(rare)])
    begun = ss.SafeClassifier(alpha=ALPHA, fit_intercept=False).fit(X, y)
    parts = np.array_split(normal[FIRST:], 50)
    return ss.mine_hard(lambda: map(features, parts), begun, X, y, label=0, memory="128 MB")


def compare(name, raw, is_rare, scale, axes):
    def features(rows):
        return np.column_stack([raw[rows] / scale, np.ones(len(rows))])

    (normal, rare), test = rare_class(is_rare)
    everything, rare_rows = features(normal), features(rare)
    n_all, row_mb = len(normal) + len(rare), everything[0].nbytes / 1e6
    mine(features, normal[: 2 * FIRST], rare)  # imports and compilation are not counted
    mined, mining_s = timed(mine, features, normal, rare)
    on_all, on_all_s = timed(svm, everything, rare_rows, n_all)
    _, screening_s = timed(screen, everything, rare_rows)
    kept = np.zeros(len(normal), dtype=bool)
    kept[:FIRST], kept[FIRST + mined.indices] = mined.model.kept_[:FIRST], True
    on_left, on_left_s = timed(svm, everything[kept], rare_rows, n_all)
    held = FIRST + max(one.n_held for one in mined.history)
    print(f"{name}: {len(rare)} rare among {n_all} rows")
    print(f"  {mined.n_proved} of {mined.n_pool} rows of the pool proved trivial, {mining_s:.2f} s")
    print(f"  memory: {held * row_mb:.0f} MB of rows instead of {n_all * row_mb:.0f} MB")
    print(f"  LinearSVC: {on_all_s:.2f} s on all rows, {on_left_s:.2f} s on what is left")
    print(f"  SampleScreener, all rows in memory: {screening_s:.2f} s")

    unseen, truth = features(np.concatenate(test)), np.repeat([0, 1], list(map(len, test)))
    scores = [model.decision_function(unseen) for model in (on_all, on_left, mined.model)]
    precisions = [average_precision_score(truth, score) for score in scores]
    size = np.abs(on_all.coef_).max()
    off = [np.abs(m.coef_ - on_all.coef_).max() / size for m in (on_left, mined.model)]
    same = mined.proved and max(off) < 1e-3 and np.ptp(precisions) < 1e-3
    print(f"  coefficients differ by {off[0]:.0e}, those of the mined model by {off[1]:.0e};")
    print("  average precision on new rows:", *(f"{one:.4f}" for one in precisions), end=": ")
    print("the same detector" if same else "FAILED, another detector")

    if axes is not None:
        draw_rows(axes[0], name, on_all.decision_function(everything), kept)
        draw_detectors(axes[1], truth, dict(zip(COLOURS, scores, strict=False)))


# %%
# Pictures
# --------
def draw_rows(axes, name, scores, kept):
    bins = np.linspace(scores.min(), scores.max(), 60)
    axes.hist(scores[~kept], bins, color=COLOURS["all"], label=f"proved trivial: {sum(~kept)}")
    axes.hist(scores[kept], bins, color=COLOURS["kept"], label=f"trained on: {sum(kept)}")
    axes.set(yscale="log", xlabel="score of a normal row", ylabel="rows", title=name)
    axes.set_ylim(top=10 * axes.get_ylim()[1])
    axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)


def draw_detectors(axes, truth, scores):
    for name, score in scores.items():
        precision, recall, _ = precision_recall_curve(truth, score)
        axes.plot(recall, precision, color=COLOURS[name], lw=5 if name == "all" else 1.2,
                  label="trained on all rows" if name == "all" else "on what is left")  # fmt: skip
    axes.set(xlabel="recall", ylabel="precision", title="On new rows: the same detector")
    axes.legend(frameon=False, fontsize=8)


# %%
# The same detector, from what is left
# ------------------------------------
def main(path: str = "anomaly_detection.png") -> None:
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
    for number, (name, data) in enumerate(data_sets().items()):
        compare(name, *data, None if number else axes)
    figure.savefig(path, dpi=100)
    print(f"drawn to {path}")


if __name__ == "__main__":
    main(*[argument for argument in sys.argv[1:] if argument.endswith(".png")])
