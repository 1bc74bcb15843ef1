"""How far to go towards a point, where going all the way does not lower the objective enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from scipy.optimize import minimize_scalar

from safesift.arithmetic.numerics import EPS

# a slope of this share of what it was is none, and so many are tried
_FLAT, _MOST_TRIALS = 0.05, 50
# the least share of a step that is tried where nothing curves, and nothing limits its length
_SHORTEST = EPS**4


class Share(NamedTuple):
    """How much of the way to go, and the objective there; nothing where it does not fall."""

    share: float
    value: float


def backtrack(
    objective: Callable[[float], float],
    limit: float,
    *,
    slope: float = 0.0,
    factor: float = 0.5,
    least: float = 1e-6,
) -> Share:
    """The first of 1, factor, factor², … above `least` with objective ≤ limit + slope·share."""
    share = 1.0
    while share > least:
        value = objective(share)
        if value <= limit + slope * share:
            return Share(share, value)
        share *= factor
    return Share(0.0, math.inf)


def best_share(objective: Callable[[float], float]) -> float:
    """The t in [0, 1] for which a convex function is least, roughly; one that lowers it."""
    start = objective(0.0)
    share = backtrack(objective, math.nextafter(start, -math.inf), factor=0.25, least=EPS).share
    if not share:
        share = EPS
        # where nothing curves, a step may be longer than all that
        while share > _SHORTEST and objective(share) - start > EPS * abs(start):
            share *= 0.25
    reach = min(4.0 * share, 1.0)
    found = minimize_scalar(
        objective, bounds=(0.0, reach), method="bounded", options={"xatol": 1e-3 * reach}
    )
    return float(found.x)


def root_of_rising(slope: Callable[[float], float], here: float) -> float:
    """Where in [0, 1] the slope of a convex function vanishes, roughly; 1 where it stays negative.

    `here` is the slope at 0. Regula falsi with Illinois' halving: where slopes are linear in
    pieces, as those of quadratic splines are, a few evaluations do.
    """
    if not here < 0:
        return 0.0
    low, below, high, above, last = 0.0, here, 1.0, slope(1.0), 0.0
    if above <= _FLAT * -here:
        return 1.0
    for _ in range(_MOST_TRIALS):
        share = low + (high - low) * below / (below - above)
        found = slope(share)
        if abs(found) <= _FLAT * -here:
            return share
        same = found * last > 0
        if found < 0:
            low, below, above = share, found, 0.5 * above if same else above
        else:
            high, above, below = share, found, 0.5 * below if same else below
        last = found
    return low
