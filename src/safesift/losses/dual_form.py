"""Conjugates that are a parabola with one kink at 0: the losses with closed-form dual steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DualForm:
    """f*(v) = ½·curvature·v² + max(low·v, high·v) on [least, most], which holds 0.

    Attributes
    ----------
    curvature : float
        One over the smoothness of the loss, 0 where it has kinks.
    low, high : arrays of shape (n_samples,)
        The ends of the interval on which the loss is least: ∂f*(0) = argmin f (Fenchel–Young).
        Infinite where `least` or `most` is 0.
    least, most : arrays of shape (n_samples,)
        The ends of the domain of f*.
    """

    curvature: float
    low: Array
    high: Array
    least: Array
    most: Array

    def value(self, v: Array) -> Array:
        """f*(v) for v in [least, most]."""
        with np.errstate(invalid="ignore"):
            bend = np.where(v > 0, self.high * v, np.where(v < 0, self.low * v, 0.0))
        return 0.5 * self.curvature * v**2 + bend

    def take(self, rows: NDArray) -> DualForm:
        """The form of some of the samples."""
        ends = (self.low[rows], self.high[rows], self.least[rows], self.most[rows])
        return DualForm(self.curvature, *ends)
