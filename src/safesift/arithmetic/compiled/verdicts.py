"""Where intervals of predictions lie among the pieces of a loss, in one look at each sample.

Arithmetic is that of NumPy, operation by operation: what is proved by these loops is proved with
the error bounds of its formulas.
"""

from __future__ import annotations

import numpy as np
from numba import njit

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


# --- all pieces of a table: two columns, by the label, or pieces that are shifted by the target ---
#
# These loops choose between two numbers and do not branch, so that they work on several samples at
# once; for that, numbers of one size are in one loop.


@njit(nogil=True)
def _end(down, up, y, labels):
    """The end of a piece of one sample."""
    return (up if y > 0.0 else down) if labels else y + up


@_compiled
def mark_by_table(lower, upper, y, labels, least, most, flats, which, flat):
    """`mark` for all pieces; their ends, and if they are flat, are of shape (pieces, 2)."""
    inside = np.empty(len(which), np.bool_)
    for piece in range(len(least)):
        (least_down, least_up), (most_down, most_up) = least[piece], most[piece]
        flat_down, flat_up = flats[piece]
        for i in range(len(which)):
            begun = lower[i] > _end(least_down, least_up, y[i], labels)
            inside[i] = begun & (upper[i] < _end(most_down, most_up, y[i], labels))
        for i in range(len(which)):
            inside[i] &= which[i] < 0
            which[i] = np.int8(piece + 1) if inside[i] else which[i]
        for i in range(len(which)):
            if inside[i]:
                flat[i] = flat_up if y[i] > 0.0 else flat_down


@_compiled
def room_by_table(pred, y, labels, least, most, room):
    """room = how far predictions are from the nearer end of their piece, 0 on none of them."""
    for piece in range(len(least)):
        (least_down, least_up), (most_down, most_up) = least[piece], most[piece]
        for i in range(len(pred)):
            below = pred[i] - _end(least_down, least_up, y[i], labels)
            above = _end(most_down, most_up, y[i], labels) - pred[i]
            ends = below if below < above else above
            room[i] = room[i] if ends <= room[i] else ends


@_compiled
def distance_by_table(pred, y, labels, ends, distance):
    """distance = min(distance, the distance to any end), of ends of shape (ends, 2)."""
    for end in range(len(ends)):
        down, up = ends[end]
        for i in range(len(pred)):
            away = abs(pred[i] - _end(down, up, y[i], labels))
            distance[i] = away if away < distance[i] else distance[i]
