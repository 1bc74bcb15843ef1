"""Losses of the margin y·prediction, for labels -1 and 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from safesift.losses.base import INF, Array, Loss, MarginLoss, Piece, require_non_negative


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """φ(m) = [1 − m]₊, the loss of the support vector machine. No curvature anywhere.

    Examples
    --------
    >>> from safesift.losses import Hinge
    >>> print(Hinge().value([-1.0, 0.5, 2.0], [1, 1, 1]))
    [2.  0.5 0. ]
    """

    smoothness = INF
    lipschitz = 1.0
    _dual_interval = (-1.0, 0.0)

    def _phi(self, margin: Array) -> Array:
        return np.maximum(1.0 - margin, 0.0)

    def _dphi(self, margin: Array) -> Array:
        return np.where(margin < 1.0, -1.0, 0.0)

    def _ddphi(self, margin: Array) -> Array:
        return np.zeros_like(margin, dtype=np.float64)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.zeros_like(lower)

    def _conjugate(self, u: Array) -> Array:
        return np.where((u >= -1.0) & (u <= 0.0), u, INF)

    def _pieces(self) -> list[Piece]:
        return [Piece(1.0, INF), Piece(-INF, 1.0, linear=-1.0, constant=1.0)]

    def smoothed(self, width: float) -> Loss:
        return _SmoothedHinge(width)


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """φ(m) = ½[1 − m]₊². Flat for m ≥ 1, curvature 1 below.

    Examples
    --------
    >>> from safesift.losses import SquaredHinge
    >>> print(SquaredHinge().value([-1.0, 0.5, 2.0], [1, 1, 1]))
    [2.    0.125 0.   ]
    """

    smoothness = 1.0
    lipschitz = INF
    _dual_interval = (-INF, 0.0)

    def _phi(self, margin: Array) -> Array:
        return 0.5 * np.maximum(1.0 - margin, 0.0) ** 2

    def _dphi(self, margin: Array) -> Array:
        return -np.maximum(1.0 - margin, 0.0)

    def _ddphi(self, margin: Array) -> Array:
        return np.where(margin < 1.0, 1.0, 0.0)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.where(upper < 1.0, 1.0, 0.0)

    def _conjugate(self, u: Array) -> Array:
        return np.where(u <= 0.0, u * (1.0 + 0.5 * u), INF)

    def _pieces(self) -> list[Piece]:
        return [Piece(1.0, INF), Piece(-INF, 1.0, quadratic=1.0, linear=-1.0, constant=0.5)]


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """φ(m) = log(1 + e^{−m}). No flat region: no sample can ever be dropped."""

    smoothness = 0.25
    lipschitz = 1.0
    quadratic_rays = False
    _dual_interval = (-1.0, 0.0)

    def _phi(self, margin: Array) -> Array:
        return np.logaddexp(0.0, -margin)

    def _dphi(self, margin: Array) -> Array:
        return -expit(-margin)

    def _ddphi(self, margin: Array) -> Array:
        return expit(margin) * expit(-margin)

    def _floor(self, lower: Array, upper: Array) -> Array:
        # φ'' has one maximum, at 0: on an interval it is least at one of the ends
        return np.minimum(self._ddphi(lower), self._ddphi(upper))

    def _conjugate(self, u: Array) -> Array:
        v = np.clip(-u, 0.0, 1.0)
        return np.where((u >= -1.0) & (u <= 0.0), xlogy(v, v) + xlog1py(1.0 - v, -v), INF)

    def _pieces(self) -> list[Piece]:
        return []


@dataclass(frozen=True)
class SafeLogistic(MarginLoss):
    """φ(m) = e^{m+μ−1} − (m + μ) for m + μ ≤ 1, else 0: a logistic-like loss with a flat region.

    Its conjugate is φ*(−v) = (1 − v)·log(1 − v) + μv on [0, 1]. Flat for m ≥ 1 − μ, smooth, and
    asymptotically of slope −1, like the logistic loss. (The paper's text has the sign of Ω and
    the flat set differently; see the errata in the documentation.)

    Parameters
    ----------
    mu : float, default=0.0
        Moves the flat region to the left: the larger, the more samples can be dropped.
    """

    mu: float = 0.0
    smoothness = 1.0
    lipschitz = 1.0
    quadratic_rays = False
    _dual_interval = (-1.0, 0.0)

    def __post_init__(self) -> None:
        require_non_negative("mu", self.mu)

    def _depth(self, margin: Array) -> Array:
        """z = min(m + μ − 1, 0): how far the margin is below the flat region."""
        return np.minimum(margin + (self.mu - 1.0), 0.0)

    def _phi(self, margin: Array) -> Array:
        z = self._depth(margin)
        # e^z − 1 − z cancels for small z: the series there, to 1e-16 relative
        near = z * z * (0.5 + z * (1 / 6 + z * (1 / 24 + z * (1 / 120 + z / 720))))
        return np.where(z > -1e-2, near, np.expm1(z) - z)

    def _dphi(self, margin: Array) -> Array:
        return np.expm1(self._depth(margin))

    def _ddphi(self, margin: Array) -> Array:
        z = self._depth(margin)
        return np.where(z < 0.0, np.exp(z), 0.0)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.where(self._depth(upper) < 0.0, np.exp(self._depth(lower)), 0.0)

    def _conjugate(self, u: Array) -> Array:
        v = np.clip(-u, 0.0, 1.0)
        return np.where((u >= -1.0) & (u <= 0.0), xlog1py(1.0 - v, -v) + self.mu * v, INF)

    def _pieces(self) -> list[Piece]:
        return [Piece(1.0 - self.mu, INF)]


@dataclass(frozen=True)
class _SmoothedHinge(Hinge):
    """The hinge with its kink rounded off over (1 − width, 1): its Moreau envelope, shifted."""

    width: float = 0.1

    @property
    def smoothness(self) -> float:
        return 1.0 / self.width

    def _phi(self, margin: Array) -> Array:
        short = np.maximum(1.0 - margin, 0.0)
        inner = np.minimum(short, self.width)
        return inner * (short - 0.5 * inner) / self.width

    def _dphi(self, margin: Array) -> Array:
        return np.clip((margin - 1.0) / self.width, -1.0, 0.0)
