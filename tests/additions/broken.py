"""The toys with a mistake in each: laws that do not notice it are none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from safesift.problem import Certificate
from safesift.regions import Ball
from safesift.solvers import Level, Proposal, Steps
from tests.additions.euclidean import Euclidean
from tests.additions.lipschitz_ball import LipschitzBall
from tests.additions.lookup import Lookup
from tests.additions.lopsided import Lopsided
from tests.additions.proximal_gradient import ProximalGradient


@dataclass(frozen=True)
class SteepLopsided(Lopsided):
    """Its slope is that of twice the loss."""

    def _dphi(self, residual: np.ndarray) -> np.ndarray:
        return 2.0 * super()._dphi(residual)

    def _phi(self, residual: np.ndarray) -> np.ndarray:
        return 0.5 * super()._dphi(residual) ** 2


@dataclass(frozen=True)
class GenerousEuclidean(Euclidean):
    """Its conjugate is that of half the norm: dual points count as feasible that are not."""

    def support(self, u: np.ndarray, alpha: float, error: float = 0.0) -> float:
        return super().support(u, 2.0 * alpha, error)


@dataclass(frozen=True)
class TightLipschitzBall(LipschitzBall):
    """A quarter of the radius."""

    def ball(self, certificate: Certificate) -> Ball:
        center, radius = super().ball(certificate)
        return Ball(center, 0.25 * radius)


@dataclass(frozen=True, eq=False)
class ConfidentLookup(Lookup):
    """It claims to add up without rounding."""

    dot_error = 0.0
    sum_error = 0.0


class Nonsense(ProximalGradient):
    """Proposes points at random, some of them infinite or not even numbers."""

    def steps(self, level: Level) -> Steps:
        yield from self.arrive(level)
        rng = np.random.default_rng(0)
        while True:
            point = rng.normal(size=level.problem.design.n_columns) * 10.0 ** rng.uniform(-3, 200)
            point[0] = rng.choice([point[0], np.nan, np.inf])
            yield Proposal(point=point)
