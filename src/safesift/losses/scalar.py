"""Convex functions of one number that are known through Python functions only.

`ScalarFunction` has the derivatives too, from a piecewise polynomial where they are not given:
differences lose half of the digits, the derivatives of a Chebyshev interpolant of degree 16 on
panels short enough to resolve the function lose two or three. `solve_increasing` inverts such
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from safesift.arithmetic.numerics import EPS

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

# relative errors of slopes: of careful arithmetic, and of an interpolant
_GIVEN, _INTERPOLATED = 1e-13, 1e-11

_DEGREE = 16
# inside (−1, 1): at the ends there may be kinks
_POINTS = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(_POINTS, _DEGREE))
_FARTHEST, _MAX_PANELS, _MAX_HALVINGS = 4e15, 3000, 24

_MAX_STEPS = 120
# a Newton step this small is the last one, if the step before left no more than that share: what
# is left then is below 1e-14
_LAST_STEP, _CONTRACTION = 1e-10, 1e-4


@dataclass(frozen=True, eq=False)
class ScalarFunction:
    """f with its first and second derivative, from interpolants where they are not given.

    Parameters
    ----------
    function, derivative, second_derivative : callables
        Vectorised. A function with kinks needs its derivative: no polynomial follows a kink.
    kinks : array
        Where the derivative jumps.
    """

    function: Function
    derivative: Function | None = None
    second_derivative: Function | None = None
    kinks: Array = field(default_factory=lambda: np.empty(0))

    def value(self, z: Array) -> Array:
        return call(self.function, z)

    def slope(self, z: Array) -> Array:
        if self.derivative is None:
            return self._interpolant.derivative(z)
        return call(self.derivative, z)

    def curvature(self, z: Array) -> Array:
        """f'' away from kinks."""
        if self.second_derivative is not None:
            return call(self.second_derivative, z)
        if self.derivative is None:
            return self._interpolant.second_derivative(z)
        if self._smooth_derivative is not None:
            return self._smooth_derivative.derivative(z)
        step = 1e-6 * np.maximum(np.abs(z), 1.0)
        return (self.slope(z + step) - self.slope(z - step)) / (2.0 * step)

    def slope_and_rate(self, z: Array) -> tuple[Array, Array]:
        """f' and a rough f'', good enough for a Newton step."""
        if self.derivative is None:
            return self._interpolant.derivative_and_rate(z)
        slope = self.slope(z)
        if self.second_derivative is not None:
            return slope, self.curvature(z)
        step = 1e-6 * np.maximum(np.abs(z), 1.0)
        return slope, (self.slope(z + step) - slope) / step

    @property
    def precision(self) -> float:
        """Relative error of slopes."""
        return _INTERPOLATED if self.derivative is None else _GIVEN

    @cached_property
    def _interpolant(self) -> Interpolant:
        return interpolate(self.function, self.kinks)

    @cached_property
    def _smooth_derivative(self) -> Interpolant | None:
        """The derivative's interpolant; None where it has corners, as a squared hinge has.

        None also where no derivative is given.
        """
        if self.derivative is None:
            return None
        try:
            return interpolate(self.derivative, self.kinks)
        except NotSmoothError:
            return None


def call(function: Function, z: ArrayLike) -> Array:
    """A user's function at many numbers: infinite or NaN where it is, without a warning."""
    with np.errstate(all="ignore"):
        return np.asarray(function(np.asarray(z, dtype=np.float64)), dtype=np.float64)


def require_callable(name: str, given: object) -> None:
    """Refuse what is no function."""
    if not callable(given):
        raise TypeError(
            f"{name} must be callable, got {type(given).__name__}: pass a vectorised Python "
            "function."
        )


# --- derivatives --------------------------------------------------------------------------------


class NotSmoothError(ValueError):
    """No polynomial resolves the function: it has a kink, or noise."""


@dataclass(frozen=True, eq=False)
class Interpolant:
    """f' and f'' of a function; NaN where the function is not finite.

    Attributes
    ----------
    ends : array of shape (n_panels + 1,)
    first, second : arrays of shape (degree + 1, n_panels)
        Coefficients of the derivatives on each panel in the coordinate from −1 to 1, highest
        power first.
    """

    ends: Array
    first: Array
    second: Array

    def derivative(self, z: ArrayLike) -> Array:
        return self._evaluate(self.first, z)

    def second_derivative(self, z: ArrayLike) -> Array:
        return self._evaluate(self.second, z)

    def derivative_and_rate(self, z: Array) -> tuple[Array, Array]:
        """f' and f'' together, f'' as the derivative of the polynomial for f'."""
        panel, local, stretch = self._place(z)
        result = self.first[0][panel]
        rate = np.zeros_like(result)
        for row in self.first[1:]:
            rate *= local
            rate += result
            result *= local
            result += row[panel]
        return result, rate * stretch

    def _evaluate(self, coefficients: Array, z: ArrayLike) -> Array:
        panel, local, _ = self._place(z)
        result = coefficients[0][panel]
        for row in coefficients[1:]:
            result *= local
            result += row[panel]
        return result

    def _place(self, z: ArrayLike) -> tuple[NDArray[np.intp], Array, Array]:
        """The panel of every z, its coordinate there (NaN outside), and that one's derivative."""
        z = np.asarray(z, dtype=np.float64)
        inside = np.clip(z, self.ends[0], self.ends[-1])
        panel = np.clip(np.searchsorted(self.ends, inside, side="right") - 1, 0, len(self.ends) - 2)
        left, right = self.ends[panel], self.ends[panel + 1]
        stretch = np.where(inside == z, 2.0 / (right - left), np.nan)
        return panel, (inside - left) * stretch - 1.0, stretch


def interpolate(function: Function, breaks: Array) -> Interpolant:
    """The interpolant of a function that is smooth between some breaks.

    Raises
    ------
    NotSmoothError
    """
    with np.errstate(all="ignore"):
        panels = _resolved(function, _first_panels(np.asarray(breaks, dtype=np.float64)))
        left, right = panels.T
        half = 0.5 * (right - left)
        series = _without_noise(_TO_COEFFICIENTS @ _samples(function, panels).T)
        first = chebyshev.chebder(series) / half
        second = chebyshev.chebder(first) / half
    return Interpolant(np.append(left, right[-1]), _powers(first), _powers(second))


def _first_panels(breaks: Array) -> Array:
    outer = np.geomspace(8.0, _FARTHEST, 160)
    inner = np.linspace(-7.0, 7.0, 19)
    # nowhere near round numbers: there the kinks are that nobody told us about
    ends = 0.9871 * np.concatenate([-outer, inner, outer]) + 0.0137
    ends = np.unique(np.append(ends, breaks))
    # a panel of next to no length would have no derivative; the breaks themselves stay
    keep = np.diff(ends, prepend=-np.inf) > 1e-9 * np.maximum(1.0, np.abs(ends))
    keep |= np.isin(ends, breaks)
    ends = ends[keep]
    return np.stack([ends[:-1], ends[1:]], axis=1)


def _samples(function: Function, panels: Array) -> Array:
    left, right = panels[:, :1], panels[:, 1:]
    points = 0.5 * (left + right) + 0.5 * (right - left) * _POINTS
    return np.asarray(function(points.ravel()), dtype=np.float64).reshape(points.shape)


def _resolved(function: Function, panels: Array) -> Array:
    """Halve the panels until the last coefficients of each are rounding errors."""
    level = float(np.max(np.abs(function(np.array([-1.0, 1.0])))))
    done, n_done = [], 0
    for _ in range(_MAX_HALVINGS):
        values = _samples(function, panels)
        finite = np.isfinite(values).all(axis=1)
        panels, values = panels[finite], values[finite]
        series = np.abs(_TO_COEFFICIENTS @ values.T)
        size = np.abs(values).max(axis=1)
        smooth = series[-3:].max(axis=0) <= 2e-14 * size + 2e-16 * level
        good = smooth & ~_falls_far(panels, values)
        done.append(panels[good])
        n_done += int(good.sum())
        panels = panels[~good]
        if not len(panels):
            found = np.concatenate(done)
            return found[np.argsort(found[:, 0])]
        if n_done + 2 * len(panels) > _MAX_PANELS:
            break
        middle = panels.mean(axis=1, keepdims=True)
        panels = np.concatenate(
            [np.hstack([panels[:, :1], middle]), np.hstack([middle, panels[:, 1:]])]
        )
    raise NotSmoothError


def _without_noise(series: Array) -> Array:
    """Without the last coefficients that are rounding errors: derivatives would blow them up."""
    order = np.arange(len(series))[:, None]
    counts = np.abs(series) > 4e-16 * np.abs(series).max(axis=0)
    last = np.where(counts, order, 0).max(axis=0)
    return np.where(order <= last, series, 0.0)


def _falls_far(panels: Array, values: Array) -> NDArray[np.bool_]:
    """Whether a tail falls so far on a panel that its low end has no digits left."""
    size = np.abs(values)
    wide = (panels[:, 1] - panels[:, 0] > 0.5) & (np.abs(panels).min(axis=1) >= 8.0)
    return wide & (size.max(axis=1) > 20.0 * size.min(axis=1)) & (size.max(axis=1) > 1e-290)


def _powers(series: Array) -> Array:
    """Chebyshev coefficients as those of powers, highest first."""
    n = len(series)
    columns = [np.resize(chebyshev.cheb2poly([0.0] * k + [1.0]), k + 1) for k in range(n)]
    matrix = np.array([np.pad(column, (0, n - len(column))) for column in columns]).T
    return (matrix @ series)[::-1].copy()


# --- roots --------------------------------------------------------------------------------------


def solve_increasing(
    function: Callable[[Array], tuple[Array, Array]],
    target: Array,
    low: Array,
    high: Array,
    start: Array,
) -> Array:
    """z in [low, high] with function(z) = target, by Newton steps that keep to the brackets.

    A step that leaves its bracket is replaced by bisection; each sample stops by itself.

    Parameters
    ----------
    function : callable
        Returns the increasing function and a rough derivative.
    target, low, high, start : arrays of one shape
    """
    result = start.copy()
    rows = np.arange(len(start))
    z, low, high, last = start, low.copy(), high.copy(), np.full(len(start), np.inf)
    for _ in range(_MAX_STEPS):
        with np.errstate(all="ignore"):
            reached, rate = function(z)
            rest = reached - target
            done = np.abs(rest) <= EPS * np.abs(target)
            low, high = np.where(rest < 0, z, low), np.where(rest > 0, z, high)
            newton = z - rest / rate
            # a step that does not even halve what is left is no Newton step
            good = (newton >= low) & (newton <= high) & (np.abs(rest) <= 0.5 * last)
            following = np.where(good, newton, 0.5 * (low + high))
        converging = good & np.isfinite(last) & (np.abs(rest) <= _CONTRACTION * last)
        done |= np.abs(following - z) <= np.where(converging, _LAST_STEP, 2 * EPS) * np.abs(z)
        result[rows] = np.where(np.abs(rest) <= EPS * np.abs(target), z, following)
        if done.all():
            break
        left = ~done
        rows, target, last = rows[left], target[left], np.abs(rest[left])
        z, low, high = following[left], low[left], high[left]
    return result
