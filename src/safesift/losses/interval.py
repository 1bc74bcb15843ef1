"""Losses of interval targets: zero inside [lower, upper], growing outside.

The target of a sample is a pair (lower, upper); either end may be infinite, and both may coincide.
With intervals [y − ε, y + ε] these are the ε-insensitive losses.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from safesift.arithmetic.devices.arrays import floats
from safesift.losses.base import INF, Array, Loss, Piece, shifted
from safesift.parameters import require_positive


class IntervalLoss(Loss):
    """f(pred; [l, u]) = ψ(distance of pred to [l, u]); targets have two columns, l and u.

    ψ is convex and 0 at 0 only, so that [l, u] is where the loss is least.

    The conjugate ψ*(|ν|) + max(l·ν, u·ν) is computed as ν·(ψ*(|ν|)/ν + end): the sum would be
    inf − inf for large ν and ends. It is +inf on the side of an infinite end.
    """

    task = "interval"

    def value(self, pred: ArrayLike, y: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return self._psi(np.abs(excess(pred, y)))

    def slope(self, pred: ArrayLike, y: ArrayLike) -> Array:
        beyond = excess(pred, y)
        return np.copysign(self._dpsi(np.abs(beyond)), beyond)

    def curvature(self, pred: ArrayLike, y: ArrayLike) -> Array:
        return self._ddpsi(np.abs(excess(pred, y)))

    def curvature_floor(self, lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Array:
        low, high = ends(y)
        lower, upper = floats(lower), floats(upper)
        with np.errstate(over="ignore", invalid="ignore"):
            below = np.where(np.less(upper, low), self._floor(low - upper, low - lower), 0.0)
            above = np.where(np.greater(lower, high), self._floor(lower - high, upper - high), 0.0)
        return np.maximum(below, above)

    def conjugate(self, nu: ArrayLike, y: ArrayLike) -> Array:
        low, high = ends(y)
        nu = floats(nu)
        end = np.where(nu > 0, high, low)
        with np.errstate(over="ignore", invalid="ignore"):
            inside = np.where(nu == 0, 0.0, nu * (self._conjugate_ratio(nu) + end))
        lower, upper = self.dual_interval(y)
        return np.where((nu < lower) | (nu > upper), INF, inside)

    def conjugate_size(self, nu: ArrayLike, y: ArrayLike) -> Array:
        low, high = ends(y)
        nu = floats(nu)
        end = np.abs(np.where(nu > 0, high, low))
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(nu) * (np.abs(self._conjugate_ratio(nu)) + end)
        return np.where(nu == 0, 0.0, size)

    def dual_interval(self, y: ArrayLike) -> tuple[Array, Array]:
        low, high = ends(y)
        steepest = self.lipschitz
        return np.where(np.isinf(low), 0.0, -steepest), np.where(np.isinf(high), 0.0, steepest)

    def _dual_kink(self, y: ArrayLike) -> tuple[Array, Array]:
        # both sides of f* have the curvature of ψ*; compiled steps want arrays in one piece
        low, high = ends(y)
        return np.ascontiguousarray(low), np.ascontiguousarray(high)

    def anchors(self, y: ArrayLike) -> Array:
        low, high = ends(y)
        return np.stack([np.where(np.isinf(low), high, low), np.where(np.isinf(high), low, high)])

    def pieces(self, y: ArrayLike) -> list[Piece]:
        low, high = ends(y)
        zeros = np.zeros_like(low)
        pieces = [Piece(low, high, zeros, zeros, zeros)]
        for end, sign in ((low, -1.0), (high, 1.0)):
            pieces += [_placed(piece, end, sign) for piece in self._outer_pieces()]
        return pieces

    @abstractmethod
    def _psi(self, distance: Array) -> Array: ...

    @abstractmethod
    def _dpsi(self, distance: Array) -> Array: ...

    @abstractmethod
    def _ddpsi(self, distance: Array) -> Array: ...

    @abstractmethod
    def _floor(self, nearest: Array, farthest: Array) -> Array:
        """The least curvature of ψ between two positive distances."""

    @abstractmethod
    def _conjugate_ratio(self, nu: Array) -> Array:
        """ψ*(|ν|)/ν inside the domain, anything at ν = 0."""

    @abstractmethod
    def _outer_pieces(self) -> list[Piece]:
        """The pieces of ψ, on (0, ∞)."""


def ends(y: ArrayLike) -> tuple[Array, Array]:
    """Lower and upper ends of interval targets."""
    y = floats(y)
    return y[..., 0], y[..., 1]


def excess(pred: ArrayLike, y: ArrayLike) -> Array:
    """Signed distance of a prediction to its interval, NaN for a prediction that is."""
    pred, (low, high) = floats(pred), ends(y)
    with np.errstate(over="ignore", invalid="ignore"):
        inside = np.where(np.isnan(pred), np.nan, 0.0)
        return np.where(pred > high, pred - high, np.where(pred < low, pred - low, inside))


def _placed(piece: Piece, end: Array, sign: float) -> Piece:
    """A piece of ψ(sign·(t − end)) as a piece in t; of no extent where the end is infinite."""
    lower, upper = (piece.lower, piece.upper) if sign > 0 else (-piece.upper, -piece.lower)
    turned = replace(piece, lower=lower, upper=upper, linear=sign * piece.linear)
    placed = shifted(turned, np.where(np.isinf(end), 0.0, end))
    return replace(placed, lower=end + lower, upper=end + upper)


@dataclass(frozen=True)
class SquaredInterval(IntervalLoss):
    """f = ½·inf_{b ∈ [l, u]} (pred − b)²: interval regression.

    Examples
    --------
    >>> from safesift.losses import SquaredInterval
    >>> print(SquaredInterval().value([0.0, 3.0], [[1.0, 2.0], [1.0, float("inf")]]))
    [0.5 0. ]
    """

    smoothness = 1.0
    lipschitz = INF

    def _psi(self, distance: Array) -> Array:
        return 0.5 * distance**2

    def _dpsi(self, distance: Array) -> Array:
        return distance

    def _ddpsi(self, distance: Array) -> Array:
        return np.where(distance > 0.0, 1.0, 0.0)

    def _floor(self, nearest: Array, farthest: Array) -> Array:
        return np.ones_like(nearest)

    def _conjugate_ratio(self, nu: Array) -> Array:
        return 0.5 * nu

    def _outer_pieces(self) -> list[Piece]:
        return [Piece(0.0, INF, quadratic=1.0)]


@dataclass(frozen=True)
class AbsoluteInterval(IntervalLoss):
    """f = inf_{b ∈ [l, u]} |pred − b|: robust, with kinks at both ends.

    Examples
    --------
    >>> from safesift.losses import AbsoluteInterval
    >>> print(AbsoluteInterval().value([0.0, 3.0], [[1.0, 2.0], [1.0, float("inf")]]))
    [1. 0.]
    """

    smoothness = INF
    lipschitz = 1.0

    def _psi(self, distance: Array) -> Array:
        return distance

    def _dpsi(self, distance: Array) -> Array:
        return np.where(distance > 0.0, 1.0, 0.0)

    def _ddpsi(self, distance: Array) -> Array:
        return np.zeros_like(distance)

    def _floor(self, nearest: Array, farthest: Array) -> Array:
        return np.zeros_like(nearest)

    def _conjugate_ratio(self, nu: Array) -> Array:
        return np.zeros_like(nu)

    def _outer_pieces(self) -> list[Piece]:
        return [Piece(0.0, INF, linear=1.0)]

    def smoothed(self, width: float) -> Loss:
        return SmoothedInterval(width)


@dataclass(frozen=True)
class SmoothedInterval(IntervalLoss):
    """The absolute interval loss with its kinks rounded off over a width: its Moreau envelope.

    f = d²/(2w) for d ≤ w, d − ½w beyond, with d the distance to the interval.

    Parameters
    ----------
    width : float, default=0.1
        Width w of the quadratic pieces; the smoothness constant is 1/w.
    """

    width: float = 0.1
    lipschitz = 1.0

    def __post_init__(self) -> None:
        require_positive("width", self.width)

    @property
    def smoothness(self) -> float:
        return 1.0 / self.width

    def _psi(self, distance: Array) -> Array:
        inner = np.minimum(distance, self.width)
        return inner * (distance - 0.5 * inner) / self.width

    def _dpsi(self, distance: Array) -> Array:
        return np.minimum(distance / self.width, 1.0)

    def _ddpsi(self, distance: Array) -> Array:
        return np.where((distance > 0.0) & (distance < self.width), 1.0 / self.width, 0.0)

    def _floor(self, nearest: Array, farthest: Array) -> Array:
        return np.where(farthest < self.width, 1.0 / self.width, 0.0)

    def _conjugate_ratio(self, nu: Array) -> Array:
        return 0.5 * self.width * nu

    def _outer_pieces(self) -> list[Piece]:
        return [
            Piece(0.0, self.width, quadratic=1.0 / self.width),
            Piece(self.width, INF, linear=1.0, constant=-0.5 * self.width),
        ]
