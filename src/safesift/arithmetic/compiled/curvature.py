"""Aᵀc(Ax) for functions c of single predictions that are simpler than a loss, in one loop.

`what` says which, by its length:

    (weights,)                                 weights_i·t
    (loss, shares, slopes, bends, origin)      shares_i·f'(t) − slopes_i − bends_i·(t − origin_i)
"""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from safesift.arithmetic.compiled.caching import cached_njit
from safesift.arithmetic.compiled.rows import OPTIONS, packed, rows_add, rows_dot, skips
from safesift.arithmetic.compiled.samples import slope_and_value


def load(what, i, t):
    """c(t) of row i."""
    raise NotImplementedError


@overload(load, jit_options=OPTIONS)
def _load(what, i, t):
    if len(what) == 1:
        return lambda what, i, t: what[0][i] * t

    def excess(what, i, t):
        loss, shares, slopes, bends, origin = what
        slope, _ = slope_and_value(loss, i, t)
        return shares[i] * slope - slopes[i] - bends[i] * (t - origin[i])

    return excess


def is_flat(what, i):
    """Whether c of row i is 0 everywhere, so that it need not be read."""
    raise NotImplementedError


@overload(is_flat, jit_options=OPTIONS)
def _is_flat(what, i):
    if len(what) == 1:
        return lambda what, i: what[0][i] == 0.0
    return lambda what, i: False


@cached_njit(**OPTIONS)
def pass_with(matrix, first, last, block, x, ones, what, pred, gradient):
    """Rows first to last, a block at a time: predictions of those that are read, and Σ c(t_i)·a_i.

    `ones` says whether rows end with a one; `gradient` is written.
    """
    rows = np.empty(min(block, last - first), np.int64)
    loads, p = np.empty(len(rows)), len(gradient) - ones
    total, part = np.zeros(len(gradient)), np.zeros(len(gradient))
    for start in range(first, last, block):
        n = 0
        for i in range(start, min(start + block, last)):
            if not (skips(matrix) and is_flat(what, i)):
                rows[n] = i
                n += 1
        rows_dot(matrix, rows[:n], x[:p], loads[:n])
        for k in range(n):
            i, t = rows[k], loads[k] + (x[p] if ones else 0.0)
            pred[i] = t
            loads[k] = load(what, i, t)
        n_left = packed(matrix, rows[:n], loads[:n])
        part[:] = 0.0
        rows_add(matrix, rows[:n_left], loads[:n_left], part[:p])
        if ones:
            part[p] = loads[:n_left].sum()
        total += part
    gradient[:] = total
