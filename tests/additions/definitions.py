"""Two toys a second time, in exact arithmetic and for a convex solver: the laws compare."""

from __future__ import annotations

import math
from fractions import Fraction

import cvxpy as cp
import numpy as np

from tests.additions.euclidean import Euclidean
from tests.additions.lopsided import Lopsided
from tests.laws import exact
from tests.laws.definitions import LossDefinition, PenaltyDefinition


def _exact_lopsided(loss: Lopsided) -> exact.ExactLoss:
    below, above = Fraction(loss.below), Fraction(loss.above)

    def excess(r: Fraction) -> Fraction:
        return max(r - above, Fraction(0)) + min(r + below, Fraction(0))

    return exact.ExactLoss(
        value=lambda r: excess(r) ** 2 / 2,
        slope=excess,
        curvature=lambda r: Fraction(not -below <= r <= above),
        conjugate=lambda u: u * u / 2 + max(above * u, -below * u),
    )


LOPSIDED = LossDefinition(
    exact=_exact_lopsided,
    conic=lambda loss, r: (
        0.5 * cp.square(cp.pos(r - loss.above)) + 0.5 * cp.square(cp.pos(-r - loss.below))
    ),
    conic_conjugate=lambda loss, u: (
        0.5 * cp.square(u) + cp.maximum(loss.above * u, -loss.below * u),
        [],
    ),
)


def _subgradient(penalty: Euclidean, coef: np.ndarray, shares: np.ndarray) -> np.ndarray:
    return coef / math.hypot(*coef) if coef.any() else shares / np.sqrt(len(shares))


EUCLIDEAN = PenaltyDefinition(
    exact=lambda penalty, coef: exact.norm(coef),
    conic=lambda penalty, coef: cp.norm2(coef),
    conic_support=lambda penalty, v, alpha: (cp.Constant(0.0), [cp.norm2(v) <= alpha]),
    subgradient=_subgradient,
)
