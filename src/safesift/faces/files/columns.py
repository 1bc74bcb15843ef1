"""Arrow columns to NumPy arrays, or one sentence that names the column that is not numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from safesift.faces.files import arrow as pa
from safesift.faces.files.table import Columns

_MISSING = {"", "na", "n/a", "nan", "-nan", "null", "none", "?"}


def collect(
    batches: Iterable[pa.RecordBatch], columns: Columns
) -> tuple[NDArray, NDArray, NDArray | None]:
    """Matrix, target and weights of a stream of batches; the Arrow data are let go one by one."""
    blocks, targets, weights = [], [], []
    for first_row, batch in _numbered(batches):
        blocks.append(_matrix(batch, columns.features, first_row))
        targets.append(_target(batch, columns, first_row))
        if columns.weights:
            weights.append(_numbers(batch, columns.weights, first_row))
    if not blocks:
        return np.empty((0, len(columns.features))), np.empty(0), None
    if columns.kind == "classification":
        y = _labels(pa.chunked_array(targets), _found(columns.target))
    else:
        y = np.concatenate(targets)
    return _stacked(blocks), y, np.concatenate(weights) if weights else None


def matrices(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[NDArray]:
    """The features of a stream of batches, one matrix after another."""
    for first_row, batch in _numbered(batches):
        yield _matrix(batch, names, first_row)


def labelled(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], target: str
) -> Iterator[tuple[NDArray, NDArray]]:
    """The features and the labels of a stream of batches; text stays text, whatever it holds."""
    for first_row, batch in _numbered(batches):
        labels = _label_cells(batch.column(target), target, first_row)
        yield _matrix(batch, names, first_row), labels.to_numpy(zero_copy_only=False)


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Every batch with the number of rows before it, for messages that name a row."""
    first_row = 0
    for batch in batches:
        yield first_row, batch
        first_row += len(batch)


def _matrix(batch: pa.RecordBatch, names: Sequence[str], first_row: int) -> NDArray:
    return np.column_stack([_numbers(batch, name, first_row) for name in names])


def _target(batch: pa.RecordBatch, columns: Columns, first_row: int) -> NDArray | pa.Array:
    """The target of a batch; labels stay as they are until all of them are known."""
    if columns.kind == "classification":
        return batch.column(_found(columns.target))
    if columns.kind == "regression":
        return _numbers(batch, _found(columns.target), first_row)
    lower = _open_ends(batch, _found(columns.target), first_row, -np.inf)
    upper = _open_ends(batch, _found(columns.upper), first_row, np.inf)
    return np.column_stack([lower, upper])


def _found(name: str | None) -> str:
    """The column of a part that the target needs: `find_columns` refuses to go on without."""
    assert name is not None
    return name


def _stacked(blocks: list[NDArray]) -> NDArray:
    """The blocks on top of each other; each is let go once copied, so there is one copy of all."""
    n_rows = sum(map(len, blocks))
    out = np.empty((n_rows, blocks[0].shape[1]), dtype=np.result_type(*blocks))
    while blocks:
        block = blocks.pop()
        out[n_rows - len(block) : n_rows] = block
        n_rows -= len(block)
    return out


def _numbers(batch: pa.RecordBatch, column: str, first_row: int) -> NDArray:
    """A column as finite numbers: float32 where it holds those, else float64."""
    cells = _plain(batch.column(column))
    if cells.null_count:
        raise _missing(column, first_row + int(np.argmax(np.asarray(cells.is_null()))))
    values = _values(cells, column, first_row)
    finite = np.isfinite(values)
    if not finite.all():
        raise _missing(column, first_row + int(np.argmin(finite)))
    return values


def _open_ends(batch: pa.RecordBatch, column: str, first_row: int, infinite: float) -> NDArray:
    """A column of interval ends as numbers, `infinite` where a cell is missing."""
    cells = _plain(batch.column(column))
    if _is_text(cells.type):
        # as NaN, so that a message about another cell still counts the rows right
        texts = ["nan" if _is_blank(cell) else cell for cell in cells.to_pylist()]
        cells = pa.array(texts, pa.string())
    values = _values(cells, column, first_row)
    return np.where(np.isnan(values), infinite, values)


def _labels(cells: pa.ChunkedArray, column: str) -> NDArray:
    """A column of labels: numbers or Python strings.

    Text that holds numbers throughout is taken as numbers, so that 1 and 1.0 are one label.
    """
    cells = _label_cells(cells, column)
    if not _is_text(cells.type):
        return cells.to_numpy()
    try:
        return cells.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return cells.to_numpy()


def _label_cells(
    cells: pa.Array | pa.ChunkedArray, column: str, first_row: int = 0
) -> pa.Array | pa.ChunkedArray:
    """Labels as numbers or text, none of them missing."""
    cells = _plain(cells)
    if not _is_number(cells.type):
        cells = _as_text(cells, column)
    missing = np.asarray(cells.is_null())
    if _is_text(cells.type):
        missing |= np.asarray(pa.compute.equal(cells, "").fill_null(True))
    if missing.any():
        raise _missing(column, first_row + int(np.argmax(missing)))
    return cells


def _plain(cells: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def _is_text(kind: pa.DataType) -> bool:
    # string views came to Arrow later than the oldest version in use
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _is_blank(cell: str | None) -> bool:
    return cell is None or cell.strip().lower() in _MISSING


def _as_text(cells: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    try:
        return cells.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(f"The column {column!r} holds {cells.type}, not labels.") from None


def _values(cells: pa.Array, column: str, first_row: int) -> NDArray:
    return _parsed(cells, column, first_row) if _is_text(cells.type) else _cast(cells, column)


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
