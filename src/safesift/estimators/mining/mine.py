"""Hard-example mining, the way in."""

from __future__ import annotations

from typing import Any

from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.mining.arguments import checked_task, point_of, row_bytes
from safesift.estimators.mining.held import Held
from safesift.estimators.mining.pool import as_pool
from safesift.estimators.mining.result import MiningResult
from safesift.estimators.mining.search import Search
from safesift.estimators.mining.working import Working
from safesift.parameters import check_count


def mine_hard(
    X_pool: Any,
    model: SafeClassifier,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    label: Any = None,
    pool_weight: Any = 1.0,
    block_size: int | str = "32 MB",
    max_passes: int = 20,
    verbose: int = 0,
) -> MiningResult:
    """Find the few rows of a large pool that can matter, and prove that the others do not.

    The *full problem* is that of `model`, with its loss, penalty, alpha and intercept, on the
    training rows (X, y) and on all rows of the pool, which are labelled `label`:

        P = (1/W) [Σ_training s_i f(a_iᵀx + c; y_i) + Σ_pool s_j f(a_jᵀx + c; label)] + alpha·R(x)

    with W the weight of all of these rows. The pool is read in passes, a block at a time, and only
    the rows in doubt are held. In the first pass these are the rows that have a loss at the model
    at hand, which is fitted again, to the training rows and what is held, whenever that has grown
    by half. Every further pass begins with the problem P_K of training and held rows, divided by
    W, its solution, and a region that contains every optimum of P_K; in doubt is what is not
    strictly inside a flat piece of its loss all over that region. A pass that finds no such row
    which is not held yet is the proof: P and P_K have the same optima, and the duality gap of the
    one is that of the other (`estimators.mining` has the theorem). Held rows that are flat at the
    optimum, too, are let go at the end.

    Memory: the training rows twice (once in the problem with what is held), the held rows twice, a
    block, and O(p²) for the solver. A pool that is a file or is made on the fly is never in memory
    as a whole.

    Parameters
    ----------
    X_pool : array, sparse matrix, frame, path, iterable of blocks, or callable that returns one
        Rows of one class, with the columns of X. A file is CSV, Parquet, npz with
        an array X, or svmlight (targets are ignored); the model's feature names say
        which columns to read. An iterable must yield the same rows each time it is gone through; a
        generator does not: pass the function that makes it.
    model : SafeClassifier
        Fitted on (X, y), with two classes and a loss that is flat somewhere. It is not changed.
    X, y : array, sparse matrix or frame, and labels
        The training rows.
    sample_weight : array of shape (n_samples,), optional
        Of the training rows.
    label : one of the two labels, default ``model.classes_[0]``
        The label of the pool.
    pool_weight : float or array of shape (n_pool,), default=1.0
        Weight of each row of the pool; 0 is removal. A `class_weight` of the model multiplies it;
        "balanced" counts all rows.
    block_size : int or str, default="32 MB"
        How much of the pool is looked at at a time: rows, or a size in memory. The result does not
        depend on it, nor on how the blocks of the pool are cut, up to rounding.
    max_passes : int, default=20
        At most so many passes. One that ends the search without a proof keeps all rows in doubt,
        and a warning says so.
    verbose : int, default=0
        1 prints a line per pass.

    Returns
    -------
    MiningResult

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(2, 1, (50, 5)), rng.normal(-1, 1, (50, 5))])
    >>> y = np.repeat(["rare", "common"], 50)
    >>> model = ss.SafeClassifier(alpha=1e-3).fit(X, y)
    >>> pool = rng.normal(-1, 1, (20_000, 5))
    >>> mined = ss.mine_hard(pool, model, X, y)
    >>> mined.proved, mined.n_kept < 2_000
    (True, True)
    >>> everything = ss.SafeClassifier(alpha=1e-3).fit(
    ...     np.vstack([X, pool]), np.append(y, np.repeat("common", 20_000)))
    >>> np.allclose(mined.model_.coef_, everything.coef_, atol=1e-4)
    True
    """
    max_passes = check_count("max_passes", max_passes)
    task = checked_task(model, X, y, sample_weight, label, pool_weight)
    pool = as_pool(X_pool, model, block_size, row_bytes(task.X))
    start = Working(task, Held.nothing(task.X), 0, point_of(model))
    with model._threads():
        return Search(pool, start, max_passes, verbose).result()
