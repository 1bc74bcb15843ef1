"""What to show of single samples: columns of somebody's own table, or features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from safesift.design.rows import RowDesign
from safesift.faces.markup import number
from safesift.problem.scales import column_names

# so many columns are shown, and so much of a text
MOST_COLUMNS = 40
_LONGEST = 200

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
        return cls(data)

    @property
    def names(self) -> Sequence[str]:
        named = column_names(self.data)
        if named is not None:
            return named
        shape = np.shape(self.data)
        return [f"x{column}" for column in range(shape[1] if len(shape) > 1 else 1)]

    def cells(self, rows: Rows) -> NDArray:
        from scipy import sparse
        from sklearn.utils import _safe_indexing

        taken = _safe_indexing(self.data, rows)
        taken = taken.toarray() if sparse.issparse(taken) else taken
        return np.asarray(taken, dtype=object).reshape(len(rows), -1)


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
    if cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool | np.bool_):
        return str(cell)
    if isinstance(cell, float | np.floating):
        return number(float(cell))
    text = str(cell)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
