"""How far to go towards a point, where going all the way does not lower the objective enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from scipy.optimize import minimize_scalar

from safesift.arithmetic.numerics import EPS


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
    lower = math.nextafter(objective(0.0), -math.inf)
    share = backtrack(objective, lower, factor=0.25, least=EPS).share or EPS
    reach = min(4.0 * share, 1.0)
    found = minimize_scalar(
        objective, bounds=(0.0, reach), method="bounded", options={"xatol": 1e-3 * reach}
    )
    return float(found.x)
