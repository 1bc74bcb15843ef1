"""Losses of single samples, and one loop over a block of them that gives all that is summed up.

A loss is a tuple of arrays, by whose length loops are compiled for it:

    (low, high, least, most, curvature)    f* = ½·curvature·v² + max(low·v, high·v) on [least, most]
    (y, low, …, curvature)                 the same of the margin y·t, the ends one number each
    (y,)                                   log(1 + e^{−y·t})
    (y, edge)                              e^z − 1 − z with z = min(y·t − edge, 0)

All but the last two have a conjugate that is a parabola with a kink (`_N_OF_PARABOLAS`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numba.extending import overload

from safesift.arithmetic.compiled.caching import cached_njit
from safesift.arithmetic.compiled.rows import OPTIONS, inlined, packed, rows_add, rows_dot

# what is summed over the samples, s_i/W times: see `look`
(
    LOSS, LOAD_UP, LOAD_DOWN, MASS_UP, MASS_DOWN, FIRST_UP, FIRST_DOWN, SECOND_UP, SECOND_DOWN,
    CHANGE, DRIFT,
) = range(11)  # fmt: skip
N_SUMS = 11

# losses of piecewise quadratic conjugates are described by so many things at least
_N_OF_PARABOLAS = 5

_EPS = 2.220446049250313e-16
# a bound of the second order that is so many times the loss is not worth having
_MUCH = 100.0
# e^z − 1 − z = z²·(1/2 + z/6 + …): up to z = −1 so many terms are exact to rounding
_N_TERMS = 20


def slope_and_value(loss, i, t):
    """f'(t) and f(t) of sample i."""
    raise NotImplementedError


@overload(slope_and_value, jit_options=OPTIONS)
def _slope_and_value(loss, i, t):
    if len(loss) >= _N_OF_PARABOLAS:
        return _piecewise if len(loss) == _N_OF_PARABOLAS else _piecewise_of_margin
    return _logistic if len(loss) == 1 else _safe_logistic


def _piecewise(loss, i, t):
    low, high, least, most, curvature = loss
    return _bent(low[i], high[i], least[i], most[i], curvature, t)


def _piecewise_of_margin(loss, i, t):
    y, low, high, least, most, curvature = loss
    v, value = _bent(low, high, least, most, curvature, y[i] * t)
    return y[i] * v, value


@inlined
def _bent(low, high, least, most, curvature, t):
    beyond = t - min(max(t, low), high)
    if not abs(beyond) > 0.0:
        # an infinite prediction is not beyond an infinite end; NaN stays
        nothing = 0.0 if t == t else np.nan
        return nothing, nothing
    v = beyond / curvature if curvature > 0.0 else math.copysign(np.inf, beyond)
    if least <= v <= most:
        return v, 0.5 * beyond * v
    v = min(max(v, least), most)
    return v, v * (beyond - 0.5 * curvature * v)


def _logistic(loss, i, t):
    y = loss[0][i]
    margin = y * t
    small = math.exp(-abs(margin))
    if margin > 0.0:
        return -y * (small / (1.0 + small)), math.log1p(small)
    return -y / (1.0 + small), math.log1p(small) - margin


def _safe_logistic(loss, i, t):
    y, edge = loss[0][i], loss[1]
    z = y * t - edge
    if z >= 0.0:
        return 0.0, 0.0
    slope = math.expm1(z)
    if z <= -1.0 or not z < 0.0:
        return y * slope, slope - z
    rest = 0.0
    for k in range(_N_TERMS, 2, -1):
        rest = (rest + 1.0) * z / k
    return y * slope, 0.5 * z * z * (rest + 1.0)


def second_order(loss, i, t, v, value):
    """A q with f*((1−η)v) − f*(v) + η·t·v ≤ η·max(f(t) − q, 0) + η²·q for all η in [0, 1]."""
    raise NotImplementedError


@overload(second_order, jit_options=OPTIONS)
def _second_order(loss, i, t, v, value):
    if len(loss) >= _N_OF_PARABOLAS:

        def piecewise(loss, i, t, v, value):
            # f* is a parabola and a kink at 0: it is exactly that
            return 0.5 * loss[-1] * v * v

        return piecewise

    def entropy(loss, i, t, v, value):
        # the divergence of v·log v + (1 − v)·log(1 − v), or of a part of it, is at most that of χ²
        size = abs(v)
        bound = size / (1.0 - size) if size < 1.0 else np.inf
        return bound if bound <= _MUCH * value else 0.0

    return entropy


@inlined
def _change(loss, i, t, v, value, error, smoothness, lipschitz):
    """The most by which the loss changes within some distance."""
    if not error < np.inf:
        # of a prediction that overflowed nothing is known, on a flat piece either
        return error
    if smoothness == np.inf:
        # far from a kink on a flat piece that is nothing, whatever the Lipschitz constant
        _, below = slope_and_value(loss, i, t - error)
        _, above = slope_and_value(loss, i, t + error)
        change = max(below, above) - value + 32.0 * _EPS * value
    else:
        change = error * (abs(v) + 0.5 * smoothness * error)
    return min(change, lipschitz * error) if lipschitz < np.inf else change


@njit(nogil=True)
def _added(total, rest, value):
    """total + value, and what rounding took away so far: the order of operations matters here."""
    found = total + value
    if abs(total) >= abs(value):
        return found, rest + ((total - found) + value)
    return found, rest + ((value - found) + total)


@inlined
def look(loss, first, pred, shares, norms, sizes, errors, nu, loads, sums):
    """Slopes and loads s_i·ν_i of a block of samples, and sums over them.

    Parameters
    ----------
    loss : tuple of arrays
        Over all samples, as are shares and norms (of the rows).
    first : int
        The first sample of the block.
    pred, nu, loads : arrays over the block
        Predictions; what is found.
    sizes : array
        Of the targets, over all samples or, of length 1, the same for all.
    errors : tuple of floats
        The error of a prediction relative to the norm of its row, and that of any; the smoothness
        and the Lipschitz constant of the loss.
    sums : array of shape (N_SUMS,)
        Added to: s_i/W times the loss; by the sign of the slope, the slope times the norm (LOAD),
        itself (MASS), and what shrinking slopes costs, in first and second order (FIRST, SECOND);
        how much rounding may have changed the loss (CHANGE) and the gradient (DRIFT).
    """
    relative, absolute, smoothness, lipschitz = errors
    own, losses, rest = np.zeros(N_SUMS), 0.0, 0.0
    parabola = len(loss) >= _N_OF_PARABOLAS
    for k in range(len(pred)):
        i, t = first + k, pred[k]
        v, value = slope_and_value(loss, i, t)
        nu[k] = v
        share = shares[i]
        if not share > 0.0:
            loads[k] = 0.0
            continue
        loads[k] = share * v
        norm, size = norms[i], sizes[i if len(sizes) > 1 else 0]
        error = relative * norm + 4.0 * _EPS * (abs(t) + abs(size) + 1.0) + absolute
        losses, rest = _added(losses, rest, share * value)
        own[CHANGE] += share * _change(loss, i, t, v, value, error, smoothness, lipschitz)
        if smoothness < np.inf:
            own[DRIFT] += share * norm * (smoothness * error)
        if v == 0.0:
            continue
        down = 1 if v < 0.0 else 0
        mass = share * abs(v)
        own[MASS_UP + down] += mass
        own[LOAD_UP + down] += mass * norm
        # of an entropy it depends on the prediction exponentially
        second = second_order(loss, i, t, v, value) if error < 0.1 or parabola else 0.0
        if not parabola:
            second *= 1.0 + 4.0 * error
        own[SECOND_UP + down] += share * second
        # of an entropy the bound of the second order holds by itself
        if second == 0.0 or parabola:
            own[FIRST_UP + down] += share * max(value - second, 0.0)
    own[LOSS] = losses + rest if abs(losses) < np.inf else losses
    sums += own


@cached_njit(**OPTIONS)
def pass_through(
    matrix, first, last, block, x, ones, loss, shares, norms, sizes, errors, pred, nu, gradient
):
    """Rows first to last, a block at a time: predictions, slopes, and (1/W)·Σ s_i ν_i a_i.

    `ones` says whether rows end with a one; `gradient` is written. Returned are the sums of `look`.
    """
    sums, rows = np.zeros(N_SUMS), np.empty(min(block, last - first), np.int64)
    loads, p = np.empty(len(rows)), len(gradient) - ones
    total, part = np.zeros(len(gradient)), np.zeros(len(gradient))
    for start in range(first, last, block):
        stop = min(start + block, last)
        n = stop - start
        for k in range(n):
            rows[k] = start + k
        here = pred[start:stop]
        rows_dot(matrix, rows[:n], x[:p], here)
        if ones:
            here += x[p]
        look(loss, start, here, shares, norms, sizes, errors, nu[start:stop], loads, sums)
        # rows on flat pieces are not read again
        n_left = packed(matrix, rows[:n], loads[:n])
        part[:] = 0.0
        rows_add(matrix, rows[:n_left], loads[:n_left], part[:p])
        if ones:
            part[p] = loads[:n_left].sum()
        total += part
    gradient[:] = total
    return sums


@cached_njit(**OPTIONS)
def look_at(loss, first, pred, shares, norms, sizes, errors, nu, loads):
    """`look` by itself; the sums."""
    sums = np.zeros(N_SUMS)
    look(loss, first, pred, shares, norms, sizes, errors, nu, loads, sums)
    return sums
