"""Products with a matrix of curvature, Σ weights_i a_i a_iᵀ, in one loop over the rows."""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit
from safesift.arithmetic.compiled.rows import OPTIONS, rows_add, rows_dot


@cached_njit(**OPTIONS)
def weighted(matrix, first, last, block, x, ones, weights, gradient):
    """Rows first to last, a block at a time: Σ weights_i (a_iᵀx) a_i, which is written.

    Rows without weight are not read.
    """
    rows = np.empty(min(block, last - first), np.int64)
    pred, p = np.empty(len(rows)), len(gradient) - ones
    total, part = np.zeros(len(gradient)), np.zeros(len(gradient))
    for start in range(first, last, block):
        n = 0
        for i in range(start, min(start + block, last)):
            if weights[i] != 0.0:
                rows[n] = i
                n += 1
        rows_dot(matrix, rows[:n], x[:p], pred[:n])
        for k in range(n):
            pred[k] = weights[rows[k]] * (pred[k] + (x[p] if ones else 0.0))
        part[:] = 0.0
        rows_add(matrix, rows[:n], pred[:n], part[:p])
        if ones:
            part[p] = pred[:n].sum()
        total += part
    gradient[:] = total
