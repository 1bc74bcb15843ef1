"""What to show of single samples: columns of somebody's own table, or features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from safesift.design.rows import RowDesign
from safesift.faces.markup import brief, number

# so many columns are shown
MOST_COLUMNS = 40
# how others write that there is nothing: pandas, NumPy, decimals
_MISSING = frozenset({"None", "nan", "NaN", "sNaN", "NaT", "<NA>", "--"})
# longer numbers are told by their size: Python refuses to write very long ones
_MOST_BITS = 1000

Rows = NDArray[np.intp]


class CellSource(Protocol):
    """A table of which some rows can be read."""

    @property
    def names(self) -> Sequence[str]: ...

    def cells(self, rows: Rows) -> NDArray:
        """Of shape (len(rows), len(names)), objects."""
        ...


@dataclass(frozen=True, eq=False)
class FrameCells:
    """A frame, or an array, of somebody's own."""

    data: Any

    @classmethod
    def of(cls, data: Any, n_samples: int) -> FrameCells:
        from sklearn.utils.validation import _num_samples

        if _num_samples(data) != n_samples:
            raise ValueError(
                f"data has {_num_samples(data)} rows, but there are {n_samples} samples: pass the "
                "table that they came from, all of it and in the same order."
            )
        if not _is_table(data):
            raise ValueError("data is no table: pass a row for each sample, all of one length.")
        return cls(data)

    @property
    def names(self) -> Sequence[str]:
        named = getattr(self.data, "column_names", getattr(self.data, "columns", None))
        # a matrix may have a method of that name
        if named is not None and not callable(named):
            return [str(name) for name in named]
        shape = np.shape(self.data)
        return [f"x{column}" for column in range(shape[1] if len(shape) > 1 else 1)]

    def cells(self, rows: Rows) -> NDArray:
        from scipy import sparse
        from sklearn.utils import _safe_indexing

        taken = _safe_indexing(self.data, rows)
        taken = taken.toarray() if sparse.issparse(taken) else taken
        if isinstance(taken, np.ma.MaskedArray):
            taken = np.ma.filled(taken.astype(object), None)
        columns = _typed_columns(taken)
        if columns is None:
            return np.asarray(taken, dtype=object).reshape(len(rows), len(self.names))
        found = np.empty((len(rows), len(columns)), dtype=object)
        for column, values in enumerate(columns):
            for place, value in enumerate(values):
                found[place, column] = value
        return found


def _is_table(data: Any) -> bool:
    try:
        return len(np.shape(data)) <= 2
    except ValueError:  # lists of different lengths
        return False


def _typed_columns(frame: Any) -> list[list] | None:
    """Columns of polars and Arrow, whose types an array of all of them would lose."""
    if hasattr(frame, "get_columns"):
        return [column.to_list() for column in frame.get_columns()]
    if hasattr(frame, "column_names"):
        return [column.to_pylist() for column in frame.columns]
    return None


@dataclass(frozen=True, eq=False)
class FeatureCells:
    """Some of the features of the samples."""

    design: RowDesign
    columns: Rows
    names: Sequence[str]

    def cells(self, rows: Rows) -> NDArray:
        return self.design.numbers_of(rows)[:, self.columns].astype(object)


def shown(cell: Any) -> str:
    """A cell as text: numbers in a few digits, nothing where something is missing."""
    if isinstance(cell, str):
        return brief(cell)
    if isinstance(cell, float | np.floating):
        return "" if math.isnan(cell) else number(float(cell))
    if isinstance(cell, int) and cell.bit_length() > _MOST_BITS:
        return f"{Decimal(cell):.4g}"
    text = str(cell)
    return "" if text in _MISSING else brief(text)


def sort_key(cell: Any) -> str | None:
    """All digits of a number, as a script reads them; None for what is no number, or missing."""
    is_number = isinstance(cell, int | float | np.integer | np.floating | Decimal)
    if isinstance(cell, bool) or not is_number or not shown(cell):
        return None
    try:
        value = float(cell)
    except OverflowError:
        value = math.inf if cell > 0 else -math.inf
    return repr(value).replace("inf", "Infinity")
