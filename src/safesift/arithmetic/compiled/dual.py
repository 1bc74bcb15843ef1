"""Epochs of dual coordinate descent, for losses whose conjugate is quadratic but for one kink.

A row of `table` holds what a step needs to know of a sample, in one cache line:

    ν, step, q, low, high, least, most, along

f*(v) = ½·curvature·v² + max(low·v, high·v) on [least, most]. A step of δ moves the coefficients by
−step·δ·(a_i − μ), and so the prediction by −q·δ. Rows are centred around μ, which an intercept
allows and which spares the coefficients from doing its work: x = z − S·μ with z = Σ moves·a_i,
S = Σ moves and along = a_iᵀμ, so that nothing but z is of the length of a row.
"""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit
from safesift.arithmetic.compiled.fetching import fetch
from safesift.arithmetic.compiled.rows import OPTIONS, inlined, row_add, row_dot

NU, STEP, Q, LOW, HIGH, LEAST, MOST, ALONG = range(8)
COLUMNS = 8
# so many visits before a row is needed it is asked for
AHEAD = 2
# of so many groups of neighbours the rows are mixed: all of them stay in the cache meanwhile
_MIXED = 64


@inlined
def _conjugate(v, curvature, low, high):
    bend = 0.0
    if v > 0.0:
        bend = high * v
    elif v < 0.0:
        bend = low * v
    return 0.5 * curvature * v * v + bend


@inlined
def _pulled(pull, curvature, low, high, least, most):
    """argmax of pull·v − f*(v), with a conjugate of the given curvature."""
    v = 0.0
    if pull > high:
        v = (pull - high) / curvature
    elif pull < low:
        v = (pull - low) / curvature
    return min(max(v, least), most)


@inlined
def _inside_by(t, nu, curvature, row):
    """How far t is inside the subdifferential of f* at ν; negative: how far outside."""
    lower = curvature * nu + (row[HIGH] if nu > 0.0 else row[LOW])
    upper = curvature * nu + (row[LOW] if nu < 0.0 else row[HIGH])
    if nu <= row[LEAST]:
        lower = -np.inf
    if nu >= row[MOST]:
        upper = np.inf
    return min(t - lower, upper - t)


@inlined
def _random_below(state, n):
    """The next of a xorshift sequence, below n < 2³²."""
    bits = state[0]
    bits ^= bits << np.uint64(13)
    bits ^= bits >> np.uint64(7)
    bits ^= bits << np.uint64(17)
    state[0] = bits
    return np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@inlined
def _shuffle(values, start, stop, state):
    for place in range(stop - 1, start, -1):
        other = start + _random_below(state, place + 1 - start)
        values[place], values[other] = values[other], values[place]


@inlined
def visits(n, group, state):
    """The numbers below n, in random order.

    Groups of neighbours, which lie next to each other in memory, stay near to each other, but not
    together: a few in turn, always the same, would converge like coordinates in a fixed order.
    """
    order, groups = np.empty(n, np.intp), np.arange(0, n, group)
    _shuffle(groups, 0, len(groups), state)
    done = 0
    for first in groups:
        for number in range(first, min(first + group, n)):
            order[done] = number
            done += 1
    for start in range(0, n, _MIXED * group):
        _shuffle(order, start, min(start + _MIXED * group, n), state)
    return order


@inlined
def _compact(active, n_active):
    """Move what is not negative to the front, in order; how many there are."""
    left = 0
    for place in range(n_active):
        if active[place] >= 0:
            active[left] = active[place]
            left += 1
    return left


@cached_njit(**OPTIONS)
def epoch(matrix, active, n_active, group, table, curvature, lift, z, c, spread, margin, state):
    """A step on each of the rows active[:n_active], in random order.

    Rows whose prediction is further than `margin` inside what their dual variable allows leave.

    Parameters
    ----------
    matrix : tuple of arrays
    active : array of ints
        Indices of rows, sorted; changed.
    group : int
        Of how many neighbours: see `visits`.
    table : array of shape (n_samples, 8)
    curvature : float
        Of the conjugate.
    lift : float
        A step moves the intercept by `lift − along` times what it would move a coefficient of
        feature 1; 0 without an intercept.
    z, c, spread : array, float, float
        Coefficients, updated; intercept; S.
    margin : float
    state : array of one uint64
        Of the random numbers.

    Returns
    -------
    n_active : int
    c, spread : float
    worst : float
        The largest distance of a prediction from what its dual variable allows.
    gap : float
        Σ step·(f(t) + f*(ν) − tν) over the rows as they were met: about the gap divided by alpha.
    """
    worst = gap = 0.0
    order = visits(n_active, group, state)
    for visit in range(n_active):
        if visit + AHEAD < n_active:
            later = active[order[visit + AHEAD]]
            fetch(matrix, later)
            fetch((table,), later)
        place = order[visit]
        i = active[place]
        row = table[i]
        nu, low, high, least, most = row[NU], row[LOW], row[HIGH], row[LEAST], row[MOST]
        along = row[ALONG]
        t = row_dot(matrix, i, z) + (c - spread * along)
        inside = _inside_by(t, nu, curvature, row)
        if inside >= 0.0:
            if inside > margin:
                active[place] = -1
            continue
        worst = max(worst, -inside)
        slope = _pulled(t, curvature, low, high, least, most)
        lost = t * (slope - nu) - _conjugate(slope, curvature, low, high)
        gap += row[STEP] * (lost + _conjugate(nu, curvature, low, high))
        q = row[Q]
        moved = _pulled(q * nu + t, q + curvature, low, high, least, most)
        if moved != nu:
            row[NU] = moved
            scale = row[STEP] * (nu - moved)
            row_add(matrix, i, scale, z)
            c += (lift - along) * scale
            spread += scale
    return _compact(active, n_active), c, spread, worst, gap


@cached_njit(**OPTIONS)
def epochs(matrix, rows, most, enough, table, curvature, lift, z, c, spread, state):
    """Epochs over a few rows until their gap is `enough` times the first one's, `most` at most.

    See `epoch` for what else there is.

    Returns
    -------
    n_epochs : int
    c, spread : float
    """
    first, n_rows = 0.0, len(rows)
    for done in range(most):
        _, c, spread, _, gap = epoch(
            matrix, rows, n_rows, n_rows, table, curvature, lift, z, c, spread, np.inf, state
        )
        first = max(first, gap)
        if gap <= enough * first:
            return done + 1, c, spread
    return most, c, spread
