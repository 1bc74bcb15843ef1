"""Losses from Python functions: any convex function of the margin or of the residual."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from safesift.losses.base import Array, Loss, MarginLoss, Piece, ResidualLoss
from safesift.losses.convolved import Convolved
from safesift.losses.graph import Graph, trace
from safesift.losses.omegas import L1, DualTerm, Omega
from safesift.losses.scalar import Function, ScalarFunction, require_callable
from safesift.parameters import check_positive

Floor = Callable[[Array, Array], Array]
# what interpolated slopes, and differences of slopes, may add to the rate at which slopes grow
_NOISE = 1e-3
# the term of a loss that is not convolved with anything
_NOTHING = DualTerm(L1(), 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class _Numeric(Loss):
    """What the two numeric losses share: φ is a `Convolved`, of limited precision.

    The numeric error is taken into account like a rounding error: `precision` enters every bound
    of `Problem`, and the flat piece is shrunk by it.
    """

    phi: Convolved
    floor: Floor | None = None
    quadratic_rays = False

    @property
    def precision(self) -> float:
        return self.phi.graph.function.precision

    @property
    def smoothness(self) -> float:
        return self.phi.smoothness

    @property
    def proved_smoothness(self) -> float:
        return self.phi.proved_smoothness

    @property
    def lipschitz(self) -> float:
        return self.phi.lipschitz

    @property
    def flat(self) -> tuple[float, float] | None:
        """The flat interval of φ, None where φ is flat in one point at most."""
        low, high = self.phi.flat
        return (low, high) if low < high else None

    def smoothed(self, width: float) -> Loss:
        if math.isfinite(self.smoothness):
            return self
        term = self.phi.term
        return replace(self, phi=replace(self.phi, term=replace(term, width=term.width + width)))

    def convolved(self, omega: Omega, mu: float) -> Self:
        """The infimum convolution with μΩ; of a loss that is not one already."""
        if self.phi.term != _NOTHING:
            raise ValueError(
                "loss is an infimum convolution already: convolve the original loss once, with "
                "an omega that is the sum of both."
            )
        return replace(self, phi=replace(self.phi, term=DualTerm(omega, mu)))

    def value_size(self, pred: ArrayLike, y: ArrayLike) -> Array:
        return self.value(pred, y) + self.phi.graph.level

    def __repr__(self) -> str:
        function = self.phi.graph.function.function
        name = getattr(function, "__qualname__", type(function).__name__).split(".")[-1]
        term = self.phi.term
        added = "" if term == _NOTHING else f", omega={type(term.omega).__name__}, mu={term.mu:g}"
        return f"{type(self).__name__}({name}{added})"

    def _phi(self, t: Array) -> Array:
        return self.phi.value(t)

    def _dphi(self, t: Array) -> Array:
        return self.phi.slope(t)

    def _ddphi(self, t: Array) -> Array:
        return self.phi.curvature(t)

    @property
    def _dual_interval(self) -> tuple[float, float]:
        return self.phi.dual_interval

    def _floor(self, lower: Array, upper: Array) -> Array:
        """From the floor of f over an interval a little wider; 0 where nothing is known."""
        added = self.phi.term.constant_curvature
        if self.floor is None or added is None:
            return np.zeros(np.shape(lower))
        lower, upper = np.broadcast_arrays(lower, upper)
        room = self.precision * (1.0 + np.abs(lower) + np.abs(upper))
        low, high = self.phi.flat
        outside = (upper + room < low) | (lower - room > high)
        ends = [self.phi.location(end) for end in (lower - room, upper + room)]
        known = outside & np.isfinite(ends[0]) & np.isfinite(ends[1])
        floor = np.asarray(self.floor(*(np.where(known, end, 0.0) for end in ends)), dtype=float)
        return np.where(known, floor / (1.0 + floor * added), 0.0)

    def _pieces(self) -> list[Piece]:
        if self.flat is None:
            return []
        low, high = self.flat
        size = max(abs(end) for end in (low, high) if math.isfinite(end))
        room = self.precision * (1.0 + size) + self.phi.graph.doubt
        return [Piece(low + room, high - room)] if low + room < high - room else []


@dataclass(frozen=True, eq=False, repr=False)
class NumericMargin(_Numeric, MarginLoss):
    """φ(y·prediction) for a numeric φ; made by `from_function` and `infimum_convolution`.

    Parameters
    ----------
    phi : Convolved
        φ, tabulated.
    floor : callable, optional
        From two arrays of ends to the least curvature of φ between them.
    """

    def conjugate_size(self, nu: ArrayLike, y: ArrayLike) -> Array:
        return self.phi.conjugate_size(np.multiply(y, nu, dtype=np.float64))

    def _conjugate(self, u: Array) -> Array:
        return self.phi.conjugate(u)


@dataclass(frozen=True, eq=False, repr=False)
class NumericResidual(_Numeric, ResidualLoss):
    """φ(prediction − y) for a numeric φ; made by `from_function` and `infimum_convolution`.

    Parameters
    ----------
    phi : Convolved
        φ, tabulated.
    floor : callable, optional
        From two arrays of ends to the least curvature of φ between them.
    """

    def conjugate_size(self, nu: ArrayLike, y: ArrayLike) -> Array:
        nu = np.asarray(nu, dtype=np.float64)
        return self.phi.conjugate_size(nu) + np.abs(nu) * np.abs(y)

    def _conjugate_ratio(self, u: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.where(u == 0, 0.0, self.phi.conjugate(u) / u)


def from_function(
    function: Function,
    derivative: Function | None = None,
    second_derivative: Function | None = None,
    *,
    task: Literal["classification", "regression"],
    smoothness: float | None = None,
    curvature_floor: Floor | None = None,
) -> Loss:
    """A loss from a convex Python function of the margin or of the residual.

    That the function is convex is checked on a table of 6 000 points; between them the function is
    trusted. Its infimum is subtracted, since losses have infimum 0.

    Parameters
    ----------
    function : callable
        φ, vectorised over a float64 array and finite for moderate arguments.
    derivative : callable, optional
        φ', needed where φ has kinks (at a kink any slope between the two sides). Where it is not
        given it comes from a polynomial interpolant, good to some eleven digits.
    second_derivative : callable, optional
        φ'', for Newton solvers; from an interpolant where it is not given.
    task : {"classification", "regression"}
        φ(y·prediction) with y = ±1, or φ(prediction − y).
    smoothness : float, optional
        A Lipschitz constant of φ', for which you answer: a value that the table contradicts is
        refused. Without it one is measured, and solvers go by that, but nothing is certified by
        it: features are not proved to be zero, and regions are not sharpened from both sides.
    curvature_floor : callable, optional
        A w ≥ 0 with φ − ½w·z² convex around [lower, upper], for arrays of ends. Regions that use
        curvature need it.

    Returns
    -------
    Loss
        Like any other: for `safesift.screen`, `safesift.make_safe` and every region.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> pseudo_huber = ss.losses.from_function(
    ...     lambda r: r**2 / (1 + np.sqrt(1 + r**2)), lambda r: r / np.sqrt(1 + r**2),
    ...     task="regression", smoothness=1.0)
    >>> safe = ss.make_safe(pseudo_huber, omega="l1", mu=0.5)
    >>> print(safe.value([0.3, 3.5], 0.0).round(6))
    [0.       2.162278]
    """
    require_callable("function", function)
    for name, given in (
        ("derivative", derivative),
        ("second_derivative", second_derivative),
        ("curvature_floor", curvature_floor),
    ):
        if given is not None:
            require_callable(name, given)
    if task not in ("classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    known = math.inf if smoothness is None else check_positive("smoothness", smoothness)
    _require_vectorised(function)
    graph = trace(ScalarFunction(function, derivative, second_derivative), "function")
    _require_possible(known, graph)
    return _numeric(graph, task, curvature_floor, known)


def numeric_version(loss: Loss) -> _Numeric:
    """A loss of the library as a numeric one, known through its value, slope and curvature."""
    if isinstance(loss, _Numeric):
        return loss
    if np.ndim(getattr(loss, "epsilon", 0.0)):
        raise ValueError(
            "loss has one epsilon per sample, which works with omega='l1' and 'quadratic' only: "
            "pass one number."
        )
    y = 1.0 if loss.task == "classification" else 0.0

    function = ScalarFunction(
        lambda z: loss.value(z, y), lambda z: loss.slope(z, y), lambda z: loss.curvature(z, y)
    )

    def floor(lower: Array, upper: Array) -> Array:
        return loss.curvature_floor(lower, upper, y)

    return _numeric(trace(function, "loss"), loss.task, floor, loss.proved_smoothness)


def _numeric(graph: Graph, task: str, floor: Floor | None, smoothness: float) -> _Numeric:
    cls = NumericMargin if task == "classification" else NumericResidual
    return cls(Convolved(graph, _NOTHING, smoothness), floor)


def _require_possible(smoothness: float, graph: Graph) -> None:
    """Refuse a smoothness that the table contradicts."""
    if math.isinf(smoothness):
        return
    kinks = graph.function.kinks
    if len(kinks):
        raise ValueError(
            f"smoothness={smoothness!r}, but the derivative of function jumps at z={kinks[0]:g}: "
            "leave smoothness out."
        )
    if graph.steepness > smoothness * (1.0 + _NOISE):
        raise ValueError(
            f"smoothness={smoothness!r} is too small: the derivative of function grows at the rate "
            f"{graph.steepness:g} somewhere; give a Lipschitz constant of the derivative."
        )


def _require_vectorised(function: Function) -> None:
    try:
        with np.errstate(all="ignore"):
            shape = np.shape(function(np.array([-1.0, 0.5, 1.0])))
    except (TypeError, ValueError):
        shape = None
    if shape != (3,):
        raise TypeError("function must map a float64 array to an array: vectorise it.")
