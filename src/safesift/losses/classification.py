"""Losses of the margin y·prediction, for labels -1 and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from safesift.arithmetic.devices.functions import expit, xlog1py, xlogy
from safesift.arithmetic.numerics import EPS
from safesift.losses.base import INF, Array, Loss, MarginLoss, Piece
from safesift.losses.numeric import numeric_version
from safesift.losses.omegas import Quadratic
from safesift.parameters import require_finite, require_non_negative, require_positive

# (e^z − 1 − z)/z² as a polynomial, highest power first, to 1e-17 on [−1, 0]
_EXPONENTIAL_REST = [1.0 / math.factorial(k) for k in range(20, 1, -1)]


@dataclass(frozen=True)
class _Threshold(MarginLoss):
    """What the hinges share: flat for margins of 1 − μ or more."""

    mu: float = 0.0

    def __post_init__(self) -> None:
        require_finite("mu", self.mu)

    @property
    def _edge(self) -> float:
        """Where the flat piece begins."""
        return 1.0 - self.mu

    @property
    def _minimisers(self) -> tuple[float, float]:
        return self._edge, INF

    @property
    def _edge_size(self) -> float:
        return 2.0 + abs(self.mu)

    def _short(self, margin: Array) -> Array:
        """How far the margin is below the flat piece."""
        return np.maximum(self._edge - margin, 0.0)


@dataclass(frozen=True)
class Hinge(_Threshold):
    """φ(m) = [1 − μ − m]₊, the loss of the support vector machine. No curvature anywhere.

    Parameters
    ----------
    mu : float, default=0.0
        Moves the flat piece to the left: it is [1 − μ, ∞).

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
        return self._short(margin)

    def _dphi(self, margin: Array) -> Array:
        return np.where(margin < self._edge, -1.0, 0.0)

    def _ddphi(self, margin: Array) -> Array:
        return np.zeros_like(margin, dtype=np.float64)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.zeros_like(lower)

    def _conjugate(self, u: Array) -> Array:
        return np.where((u >= -1.0) & (u <= 0.0), u * self._edge, INF)

    def _pieces(self) -> list[Piece]:
        edge = self._edge
        return [Piece(edge, INF), Piece(-INF, edge, linear=-1.0, constant=edge)]

    def smoothed(self, width: float) -> Loss:
        return SmoothedHinge(self.mu, width)


@dataclass(frozen=True)
class SquaredHinge(_Threshold):
    """φ(m) = ½[1 − μ − m]₊². Flat for m ≥ 1 − μ, curvature 1 below.

    Parameters
    ----------
    mu : float, default=0.0
        Moves the flat piece to the left: it is [1 − μ, ∞).

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
        return 0.5 * self._short(margin) ** 2

    def _dphi(self, margin: Array) -> Array:
        return -self._short(margin)

    def _ddphi(self, margin: Array) -> Array:
        return np.where(margin < self._edge, 1.0, 0.0)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.where(upper < self._edge, 1.0, 0.0)

    def _conjugate(self, u: Array) -> Array:
        return np.where(u <= 0.0, u * (self._edge + 0.5 * u), INF)

    def _pieces(self) -> list[Piece]:
        edge = self._edge
        curved = Piece(-INF, edge, quadratic=1.0, linear=-edge, constant=0.5 * edge**2)
        return [Piece(edge, INF), curved]


@dataclass(frozen=True)
class SmoothedHinge(_Threshold):
    """The hinge with its kink rounded off over a width: its Moreau envelope.

    φ(m) = s²/(2w) for s ≤ w, s − ½w beyond, with s = [1 − μ − m]₊ and w the width.

    Parameters
    ----------
    mu : float, default=0.0
        Moves the flat piece to the left: it is [1 − μ, ∞).
    width : float, default=0.1
        Width w of the quadratic piece; the smoothness constant is 1/w.
    """

    width: float = 0.1
    lipschitz = 1.0
    _dual_interval = (-1.0, 0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("width", self.width)

    @property
    def smoothness(self) -> float:
        return 1.0 / self.width

    def _phi(self, margin: Array) -> Array:
        short = self._short(margin)
        inner = np.minimum(short, self.width)
        return inner * (short - 0.5 * inner) / self.width

    def _dphi(self, margin: Array) -> Array:
        return -np.minimum(self._short(margin) / self.width, 1.0)

    def _ddphi(self, margin: Array) -> Array:
        short = self._short(margin)
        return np.where((short > 0.0) & (short < self.width), 1.0 / self.width, 0.0)

    def _floor(self, lower: Array, upper: Array) -> Array:
        inside = (upper < self._edge) & (lower > self._edge - self.width)
        return np.where(inside, 1.0 / self.width, 0.0)

    def _conjugate(self, u: Array) -> Array:
        inside = (u >= -1.0) & (u <= 0.0)
        return np.where(inside, u * (self._edge + 0.5 * self.width * u), INF)

    def _pieces(self) -> list[Piece]:
        edge, width = self._edge, self.width
        return [
            Piece(edge, INF),
            Piece(
                edge - width,
                edge,
                quadratic=1.0 / width,
                linear=-edge / width,
                constant=0.5 * edge**2 / width,
            ),
            Piece(-INF, edge - width, linear=-1.0, constant=edge - 0.5 * width),
        ]


@dataclass(frozen=True)
class AbsoluteMargin(MarginLoss):
    """φ(m) = |1 − m|: least absolute deviations from the label. Flat nowhere."""

    smoothness = INF
    lipschitz = 1.0
    _dual_interval = (-1.0, 1.0)
    _minimisers = (1.0, 1.0)

    def _phi(self, margin: Array) -> Array:
        return np.abs(margin - 1.0)

    def _dphi(self, margin: Array) -> Array:
        return np.sign(margin - 1.0)

    def _ddphi(self, margin: Array) -> Array:
        return np.zeros_like(margin)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.zeros_like(lower)

    def _conjugate(self, u: Array) -> Array:
        return np.where(np.abs(u) <= 1.0, u, INF)

    def _pieces(self) -> list[Piece]:
        return [
            Piece(-INF, 1.0, linear=-1.0, constant=1.0),
            Piece(1.0, INF, linear=1.0, constant=-1.0),
        ]

    def smoothed(self, width: float) -> Loss:
        return numeric_version(self).convolved(Quadratic(), width)


@dataclass(frozen=True)
class SquaredMargin(MarginLoss):
    """φ(m) = ½(1 − m)²: least squares on the labels. One quadratic piece, flat nowhere."""

    smoothness = 1.0
    lipschitz = INF
    _dual_interval = (-INF, INF)
    _minimisers = (1.0, 1.0)

    def _phi(self, margin: Array) -> Array:
        return 0.5 * (1.0 - margin) ** 2

    def _dphi(self, margin: Array) -> Array:
        return margin - 1.0

    def _ddphi(self, margin: Array) -> Array:
        return np.ones_like(margin)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.ones_like(lower)

    def _conjugate(self, u: Array) -> Array:
        return u * (1.0 + 0.5 * u)

    def _pieces(self) -> list[Piece]:
        return [Piece(-INF, INF, quadratic=1.0, linear=-1.0, constant=0.5)]


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """φ(m) = log(1 + e^{−m}). No flat region: no sample can ever be dropped."""

    smoothness = 0.25
    lipschitz = 1.0
    quadratic_rays = False
    unimodal_curvature = True
    _dual_interval = (-1.0, 0.0)

    def _phi(self, margin: Array) -> Array:
        return np.logaddexp(0.0, -margin)

    def _dphi(self, margin: Array) -> Array:
        return -expit(-margin)

    def _ddphi(self, margin: Array) -> Array:
        return expit(margin) * expit(-margin)

    def entropy_signs(self, y: ArrayLike) -> Array:
        return np.asarray(y, dtype=np.float64)

    def loops(self, y: ArrayLike) -> tuple[Any, ...]:
        return (np.asarray(y, dtype=np.float64),)

    def _floor(self, lower: Array, upper: Array) -> Array:
        # φ'' has one maximum, at 0: on an interval it is least at one of the ends
        return np.minimum(self._ddphi(lower), self._ddphi(upper))

    def _curvature_ceiling(self, lower: Array, upper: Array, y: Array) -> Array:
        # φ'' is even: greatest at the point next to 0, whatever the label
        return self._ddphi(np.clip(0.0, lower, upper)) * (1.0 + 1e-12)

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
    unimodal_curvature = True
    _dual_interval = (-1.0, 0.0)

    def __post_init__(self) -> None:
        require_non_negative("mu", self.mu)

    @property
    def _edge_size(self) -> float:
        return 2.0 + self.mu

    @property
    def curvature_error(self) -> float:
        # e^z for a z ≥ −745 that is rounded, and μ − 1 with it
        return (400.0 + self.mu) * EPS

    def _depth(self, margin: Array) -> Array:
        """z = min(m + μ − 1, 0): how far the margin is below the flat region."""
        return np.minimum(margin + (self.mu - 1.0), 0.0)

    def _phi(self, margin: Array) -> Array:
        z = self._depth(margin)
        # e^z − 1 − z cancels for small z: the series there
        near = z * z * np.polyval(_EXPONENTIAL_REST, np.maximum(z, -1.0))
        return np.where(z > -1.0, near, np.expm1(z) - z)

    def _dphi(self, margin: Array) -> Array:
        return np.expm1(self._depth(margin))

    def _ddphi(self, margin: Array) -> Array:
        z = self._depth(margin)
        return np.where(z < 0.0, np.exp(z), 0.0)

    def loops(self, y: ArrayLike) -> tuple[Any, ...]:
        return np.asarray(y, dtype=np.float64), 1.0 - float(self.mu)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.where(self._depth(upper) < 0.0, np.exp(self._depth(lower)), 0.0)

    def _curvature_ceiling(self, lower: Array, upper: Array, y: Array) -> Array:
        # φ'' rises up to the flat region
        margin = np.where(np.greater(y, 0), upper, -lower)
        return np.exp(self._depth(margin)) * (1.0 + 1e-12)

    def _conjugate(self, u: Array) -> Array:
        v = np.clip(-u, 0.0, 1.0)
        return np.where((u >= -1.0) & (u <= 0.0), xlog1py(1.0 - v, -v) + self.mu * v, INF)

    def _pieces(self) -> list[Piece]:
        return [Piece(1.0 - self.mu, INF)]
