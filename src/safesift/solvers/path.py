"""Problems that share their rows, solved one level of a path after another, warm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from safesift.problem.problem import Problem
from safesift.solvers.choice import best_solver
from safesift.solvers.records import Fit, Settings

Array = NDArray[np.float64]


def solve_path(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> Iterator[list[Fit]]:
    """Solve problems that share one design, for one alpha (or radius) after another.

    Parameters
    ----------
    levels : sequence of sequences of Problem
        `levels[i][k]` is problem k (a class against the rest, a fold) at the i-th alpha or radius.
        All have the same design object; problem k has the same y, loss and weights at every level.
    settings : Settings
    starts : sequence of arrays, optional
        A point for each problem of the first level.

    Yields
    ------
    list of Fit
        Of one level after another, a fit for each problem. What a level leaves behind for the next
        is not kept, so that the memory does not grow with the number of levels.
    """
    yield from best_solver(levels[0][0], len(levels))(levels, settings, starts)
