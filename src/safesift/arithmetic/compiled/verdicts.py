"""Where intervals of predictions lie among the pieces of a loss, in one look at each sample.

Arithmetic is that of NumPy, operation by operation: what is proved by these loops is proved with
the error bounds of its formulas.
"""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit
from safesift.arithmetic.numerics import EPS

_compiled = cached_njit(nogil=True)


@_compiled
def enclose(pred, norms, radius, relative, absolute, lower, upper):
    """Write pred ± (radius·norm + rounding): infinite ends where arithmetic overflowed."""
    for i in range(len(pred)):
        width = radius * norms[i]
        error = relative * norms[i] + 4.0 * EPS * (abs(pred[i]) + width) + absolute
        reach = width + error
        low, high = pred[i] - reach, pred[i] + reach
        lower[i] = low if low == low else -np.inf
        upper[i] = high if high == high else np.inf


@_compiled
def mark(lower, upper, least, most, quadratic, linear, number, which, flat):
    """Give a number to the samples whose interval is strictly inside of a piece, and has none yet.

    `flat` says of those whether the piece is.
    """
    for i in range(len(which)):
        if which[i] < 0 and lower[i] > least[i] and upper[i] < most[i]:
            which[i] = number
            flat[i] = quadratic[i] == 0.0 and linear[i] == 0.0


@_compiled
def deepen(pred, least, most, room):
    """room = max(room, the distance to the nearer end of a piece); that is negative outside."""
    for i in range(len(pred)):
        ends = min(pred[i] - least[i], most[i] - pred[i])
        if not ends <= room[i]:
            room[i] = ends
