"""What a user passes to `update`, checked before anything changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from safesift.design.arrays import is_missing, plain_array
from safesift.design.slots import Slots
from safesift.estimators.linear import LinearModel, Samples
from safesift.estimators.validating import FLOATS
from safesift.problem.inputs import check_weights
from safesift.workflows.tracking import Change, Data

Array = NDArray[np.float64]


def read_edit(model: LinearModel, data: Data, add: Any, remove: Any, relabel: Any) -> Change:
    """The edit, or an error that says what is wrong with it. Indices are those before the edit.

    Parameters
    ----------
    model : SafeClassifier or SafeRegressor
        Fitted: it knows its features, classes and class weights.
    """
    stays = _stays(remove, data.n_samples)
    relabelled, labels = _relabelled(model, data, stays, relabel)
    X, y, sample_weight = _added(model, data, add)
    stay, removed = data.order[stays], data.order[~stays]
    if len(stay) + len(y) == 0:
        raise ValueError("remove: no sample would be left; keep one, or add some.")
    return Change(
        stay=stay,
        removed=removed,
        relabelled=relabelled,
        labels=labels,
        label_weights=_times_class_weight(model, labels, data.sample_weight[relabelled]),
        X=X,
        y=y,
        sample_weight=sample_weight,
        weights=_times_class_weight(model, y, sample_weight),
    )


def check_classes(samples: Samples) -> None:
    """Refuse an edit that leaves one class, or targets that are none."""
    check_classification_targets(samples.y)
    classes = samples.known_classes
    if len(classes) < 2:
        raise ValueError(
            f"one class only would be left ({classes[0]!r}, among samples of positive "
            "weight): keep or add a sample of another."
        )


def _stays(remove: Any, n: int) -> NDArray[np.bool_]:
    stays = np.ones(n, dtype=bool)
    if remove is not None:
        stays[_index("remove", remove, n)] = False
    return stays


def _index(name: str, index: Any, n: int) -> Any:
    """Something that selects among n samples: an index, several, a slice or a mask."""
    if isinstance(index, slice):
        return index
    index = np.asarray(index)
    if index.size == 0:
        return np.empty(0, dtype=np.intp)
    if index.dtype == bool and index.shape != (n,):
        raise ValueError(f"{name}: the mask has shape {index.shape}, but there are {n} samples.")
    if index.dtype.kind not in "iub" or index.ndim > 1:
        raise TypeError(f"{name} must hold indices of samples, got {index.dtype}.")
    if index.dtype != bool and (index.max() >= n or index.min() < -n):
        raise IndexError(
            f"{name}: index {index.max() if index.max() >= n else index.min()} is out of range, "
            f"there are {n} samples."
        )
    return index


def _relabelled(
    model: LinearModel, data: Data, stays: NDArray, relabel: Any
) -> tuple[Slots, NDArray]:
    if relabel is None:
        return np.empty(0, dtype=np.intp), data.y[:0]
    try:
        index, labels = relabel
    except (TypeError, ValueError):
        raise ValueError("relabel must be a pair: indices, and as many targets.") from None
    positions = np.atleast_1d(np.arange(data.n_samples)[_index("relabel", index, data.n_samples)])
    labels = _targets(model, data, "relabel", np.atleast_1d(labels))
    if len(labels) != len(positions):
        raise ValueError(f"relabel has {len(positions)} indices, but {len(labels)} targets.")
    if len(np.unique(positions)) < len(positions):
        raise ValueError("relabel names a sample twice: give each one target.")
    if not stays[positions].all():
        raise ValueError("relabel names a sample that remove takes away: leave it out of one.")
    return data.order[positions], labels


def _added(model: LinearModel, data: Data, add: Any) -> tuple[Any, NDArray, Array]:
    if add is None:
        return None, data.y[:0], np.empty(0)
    if not isinstance(add, tuple | list) or len(add) not in (2, 3):
        raise ValueError("add must be (X, y) or (X, y, sample_weight).")
    X = _plain_rows(model, add[0])
    y = _targets(model, data, "add", add[1])
    if len(y) != X.shape[0]:
        raise ValueError(f"add: y has {len(y)} entries but X has {X.shape[0]} rows.")
    weights = add[2] if len(add) == 3 else None
    if weights is not None and not np.any(weights):
        return X, y, np.zeros(len(y))  # samples without weight may be added, as any others
    return X, y, check_weights(weights, len(y))


def _plain_rows(model: LinearModel, X: Any) -> Any:
    """Validated rows. scikit-learn's own way takes longer than an update of plain arrays."""
    plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype in FLOATS
    if plain and X.shape[1] == model.n_features_in_ and not hasattr(model, "feature_names_in_"):
        with np.errstate(over="ignore", invalid="ignore"):
            if len(X) and np.isfinite(X.sum()):
                return X
    return model._validated(X, reset=False)


def _targets(model: LinearModel, data: Data, name: str, y: Any) -> NDArray:
    y = plain_array("y", y)
    y = y if y.ndim == 1 else column_or_1d(y)
    if model._task == "classification":
        return _labels(name, y, data.y.dtype)
    if y.dtype.kind not in "fiub":
        raise ValueError(f"{name}: y must hold numbers, got {y.dtype}.")
    if not np.isfinite(y).all():
        raise ValueError(f"{name}: y contains NaN or infinity: leave those samples out.")
    return y.astype(np.float64, copy=False)


def _labels(name: str, y: NDArray, known: np.dtype) -> NDArray:
    kinds = {y.dtype.kind, known.kind}
    # numbers compare with numbers and strings with strings; objects with anything
    if "U" in kinds and len(kinds) > 1 and "O" not in kinds:
        raise ValueError(f"{name}: y holds {y.dtype}, but the labels so far are {known}.")
    if y.dtype.kind in "fO" and any(map(is_missing, y)):
        raise ValueError(f"{name}: y contains missing labels: leave those samples out.")
    return y


def _times_class_weight(model: LinearModel, y: NDArray, weights: Array) -> Array:
    if getattr(model, "class_weight", None) is None or len(y) == 0:
        return weights
    if isinstance(model.class_weight, str) or not np.isin(y, model.classes_).all():
        return weights  # all samples are counted again, once they are together
    return weights * model._class_weights(y, weights, model.classes_)
