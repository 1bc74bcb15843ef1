"""What every loss offers, and the two ways to make one: of the margin, of the residual."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safesift.arithmetic.devices.arrays import filled, floats
from safesift.arithmetic.numerics import EPS
from safesift.arithmetic.printing import Brief
from safesift.losses.dual_form import DualForm

Array = NDArray[np.float64]
INF = math.inf


@dataclass(frozen=True, repr=False)
class Piece(Brief):
    """An interval on which a loss is ½·quadratic·t² + linear·t + constant.

    Fields may be arrays, one entry per sample. The interval is (lower, upper); decisions need
    strict containment, so whether its ends belong to it does not matter.

    Attributes
    ----------
    lower, upper : float or array of shape (n_samples,)
    quadratic, linear, constant : float or array of shape (n_samples,)
    """

    lower: Any
    upper: Any
    quadratic: Any = 0.0
    linear: Any = 0.0
    constant: Any = 0.0

    @property
    def is_flat(self) -> bool:
        """Whether the loss is constant on this piece, for every sample."""
        return bool(np.all(self.quadratic == 0) and np.all(self.linear == 0))


def shifted(piece: Piece, by: Array) -> Piece:
    """A piece of φ as one of φ(t − by), for every sample."""
    with np.errstate(over="ignore"):
        return Piece(
            lower=by + piece.lower,
            upper=by + piece.upper,
            quadratic=filled(by, piece.quadratic),
            linear=piece.linear - piece.quadratic * by,
            constant=by * (0.5 * piece.quadratic * by - piece.linear) + piece.constant,
        )


class Loss(ABC):
    """A convex loss f(prediction; y), elementwise, with infimum 0.

    Attributes
    ----------
    task : {"classification", "regression", "interval"}
        What `y` holds: labels -1 and 1, real targets, or two columns of lower and upper ends.
    smoothness : float
        Lipschitz constant of the slope, infinite where the loss has kinks.
    proved_smoothness : float
        The same as far as it is proved, infinite where it was only measured: solvers go by the one,
        whatever is certified rests on the other.
    lipschitz : float
        Lipschitz constant of the loss itself, infinite for quadratic growth.
    quadratic_rays : bool
        Whether c ↦ f*(c·ν) is a quadratic polynomial for c > 0 inside the domain, as it is for
        every piecewise linear-quadratic loss here. The best multiple of a dual point is then
        found without further passes over the samples.
    unimodal_curvature : bool
        Whether f'' first rises and then falls, so that a secant of the slope is least at an end
        of any interval.
    curvature_error : float
        By how much, relatively, rounding makes curvature floors larger than they are: 1/width, or
        an exponential of a rounded number.
    precision : float
        Relative error of values, slopes and conjugates, and of the prediction they belong to,
        beyond that of floating-point arithmetic: 0 for closed forms.
    """

    if TYPE_CHECKING:
        # constants of most classes, computed in some

        @property
        def task(self) -> Literal["classification", "regression", "interval"]: ...

        @property
        def quadratic_rays(self) -> bool: ...

        @property
        def unimodal_curvature(self) -> bool: ...

        @property
        def precision(self) -> float: ...

        @property
        def curvature_error(self) -> float: ...

    else:
        task: ClassVar[Literal["classification", "regression", "interval"]]
        quadratic_rays: ClassVar[bool] = True
        unimodal_curvature: ClassVar[bool] = False
        precision: float = 0.0
        curvature_error: float = 8 * EPS

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Lipschitz constant of the slope."""

    @property
    def proved_smoothness(self) -> float:
        """Lipschitz constant of the slope, infinite where none is proved."""
        return self.smoothness

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Lipschitz constant of the loss."""

    @abstractmethod
    def value(self, pred: ArrayLike, y: ArrayLike) -> Array:
        """f(pred; y)."""

    def value_size(self, pred: ArrayLike, y: ArrayLike) -> Array:
        """The size of the terms of f(pred; y), to which its rounding error is relative."""
        return self.value(pred, y)

    @abstractmethod
    def slope(self, pred: ArrayLike, y: ArrayLike) -> Array:
        """A subgradient of f(·; y) at `pred`: the derivative wherever there is one."""

    def slope_error(self, pred: Array, error: Array, y: Array) -> Array:
        """How far `slope(pred, y)` may be from the slopes within `error` of `pred`.

        The Lipschitz constant of the slope times the error. Where none is proved slopes still never
        fall: they lie between those at the two ends.
        """
        if math.isfinite(self.proved_smoothness):
            return self.proved_smoothness * error
        low, here, high = (self.slope(t, y) for t in (pred - error, pred, pred + error))
        size = np.abs(low) + np.abs(here) + np.abs(high)
        return np.maximum(high - here, here - low) + (8 * EPS + self.precision) * size

    @abstractmethod
    def curvature(self, pred: ArrayLike, y: ArrayLike) -> Array:
        """Second derivative of f(·; y) at `pred`, 0 at a kink."""

    @abstractmethod
    def curvature_floor(self, lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Array:
        """A w ≥ 0 with f − ½w·t² convex around [lower, upper].

        0 as soon as the interval touches a kink of the slope, so that a positive floor holds on
        an open interval around [lower, upper] (up to continuity, where the curvature varies).
        """

    def secant_bounds(
        self, pred: Array, error: Array, lower: Array, upper: Array, y: Array
    ) -> tuple[Array, Array]:
        """Bounds on (f'(t) − f'(s))/(t − s) over t in [lower, upper] and |s − pred| ≤ error.

        Where f'' is piecewise constant, or unimodal, the least secant is at an end of the interval
        or at a break between pieces; where it is piecewise constant so is the greatest. Otherwise
        the bounds are the least and the largest curvature of the whole interval.
        """
        from_, to = np.minimum(lower, pred - error), np.maximum(upper, pred + error)
        floor = self.curvature_floor(from_, to, y)
        ceiling = np.minimum(self._curvature_ceiling(from_, to, y), self.proved_smoothness)
        if math.isinf(self.smoothness) or not (self.quadratic_rays or self.unimodal_curvature):
            return floor, ceiling
        least, greatest = np.full_like(floor, INF), np.zeros_like(floor)
        for t in self._breaks(lower, upper, y):
            low, high = self._secants(pred, error, t, y)
            np.minimum(least, low, out=least)
            np.maximum(greatest, high, out=greatest)
        floor = np.maximum(floor, least)
        if self.quadratic_rays:
            ceiling = np.minimum(ceiling, greatest)
        for piece in self.pieces(y):
            # all on one piece: the secant is known without rounding
            inside = (from_ > piece.lower) & (to < piece.upper)
            np.copyto(ceiling, piece.quadratic, where=inside)
            np.copyto(floor, piece.quadratic, where=inside)
        return floor, ceiling

    def _curvature_ceiling(self, lower: Array, upper: Array, y: Array) -> Array:
        """At least the largest f'' on [lower, upper], rounding included."""
        return filled(lower, self.proved_smoothness)

    def _breaks(self, lower: Array, upper: Array, y: Array) -> list[Array]:
        """The ends of the intervals, and the breaks between pieces moved into them."""
        ends = [end for piece in self.pieces(y) for end in (piece.lower, piece.upper)]
        return [lower, upper, *(np.clip(t, lower, upper) for t in ends if np.isfinite(t).any())]

    def _secants(self, pred: Array, error: Array, t: Array, y: Array) -> tuple[Array, Array]:
        """The secant from pred to t, rounded downwards and upwards."""
        here, there = self.slope(pred, y), self.slope(t, y)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            rise, run = np.abs(there - here), np.abs(t - pred)
            error = error + 4 * EPS * (np.abs(t) + np.abs(pred))
            noise = self.proved_smoothness * error + 8 * EPS * (np.abs(there) + np.abs(here))
            low = np.maximum(rise - noise, 0.0) / (run + error) * (1.0 - 8 * EPS)
            high = (rise + noise) / np.maximum(run - error, 0.0) * (1.0 + 8 * EPS)
        return np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), INF, high)

    @abstractmethod
    def conjugate(self, nu: ArrayLike, y: ArrayLike) -> Array:
        """f*(ν; y) = sup_t tν − f(t; y): +inf outside its domain, never NaN."""

    @abstractmethod
    def conjugate_size(self, nu: ArrayLike, y: ArrayLike) -> Array:
        """The size of the terms of f*(ν; y), to which its rounding error is relative."""

    @abstractmethod
    def dual_interval(self, y: ArrayLike) -> tuple[Array, Array]:
        """The closure of the domain of f*(·; y)."""

    def dual_form(self, y: ArrayLike) -> DualForm | None:
        """f*(·; y) as a parabola with a kink at 0; None where it is none, or known roughly only.

        With quadratic rays and f*(0) = 0 each side of f* is ½a·v² + b·v. The b are the ends of
        ∂f*(0) = argmin f (Fenchel–Young), and where both sides have the same a it is one over the
        smoothness: f is L-smooth just where f* is 1/L-strongly convex.
        """
        kink = self._dual_kink(y)
        if kink is None or not self.quadratic_rays or self.precision > 0:
            return None
        return DualForm(1.0 / self.smoothness, *kink, *self.dual_interval(y))

    def entropy_signs(self, y: ArrayLike) -> Array | None:
        """±1 where f*(ν; y) = u·log u + (1 − u)·log(1 − u) with u = −sign·ν; None where not."""
        return None

    def loops(self, y: ArrayLike) -> tuple[Any, ...] | None:
        """What `arithmetic.compiled.samples` knows the loss by; None where it has no loop for it.

        The conjugate of a piecewise linear-quadratic loss says all there is.
        """
        form = self.dual_form(y)
        if form is None:
            return None
        return form.low, form.high, form.least, form.most, form.curvature

    def _dual_kink(self, y: ArrayLike) -> tuple[Array, Array] | None:
        """The ends of argmin f(·; y); None unless both sides of f* have the same curvature."""
        return None

    @abstractmethod
    def pieces(self, y: ArrayLike) -> list[Piece]:
        """The flat, linear and quadratic pieces of f(·; y), as intervals of predictions."""

    def anchors(self, y: ArrayLike) -> Array:
        """The finite numbers that the targets are made of, one row each: y itself, or both ends.

        Rounding errors of a loss are relative to the largest of them, and the best constant
        prediction lies among them. An infinite end of an interval is replaced by the other one.
        """
        return floats(y)[None]

    def smoothed(self, width: float) -> Loss:
        """A smooth loss close to this one, to solve with; itself where it is smooth already."""
        return self

    @property
    def n_parameters(self) -> int | None:
        """For how many samples there are parameters, None where all share one."""
        return None

    def take(self, rows: slice | NDArray) -> Loss:
        """The loss of a selection of samples: differs only for per-sample parameters."""
        return self


# what a loss of the margin says by the margin, unless it says so itself
_OF_THE_MARGIN = ("value", "slope", "conjugate", "dual_form", "dual_interval", "_dual_kink")


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
        lower, upper = floats(lower), floats(upper)
        return self._floor(*_mirrored(lower, upper, y))

    def conjugate(self, nu: ArrayLike, y: ArrayLike) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._conjugate(np.multiply(y, nu, dtype=np.float64))

    def conjugate_size(self, nu: ArrayLike, y: ArrayLike) -> Array:
        return np.abs(nu) * (self._edge_size + np.abs(nu) / min(self.smoothness, 1.0))

    def dual_interval(self, y: ArrayLike) -> tuple[Array, Array]:
        return _mirrored(*self._dual_interval, y)

    def loops(self, y: ArrayLike) -> tuple[Any, ...] | None:
        """Of the margin, as long as it is all by which labels count.

        A class that says something else of its values or its conjugate has that read.
        """
        own, minimisers = type(self), self._minimisers
        told = all(getattr(own, name) is getattr(MarginLoss, name) for name in _OF_THE_MARGIN)
        if minimisers is None or not told or not self.quadratic_rays or self.precision > 0:
            return super().loops(y)
        ends = (*minimisers, *self._dual_interval)
        if any(map(np.ndim, ends)):
            return super().loops(y)
        return floats(y), *map(float, ends), 1.0 / self.smoothness

    def _dual_kink(self, y: ArrayLike) -> tuple[Array, Array] | None:
        return None if self._minimisers is None else _mirrored(*self._minimisers, y)

    def pieces(self, y: ArrayLike) -> list[Piece]:
        y = floats(y)
        return [
            Piece(
                *_mirrored(piece.lower, piece.upper, y),
                quadratic=filled(y, piece.quadratic),
                linear=y * piece.linear,
                constant=filled(y, piece.constant),
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

    @property
    def _minimisers(self) -> tuple[float, float] | None:
        """The ends of argmin φ, declared where both sides of φ* have the same curvature."""
        return None

    @property
    def _edge_size(self) -> float:
        """The size of the margins at which the loss bends."""
        return 2.0

    @abstractmethod
    def _pieces(self) -> list[Piece]: ...


def _mirrored(lower: float | Array, upper: float | Array, y: ArrayLike) -> tuple[Array, Array]:
    """An interval of margins as one of predictions, or of slopes, and the other way round."""
    positive = np.greater(y, 0)
    return np.where(positive, lower, -upper), np.where(positive, upper, -lower)


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
        return self._floor(
            np.subtract(lower, y, dtype=np.float64), np.subtract(upper, y, dtype=np.float64)
        )

    def conjugate(self, nu: ArrayLike, y: ArrayLike) -> Array:
        lower, upper = self._dual_interval
        nu = floats(nu)
        with np.errstate(over="ignore", invalid="ignore"):
            inside = nu * np.add(self._conjugate_ratio(nu), y)
        return np.where((nu < lower) | (nu > upper), INF, inside)

    def conjugate_size(self, nu: ArrayLike, y: ArrayLike) -> Array:
        nu = floats(nu)
        return np.abs(nu) * (np.abs(self._conjugate_ratio(nu)) + np.abs(y))

    def dual_interval(self, y: ArrayLike) -> tuple[Array, Array]:
        lower, upper = self._dual_interval
        zeros = np.zeros_like(floats(y))
        return zeros + lower, zeros + upper

    def _dual_kink(self, y: ArrayLike) -> tuple[Array, Array] | None:
        if self._minimisers is None:
            return None
        lower, upper = self._minimisers
        return np.add(y, lower, dtype=np.float64), np.add(y, upper, dtype=np.float64)

    def pieces(self, y: ArrayLike) -> list[Piece]:
        y = floats(y)
        return [shifted(piece, y) for piece in self._pieces()]

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

    @property
    def _minimisers(self) -> tuple[ArrayLike, ArrayLike] | None:
        """The ends of argmin φ, declared where both sides of φ* have the same curvature."""
        return None

    @abstractmethod
    def _pieces(self) -> list[Piece]: ...
