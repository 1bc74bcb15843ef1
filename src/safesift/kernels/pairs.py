"""Descent on the dual of a kernel problem, one or two coordinates at a time (SMO).

Minimises ½βᵀ(K + diag(d))β + offsetᵀβ − Σ (low_i·β_i for β_i > 0, high_i·β_i for β_i < 0) over
lower ≤ β ≤ upper, with Σβ_i kept as it is where there is an intercept. `values` is Kβ + offset, kept
up to date. Where the slope jumps, at β_i = 0, a step ends.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_options = {"nogil": True, "error_model": "numpy", "cache": True}


@njit(**_options)
def _slope_up(i, d, low, high, upper, beta, values):
    """The slope of the objective towards a larger β_i, infinite at its upper end."""
    if beta[i] >= upper[i]:
        return np.inf
    return values[i] + d[i] * beta[i] - (low[i] if beta[i] >= 0.0 else high[i])


@njit(**_options)
def _slope_down(i, d, low, high, lower, beta, values):
    """The slope from below: the rise of the objective towards a smaller β_i, with its sign turned."""
    if beta[i] <= lower[i]:
        return -np.inf
    return values[i] + d[i] * beta[i] - (high[i] if beta[i] <= 0.0 else low[i])


@njit(**_options)
def descend_pairs(K, d, low, high, lower, upper, beta, values, tol, max_steps):
    """Steps on pairs, the first most violating and the second of the greatest gain.

    Returns
    -------
    violation : float
        How far the slopes of two coordinates are apart; at most `tol` where it is done.
    middle : float
        Between them: minus the intercept.
    least : float
        The least curvature met, negative where K is not positive semidefinite.
    """
    n, least = len(beta), 0.0
    down = np.empty(n)
    violation = middle = 0.0
    for _ in range(max_steps + 1):
        i, up, most = -1, np.inf, -np.inf
        for k in range(n):
            slope = _slope_up(k, d, low, high, upper, beta, values)
            if slope < up:
                i, up = k, slope
            down[k] = _slope_down(k, d, low, high, lower, beta, values)
            most = max(most, down[k])
        if i < 0 or most == -np.inf:
            # nothing can move against anything else
            return 0.0, 0.0, least
        violation = most - up
        middle = 0.5 * (most + up)
        if not violation > tol:
            break
        j, gain, row = -1, 0.0, K[i]
        for k in range(n):
            rise = down[k] - up
            if rise > 0.0:
                curvature = max(row[i] + K[k, k] - 2.0 * row[k] + d[i] + d[k], 1e-12)
                if rise * rise > gain * curvature:
                    j, gain = k, rise * rise / curvature
        if j < 0:
            break
        curvature = row[i] + K[j, j] - 2.0 * row[j] + d[i] + d[j]
        least = min(least, curvature)
        step = (down[j] - up) / max(curvature, 1e-12)
        room_i = (0.0 if beta[i] < 0.0 else upper[i]) - beta[i]
        room_j = beta[j] - (0.0 if beta[j] > 0.0 else lower[j])
        step = min(step, room_i, room_j)
        beta[i] = (0.0 if beta[i] < 0.0 else upper[i]) if step == room_i else beta[i] + step
        beta[j] = (0.0 if beta[j] > 0.0 else lower[j]) if step == room_j else beta[j] - step
        other = K[j]
        for k in range(n):
            values[k] += step * (row[k] - other[k])
    return violation, middle, least


@njit(**_options)
def descend_singles(K, d, low, high, lower, upper, beta, values, tol, max_steps):
    """Steps on single coordinates, the most violating first. Returns as `descend_pairs`."""
    n, violation = len(beta), 0.0
    for _ in range(max_steps + 1):
        i, violation, upwards = -1, 0.0, True
        for k in range(n):
            slope = _slope_up(k, d, low, high, upper, beta, values)
            if -slope > violation:
                i, violation, upwards = k, -slope, True
            slope = _slope_down(k, d, low, high, lower, beta, values)
            if slope > violation:
                i, violation, upwards = k, slope, False
        if i < 0 or not violation > tol:
            break
        before = beta[i]
        end = (0.0 if before < 0.0 else upper[i]) if upwards else lower[i]
        if not upwards and before > 0.0:
            end = 0.0
        room, curvature = abs(end - before), K[i, i] + d[i]
        length = violation / curvature if curvature > 0.0 else np.inf
        if length >= room:
            beta[i] = end
        else:
            beta[i] = before + (length if upwards else -length)
        moved, row = beta[i] - before, K[i]
        for k in range(n):
            values[k] += moved * row[k]
        if moved == 0.0:
            break
    return violation, 0.0, 0.0
