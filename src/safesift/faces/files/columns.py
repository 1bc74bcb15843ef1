"""Arrow columns to NumPy arrays, or one sentence that names the column that is not numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MISSING = {"", "na", "n/a", "nan", "-nan", "null", "none", "?"}


def numbers(cells: pa.Array, column: str, first_row: int) -> NDArray:
    """A part of a column as finite numbers: float32 where it holds those, else float64.

    Parameters
    ----------
    cells : pa.Array
        Text or numbers.
    column : str
        Its name, for the error message.
    first_row : int
        How many rows came before, for the error message.
    """
    cells = _plain(cells)
    if cells.null_count:
        raise _missing(column, first_row + int(np.argmax(np.asarray(cells.is_null()))))
    values = _values(cells, column, first_row)
    finite = np.isfinite(values)
    if not finite.all():
        raise _missing(column, first_row + int(np.argmin(finite)))
    return values


def open_ends(cells: pa.Array, column: str, first_row: int, infinite: float) -> NDArray:
    """A part of a column of interval ends as numbers, `infinite` where a cell is missing."""
    cells = _plain(cells)
    if _is_text(cells.type):
        # as NaN, so that a message about another cell still counts the rows right
        texts = ["nan" if _is_blank(cell) else cell for cell in cells.to_pylist()]
        cells = pa.array(texts, pa.string())
    values = _values(cells, column, first_row)
    return np.where(np.isnan(values), infinite, values)


def _is_blank(cell: str | None) -> bool:
    return cell is None or cell.strip().lower() in _MISSING


def _plain(cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def _values(cells: pa.Array, column: str, first_row: int) -> NDArray:
    return _parsed(cells, column, first_row) if _is_text(cells.type) else _cast(cells, column)


def labels(cells: pa.ChunkedArray, column: str) -> NDArray:
    """A column of labels: numbers or Python strings.

    Text that holds numbers throughout is taken as numbers, so that 1 and 1.0 are one label.
    """
    cells = _plain(cells)
    if not _is_number(cells.type):
        cells = _as_text(cells, column)
    missing = np.asarray(cells.is_null())
    if _is_text(cells.type):
        missing |= np.asarray(pc.equal(cells, "").fill_null(True))
    if missing.any():
        raise _missing(column, int(np.argmax(missing)))
    if not _is_text(cells.type):
        return cells.to_numpy()
    try:
        return cells.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return cells.to_numpy()


def _is_text(kind: pa.DataType) -> bool:
    # string views came to Arrow later than the oldest version in use
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _as_text(cells: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    try:
        return cells.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(f"The column {column!r} holds {cells.type}, not labels.") from None


def _cast(cells: pa.Array, column: str) -> NDArray:
    if pa.types.is_decimal(cells.type):
        cells = cells.cast(pa.float64())
    if not _is_number(cells.type):
        raise _unusable(column, f"holds {cells.type}")
    values = cells.to_numpy(zero_copy_only=False)
    return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)


def _parsed(cells: pa.Array, column: str, first_row: int) -> NDArray:
    try:
        return cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        # blanks around a number, a plus sign, or something that is not a number
        rows = enumerate(cells.to_pylist(), start=first_row)
        return np.array([_number(cell, column, row) for row, cell in rows])


def _number(cell: str, column: str, row: int) -> float:
    try:
        # Python alone reads 1_000 as a number
        return float(cell.replace("_", "?"))
    except ValueError:
        if _is_blank(cell):
            raise _missing(column, row) from None
        raise _unusable(column, f"holds text ({cell[:40]!r} in row {row + 1})") from None


def _unusable(column: str, what: str) -> ValueError:
    return ValueError(
        f"The column {column!r} {what}: leave it out with --ignore, or name the columns of numbers "
        "with --features."
    )


def _missing(column: str, row: int) -> ValueError:
    return ValueError(
        f"The column {column!r} has a missing or infinite value (first in row {row + 1}): "
        "fill it in, remove the row, or leave the column out."
    )
