"""Aᵀu for some vectors u at once, block by block as rows lie in memory."""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit
from safesift.arithmetic.compiled.rows import OPTIONS, packed, rows_add


@cached_njit(**OPTIONS)
def add_transposed(matrix, first, last, block, loads, ones, out):
    """out_k += Σ loads_ki a_i over rows first to last, for every k; rows with load 0 are not read.

    `ones` says whether rows end with a one.
    """
    rows, p = np.empty(min(block, last - first), np.int64), out.shape[1] - ones
    here, part = np.empty(len(rows)), np.zeros(out.shape[1])
    for start in range(first, last, block):
        n = min(start + block, last) - start
        for k in range(len(loads)):
            for place in range(n):
                rows[place], here[place] = start + place, loads[k, start + place]
            n_left = packed(matrix, rows[:n], here[:n])
            part[:] = 0.0
            rows_add(matrix, rows[:n_left], here[:n_left], part[:p])
            if ones:
                part[p] = here[:n_left].sum()
            out[k] += part
