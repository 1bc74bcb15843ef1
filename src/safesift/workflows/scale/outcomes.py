"""How problems stood after every pass, and where they ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PassRecord:
    """How a problem stood after a pass.

    Attributes
    ----------
    passes : int
        Over the data, the survey included.
    seconds : float
    gap, relative_gap : float
        Certified, on all rows.
    n_kept, n_undecided : int
        Rows that are not proved to be of no influence, and of which it is not proved on which
        piece of their loss they lie.
    n_held, n_moved : int
        Rows that are held for all problems, and those that had left the piece they were folded on.
    """

    passes: int
    seconds: float
    gap: float
    relative_gap: float
    n_kept: int
    n_undecided: int
    n_held: int
    n_moved: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """Where a problem ended.

    Attributes
    ----------
    coef, intercept
        Of the problem that was solved: of scaled columns, where they are scaled.
    gap, relative_gap, value : float
        Certified, on all rows.
    decided : bool
        Whether it is known what became of rows.
    history : tuple of PassRecord
    """

    coef: Array
    intercept: float
    gap: float
    relative_gap: float
    value: float
    decided: bool
    history: tuple[PassRecord, ...]
