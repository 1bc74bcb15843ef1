"""A convex function of one number, known through Python functions only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.losses.interpolant import Interpolant, NotSmoothError, interpolate

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

# relative errors of slopes: of careful arithmetic, and of an interpolant
_GIVEN, _INTERPOLATED = 1e-13, 1e-11


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
        return _call(self.function, z)

    def slope(self, z: Array) -> Array:
        if self.derivative is None:
            return self._interpolant.derivative(z)
        return _call(self.derivative, z)

    def curvature(self, z: Array) -> Array:
        """f'' away from kinks."""
        if self.second_derivative is not None:
            return _call(self.second_derivative, z)
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
        """The derivative's interpolant; None where it has corners, as a squared hinge has."""
        try:
            return interpolate(self.derivative, self.kinks)
        except NotSmoothError:
            return None


def _call(function: Function, z: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(function(z), dtype=np.float64)
