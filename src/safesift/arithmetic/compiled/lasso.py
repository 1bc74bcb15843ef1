"""Coordinate descent on the columns of a CSC matrix."""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit
from safesift.arithmetic.numerics import EPS

# a sum may be reordered: nothing here is certified
_reordered = cached_njit(nogil=True, fastmath={"reassoc", "contract"})

# an index that is known not to be negative need not be tested for counting from the end
_index = np.uint64


@_reordered
def expand(columns, features, loads, weights, gradient, bends, sums):
    """Σ_i loads_i a_ij, Σ_i weights_i a_ij² and Σ_i weights_i a_ij for j = features_k."""
    data, indices, indptr = columns
    for k in range(len(features)):
        j = features[k]
        pull = bend = along = 0.0
        for entry in range(_index(indptr[j]), _index(indptr[j + 1])):
            i, value = _index(indices[entry]), data[entry]
            weighted = weights[i] * value
            pull += loads[i] * value
            bend += weighted * value
            along += weighted
        gradient[k], bends[k], sums[k] = pull, bend, along


@_reordered
def lasso_epoch(
    columns, features, which, weights, gradient, bends, follows, threshold, ridge, coef, moved
):  # fmt: skip
    """A step on each x_k for k in `which`; by how much the worst slope was off, and a shift.

    The model is gradientᵀd + ½Σ weights_i (a_iᵀd + shift)² + ½ridge‖x‖² + threshold‖x‖₁, where x
    has moved by d, and its predictions by `moved` and by the shift, which is returned. A step of δ
    on x_k shifts them by −follows_k·δ, as an intercept that stays at its best does. `bends` are the
    second derivatives along that way; x_k is the coefficient of column features_k.
    """
    data, indices, indptr = columns
    worst = shift = 0.0
    for n in range(len(which)):
        k = which[n]
        j, bend, follow = features[k], bends[k], follows[k]
        if bend <= 0.0:
            continue
        slope = gradient[k] + ridge * coef[k]
        for entry in range(_index(indptr[j]), _index(indptr[j + 1])):
            i = _index(indices[entry])
            slope += data[entry] * (weights[i] * (moved[i] + shift))
        target = coef[k] - slope / bend
        size = abs(target) - threshold / bend
        change = (np.sign(target) * size if size > 0.0 else 0.0) - coef[k]
        if change != 0.0:
            coef[k] += change
            shift -= follow * change
            worst = max(worst, bend * abs(change))
            for entry in range(_index(indptr[j]), _index(indptr[j + 1])):
                moved[_index(indices[entry])] += change * data[entry]
    return worst, shift


@_reordered
def follow_signs(H, b, weight, p, u, signs, active, factor, order, k, n_steps):
    """Towards the minimiser of ½uᵀHu + bᵀu + weight·Σ_{j<p}|u_j|, one change of sign at a time.

    An active-set method: `u` moves to the minimiser for the present `signs` of its `active`
    coordinates, stops where the first of them reaches zero, which leaves, or where none does lets
    the one enter whose slope is the largest beyond the weight. A Cholesky factor follows by
    rank-one changes, so that a change costs the square of what is active, and not its cube. All
    three arrays are changed in place; whether it came to its end is for others to see.
    """
    d = len(b)
    work, spare, slopes, sizes = np.zeros(d), np.zeros(d), np.empty(d), np.empty(d)
    banned = np.zeros(d, dtype=np.bool_)
    for j in range(d if k == 0 else 0):
        if active[j]:
            if _append(H, j, order, k, factor):
                k += 1
            else:
                active[j], signs[j], u[j], banned[j] = False, 0.0, 0.0, True
    for _ in range(n_steps):
        for n in range(k):
            j = order[n]
            work[n] = -b[j] - weight * signs[j]
        _solve(factor, k, work)
        share, first = 1.0, -1
        for n in range(k):
            j = order[n]
            if signs[j] * work[n] < 0.0:
                # that of one which has just entered on the wrong side is 0
                reached = u[j] / (u[j] - work[n]) if u[j] != 0.0 else 0.0
                if first < 0 or reached < share:
                    share, first = reached, n
        for n in range(k):
            j = order[n]
            u[j] += share * (work[n] - u[j])
        if first >= 0:
            j = order[first]
            active[j], signs[j], u[j] = False, 0.0, 0.0
            _remove(first, order, k, factor, work, spare)
            k -= 1
            continue
        slopes[:], sizes[:] = b, np.abs(b)
        for n in range(k):
            j = order[n]
            row, value = H[j], u[j]
            for i in range(d):
                term = row[i] * value
                slopes[i] += term
                sizes[i] += abs(term)
        most, enters = 0.0, -1
        for i in range(p):
            if not active[i] and not banned[i]:
                beyond = abs(slopes[i]) - weight - 64.0 * EPS * sizes[i]
                if beyond > most:
                    most, enters = beyond, i
        if enters < 0:
            return
        if _append(H, enters, order, k, factor):
            active[enters], signs[enters] = True, -np.sign(slopes[enters])
            k += 1
        else:
            banned[enters] = True


@_reordered
def _append(H, j, order, k, factor):
    """Row k of the factor, for coordinate j; False where it depends on those before it."""
    row = factor[k]
    rest = H[j, j]
    for n in range(k):
        value = H[j, order[n]]
        for m in range(n):
            value -= row[m] * factor[n, m]
        row[n] = value / factor[n, n]
        rest -= row[n] * row[n]
    if not rest > 1e-15 * H[j, j]:
        return False
    order[k], row[k] = j, np.sqrt(rest)
    return True


@_reordered
def _remove(r, order, k, factor, cosines, sines):
    """Without row and column r of the factored matrix: what stood in the column is added again.

    By a rotation per column, each of which turns all rows below it; row by row, since a row lies
    in one place.
    """
    for m in range(r, k - 1):
        order[m] = order[m + 1]
        row, below = factor[m], factor[m + 1]
        for n in range(r):
            row[n] = below[n]
        carried = below[r]
        for n in range(r, m):
            value = below[n + 1]
            row[n] = cosines[n] * value + sines[n] * carried
            carried = cosines[n] * carried - sines[n] * value
        length = np.hypot(below[m + 1], carried)
        cosines[m], sines[m] = below[m + 1] / length, carried / length
        row[m] = length


@_reordered
def _solve(factor, k, x):
    """x = (LLᵀ)⁻¹x, in place."""
    for n in range(k):
        value = x[n]
        for m in range(n):
            value -= factor[n, m] * x[m]
        x[n] = value / factor[n, n]
    for n in range(k - 1, -1, -1):
        x[n] /= factor[n, n]
        for m in range(n):
            x[m] -= factor[n, m] * x[n]
