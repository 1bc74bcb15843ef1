"""Losses of the residual prediction − y, for real targets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.printing import Brief
from safesift.losses.base import INF, Array, Loss, Piece, ResidualLoss
from safesift.parameters import own, require_non_negative, require_positive


@dataclass(frozen=True)
class Squared(ResidualLoss):
    """φ(r) = ½r². One quadratic piece: every sample folds, none can be dropped."""

    smoothness = 1.0
    lipschitz = INF
    _dual_interval = (-INF, INF)
    _minimisers = (0.0, 0.0)

    def _phi(self, residual: Array) -> Array:
        return 0.5 * residual**2

    def _dphi(self, residual: Array) -> Array:
        return residual

    def _ddphi(self, residual: Array) -> Array:
        return np.ones_like(residual)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.ones_like(lower)

    def _conjugate_ratio(self, u: Array) -> Array:
        return 0.5 * u

    def _pieces(self) -> list[Piece]:
        return [Piece(-INF, INF, quadratic=1.0)]


@dataclass(frozen=True)
class Huber(ResidualLoss):
    """φ(r) = ½r² for |r| ≤ δ, δ|r| − ½δ² beyond. Not flat anywhere, but every piece folds.

    Parameters
    ----------
    delta : float, default=1.0
        Where the quadratic piece ends.
    """

    delta: float = 1.0
    smoothness = 1.0
    _minimisers = (0.0, 0.0)

    def __post_init__(self) -> None:
        require_positive("delta", self.delta)

    @property
    def lipschitz(self) -> float:
        return self.delta

    @property
    def _dual_interval(self) -> tuple[float, float]:
        return -self.delta, self.delta

    def _phi(self, residual: Array) -> Array:
        inner = np.minimum(np.abs(residual), self.delta)
        return inner * (np.abs(residual) - 0.5 * inner)

    def _dphi(self, residual: Array) -> Array:
        return np.clip(residual, -self.delta, self.delta)

    def _ddphi(self, residual: Array) -> Array:
        return np.where(np.abs(residual) < self.delta, 1.0, 0.0)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.where((lower > -self.delta) & (upper < self.delta), 1.0, 0.0)

    def _conjugate_ratio(self, u: Array) -> Array:
        return 0.5 * u

    def _pieces(self) -> list[Piece]:
        delta = self.delta
        return [
            Piece(-delta, delta, quadratic=1.0),
            Piece(-INF, -delta, linear=-delta, constant=-0.5 * delta**2),
            Piece(delta, INF, linear=delta, constant=-0.5 * delta**2),
        ]


@dataclass(frozen=True, eq=False, repr=False)
class _Insensitive(Brief, ResidualLoss):
    """What the two ε-insensitive losses share: a tube of half-width ε, maybe one per sample."""

    epsilon: float | NDArray = 0.1

    def __post_init__(self) -> None:
        require_non_negative("epsilon", self.epsilon, per_sample=True)
        if np.ndim(self.epsilon):
            object.__setattr__(self, "epsilon", own(self.epsilon))

    @property
    def n_parameters(self) -> int | None:
        return None if np.ndim(self.epsilon) == 0 else len(np.asarray(self.epsilon))

    def take(self, rows: slice | NDArray) -> Loss:
        if self.n_parameters is None:
            return self
        return replace(self, epsilon=np.asarray(self.epsilon)[rows])

    @property
    def _minimisers(self) -> tuple[Array, Array]:
        epsilon = np.asarray(self.epsilon, dtype=np.float64)
        return -epsilon, epsilon

    def _excess(self, residual: Array) -> Array:
        """Signed distance of the residual to the tube."""
        return residual - np.clip(residual, -np.asarray(self.epsilon), self.epsilon)


@dataclass(frozen=True, eq=False, repr=False)
class EpsilonInsensitive(_Insensitive):
    """φ(r) = [|r| − ε]₊, the loss of support vector regression. No curvature anywhere.

    Parameters
    ----------
    epsilon : float or array of shape (n_samples,), default=0.1
        Half-width of the tube in which the loss is zero; may differ per sample.
    """

    smoothness = INF
    lipschitz = 1.0
    _dual_interval = (-1.0, 1.0)

    def _phi(self, residual: Array) -> Array:
        return np.maximum(np.abs(residual) - self.epsilon, 0.0)

    def _dphi(self, residual: Array) -> Array:
        return np.where(np.abs(residual) > self.epsilon, np.sign(residual), 0.0)

    def _ddphi(self, residual: Array) -> Array:
        return np.zeros_like(residual)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.zeros_like(lower)

    def _conjugate_ratio(self, u: Array) -> Array:
        return np.copysign(self.epsilon, u)

    def _pieces(self) -> list[Piece]:
        epsilon = np.asarray(self.epsilon, dtype=np.float64)
        return [
            Piece(-epsilon, epsilon),
            Piece(-INF, -epsilon, linear=-1.0, constant=-epsilon),
            Piece(epsilon, INF, linear=1.0, constant=-epsilon),
        ]

    def smoothed(self, width: float) -> Loss:
        return SmoothedEpsilonInsensitive(self.epsilon, width)


@dataclass(frozen=True, eq=False, repr=False)
class SmoothedEpsilonInsensitive(_Insensitive):
    """The ε-insensitive loss with its kinks rounded off over a width: its Moreau envelope.

    φ(r) = s²/(2w) for s ≤ w, s − ½w beyond, with s = [|r| − ε]₊ and w the width.

    Parameters
    ----------
    epsilon : float or array of shape (n_samples,), default=0.1
        Half-width of the tube in which the loss is zero; may differ per sample.
    width : float, default=0.1
        Width w of the quadratic pieces; the smoothness constant is 1/w.
    """

    width: float = 0.1
    lipschitz = 1.0
    _dual_interval = (-1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("width", self.width)

    @property
    def smoothness(self) -> float:
        return 1.0 / self.width

    def _phi(self, residual: Array) -> Array:
        excess = np.abs(self._excess(residual))
        inner = np.minimum(excess, self.width)
        return inner * (excess - 0.5 * inner) / self.width

    def _dphi(self, residual: Array) -> Array:
        return np.clip(self._excess(residual) / self.width, -1.0, 1.0)

    def _ddphi(self, residual: Array) -> Array:
        excess = np.abs(self._excess(residual))
        return np.where((excess > 0.0) & (excess < self.width), 1.0 / self.width, 0.0)

    def _floor(self, lower: Array, upper: Array) -> Array:
        inner = np.asarray(self.epsilon)
        outer, _ = _sum_enclosed(inner, self.width)
        inside = ((lower > inner) & (upper < outer)) | ((lower > -outer) & (upper < -inner))
        return np.where(inside, 1.0 / self.width, 0.0)

    def _conjugate_ratio(self, u: Array) -> Array:
        return 0.5 * self.width * u + np.copysign(self.epsilon, u)

    def _pieces(self) -> list[Piece]:
        epsilon, width = np.asarray(self.epsilon, dtype=np.float64), self.width
        pieces = [Piece(-epsilon, epsilon)]
        # each piece ends where it does at the latest, whatever y is added
        within, past = _sum_enclosed(epsilon, width)
        for sign in (-1.0, 1.0):
            near, far, outside = sign * epsilon, sign * within, sign * past
            curved = Piece(
                np.minimum(near, far),
                np.maximum(near, far),
                quadratic=1.0 / width,
                linear=-sign * epsilon / width,
                constant=0.5 * epsilon**2 / width,
            )
            beyond = Piece(
                -INF if sign < 0 else outside,
                outside if sign < 0 else INF,
                linear=sign,
                constant=-epsilon - 0.5 * width,
            )
            pieces += [curved, beyond]
        return pieces


def _sum_enclosed(a: Array, b: float) -> tuple[Array, Array]:
    """a + b rounded down and rounded up: the same where it is a float."""
    rounded = a + b
    # what rounding took away, exactly (Møller and Knuth)
    back = rounded - a
    lost = (a - (rounded - back)) + (b - back)
    down = np.where(lost < 0, np.nextafter(rounded, -INF), rounded)
    return down, np.where(lost > 0, np.nextafter(rounded, INF), rounded)


@dataclass(frozen=True, eq=False, repr=False)
class SquaredEpsilonInsensitive(_Insensitive):
    """φ(r) = ½[|r| − ε]₊², the paper's screening-friendly regression.

    Parameters
    ----------
    epsilon : float or array of shape (n_samples,), default=0.1
        Half-width of the tube in which the loss is zero; may differ per sample.
    """

    smoothness = 1.0
    lipschitz = INF
    _dual_interval = (-INF, INF)

    def _phi(self, residual: Array) -> Array:
        return 0.5 * np.maximum(np.abs(residual) - self.epsilon, 0.0) ** 2

    def _dphi(self, residual: Array) -> Array:
        return self._excess(residual)

    def _ddphi(self, residual: Array) -> Array:
        return np.where(np.abs(residual) > self.epsilon, 1.0, 0.0)

    def _floor(self, lower: Array, upper: Array) -> Array:
        epsilon = np.asarray(self.epsilon)
        return np.where((lower > epsilon) | (upper < -epsilon), 1.0, 0.0)

    def _conjugate_ratio(self, u: Array) -> Array:
        return 0.5 * u + np.copysign(self.epsilon, u)

    def _pieces(self) -> list[Piece]:
        epsilon = np.asarray(self.epsilon, dtype=np.float64)
        constant = 0.5 * epsilon**2
        return [
            Piece(-epsilon, epsilon),
            Piece(-INF, -epsilon, quadratic=1.0, linear=epsilon, constant=constant),
            Piece(epsilon, INF, quadratic=1.0, linear=-epsilon, constant=constant),
        ]
