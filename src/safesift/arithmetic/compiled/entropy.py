"""Epochs of dual coordinate descent for the logistic loss, whose conjugate is an entropy.

With y = ±1 and u = −yν in (0, 1) it is f*(ν) = u·log u + (1 − u)·log(1 − u), and the log-odds
z = log((1 − u)/u) are the margin at which the slope is ν. So z is kept beside ν, and no logarithm
is ever taken. A step on row i looks for the z that its own margin has after the step,

    z = m + q·(σ(−z) − u),

with m the margin now; the difference of both sides grows with z, at a rate between 1 and 1 + q/4,
and vanishes between m − q·u and m − q·u + q (Yu, Huang and Lin, *Dual coordinate descent methods
for logistic regression and maximum entropy models*, Machine Learning 2011, solve for u).

The table is that of `dual`, with signs and log-odds in place of what hinges need.
"""

from __future__ import annotations

import math

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit
from safesift.arithmetic.compiled.dual import AHEAD, ALONG, COLUMNS, NU, STEP, Q, visits
from safesift.arithmetic.compiled.fetching import fetch
from safesift.arithmetic.compiled.rows import OPTIONS, inlined, row_add, row_dot

SIGN, ODDS = 3, 4
__all__ = ["ALONG", "COLUMNS", "NU", "ODDS", "SIGN", "STEP", "Q", "epoch"]

# a step is exact to this share of itself, or of 1, and ends after so many trials in any case
_EXACT, _MOST_TRIALS = 1e-3, 60
# margins that are off by so many units of rounding are as they should be
_ROUNDING = 4 * np.finfo(np.float64).eps


@inlined
def _falling(z):
    """σ(−z)."""
    small = math.exp(-abs(z))
    return (small if z > 0.0 else 1.0) / (1.0 + small)


@inlined
def _settled(z, low, q, enough):
    """The z with z − low = q·σ(−z), up to `enough`: Newton's method, kept between its bounds."""
    high = low + q
    base = low
    if not low <= z <= high:
        z = 0.5 * (low + high)
    for _ in range(_MOST_TRIALS):
        u = _falling(z)
        rest = z - base - q * u
        if rest > 0.0:
            high = z
        else:
            low = z
        step = rest / (1.0 + q * u * (1.0 - u))
        z -= step
        if not low <= z <= high:
            z = 0.5 * (low + high)
        if abs(step) <= enough:
            break
    return z


@cached_njit(**OPTIONS)
def epoch(matrix, active, n_active, group, table, lift, z, c, spread, state):
    """A step on each of the rows active[:n_active], in random order; none ever leaves.

    Parameters, and what is returned, are those of `dual.epoch`.
    """
    worst = gap = 0.0
    order = visits(n_active, group, state)
    for visit in range(n_active):
        if visit + AHEAD < n_active:
            later = active[order[visit + AHEAD]]
            fetch(matrix, later)
            fetch((table,), later)
        i = active[order[visit]]
        row = table[i]
        sign, odds, along, q = row[SIGN], row[ODDS], row[ALONG], row[Q]
        margin = sign * (row_dot(matrix, i, z) + (c - spread * along))
        u = -sign * row[NU]
        off = abs(margin - odds)
        if off <= _ROUNDING * (1.0 + abs(margin) + q):
            continue
        worst = max(worst, off)
        # f(t) + f*(ν) − tν is about half of (difference of slopes)·(difference of margins)
        gap += 0.5 * row[STEP] * abs(u - _falling(margin)) * off
        odds = _settled(odds, margin - q * u, q, _EXACT * min(off, 1.0))
        moved = _falling(odds)
        row[ODDS], row[NU] = odds, -sign * moved
        scale = row[STEP] * sign * (moved - u)
        row_add(matrix, i, scale, z)
        c += (lift - along) * scale
        spread += scale
    return n_active, c, spread, worst, gap
