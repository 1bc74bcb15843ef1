"""What users hold as plain NumPy arrays: masked arrays, frames and series, boxed numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic.devices.places import brought_here, is_tensor, lives_elsewhere


def plain_array(name: str, values: Any) -> NDArray:
    """The values as an array that says all there is: no mask, and no number in a box.

    Parameters
    ----------
    name : str
        Of the argument, for the error message.
    values : array, list, pandas or polars frame or series
        Nullable columns and categories become what they hold; what is missing among numbers
        becomes NaN, and stays what it is among anything else.

    Raises
    ------
    ValueError
        Where an entry is masked: a plain array would show what is beneath the mask.
    TypeError
        For a sparse matrix.
    """
    refuse_mask(name, values)
    if sparse.issparse(values):
        raise TypeError(f"{name} is a sparse matrix: pass a dense array, one entry per sample.")
    if lives_elsewhere(values) or is_tensor(values):
        return brought_here(values)
    array: NDArray = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    return _unboxed(array) if array.dtype == object else array


def refuse_mask(name: str, values: Any) -> None:
    """Refuse an array of which some entries are masked."""
    if not isinstance(values, np.ma.MaskedArray) or not np.ma.is_masked(values):
        return
    where = np.ma.getmaskarray(values)
    raise ValueError(
        f"{name} is masked in {int(where.sum())} entries (first in row "
        f"{int(np.argwhere(where)[0, 0])}): fill them (numpy.ma.filled), or remove those rows."
    )


def refuse_columns(name: str, frame: Any) -> None:
    """Refuse a pandas or polars frame with a column that holds no numbers; anything else passes."""
    for column, values in _columns(frame):
        if not _holds_numbers(plain_array(name, values)):
            raise ValueError(
                f"{name} has the column {column!r} of type {values.dtype}, which holds no numbers: "
                "encode or remove it first."
            )


def refuse_missing(name: str, array: NDArray) -> None:
    """Refuse objects of which some are missing."""
    if array.dtype == object and any(map(is_missing, array.flat)):
        raise ValueError(f"{name} contains missing entries: remove those samples first.")


def is_missing(value: Any) -> bool:
    """None, NaN, and what pandas calls NA and NaT (which do not even compare)."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _unboxed(array: NDArray) -> NDArray:
    """Objects that are numbers, some of them missing, as numbers."""
    if array.size == 0 or isinstance(array.flat[0], str | bytes):
        return array
    entries = array.ravel().tolist()
    try:
        numbers = np.array(entries)
        if numbers.dtype == object and not all(map(is_missing, entries)):
            numbers = np.array([np.nan if is_missing(entry) else entry for entry in entries])
    except ValueError:  # sequences, of different lengths
        return array
    if numbers.dtype.kind not in "biuf" or numbers.shape != (array.size,):
        return array
    return numbers.reshape(array.shape)


def _holds_numbers(array: NDArray) -> bool:
    if array.dtype != object:
        return array.dtype.kind in "fiub"
    try:
        array.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _columns(frame: Any) -> Iterator[tuple[Any, Any]]:
    """Names and columns of a pandas or polars frame; nothing of anything else."""
    if hasattr(frame, "iter_columns"):
        yield from ((column.name, column) for column in frame.iter_columns())
    elif hasattr(frame, "items") and hasattr(frame, "to_numpy"):
        yield from frame.items()
