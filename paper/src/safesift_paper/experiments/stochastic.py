"""A variance-reduced stochastic method, of the family that the paper starts from (Cyanure's).

SAGA on batches of rows: with ν the slopes at which each row was last seen and ḡ their mean
gradient, a batch B moves the iterate to

    prox( x − γ ( X_Bᵀ(ν_new − ν_B)/|B| + ḡ ) ).

An epoch sees every row once. Nothing is claimed of where it gets to: it is a centre for regions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift import progress
from safesift.losses import LOSSES
from safesift.penalties import PENALTIES
from safesift_paper.experiments.task import Task

Array = NDArray[np.float64]

_BATCH_ROWS = 64
# batches whose steepness is looked at to choose the step
_TRIED_BATCHES = 20


def epochs_of_saga(task: Task, n_epochs: int, seed: int) -> Iterator[Array]:
    """The coefficients after one, two, … epochs; the first one is the gradient at 0.

    Parameters
    ----------
    task : Task
        With a smooth loss.
    n_epochs : int
    seed : int
        Orders the rows and the batches.
    """
    rng = np.random.default_rng(seed)
    loss, penalty = LOSSES[task.loss](), PENALTIES[task.penalty]()
    order = rng.permutation(len(task.y))
    X, y = task.X[order], task.y[order]
    batches = [slice(k, k + _BATCH_ROWS) for k in range(0, len(y), _BATCH_ROWS)]
    step = 1.0 / (3.0 * loss.smoothness * _steepest(X, batches, rng))
    coef = np.zeros(X.shape[1])
    slopes = loss.slope(np.zeros(len(y)), y)
    mean = X.T @ slopes / len(y)
    for epoch in range(1, n_epochs + 1):
        if epoch > 1:
            for k in rng.permutation(len(batches)):
                rows = batches[k]
                part = X[rows]
                new = loss.slope(part @ coef, y[rows])
                change = part.T @ (new - slopes[rows])
                moved = coef - step * (change / part.shape[0] + mean)
                coef = penalty.prox(moved, step * task.alpha)
                mean += change / len(y)
                slopes[rows] = new
        progress.report("start", epoch, n_epochs)
        yield coef


def _steepest(X: Any, batches: list[slice], rng: np.random.Generator) -> float:
    """The largest eigenvalue of X_BᵀX_B/|B| among some batches."""
    largest = 0.0
    for k in rng.permutation(len(batches))[:_TRIED_BATCHES]:
        part = X[batches[k]]
        gram = part @ part.T
        gram = gram.toarray() if sparse.issparse(gram) else gram
        largest = max(largest, float(np.linalg.norm(gram, 2)) / part.shape[0])
    return largest or 1.0
