"""Many roots of increasing functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS

Array = NDArray[np.float64]

_MAX_STEPS = 120
# a Newton step this small is the last one, if the step before left no more than that share: what
# is left then is below 1e-14
_LAST_STEP, _CONTRACTION = 1e-10, 1e-4


def solve_increasing(
    function: Callable[[Array], tuple[Array, Array]],
    target: Array,
    low: Array,
    high: Array,
    start: Array,
) -> Array:
    """z in [low, high] with function(z) = target, by Newton steps that keep to the brackets.

    A step that leaves its bracket is replaced by bisection; each sample stops by itself.

    Parameters
    ----------
    function : callable
        Returns the increasing function and a rough derivative.
    target, low, high, start : arrays of one shape
    """
    result = start.copy()
    rows = np.arange(len(start))
    z, low, high, last = start, low.copy(), high.copy(), np.full(len(start), np.inf)
    for _ in range(_MAX_STEPS):
        with np.errstate(all="ignore"):
            reached, rate = function(z)
            rest = reached - target
            done = np.abs(rest) <= EPS * np.abs(target)
            low, high = np.where(rest < 0, z, low), np.where(rest > 0, z, high)
            newton = z - rest / rate
            # a step that does not even halve what is left is no Newton step
            good = (newton >= low) & (newton <= high) & (np.abs(rest) <= 0.5 * last)
            following = np.where(good, newton, 0.5 * (low + high))
        converging = good & np.isfinite(last) & (np.abs(rest) <= _CONTRACTION * last)
        done |= np.abs(following - z) <= np.where(converging, _LAST_STEP, 2 * EPS) * np.abs(z)
        result[rows] = np.where(np.abs(rest) <= EPS * np.abs(target), z, following)
        if done.all():
            break
        left = ~done
        rows, target, last = rows[left], target[left], np.abs(rest[left])
        z, low, high = following[left], low[left], high[left]
    return result
