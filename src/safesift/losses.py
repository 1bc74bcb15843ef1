"""Losses: each one in one class, a function of prediction and target, elementwise.

A loss knows its value, its slope, its curvature, its conjugate and the pieces on which it is
flat, linear or quadratic. It knows nothing of regions: a decision (`safesift.screening`) is the
strict containment of an interval of predictions in a piece.

To add a loss, subclass `MarginLoss` (a function φ of the margin y·prediction, y = ±1) or
`ResidualLoss` (a function φ of the residual prediction − y) and put it into `LOSSES`; the law
tests pick it up from there.

Every loss here is convex, non-negative, and has infimum 0, so that 0 is in the domain of its
conjugate with f*(0) = 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, xlog1py, xlogy

__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MarginLoss",
    "Piece",
    "ResidualLoss",
    "SafeLogistic",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
]

Array = NDArray[np.float64]
_INF = math.inf


@dataclass(frozen=True)
class Piece:
    """An interval on which a loss is ½·quadratic·t² + linear·t + constant.

    Fields may be arrays, one entry per sample. The interval is (lower, upper); decisions need
    strict containment, so whether its ends belong to it does not matter.
    """

    lower: ArrayLike
    upper: ArrayLike
    quadratic: ArrayLike = 0.0
    linear: ArrayLike = 0.0
    constant: ArrayLike = 0.0

    @property
    def is_flat(self) -> bool:
        """Whether the loss is constant on this piece, for every sample."""
        return bool(np.all(self.quadratic == 0) and np.all(self.linear == 0))


class Loss(ABC):
    """A convex loss f(prediction; y), elementwise, with infimum 0.

    Attributes
    ----------
    task : {"classification", "regression"}
        What `y` holds: labels -1 and 1, or real targets.
    smoothness : float
        Lipschitz constant of the slope, infinite where the loss has kinks.
    lipschitz : float
        Lipschitz constant of the loss itself, infinite for quadratic growth.
    quadratic_rays : bool
        Whether c ↦ f*(c·ν) is a quadratic polynomial for c > 0 inside the domain, as it is for
        every piecewise linear-quadratic loss here. The best multiple of a dual point is then
        found without further passes over the samples.
    """

    task: ClassVar[Literal["classification", "regression"]]
    quadratic_rays: ClassVar[bool] = True

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Lipschitz constant of the slope."""

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Lipschitz constant of the loss."""

    @abstractmethod
    def value(self, pred: ArrayLike, y: ArrayLike) -> Array:
        """f(pred; y)."""

    @abstractmethod
    def slope(self, pred: ArrayLike, y: ArrayLike) -> Array:
        """A subgradient of f(·; y) at `pred`: the derivative wherever there is one."""

    @abstractmethod
    def curvature(self, pred: ArrayLike, y: ArrayLike) -> Array:
        """Second derivative of f(·; y) at `pred`, 0 at a kink."""

    @abstractmethod
    def curvature_floor(self, lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Array:
        """A w ≥ 0 with f − ½w·t² convex around [lower, upper].

        0 as soon as the interval touches a kink of the slope, so that a positive floor holds on
        an open interval around [lower, upper] (up to continuity, where the curvature varies).
        """

    @abstractmethod
    def conjugate(self, nu: ArrayLike, y: ArrayLike) -> Array:
        """f*(ν; y) = sup_t tν − f(t; y): +inf outside its domain, never NaN."""

    @abstractmethod
    def dual_interval(self, y: ArrayLike) -> tuple[Array, Array]:
        """The closure of the domain of f*(·; y)."""

    @abstractmethod
    def pieces(self, y: ArrayLike) -> list[Piece]:
        """The flat, linear and quadratic pieces of f(·; y), as intervals of predictions."""

    def smoothed(self, width: float) -> Loss:
        """A smooth loss close to this one, to solve with; itself where it is smooth already."""
        return self

    def take(self, rows: slice | NDArray) -> Loss:
        """The loss of a selection of samples: differs only for per-sample parameters."""
        return self


class MarginLoss(Loss):
    """f(pred; y) = φ(y·pred) with y = ±1. Subclasses give φ as `_phi`, `_dphi` and so on."""

    task = "classification"

    def value(self, pred: ArrayLike, y: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return self._phi(np.multiply(y, pred, dtype=np.float64))

    def slope(self, pred: ArrayLike, y: ArrayLike) -> Array:
        return np.multiply(y, self._dphi(np.multiply(y, pred, dtype=np.float64)))

    def curvature(self, pred: ArrayLike, y: ArrayLike) -> Array:
        return self._ddphi(np.multiply(y, pred, dtype=np.float64))

    def curvature_floor(self, lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Array:
        positive = np.greater(y, 0)
        return self._floor(
            np.where(positive, lower, np.negative(upper)),
            np.where(positive, upper, np.negative(lower)),
        )

    def conjugate(self, nu: ArrayLike, y: ArrayLike) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._conjugate(np.multiply(y, nu, dtype=np.float64))

    def dual_interval(self, y: ArrayLike) -> tuple[Array, Array]:
        lower, upper = self._dual_interval
        positive = np.greater(y, 0)
        return np.where(positive, lower, -upper), np.where(positive, upper, -lower)

    def pieces(self, y: ArrayLike) -> list[Piece]:
        y = np.asarray(y, dtype=np.float64)
        positive = y > 0
        return [
            Piece(
                lower=np.where(positive, piece.lower, -piece.upper),
                upper=np.where(positive, piece.upper, -piece.lower),
                quadratic=np.full_like(y, piece.quadratic),
                linear=y * piece.linear,
                constant=np.full_like(y, piece.constant),
            )
            for piece in self._pieces()
        ]

    @abstractmethod
    def _phi(self, margin: Array) -> Array: ...

    @abstractmethod
    def _dphi(self, margin: Array) -> Array: ...

    @abstractmethod
    def _ddphi(self, margin: Array) -> Array: ...

    @abstractmethod
    def _floor(self, lower: Array, upper: Array) -> Array: ...

    @abstractmethod
    def _conjugate(self, u: Array) -> Array: ...

    @property
    @abstractmethod
    def _dual_interval(self) -> tuple[float, float]: ...

    @abstractmethod
    def _pieces(self) -> list[Piece]: ...


class ResidualLoss(Loss):
    """f(pred; y) = φ(pred − y). Subclasses give φ as `_phi`, `_dphi` and so on.

    The conjugate φ*(u) + u·y is computed as u·(φ*(u)/u + y): the sum would be inf − inf for
    large u and y of opposite signs.
    """

    task = "regression"

    def value(self, pred: ArrayLike, y: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return self._phi(np.subtract(pred, y, dtype=np.float64))

    def slope(self, pred: ArrayLike, y: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return self._dphi(np.subtract(pred, y, dtype=np.float64))

    def curvature(self, pred: ArrayLike, y: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return self._ddphi(np.subtract(pred, y, dtype=np.float64))

    def curvature_floor(self, lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Array:
        return self._floor(np.subtract(lower, y), np.subtract(upper, y))

    def conjugate(self, nu: ArrayLike, y: ArrayLike) -> Array:
        lower, upper = self._dual_interval
        nu = np.asarray(nu, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            inside = nu * (self._conjugate_ratio(nu) + y)
        return np.where((nu < lower) | (nu > upper), _INF, inside)

    def dual_interval(self, y: ArrayLike) -> tuple[Array, Array]:
        lower, upper = self._dual_interval
        zeros = np.zeros(np.shape(y))
        return zeros + lower, zeros + upper

    def pieces(self, y: ArrayLike) -> list[Piece]:
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(over="ignore"):
            return [
                Piece(
                    lower=y + piece.lower,
                    upper=y + piece.upper,
                    quadratic=np.full_like(y, piece.quadratic),
                    linear=piece.linear - piece.quadratic * y,
                    constant=y * (0.5 * piece.quadratic * y - piece.linear) + piece.constant,
                )
                for piece in self._pieces()
            ]

    @abstractmethod
    def _phi(self, residual: Array) -> Array: ...

    @abstractmethod
    def _dphi(self, residual: Array) -> Array: ...

    @abstractmethod
    def _ddphi(self, residual: Array) -> Array: ...

    @abstractmethod
    def _floor(self, lower: Array, upper: Array) -> Array: ...

    @abstractmethod
    def _conjugate_ratio(self, u: Array) -> Array:
        """φ*(u)/u inside the domain, anything at u = 0."""

    @property
    @abstractmethod
    def _dual_interval(self) -> tuple[float, float]: ...

    @abstractmethod
    def _pieces(self) -> list[Piece]: ...


def _non_negative(name: str, value: ArrayLike) -> None:
    if not np.all(np.isfinite(value)) or np.any(np.less(value, 0)):
        raise ValueError(f"{name} must be finite and not negative, got {value!r}.")


# --- classification -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """φ(m) = [1 − m]₊, the loss of the support vector machine. No curvature anywhere.

    Examples
    --------
    >>> from safesift.losses import Hinge
    >>> print(Hinge().value([-1.0, 0.5, 2.0], [1, 1, 1]))
    [2.  0.5 0. ]
    """

    smoothness = _INF
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
        return np.where((u >= -1.0) & (u <= 0.0), u, _INF)

    def _pieces(self) -> list[Piece]:
        return [Piece(1.0, _INF), Piece(-_INF, 1.0, linear=-1.0, constant=1.0)]

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
    lipschitz = _INF
    _dual_interval = (-_INF, 0.0)

    def _phi(self, margin: Array) -> Array:
        return 0.5 * np.maximum(1.0 - margin, 0.0) ** 2

    def _dphi(self, margin: Array) -> Array:
        return -np.maximum(1.0 - margin, 0.0)

    def _ddphi(self, margin: Array) -> Array:
        return np.where(margin < 1.0, 1.0, 0.0)

    def _floor(self, lower: Array, upper: Array) -> Array:
        return np.where(upper < 1.0, 1.0, 0.0)

    def _conjugate(self, u: Array) -> Array:
        return np.where(u <= 0.0, u * (1.0 + 0.5 * u), _INF)

    def _pieces(self) -> list[Piece]:
        return [Piece(1.0, _INF), Piece(-_INF, 1.0, quadratic=1.0, linear=-1.0, constant=0.5)]


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
        return np.where((u >= -1.0) & (u <= 0.0), xlogy(v, v) + xlog1py(1.0 - v, -v), _INF)

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
        _non_negative("mu", self.mu)

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
        return np.where((u >= -1.0) & (u <= 0.0), xlog1py(1.0 - v, -v) + self.mu * v, _INF)

    def _pieces(self) -> list[Piece]:
        return [Piece(1.0 - self.mu, _INF)]


# --- regression ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Squared(ResidualLoss):
    """φ(r) = ½r². One quadratic piece: every sample folds, none can be dropped."""

    smoothness = 1.0
    lipschitz = _INF
    _dual_interval = (-_INF, _INF)

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
        return [Piece(-_INF, _INF, quadratic=1.0)]


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

    def __post_init__(self) -> None:
        _non_negative("delta", self.delta)
        if self.delta == 0:
            raise ValueError("delta must be positive, got 0: use EpsilonInsensitive(epsilon=0).")

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
            Piece(-_INF, -delta, linear=-delta, constant=-0.5 * delta**2),
            Piece(delta, _INF, linear=delta, constant=-0.5 * delta**2),
        ]


@dataclass(frozen=True, eq=False)
class _Insensitive(ResidualLoss):
    """What the two ε-insensitive losses share: a tube of half-width ε, maybe one per sample."""

    epsilon: float | NDArray = 0.1

    def __post_init__(self) -> None:
        _non_negative("epsilon", self.epsilon)
        if np.ndim(self.epsilon) > 1:
            raise ValueError(
                f"epsilon must be a number or one number per sample, got {np.ndim(self.epsilon)} "
                "dimensions."
            )

    def take(self, rows: slice | NDArray) -> Loss:
        if np.ndim(self.epsilon) == 0:
            return self
        return replace(self, epsilon=np.asarray(self.epsilon)[rows])

    def _excess(self, residual: Array) -> Array:
        """Signed distance of the residual to the tube."""
        return residual - np.clip(residual, -np.asarray(self.epsilon), self.epsilon)


@dataclass(frozen=True, eq=False)
class EpsilonInsensitive(_Insensitive):
    """φ(r) = [|r| − ε]₊, the loss of support vector regression. No curvature anywhere.

    Parameters
    ----------
    epsilon : float or array of shape (n_samples,), default=0.1
        Half-width of the tube in which the loss is zero; may differ per sample.
    """

    smoothness = _INF
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
            Piece(-_INF, -epsilon, linear=-1.0, constant=-epsilon),
            Piece(epsilon, _INF, linear=1.0, constant=-epsilon),
        ]

    def smoothed(self, width: float) -> Loss:
        return _SmoothedInsensitive(self.epsilon, width)


@dataclass(frozen=True, eq=False)
class SquaredEpsilonInsensitive(_Insensitive):
    """φ(r) = ½[|r| − ε]₊², the paper's screening-friendly regression.

    Parameters
    ----------
    epsilon : float or array of shape (n_samples,), default=0.1
        Half-width of the tube in which the loss is zero; may differ per sample.
    """

    smoothness = 1.0
    lipschitz = _INF
    _dual_interval = (-_INF, _INF)

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
            Piece(-_INF, -epsilon, quadratic=1.0, linear=epsilon, constant=constant),
            Piece(epsilon, _INF, quadratic=1.0, linear=-epsilon, constant=constant),
        ]


# --- smooth stand-ins: only to make a centre, never to screen ------------------------------------


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


@dataclass(frozen=True, eq=False)
class _SmoothedInsensitive(EpsilonInsensitive):
    """The ε-insensitive loss with its kinks rounded off over (ε, ε + width)."""

    width: float = 0.1

    @property
    def smoothness(self) -> float:
        return 1.0 / self.width

    def _phi(self, residual: Array) -> Array:
        excess = np.abs(self._excess(residual))
        inner = np.minimum(excess, self.width)
        return inner * (excess - 0.5 * inner) / self.width

    def _dphi(self, residual: Array) -> Array:
        return np.clip(self._excess(residual) / self.width, -1.0, 1.0)


LOSSES: dict[str, type[Loss]] = {
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "safe_logistic": SafeLogistic,
    "squared": Squared,
    "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}
