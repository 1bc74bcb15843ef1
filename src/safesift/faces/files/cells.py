"""The cells of one Arrow column as numbers, ends of intervals, labels or categories."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from safesift.faces.files import arrow as pa

# what people write where they know nothing, in small letters
MISSING = (
    "", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "?",
)  # fmt: skip

_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")

# an array of Arrow, in one piece or in several
Cells: TypeAlias = Any
Kind = Literal["text", "commas", "other"]


class Unusable(ValueError):
    """A column does not hold the numbers that it should hold."""


class NotNumbers(Unusable):
    """It holds something else.

    Attributes
    ----------
    what : str
        What it holds, in words.
    kind : {"text", "commas", "other"}
        Text, numbers with a decimal comma, or anything else.
    """

    def __init__(self, column: str, what: str, kind: Kind) -> None:
        super().__init__(f"The column {column!r} holds {what}, not numbers.")
        self.what, self.kind = what, kind


def numbers(cells: Cells, column: str, first_row: int = 0) -> NDArray:
    """A column as numbers, NaN where one is missing: float32 where it holds those, else float64."""
    cells = _plain(cells)
    if _is_text(cells.type):
        return _parsed(cells, column, first_row)
    if pa.types.is_decimal(cells.type):
        cells = cells.cast(pa.float64())
    if pa.types.is_null(cells.type):
        return np.full(len(cells), np.nan)
    if not _is_number(cells.type):
        raise NotNumbers(column, str(cells.type), "other")
    values = cells.to_numpy(zero_copy_only=False)
    return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)


def known_numbers(cells: Cells, column: str, first_row: int, may_miss: bool = False) -> NDArray:
    """A column as finite numbers, NaN where one is missing and may be."""
    values = numbers(cells, column, first_row)
    if np.isfinite(values).all():
        return values
    if np.isinf(values).any():
        row = first_row + int(np.argmax(np.isinf(values))) + 1
        raise Unusable(f"The column {column!r} has an infinite value (first in row {row}).")
    if not may_miss:
        raise missing(column, first_row + int(np.argmax(np.isnan(values))))
    return values


def missing(column: str, row: int) -> Unusable:
    """What to raise for a value that has to be there."""
    return Unusable(
        f"The column {column!r} has a missing value (first in row {row + 1}): fill it in, or "
        "remove the row."
    )


def open_ends(cells: Cells, column: str, first_row: int, infinite: float) -> NDArray:
    """A column of interval ends as numbers, `infinite` where a cell is missing."""
    values = numbers(cells, column, first_row)
    return np.where(np.isnan(values), infinite, values)


def labels(cells: pa.ChunkedArray, column: str) -> NDArray:
    """A column of labels: numbers or Python strings.

    Text that holds numbers throughout is taken as numbers, so that 1 and 1.0 are one label.
    """
    cells = known_labels(cells, column)
    if not _is_text(cells.type):
        return cells.to_numpy()
    try:
        return cells.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return cells.to_numpy()


def known_labels(cells: Cells, column: str, first_row: int = 0) -> Cells:
    """Labels as numbers or text, none of them missing."""
    cells = _plain(cells)
    if not _is_number(cells.type):
        cells = _as_text(cells, column)
    unknown = np.asarray(cells.is_null())
    if _is_text(cells.type):
        unknown |= np.asarray(pa.compute.equal(cells, "").fill_null(True))
    if unknown.any():
        raise missing(column, first_row + int(np.argmax(unknown)))
    return cells


class Categories:
    """Turns the cells of a column into categories, one object for all cells that say the same."""

    def __init__(self, column: str, is_text: bool) -> None:
        self._column, self._is_text = column, is_text
        self._known: dict[Any, Any] = {None: np.nan}

    def of(self, cells: pa.Array) -> NDArray:
        """Text or numbers, NaN where a cell is missing."""
        encoded = _plain(cells).dictionary_encode()
        found = [self._category(value) for value in [*encoded.dictionary.to_pylist(), None]]
        places = encoded.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
        return np.array(found, dtype=object)[places]

    def _category(self, value: Any) -> Any:
        if value not in self._known:
            self._known[value] = self._new(value)
        return self._known[value]

    def _new(self, value: Any) -> Any:
        if isinstance(value, str) and _is_blank(value):
            return np.nan
        if self._is_text:
            return str(value)
        number = float(numbers(pa.array([value]), self._column)[0])
        if np.isnan(number):
            return np.nan
        return int(number) if number.is_integer() else number


def _plain(cells: Cells) -> Cells:
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    # of the kinds of text one is enough; views came later than the oldest version in use
    wide = pa.types.is_large_string(cells.type) or str(cells.type) == "string_view"
    return cells.cast(pa.string()) if wide else cells


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _is_blank(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _as_text(cells: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    try:
        return cells.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(f"The column {column!r} holds {cells.type}, not labels.") from None


def _parsed(cells: Cells, column: str, first_row: int) -> NDArray:
    with suppress(pa.ArrowInvalid):
        return _floats(cells)
    tidy = pa.compute.utf8_trim_whitespace(cells)
    blank = pa.compute.is_in(pa.compute.utf8_lower(tidy), value_set=pa.array(MISSING))
    with suppress(pa.ArrowInvalid):
        return _floats(pa.compute.if_else(blank, pa.scalar(None, pa.string()), tidy))
    # a plus sign, or something that is not a number
    rows = enumerate(cells.to_pylist(), start=first_row)
    return np.array([_number(cell, column, row) for row, cell in rows])


def _floats(cells: Cells) -> NDArray:
    return cells.cast(pa.float64()).to_numpy(zero_copy_only=False)


def _number(cell: str | None, column: str, row: int) -> float:
    if cell is None or _is_blank(cell):
        return np.nan
    try:
        # Python alone reads 1_000 as a number
        return float(cell.replace("_", "?"))
    except ValueError:
        where = f"({cell[:40]!r} in row {row + 1})"
        if _DECIMAL_COMMA.fullmatch(cell.strip()):
            raise NotNumbers(column, f"decimal commas {where}", "commas") from None
        raise NotNumbers(column, f"text {where}", "text") from None
