"""How far to go towards a point, where going all the way does not lower the objective enough."""

from __future__ import annotations

from collections.abc import Callable

from scipy.optimize import minimize_scalar

from safesift.arithmetic.numerics import EPS


def best_share(objective: Callable[[float], float]) -> float:
    """The t in [0, 1] for which a convex function is least, roughly; one that lowers it."""
    share, start = 1.0, objective(0.0)
    while share > EPS and not objective(share) < start:
        share *= 0.25
    reach = min(4.0 * share, 1.0)
    found = minimize_scalar(
        objective, bounds=(0.0, reach), method="bounded", options={"xatol": 1e-3 * reach}
    )
    return float(found.x)
