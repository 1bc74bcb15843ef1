#!/usr/bin/env python3
"""Check a proof about a linear model, its training data, and the rows that do not matter.

    python safesift_check.py proof.npz data.npz [--seed FILE] [--exact] [--expect alpha=1e-3,...]

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
add up ordinary products, in any order, fused or not (no Strassen); exp, expm1 and log1p to 16 ulps;
math.fsum; SHA-256. With --exact everything is done in rational numbers instead (exp, log and roots
in enclosures): the same rules without an argument on rounding. For a kernel matrix that it is
positive semidefinite is an assumption, and is printed.

Every test has the form "accept if and only if a ≤ b", so that NaN rejects.
Exit status: 0 proved, 1 not proved, 2 not readable.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
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
BLOCK_ENTRIES, MOST_EXACT, MOST_STATEMENT = 2**20, 20_000, 2**26


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
        return 1.01 * (k + 4) * self.u

    def root(self, x):
        """√x, rounded up; √tiny more, as x may have lost so much by underflow."""
        return np.sqrt(x) * self.c + 2.0**-537

    def exp(self, z):
        return np.exp(np.clip(z, -700, 700))

    def one_less_exp(self, z):
        return -np.expm1(z)

    def log_one_more(self, z):
        return np.log1p(z)


class Rationals(Floats):
    """Fractions in arrays of objects: nothing rounds."""

    u, c, tiny, exp_error, exact = Fraction(0), 1, Fraction(0), Fraction(1, 10**40), True
    context = Context(prec=120, Emin=-(10**9), Emax=10**9)

    def array(self, values):
        values = np.asarray(values)
        if values.dtype == object:
            return values
        exact = [Fraction(v) if math.isfinite(v) else v for v in values.astype(float).flat]
        return np.array([*exact, None], dtype=object)[:-1].reshape(values.shape)

    def gamma(self, k):
        return self.u

    def root(self, x):
        def up(x):
            need(x >= 0, "a root of a negative number")
            bits = 2 ** (128 + max(x.denominator.bit_length() - x.numerator.bit_length(), 0))
            return Fraction(math.isqrt(x.numerator * bits**2 // x.denominator) + 1, bits)

        return np.vectorize(up, otypes=[object])(x)[()]

    def enclosed(self, values, function):
        def one(z):
            parts = Decimal(z.numerator), Decimal(z.denominator)
            return Fraction(function(self.context.divide(*parts)))

        return np.vectorize(one, otypes=[object])(values)

    def exp(self, z):
        return self.enclosed(np.clip(z, -700, 700), lambda d: d.exp(self.context))

    def one_less_exp(self, z):
        return 1 - self.exp(z)

    def log_one_more(self, z):
        return self.enclosed(1 + z, lambda d: d.ln(self.context))


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
        self.rad = 0 * abs(np.where(abs(self.mid) < math.inf, self.mid, 0)) if rad is None else rad

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

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        return near(other) - self

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

    def joined(self, other):
        return Near(np.append(self.mid, other.mid), np.append(self.rad, other.rad))

    @property
    def up(self):
        return (self.mid + self.rad) + (2 * ar.u * (abs(self.mid) + self.rad) + 4 * ar.tiny)

    @property
    def low(self):
        return -(-self).up


def near(value):
    return value if isinstance(value, Near) else Near(value)


def product(matrix, size, x):
    """An exact matrix times numbers that are known nearly; `size` is its absolute value.

    γ·|x| may be lost by underflow, and entries of the matrix be large: tiny pays for it.
    """
    gamma, k = ar.gamma(len(x.mid)), len(x.mid)
    rad = (size @ (gamma * abs(x.mid) + x.rad + ar.tiny)) * (1 + gamma)
    return Near(matrix @ x.mid, rad * ar.c + 4 * k * ar.tiny)


def length(x):
    """An upper bound on the Euclidean norm."""
    return ar.root((x * x).sum().up)


# --- losses -----------------------------------------------------------------------------------
#
# All losses but the logistic ones are a function of the distance to an interval [lo, hi]:
#
#     f(t) = ψ(|e|),  e = t − (nearest point of [lo, hi]),  ψ'(d) = min(d/k, m),
#
# quadratic over a width k·m (k = 0: none, a kink), linear beyond. Margins ask for [1 − μ, ∞) times
# the label, residuals for [y − ε, y + ε]. So f*(ν) = ½kν² + ν·end(ν) for |ν| ≤ m, end(ν) = hi for
# ν > 0 and lo for ν < 0; f* = ∞ where that end is infinite. All losses have inf f = 0 = f*(0).

# what the target is, parameters, k, m; texts are names of parameters. (logistic, safe_logistic:
# slopes have the Lipschitz constant 1/k and the bound m.)
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
    """The losses of some rows of one problem."""

    def __init__(self, given, y, epsilon):
        self.name = given["name"]
        kind, _, k, m = LOSSES[self.name]
        self.k, self.m = (ar.array(given[v] if isinstance(v, str) else v)[()] for v in (k, m))
        self.logistic, self.y = "logistic" in self.name, ar.array(y)
        if kind == "margin":
            self.edge = 1 - near(given.get("mu", 0.0))
            ends = self.edge * self.y
            self.lo, self.hi, self.has_lo, self.has_hi = ends, ends, self.y > 0, self.y < 0
        else:
            pair = (y[:, 0], y[:, 1]) if kind == "interval" else (y, y)
            self.has_lo, self.has_hi = (np.isfinite(end) for end in pair)
            self.lo, self.hi = (near(np.where(np.isfinite(end), end, 0)) for end in pair)
            if kind == "number":
                self.lo, self.hi = self.lo - epsilon, self.hi + epsilon
        # without a flat piece the two quadratic ones are one
        self.point = (
            y[:, 0] == y[:, 1] if kind == "interval" else (epsilon == 0) & (kind != "margin")
        )

    def excess(self, t):
        above, below = (t - self.hi).clip(0, math.inf), (self.lo - t).clip(0, math.inf)
        return above * self.has_hi - below * self.has_lo

    def depth(self, t):
        """Of logistic losses the margin m = y·t, or how far it is below the flat piece, ≤ 0."""
        margin = t * self.y
        return margin if self.name == "logistic" else (margin - self.edge).clip(-math.inf, 0)

    def value_and_slope(self, t):
        """f and f' (a subgradient at the computed t where there is a kink)."""
        if not self.logistic:
            e = self.excess(t)
            if self.k == 0:
                nu = np.where(e.mid > 0, self.m, np.where(e.mid < 0, -self.m, 0))
                return abs(e) * self.m, near(nu)
            nu = (e / self.k).clip(-self.m, self.m)
            return abs(nu) * (abs(e) - abs(nu) * near(self.k) / 2), nu
        z = self.depth(t)
        size, off = abs(z.mid), z.rad + ar.exp_error * (4 + 4 * abs(z.mid))
        if self.name == "logistic":  # log(1 + e^−m)
            v = 1 / (1 + ar.exp(z.mid))
            value = np.maximum(-z.mid, 0) + ar.log_one_more(ar.exp(-size))
        else:  # e^z − 1 − z
            v = ar.one_less_exp(z.mid)
            value = size - v
        return Near(value, off), Near(-self.y * v, off)

    def fenchel(self, t, nu):
        """Numbers with f(t) + f*(ν') − tν' ≤ base + first·d + second·d², ν' = (1 − d)ν, 0 ≤ d ≤ 1.

        ν is taken as an exact number, in the domain of f*. With f* = ½kν² + ν·end this is exact.

        Logistic losses, with ν near the slope at t: let v = |ν| and v₁ the exact one at the
        computed t, |v − v₁| ≤ ε·v₁ (or both next to 0). f + f* − tν is the divergence KL(v‖v₁) of
        two coins, or a·log(a/b) − a + b of a = 1 − v and b = 1 − v₁ = e^z. Both are at most that
        of χ², q·(1 − v'/v₁)², q = v₁/(1 − v₁) or v₁²/(1 − v₁), and (1 − v'/v₁)² ≤ 2d² + 2ε². At
        d = 0 they are at most ε(6 + 2·size), as a·log(a/b) ≤ 2ε·log(1/b) for b < ε and ≤ 2ε
        otherwise. Moving t by δ costs |f' − ν'|·δ + ½δ²/k. Where q is large, convexity towards
        ν' = 0, where the sum is f, is used instead of χ².
        """
        if not self.logistic:
            end = np.where(nu > 0, self.hi.mid, self.lo.mid)
            end = Near(end, np.maximum(self.hi.rad, self.lo.rad))
            half, linear = near(nu) * nu * self.k / 2, (end - t) * nu
            # some rows move and some do not, so that none may gain from moving
            first = (-linear - half * 2).clip(0, math.inf)
            base = self.value_and_slope(t)[0] + half + linear
            return base.clip(0, math.inf), first, half
        z, eps, v = self.depth(t), ar.exp_error, abs(nu)
        size, value = abs(z.mid), self.value_and_slope(t)[0].up
        q = ar.exp(-z.mid) * (1 if self.name == "logistic" else v * v)
        tame = q <= 10**6
        base = eps * (8 + 2 * size) + 2 * eps * z.rad + z.rad * z.rad
        base = base + np.where(tame, 3 * eps * eps * q, 0)
        first = 2 * v * z.rad + np.where(tame, 0, value)
        return Near(base), Near(first), Near(np.where(tame, 3 * q, 0))

    def in_domain(self, nu):
        finite = np.where(nu > 0, self.has_hi, np.where(nu < 0, self.has_lo, nu == 0))
        return finite & (abs(nu) <= self.m)

    def secant_floor(self, t, reach):
        """w ≥ 0 with (f'(t') − f'(t))/(t' − t) ≥ w for all |t' − t| < reach, t exact.

        The secant is the mean of f'' between t and t'. On a quadratic piece f'' = 1/k up to the
        nearest end of the piece, at a distance of `room` or more: the mean is at least
        min(1, room/reach)/k. For the logistic losses f'' changes by a factor of at most e^{±h}
        over a distance h, and e^{−h} ≥ 1 − h; beyond the edge of safe_logistic it is 0.
        """
        if self.logistic:
            z, near_one = self.depth(t), 1 - 2 * (reach + t.rad)
            if self.name == "logistic":
                v = 1 / (1 + ar.exp(z.mid))
                curve = v * (1 - v) - 8 * ar.exp_error
            else:
                curve = ar.exp(z.mid) - 8 * ar.exp_error
                near_one = np.minimum(near_one, -z.up / reach * (1 - t.rad) * (1 - 8 * ar.u))
            return np.maximum(curve, 0) * np.maximum(near_one, 0) * (1 - 16 * ar.u)
        e = abs(self.excess(t))
        room = np.where(self.point, 2 * reach, e.low)
        if self.m < math.inf:
            room = np.minimum(room, (near(self.k) * self.m - e).low)
        share = np.minimum(np.maximum(room, 0) / reach, 1)
        return share / self.k * (1 - 16 * ar.u)

    def verdicts(self, lower, upper):
        """On which kind of piece an interval of predictions lies, strictly inside; 0 for none."""
        beyond, below = (self.has_hi & (lower > self.hi.up)), (self.has_lo & (upper < self.lo.low))
        flat = (~self.has_lo | (lower > self.lo.up)) & (~self.has_hi | (upper < self.hi.low))
        if self.logistic:
            flat = flat & (self.name == "safe_logistic")
            curved = linear = np.zeros(len(flat), dtype=bool)
        elif self.m < math.inf:
            top, bottom = self.hi + near(self.k) * self.m, self.lo - near(self.k) * self.m
            linear = (beyond & (lower > top.up)) | (below & (upper < bottom.low))
            not_above, not_below = upper < top.low, lower > bottom.up
            inside = beyond & not_above | below & not_below
            curved = inside | (self.point & not_above & not_below)
        else:
            curved, linear = beyond | below | self.point, beyond & below
        return np.select([flat, curved, linear], [FLAT, CURVED, LINEAR], 0).astype(np.uint8)


# --- blocks of rows ---------------------------------------------------------------------------


class Dense:
    def __init__(self, entries):
        self.entries, self.size = entries, abs(entries)

    def dot(self, x):
        return product(self.entries, self.size, x)

    def tdot(self, v):
        return product(self.entries.T, self.size.T, v)

    def squared(self):
        """Upper bounds on the squares of the entries."""
        return Dense(self.entries * self.entries * ar.c + ar.tiny)

    def columns(self, keep):
        return self.entries if keep.all() else self.entries[:, keep]


class Sparse:
    """Entries (row, column, value), none of them twice."""

    def __init__(self, shape, rows, cols, values):
        self.shape, self.rows, self.cols, self.values = shape, rows, cols, values

    def added(self, x, to, of, n):
        """The products of `product`, for rows or for columns."""
        gamma = ar.gamma(len(x.mid))
        error = gamma * abs(x.mid) + x.rad + ar.tiny
        mid = np.bincount(to, self.values * x.mid[of], minlength=n)
        rad = np.bincount(to, abs(self.values) * error[of], minlength=n) * (1 + gamma)
        return Near(mid, rad * ar.c + 4 * len(x.mid) * ar.tiny)

    def dot(self, x):
        return self.added(x, self.rows, self.cols, self.shape[0])

    def tdot(self, v):
        return self.added(v, self.cols, self.rows, self.shape[1])

    def squared(self):
        return Sparse(self.shape, self.rows, self.cols, self.values**2 * ar.c + ar.tiny)

    def columns(self, keep):
        out = np.zeros(self.shape)
        out[self.rows, self.cols] = self.values
        return out[:, keep]


# --- one problem, and the rules ---------------------------------------------------------------


class Problem:
    """P, what is proved of it so far, and the rules that prove more.

    alpha·R(x) = τ‖x‖₁ + ½κ‖x‖₂² (l2, l1, elastic net), or ‖x‖ ≤ radius in the l1 or l2 norm.
    """

    def __init__(self, statement, data, y):
        self.data, self.y, self.n, self.p = data, y, data.n, data.p
        self.given, penalty, alpha = statement["loss"], statement["penalty"], statement["alpha"]
        self.kernel, self.intercept = statement["kernel"], statement["intercept"]
        self.ball = penalty["name"][:2] * ("radius" in penalty)
        self.radius, zero = near(penalty.get("radius", math.inf)), near(0.0)
        ratio = near(penalty.get("l1_ratio", float(penalty["name"] == "l1")))
        self.tau, self.kappa = (zero, zero) if self.ball else (ratio * alpha, (1 - ratio) * alpha)
        self.sparse, self.strong = (part.mid > 0 for part in (self.tau, self.kappa))
        k = LOSSES[self.given["name"]][2]
        self.k = ar.array(self.given[k] if isinstance(k, str) else k)[()]
        self.smooth = self.k > 0
        # W is recomputed; s ≥ 0 is verified, and that no share is denormal
        need((data.weights >= 0) & (data.weights < math.inf), "a weight is negative or not finite")
        total = math.fsum(data.weights) if not ar.exact else ar.array(data.weights).sum()
        need(total > 0, "all weights are 0")
        self.share = near(data.weights) / Near(total, ar.u * total) * self.given["factor"]
        known = (self.share.mid >= 1e-290) & (self.share.rad <= 16 * ar.u * self.share.mid)
        need((self.share.mid == 0) | known, "a share of the weights is denormal")
        self.floor = -math.inf
        self.alive, self.reach = np.ones(self.p, dtype=bool), np.full(self.p, math.inf)
        self.proved = np.where(data.weights == 0, FLAT, 0).astype(np.uint8)

    def visit(self, x, c):
        """Blocks of rows with their losses, shares and predictions."""
        for rows, block in self.data.blocks():
            epsilon = self.data.epsilon
            loss = Loss(self.given, self.y[rows], epsilon[rows] if np.ndim(epsilon) else epsilon)
            yield rows, block, loss, self.share[rows], block.dot(near(x)) + c

    def gather(self, rows, block, v):
        """Σ v_i a_i over a block; functions of a kernel's space are known by their coefficients."""
        if not self.kernel:
            return block.tdot(v)
        out = Near(np.zeros(self.p))
        out.mid[rows], out.rad[rows] = v.mid, v.rad
        return out

    def norm(self, v):
        """An upper bound on ‖v‖; in a kernel's space ‖Σ v_i φ_i‖² = vᵀKv, and an error in v_i
        adds ‖φ_i‖ times it at most.
        """
        if not self.kernel:
            return length(v)
        more = near(ar.root(np.maximum(self.square(v.mid).up, 0)))
        for rows, block in self.data.blocks():
            more = more + (near(self.row_norms(rows, block)) * v.rad[rows]).sum()
        return more.up

    def square(self, x):
        """‖x‖²."""
        if not self.kernel:
            return (near(x) * x).sum()
        parts = ((block.dot(near(x)) * x[rows]).sum() for rows, block in self.data.blocks())
        return sum(parts, near(0.0))

    def row_norms(self, rows, block, mask=None, centre=None):
        """‖a_i − centre‖ over the features of a mask, or √K_ii, rounded up."""
        if self.kernel:
            place = np.arange(rows.stop - rows.start)
            return ar.root(block.entries[place, place + rows.start])
        squares = block.squared().dot(near(np.ones(self.p) if mask is None else mask))
        if centre is not None:
            squares = squares - block.dot(near(centre)) * 2 + (near(centre) * centre).sum()
        return ar.root(np.maximum(squares.up, 0))

    # --- the penalty --------------------------------------------------------------------------

    def feasible(self, x):
        size = abs(near(x)).sum().up if self.ball == "l1" else length(near(x))
        need(not self.ball or size <= self.radius.mid, "a point is outside of the ball")

    def pull(self, x, slope, tau, kappa):
        """v₀ ∈ τ∂‖x‖₁ + κx: computed, nobody can claim a wrong one; at 0 the nearest to −slope."""
        limit = np.maximum(tau.low, 0)
        kinked = near(np.clip(-slope.mid, -limit, limit))
        sign, zero = np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0)), x == 0
        return tau * sign + kinked * zero + kappa * x

    def penalty_gap(self, x, v):
        """alpha·(R(x) + R*(−v/alpha)) + vᵀx ≥ 0.

        With s = soft(v, τ): Σ τ|x| + (v − s)x, and ‖κx + s‖²/(2κ), or s = 0 demanded for κ = 0.
        For a ball radius·‖v‖ + vᵀx in the dual norm.
        """
        if self.ball:
            dual = abs(v).up.max() if self.ball == "l1" else length(v)
            return (self.radius * dual + (v * x).sum()).clip(0, math.inf)
        if not self.sparse:
            size = near(self.norm(v + self.kappa * x))
            return size * size / (self.kappa * 2)
        limit = self.tau.low
        # τ itself is known up to an error, by which v − s is off, too
        inner = v.clip(-limit, limit)
        inner = Near(inner.mid, inner.rad + (self.tau.up - limit))
        kinks = (self.tau * abs(x) + inner * x).clip(0, math.inf).sum()
        if not self.strong:
            need(abs(v).up <= limit, "a dual point is not feasible")
            return kinks
        size = near(length(self.kappa * x + (v - inner)))
        return kinks + size * size / (self.kappa * 2)

    # --- rule: gap ----------------------------------------------------------------------------

    def rule_gap(self, x, c, nu):
        """P(model) − min P ≤ gap, by weak duality (Fenchel and Young).

        For ν in the domains of f* with, if there is an intercept, Σ s_i ν_i = 0, and
        v = Σ share_i ν_i a_i:  P(x, c) − P(x', c') ≤ Σ share_i (f(t_i) + f*(ν_i) − t_iν_i)
        + alpha·(R(x) + R*(−v/alpha)) + vᵀx  for all x', c': the right side is P − D. All its
        parts are ≥ 0 and are bounded one by one, so that nothing cancels. ν are the computed
        slopes, or those of the file for losses with kinks. The intercept's equation is met exactly
        by some ν' = (1 − η')ν on the side of the surplus, η' ≤ η = surplus/mass, which moves v by
        at most η times what that side contributes; a common multiple θ makes v feasible for l1.
        In `Loss.fenchel` d = 1 − θ + η.
        """
        self.feasible(x)
        plus = minus = slopes = squares = Near(np.zeros(self.p))
        value, up, down, base, first, second = (near(0.0) for _ in range(6))
        pushing = False
        for rows, block, loss, share, t in self.visit(x, c):
            here, slope = loss.value_and_slope(t)
            own = slope.mid if nu is None else nu[rows]
            need(loss.in_domain(own), "a dual point is outside of the domain of f*")
            pushing = pushing or ((own != 0) & (self.data.weights[rows] > 0)).any()
            value = value + (share * here).sum()
            base, first, second = (
                a + (share * b).sum()
                for a, b in zip((base, first, second), loss.fenchel(t, own), strict=True)
            )
            pushed = share * own
            positive, negative = pushed.clip(0, math.inf), pushed.clip(-math.inf, 0)
            plus = plus + self.gather(rows, block, positive)
            minus = minus + self.gather(rows, block, negative)
            up, down = up + positive.sum(), down - negative.sum()
            if self.sparse and self.smooth:
                slopes = slopes + block.tdot(share * slope)
                squares = squares + block.squared().tdot(share)
        v, eta, theta = plus + minus, 0, 1
        if self.intercept and pushing:
            rest = up - down
            sides = [side for side, may in ((up, rest.up >= 0), (down, rest.low <= 0)) if may]
            mass, surplus = min(side.low for side in sides), abs(rest).up
            need(surplus <= mass, "slopes of one sign do not suffice for the intercept")
            eta = near(surplus) / mass
            v = Near(v.mid, v.rad + (eta * np.maximum(abs(plus).up, abs(minus).up)).up)
            eta = eta.up
        if not (self.strong or self.ball):
            largest, limit = abs(v).up.max(), self.tau.low * (1 - 64 * ar.u)
            theta = 1 if largest <= limit else (near(limit) / largest).low
        d = (near(1) - theta + eta).up
        need(d <= 1, "the dual point is too far away")
        fenchel = base + (first + second * d) * d
        self.gap = (fenchel + self.penalty_gap(x, v * theta)).up
        one, two = abs(near(x)).sum(), self.square(x)
        self.loss_value = value.up
        total = value + self.tau * one + self.kappa * two / 2
        self.value, self.floor = total.up, np.maximum(self.floor, (total - self.gap).low)
        self.model, self.moved = (x, c), near(self.gap) * 2
        self.slopes, self.squares = slopes, squares
        # ‖x*‖ ≤ whole from alpha·R(x*) ≤ P(x*) ≤ P(model), as f ≥ 0, or from the ball; and
        # ‖x* − x‖ ≤ close from P(x) ≥ P(x*) + ½κ‖x − x*‖², P − ½κ‖x‖² being convex, 0 ∈ ∂P(x*)
        whole = self.radius.up if self.ball else math.inf
        if self.sparse:
            whole = (near(self.value) / self.tau).up
        if self.strong:
            self.close = ar.root((near(self.gap) * 2 / self.kappa).up)
        else:
            self.close = (near(whole) + ar.root(np.maximum(two.up, 0))).up
        self.reach = np.minimum(whole, (abs(near(x)) + self.close).up)

    # --- rule: features -----------------------------------------------------------------------

    def rule_features(self):
        """x*_j = 0 where the loss' derivative stays below τ in size from the last point to x*.

        At an optimum −∂_jF(x*) ∈ τ∂|x*_j| + κx*_j, of size τ or more unless x*_j = 0. A loss with
        1/k-Lipschitz slopes has (f'(t) − f'(t*))² ≤ (2/k)·(its Bregman distance), so that
        Σ share_i (ν_i − ν*_i)² ≤ moved/k with moved = 2·gap; or, by co-coercivity, moved = max −gᵀu
        over a region. By Cauchy and Schwarz ∂_jF moves by √(moved/k · Σ share_i a_ij²) at most.
        """
        need(self.sparse and self.smooth, "no feature can be ruled out")
        moves = ar.root((self.moved * self.squares / self.k).up)
        below = (abs(self.slopes) + moves).up < self.tau.low
        self.alive = self.alive & ~np.array(below, dtype=bool)

    # --- rule: ball ---------------------------------------------------------------------------

    def rule_ball(self, shifts):
        """‖x* − x‖ ≤ close at the model x: the gap ball, or the norm ball. The intercept lies
        between two tangents (`tangent`), or is not bounded at all.
        """
        x, c = self.model
        offsets = [-math.inf, math.inf] if self.intercept else [0, 0]
        for shift in shifts:
            side, offsets[side] = self.tangent(x, c, shift)
        for rows, block, loss, _, t in self.visit(x, c):
            reach = near(self.row_norms(rows, block)) * self.close
            ends = (t - reach + offsets[0]).low, (t + reach + offsets[1]).up
            found = loss.verdicts(*ends)
            self.proved[rows] = np.where(self.proved[rows] == 0, found, self.proved[rows])

    def tangent(self, x, c, shift):
        """A bound on c* − c: 0 and a lower one, or 1 and an upper one.

        For a subgradient (g, g_c) at (x, c + shift) every optimum (x*, c*) has
        g_c·(c* − c − shift) ≤ P(x, c) − P(x, c + shift) + close·‖g‖, as P(x, c) ≥ min P and
        ‖x* − x‖ ≤ close. A computed ν is the slope at some t' near the exact t: with a kink
        f(t*) ≥ f(t') + ν(t* − t) − m|t − t'|; without, f(t*) ≥ f(t) + ν(t* − t) − δ|t − t'| where
        slopes are off by δ, and |t − t'| ≤ kδ.
        """
        need(self.given["name"] not in ("logistic", "safe_logistic"), "no tangent for this loss")
        v, rest, value, lost = Near(np.zeros(self.p)), near(0.0), near(0.0), near(0.0)
        for rows, block, loss, share, t in self.visit(x, c):
            here, nu = loss.value_and_slope(t + shift)
            pushed = share * nu.mid
            v, rest = v + self.gather(rows, block, pushed), rest + pushed.sum()
            off = near(nu.rad) * nu.rad * self.k if self.smooth else here.rad
            value, lost = value + (share * here).sum(), lost + (share * off).sum()
        g = v + self.pull(x, v, self.tau, self.kappa)
        surplus = (self.loss_value - value + lost).clip(0, math.inf)
        surplus = surplus + near(self.norm(g)) * self.close
        need(abs(rest).low > 0, "a tangent is flat in the intercept")
        more = (surplus / abs(rest).low).up
        return (1, (near(shift) + more).up) if rest.mid > 0 else (0, (near(shift) - more).low)

    # --- rule: region -------------------------------------------------------------------------

    def rule_region(self, x, c, witness):
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
        Any ε ≥ 0: D + ε and slack + ε·Σ(|x₀_j| + reach_j)², which is at least ε‖x − x₀‖².
        """
        alive, names = self.alive, ("eta", "multiplier", "epsilon")
        eta, mu, epsilon = (near(witness[name]) for name in names)
        need(self.smooth and not self.kernel, "regions need slopes, and are not for kernels")
        fine = eta.mid >= 0 and eta.mid < 1 and mu.mid >= 0 and epsilon.mid >= 0
        need(fine, "a number of a region is out of range")
        need(mu.mid == 0 or bool(self.ball), "a multiplier is for balls")
        need(x[~alive] == 0, "a point uses a feature that is ruled out")
        self.feasible(x)
        v, rest, squares = Near(np.zeros(self.p)), near(0.0), Near(np.zeros(self.p))
        for _, block, loss, share, t in self.visit(x, c):
            pushed = share * loss.value_and_slope(t)[1]
            v, rest = v + block.tdot(pushed), rest + pushed.sum()
            if self.sparse:
                squares = squares + block.squared().tdot(share)
        tau = mu if self.ball == "l1" else self.tau
        pull = self.pull(x, v, tau, mu if self.ball == "l2" else self.kappa)
        kinks = np.where(x == 0, np.maximum((tau - abs(pull)).low, 0), 0)
        D, slack = self.kappa.low + kinks / self.reach, 0
        if self.ball == "l2":
            D, slack = D + mu.mid / 2, self.radius * self.radius - (near(x) * x).sum()
        if self.ball == "l1":
            slack = (self.radius - abs(near(x)).sum()) * 2
        far = (abs(near(x)) + self.reach)[alive]
        slack = near(slack).clip(0, math.inf) * mu / 2 + (far * far).sum() * epsilon
        D = D + epsilon.mid
        g = (v + pull)[alive].joined(rest) if self.intercept else (v + pull)[alive]
        D = (D * (1 - 8 * ar.u) - 4 * ar.tiny)[alive]
        shape = (Square if witness["form"] == "square" else Mean)(self, witness, D)
        steep = near(shape.norm(g))
        radius = ((steep + ar.root(slack.up)) / (1 - eta)).up
        found = self.proved.copy()
        for rows, block, loss, share, t in self.visit(x, c):
            bound = (near(shape.row_norms(rows, block)) * radius).up
            # on an open interval, strictly wider than the bound
            wider = bound * (1 + ar.array(2.0**-20)[()]) + ar.array(2.0**-500)[()]
            shape.add(block, near(loss.secant_floor(t, wider)) * share)
            verdicts = loss.verdicts((t - bound).low, (t + bound).up)
            found[rows] = np.where(found[rows] == 0, verdicts, found[rows])
        need(shape.least_eigenvalue() >= (1 - eta).up, "T does not prove the region")
        self.proved, self.slopes, self.squares, self.moved = found, v, squares, steep * radius
        reach = (abs(near(x[alive])) + near(shape.unit_norms()) * radius).up
        self.reach[alive] = np.minimum(self.reach[alive], reach)


class Square:
    """T as it is: TᵀHT ⪰ min_j (M_jj − Σ_{k≠j} |M_jk|)·I by Gershgorin.

    The Gram matrix is off by γ·cⱼcₖ, c² its diagonal (Cauchy and Schwarz).
    """

    def __init__(self, problem, witness, D):
        self.problem, self.T, self.size = problem, witness["T"], abs(witness["T"])
        self.D = np.append(D, 0) if problem.intercept else D
        need(self.T.shape == (len(self.D),) * 2, "T is not square over the features alive")
        self.gram, self.gamma = 0 * self.T, ar.gamma(64 + problem.data.block_rows)
        self.lengths = np.array([length(near(row)) for row in self.T])

    def norm(self, g):
        return length(product(self.T.T, self.size.T, g))

    def row_norms(self, rows, block):
        self.rows = block.columns(self.problem.alive)
        if self.problem.intercept:
            self.rows = np.hstack([self.rows, ar.array(np.ones((len(self.rows), 1)))])
        gamma, turned = ar.gamma(2 * len(self.D) + 8), self.rows @ self.T
        squares = (turned * turned).sum(axis=1) * (1 + gamma) + 4 * len(self.D) * ar.tiny
        return ar.root(squares) + gamma * (abs(self.rows) @ self.lengths) * ar.c

    def add(self, block, weights):
        self.gamma = self.gamma + 4 * ar.u
        self.gram = self.gram + (self.rows * weights.mid[:, None]).T @ self.rows

    def least_eigenvalue(self):
        # what products of weights and entries lose by underflow
        lost = 8 * self.problem.n * ar.tiny * (2 + ar.array(self.problem.data.largest)[()]) ** 2
        c = ar.root(self.gram.diagonal() * (1 + self.gamma) + lost)
        D = np.diag(self.D)
        H = Near(self.gram + D, (self.gamma + 64 * ar.u) * np.outer(c, c) + 4 * ar.u * D + lost)
        half = product(self.T.T, self.size.T, H)
        M = product(self.T.T, self.size.T, Near(half.mid.T, half.rad.T))
        rows = [near(2 * row.mid[j]).low - abs(row).sum().up for j, row in enumerate(M)]
        # the least of an array is NaN if one of them is (that of a list need not be)
        return np.array(rows or [1]).min()

    def unit_norms(self):
        return self.lengths[: int(self.problem.alive.sum())]


class Mean:
    """T = (u, q) ↦ (u/√κ, βq − mᵀu/√κ): TTᵀ is the inverse of κ‖u‖² + (mᵀu + c)²/β².

    For wide data: only β and m are stored, and without an intercept nothing is. κ is the least of
    D. With w̄ = Σ share w and S = Σ share w a, Σ share w (a, 1)(a, 1)ᵀ ⪰ (S, w̄)(S, w̄)ᵀ/w̄ (Jensen),
    so TᵀHT ⪰ min(1, w̄β²) − β‖S − w̄m‖/√κ.
    """

    def __init__(self, problem, witness, D):
        need(len(D) > 0, "no feature is left")
        self.problem, self.kappa, self.mean = problem, near(D.min()), ar.array(np.zeros(problem.p))
        need(self.kappa.mid > 0, "a region of this form needs strong convexity")
        self.beta = near(witness["beta"] if problem.intercept else 0.0)
        need(self.beta.mid >= 0, "beta is negative")
        if problem.intercept:
            need(len(witness["mean"]) == len(D), "the mean is not that of the features alive")
            self.mean[problem.alive] = witness["mean"]
        self.total, self.sum = near(0.0), Near(np.zeros(problem.p))

    def norm(self, g):
        if not self.problem.intercept:
            return ar.root((near(length(g)) * length(g) / self.kappa).up)
        centred = near(length(g[:-1] - near(self.mean[self.problem.alive]) * g[-1]))
        last = self.beta * g[-1]
        return ar.root((centred * centred / self.kappa + last * last).up)

    def row_norms(self, rows, block):
        mask, centre = self.problem.alive, self.mean if self.problem.intercept else None
        size = near(self.problem.row_norms(rows, block, mask, centre))
        return ar.root((size * size / self.kappa + self.beta * self.beta).up)

    def add(self, block, weights):
        self.total, self.sum = self.total + weights.sum(), self.sum + block.tdot(weights)

    def least_eigenvalue(self):
        off = length((self.sum - self.total * self.mean)[self.problem.alive])
        least = np.minimum((self.total * self.beta * self.beta).low, 1)
        # √κ from below is κ over √κ from above
        lost = self.beta * off * ar.root(self.kappa.up) / self.kappa
        return (near(least) - lost).low if self.problem.intercept else 1

    def unit_norms(self):
        one = near(np.ones(int(self.problem.alive.sum())))
        return ar.root((one / self.kappa).up)


# --- the data ---------------------------------------------------------------------------------


def key(label):
    """Labels as text: numbers in one way of writing, as tables and arrays differ in that.

    Not those that are too large to differ as doubles, nor what only Python takes for a number.
    """
    text = str(label)
    try:
        number = float(label)
    except (TypeError, ValueError):
        return text
    plain = abs(number) < 2**53 and text.isascii() and "_" not in text
    return repr(number + 0.0) if plain else text


def doubles(values):
    """Numbers as doubles: those that would be rounded are refused. Text is rounded to nearest."""
    found = values.astype(np.float64)
    fine = values.dtype.kind in "bUO" or (values.dtype.kind == "f" and values.dtype.itemsize <= 8)
    whole = values.dtype.kind in "iu"
    readable(fine or (whole & (abs(found) < 2**53)), "integers are too large, or no numbers")
    return found


def header(stream):
    """Shape and type of the array that follows; nothing is evaluated, nothing allocated."""
    readable(np.lib.format.read_magic(stream) == (1, 0), "an array of an unknown version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=2048)
    readable(not dtype.hasobject and not (fortran and len(shape) > 1), "an array of a strange type")
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
            readable(width == p and dtype.kind in "fiub", "X has another shape, or no numbers")
            for start in range(0, n, n_rows):
                rows = min(n_rows, n - start)
                content = stream.read(rows * p * dtype.itemsize)
                yield np.frombuffer(content, dtype=dtype).reshape(rows, p)

    def sparse_batches(self, n_rows, p):
        values, cols, ends = (self.column(name) for name in ("data", "indices", "indptr"))
        readable(len(values) == len(cols) == ends[-1] and ends[0] == 0, "indptr does not fit")
        readable(np.diff(ends) >= 0, "indptr falls")
        readable((cols >= 0) & (cols < p) & (cols.dtype.kind in "iu"), "a column is out of range")
        for start in range(0, len(ends) - 1, n_rows):
            part = ends[start : start + n_rows + 1].astype(np.int64)
            rows = np.repeat(np.arange(len(part) - 1), np.diff(part))
            here, value = cols[part[0] : part[-1]].astype(np.int64), values[part[0] : part[-1]]
            readable(len(np.unique(rows * p + here)) == len(rows), "an entry is there twice")
            yield Sparse((len(part) - 1, p), rows, here, doubles(value))


def number(cell):
    """A cell as a number; what is none is missing, and has to be filled in as stated."""
    try:
        return math.nan if cell is None else float(cell)
    except ValueError:
        return math.nan


class TableFile:
    """CSV or Parquet, with the columns that the statement names."""

    def __init__(self, path, features):
        self.path, self.features = Path(path), features

    def tables(self, names, n_rows):
        """Blocks of rows as {name: cells}."""
        if self.path.suffix == ".parquet":
            from pyarrow.parquet import ParquetFile

            blocks = ParquetFile(self.path).iter_batches(n_rows, columns=names)
            yield from (block.to_pydict() for block in blocks)
            return
        with open(self.path, newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            places = {name: place for place, name in enumerate(next(reader))}
            while block := [row for row, _ in zip(reader, range(n_rows), strict=False)]:
                yield {name: [row[places[name]] for row in block] for name in names}

    def column(self, name):
        return np.array([cell for block in self.tables([name], 2**14) for cell in block[name]])

    def batches(self, n_rows, p):
        names = list(dict.fromkeys(feature["column"] for feature in self.features))
        for table in self.tables(names, n_rows):
            out = np.empty((len(table[names[0]]), p))
            for j, feature in enumerate(self.features):
                cells = table[feature["column"]]
                if "equals" in feature:
                    out[:, j] = [key(cell) == key(feature["equals"]) for cell in cells]
                else:
                    out[:, j] = [number(cell) for cell in cells]
            yield out


# how columns were made: one rounded operation after the other, as whoever wrote the proof did it
OPERATIONS = {
    "fill": lambda x, a: np.where(np.isnan(x), a, x),
    "subtract": np.subtract,
    "divide": np.divide,
    "multiply": np.multiply,
    "add": np.add,
}


class Data:
    """Rows in blocks, transformed as the statement says; targets and weights as a whole."""

    def __init__(self, path, statement):
        self.n, self.p = statement["n_samples"], statement["n_features"]
        columns = statement["columns"]
        features = columns["features"]
        is_table = Path(path).suffix in (".csv", ".parquet")
        readable(is_table == (features is not None), "the proof is for data of another kind")
        self.file = TableFile(path, features) if is_table else ArrayFile(path)
        readable(not ar.exact or self.n * (self.p + 1) <= MOST_EXACT, "too large for --exact")
        self.block_rows = max(min(BLOCK_ENTRIES // self.p, 4096), 1)
        self.largest, self.transform = 0.0, statement["transform"]
        target = [self.column(name) for name in columns["target"]]
        self.target = np.column_stack(target) if len(target) > 1 else target[0]
        self.weights, self.epsilon = np.ones(self.n), statement["loss"].get("epsilon", 0.0)
        if columns["weight"] is not None:
            self.weights = self.numbers_of(columns["weight"])
        if columns["epsilon"] is not None:
            self.epsilon = self.numbers_of(columns["epsilon"])
            readable((self.epsilon >= 0) & (self.epsilon < math.inf), "an epsilon is out of range")

    def column(self, name):
        found = self.file.column(name)
        readable(found.shape[0] == self.n, f"{name} has {found.shape[0]} entries and not {self.n}")
        return found

    def numbers_of(self, name):
        found = doubles(self.column(name))
        readable(found.shape == (self.n,), f"{name} is no column")
        return found

    def numbers(self):
        """Targets that are numbers; an empty cell is an open end."""
        y = self.target
        if y.dtype.kind not in "fiub" and y.ndim == 2:
            open_ends = np.broadcast_to(np.array([-math.inf, math.inf]), y.shape)
            y = np.where((y == "") | (y == None), open_ends, y)  # noqa: E711
        return doubles(y)

    def blocks(self):
        """Pairs (rows, block), read again for every pass."""
        start = 0
        for block in self.file.batches(self.block_rows, self.p):
            is_sparse = isinstance(block, Sparse)
            readable(not (is_sparse and self.transform), "sparse columns are never transformed")
            entries = block.values if is_sparse else doubles(block)
            for operation, numbers in self.transform:
                entries = OPERATIONS[operation](entries, np.array(numbers, dtype=np.float64))
            self.largest = max(self.largest, float(abs(entries).max(initial=0.0)))
            readable(abs(entries) < 1e150, "X holds what is no number, or too large a one")
            rows, start = slice(start, start + block.shape[0]), start + block.shape[0]
            if ar.exact and is_sparse:
                entries = block.columns(np.ones(self.p, dtype=bool))
            yield rows, block if is_sparse and not ar.exact else Dense(ar.array(entries))
        readable(start == self.n, f"X has {start} rows and not {self.n}")


# --- commitments ------------------------------------------------------------------------------
#
# leaf = H(0x00 ‖ slot ‖ salt ‖ row ‖ target ‖ weight ‖ epsilon), H = SHA-256; salt =
#        H(seed ‖ slot); the row as its entries other than 0; numbers are little-endian, −0 is 0
# node = H(0x01 ‖ left ‖ right); one without a partner goes up as it is
# root = H(0x02 ‖ format ‖ number of slots ‖ top); a deleted row leaves H(0x03 ‖ slot) in its slot


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def whole(number, size=8):
    return int(number).to_bytes(size, "little")


def binary(numbers):
    return (np.asarray(numbers, "<f8") + 0.0).tobytes()


def root_of(nodes):
    count = len(nodes)
    while len(nodes) > 1:
        pairs = [sha(b"\1", *nodes[i : i + 2]) for i in range(0, len(nodes) - 1, 2)]
        nodes = pairs + nodes[2 * len(pairs) :]
    return sha(b"\2", FORMAT.encode(), whole(count), *nodes).hex()


def data_leaves(data, labels, slots, seed):
    """The leaves of the rows there are, by their slots."""
    target, extra = data.target, [data.weights] + [data.epsilon] * np.ndim(data.epsilon)
    if labels is None:
        target = data.numbers()
    for rows, block in data.blocks():
        if isinstance(block, Sparse):
            block = Dense(block.columns(np.ones(data.p, dtype=bool)))
        for row, i in zip(block.entries, range(rows.start, rows.stop), strict=True):
            cols = np.flatnonzero(row)
            own = key(target[i]).encode() if labels else binary(target[i])
            more, place = [binary(one[i]) for one in extra], whole(slots[i])
            entries = [whole(len(cols), 4), cols.astype("<u4").tobytes(), binary(row[cols])]
            yield sha(b"\0", place, sha(seed, place), *entries, whole(len(own), 4), own, *more)


def check_commitment(proof, data, seed):
    """The data are those of the root, and exactly what was removed is missing."""
    statement, arrays = proof
    n, slots, deletion = data.n, statement["commitment"]["slots"], statement["deletion"]
    absent = arrays["absent"].astype(np.int64)
    here = np.setdiff1d(np.arange(slots), absent)
    need(len(here) == n and len(np.unique(absent)) == len(absent), "slots and rows do not fit")
    tree = [sha(b"\3", whole(slot)) for slot in range(slots)]
    for slot, one in zip(here, data_leaves(data, statement["labels"], here, seed), strict=True):
        tree[slot] = one
    need(root_of(tree) == statement["commitment"]["root"], "the data are not those of the root")
    if deletion is not None:
        gone = arrays["removed"]
        need(np.isin(gone, absent) & (gone < deletion["slots"]), "a removed row is still there")
        need(len(np.unique(gone)) == len(gone), "a row was removed twice")
        for slot, one in zip(arrays["removed"], arrays["removed_leaves"], strict=True):
            tree[int(slot)] = one.tobytes()
        tree = tree[: deletion["slots"]]
        need(root_of(tree) == deletion["root"], "more or less is missing than was removed")


# --- the file ---------------------------------------------------------------------------------

PENALTIES = {"l2": "", "l1": "", "elastic_net": "l1_ratio"}
PENALTIES |= {"l1_ball": "radius", "l2_ball": "radius"}
STEPS = {"gap": "own", "features": "", "ball": "shifts"}
STEPS |= {"region": "form size eta epsilon multiplier beta"}
STATEMENT = (
    "format n_samples n_features loss penalty alpha intercept kernel labels columns transform "
    "commitment deletion parts"
)


def fields(record, names):
    """A record has these fields and no others."""
    readable(set(record) == set(names.split()), f"fields are {sorted(record)} and not {names}")


def once(pairs):
    """A record of JSON; which of two fields of one name is meant, nobody can know."""
    readable(len(dict(pairs)) == len(pairs), "two fields have one name")
    return dict(pairs)


def plain(value):
    """JSON's dialect of Python has numbers that are none."""
    if isinstance(value, dict | list):
        return all(map(plain, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, str) or math.isfinite(value)


def numerical(values, count):
    """A list of so many numbers, none of them a list, a text or a truth."""
    return type(values) is list and [type(v) in (int, float) for v in values] == [True] * count


def check_statement(s):
    """Everything that a statement may say; what is not known is refused."""
    fields(s, STATEMENT)
    readable(s["format"] == FORMAT and plain(s), "another format, or numbers that are none")
    loss, penalty, columns = s["loss"], s["penalty"], s["columns"]
    fields(loss, " ".join(("name", "factor", *LOSSES[loss["name"]][1])))
    fields(penalty, f"name {PENALTIES[penalty['name']]}")
    fields(columns, "features target weight epsilon")
    fields(s["commitment"], "root verdicts slots")
    fields(s["deletion"] or dict.fromkeys(("root", "slots", "removed")), "root slots removed")
    own = columns["epsilon"] is not None
    readable(own == (loss.get("epsilon", 0) is None), "epsilon is not stated")
    given = [
        value
        for name, value in (loss | penalty | {"alpha": s["alpha"]}).items()
        if name != "name" and value is not None
    ]
    sane = [type(v) is float and (v == 0 or 1e-100 <= abs(v) <= 1e100) for v in given]
    readable(sane, "a parameter is no number, or next to nothing, or huge")
    positive = {**loss, **penalty, **s}
    for name in ("alpha", "factor", "width", "delta", "radius"):
        readable(positive.get(name, 1) > 0, f"{name} is not positive")
    readable((loss.get("epsilon") or 0) >= 0, "epsilon is negative")
    readable(0 <= penalty.get("l1_ratio", 0) < 1, "l1_ratio is out of range")
    readable(loss["name"] != "safe_logistic" or loss["mu"] >= 0, "mu is negative")
    deletion = s["deletion"] or {"slots": 1, "removed": 1}
    counts = s["n_samples"], s["n_features"], s["commitment"]["slots"]
    more = deletion["slots"], deletion["removed"]
    readable([type(count) is int and count > 0 for count in counts + more], "a count is none")
    readable(counts[2] >= max(counts[0], more[0]), "there are too few slots")
    readable([type(s[name]) is bool for name in ("intercept", "kernel")], "a switch is none")
    square = penalty["name"] == "l2" and counts[0] == counts[1]
    readable(not s["kernel"] or square, "a kernel goes with its squared norm")
    labelled = LOSSES[loss["name"]][0] in ("margin", "label")
    labels = [key(label) for label in s["labels"]] if labelled else []
    readable(labelled == (s["labels"] is not None) and len(set(labels)) == len(labels), "labels")
    for feature in columns["features"] or []:
        fields(feature, "column equals" if "equals" in feature else "column")
    readable(columns["features"] is None or len(columns["features"]) == counts[1], "features")
    for operation, numbers in s["transform"]:
        fine = operation in OPERATIONS and numerical(numbers, counts[1])
        readable(fine, "a transformation is not known")
    readable(0 < len(s["parts"]) <= 10_000, "there is nothing to prove")
    for part in s["parts"]:
        fields(part, "positive gap steps")
        readable(part["positive"] in (range(len(labels)) if labelled else [None]), "a label")
        readable(numerical([part["gap"]], 1), "a gap is no number")
        for step in part["steps"]:
            fields(step, f"rule {STEPS[step['rule']]}")
            readable(step.get("form", "mean") in ("square", "mean"), "a form is not known")
            given = [
                step[name] for name in ("eta", "multiplier", "epsilon", "beta") if name in step
            ]
            given += step.get("shifts", [])
            readable(numerical(given, len(given)), "a number of a step is none")
    return s


def expected_arrays(s):
    """Name, type and shape of every array that belongs to a statement."""
    n, p, count = s["n_samples"], s["n_features"], s["commitment"]["slots"] - s["n_samples"]
    d, wanted = p + s["intercept"], {"absent": ("<u8", (count,))}
    if s["deletion"] is not None:
        removed = s["deletion"]["removed"]
        wanted |= {"removed": ("<u8", (removed,)), "removed_leaves": ("|u1", (removed, 32))}
    for i, part in enumerate(s["parts"]):
        wanted[f"{i}_point"] = "<f8", (d,)
        wanted[f"{i}_verdicts"] = "|u1", (-(-n // 4),)
        wanted[f"{i}_zero"] = "|u1", (-(-p // 8),)
        if LOSSES[s["loss"]["name"]][2] == 0:
            wanted[f"{i}_nu"] = "<f8", (n,)
        for j, step in enumerate(part["steps"]):
            if step["rule"] == "region" or step.get("own"):
                wanted[f"{i}_{j}_point"] = "<f8", (d,)
            if step["rule"] == "region":
                size = step["size"]
                shape = (size, size) if step["form"] == "square" else (size - s["intercept"],)
                name = "T" if step["form"] == "square" else "mean"
                if name == "T" or s["intercept"]:
                    wanted[f"{i}_{j}_{name}"] = "<f8", shape
    return wanted


def read_proof(path):
    """Statement and arrays; sizes are checked against the statement before they are read."""
    archive = zipfile.ZipFile(path)
    members = {info.filename: info for info in archive.infolist()}
    readable(len(members) == len(archive.infolist()), "two arrays have one name")
    for info in members.values():
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        readable(stored and info.file_size <= Path(path).stat().st_size, "an array is compressed")

    def array(name, dtype, shape):
        with archive.open(f"{name}.npy") as stream:
            found, kind = header(stream)
            fits = found == shape and kind == np.dtype(dtype)
            readable(fits, f"{name} is not as the statement says")
            content = stream.read(math.prod(shape) * kind.itemsize + 1)
        return np.frombuffer(content, dtype=kind).reshape(shape)

    with archive.open("statement.npy") as stream:
        ((length,), kind) = header(stream)
    readable(kind == np.uint8 and length <= MOST_STATEMENT, "the statement is too long")
    text = array("statement", "|u1", (length,)).tobytes()
    statement = check_statement(json.loads(text.decode("utf-8"), object_pairs_hook=once))
    wanted = expected_arrays(statement)
    names = {f"{name}.npy" for name in (*wanted, "statement")}
    readable(members.keys() == names, "other arrays than stated")
    arrays = {name: array(name, *what) for name, what in wanted.items()}
    for name, one in arrays.items():
        readable(one.dtype.kind != "f" or np.isfinite(one), f"{name} holds what is no number")
    return statement, arrays, hashlib.sha256(text).hexdigest()


# --- checking ---------------------------------------------------------------------------------


def targets(statement, data, part):
    """What the loss of a part asks for: labels as −1 and 1, numbers, or ends of intervals."""
    if statement["labels"] is None:
        y = data.numbers()
        interval = LOSSES[statement["loss"]["name"]][0] == "interval"
        readable(y.shape == ((data.n, 2) if interval else (data.n,)), "y has another shape")
        fine = (y[:, 0] <= y[:, 1]) & np.isfinite(y).any(axis=1) if interval else np.isfinite(y)
        readable(fine, "a target is no number, or an interval is empty")
        return y
    known = [key(label) for label in statement["labels"]]
    keys = [key(label) for label in data.target.tolist()]
    used = [own for own, weight in zip(keys, data.weights, strict=True) if weight != 0]
    readable(set(used) <= set(known), "a label is not among those of the statement")
    return np.where([own == known[part["positive"]] for own in keys], 1.0, -1.0)


def check_part(statement, arrays, data, i):
    """Run the steps of one problem, and compare what they prove with what is claimed."""
    part, intercept = statement["parts"][i], statement["intercept"]
    problem = Problem(statement, data, targets(statement, data, part))

    def point(name):
        values = ar.array(arrays[name])
        return (values[:-1], values[-1]) if intercept else (values, ar.array(0.0)[()])

    nu = ar.array(arrays[f"{i}_nu"]) if f"{i}_nu" in arrays else None
    readable(part["steps"] and part["steps"][0]["rule"] == "gap", "the first step is a gap")
    gap = value = math.inf
    for j, step in enumerate(part["steps"]):
        if step["rule"] == "gap":
            problem.rule_gap(*point(f"{i}_{j}_point" if step["own"] else f"{i}_point"), nu)
            if not step["own"]:
                gap, value = problem.gap, problem.value
        elif step["rule"] == "features":
            problem.rule_features()
        elif step["rule"] == "ball":
            problem.rule_ball([ar.array(shift)[()] for shift in step["shifts"]])
        else:
            names = [name for name in ("T", "mean") if f"{i}_{j}_{name}" in arrays]
            own = {name: ar.array(arrays[f"{i}_{j}_{name}"]) for name in names}
            problem.rule_region(*point(f"{i}_{j}_point"), step | own)
    # min P ≥ P(x) − gap(x) at any point x, and a better one than the model may have been shown
    gap = np.minimum(gap, (near(value) - problem.floor).up)
    need(gap <= part["gap"], f"the gap is {float(gap):.3g}, more than claimed")
    bits = arrays[f"{i}_verdicts"]
    claimed = np.stack([bits >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).ravel()
    need(claimed[data.n :] == 0, "there are verdicts on rows that are not there")
    wrong = np.flatnonzero((claimed[: data.n] != 0) & (claimed[: data.n] != problem.proved))
    first = f"the verdict on row {[*wrong, 0][0]} is not proved"
    need(len(wrong) == 0, f"{first} ({len(wrong)} of them)")
    zero = np.unpackbits(arrays[f"{i}_zero"], bitorder="little").astype(bool)
    need(~zero[: data.p] | ~problem.alive, "a feature is not proved to be 0")
    need(~zero[data.p :], "there are claims on features that are not there")
    return claimed[: data.n]


def in_words(s, verdicts):
    """The statement for people."""
    for name in ("loss", "penalty", "alpha", "intercept", "n_samples", "n_features", "transform"):
        yield f"{name}: {json.dumps(s[name])[:200]}"
    own = {name: s["columns"][name] for name in ("target", "weight", "epsilon")}
    yield f"columns: {json.dumps(own)[:200]}"
    if s["kernel"]:
        yield "assumed: X is a kernel matrix, positive semidefinite"
    for part, codes in zip(s["parts"], verdicts, strict=True):
        who = "" if s["labels"] is None else f"{s['labels'][part['positive']]!r} against the rest: "
        count = np.bincount(codes, minlength=4)
        pieces = f"flat {count[1]}, quadratic {count[2]}, linear {count[3]}, open {count[0]}"
        yield f"{who}P(model) - min P <= {part['gap']!r}; rows: {pieces}"
    flat = int((np.stack(verdicts) == FLAT).all(axis=0).sum())
    yield f"{flat} rows may be deleted, together, with W kept: the optima stay what they are"


def check(proof_path, data_path, exact=False, seed=None, expect=""):
    """The statement in words, and its digest; raises Unproved or Unreadable."""
    global ar
    ar = Rationals() if exact else Floats()
    statement, arrays, digest = read_proof(proof_path)
    facts = {k: v for k, v in statement.items() if not isinstance(v, dict | list)}
    facts |= {k: v for k, v in statement["loss"].items() if k != "name"} | statement["penalty"]
    facts |= {"loss": statement["loss"]["name"], "penalty": statement["penalty"]["name"]}
    facts |= {"root": statement["commitment"]["root"], "digest": digest}
    facts["gap"] = max(part["gap"] for part in statement["parts"])
    for wish in filter(None, expect.split(",")):
        name, _, wanted = wish.partition("=")
        readable(name in facts, f"--expect {name}: there is no such thing in a statement")
        fits = facts[name] <= float(wanted) if name == "gap" else key(facts[name]) == key(wanted)
        need(fits, f"{name} is {facts[name]!r} and not {wanted}")
        need(name != "root" or seed is not None, "the root can be compared only with the seed")
    data = Data(data_path, statement)
    verdicts = [check_part(statement, arrays, data, i) for i in range(len(statement["parts"]))]
    rows = np.ascontiguousarray(np.stack(verdicts, axis=1))
    tree = [sha(b"\0", whole(i), row.tobytes()) for i, row in enumerate(rows)]
    need(root_of(tree) == statement["commitment"]["verdicts"], "the verdicts have another root")
    lines = list(in_words(statement, verdicts))
    if seed is None:
        lines.append("the commitment was not compared with the data: that takes --seed")
    else:
        check_commitment((statement, arrays), data, seed)
        if deletion := statement["deletion"]:
            gone = f"{deletion['removed']} rows and no others are missing"
            lines.append(f"{gone} of those of the root {deletion['root']}")
        lines.append(f"the data are those of the root {statement['commitment']['root']}")
    return [*lines, f"statement {digest}"]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("proof")
    parser.add_argument("data", help=".npz, .csv or .parquet")
    parser.add_argument("--exact", action="store_true", help="in rational numbers; for small data")
    parser.add_argument("--seed", help="the file of the seed, to compare the data with the root")
    parser.add_argument("--expect", default="", metavar="NAME=VALUE,...")
    args = parser.parse_args(arguments)
    try:
        seed = None if args.seed is None else bytes.fromhex(Path(args.seed).read_text().strip())
        with np.errstate(all="ignore"):
            lines = check(args.proof, args.data, args.exact, seed, args.expect)
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
