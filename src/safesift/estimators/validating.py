"""Samples as scikit-learn validates them, and those that it does not know: on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.validation import validate_data

from safesift.arithmetic.devices.places import is_tensor, lives_elsewhere
from safesift.design import as_design
from safesift.design.arrays import plain_array, refuse_columns, refuse_mask, refuse_missing
from safesift.design.block_source import BlockSource
from safesift.design.device import Placed

Array = NDArray[np.float64]

# what validation keeps as it is; anything else becomes float64
FLOATS = [np.float64, np.float32]


def validated(estimator: BaseEstimator, X: Any, y: Any = "no_validation", **how: Any) -> Any:
    """As scikit-learn validates, but masks count, and a column without numbers is named."""
    refuse_mask("X", X)
    if isinstance(X, BlockSource):
        raise TypeError(
            f"{type(estimator).__name__} does not take rows in blocks here: pass a matrix."
        )
    if y is not None and not isinstance(y, str):
        y = plain_array("y", y)
        refuse_missing("y", y)
    if lives_elsewhere(X) or isinstance(X, Placed):
        if not getattr(estimator, "_remote", False):
            raise TypeError(
                f"{type(estimator).__name__} reads rows of this process, and X is on a device: "
                "pass a NumPy array."
            )
        return _validated_there(estimator, X, y, **how)
    if is_tensor(X):
        X = plain_array("X", X)
    try:
        return validate_data(estimator, X, y, accept_sparse="csr", dtype=FLOATS, **how)
    except (TypeError, ValueError):
        refuse_columns("X", X)
        raise


def _validated_there(
    estimator: BaseEstimator, X: Any, y: Any, *, reset: bool, y_numeric: bool = False
) -> Any:
    """The same for X on a device, whose entries are looked at there (`check_finite`)."""
    as_design(X)  # a matrix of numbers
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if isinstance(X, Placed) and X.columns is not None:
        estimator.feature_names_in_ = np.array(X.columns, dtype=object)
    if isinstance(y, str):
        return X
    y = column_or_1d(y, warn=True)
    return X, _numbers(y) if y_numeric else y


def _numbers(y: NDArray) -> Array:
    if y.dtype.kind in "SU":
        raise ValueError(
            f"y must hold numbers for a regression loss, got {y.dtype}: labels are for classifiers."
        )
    y = y.astype(np.float64)
    assert_all_finite(y, input_name="y")
    return y
