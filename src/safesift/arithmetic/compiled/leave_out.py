"""Models without some samples, one after the other, in the whitened space of all of them.

At a point x of a problem let T be a basis with TᵀHT ≈ I, z_j = Tᵀa_j and e = Tᵀg, g the gradient.
Without the samples of a group, and with the samples J on another piece of their loss than at x, the
gradient at x + Tv is, in these coordinates,

    r(v) = v + e + Σ_k β_k(v)·z_k,     β_k(v) = share_k·(new slope − old slope)(t_k + z_kᵀv),

k over the group, whose new slope is 0, and J: r(v) = 0 is a system of the size of their number. No
sample changes its piece that is farther from the end of it than ‖z‖·‖v‖; samples are sorted by that
distance over ‖z‖, and looked at from the front. Steps that do not settle are searched along, and
the point that is reached is verified as one near which every optimum lies, rounding included:
`docs/leave_one_out.md` has the theorem.
"""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit

# loops over columns become vector instructions; the bounds hold for any order of a sum
_sums = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
_options = {"nogil": True, "error_model": "numpy"}

EPS = 2.220446049250313e-16
# more samples than that are not moved together
MOST = 400
# plain steps, then steps that are searched along, with so much more curvature than there is
_PLAIN, _STEPS, _DAMPED = 8, 60, 1.0 + 1e-7
# a step so many times as long as the gradient hardly meets curvature
_FAR = 1e5
# a gradient so small, relative to what it is the sum of, is rounding
_NOTHING = 1e-14

SETTLED, UNSETTLED, BEYOND = 0, 1, 2


@cached_njit(**_sums)
def _dot(a, b):
    found = 0.0
    for k in range(len(a)):
        found += a[k] * b[k]
    return found


@cached_njit(**_sums)
def _add(total, factor, a):
    for k in range(len(a)):
        total[k] += factor * a[k]


@cached_njit(**_options)
def _piece(breaks, t):
    """The piece on which t lies: breaks are its lower ends from the second one on."""
    k = 0
    while k < len(breaks) and t > breaks[k]:
        k += 1
    return k


@cached_njit(**_options)
def _slope(quad, lin, piece, t):
    """Of a piece that is flat, 0, however far t is from it."""
    if quad[piece] == 0.0:
        return lin[piece]
    return quad[piece] * t + lin[piece]


@cached_njit(**_options)
def _solve(A, b, n):
    """Gaussian elimination with pivoting, in place; False where a pivot is 0."""
    for c in range(n):
        q = c
        for r in range(c + 1, n):
            if abs(A[r, c]) > abs(A[q, c]):
                q = r
        if A[q, c] == 0.0:
            return False
        if q != c:
            for k in range(n):
                A[c, k], A[q, k] = A[q, k], A[c, k]
            b[c], b[q] = b[q], b[c]
        for r in range(c + 1, n):
            f = A[r, c] / A[c, c]
            if f != 0.0:
                for k in range(c, n):
                    A[r, k] -= f * A[c, k]
                b[r] -= f * b[c]
    for c in range(n - 1, -1, -1):
        for k in range(c + 1, n):
            b[c] -= A[c, k] * b[k]
        b[c] /= A[c, c]
    return True


@cached_njit(**_options)
def _is_positive(M, n, ridge, work):
    """Whether ridge·I − M has a Cholesky factor."""
    for i in range(n):
        for j in range(i + 1):
            found = (ridge if i == j else 0.0) - M[i, j]
            for k in range(j):
                found -= work[i, k] * work[j, k]
            if i == j:
                if not found > 0.0:
                    return False
                work[i, i] = np.sqrt(found)
            else:
                work[i, j] = found / work[j, j]
    return True


@cached_njit(**_options)
def _least_curvature(M, n, trace, whole, work):
    """A lower bound on the least eigenvalue of whole·I − M, M of n rows; 0 where none is found."""
    frobenius, gershgorin = 0.0, 0.0
    for i in range(n):
        row = 0.0
        for j in range(n):
            row += abs(M[i, j])
            frobenius += M[i, j] * M[i, j]
        gershgorin = max(gershgorin, row)
    slack = (8.0 + 4.0 * n) * EPS * (n + 1.0) * trace
    least = whole - min(np.sqrt(frobenius), gershgorin) - slack
    if least > 0.3 * whole or n <= 1:
        return max(least, 0.0)
    share = 0.5 * whole
    for _ in range(24):
        if share <= least:
            break
        if _is_positive(M, n, whole - share - slack, work):
            return share
        share *= 0.5
    return max(least, 0.0)


@cached_njit(**_options)
def leave_out(
    groups, members, starts, own, owner, samples, reach, near, limit, white, shifts, work, out
):  # fmt: skip
    """Leave out some groups of samples, one group at a time.

    Parameters
    ----------
    groups : array of integers
        The numbers of the groups.
    members, starts : arrays of integers
        The members of group k of the list are members[starts[k]:starts[k + 1]].
    own : array of shape (len(members), d)
        Their z.
    owner : array of integers
        The number of the group of every sample.
    samples : tuple of arrays
        Of every sample: prediction and its error, share, piece, inner ends of pieces, quadratic
        and linear terms, ‖z‖ or more, and the error of z.
    reach : array
        The least ‖v‖ at which a sample may change its piece, ascending, for those near an end.
    near : tuple
        Which samples those are, and their z.
    limit : float
        The reach of all others is at least that.
    white : tuple
        e, a bound on its error, the looseness of T, the relative error of shares; f, what e
        gains with alpha, and by how much T becomes looser.
    shifts : array
        By how much the alpha of every group is above that of the base.
    work : tuple
        `workspace(d)`.
    out : tuple
        Of every member its prediction and half the length of its interval; of every group what
        came of it, how many samples were looked at and changed piece, ‖v‖ and how far an optimum
        may be from it; v for every group, or an array without rows; and for each of the first
        `most` samples that moved which it is and its β, or arrays without columns.
    """
    t, (order, Z) = samples[0], near
    e_base, eerr_base, loose_base, share_error, f, growth = white
    where, place, to, beta, A, b, v, direction, r, e, M, low, lost, at = work
    pred, half, status, looked, changed, length, radius, vs, moved, moved_beta = out
    d = len(e_base)
    for g in range(len(groups)):
        group, first, last = groups[g], starts[g], starts[g + 1]
        size = last - first
        status[g], looked[g], changed[g] = UNSETTLED, 0, 0
        for m in range(first, last):
            pred[m], half[m] = t[members[m]], np.inf
        if size > MOST // 2:
            continue
        for m in range(size):
            where[m], place[m], to[m] = members[first + m], -1 - (first + m), -1
        shift = shifts[g]
        for k in range(d):
            e[k] = e_base[k] + shift * f[k]
        loose = loose_base + abs(shift) * growth
        eerr = eerr_base + 4.0 * EPS * (d + 8.0) * abs(shift) * np.sqrt(_dot(f, f))
        who = (members, first, last, own, owner, group)
        count = size
        v[:] = 0.0
        total = _residual(where, place, to, count, own, Z, samples, e, v, beta, r)
        for step in range(_STEPS):
            if np.sqrt(_dot(r, r)) <= _NOTHING * total:
                break
            damped = step >= _PLAIN
            solved = not damped and _newton(
                where, place, to, count, own, Z, samples, r, 1.0, A, b, direction
            )
            if not solved or not _dot(direction, direction) < _FAR**2 * _dot(r, r):
                damped = True
                _newton(where, place, to, count, own, Z, samples, r, _DAMPED, A, b, direction)
            if damped:
                _search(who, near, reach, limit, samples, e, v, direction)
            for k in range(d):
                v[k] += direction[k]
            far = np.searchsorted(reach, np.sqrt(_dot(v, v)) * (1.0 + 1e-9), side="right")
            count = _moved(owner, group, order, Z, far, samples, v, size, where, place, to)
            if count < 0:
                break
            total = _residual(where, place, to, count, own, Z, samples, e, v, beta, r)
        if count < 0:
            continue
        status[g] = _verify(
            who, near, reach, limit, samples, (e, eerr, loose, share_error),
            (where, place, to, count, beta), v, r, (M, low, lost, at),
            (pred, half, looked, radius), g,
        )  # fmt: skip
        length[g], changed[g] = np.sqrt(_dot(v, v)), count - size
        if len(vs):
            for k in range(d):
                vs[g, k] = v[k]
        if moved.shape[1]:
            if count > moved.shape[1]:
                status[g] = UNSETTLED
            else:
                for m in range(count):
                    moved[g, m], moved_beta[g, m] = where[m], beta[m]


@cached_njit(**_options)
def _z(place, own, Z):
    return own[-1 - place] if place < 0 else Z[place]


@cached_njit(**_options)
def _newton(where, place, to, count, own, Z, samples, r, whole, A, b, direction):
    """The step to r = 0, were all samples to stay on their pieces, with whole·I for I.

    False where there is none: the samples that curve the objective may all be gone.
    """
    _, _, share, piece, _, quad, _, _, _ = samples
    for k in range(count):
        j, zk = where[k], _z(place[k], own, Z)
        rise = quad[j, to[k]] if to[k] >= 0 else 0.0
        load = share[j] * (rise - quad[j, piece[j]]) / whole
        b[k] = -load * _dot(zk, r)
        for m in range(count):
            A[k, m] = (1.0 if m == k else 0.0) + load * _dot(zk, _z(place[m], own, Z))
    if not _solve(A, b, count):
        return False
    for k in range(len(r)):
        direction[k] = -r[k] / whole
    for k in range(count):
        _add(direction, -b[k] / whole, _z(place[k], own, Z))
    return True


@cached_njit(**_options)
def _moved(owner, group, order, Z, far, samples, v, size, where, place, to):
    """Those that are not on their piece at v, after the group; how many, -1 for too many."""
    t, _, _, piece, breaks, _, _, _, _ = samples
    count = size
    for u in range(far):
        j = order[u]
        if owner[j] == group:
            continue
        now = _piece(breaks[j], t[j] + _dot(Z[u], v))
        if now != piece[j]:
            if count >= MOST:
                return -1
            where[count], place[count], to[count] = j, u, now
            count += 1
    return count


@cached_njit(**_options)
def _change(samples, j, to, t):
    """The new slope less the old one, times the share."""
    _, _, share, piece, _, quad, lin, _, _ = samples
    slope = _slope(quad[j], lin[j], to, t) if to >= 0 else 0.0
    return share[j] * (slope - _slope(quad[j], lin[j], piece[j], t))


@cached_njit(**_options)
def _residual(where, place, to, count, own, Z, samples, e, v, beta, r):
    """r(v), and the size of what it is the sum of."""
    t, _, share, piece, _, quad, lin, znorm, _ = samples
    total = np.sqrt(_dot(v, v)) + np.sqrt(_dot(e, e))
    for k in range(len(v)):
        r[k] = v[k] + e[k]
    for k in range(count):
        j, zk = where[k], _z(place[k], own, Z)
        now = t[j] + _dot(zk, v)
        beta[k] = _change(samples, j, to[k], now)
        terms = abs(quad[j, piece[j]] * now) + abs(lin[j, piece[j]])
        total += share[j] * terms * znorm[j]
        _add(r, beta[k], zk)
    return total


@cached_njit(**_options)
def _search(who, near, reach, limit, samples, e, v, direction):
    """Shorten a direction to where the objective no longer falls along it, by bisection.

    Its slope along the direction is piecewise linear and never falls. Samples that are not at hand
    may change piece from some length on: no step is longer.
    """
    (members, first, last, own, owner, group), (order, Z) = who, near
    t, _, _, piece, breaks, _, _, _, _ = samples
    length, ahead_of_it = np.sqrt(_dot(v, v)), np.sqrt(_dot(direction, direction))
    if length + ahead_of_it > 0.999 * limit:
        short = max(0.999 * limit - length, 0.0) / ahead_of_it
        for k in range(len(direction)):
            direction[k] *= short
        ahead_of_it *= short
    end = np.searchsorted(reach, (length + ahead_of_it) * (1.0 + 1e-9), side="right")
    constant = _dot(v, direction) + _dot(e, direction)
    rise = _dot(direction, direction)
    n = end + last - first
    here, ahead = np.empty(n), np.empty(n)
    which, left = np.empty(n, np.int64), np.zeros(n, np.bool_)
    count = 0
    for m in range(first, last):
        here[count], ahead[count] = t[members[m]] + _dot(own[m], v), _dot(own[m], direction)
        which[count], left[count] = members[m], True
        count += 1
    for u in range(end):
        if owner[order[u]] != group:
            here[count] = t[order[u]] + _dot(Z[u], v)
            ahead[count], which[count] = _dot(Z[u], direction), order[u]
            count += 1
    low, high, share = 0.0, 1.0, 1.0
    for _ in range(60):
        slope = constant + share * rise
        for k in range(count):
            at = here[k] + share * ahead[k]
            to = -1 if left[k] else _piece(breaks[which[k]], at)
            if to != piece[which[k]]:
                slope += _change(samples, which[k], to, at) * ahead[k]
        if slope > 0.0:
            high = share
        else:
            low = share
        if low == 1.0:
            break
        share = 0.5 * (low + high)
    for k in range(len(direction)):
        direction[k] *= share


@cached_njit(**_options)
def _unlike(breaks, quad, piece, t, error):
    """By how much, within an error of t, curvature differs from that of a piece."""
    found = 0.0
    for k in range(_piece(breaks, t - error), _piece(breaks, t + error) + 1):
        found = max(found, abs(quad[k] - quad[piece]))
    return found


@cached_njit(**_options)
def _verify(who, near, reach, limit, samples, white, moved, v, r, work, out, g):
    """Every optimum is near x + Tv, by the curvature that is left there: how near, or nothing."""
    (members, first, last, own, owner, group), (order, Z) = who, near
    t, terr, share, piece, breaks, quad, lin, znorm, zerr = samples
    (e, eerr, loose, share_error), (where, place, to, count, beta) = white, moved
    (M, low, lost, at), (pred, half, looked, radius) = work, out
    d, length = len(v), np.sqrt(_dot(v, v))
    dot_error = (d + 8) * EPS
    # what r may be, everything rounded
    size = _dot(r, r) ** 0.5 * (1.0 + dot_error) + loose * length + eerr
    total = length + np.sqrt(_dot(e, e))
    for k in range(count):
        j = where[k]
        now = t[j] + _dot(_z(place[k], own, Z), v)
        error = terr[j] + (zerr[j] + dot_error * znorm[j]) * length
        new_quad = quad[j, to[k]] if to[k] >= 0 else 0.0
        new_lin = lin[j, to[k]] if to[k] >= 0 else 0.0
        old_quad, old_lin = quad[j, piece[j]], lin[j, piece[j]]
        terms = (abs(new_quad) + abs(old_quad)) * abs(now) + abs(new_lin) + abs(old_lin)
        unlike = old_quad
        if to[k] >= 0:
            unlike = _unlike(breaks[j], quad[j], piece[j], now, error)
        doubt = share[j] * (unlike * error + 6.0 * EPS * terms)
        doubt += share_error * abs(beta[k])
        size += doubt * znorm[j] + abs(beta[k]) * zerr[j]
        total += abs(beta[k]) * znorm[j]
    size += (count + 8.0) * EPS * total
    whole = (1.0 - loose) * (1.0 - 8.0 * EPS)
    guess, attempts = 4.0 * size, 0
    while attempts < 12:
        attempts += 1
        if not length + guess < limit:
            return BEYOND
        far = np.searchsorted(reach, (length + guess) * (1.0 + 1e-12), side="right")
        looked[g] = far
        # curvature that is no more, or may be no more, than it was at x
        n, unsure = 0, 0.0
        for m in range(first, last):
            j = members[m]
            if quad[j, piece[j]] > 0.0:
                if n >= MOST:
                    return UNSETTLED
                at[n], lost[n] = -1 - m, share[j] * quad[j, piece[j]] * (1.0 + share_error)
                n += 1
        for u in range(far):
            j = order[u]
            if owner[j] == group:
                continue
            now = t[j] + _dot(Z[u], v)
            error = terr[j] + (zerr[j] + dot_error * znorm[j]) * length
            if _piece(breaks[j], now) == piece[j]:
                # it stayed, as computed: exactly, it may be beyond the end of its piece
                unlike = _unlike(breaks[j], quad[j], piece[j], now, error)
                unsure += share[j] * unlike * error * znorm[j]
            if quad[j, piece[j]] == 0.0:
                continue
            error += znorm[j] * guess
            least = quad[j, piece[j]]
            for k in range(_piece(breaks[j], now - error), _piece(breaks[j], now + error) + 1):
                least = min(least, quad[j, k])
            # an end exactly at the edge of the interval belongs to both pieces
            here = _piece(breaks[j], now + error)
            if here < len(breaks[j]) and now + error >= breaks[j, here]:
                least = min(least, quad[j, here + 1])
            if least < quad[j, piece[j]]:
                if n >= MOST:
                    return UNSETTLED
                at[n] = u
                lost[n] = share[j] * (quad[j, piece[j]] - least) * (1.0 + share_error)
                n += 1
        trace, squares, errors = 0.0, 0.0, 0.0
        for a in range(n):
            za = _z(at[a], own, Z)
            for c in range(a + 1):
                M[a, c] = np.sqrt(lost[a] * lost[c]) * _dot(za, _z(at[c], own, Z))
                M[c, a] = M[a, c]
            trace += M[a, a]
            ja = members[-1 - at[a]] if at[a] < 0 else order[at[a]]
            squares += lost[a] * znorm[ja] ** 2
            errors += lost[a] * zerr[ja] ** 2
        # ‖ZZᵀ − (Z + E)(Z + E)ᵀ‖ ≤ 2‖Z + E‖‖E‖ + ‖E‖², each at most its Frobenius norm
        off = 2.0 * np.sqrt(squares * errors) + errors + dot_error * squares
        curvature = _least_curvature(M, n, trace, whole - off, low)
        if not curvature > 0.0:
            return UNSETTLED
        needed = (size + unsure) / curvature * (1.0 + 1e-12)
        if needed < guess:
            radius[g] = needed
            for m in range(first, last):
                j = members[m]
                pred[m] = t[j] + _dot(own[m], v)
                error = terr[j] + (zerr[j] + dot_error * znorm[j]) * length
                half[m] = error + znorm[j] * needed + 4.0 * EPS * abs(pred[m])
            return SETTLED
        guess = 2.0 * needed
    return UNSETTLED


def workspace(d: int) -> tuple:
    """What `leave_out` computes in, one for each thread."""
    n = MOST + 1
    return (
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n),
        np.empty((n, n)), np.empty(n), np.empty(d), np.empty(d), np.empty(d), np.empty(d),
        np.empty((n, n)),
        np.empty((n, n)), np.empty(n), np.empty(n, np.int64),
    )  # fmt: skip
