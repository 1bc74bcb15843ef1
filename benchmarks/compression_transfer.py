"""Data compressed for one model, and other models trained on them.

    python benchmarks/compression_transfer.py [--rows N]

a9a, 20 000 training rows, compressed for the squared hinge with l2 at alpha = 1e-4; test accuracy
of other alphas and of other people's models, over four random states: random / hybrid.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import results
from datasets import a9a
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from tables import wide_console

import safesift as ss

KEPT, STATES, METHODS = (4000, 1000, 400), range(4), ("random", "hybrid")
MODELS: dict[str, Any] = {
    "squared hinge, alpha 1e-4": ss.SafeClassifier(alpha=1e-4),
    "squared hinge, alpha 1e-3": ss.SafeClassifier(alpha=1e-3),
    "squared hinge, alpha 1e-5": ss.SafeClassifier(alpha=1e-5),
    "LogisticRegression": LogisticRegression(max_iter=1000),
    "HistGradientBoostingClassifier": HistGradientBoostingClassifier(random_state=0),
}


def scores(n_train: int) -> dict[str, dict[str, list[float]]]:
    """By model, then by "kept method": the scores of the random states."""
    X, y = a9a()
    rows = np.random.default_rng(0).permutation(len(y))
    X, y = X[rows], y[rows]
    train, test = (X[:n_train], y[:n_train]), (X[n_train:], y[n_train:])
    found: dict[str, dict[str, list[float]]] = {name: {} for name in MODELS}
    for n_keep in KEPT:
        for method in METHODS:
            smalls = [
                ss.compress(*train, n_keep=n_keep, alpha=1e-4, method=method, fit_intercept=True,
                            random_state=state)
                for state in STATES
            ]  # fmt: skip
            for name, model in MODELS.items():
                found[name][f"{n_keep} {method}"] = [
                    model.fit(*small.take(*train), sample_weight=small.weights).score(*test)
                    for small in smalls
                ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="so many training rows, and no results written")
    rows = parser.parse_args().rows
    found = scores(rows or 20_000)
    shown = Table(title="Test accuracy, random / hybrid", title_justify="left")
    for column in ("trained", *(f"{n_keep} kept" for n_keep in KEPT)):
        shown.add_column(column)
    for name, by_choice in found.items():
        cells = [
            " / ".join(f"{np.mean(by_choice[f'{n_keep} {method}']):.4f}" for method in METHODS)
            for n_keep in KEPT
        ]
        shown.add_row(name, *cells)
    wide_console().print(shown)
    if rows is None:
        results.write("compression_transfer", {"scores": found})


if __name__ == "__main__":
    main()
