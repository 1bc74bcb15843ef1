"""From what a user holds to a `Design`, without copying what need not be copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from safesift.design.base import Design
from safesift.design.dense import DenseDesign
from safesift.design.rows import rows_of
from safesift.design.sparse import SparseDesign


def as_design(X: Any, intercept: bool = False) -> Design:
    """Wrap a matrix; refuse what is not a real matrix, in one sentence. Entries are not looked at.

    Parameters
    ----------
    X : array, SciPy sparse matrix, pandas or polars frame, Design
        NumPy arrays and CSR matrices are referenced as they are, in their own type; a design, such
        as an object of a subclass of `RowDesign` from outside the library, is returned itself.
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
    return _sparse(X, intercept) if sparse.issparse(X) else _dense(X, intercept)


def _told_alike(design: Design, intercept: bool) -> Design:
    """A design, refused where it disagrees about the ones."""
    if design.intercept != intercept:
        raise ValueError(
            f"X is a {type(design).__name__} with intercept={design.intercept}, but an intercept "
            f"{'is wanted' if intercept else 'is not wanted'}: set "
            f"fit_intercept={design.intercept}, or make X with intercept={intercept}."
        )
    return design


def _sparse(X: Any, intercept: bool) -> SparseDesign:
    matrix = X.tocsr()
    _check_real("X", matrix.dtype)
    if not matrix.has_canonical_format:
        # duplicates must be added up; not in the caller's own arrays
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    return SparseDesign(matrix, intercept)


def _dense(X: Any, intercept: bool) -> DenseDesign:
    array = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                "X holds values that are not numbers: encode or remove those columns first."
            ) from None
    _check_real("X", array.dtype)
    if array.ndim != 2:
        raise ValueError(
            f"X must have 2 dimensions, got {array.ndim}: reshape it to (n_samples, n_features)."
        )
    return DenseDesign(array, intercept)


def _check_real(name: str, dtype: np.dtype) -> None:
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise ValueError(
            f"{name} has type {dtype}: convert it to float32 or float64 (or integers) first."
        )


def check_finite(design: Design, name: str = "X", first_row: int = 0) -> None:
    """Refuse NaN, infinity and what overflows; row norms are needed anyway, and tell."""
    doubtful = np.flatnonzero(~np.isfinite(design.row_norms))
    if doubtful.size == 0:
        return
    bad = doubtful[~np.isfinite(rows_of(design).largest_entries(doubtful))]
    if bad.size:
        raise ValueError(
            f"{name} contains NaN or infinity (first in row {first_row + bad[0]}): remove or "
            "impute them first."
        )
    raise ValueError(
        f"{name} is too large to square (first in row {first_row + doubtful[0]}, norm beyond "
        "1e154): rescale the features first."
    )
