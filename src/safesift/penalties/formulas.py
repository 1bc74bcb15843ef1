"""Pieces of formulas that several penalties are made of, most of them of the l1 norm."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def soft(coef: Array, threshold: float) -> Array:
    return np.sign(coef) * np.maximum(np.abs(coef) - threshold, 0.0)


def l1_least_norm(coef: Array, gradient: Array, weight: float) -> Array:
    """Least-norm element of gradient + weight·∂‖·‖₁(coef)."""
    return np.where(coef != 0, gradient + weight * np.sign(coef), soft(gradient, weight))


def l1_secant_floor(coef: Array, pull: Array, reach: Array, weight: float) -> Array:
    """From 0 to x_j the slope of weight·|x_j| grows from the pull to ±weight."""
    with np.errstate(divide="ignore", invalid="ignore"):
        floor = np.maximum(weight - np.abs(pull), 0.0) / reach * (1.0 - 1e-12)
    return np.where((coef == 0) & np.isfinite(floor), floor, 0.0)


def l1_secant_ceiling(coef: Array, lower: Array, upper: Array) -> Array:
    """The l1 norm is linear where no sign changes."""
    same_sign = ((coef > 0) & (lower > 0)) | ((coef < 0) & (upper < 0))
    return np.where(same_sign, 0.0, math.inf)


def largest(u: Array) -> float:
    return float(np.max(np.abs(u), initial=0.0))


def quotient(value: float, divisor: float) -> float:
    """value / divisor for values of 0 or more, where the divisor may have underflowed to 0."""
    if divisor > 0:
        return value / divisor
    return math.inf if value > 0 else 0.0


def square(value: float) -> float:
    """value², +inf where Python's power would raise OverflowError."""
    return value * value
