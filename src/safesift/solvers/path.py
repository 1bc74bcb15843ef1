"""Problems that share their rows, solved one level of a path after another, warm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from safesift.problem import Problem
from safesift.solvers.choice import prefers_dual_descent
from safesift.solvers.dual_descent import dual_descent
from safesift.solvers.gram_path import newton_path
from safesift.solvers.records import Fit, Settings

Array = NDArray[np.float64]


def solve_path(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> list[list[Fit]]:
    """Solve problems that share one design, for one alpha (or radius) after another.

    Parameters
    ----------
    levels : sequence of sequences of Problem
        `levels[i][k]` is problem k (a class against the rest, a fold) at the i-th alpha or radius.
        All have the same design object; problem k has the same y, loss and weights at every level.
    settings : Settings
    starts : sequence of arrays, optional
        A point for each problem of the first level.

    Returns
    -------
    list of lists of Fit
        `[i][k]` belongs to `levels[i][k]`.
    """
    if prefers_dual_descent(levels[0][0]):
        return dual_descent(levels, settings, starts)
    return newton_path(levels, settings, starts)
