"""What is known of a problem at a point, and what decided samples leave behind of theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import norm

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quadratic:
    """½xᵀQx + qᵀx + r: what decided samples leave behind. `Q` is None where nothing is quadratic.

    With an intercept its coordinate is the last one.
    """

    q: Array
    r: float
    Q: Array | None = None

    def product(self, point: Array) -> Array:
        """Q @ point."""
        return np.zeros_like(point) if self.Q is None else self.Q @ point

    def value(self, point: Array) -> float:
        """½xᵀQx + qᵀx + r."""
        return 0.5 * float(point @ self.product(point)) + float(self.q @ point) + self.r

    def gradient(self, point: Array) -> Array:
        """Qx + q."""
        return self.product(point) + self.q

    def size(self, length: float) -> float:
        """A bound on ‖Qx + q‖ for ‖x‖ ≤ length, to which rounding errors are relative."""
        matrix = 0.0 if self.Q is None else float(np.linalg.norm(self.Q))
        return matrix * length + norm(self.q)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One pass over the data at one point: value, slopes ν and subgradient of the objective.

    Attributes
    ----------
    point : array
        Coefficients, then the intercept if there is one.
    pred, nu : arrays of shape (n_samples,)
        Predictions, and the slopes of the loss at them.
    loss_gradient : array
        (1/W) Aᵀ(s∘ν), without penalty and folded part.
    subgradient : array
        The subgradient of P of least norm that belongs to these slopes.
    subgradient_slack : float
        P(point) + subgradientᵀ(u − point) ≤ P(u) + slack for all u, rounding aside.
    value : float
        P(point).
    """

    point: Array
    pred: Array
    nu: Array
    loss_gradient: Array
    subgradient: Array
    subgradient_slack: float
    value: float


@dataclass(frozen=True)
class Rounding:
    """Bounds on what floating-point arithmetic did to an `Evaluation`.

    Attributes
    ----------
    value : float
        |computed P − exact P|.
    gradient : float
        ‖computed subgradient − exact one‖₂.
    cut : float
        The computed subgradient g satisfies gᵀ(x* − point) ≤ cut + gradient·‖x* − point‖ for
        every optimum. 0 for smooth losses; a loss with kinks may be on the wrong side of one.
    """

    value: float
    gradient: float
    cut: float
