"""The arguments of `mine_hard`, checked before any work, or one sentence on what is wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.mining.working import Task
from safesift.losses import Loss
from safesift.parameters import check_positive
from safesift.penalties import Penalty
from safesift.problem.inputs import check_weights

Array = NDArray[np.float64]

# the relative gap down to which is solved: the smaller, the fewer rows are in doubt
_TIGHT = 1e-8


def checked_task(
    model: Any, X: Any, y: Any, sample_weight: Any, label: Any, pool_weight: Any
) -> Task:
    """What is the same in every pass."""
    _check_model(model)
    label = model.classes_[0] if label is None else label
    if label not in list(model.classes_):
        raise ValueError(f"label={label!r} is none of the model's classes, {model.classes_}.")
    check_positive("alpha", model.alpha)
    loss, penalty = model._checked_loss(), model._checked_penalty()
    _check_provable(model, loss, penalty)
    settings, pool_weight = model._checked_settings(), _checked_pool_weight(pool_weight)
    unfitted = clone(model)
    samples = unfitted._read(X, y, sample_weight)
    if not np.array_equal(samples.classes, model.classes_):
        raise ValueError(
            f"y has the classes {samples.classes}, but the model was fitted to {model.classes_}: "
            "pass its training data."
        )
    if unfitted.n_features_in_ != model.n_features_in_:
        raise ValueError(
            f"X has {unfitted.n_features_in_} features, but the model was fitted on "
            f"{model.n_features_in_}: pass its training data."
        )
    return Task(
        model=unfitted, X=samples.X, labels=samples.y, weights=samples.sample_weight,
        classes=samples.classes, label=label, pool_weight=pool_weight, loss=loss,
        penalty=penalty, settings=replace(settings, tol=min(settings.tol, _TIGHT)),
    )  # fmt: skip


def point_of(model: SafeClassifier) -> Array:
    """Coefficients, then the intercept if there is one."""
    return np.concatenate([model.coef_[0], model.intercept_ if model.fit_intercept else []])


def row_bytes(X: Any) -> float:
    """About how much memory a row takes."""
    n_rows, n_features = X.shape
    if sparse.issparse(X):
        return (X.data.itemsize + X.indices.itemsize) * max(X.nnz / n_rows, 1.0)
    return float(n_features * X.dtype.itemsize)


def _check_model(model: Any) -> None:
    if not isinstance(model, SafeClassifier):
        raise TypeError(f"model must be a SafeClassifier, got {type(model).__name__}.")
    check_is_fitted(model)
    if len(model.classes_) != 2:
        raise ValueError(
            f"model has {len(model.classes_)} classes, mining needs two: fit it to one class "
            "against the rest."
        )


def _checked_pool_weight(pool_weight: Any) -> float | Array:
    if np.ndim(pool_weight):
        return check_weights(pool_weight, len(pool_weight))
    if not (isinstance(pool_weight, int | float | np.number) and 0 < pool_weight < math.inf):
        raise ValueError(f"pool_weight must be positive and finite, got {pool_weight!r}.")
    return float(pool_weight)


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
