"""Descent on the dual of a kernel problem, one or two coordinates at a time (SMO).

Minimises ½βᵀ(K + diag(d))β + offsetᵀβ − Σ (low_i·β_i for β_i > 0, high_i·β_i for β_i < 0) over
lower ≤ β ≤ upper, with Σβ_i kept as it is where there is an intercept. Where the slope jumps, at
β_i = 0, a step ends. `pull` is (K + diag(d))β + offset, kept up to date: the slope towards a larger
β_i is pull_i − rise_i, towards a smaller one fall_i − pull_i, with rise_i = −inf and fall_i = inf
at the ends. The loops over all samples are written so that they become vector instructions.
"""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit

# no NaN occurs, and only differences with at most one infinite end
_options = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nnan", "nsz"},
}


@cached_njit(**_options)
def _rise(i, low, high, upper, beta):
    if beta[i] >= upper[i]:
        return -np.inf
    return low[i] if beta[i] >= 0.0 else high[i]


@cached_njit(**_options)
def _fall(i, low, high, lower, beta):
    if beta[i] <= lower[i]:
        return np.inf
    return high[i] if beta[i] <= 0.0 else low[i]


@cached_njit(**_options)
def _ends(low, high, lower, upper, beta):
    n = len(beta)
    rise, fall = np.empty(n), np.empty(n)
    for i in range(n):
        rise[i] = _rise(i, low, high, upper, beta)
        fall[i] = _fall(i, low, high, lower, beta)
    return rise, fall


@cached_njit(**_options)
def _where(values, wanted):
    for k in range(len(values)):
        if values[k] == wanted:
            return k
    return -1


@cached_njit(**_options)
def descend_pairs(K, d, low, high, lower, upper, beta, pull, tol, max_steps):
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
    rise, fall = _ends(low, high, lower, upper, beta)
    diagonal, scores = np.empty(n), np.empty(n)
    for k in range(n):
        diagonal[k] = K[k, k] + d[k]
    violation = middle = 0.0
    for _ in range(max_steps + 1):
        up, down = -np.inf, -np.inf
        for k in range(n):
            scores[k] = rise[k] - pull[k]
            up = max(up, scores[k])
            down = max(down, pull[k] - fall[k])
        if up == -np.inf or down == -np.inf:
            # nothing can move against anything else
            return 0.0, 0.0, least
        violation, middle = down + up, 0.5 * (down - up)
        i = _where(scores, up)
        if i < 0 or not violation > tol:
            break
        row, own, gain = K[i], diagonal[i], 0.0
        for k in range(n):
            apart = max(pull[k] - fall[k] + up, 0.0)
            scores[k] = apart * apart / max(own + diagonal[k] - 2.0 * row[k], 1e-12)
            gain = max(gain, scores[k])
        j = _where(scores, gain)
        if j < 0 or not gain > 0.0:
            break
        curvature = own + diagonal[j] - 2.0 * row[j]
        least = min(least, curvature)
        end_i = 0.0 if beta[i] < 0.0 else upper[i]
        end_j = 0.0 if beta[j] > 0.0 else lower[j]
        step = (pull[j] - fall[j] + up) / max(curvature, 1e-12)
        step = min(step, end_i - beta[i], beta[j] - end_j)
        beta[i] = end_i if step == end_i - beta[i] else beta[i] + step
        beta[j] = end_j if step == beta[j] - end_j else beta[j] - step
        other = K[j]
        for k in range(n):
            pull[k] += step * (row[k] - other[k])
        pull[i] += step * d[i]
        pull[j] -= step * d[j]
        for k in (i, j):
            rise[k] = _rise(k, low, high, upper, beta)
            fall[k] = _fall(k, low, high, lower, beta)
    return violation, middle, least


@cached_njit(**_options)
def descend_singles(K, d, low, high, lower, upper, beta, pull, tol, max_steps):
    """Steps on single coordinates, the most violating first. Returns as `descend_pairs`."""
    n, violation = len(beta), 0.0
    rise, fall = _ends(low, high, lower, upper, beta)
    scores = np.empty(n)
    for _ in range(max_steps + 1):
        violation = 0.0
        for k in range(n):
            scores[k] = max(rise[k] - pull[k], pull[k] - fall[k])
            violation = max(violation, scores[k])
        if not violation > tol:
            break
        i = _where(scores, violation)
        if i < 0:
            break
        before, curvature = beta[i], K[i, i] + d[i]
        if rise[i] - pull[i] == violation:
            sign, end = 1.0, 0.0 if before < 0.0 else upper[i]
        else:
            sign, end = -1.0, 0.0 if before > 0.0 else lower[i]
        length = violation / curvature if curvature > 0.0 else np.inf
        beta[i] = end if length >= abs(end - before) else before + sign * length
        moved, row = beta[i] - before, K[i]
        if moved == 0.0:
            break
        for k in range(n):
            pull[k] += moved * row[k]
        pull[i] += moved * d[i]
        rise[i] = _rise(i, low, high, upper, beta)
        fall[i] = _fall(i, low, high, lower, beta)
    return violation, 0.0, 0.0
