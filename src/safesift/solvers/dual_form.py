"""Losses whose conjugate is a parabola with one kink at 0: those with closed-form dual steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.losses import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DualForm:
    """f*(v) = ½·curvature·v² + max(low·v, high·v) on [least, most], which holds 0.

    Attributes
    ----------
    curvature : float
        One over the smoothness of the loss, 0 where it has kinks.
    low, high : arrays of shape (n_samples,)
        The ends of the interval on which the loss is least; infinite where `least` or `most` is 0.
    least, most : arrays of shape (n_samples,)
    """

    curvature: float
    low: Array
    high: Array
    least: Array
    most: Array

    def take(self, rows: NDArray) -> DualForm:
        """The form of some of the samples."""
        ends = (self.low[rows], self.high[rows], self.least[rows], self.most[rows])
        return DualForm(self.curvature, *ends)


def dual_form(loss: Loss, y: Array) -> DualForm | None:
    """The conjugate as a parabola with a kink, None where it is none (logistic, numeric losses).

    The kink is found from values of the conjugate, and confirmed by others.
    """
    if not loss.quadratic_rays or loss.precision > 0:
        return None
    curvature = 0.0 if math.isinf(loss.smoothness) else 1.0 / loss.smoothness
    least, most = (np.asarray(end, dtype=np.float64) for end in loss.dual_interval(y))
    low, low_again = (_slope(loss, y, curvature, least, share) for share in (0.5, 0.25))
    high, high_again = (_slope(loss, y, curvature, most, share) for share in (0.5, 0.25))
    size = 1.0 + np.abs(loss.anchors(y)).max(axis=0)
    with np.errstate(invalid="ignore"):
        agree = (np.abs(low - low_again) <= 1e-9 * size) | (least == 0)
        agree &= (np.abs(high - high_again) <= 1e-9 * size) | (most == 0)
    if not agree.all():
        return None
    low, high = np.where(least == 0, -math.inf, low), np.where(most == 0, math.inf, high)
    return DualForm(curvature, low, high, least, most)


def _slope(loss: Loss, y: Array, curvature: float, end: Array, share: float) -> Array:
    """(f*(v) − ½·curvature·v²)/v at a v between 0 and an end of the domain."""
    v = share * np.clip(end, -1.0, 1.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return loss.conjugate(v, y) / v - 0.5 * curvature * v
