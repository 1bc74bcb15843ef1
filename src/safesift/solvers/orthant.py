"""Steps within an orthant: coefficients that would change their signs are stopped at zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# shares of the way that are tried before only the first change of sign is left
_SHORTEST = 1e-3


class OrthantStep(NamedTuple):
    """By how much coefficients change, and which of them are stopped at zero."""

    change: Array
    stopped: NDArray[np.bool_]


def orthant_step(
    start: Array, direction: Array, signs: Array, rise: Callable[[Array], float]
) -> OrthantStep:
    """The first of ever shorter steps that goes downhill, several coefficients stopped at once.

    Parameters
    ----------
    start, direction : array
        Up to the first change of sign, this direction is known to go downhill.
    signs : array
        Those of `start`; 1 or −1 where that is zero and may become positive or negative; 0 for
        coefficients whose signs are free.
    rise : callable
        By how much a change lifts the function that is to be made smaller.
    """
    changes_at = np.full(len(start), np.inf)
    shrinks = signs * direction < 0.0
    changes_at[shrinks] = np.abs(start[shrinks] / direction[shrinks])
    first, share = float(changes_at.min(initial=1.0)), 1.0
    while True:
        stopped = changes_at <= share
        change = np.where(stopped, -start, share * direction)
        # "not >": also where overflow left no numbers to compare
        if not share > first or rise(change) < 0.0:
            return OrthantStep(change, stopped)
        share = max(0.5 * share, first) if share > _SHORTEST else first
