"""From what a user holds to a `Design`, without copying what need not be copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic.devices.arrays import on_host
from safesift.arithmetic.devices.places import lives_elsewhere, name_of
from safesift.design.arrays import plain_array, refuse_columns
from safesift.design.base import Design
from safesift.design.dense import DenseDesign
from safesift.design.device import DeviceDesign, Placed
from safesift.design.rows import rows_of
from safesift.design.sparse import SparseDesign


def as_design(X: Any, intercept: bool = False) -> Design:
    """Wrap a matrix; refuse what is not a real matrix, in one sentence. Entries are not looked at.

    Parameters
    ----------
    X : array, SciPy sparse matrix, pandas or polars frame, torch tensor, CuPy array, Design
        NumPy arrays and CSR matrices are referenced as they are, in their own type, unless that is
        of another byte order or longer than float64; a design, such as an object of a subclass of
        `RowDesign` from outside the library, is returned itself. Masked arrays are refused where
        anything is masked.
    intercept : bool, default=False
        Append a column of ones (which is not stored). A design has been told so already.

    Examples
    --------
    >>> import numpy as np
    >>> from safesift.design import as_design
    >>> design = as_design(np.eye(3), intercept=True)
    >>> as_design(design, intercept=True) is design
    True
    """
    if isinstance(X, Design):
        return _told_alike(X, intercept)
    if isinstance(X, Placed):
        _require_numbers(X.array)
        return X.design(intercept)
    if lives_elsewhere(X):
        return _on_device(X, intercept)
    return _sparse(X, intercept) if sparse.issparse(X) else as_dense(X, intercept)


def _told_alike(design: Design, intercept: bool) -> Design:
    """A design, refused where it disagrees about the ones."""
    if design.intercept != intercept:
        raise ValueError(
            f"X is a {type(design).__name__} with intercept={design.intercept}, but an intercept "
            f"{'is wanted' if intercept else 'is not wanted'}: set "
            f"fit_intercept={design.intercept}, or make X with intercept={intercept}."
        )
    return design


def _on_device(X: Any, intercept: bool) -> DeviceDesign:
    _require_numbers(X)
    return DeviceDesign(X.detach() if hasattr(X, "detach") else X, intercept)


def _require_numbers(X: Any) -> None:
    kind = name_of(X)
    if not kind.startswith(("float", "bfloat", "int", "uint", "bool")):
        raise ValueError(f"X has type {kind}: convert it to float32 or float64 first.")
    _require_matrix(X.shape)


def _require_matrix(shape: Sequence[int]) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"X must have 2 dimensions, got {len(shape)}: reshape it to (n_samples, n_features)."
        )


def _sparse(X: Any, intercept: bool) -> SparseDesign:
    matrix = X.tocsr()
    matrix = matrix.astype(_native("X", matrix.dtype), copy=False)
    if not matrix.has_canonical_format:
        # duplicates must be added up; not in the caller's own arrays
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    return SparseDesign(matrix, intercept)


def as_dense(X: Any, intercept: bool = False) -> DenseDesign:
    """A dense matrix of this process, of whatever kind it was."""
    array = plain_array("X", X)
    if array.dtype == object:
        array = _numbers(X, array)
    array = array.astype(_native("X", array.dtype), copy=False)
    _require_matrix(array.shape)
    return DenseDesign(array, intercept)


def _numbers(X: Any, array: NDArray) -> NDArray:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        refuse_columns("X", X)
        raise ValueError(
            "X holds values that are not numbers: encode or remove those columns first."
        ) from None


def _native(name: str, dtype: np.dtype) -> np.dtype:
    """The type to hold entries in: their own, with its bytes in the order of this machine.

    What is longer than float64 is rounded to that.
    """
    if dtype.kind not in "fiub":
        raise ValueError(
            f"{name} has type {dtype}: convert it to float32 or float64 (or integers) first."
        )
    return np.dtype(np.float64) if dtype.itemsize > 8 else dtype.newbyteorder("=")


def check_finite(
    design: Design,
    name: str = "X",
    first_row: int = 0,
    columns: Sequence[str] | None = None,
) -> None:
    """Refuse NaN, infinity and what overflows; row norms are needed anyway, and tell.

    The column is named where columns have names.
    """
    doubtful = np.flatnonzero(~np.isfinite(design.row_norms))
    if doubtful.size == 0:
        return
    bad = on_host(doubtful[~np.isfinite(rows_of(design).largest_entries(doubtful))])
    doubtful = on_host(doubtful)
    if bad.size:
        where = f"row {first_row + bad[0]}"
        if columns is not None:
            row = rows_of(design).numbers_of(bad[:1])[0]
            where += f", column {columns[int(np.argmin(np.isfinite(row)))]!r}"
        raise ValueError(
            f"{name} contains NaN or infinity (first in {where}): remove or impute them first."
        )
    raise ValueError(
        f"{name} is too large to square (first in row {first_row + doubtful[0]}, norm beyond "
        "1e154): rescale the features first."
    )
