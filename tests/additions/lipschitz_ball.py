"""A region from outside the library: a ball that needs neither a gap nor a good centre."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from safesift.problem import Certificate, Problem
from safesift.regions import Ball, BallRegion


@dataclass(frozen=True)
class LipschitzBall(BallRegion):
    """The ball around 0 beyond which no slopes of the loss can hold coefficients.

    At an optimum 0 = Σ s_i ν_i a_i + Qx* + q + v with |ν_i| ≤ L and v in alpha·∂R(x*). Times x*,
    with vᵀx* ≥ κ‖x*‖² and Q positive semidefinite: ‖x*‖ ≤ (L·Σ s_i‖a_i‖ + ‖q‖)/κ.
    """

    name = "lipschitz_ball"

    def validate(self, problem: Problem) -> None:
        if math.isinf(problem.loss.lipschitz):
            raise ValueError(
                f"screening={self.name!r} needs a Lipschitz loss, not {problem.loss!r}."
            )
        if problem.strong_convexity == 0 or problem.fit_intercept:
            raise ValueError(
                f"screening={self.name!r} needs strong convexity in all coordinates: use 'auto'."
            )

    def ball(self, certificate: Certificate) -> Ball:
        problem, n = certificate.problem, certificate.problem.design.n_samples
        pull = problem.loss.lipschitz * float(problem.shares @ problem.design.row_norms)
        radius = (pull + math.hypot(*problem.q)) / problem.strong_convexity
        # a sum of n numbers has lost n roundings at most
        return Ball(np.zeros(problem.design.n_features), radius * (1.0 + (n + 8) * 2.0**-52))
