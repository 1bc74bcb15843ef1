#!/usr/bin/env python3
"""Check a proof about a linear model, its training data, and the rows that do not matter.

    python safesift_check.py proof.npz data.npz [--exact] [--expect alpha=1e-3,...]

Written for somebody who trusts nobody: one file, NumPy and the standard library (pyarrow only to
read Parquet), no code of whoever wrote the proof. What is checked are statements about

    P(x, c) = (1/W) Σ s_i·factor·f(a_iᵀx + c; b_i) + alpha·R(x),      W = Σ s_i,

with s_i ≥ 0 the weights of the rows a_i and c an intercept that is not penalised (or absent):

    gap        P(model) − min P ≤ gap;
    verdicts   at EVERY optimum, row i is strictly inside a flat (1), quadratic (2) or linear (3)
               piece of its loss. Any subset of the rows with verdict 1 may be deleted, with the
               divisor W kept, and the set of optima stays the same. (Rows of weight 0 are not in P
               at all: they count as flat.)
    zero       feature j is 0 at every optimum.

Why deletion is safe: let P' be P without some rows of verdict 1, and S the closed set of optima of
P. Near every point of S these rows have slope 0, so that P and P' differ by a constant there: all
of S is optimal for P', and an optimum of P' near S is one of P. An optimum of P' elsewhere is
joined to S by a segment of optima of P', which would have to leave S at some point: near that point
they are optima of P, a contradiction.

WHAT IS TRUSTED: IEEE doubles, rounded to nearest, without flush-to-zero; that NumPy and its BLAS
add up ordinary products, in any order, fused or not (no Strassen); exp and log to 16 ulps;
math.fsum; SHA-256. With --exact everything is done in rational numbers instead (exp, log and roots
in enclosures): the same rules without an argument on rounding. For a kernel matrix that it is
positive semidefinite is an assumption, and is printed.

That data are those of a root, that exactly the removed rows are missing from them, and what is
asserted of a single row are other questions than whether a proof is one: see safesift_root.py and
safesift_receipt.py, which use this file.

Every test has the form "accept if and only if a ≤ b", so that NaN rejects.
Exit status: 0 proved, 1 not proved, 2 not readable.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import itertools
import json
import math
import sys
import zipfile
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

FORMAT = "safesift-proof 1"
FLAT, CURVED, LINEAR = 1, 2, 3
# entries of a block, of data kept in memory, of data for --exact; bytes of a statement
BLOCK_ENTRIES, KEPT_ENTRIES, MOST_EXACT, MOST_STATEMENT = 2**20, 2**25, 20_000, 2**26


class Unproved(Exception):
    """The files are readable, but what is claimed is not proved."""


class Unreadable(Exception):
    """The file is not a proof, or the data are not those of this proof."""


def need(accepted, otherwise, kind=Unproved):
    """The only way in which anything is accepted. NaN compares false, and so rejects."""
    if not bool(np.all(accepted)):
        raise kind(otherwise)


def readable(accepted, otherwise):
    need(accepted, otherwise, Unreadable)


# --- arithmetic -------------------------------------------------------------------------------


class Floats:
    """u: unit roundoff. c: more than 1, for the few roundings of a bound itself."""

    u, c, tiny, exp_error, exact = 2.0**-53, 1 + 2.0**-48, 2.0**-1074, 2.0**-47, False

    def array(self, values):
        return np.asarray(values, dtype=np.float64)

    def gamma(self, k):
        """k products, added up in any order, are off by γ(k)·Σ|terms| (and k·tiny) at most."""
        return self.u * (k + 5) * 101 / 100

    def root(self, x):
        """√x, rounded up; √tiny more, as x may have lost so much by underflow."""
        return np.sqrt(x) * self.c + 2.0**-537

    def exp(self, z):
        return np.exp(np.clip(z, -700, 700))

    def log(self, z):
        return np.log(z)


class Rationals(Floats):
    """Fractions in arrays of objects: nothing rounds but exp, log and roots, to 120 digits."""

    u, c, tiny, exp_error, exact = Fraction(0), 1, Fraction(0), Fraction(1, 10**40), True
    context = Context(prec=120, Emin=-(10**9), Emax=10**9)

    def array(self, values):
        values = np.asarray(values)
        if values.dtype == object:
            return values
        exact = [Fraction(v) if math.isfinite(v) else v for v in values.astype(float).flat]
        return np.array([*exact, None], dtype=object)[:-1].reshape(values.shape)

    def enclosed(self, function, values):
        def one(q):
            return function(self.context.divide(Decimal(q.numerator), Decimal(q.denominator)))

        return np.vectorize(lambda q: Fraction(one(q)), otypes=[object])(values)[()]

    def root(self, x):
        need(x >= 0, "a root of a negative number")
        return self.enclosed(self.context.sqrt, x) * (1 + self.exp_error)

    def exp(self, z):
        return self.enclosed(self.context.exp, np.clip(z, -700, 700))

    def log(self, z):
        return self.enclosed(self.context.ln, z)


ar = Floats()


class Near:
    """Numbers that are known up to an error: |exact − mid| ≤ rad, entry by entry.

    An operation of doubles is off by u·|result| + tiny at most, which every operation here adds to
    what it makes of the errors that go in; c pays for the rounding of rad itself. So every formula
    below is a formula for exact numbers, and `up` and `low` are proved bounds on its value.
    """

    __array_ufunc__ = None

    def __init__(self, mid, rad=None):
        self.mid = ar.array(mid)
        self.rad = 0 * np.where(abs(self.mid) < math.inf, self.mid, 0) if rad is None else rad

    @classmethod
    def rounded(cls, mid, rad):
        return cls(mid, (rad + ar.u * abs(mid)) * ar.c + 4 * ar.tiny)

    def __add__(self, other):
        other = near(other)
        return Near.rounded(self.mid + other.mid, self.rad + other.rad)

    def __mul__(self, other):
        other = near(other)
        rad = abs(self.mid) * other.rad + self.rad * (abs(other.mid) + other.rad)
        return Near.rounded(self.mid * other.mid, rad)

    def __truediv__(self, other):
        other, mid = near(other), self.mid / near(other).mid
        need(2 * other.rad <= abs(other.mid), "a quotient is not known")
        rad = (self.rad + abs(mid) * other.rad + 2 * ar.tiny) / (abs(other.mid) - other.rad)
        return Near.rounded(mid, rad)

    def __neg__(self):
        return Near(-self.mid, self.rad)

    def __sub__(self, other):
        return self + -near(other)

    def __abs__(self):
        return Near(abs(self.mid), self.rad)

    def __getitem__(self, places):
        return Near(self.mid[places], self.rad[places])

    def clip(self, low, high):
        """Moves no two numbers apart, so that the error stays."""
        return Near(np.minimum(np.maximum(self.mid, low), high), self.rad)

    def sum(self):
        gamma = ar.gamma(self.mid.size)
        return Near(self.mid.sum(), (self.rad.sum() + gamma * abs(self.mid).sum()) * (1 + gamma))

    @property
    def up(self):
        return (self.mid + self.rad) + (2 * ar.u * (abs(self.mid) + self.rad) + 4 * ar.tiny)

    @property
    def low(self):
        return -(-self).up


def near(value):
    return value if isinstance(value, Near) else Near(value)


def product(matrix, x):
    """An exact matrix times numbers that are known nearly.

    γ·|x| may be lost by underflow, and entries of the matrix be large: tiny pays for it.
    """
    gamma, k = ar.gamma(len(x.mid)), len(x.mid)
    rad = (abs(matrix) @ (gamma * abs(x.mid) + x.rad + ar.tiny)) * (1 + gamma)
    return Near(matrix @ x.mid, rad * ar.c + 4 * k * ar.tiny)


def length(x):
    """An upper bound on the Euclidean norm."""
    return ar.root((x * x).sum().up)


# --- losses -----------------------------------------------------------------------------------
#
# All losses but "logistic" are a function of the signed distance e from an interval [lo, hi]:
#
#     f(t) = ψ(|e|),  e = t − (nearest point of [lo, hi]),
#
# ψ'(d) = min(d/k, m): quadratic over a width k·m (k = 0: none, a kink), linear beyond; and for
# "safe_logistic" ψ(d) = e^−d − 1 + d. Margins ask for [1 − μ, ∞) times the label, residuals for
# [y − ε, y + ε]. Slopes have the Lipschitz constant 1/k and the bound m. All have inf f = 0.

# what the target is, parameters, k, m; texts are names of parameters
LOSSES = {
    "hinge": ("margin", ("mu",), 0, 1),
    "squared_hinge": ("margin", ("mu",), 1, math.inf),
    "smoothed_hinge": ("margin", ("mu", "width"), "width", 1),
    "absolute_margin": ("label", (), 0, 1),
    "squared_margin": ("label", (), 1, math.inf),
    "logistic": ("margin", (), 4, 1),
    "safe_logistic": ("margin", ("mu",), 1, 1),
    "squared": ("number", (), 1, math.inf),
    "huber": ("number", ("delta",), 1, "delta"),
    "epsilon_insensitive": ("number", ("epsilon",), 0, 1),
    "smoothed_epsilon_insensitive": ("number", ("epsilon", "width"), "width", 1),
    "squared_epsilon_insensitive": ("number", ("epsilon",), 1, math.inf),
    "absolute_interval": ("interval", (), 0, 1),
    "smoothed_interval": ("interval", ("width",), "width", 1),
    "squared_interval": ("interval", (), 1, math.inf),
}


class Loss:
    """The losses of some rows of one problem; ends of intervals are known up to `off`."""

    def __init__(self, given, y, epsilon):
        self.name, self.y, epsilon = given["name"], ar.array(y), ar.array(epsilon)
        kind, _, k, m = LOSSES[self.name]
        self.k, self.m = (ar.array(given[v] if isinstance(v, str) else v)[()] for v in (k, m))
        lo, hi = (self.y[:, 0], self.y[:, 1]) if kind == "interval" else (self.y, self.y)
        if kind == "margin":
            edge = 1 - ar.array(given.get("mu", 0.0))[()]
            lo, hi = np.where(self.y > 0, edge, -math.inf), np.where(self.y < 0, -edge, math.inf)
        # without a flat piece the two quadratic ones are one
        self.point = (lo == hi) & (epsilon == 0)
        self.lo, self.hi, self.width = lo - epsilon, hi + epsilon, self.k * self.m
        sizes = [abs(end) for end in (self.lo, self.hi, self.width)]
        self.off = sum(4 * ar.u * ar.array(np.where(size < math.inf, size, 0)) for size in sizes)

    def excess(self, t):
        """e: moves no further than t and the ends do, and is 0 where t is surely inside."""
        e = Near.rounded(t.mid - np.clip(t.mid, self.lo, self.hi), t.rad + self.off)
        inside = (t.low > self.lo + self.off) & (t.up < self.hi - self.off)
        return Near(e.mid, np.where(inside, 0 * e.rad, e.rad))

    def value_and_slope(self, t):
        """f and f' (where there is a kink, a subgradient at the computed t)."""
        e = self.excess(t)
        if "logistic" in self.name:
            z = t * self.y if self.name == "logistic" else -abs(e)
            size, grown = abs(z.mid), ar.exp(z.mid)
            off = z.rad + ar.exp_error * (4 + 4 * size)
            v, value = 1 - grown, size - (1 - grown)
            if self.name == "logistic":  # log(1 + e^−z)
                v, value = 1 / (1 + grown), np.maximum(-z.mid, 0) + ar.log(1 + ar.exp(-size))
            return Near(value, off), Near(-self.y * v, off)
        if self.k == 0:
            return abs(e) * self.m, near((e.mid > 0) * self.m - (e.mid < 0) * self.m)
        nu = (e / self.k).clip(-self.m, self.m)
        return abs(nu) * (abs(e) - abs(nu) * (self.k / 2)), nu

    def conjugate(self, nu):
        """f*(ν) = ν·hi or ν·lo where there is a kink (k = 0), finite for |ν| ≤ m and such ends."""
        end = np.where(nu > 0, self.hi, np.where(nu < 0, self.lo, 0))
        fine = (abs(nu) <= self.m) & (abs(end) < math.inf)
        need(fine, "a dual point is outside of the domain of f*")
        return Near(end, self.off) * nu

    def secant_floor(self, t, reach):
        """w ≥ 0 with (f'(t') − f'(t))/(t' − t) ≥ w for all |t' − t| < reach, t exact.

        The secant is the mean of f'' between t and t'. On a quadratic piece f'' = 1/k up to the
        nearest end of the piece, at a distance of `room` or more: the mean is at least
        min(1, room/reach)/k. For safe_logistic f'' = e^−d up to d = 0, where it becomes 0, and
        away from there it falls by a factor of at most e^−h ≥ 1 − h over a distance h.
        """
        e = abs(self.excess(t))
        if self.name == "logistic":
            return 0 * reach
        if self.name == "safe_logistic":
            curve = np.maximum(ar.exp(-e.mid) - 8 * ar.exp_error, 0)
            share = np.minimum(1 - 2 * (reach + e.rad), e.low / reach * (1 - e.rad))
        else:
            room = np.where(self.point, reach, e.low)
            room = np.minimum(room, self.width * (1 - 4 * ar.u) - e.up)
            curve, share = 1 / self.k, np.minimum(room / reach, 1)
        return curve * np.maximum(share, 0) * (1 - 16 * ar.u)

    def verdicts(self, lower, upper):
        """On which kind of piece an interval of predictions lies, strictly inside; 0 for none."""
        kinds = (LINEAR, CURVED, FLAT, CURVED, LINEAR)
        if "logistic" in self.name:
            kinds = (0, 0, FLAT if self.name == "safe_logistic" else 0, 0, 0)
        ends = -math.inf, self.lo - self.width, self.lo, self.hi, self.hi + self.width, math.inf
        # targets are below 1e150: a bound that is infinite is on the side of an infinite end only
        lower, upper = np.maximum(lower, -1e308), np.minimum(upper, 1e308)
        after = [lower > end + self.off for end in ends]
        before = [upper < end - self.off for end in ends]
        found = np.zeros(len(lower), dtype=np.uint8)
        for i, kind in enumerate(kinds):
            found[after[i] & before[i + 1]] = kind
        found[self.point & after[1] & before[4]] = CURVED
        return found


# --- blocks of rows ---------------------------------------------------------------------------


class Sparse:
    """A matrix as entries (row, column, value), none of them twice."""

    def __init__(self, shape, rows, cols, values):
        self.shape, self.rows, self.cols, self.values = shape, rows, cols, values

    def __abs__(self):
        return Sparse(self.shape, self.rows, self.cols, abs(self.values))

    def __matmul__(self, x):
        return np.bincount(self.rows, self.values * x[self.cols], minlength=self.shape[0])

    @property
    def T(self):
        return Sparse(self.shape[::-1], self.cols, self.rows, self.values)


def squared(matrix):
    """Upper bounds on the squares of the entries."""
    if isinstance(matrix, Sparse):
        return Sparse(matrix.shape, matrix.rows, matrix.cols, squared(matrix.values))
    return matrix * matrix * ar.c + ar.tiny


def dense(matrix):
    if not isinstance(matrix, Sparse):
        return matrix
    out = np.zeros(matrix.shape)
    out[matrix.rows, matrix.cols] = matrix.values
    return out


# --- one problem, and the rules ---------------------------------------------------------------


class Problem:
    """P, what is proved of it so far, and the rules that prove more.

    alpha·R(x) = τ‖x‖₁ + ½κ‖x‖₂² (l2, l1, elastic net), or ‖x‖ ≤ radius in the l1 or l2 norm. With
    an intercept points end with it, and rows with a one.
    """

    def __init__(self, statement, data, y):
        self.data, self.y, self.p, self.given = data, y, data.p, statement["loss"]
        self.kernel, self.intercept = statement["kernel"], statement["intercept"]
        penalty = statement["penalty"]
        self.ball = penalty["name"][:2] if "radius" in penalty else ""
        self.radius = near(penalty.get("radius", 0.0))
        ratio = near(penalty.get("l1_ratio", float(penalty["name"] == "l1")))
        alpha = near(0.0 if self.ball else statement["alpha"])
        self.tau, self.kappa = ratio * alpha, (near(1.0) - ratio) * alpha
        self.sparse, self.strong = self.tau.mid > 0, self.kappa.mid > 0
        self.k = Loss(self.given, y[:0], 0.0).k
        self.smooth = self.k > 0
        # W is recomputed; s ≥ 0 is verified, and that no share is denormal
        weights = data.weights
        need((weights >= 0) & (weights < math.inf), "a weight is negative or not finite")
        total = ar.array(weights).sum() if ar.exact else math.fsum(weights)
        need(total > 0, "all weights are 0")
        self.share = near(weights) / Near(total, ar.u * total) * self.given["factor"]
        known = (self.share.mid >= 1e-290) & (self.share.rad <= 16 * ar.u * self.share.mid)
        need((self.share.mid == 0) | known, "a share of the weights is denormal")
        self.epsilon, self.seen = np.broadcast_to(data.epsilon, data.n), None
        self.floor, self.zeros = -math.inf, Near(np.zeros(self.p + self.intercept))
        self.penalised = near(np.arange(self.p + self.intercept) < self.p)
        self.alive, self.reach = np.ones(self.p, dtype=bool), np.full(self.p, math.inf)
        self.proved = np.where(weights == 0, FLAT, 0).astype(np.uint8)

    def visit(self, x):
        """Blocks of rows with their losses, shares and predictions; the last ones are kept."""
        if self.seen is None or not np.array_equal(self.seen[0], x):
            self.seen = x.copy(), {}
        known = self.seen[1]
        for rows, matrix in self.data.blocks():
            if rows.start not in known:
                loss = Loss(self.given, self.y[rows], self.epsilon[rows])
                known[rows.start] = loss, product(matrix, near(x))
            loss, t = known[rows.start]
            yield rows, matrix, loss, self.share[rows], t

    def gather(self, rows, matrix, v):
        """Σ v_i a_i over a block; functions of a kernel's space are known by their coefficients."""
        if not self.kernel:
            return product(matrix.T, v)
        out = Near(0 * self.zeros.mid)
        out.mid[rows], out.rad[rows], out.mid[self.p :] = v.mid, v.rad, v.mid.sum()
        out.rad[self.p :] = v.sum().rad
        return out

    def square(self, x):
        """‖x‖² without the intercept; in a kernel's space it is xᵀKx."""
        coef, total = x[: self.p], near(0.0)
        if not self.kernel:
            return (near(coef) * coef).sum()
        for rows, matrix in self.data.blocks():
            total = total + (product(matrix[:, : self.p], near(coef)) * coef[rows]).sum()
        return total

    def row_norms(self, rows, matrix):
        """‖a_i‖, or √K_ii, rounded up."""
        if self.kernel:
            return ar.root(matrix.diagonal(rows.start))
        return ar.root(product(squared(matrix), self.penalised).up)

    def norm(self, v):
        """An upper bound on ‖v‖; in a kernel's space an error in v_i adds √K_ii times it."""
        if not self.kernel:
            return length(v)
        more = near(ar.root(np.maximum(self.square(v.mid).up, 0)))
        for rows, matrix in self.data.blocks():
            more = more + (near(self.row_norms(rows, matrix)) * v.rad[rows]).sum()
        return more.up

    # --- the penalty --------------------------------------------------------------------------

    def feasible(self, x):
        x = near(x[: self.p])
        size = abs(x).sum().up if self.ball == "l1" else length(x)
        need(not self.ball or size <= self.radius.mid, "a point is outside of the ball")

    def value(self, x):
        """P, and the part of the losses in it."""
        self.feasible(x)
        losses, one = near(0.0), abs(near(x[: self.p])).sum()
        for _, _, loss, share, t in self.visit(x):
            losses = losses + (share * loss.value_and_slope(t)[0]).sum()
        return losses + self.tau * one + self.kappa * self.square(x) / 2, losses

    def pull(self, x, slope, tau, kappa):
        """v₀ ∈ τ∂‖x‖₁ + κx: computed, nobody can claim a wrong one; at 0 the nearest to −slope."""
        limit = np.maximum(tau.low, 0)
        kinked = near(np.clip(-slope.mid, -limit, limit))
        sign, zero = np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0)), x == 0
        return (tau * sign + kinked * zero + kappa * x) * self.penalised

    def penalty_gap(self, x, v):
        """alpha·(R(x) + R*(−v/alpha)) + vᵀx ≥ 0.

        With s = soft(v, τ): Σ τ|x| + (v − s)x, and ‖κx + s‖²/(2κ), or s = 0 demanded for κ = 0.
        For a ball radius·‖v‖ + vᵀx in the dual norm.
        """
        if self.ball:
            dual = abs(v).up.max() if self.ball == "l1" else length(v)
            return (self.radius * dual + (v * x).sum()).clip(0, math.inf)
        inner = kinks = near(0.0)
        if self.sparse:
            limit = self.tau.low
            # τ itself is known up to an error, by which v − s is off, too
            inner = v.clip(-limit, limit)
            inner = Near(inner.mid, inner.rad + (self.tau.up - limit))
            kinks = (self.tau * abs(x) + inner * x).clip(0, math.inf).sum()
        if not self.strong:
            need(abs(v).up <= self.tau.low, "a dual point is not feasible")
            return kinks
        size = near(self.norm(v - inner + self.kappa * x))
        return kinks + size * size / self.kappa / 2

    # --- rule: gap ----------------------------------------------------------------------------

    def rule_gap(self, x, nu):
        """P(x) − min P ≤ gap, by weak duality (Fenchel and Young).

        For ν in the domains of f* with, if there is an intercept, Σ s_i ν_i = 0, and
        v = Σ share_i ν_i a_i:  P(x, c) − P(x', c') ≤ Σ share_i (f(t_i) + f*(ν_i) − t_iν_i)
        + alpha·(R(x) + R*(−v/alpha)) + vᵀx  for all x', c': the right side is P − D. All its
        parts are ≥ 0 and are bounded one by one, so that nothing cancels. ν are the exact slopes
        f'(t_i), for which the first sum is 0, or, for losses with kinks, those of the file.

        The intercept's equation is met by some ν' = (1 − η')ν on the side of the surplus, η' ≤ η =
        surplus/mass, which moves v by at most η times what that side contributes; a common
        multiple θ makes v feasible for l1. As f* is convex and f*(0) = 0, a row whose ν shrinks by
        the share d or less, d = 1 − θ + η, adds at most d·f(t_i). Where that is too much ν = 0 is
        taken, θ = 0 and d = 1, which says no more than min P ≥ 0.
        """
        p, base, plus, minus = self.p, near(0.0), self.zeros, self.zeros
        for rows, matrix, loss, share, t in self.visit(x):
            here, slope = loss.value_and_slope(t)
            if not self.smooth:
                slope = near(nu[rows])
                parts = here + loss.conjugate(nu[rows]) - t * slope
                base = base + (share * parts).sum()
            pushed = share * slope
            plus = plus + self.gather(rows, matrix, pushed.clip(0, math.inf))
            minus = minus + self.gather(rows, matrix, pushed.clip(-math.inf, 0))
        v, eta, theta = (plus + minus)[:p], 0, 1
        self.slopes = v
        if self.intercept:
            up, down = plus[p], -minus[p]
            mass, surplus = np.minimum(up.low, down.low), abs(up - down).up
            eta = (near(surplus) / mass).up if surplus < mass else 2
            moved = near(np.maximum(abs(plus).up, abs(minus).up)[:p]) * eta
            v = Near(v.mid, v.rad + moved.up)
        if not (self.strong or self.ball):
            largest, limit = abs(v).up.max(), self.tau.low * (1 - 64 * ar.u)
            theta = 1 if largest <= limit else (near(limit) / largest).low
        d = (near(1) - theta + eta).up
        if not d <= 1:
            theta, d = 0, 1
        total, losses = self.value(x)
        self.gap = (base + losses * d + self.penalty_gap(x[:p], v * theta)).up
        self.floor = np.maximum(self.floor, (total - self.gap).low)
        self.model, self.losses, self.moved = x, losses.up, near(self.gap) * 2
        # ‖x*‖ ≤ whole from alpha·R(x*) ≤ P(x*) ≤ P(x), as f ≥ 0, or from the ball; and
        # ‖x* − x‖ ≤ close from P(x) ≥ P(x*) + ½κ‖x − x*‖², P − ½κ‖x‖² being convex, 0 ∈ ∂P(x*)
        whole = self.radius.up if self.ball else math.inf
        if self.sparse:
            whole = (near(total.up) / self.tau).up
        if self.strong:
            self.close = ar.root((near(self.gap) * 2 / self.kappa).up)
        else:
            self.close = (near(whole) + ar.root(np.maximum(self.square(x).up, 0))).up
        self.whole = whole
        self.reach = np.minimum(whole, (abs(near(x[:p])) + self.close).up)

    # --- rule: features -----------------------------------------------------------------------

    def rule_features(self):
        """x*_j = 0 where the loss' derivative stays below τ in size from the last point to x*.

        At an optimum −∂_jF(x*) ∈ τ∂|x*_j| + κx*_j, of size τ or more unless x*_j = 0. A loss with
        1/k-Lipschitz slopes has (f'(t) − f'(t*))² ≤ (2/k)·(its Bregman distance), so that
        Σ share_i (ν_i − ν*_i)² ≤ moved/k with moved = 2·gap; or, by co-coercivity, moved = max −gᵀu
        over a region. By Cauchy and Schwarz ∂_jF moves by √(moved/k · Σ share_i a_ij²) at most.
        """
        need(self.sparse and self.smooth, "no feature can be ruled out")
        squares = self.zeros
        for rows, matrix in self.data.blocks():
            squares = squares + product(squared(matrix).T, self.share[rows])
        moves = ar.root((self.moved * squares[: self.p] / self.k).up)
        below = (abs(self.slopes) + moves).up < self.tau.low
        self.alive = self.alive & ~np.array(below, dtype=bool)

    # --- rule: ball ---------------------------------------------------------------------------

    def rule_ball(self, shifts):
        """‖x* − x‖ ≤ close at the last point x of a gap: the gap ball, or the norm ball. The
        intercept lies between two tangents (`tangent`), or is not bounded at all.
        """
        offsets = [-math.inf, math.inf] if self.intercept else [0, 0]
        for shift in shifts:
            side, offsets[side] = self.tangent(shift)
        for rows, matrix, loss, _, t in self.visit(self.model):
            reach = near(self.row_norms(rows, matrix)) * self.close
            found = loss.verdicts((t - reach + offsets[0]).low, (t + reach + offsets[1]).up)
            self.proved[rows] = np.where(self.proved[rows] == 0, found, self.proved[rows])

    def tangent(self, shift):
        """A bound on c* − c: 0 and a lower one, or 1 and an upper one.

        For a subgradient (g, g_c) at (x, c + shift) every optimum (x*, c*) has
        g_c·(c* − c − shift) ≤ P(x, c) − P(x, c + shift) + close·‖g‖, as P(x, c) ≥ min P and
        ‖x* − x‖ ≤ close. ν are the exact slopes; with a kink ν is a subgradient at a point next to
        the exact t, and f(t*) ≥ f(t) + ν(t* − t) − 2·(the error of f(t)).
        """
        need(self.intercept, "there is no intercept to bound")
        x, v, value = self.model, self.zeros, near(0.0)
        for rows, matrix, loss, share, t in self.visit(x):
            here, nu = loss.value_and_slope(t + shift)
            v = v + self.gather(rows, matrix, share * nu)
            value = value + (share * (here - near(here.rad) * 2)).sum()
        rest, g = v[self.p], (v + self.pull(x, v, self.tau, self.kappa))[: self.p]
        surplus = (near(self.losses) - value).clip(0, math.inf)
        surplus = surplus + near(self.norm(g)) * self.close
        need(abs(rest).low > 0, "a tangent is flat in the intercept")
        more = (surplus / abs(rest).low).up
        return (1, (near(shift) + more).up) if rest.mid > 0 else (0, (near(shift) - more).low)

    # --- rule: region -------------------------------------------------------------------------

    def rule_region(self, x, step, witness):
        """x* − x₀ ∈ B = { u : ‖u‖²_H + gᵀu ≤ slack } for every optimum x*, and what follows.

        H = D + Σ share_i w_i a_i a_iᵀ (a_i ends with a one for the intercept, where D is 0);
        g = ∇F(x₀) + v₀ with the slopes of the losses at x₀, computed here; w_i ≥ 0 at most the
        secants of f_i from x₀ on an OPEN interval around { a_iᵀ(x₀ + u) : u ∈ B }; and for all
        feasible x and all v ∈ alpha·∂R(x):  (v − v₀)ᵀ(x − x₀) ≥ ‖x − x₀‖²_D − slack.

        Proof. Let d = x* − x₀. P is convex and least at x*, so that 0 ≥ (∇F(x₀ + sd) + v)ᵀ(sd) for
        0 < s < 1 and some v ∈ alpha·∂R(x₀ + sd). As long as every a_iᵀ(x₀ + sd) with w_i > 0 is in
        its interval, the right side is at least gᵀ(sd) + ‖sd‖²_H − slack: sd ∈ B. Let s be the
        first time at which one is about to leave; sd ∈ B still, by continuity, but B ends strictly
        inside of the open intervals. So none leaves, and d ∈ B. ∎  With closed intervals this is
        false: a row could stand at the end of its interval and go on from there.

        T square with TᵀHT ⪰ (1 − η)I, η < 1, makes H ≻ 0 and H⁻¹ ⪯ TTᵀ/(1 − η). For u ∈ B
        ‖u‖_H ≤ ‖g‖_{H⁻¹} + √slack, so |aᵀu| ≤ ‖Tᵀa‖·radius, radius = (‖Tᵀg‖ + √slack)/(1 − η).
        w is derived from this bound and then T is verified with this w: if T passes, the bound is
        true of B(w), and w holds on more than B(w).

        D and slack:  l2, elastic net: D = κ.  Where x₀_j = 0, D_j is more by (τ − |v₀_j|)/reach_j,
        since (v_j − v₀_j)x_j ≥ (τ − |v₀_j|)|x_j| and |x_j| ≤ reach_j on the segment.  l2 ball, any
        μ ≥ 0, v₀ = μx₀: −v₀ᵀu = ½μ(‖u‖² + ‖x₀‖² − ‖x‖²), so D = ½μ and slack ½μ(radius² − ‖x₀‖²).
        l1 ball, v₀ as for τ = μ: −v₀ᵀu ≥ Σ_{x₀_j = 0} (μ − |v₀_j|)|x_j| − μ(radius − ‖x₀‖₁).
        Any ε ≥ 0: D + ε and slack + ε·far, with far at least ‖x* − x₀‖²: Σ(|x₀_j| + reach_j)², or
        (whole + ‖x₀‖)², as ‖x*‖₂ ≤ ‖x*‖₁ ≤ whole.
        """
        eta, mu, epsilon = (near(step[name]) for name in ("eta", "multiplier", "epsilon"))
        need(self.smooth and not self.kernel, "regions need slopes, and are not for kernels")
        fine = eta.mid >= 0 and eta.mid < 1 and mu.mid >= 0 and epsilon.mid >= 0
        need(fine and (mu.mid == 0 or self.ball != ""), "a number of a region is out of range")
        p, alive, coef, v = self.p, self.alive, x[: self.p], self.zeros
        need(coef[~alive] == 0, "a point uses a feature that is ruled out")
        self.feasible(x)
        for _, matrix, loss, share, t in self.visit(x):
            v = v + product(matrix.T, share * loss.value_and_slope(t)[1])
        tau = mu if self.ball == "l1" else self.tau
        pull = self.pull(x, v, tau, mu if self.ball == "l2" else self.kappa)
        kinks = np.where(coef == 0, np.maximum((tau - abs(pull[:p])).low, 0), 0)
        more = kinks / (self.reach + ar.array(2.0**-500)[()])
        D, slack = self.kappa.low + epsilon.mid + more, near(0.0)
        if self.ball == "l2":
            D, slack = D + mu.mid / 2, self.radius * self.radius - self.square(x)
        if self.ball == "l1":
            slack = (self.radius - abs(near(coef)).sum()) * 2
        far = (abs(near(coef)) + self.reach)[alive]
        far = (far * far).sum().up
        if not self.strong:
            whole = near(self.whole) + length(near(coef))
            far = np.minimum(far, (whole * whole).up)
        slack = slack.clip(0, math.inf) * mu / 2 + epsilon * far
        D = (D * (1 - 8 * ar.u) - 4 * ar.tiny)[alive]
        square = step["form"] == "square"
        shape = Square(self, witness, D) if square else Mean(self, witness, step["beta"], D)
        steep = near(shape.norm((v + pull)[shape.columns]))
        radius = ((steep + ar.root(slack.up)) / (near(1) - eta)).up
        found = self.proved.copy()
        for rows, matrix, loss, share, t in self.visit(x):
            bound = (near(shape.row_norms(matrix)) * radius).up
            # on an open interval, strictly wider than the bound
            wider = bound * (1 + ar.array(2.0**-20)[()]) + ar.array(2.0**-500)[()]
            shape.add(matrix, share * loss.secant_floor(t, wider))
            verdicts = loss.verdicts((t - bound).low, (t + bound).up)
            found[rows] = np.where(found[rows] == 0, verdicts, found[rows])
        need(shape.least_eigenvalue() >= (near(1) - eta).up, "T does not prove the region")
        self.proved, self.slopes, self.moved = found, v[:p], steep * radius
        reach = (abs(near(coef[alive])) + near(shape.unit_norms()) * radius).up
        self.reach[alive] = np.minimum(self.reach[alive], reach)


class Square:
    """T as it is: TᵀHT ⪰ min_j (M_jj − Σ_{k≠j} |M_jk|)·I by Gershgorin.

    The Gram matrix is off by γ·cⱼcₖ, c² its diagonal (Cauchy and Schwarz).
    """

    def __init__(self, problem, T, D):
        self.data, self.count = problem.data, len(D)
        self.columns = np.append(problem.alive, np.ones(int(problem.intercept), dtype=bool))
        self.D = np.append(D, [0] * problem.intercept)
        self.T = T.reshape(len(self.D), len(self.D))
        self.gram, self.gamma = 0 * self.T, ar.gamma(64 + problem.data.block_rows)
        self.lengths = np.array([length(near(row)) for row in self.T])

    def norm(self, g):
        return length(product(self.T.T, g))

    def row_norms(self, matrix):
        self.rows = dense(matrix)[:, self.columns]
        gamma, turned = ar.gamma(2 * len(self.D) + 8), self.rows @ self.T
        squares = (turned * turned).sum(axis=1) * (1 + gamma) + 4 * len(self.D) * ar.tiny
        return ar.root(squares) + gamma * (abs(self.rows) @ self.lengths) * ar.c

    def add(self, matrix, weights):
        self.gamma = self.gamma + 4 * ar.u
        self.gram = self.gram + (self.rows * weights.mid[:, None]).T @ self.rows

    def least_eigenvalue(self):
        # what products of weights and entries lose by underflow
        lost = 8 * self.data.n * ar.tiny * (2 + ar.array(self.data.largest)[()]) ** 2
        c = ar.root(self.gram.diagonal() * (1 + self.gamma) + lost)
        D = np.diag(self.D)
        H = Near(self.gram + D, (self.gamma + 64 * ar.u) * np.outer(c, c) + 4 * ar.u * D + lost)
        half = product(self.T.T, H)
        M = product(self.T.T, Near(half.mid.T, half.rad.T))
        rows = [near(2 * row.mid[j]).low - abs(row).sum().up for j, row in enumerate(M)]
        # the least of an array is NaN if one of them is (that of a list need not be)
        return np.array(rows or [1]).min()

    def unit_norms(self):
        return self.lengths[: self.count]


class Mean:
    """T = (u, q) ↦ (u/√κ, βq − mᵀu/√κ): TTᵀ is the inverse of κ‖u‖² + (mᵀu + c)²/β².

    For wide data: only β and m are stored, and without an intercept nothing is. κ is the least of
    D. With w̄ = Σ share w and S = Σ share w a, Σ share w (a, 1)(a, 1)ᵀ ⪰ (S, w̄)(S, w̄)ᵀ/w̄ (Jensen),
    so TᵀHT ⪰ min(1, w̄β²) − β‖S − w̄m‖/√κ. Vectors live on all features, 0 where one is ruled out.
    """

    def __init__(self, problem, mean, beta, D):
        self.intercept, self.columns, self.sum = problem.intercept, slice(None), problem.zeros
        self.mean, self.p, self.count = ar.array(0 * problem.zeros.mid), problem.p, len(D)
        self.alive = near(np.append(problem.alive, np.zeros(int(problem.intercept))))
        need(len(D) > 0 and D.min() > 0, "a region of this form needs strong convexity")
        self.kappa, self.beta = near(D.min()), near(beta if self.intercept else 0.0)
        need(self.beta.mid >= 0, "beta is negative")
        if self.intercept:
            self.mean[: self.p][problem.alive] = mean

    def size(self, u, q):
        """‖Tᵀ(a, q)‖ where ‖a − q·m‖ ≤ u."""
        return ar.root((near(u) * u / self.kappa + self.beta * self.beta * q * q).up)

    def norm(self, g):
        last = g[self.p :].sum()  # 0 without an intercept
        return self.size(length((g - last * self.mean) * self.alive), abs(last).up)

    def row_norms(self, matrix):
        squares = product(squared(matrix), self.alive)
        if self.intercept:
            along = product(matrix, near(self.mean))
            squares = squares - along * 2 + (near(self.mean) * self.mean).sum()
        return self.size(ar.root(np.maximum(squares.up, 0)), 1)

    def add(self, matrix, weights):
        self.sum = self.sum + product(matrix.T, weights)

    def least_eigenvalue(self):
        total = self.sum[self.p :].sum()
        off = length((self.sum - total * self.mean) * self.alive)
        least = np.minimum((total * self.beta * self.beta).low, 1)
        # √κ from below is κ over √κ from above
        lost = self.beta * off * ar.root(self.kappa.up) / self.kappa
        return (near(least) - lost).low if self.intercept else 1

    def unit_norms(self):
        return self.size(np.ones(self.count), 0)


# --- the data ---------------------------------------------------------------------------------


def number(cell):
    """The double that a cell stands for; NaN if it is no number, as where it is empty.

    Decimal numbers are rounded to nearest. Infinite, and so refused, are integers that would be
    rounded; what only Python takes for a number is none.
    """
    if isinstance(cell, int) and abs(cell) >= 2**53:
        return math.inf
    if cell is None or (isinstance(cell, str) and ("_" in cell or not cell.isascii())):
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return math.nan


def key(label):
    """Labels as text: numbers in one way of writing, as tables and arrays differ in that.

    Not those that are too large to differ as doubles. What is missing is an empty text.
    """
    try:
        value = number(label)
    except TypeError:  # a date, say
        value = math.nan
    return repr(value + 0.0) if abs(value) < 2**53 else "" if label is None else str(label)


def header(stream):
    """Shape and type of the array that follows; nothing is evaluated, nothing allocated."""
    readable(np.lib.format.read_magic(stream) == (1, 0), "an array of an unknown version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=2048)
    readable(not (fortran and len(shape) > 1), "an array is stored by columns, and not by rows")
    plain = dtype.kind in "biuU" or (dtype.kind == "f" and dtype.itemsize <= 8)
    readable(plain, f"an array holds {dtype}: neither doubles, integers nor texts")
    return shape, dtype


class ArrayFile:
    """An .npz file with X (or CSR's data, indices, indptr), y, and other arrays of one per row."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)

    def column(self, name):
        with self.zip.open(f"{name}.npy") as stream:
            shape, dtype = header(stream)
            return np.frombuffer(stream.read(), dtype=dtype).reshape(shape)

    def batches(self, n_rows, p):
        if "X.npy" not in self.zip.namelist():
            yield from self.sparse_batches(n_rows, p)
            return
        with self.zip.open("X.npy") as stream:
            (n, width), dtype = header(stream)
            readable(width == p, f"X has {width} columns and not {p}")
            for start in range(0, n, n_rows):
                content = stream.read(min(n_rows, n - start) * p * dtype.itemsize)
                yield np.frombuffer(content, dtype=dtype).reshape(-1, p)

    def sparse_batches(self, n_rows, p):
        values, cols, ends = (self.column(name) for name in ("data", "indices", "indptr"))
        readable(len(values) == len(cols) == ends[-1] and ends[0] == 0, "indptr does not fit")
        readable(np.diff(ends) >= 0, "indptr falls")
        readable((cols >= 0) & (cols < p) & (cols.dtype.kind in "iu"), "a column is out of range")
        for start in range(0, len(ends) - 1, n_rows):
            part = ends[start : start + n_rows + 1].astype(np.int64)
            rows = np.repeat(np.arange(len(part) - 1), np.diff(part))
            here = cols[part[0] : part[-1]].astype(np.int64)
            readable(len(np.unique(rows * p + here)) == len(rows), "an entry is there twice")
            yield Sparse((len(part) - 1, p), rows, here, values[part[0] : part[-1]])


class TableFile:
    """CSV or Parquet, with the columns that the statement names."""

    def __init__(self, path, features):
        self.path, self.features = Path(path), features

    def tables(self, names, n_rows):
        """Blocks of rows as {name: cells}; a name that is there twice means nothing."""
        if self.path.suffix == ".parquet":
            from pyarrow.parquet import ParquetFile

            file = ParquetFile(self.path)
            self.once(names, file.schema_arrow.names)
            yield from (block.to_pydict() for block in file.iter_batches(n_rows, columns=names))
            return
        with open(self.path, newline="", encoding="utf-8-sig") as stream:
            rows = csv.reader(stream, strict=True)
            head = next(rows)
            self.once(names, head)
            while block := list(itertools.islice(rows, n_rows)):
                readable([len(row) == len(head) for row in block], "a row is too long or too short")
                yield dict(zip(head, zip(*block, strict=True), strict=True))

    def once(self, names, head):
        for name in names:
            readable(head.count(name) == 1, f"{name!r} is there {head.count(name)} times")

    def column(self, name):
        cells = [cell for block in self.tables([name], 2**14) for cell in block[name]]
        return np.array([*cells, None], dtype=object)[:-1]

    def batches(self, n_rows, p):
        names = list(dict.fromkeys(feature["column"] for feature in self.features))
        for table in self.tables(names, n_rows):
            out = np.empty((len(table[names[0]]), p))
            for j, feature in enumerate(self.features):
                cells, wanted = table[feature["column"]], feature["equals"]
                cells = cells if wanted is None else [key(cell) == key(wanted) for cell in cells]
                out[:, j] = [number(cell) for cell in cells]
            yield out


# how columns were made: one rounded operation after the other, as whoever wrote the proof did it
OPERATIONS = {"subtract": np.subtract, "divide": np.divide, "multiply": np.multiply, "add": np.add}
OPERATIONS["fill"] = lambda x, a: np.where(np.isnan(x), a, x)


class Data:
    """Rows in blocks, transformed as the statement says; targets and weights as a whole."""

    def __init__(self, file, n, p, intercept, transform=()):
        self.file, self.n, self.p, self.intercept, self.transform = file, n, p, intercept, transform
        self.block_rows = max(min(BLOCK_ENTRIES // p, 1024), 1)
        self.largest, self.kept = 0.0, None

    @classmethod
    def read(cls, path, s):
        columns, is_table = s["columns"], Path(path).suffix in (".csv", ".parquet")
        readable(is_table == (columns["features"] is not None), "the proof is for another kind")
        file = TableFile(path, columns["features"]) if is_table else ArrayFile(path)
        self = cls(file, s["n_samples"], s["n_features"], s["intercept"], s["transform"])
        readable(not ar.exact or self.n * (self.p + 1) <= MOST_EXACT, "too large for --exact")
        target = [self.column(name, (self.n,), (self.n, 2)) for name in columns["target"]]
        self.target = np.column_stack(target) if len(target) > 1 else target[0]
        self.weights, self.epsilon = np.ones(self.n), s["loss"].get("epsilon", 0.0)
        if columns["weight"] is not None:
            self.weights = numbers(self.column(columns["weight"], (self.n,)))
            readable(abs(self.weights) < math.inf, "a weight is no number")
        if columns["epsilon"] is not None:
            self.epsilon = numbers(self.column(columns["epsilon"], (self.n,)))
            readable((self.epsilon >= 0) & (self.epsilon < 1e150), "an epsilon is out of range")
        return self

    def column(self, name, *shapes):
        found = self.file.column(name)
        readable(found.shape in shapes, f"{name} has the shape {found.shape}, not {shapes[0]}")
        return found

    def doubles(self, entries):
        """Entries of X, none of them rounded, and then transformed."""
        kind, found = entries.dtype.kind, entries.astype(np.float64)
        exact = kind in "fb" or (kind in "iu" and (abs(found) < 2**53).all())
        readable(exact, "X holds texts, or integers that are too large for doubles")
        for step in self.transform:
            found = OPERATIONS[step["operation"]](found, np.array(step["numbers"]))
        size = np.maximum(found.max(initial=0.0), -found.min(initial=0.0))
        readable(size < 1e150, "X holds what is no number, or too large a one")
        self.largest = max(self.largest, float(size))
        return found

    def with_ones(self, block):
        """The matrix of a block, with a column of ones if there is an intercept."""
        n, more = block.shape[0], int(self.intercept)
        if not isinstance(block, Sparse):
            return ar.array(np.hstack([self.doubles(block), np.ones((n, more))]))
        readable(not self.transform, "sparse columns are never transformed")
        rows, cols = np.append(block.rows, np.arange(n * more)), np.full(n * more, self.p)
        values = np.append(self.doubles(block.values), np.ones(n * more))
        matrix = Sparse((n, self.p + more), rows, np.append(block.cols, cols), values)
        return ar.array(dense(matrix)) if ar.exact else matrix

    def blocks(self):
        """Pairs (rows, matrix), read again for every pass unless all of them can be kept."""
        start, held, kept = 0, 0, []
        for matrix in self.kept or map(self.with_ones, self.file.batches(self.block_rows, self.p)):
            rows = slice(start, start + matrix.shape[0])
            start, held = rows.stop, held + np.size(getattr(matrix, "values", matrix))
            kept = [*kept, matrix] if held <= KEPT_ENTRIES else []
            yield rows, matrix
        readable(start == self.n, f"X has {start} rows and not {self.n}")
        self.kept = kept


def numbers(cells):
    """Cells as doubles; of a pair of ends an empty one is open."""
    found = np.vectorize(number, otypes=[float])(cells)
    if cells.ndim == 2 and cells.dtype == object:
        empty = (cells == "") | (cells == None)  # noqa: E711
        found = np.where(empty, np.array([-math.inf, math.inf]), found)
    return found


def targets(statement, data, positive):
    """What the loss of a part asks for: labels as −1 and 1, numbers, or ends of intervals."""
    if statement["labels"] is None:
        y, pairs = numbers(data.target), LOSSES[statement["loss"]["name"]][0] == "interval"
        readable(y.ndim == 1 + pairs, "y has another shape")
        low, high = y.T if pairs else (y, y)
        fine = (low <= high) & (np.minimum(abs(low), abs(high)) < 1e150)
        sane = (abs(y) < 1e150) | (pairs & (abs(y) == math.inf))
        readable(fine.all() & sane.all(), "a target is no number, or an interval is empty")
        return y
    known = [key(label) for label in statement["labels"]]
    keys = [key(label) for label in data.target.tolist()]
    used = [own for own, weight in zip(keys, data.weights, strict=True) if weight != 0]
    readable(set(used) <= set(known), "a label is not among those of the statement")
    return np.where([own == known[positive] for own in keys], 1.0, -1.0)


# --- the file ---------------------------------------------------------------------------------

# forms of values: records with these fields and no others, lists of some form, one of several
# forms, a certain text, or any count (int), finite number (float), text, truth, single value
NOTHING, WHATEVER = type(None), object
REGION = {"rule": "region", "form": ("square", "mean")}
REGION |= dict.fromkeys(("eta", "epsilon", "multiplier", "beta"), float)
STEPS = {"rule": "gap"}, {"rule": "features"}, {"rule": "ball", "shifts": [float]}, REGION
COLUMNS = {"features": (NOTHING, [{"column": str, "equals": WHATEVER}]), "target": [str]}
COLUMNS |= dict.fromkeys(("weight", "epsilon"), (NOTHING, str))
STATEMENT = {"format": FORMAT, "n_samples": int, "n_features": int, "columns": COLUMNS}
STATEMENT |= {"alpha": float, "intercept": bool, "kernel": bool, "labels": (NOTHING, [WHATEVER])}
STATEMENT |= {"transform": [{"operation": tuple(OPERATIONS), "numbers": [float]}]}
STATEMENT |= {"commitment": {"root": str, "verdicts": str, "slots": int}}
STATEMENT |= {"deletion": (NOTHING, {"root": str, "slots": int})}
STATEMENT |= {"parts": [{"positive": (NOTHING, int), "gap": float, "steps": [STEPS]}]}
PENALTIES = {"l2": (), "l1": (), "elastic_net": ("l1_ratio",)}
PENALTIES |= {"l1_ball": ("radius",), "l2_ball": ("radius",)}


def conforms(value, form):
    if isinstance(form, dict):
        same = type(value) is dict and value.keys() == form.keys()
        return same and all(conforms(value[name], form[name]) for name in form)
    if isinstance(form, list):
        return type(value) is list and all(conforms(one, form[0]) for one in value)
    if isinstance(form, tuple):
        return any(conforms(value, one) for one in form)
    if form is WHATEVER:
        return value is None or type(value) is str or math.isfinite(value)
    if isinstance(form, str) or type(value) is not form:
        return value == form
    return math.isfinite(value) if form is float else form is not int or value >= 0


def check_statement(s):
    """Everything that a statement may say; what is not known is refused."""
    loss, penalty, columns = s["loss"], s["penalty"], s["columns"]
    n, p = s["n_samples"], s["n_features"]
    readable(loss["name"] in LOSSES and penalty["name"] in PENALTIES, "an unknown loss or penalty")
    kind, names = LOSSES[loss["name"]][:2]
    form = {"name": str, "factor": float} | dict.fromkeys(names, (float, NOTHING))
    form = STATEMENT | {"loss": form, "penalty": {"name": str}}
    form["penalty"] |= dict.fromkeys(PENALTIES[penalty["name"]], float)
    for name in form | s:
        fits = name in form and name in s and conforms(s[name], form[name])
        readable(fits, f"{name} is missing, unknown, or not what it has to be")
    unknown = [name for name in names if loss[name] is None]
    readable(unknown == ["epsilon"] * (columns["epsilon"] is not None), "epsilon is not stated")
    given = {"alpha": s["alpha"], "n_samples": n, "n_features": p, **loss, **penalty}
    for name in given.keys() - {"name", "mu", "epsilon", "l1_ratio"}:
        readable(given[name] > 0, f"{name} is not positive")
    for name in given.keys() & {"alpha", "factor", "mu", "width", "delta", "epsilon", "radius"}:
        size = abs(given[name] or 0.0)
        readable(size == 0 or 1e-100 <= size <= 1e100, f"{name} is next to nothing, or huge")
    readable((given.get("epsilon") or 0) >= 0, "epsilon is negative")
    readable(0 <= given.get("l1_ratio", 0) < 1, "l1_ratio is out of range")
    readable(loss["name"] != "safe_logistic" or loss["mu"] >= 0, "mu is negative")
    fine = not s["kernel"] or (penalty["name"] == "l2" and n == p)
    readable(fine, "a kernel goes with its squared norm")
    labels, labelled = [key(label) for label in s["labels"] or ()], kind in ("margin", "label")
    readable(labelled == (s["labels"] is not None), "labels are for losses of labels")
    readable(len(set(labels)) == len(labels), "two labels are one")
    lists = [columns["features"] or [None] * p, *(step["numbers"] for step in s["transform"])]
    readable([len(one) == p for one in lists], "columns or transformations are not for p features")
    readable(0 < len(s["parts"]) <= 10_000, "there is nothing to prove")
    for part in s["parts"]:
        readable(part["positive"] in (range(len(labels)) if labelled else [None]), "a label")
        rules = [step["rule"] for step in part["steps"]]
        readable(rules[:1] == ["gap"] and len(rules) <= 100, "the first of some steps is a gap")
    return s


def once(pairs):
    """A record of JSON; which of two fields of one name is meant, nobody can know."""
    readable(len(dict(pairs)) == len(pairs), "two fields have one name")
    return dict(pairs)


def read_proof(path):
    """Statement, arrays, and the hash of the statement; no more is read than the file is long."""
    archive, arrays = zipfile.ZipFile(path), {}
    stored = all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
    size = sum(info.file_size for info in archive.infolist())
    readable(stored and size <= Path(path).stat().st_size, "an array is compressed")
    for info in archive.infolist():
        name, stream = info.filename.removesuffix(".npy"), io.BytesIO(archive.read(info))
        readable(name not in arrays, "two arrays have one name")
        shape, dtype = header(stream)
        arrays[name] = np.frombuffer(stream.read(), dtype=dtype)
        readable(arrays[name].shape == shape, f"{name} is not what it has to be")
    content = arrays["statement"].tobytes()
    readable(len(content) <= MOST_STATEMENT, "the statement is too long")
    s = check_statement(json.loads(content.decode("utf-8"), object_pairs_hook=once))
    wanted = {"statement": "|u1", "absent": "<u8", "removed": "<u8", "removed_leaves": "|u1"}
    for i in range(len(s["parts"])):
        wanted |= {f"{i}_verdicts": "|u1", f"{i}_zero": "|u1", f"{i}_numbers": "<f8"}
    found = {name: array.dtype.str for name, array in arrays.items()}
    readable(found == wanted, "there are other arrays than stated")
    for i in range(len(s["parts"])):
        sizes = len(arrays[f"{i}_verdicts"]), len(arrays[f"{i}_zero"])
        fits = sizes == (-(-s["n_samples"] // 4), -(-s["n_features"] // 8))
        readable(fits, "verdicts are of another number of rows or features")
        readable(np.isfinite(arrays[f"{i}_numbers"]), "a number of a step is none")
    return s, arrays, hashlib.sha256(content).hexdigest()


# --- checking ---------------------------------------------------------------------------------


def check_part(statement, arrays, data, i):
    """Run the steps of one problem, and compare what they prove with what is claimed."""
    part, n, p, rest = statement["parts"][i], data.n, data.p, arrays[f"{i}_numbers"]
    problem = Problem(statement, data, targets(statement, data, part["positive"]))

    def taken(count):
        """The next numbers of the file; they come in the order in which they are needed."""
        nonlocal rest
        need(len(rest) >= count, "numbers of steps are missing")
        those, rest = ar.array(rest[:count]), rest[count:]
        return those

    model, gap, d = taken(p + data.intercept), math.inf, p + data.intercept
    nu = None if problem.smooth else taken(n)
    for step in part["steps"]:
        if step["rule"] == "gap":
            point = taken(d)
            problem.rule_gap(point, nu)
            gap = np.minimum(gap, problem.gap) if np.array_equal(point, model) else gap
        elif step["rule"] == "features":
            problem.rule_features()
        elif step["rule"] == "ball":
            problem.rule_ball([ar.array(shift)[()] for shift in step["shifts"]])
        else:
            point, k = taken(d), int(problem.alive.sum())
            square = step["form"] == "square"
            size = (k + data.intercept) ** 2 if square else k * data.intercept
            problem.rule_region(point, step, taken(size))
    need(len(rest) == 0, "there are more numbers than steps need")
    if not gap <= part["gap"]:
        # min P ≥ P(x) − gap(x) at any point x
        gap = (problem.value(model)[0] - problem.floor).up
    need(gap <= part["gap"], f"the gap is {float(gap):.3g}, more than claimed")
    bits, zero = arrays[f"{i}_verdicts"], np.unpackbits(arrays[f"{i}_zero"], bitorder="little")
    claimed = np.stack([bits >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).ravel()
    readable(not claimed[n:].any() and not zero[p:].any(), "claims on what is not there")
    wrong = np.flatnonzero((claimed[:n] != 0) & (claimed[:n] != problem.proved))
    first = f"the verdict on row {[*wrong, 0][0]} is not proved"
    need(len(wrong) == 0, f"{first} ({len(wrong)} of them)")
    need((zero[:p] == 0) | ~problem.alive, "a feature is not proved to be 0")
    return claimed[:n]


def in_words(s, verdicts):
    """The statement for people; what is cut off ends with dots."""
    names = ("loss", "penalty", "alpha", "intercept", "n_samples", "n_features", "transform")
    own = {name: s["columns"][name] for name in ("target", "weight", "epsilon", "features")}
    for name, value in [*((name, s[name]) for name in names), ("columns", own)]:
        yield f"{name}: {json.dumps(value)[:200]}{' …' * (len(json.dumps(value)) > 200)}"
    if s["kernel"]:
        yield "assumed: X is a kernel matrix, positive semidefinite"
    for part, codes in zip(s["parts"], verdicts, strict=True):
        who = "" if s["labels"] is None else f"{s['labels'][part['positive']]!r} against the rest: "
        count = np.bincount(codes, minlength=4)
        pieces = f"flat {count[1]}, quadratic {count[2]}, linear {count[3]}, open {count[0]}"
        yield f"{who}P(model) - min P <= {part['gap']!r}; rows: {pieces}"
    yield f"root of the data, for safesift_root.py to compare: {s['commitment']['root'][:64]}"
    flat = int((np.stack(verdicts) == FLAT).all(axis=0).sum())
    yield f"{flat} rows may be deleted, together, with W kept: the optima stay what they are"


def check_expected(s, digest, wishes):
    """Compare a statement with what somebody wants it to say."""
    facts = s["loss"] | s["penalty"] | {"digest": digest, "alpha": s["alpha"]}
    facts |= {name: s[name] for name in ("n_samples", "n_features", "intercept", "kernel")}
    facts |= {"loss": s["loss"]["name"], "penalty": s["penalty"]["name"]}
    facts["gap"] = max(part["gap"] for part in s["parts"])
    del facts["name"]
    for name, equals, wanted in (wish.strip().partition("=") for wish in wishes.split(",") if wish):
        known = f"give NAME=VALUE, the name one of {', '.join(sorted(facts))}"
        readable(equals and name in facts, f"--expect {name}: {known}")
        said = json.dumps(facts[name]).strip('"')
        fits = facts[name] <= number(wanted) if name == "gap" else key(said) == key(wanted.lower())
        need(fits, f"{name} is {said} and not {wanted}")


# A hash tree binds what is asserted of single rows to the statement, for safesift_receipt. Leaves
# are H(0x00 ‖ slot ‖ verdicts), H = SHA-256; node = H(0x01 ‖ left ‖ right), one without a partner
# goes up as it is; root = H(0x02 ‖ format ‖ number of leaves ‖ top).


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def whole(number, size=8):
    return int(number).to_bytes(size, "little")


def slots_of(n, absent):
    """The places of the rows in the tree over the data; rows that were removed left theirs."""
    slots = np.setdiff1d(np.arange(n + len(absent)), absent.astype(np.int64))
    need(len(slots) == n, "slots and rows do not fit")
    return slots


def root_of(nodes):
    count = len(nodes)
    while len(nodes) > 1:
        pairs = [sha(b"\1", *nodes[i : i + 2]) for i in range(0, len(nodes) - 1, 2)]
        nodes = pairs + nodes[2 * len(pairs) :]
    return sha(b"\2", FORMAT.encode(), whole(count), *nodes).hex()


def check(proof_path, data_path, exact=False, expect=""):
    """The proof (statement, arrays), the data, and the statement in words; raises Unproved."""
    global ar
    ar = Rationals() if exact else Floats()
    statement, arrays, digest = read_proof(proof_path)
    check_expected(statement, digest, expect)
    data = Data.read(data_path, statement)
    verdicts = [check_part(statement, arrays, data, i) for i in range(len(statement["parts"]))]
    slots = slots_of(data.n, arrays["absent"])
    pairs = zip(slots, np.stack(verdicts, axis=1), strict=True)
    root = root_of([sha(b"\0", whole(slot), row.tobytes()) for slot, row in pairs])
    need(root == statement["commitment"]["verdicts"], "the verdicts have another root")
    return (statement, arrays), data, [*in_words(statement, verdicts), f"statement {digest}"]


def main(arguments=None, work=check):
    """`work` may check more than this file does; what it returns last are lines to print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proof")
    parser.add_argument("data", help=".npz, .csv or .parquet")
    parser.add_argument("--exact", action="store_true", help="in rational numbers; for small data")
    parser.add_argument("--expect", default="", metavar="NAME=VALUE,...")
    args = parser.parse_args(arguments)
    try:
        with np.errstate(all="ignore"):
            *_, lines = work(args.proof, args.data, args.exact, args.expect)
    except Unproved as error:
        print(f"NOT PROVED: {error}")
        return 1
    except Exception as error:  # whatever a hostile file makes of the libraries that read it
        print(f"NOT READABLE: {type(error).__name__}: {error}")
        return 2
    print("PROVED:", *lines, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
