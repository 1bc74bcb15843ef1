"""Hard-example mining for a fitted classifier: `workflows.mining` has theorem and search."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from safesift.alerts import warn
from safesift.arithmetic.threads import computes, using
from safesift.design.block_source import BlockSource
from safesift.design.pool import Budget, Pool, by_rows, n_rows_of, reader
from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.linear import Samples
from safesift.estimators.pool_labels import PoolLabels, shown
from safesift.losses import Loss
from safesift.parameters import check_count, check_memory
from safesift.penalties import Penalty
from safesift.problem.inputs import check_weights
from safesift.registry import provided
from safesift.workflows.mining import Mined, MiningPass, mine
from safesift.workflows.pooled import ClassFactors, PooledProblem
from safesift.workflows.proofs import Proof
from safesift.workflows.showing import Shown

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class MiningResult(Shown):
    """What `mine_hard` found.

    Attributes
    ----------
    indices : array of shape (n_kept,)
        Rows of the pool that may matter, by their numbers, rising.
    X_kept : array or CSR matrix of shape (n_kept, n_features)
        Those rows.
    y_kept : array of shape (n_kept,)
        Their labels.
    model : SafeClassifier
        The model of the training rows and the *whole* pool. `dual_gap_` is certified for all of
        them; `kept_` and `undecided_` speak of the training rows.
    dual_gap : float
        Certified: the objective on all rows is at most that far above its minimum.
    proved : bool
        Whether every other row of the pool is proved to be of no influence: with it or without it
        the optimum is the same. False where `max_passes` ended the search, where the pool kept
        changing, or where a guessed region was asked for.
    n_pool : int
        Rows of the pool.
    alpha_kept : float
        The alpha for the training rows and the kept ones alone, with a solver that averages: the
        divisor must stay that of all rows.
    label : object or None
        The label of all rows of the pool; None where each has its own.
    history : tuple of MiningPass

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    >>> pool = np.linspace(-9.0, 0.0, 1000)[:, None]
    >>> mined = ss.mine_hard(pool, ss.SafeClassifier(alpha=0.01).fit(X, y), X, y, label=0)
    >>> mined.n_pool, mined.n_kept + mined.n_proved, mined.passes == len(mined.history)
    (1000, 1000, True)
    >>> bool(mined.indices.min() > 700), mined.X_kept.shape == (mined.n_kept, 1)
    (True, True)
    >>> np.array_equal(pool[mined.kept], mined.X_kept)
    True
    """

    indices: NDArray[np.intp]
    X_kept: Any
    y_kept: NDArray
    model: SafeClassifier
    dual_gap: float
    proved: bool
    n_pool: int
    alpha_kept: float
    label: Any
    history: tuple[MiningPass, ...]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """False where a row of the pool is not kept, by their numbers."""
        kept = np.zeros(self.n_pool, dtype=bool)
        kept[self.indices] = True
        return kept

    @property
    def n_kept(self) -> int:
        """How many rows of the pool may matter."""
        return len(self.indices)

    @property
    def n_proved(self) -> int:
        """How many rows of the pool are proved to be of no influence."""
        return self.n_pool - self.n_kept if self.proved else 0

    @property
    def passes(self) -> int:
        """How often the pool was read."""
        return len(self.history)

    @computes
    def write_proof(
        self,
        path: Any,
        X: Any,
        y: Any,
        X_pool: Any,
        *,
        y_pool: Any = None,
        sample_weight: Any = None,
        pool_weight: float = 1.0,
        seed: bytes | None = None,
    ) -> Proof:
        """Write what is proved of the model of the training rows and of the pool into a file.

        The rows of the proof are the training rows, then those of the pool. Unlike `mine_hard` it
        holds all of them in memory.

        Parameters
        ----------
        path : str or Path
            An .npz file for `safesift_check`; beside it, in `path`.seed, the seed to keep.
        X, y, X_pool, y_pool, sample_weight, pool_weight
            As they were given to `mine_hard`, with X_pool an array or a sparse matrix.
        seed : bytes, optional
            To use in place of 32 random ones.

        Returns
        -------
        Proof
        """
        n_pool = X_pool.shape[0]
        labels = np.full(n_pool, self.label) if y_pool is None else np.asarray(y_pool)
        weights = np.concatenate(
            [check_weights(sample_weight, X.shape[0]), np.full(n_pool, float(pool_weight))]
        )
        stack = sparse.vstack if sparse.issparse(X) or sparse.issparse(X_pool) else np.vstack
        rows = stack([X, X_pool])
        rows = sparse.csr_array(rows) if sparse.issparse(rows) else rows
        return self.model.write_proof(
            path, rows, np.concatenate([np.asarray(y), labels]), weights, seed=seed
        )

    def summary(self) -> str:
        """What was kept and why, and of which model that is true, in a few lines."""
        held = max(one.n_held for one in self.history)
        others = self.n_pool - self.n_kept
        why = "proved to be of no influence" if self.proved else "NOT proved to be of no influence"
        labels = "labels of its own" if self.label is None else f"the label {shown(self.label)}"
        return (
            f"{self.n_kept} of {self.n_pool} rows of the pool kept, {others} others {why}\n"
            f"  model: {_described(self.model)}; the pool has {labels}\n"
            f"  {self.passes} passes over the pool, at most {held} of its rows held in memory\n"
            f"  duality gap on all rows: {self.dual_gap:.2g}"
        )


def _described(model: SafeClassifier) -> str:
    """Which problem a model solves."""
    loss, penalty = (
        one if isinstance(one, str) else repr(one) for one in (model.loss, model.penalty)
    )
    ratio = "" if model.l1_ratio is None else f", l1_ratio={model.l1_ratio:g}"
    weights = "" if model.class_weight is None else f", class_weight={model.class_weight!r}"
    return (
        f"loss {loss}, penalty {penalty}{ratio}, alpha={model.alpha:g}, "
        f"{'with' if model.fit_intercept else 'without'} an intercept{weights}"
    )


@computes
def mine_hard(
    X_pool: Any,
    model: SafeClassifier,
    X: Any,
    y: Any,
    *,
    y_pool: Any = None,
    sample_weight: Any = None,
    label: Any = None,
    pool_weight: Any = 1.0,
    max_passes: int = 20,
    memory: int | str = "1 GB",
    n_jobs: int | None = None,
    verbose: int = 0,
) -> MiningResult:
    """Find the few rows of a large pool that can matter, and prove that the others do not.

    The *full problem* is that of `model`, with its loss, penalty, alpha and intercept, on the
    training rows (X, y) and on all rows of the pool, with the labels b_j that they have:

        P = (1/W) [Σ_training s_i f(a_iᵀx + c; y_i) + Σ_pool s_j f(a_jᵀx + c; b_j)] + alpha·R(x)

    with W the weight of all of these rows. The pool is read in passes, a block at a time, and only
    the rows in doubt are held. In the first pass these are the rows that have a loss at the model
    at hand, which is fitted again, to the training rows and what is held, whenever that has grown
    by half. Every further pass begins with the problem P_K of training and held rows, divided by
    W, its solution, and a region that contains every optimum of P_K; in doubt is what is not
    strictly inside a flat piece of its loss all over that region. A pass that finds no such row
    which is not held yet is the proof: P and P_K have the same optima, and the duality gap of the
    one is that of the other (`workflows.mining` has the theorem). Held rows that are flat at the
    optimum, too, are let go at the end.

    Memory: that of the training rows twice (once in the problem with what is held) and O(p²) for
    the solver, beside `memory` for all that is held of the pool. A pool that is a file, a memory
    map, a sparse matrix or an array of any type, or that is made on the fly, is never copied or
    converted as a whole.

    Parameters
    ----------
    X_pool : array, sparse matrix, frame, path, iterable of blocks, or callable that returns one
        Rows with the columns of X. A block is rows, or a pair (rows, labels). What
        `safesift.blocks` makes has labels. A file is npz (array X, and labels where there is an
        array y), svmlight (which has labels), CSV or Parquet (the model's feature names say which
        columns to read, and y_pool which one holds the labels; ``pip install 'safesift[cli]'``).
        An iterable yields the same rows each time it is gone through; a generator does not: pass
        the function that makes it.
    model : SafeClassifier
        Fitted on (X, y), with two classes and a loss that is flat somewhere. It is not changed.
    X, y : array, sparse matrix or frame, and labels
        The training rows.
    y_pool : array of shape (n_pool,) or str, optional
        The label of each row of the pool; of a file the name of the column, or of the array, that
        holds them.
    sample_weight : array of shape (n_samples,), optional
        Of the training rows.
    label : one of the two labels, optional
        That of all rows of the pool. A pool without targets needs it; one that has targets, by
        y_pool or by itself, has no use for it, and both is an error.
    pool_weight : float or array of shape (n_pool,), default=1.0
        Weight of each row of the pool; 0 is removal. A `class_weight` of the model multiplies it;
        "balanced" counts all rows.
    max_passes : int, default=20
        At most so many passes. One that ends the search without a proof keeps all rows in doubt,
        and a warning says so.
    memory : int or str, default="1 GB"
        What may be held of the pool, as bytes or a size such as "500 MB". A block takes 1/32 of
        it, and several are in memory at a time; 7/8 are for the rows in doubt, which count twice
        since a model is fitted to them. A MemoryError says when they are too many, before they are
        copied. The result does not depend on it, nor on how the blocks of the pool are cut, up to
        rounding.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
        Where this is None, the number of the model counts.
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
    >>> mined = ss.mine_hard(pool, model, X, y, label="common")
    >>> mined.proved, mined.n_kept < 2_000
    (True, True)
    >>> everything = ss.SafeClassifier(alpha=1e-3).fit(
    ...     np.vstack([X, pool]), np.append(y, np.repeat("common", 20_000)))
    >>> np.allclose(mined.model.coef_, everything.coef_, atol=1e-4)
    True
    """
    max_passes = check_count("max_passes", max_passes)
    budget = Budget(check_memory(memory))
    _check_model(model)
    labels, target = _checked_labels(model, label, y_pool, X_pool)
    pool_weight = _checked_pool_weight(pool_weight)
    settings, unfitted = model._checked_settings(), clone(model)
    samples = _read(unfitted, model, X, y, sample_weight)
    full = _full_problem(model, samples, pool_weight)
    pool = _pool(X_pool, target, model, full, labels, budget)
    start = full.training.join(model.coef_[0], float(model.intercept_[0]))
    with using(model.n_jobs if n_jobs is None else None):
        mined = mine(full, pool, settings, start, max_passes=max_passes, verbose=verbose)
    complaint = _complaint(model, mined)
    if complaint:
        warn(complaint, ConvergenceWarning)
    return MiningResult(
        indices=mined.kept.indices,
        X_kept=mined.kept.rows,
        y_kept=model.classes_[(mined.kept.signs > 0).astype(np.intp)],
        model=unfitted._fitted_from(samples, [mined.fit]),
        dual_gap=mined.fit.gap,
        proved=mined.proved,
        n_pool=mined.history[-1].n_rows,
        alpha_kept=mined.alpha_kept,
        label=labels.label,
        history=mined.history,
    )


def _check_model(model: Any) -> None:
    if not isinstance(model, SafeClassifier):
        raise TypeError(f"model must be a SafeClassifier, got {type(model).__name__}.")
    check_is_fitted(model)
    if len(model.classes_) != 2:
        raise ValueError(
            f"model has {len(model.classes_)} classes, mining needs two: fit it to one class "
            "against the rest."
        )
    _check_provable(model, model._checked_loss(), model._checked_penalty())


def _check_provable(model: SafeClassifier, loss: Loss, penalty: Penalty) -> None:
    """Refuse what cannot be proved, before any work."""
    if not any(piece.is_flat for piece in loss.pieces(np.array([1.0]))):
        raise ValueError(
            f"loss={model.loss!r} is flat nowhere, so every row of the pool matters: use "
            "'squared_hinge', 'hinge', 'smoothed_hinge' or 'safe_logistic'."
        )
    if math.isinf(loss.smoothness) and penalty.strong_convexity == 0:
        raise ValueError(
            f"loss={model.loss!r} with penalty={model.penalty!r} has no curvature to prove "
            "anything by: use 'squared_hinge' or 'smoothed_hinge', or penalty='l2' or "
            "'elastic_net'."
        )


def _checked_labels(
    model: SafeClassifier, label: Any, y_pool: Any, X_pool: Any
) -> tuple[PoolLabels, str | None]:
    """Where labels come from, and the name that they have in a file."""
    if label is not None and y_pool is not None:
        raise TypeError(
            f"label={label!r} and y_pool are both given, and either says of which class the rows "
            "of the pool are: leave one of them out."
        )
    if not isinstance(y_pool, str):
        return PoolLabels.of(model.classes_, label, y_pool), None
    if not _is_path(X_pool):
        raise TypeError(
            f"y_pool={y_pool!r} names a column of a file, but X_pool is a "
            f"{type(X_pool).__name__}: pass the labels themselves."
        )
    return PoolLabels.of(model.classes_, None, None), y_pool


def _checked_pool_weight(pool_weight: Any) -> float | Array:
    if np.ndim(pool_weight):
        return check_weights(pool_weight, len(pool_weight), "pool_weight")
    if not (isinstance(pool_weight, int | float | np.number) and 0 < pool_weight < math.inf):
        raise ValueError(f"pool_weight must be positive and finite, got {pool_weight!r}.")
    return float(pool_weight)


def _read(
    unfitted: SafeClassifier, model: SafeClassifier, X: Any, y: Any, sample_weight: Any
) -> Samples:
    """The training samples, which must be like those that the model was fitted on."""
    samples = unfitted._read(X, y, sample_weight)
    if not np.array_equal(samples.known_classes, model.classes_):
        raise ValueError(
            f"y has the classes {samples.classes}, but the model was fitted to {model.classes_}: "
            "pass its training data."
        )
    if unfitted.n_features_in_ != model.n_features_in_:
        raise ValueError(
            f"X has {unfitted.n_features_in_} features, but the model was fitted on "
            f"{model.n_features_in_}: pass its training data."
        )
    return samples


def _full_problem(
    model: SafeClassifier, samples: Samples, pool_weight: float | Array
) -> PooledProblem:
    """The problem of the model on the training rows and a pool."""
    # how much a class weighs depends on the pool
    plain = replace(samples, weights=samples.sample_weight)
    loss, penalty = model._checked_loss(), model._checked_penalty()
    (training,) = model._problems(plain, loss, penalty, model.alpha)
    return PooledProblem(training, pool_weight, _class_factors(model, samples))


def _class_factors(model: SafeClassifier, samples: Samples) -> ClassFactors:
    """The weights of both classes; "balanced" counts the pool's rows with those of training."""
    if model.class_weight is None:
        return np.ones_like
    classes, weights = samples.known_classes, samples.sample_weight
    ours = np.array([weights[samples.y == one].sum() for one in classes])
    # to be counted, a class is as good as one sample of its weight
    return lambda pool_weights: model._class_weights(classes, ours + pool_weights, classes)


# --- the pool -----------------------------------------------------------------------------------


def _pool(
    X_pool: Any,
    target: str | None,
    model: SafeClassifier,
    full: PooledProblem,
    labels: PoolLabels,
    budget: Budget,
) -> Pool:
    entries = {"y_pool": labels.y_pool, "pool_weight": full.pool_weight}
    if _is_path(X_pool):
        source, n_rows = _of_file(Path(X_pool), target, model, labels, budget.block), None
    elif isinstance(X_pool, BlockSource):
        labels.check_source(has_targets=True)
        source, n_rows = partial(_of_blocks, X_pool), X_pool.n_rows
    else:
        source, budget = by_rows(X_pool, budget)
        n_rows = n_rows_of(source)
    # the names of a frame's columns are compared with those of the training data
    plain = partial(model._validated, reset=False, ensure_all_finite=False, ensure_min_samples=0)
    return Pool(
        reader(source, budget),
        full.training_rows,
        labels,
        budget,
        plain,
        n_rows,
        {name: len(one) for name, one in entries.items() if isinstance(one, np.ndarray)},
    )


def _of_blocks(source: BlockSource) -> Iterator[tuple[Any, Any]]:
    """The rows of a source and their labels, part by part."""
    if source.scale is not None:
        raise ValueError(f"X_pool: scale={source.scale!r} has no meaning here: leave it out.")
    for part in range(source.n_parts):
        for X, y, weights in source.raw(part):
            if weights is not None and not (np.asarray(weights) == 1).all():
                raise ValueError(
                    f"X_pool: {source.place(part)} has weights of its own: pass pool_weight."
                )
            yield X, y


def _is_path(X_pool: Any) -> bool:
    return isinstance(X_pool, str | os.PathLike)


def _of_file(
    path: Path, target: str | None, model: SafeClassifier, labels: PoolLabels, n_bytes: int
) -> Callable[[], Iterator[Any]]:
    """What reads a file, about so much at a time."""
    if not path.is_file():
        raise ValueError(f"X_pool: there is no file {path}.")
    table, names = provided("format_of")(path), tuple(getattr(model, "feature_names_in_", ()))
    labels.check_source(target is not None or table.holds_targets(path))
    return partial(table.blocks, path, names, model.n_features_in_, n_bytes, target)


def _complaint(model: SafeClassifier, mined: Mined) -> str:
    """What was not proved or not reached, and what to do about it; empty where all is well."""
    fit, last = mined.fit, mined.history[-1]
    if mined.changed is not None:
        ending = "" if mined.proved else ", and about those nothing is proved"
        return (
            f"X_pool changed between passes (first seen at row {mined.changed}): the result is "
            f"about the rows as they were read last{ending}; let it yield the same rows in the "
            "same order every time."
        )
    if mined.guessed:
        return (
            f"screening={model.screening!r} of the model is a guess and proves nothing: all rows "
            "in doubt are kept; use screening='auto'."
        )
    if not mined.proved:
        return (
            f"mine_hard ended without a proof after max_passes={len(mined.history)} passes "
            f"({last.n_new} rows came into doubt in the last one, the duality gap on all rows is "
            f"{fit.gap:.2g}): all rows in doubt are kept; increase max_passes."
        )
    if fit.relative_gap > model.tol:
        return (
            f"mine_hard did not converge: the relative duality gap is {fit.relative_gap:.2g}, "
            f"above tol={model.tol:g}; increase max_iter of the model, or accept a larger tol."
        )
    return ""
