"""What may be held at a time: shares of the budget, and what fits into them.

| what | share |
| --- | --- |
| rows that are held (`driver`), each of them twice; what compression knows of rows | 0.4 |
| p × p matrices of all problems in flight, and beside them decoded blocks | 0.4 |
| the sample (`survey`) | 0.1 |
| what became of every row (`codes`) | 0.1 |

or, in place of all that, all rows (`whole`): 0.8.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy import sparse

from safesift.design.pool import in_words
from safesift.workflows.scale.driver import HELD_SHARE, PER_HELD_ROW
from safesift.workflows.scale.reading import Reading
from safesift.workflows.scale.survey import Surveyed

# beyond so many columns rows are held and no matrices are made, as for data in memory
_WIDEST = 5000
# matrices of a problem that are held at a time, those of tasks under way included
_MATRICES = 12
_MATRIX_SHARE, _CODE_SHARE, _WHOLE_SHARE = 0.4, 0.1, 0.8


def cache(memory: int) -> float:
    """What decoded blocks may take before there are matrices."""
    return _MATRIX_SHARE * memory


def held(memory: int) -> float:
    """What held rows may take, and after the last pass what is known of single rows."""
    return HELD_SHARE * memory


def codes(memory: int) -> int:
    """What is known of all rows may take so much of the memory, and is on disk beyond that."""
    return int(_CODE_SHARE * memory)


@dataclass(frozen=True)
class Size:
    """How large a problem is.

    Attributes
    ----------
    memory : int
        The budget.
    n_rows, n_features : int
    intercept : bool
    row_bytes : float
        What a row takes.
    """

    memory: int
    n_rows: int
    n_features: int
    intercept: bool
    row_bytes: float

    @classmethod
    def of(cls, surveyed: Surveyed, reading: Reading) -> Size:
        assert surveyed.sample is not None and surveyed.n_features is not None
        X = surveyed.sample.X
        if sparse.issparse(X):
            row_bytes = 2.0 * X.data.nbytes / max(X.shape[0], 1) + 8
        else:
            row_bytes = X.shape[1] * (X.dtype.itemsize if reading.scaling is None else 8.0)
        memory = reading.source.memory
        return cls(memory, surveyed.n_rows, surveyed.n_features, reading.intercept, row_bytes)

    @property
    def matrix_bytes(self) -> int:
        """What matrices of one problem take."""
        return 8 * _MATRICES * (self.n_features + self.intercept) ** 2

    def all_fit(self, n_problems: int) -> bool:
        """Whether all rows can be held, twice, while so many problems are solved for them."""
        per_row = 2 * self.row_bytes + PER_HELD_ROW * n_problems
        matrices = self.matrix_bytes if self.n_features <= _WIDEST else 0
        return self.n_rows * per_row + n_problems * matrices <= _WHOLE_SHARE * self.memory

    def folds(self, piecewise: bool) -> bool:
        """Whether matrices with a row for each column are made.

        Parameters
        ----------
        piecewise : bool
            Whether the loss is one that can do without.
        """
        fits = self.matrix_bytes <= _MATRIX_SHARE * self.memory
        if fits and self.n_features <= _WIDEST:
            return True
        if self.n_features > _WIDEST and piecewise and not fits:
            return False
        needed = in_words(int(self.matrix_bytes / _MATRIX_SHARE))
        raise MemoryError(
            f"memory is {in_words(self.memory)}, and matrices of {self.n_features} columns for "
            f"one problem need {needed}: increase memory, or give fewer columns."
        )

    @property
    def at_once(self) -> int:
        """How many problems the budget allows in flight."""
        return max(int(_MATRIX_SHARE * self.memory / self.matrix_bytes), 1)

    def cache_beside(self, n_problems: int) -> float:
        """What matrices of so many problems leave for decoded blocks."""
        return max(_MATRIX_SHARE * self.memory - n_problems * self.matrix_bytes, 0.0)
