#!/usr/bin/env python3
"""Check a proof about a linear model, its training data, and the rows that do not matter.

    python safesift_check.py proof.npz data.npz [--exact] [--expect alpha=1e-3,...]

Written for somebody who trusts nobody: one file, NumPy and the standard library, no code of whoever
wrote the proof. (Data in CSV and Parquet files are read by safesift_tables.py beside it, which says
what number a cell stands for.) What is checked are statements about

    P(x, c) = (1/W) Σ s_i·factor·f(a_iᵀx + c; b_i) + alpha·R(x),      W = Σ s_i,

with s_i ≥ 0 the weights of the rows a_i and c an intercept that is not penalised (or 0):

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
add up ordinary products, in any order, fused or not (no Strassen); exp and log to 16 ulps; SHA-256.
With --exact everything is done in rational numbers instead (exp, log and roots in enclosures): the
same rules without an argument on rounding. For a kernel matrix that it is positive semidefinite is
an assumption, and is printed.

That data are those of a root, that exactly the removed rows are missing from them, and what is
asserted of a single row are other questions than whether a proof is one: see safesift_root.py and
safesift_receipt.py, which use this file.

Every test has the form "accept if and only if a ≤ b", so that NaN rejects.
Exit status: 0 proved, 1 not proved, 2 not readable.
"""

import argparse
import io
import json
import math
import re
import zipfile
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

FORMAT = "safesift-proof 2"
FLAT, CURVED, LINEAR = 1, 2, 3
# entries of a block, and of data kept in memory; bytes of a statement
BLOCK_ENTRIES, KEPT_ENTRIES, MOST_STATEMENT = 2**20, 2**25, 2**26


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

    u, c, tiny, root_of_tiny, exp_error = 2.0**-53, 1 + 2.0**-48, 2.0**-1074, 2.0**-537, 2.0**-47

    def array(self, values):
        return np.asarray(values, dtype=np.float64)

    def call(self, function, values):
        return {"sqrt": np.sqrt, "exp": np.exp, "ln": np.log}[function](values)

    def gamma(self, k):
        """k products, added up in any order, are off by γ(k)·Σ|terms| (and k·tiny) at most."""
        return self.u * (k + 5) * 101 / 100

    def root(self, x):
        """√x, rounded up; √tiny more, as x may have lost so much by underflow."""
        return self.call("sqrt", x) * self.c + self.root_of_tiny


class Rationals(Floats):
    """Fractions in arrays of objects: nothing rounds but exp, ln and roots, to 120 digits."""

    u = tiny = root_of_tiny = Fraction(0)
    c, exp_error = 1 + Fraction(1, 10**40), Fraction(1, 10**40)
    context = Context(prec=120, Emin=-(10**9), Emax=10**9)

    def array(self, values):
        exact = np.vectorize(lambda v: Fraction(v) if abs(v) < math.inf else v, otypes=[object])
        return np.array(exact(values))

    def call(self, function, values):
        def one(q):
            quotient = self.context.divide(Decimal(q.numerator), Decimal(q.denominator))
            return Fraction(getattr(self.context, function)(quotient))

        return np.vectorize(one, otypes=[object])(values)[()]


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

    def __add__(self, other):
        other = near(other)
        return rounded(self.mid + other.mid, self.rad + other.rad)

    def __mul__(self, other):
        other = near(other)
        rad = abs(self.mid) * other.rad + self.rad * (abs(other.mid) + other.rad)
        return rounded(self.mid * other.mid, rad)

    def __truediv__(self, other):
        other, mid = near(other), self.mid / near(other).mid
        need(2 * other.rad <= abs(other.mid), "a quotient is not known")
        rad = (self.rad + abs(mid) * other.rad + 2 * ar.tiny) / (abs(other.mid) - other.rad)
        return rounded(mid, rad)

    def __sub__(self, other):
        return self + Near(-near(other).mid, near(other).rad)

    def __abs__(self):
        return Near(abs(self.mid), self.rad)

    def __getitem__(self, places):
        return Near(self.mid[places], self.rad[places])

    def clip(self, low, high):
        """Moves no two numbers apart, so that the error stays."""
        return Near(np.minimum(np.maximum(self.mid, low), high), self.rad)

    def sum(self):
        """Halves are added to each other, so that each number is rounded log₂(n) times only."""
        found = joined([self, near(np.zeros(1))])
        while (half := found.mid.size // 2) > 0:
            found = joined([found[:half] + found[half : 2 * half], found[2 * half :]])
        return found[0]

    up = property(lambda q: q.mid + q.rad + (4 * ar.u * (abs(q.mid) + q.rad) + 4 * ar.tiny))
    low = property(lambda q: q.mid - q.rad - (4 * ar.u * (abs(q.mid) + q.rad) + 4 * ar.tiny))


def rounded(mid, rad):
    return Near(mid, (rad + ar.u * abs(mid)) * ar.c + 4 * ar.tiny)


def near(value):
    return value if isinstance(value, Near) else Near(value)


def joined(parts):
    mids, rads = [one.mid for one in parts], [one.rad for one in parts]
    return Near(np.concatenate(mids), np.concatenate(rads))


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


def row_lengths(matrix):
    """Upper bounds on the Euclidean norms of the rows of an exact matrix."""
    return ar.root((matrix * matrix).sum(axis=1) * (1 + ar.gamma(len(matrix.T))) + 2**40 * ar.tiny)


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
# of which pieces something can be said, from left to right, where not of all
PIECES = {"logistic": [0] * 5, "safe_logistic": [0, 0, FLAT, 0, 0]}


class Loss:
    """The losses of some rows of one problem; ends of intervals are known up to `off`."""

    def __init__(self, given, y, epsilon):
        self.name, self.y, epsilon = given["name"], ar.array(y), ar.array(epsilon)
        kind, _, k, m = LOSSES[self.name]
        self.k, self.m = (ar.array(given.get(v, v))[()] for v in (k, m))
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
        """e moves no further than t and the ends do."""
        return rounded(t.mid - np.clip(t.mid, self.lo, self.hi), t.rad + self.off)

    def value_and_slope(self, t):
        """f, and f' or all subgradients, where there may be a kink."""
        e = self.excess(t)
        if "logistic" in self.name:
            z = t * self.y if self.name == "logistic" else abs(e) * -1
            size, grown = abs(z.mid), ar.call("exp", z.mid)
            off = z.rad + ar.exp_error * (4 + 4 * size)
            v, value = 1 - grown, size - (1 - grown)
            if self.name == "logistic":  # log(1 + e^−z)
                small = ar.call("ln", 1 + ar.call("exp", -size))
                v, value = 1 / (1 + grown), np.maximum(-z.mid, 0) + small
            return Near(value, off), Near(-self.y * v, off)
        if self.k == 0:
            known = self.verdicts(t.low, t.up) > 0
            slope = np.where(known, np.sign(e.mid) * self.m, 0)
            return abs(e) * self.m, Near(slope, np.where(known, 0, self.m))
        nu = (e / self.k).clip(-self.m, self.m)
        return abs(nu) * (abs(e) - abs(nu) * (self.k / 2)), nu

    def conjugate(self, nu):
        """f*(ν) = ν·hi or ν·lo where there is a kink (k = 0), finite for |ν| ≤ m and such ends."""
        end = np.where(nu > 0, self.hi, np.where(nu < 0, self.lo, 0))
        need((abs(nu) <= self.m) & (abs(end) < math.inf), "a dual point is not in the domain of f*")
        return Near(end, self.off) * nu

    def secant_floor(self, t, reach):
        """w ≥ 0 with (f'(t') − f'(t))/(t' − t) ≥ w for all |t' − t| < reach.

        The secant is the mean of f'' between t and t'. On a quadratic piece f'' = 1/k up to the
        nearest end of the piece, at a distance of `room` or more: the mean is at least
        min(1, room/reach)/k. For safe_logistic f'' = e^−d up to d = 0, where it becomes 0, and
        away from there it falls by a factor of at most e^−h ≥ 1 − h over a distance h. Quotients
        next to nothing may have been rounded up by underflow, twice what they are: tiny pays.
        """
        e = abs(self.excess(t))
        if self.name == "safe_logistic":
            curve = np.maximum(ar.call("exp", -e.mid) - 8 * ar.exp_error, 0)
            share = np.minimum(1 - 2 * (reach + e.rad), e.low / reach * (1 - e.rad))
        else:
            room = self.width * (1 - 4 * ar.u) - e.up
            room = np.minimum(np.where(self.point, reach, e.low), room)
            curve, share = 1 / self.k, np.minimum(room / reach, 1)
        return np.maximum((near(curve * (1 - 16 * ar.u)) * (share - 4 * ar.tiny)).low, 0)

    def verdicts(self, lower, upper):
        """On which kind of piece an interval of predictions lies, strictly inside; 0 for none."""
        kinds = np.array(PIECES.get(self.name, [LINEAR, CURVED, FLAT, CURVED, LINEAR]))
        ends = self.lo - self.width, self.lo, self.hi, self.hi + self.width
        # targets are below 1e150: a bound that is infinite is on the side of an infinite end only
        lower, upper = np.maximum(lower, -1e308), np.minimum(upper, 1e308)
        # how many ends are surely below all of the interval, and below some of it perhaps
        first = sum((lower > end + self.off).astype(int) for end in ends)
        last = 4 - sum((upper < end - self.off).astype(int) for end in ends)
        found = np.where((first == last) & (lower <= upper), kinds[first], 0)
        return np.where(self.point & (first > 0) & (last < 4), CURVED, found).astype(np.uint8)


# --- one problem, and the rules ---------------------------------------------------------------


class Problem:
    """P, what is proved of it so far, and the rules that prove more.

    Points end with the intercept, rows with a one; without an intercept that coordinate is not
    alive, as if it was ruled out, and is 0. Penalties are N(x) = τ‖x‖₁ + ½κ‖x‖₂².

    A ball ‖x‖ ≤ radius in the l1 or l2 norm is replaced by a penalty: for any multiplier μ ≥ 0, N
    is μ‖x‖₁ or ½μ‖x‖₂², and L = (the losses) + N − N(radius) is at most P on the ball and less than
    P by slack(x) = N(radius) − N(x) at a point x. So min P ≥ min L, and whatever bounds L(x) − min
    L by some gap bounds P(x) − min P by gap + slack(x).
    """

    def __init__(self, statement, data, y, multiplier=0.0):
        self.data, self.p, self.y, self.seen = data, data.p, y, None
        self.given, penalty, weights = statement["loss"], statement["penalty"], data.weights
        self.kernel, self.intercept = statement["kernel"], statement["intercept"]
        self.epsilon, self.loss = data.epsilon, Loss(self.given, y, data.epsilon)
        # W is recomputed, and s ≥ 0 and alpha > 0 are verified
        fine = min(self.given["factor"], statement["alpha"]) > 0 <= min(self.loss.k, self.loss.m)
        need(fine & (weights >= 0) & (self.epsilon >= 0), "alpha, weights or losses are negative")
        self.share = near(weights) / near(weights).sum() * self.given["factor"]
        self.ratio = near(penalty.get("l1_ratio", float(penalty["name"] in ("l1", "l1_ball"))))
        self.is_ball, self.radius = "radius" in penalty, ar.array(penalty.get("radius", 0.0))[()]
        amount = near(multiplier if self.is_ball else statement["alpha"])
        self.tau, self.kappa = self.ratio * amount, (near(1.0) - self.ratio) * amount
        self.smooth, self.strong, self.floor = self.loss.k > 0, self.kappa.mid > 0, 0
        # without κ there has to be a bound on ‖x*‖₁, from l1
        need(min(amount.mid, self.tau.mid) >= 0, "a penalty or a multiplier is negative")
        need(self.strong or self.ratio.mid == 1, "a ball has no multiplier")
        self.penalised = ar.array(np.arange(self.p + 1) < self.p)
        self.alive = np.append(np.ones(self.p, dtype=bool), self.intercept)
        self.proved = np.where(weights == 0, FLAT, 0).astype(np.uint8)

    def predict(self, x):
        """Predictions at a point, losses and slopes there; those of the last point are kept."""
        if self.seen is None or not np.array_equal(self.seen[0], x):
            t = joined([product(matrix, near(x[cols])) for _, cols, matrix in self.data.blocks()])
            self.seen = x.copy(), t, *self.loss.value_and_slope(t)
        return self.seen[1:]

    def gather(self, w, squared=False):
        """Σ w_i a_i (or of squares)."""
        total = Near(np.zeros(self.p + 1))
        for rows, cols, matrix in self.data.blocks():
            matrix = matrix * matrix * ar.c + ar.tiny if squared else matrix
            part = total[cols] + product(matrix.T, w[rows])
            total.mid[cols], total.rad[cols] = part.mid, part.rad
        return total

    def row_norms(self):
        """‖a_i‖, or √K_ii, rounded up."""
        if self.kernel:
            return ar.root(np.concatenate([m.diagonal(r.start) for r, _, m in self.data.blocks()]))
        return np.concatenate([row_lengths(m[:, :-1]) for _, _, m in self.data.blocks()])

    def square(self, v):
        """‖v‖², without an intercept; in a kernel's space it is vᵀKv."""
        blocks = self.data.blocks() if self.kernel else ()
        along = [product(matrix[:, :-1], v[cols[:-1]]) for _, cols, matrix in blocks]
        return ((joined(along) if self.kernel else v) * v).sum().clip(0, math.inf)

    # --- the penalty --------------------------------------------------------------------------

    def value(self, x):
        """P at a feasible point, and slack(x), 0 without a ball."""
        need(self.intercept or x[self.p] == 0, "there is no intercept")
        coef, losses = near(x[: self.p]), (self.share * self.predict(x)[1]).sum()
        penalty = self.tau * abs(coef).sum() + self.kappa * self.square(coef) / 2
        if not self.is_ball:
            return losses + penalty, near(0.0)
        size = abs(coef).sum().up if self.ratio.mid == 1 else length(coef)
        need(size <= self.radius, "a point is outside of the ball")
        most = (self.tau + self.kappa * self.radius / 2) * self.radius
        return losses, (most - penalty).clip(0, math.inf)

    def penalty_gap(self, x, v):
        """An upper bound on N(x) + vᵀx − (N(x*) + vᵀx*).

        Let s = soft(v, τ). Then τ|x| + (v − s)x ≥ 0, and ½κ‖x‖² + sᵀx ≥ −‖s‖²/(2κ), so that
        Σ τ|x| + (v − s)x + ‖κx + s‖²/(2κ) is such a bound; for κ = 0 it is with sᵀx + ‖s‖_∞·‖x*‖₁
        in place of the square.
        """
        limit = np.maximum(self.tau.low, 0)
        inner = v.clip(-limit, limit)
        # τ itself is known up to an error, by which v − s is off, too, but not by more than 2τ
        inner = Near(inner.mid, np.minimum(inner.rad, 2 * limit) + (self.tau.up - limit))
        kinks, s = (self.tau * abs(near(x)) + inner * x).clip(0, math.inf).sum(), v - inner
        if not self.strong:
            return kinks + (s * x).sum() + near(abs(s).up.max()) * self.whole
        return kinks + self.square(s + self.kappa * x) / self.kappa / 2

    # --- rule: gap ----------------------------------------------------------------------------

    def rule_gap(self, x, nu=None):
        """P(x) − min P ≤ gap, by weak duality (Fenchel and Young).

        For ν in the domains of f* with, if there is an intercept, Σ s_i ν_i = 0, and
        v = Σ share_i ν_i a_i:  P(x, c) − P(x', c') ≤ Σ share_i (f(t_i) + f*(ν_i) − t_iν_i)
        + N(x) + N*(−v) + vᵀx  for all x', c': the right side is P − D. All its parts are ≥ 0 and
        are bounded one by one, so that nothing cancels. ν are the exact slopes f'(t_i), for which
        the first sum is 0, or, for losses with kinks, those of the file.

        The intercept's equation is met by some ν' = (1 − η')ν on the side of the surplus, η' ≤ η =
        surplus/mass (or 1), which is no more than an error of η|ν| in ν. As f* is convex and
        f*(0) = 0, a row whose ν shrinks by a share of η or less adds at most η·f(t_i).
        """
        p, (t, f, slope), base, eta, surplus = self.p, self.predict(x), near(0.0), 0, 0
        if not self.smooth:
            slope = near(nu)
            base = (self.share * (f + self.loss.conjugate(nu) - t * slope)).sum()
        pushed, losses, (total, slack) = self.share * slope, (self.share * f).sum(), self.value(x)
        if self.intercept:
            up, down = pushed.clip(0, math.inf).sum(), pushed.clip(-math.inf, 0).sum()
            mass, surplus = np.minimum(up.low, (down * -1).low), abs(up + down).up
            eta = np.minimum((near(surplus) / mass).up, 1) if mass > 0 else 1
            pushed = pushed + Near(0 * pushed.mid, (abs(pushed) * eta).up)
        # what is in a kernel's space is known by its coefficients
        v = pushed if self.kernel else self.gather(pushed)[:p]
        size = near(ar.root(self.square(near(x[:p])).up))
        # ‖x*‖₁ ≤ whole for l1, as N(x*) ≤ P(x*) ≤ P(x), all losses being ≥ 0, or by the ball
        if not self.strong:
            self.whole = self.radius if self.is_ball else (near(total.up) / self.tau).up
        rest = base + self.penalty_gap(x[:p], v) + slack
        gap, self.rest, self.surplus = rest + losses * eta, rest, near(surplus)
        self.gap = np.minimum(gap.up, total.up)
        self.floor = np.maximum(self.floor, (total - self.gap).low)
        self.model, self.slopes, self.moved = x, v, near(self.gap) * 2
        # ‖x* − x‖ ≤ close from P(x) ≥ P(x*) + ½κ‖x − x*‖², as P − ½κ‖x‖² is convex, 0 ∈ ∂P(x*);
        # with a ball L(x), L(x*) ≤ min L + gap: both are within √(2·gap/κ) of where L is least.
        if self.strong:
            self.close = ar.root((near(gap.up) * (8 if self.is_ball else 2) / self.kappa).up)
            self.whole = (size + self.close).up
        else:
            self.close = (size + self.whole).up
        self.reach = np.minimum(self.whole, (abs(near(x)) + self.close).up)

    # --- rule: features -----------------------------------------------------------------------

    def rule_features(self, zero):
        """x*_j = 0 where the loss' derivative stays below τ in size from the last point to x*.

        At an optimum −∂_jF(x*) ∈ τ∂|x*_j| + κx*_j, of size τ or more unless x*_j = 0. A loss with
        1/k-Lipschitz slopes has (f'(t) − f'(t*))² ≤ (2/k)·(its Bregman distance), so that
        Σ share_i (ν_i − ν*_i)² ≤ moved/k with moved = 2·gap; or, by co-coercivity, moved = max −gᵀu
        over a region. By Cauchy and Schwarz ∂_jF moves by √(moved/k · Σ share_i a_ij²) at most.
        """
        need(self.tau.mid > 0 and self.smooth and not self.is_ball, "no feature can be ruled out")
        squares = self.gather(self.share / self.loss.k, squared=True)[: self.p]
        self.vanish = (abs(self.slopes) + ar.root((self.moved * squares).up)).up < self.tau.low
        need(self.vanish[zero != 0], "a feature is not proved to be 0")
        self.alive[: self.p][zero != 0] = False

    # --- rule: ball ---------------------------------------------------------------------------

    def rule_ball(self, low, high):
        """‖x* − x‖ ≤ close at the last point x of a gap: the gap ball, or the norm ball. So every
        prediction without its intercept moves by r_i = ‖a_i‖·close at most; and low < c* − c < high
        (without an intercept both are 0).

        At an optimum there are ν_i ∈ ∂f(t*_i) with Σ share_i ν_i = 0. If c* − c ≤ low then t*_i ≤
        t_i + r_i + low, and Σ share_i ν_i is at most the sum of the largest subgradients there: if
        that is below 0, c* − c > low. In the same way for high.

        Then slopes need not be shrunk until they cancel: with ν as they are P(x, c) − P(x*, c*) is
        at most the rest of the gap and Σ share_i ν_i·(c − c*). So another ball may be smaller.
        """
        t, moved = self.predict(self.model)[0], near(self.row_norms()) * self.close
        sums = [t + moved + low, t - moved + high]
        sums = [(self.share * self.loss.value_and_slope(one)[1]).sum() for one in sums]
        fine = sums[0].up < 0 and sums[1].low > 0 if self.intercept else low == high == 0
        need(fine, "the intercept is not in its bounds")
        found = self.loss.verdicts((t - moved + low).low, (t + moved + high).up)
        self.proved = np.where(self.proved == 0, found, self.proved)
        if self.strong and not self.is_ball:
            gap = self.rest + self.surplus * np.maximum(-low, high)
            self.close = np.minimum(self.close, ar.root((near(gap.up) * 2 / self.kappa).up))

    # --- rule: region -------------------------------------------------------------------------

    def rule_region(self, x, eta, epsilon, T):
        """x* − x₀ ∈ B = { u : ‖u‖²_H + gᵀu ≤ slack } for every optimum x*, and what follows.

        H = D + Σ share_i w_i a_i a_iᵀ (D is 0 for the intercept); g = ∇F(x₀) + v₀ with the slopes
        of the losses at x₀, computed here; w_i ≥ 0 at most the secants of f_i from x₀ on an OPEN
        interval around { a_iᵀ(x₀ + u) : u ∈ B }; and for all feasible x and all v ∈ alpha·∂R(x):
        (v − v₀)ᵀ(x − x₀) ≥ ‖x − x₀‖²_D − slack.

        Proof. Let d = x* − x₀. P is convex and least at x*, so that 0 ≥ (∇F(x₀ + sd) + v)ᵀ(sd) for
        0 < s < 1 and some v ∈ alpha·∂R(x₀ + sd). As long as every a_iᵀ(x₀ + sd) with w_i > 0 is in
        its interval, the right side is at least gᵀ(sd) + ‖sd‖²_H − slack: sd ∈ B. Let s be the
        first time at which one is about to leave; sd ∈ B still, by continuity, but B ends strictly
        inside of the open intervals. So none leaves, and d ∈ B. ∎  With closed intervals this is
        false: a row could stand at the end of its interval and go on from there.

        T square (over what is alive; elsewhere u is 0) with TᵀHT ⪰ (1 − η)I, η < 1, makes H ≻ 0 and
        H⁻¹ ⪯ TTᵀ/(1 − η). For u ∈ B ‖u‖_H ≤ ‖g‖_{H⁻¹} + √slack, so |aᵀu| ≤ ‖Tᵀa‖·radius, radius =
        (‖Tᵀg‖ + √slack)/(1 − η). w is derived from this bound and then T is verified with this w:
        if T passes, the bound is true of B(w), and w holds on more than B(w).

        v₀ ∈ τ∂‖x₀‖₁ + κx₀ is computed, so that nobody can claim a wrong one; at 0 it is the nearest
        to −∇F. D and slack:  l2, elastic net: D = κ.  Where x₀_j = 0, D_j is more by (τ − |v₀_j|)/
        reach_j, since (v_j − v₀_j)x_j ≥ (τ − |v₀_j|)|x_j| and |x_j| ≤ reach_j on the segment.  l2
        ball, v₀ = κx₀ and v = 0: −v₀ᵀu = ½κ(‖u‖² + ‖x₀‖² − ‖x‖²), so D = ½κ and slack(x₀).  l1
        ball, v₀ as for τ and v = 0: −v₀ᵀu ≥ Σ_{x₀_j = 0} (τ − |v₀_j|)|x_j| − slack(x₀).
        Any ε ≥ 0: D + ε and slack + ε·(‖x*‖ + ‖x₀‖)², which is at least ε‖x* − x₀‖².

        TᵀHT is TᵀDT and the Gram matrix of the rows √w·Tᵀa, computed up to errors whose squares add
        up to E; so (triangle inequality) its least eigenvalue has a root that is less by √E at
        most. For the computed ones it is min_j (M_jj − Σ_{k≠j} |M_jk|) or more, by Gershgorin; and
        M is off by γ·c_jc_k, c² its diagonal (Cauchy and Schwarz), and what products lose by
        underflow.
        """
        p, epsilon, (t, _, slope) = self.p, near(epsilon), self.predict(x)
        fine = self.smooth and not self.kernel and self.loss.name != "logistic" and 0 <= eta < 1
        need(fine and epsilon.mid >= 0 and (x[~self.alive] == 0).all(), "a region is out of range")
        v, limit = self.gather(self.share * slope), np.maximum(self.tau.low, 0)
        pull = self.tau * np.sign(x) + near(np.clip(-v.mid, -limit, limit)) * (x == 0)
        pull = (pull + self.kappa * x) * self.penalised
        kinks = np.where(x == 0, np.maximum((self.tau - abs(pull)).low, 0), 0)
        kinks = kinks / (self.reach + ar.array(2.0**-500)[()])
        curve = self.kappa.low / (2 if self.is_ball else 1) + epsilon.mid + kinks
        D = np.maximum(curve * (1 - 8 * ar.u) - 4 * ar.tiny, 0) * self.penalised
        far = near(self.whole) + length(near(x[:p]))
        slack = self.value(x)[1] + far * far * epsilon
        # T with a row of zeros for what is not alive
        k = int(self.alive.sum())
        full = ar.array(np.zeros((p + 1, k)))
        full[self.alive] = T.reshape(k, k)
        lengths, gamma = row_lengths(full), ar.gamma(2 * p + 2 * self.data.n)
        # of Tᵀa, by the entries of a: the last of them is 1, which pays for underflow
        errors = 2 * ar.gamma(p) * lengths + 16 * (p + 1) ** 2 * ar.tiny
        steep = near(length(product(full.T, v + pull)))
        radius = ((steep + ar.root(slack.up)) / (near(1) - eta)).up
        gram, E, lost, found = 0 * full[:k], near(0.0), 0, 0 * self.proved
        for rows, cols, matrix in self.data.blocks():
            turned, here = matrix @ full[cols], t[rows]
            size, off = row_lengths(turned), abs(matrix) @ errors[cols]
            bound = ((near(size) + off) * radius).up
            # on an open interval, strictly wider than the bound
            wider = bound * (1 + ar.array(2.0**-20)[()]) + ar.array(2.0**-500)[()]
            loss = Loss(self.given, self.y[rows], self.epsilon[rows])
            w = np.maximum((self.share[rows] * loss.secant_floor(here, wider)).low, 0)
            gram, E = gram + (turned * w[:, None]).T @ turned, E + (near(w) * off * off).sum()
            lost = lost + 4 * ar.tiny * (1 + size).sum()
            found[rows] = loss.verdicts((here - bound).low, (here + bound).up)
        c = ar.root(gram.diagonal() * (1 + 2 * gamma) + lost)
        M = Near(gram, gamma * np.outer(c, c) + lost) + product(full.T, near(full) * D[:, None])
        sums = product(ar.array(np.ones((1, k))), abs(M))[0]
        least = (near(M.mid.diagonal()) * 2 - sums).low.min(initial=1)
        need(least >= (near(1) - eta + near(ar.root(E.up)) * 2 + E).up, "T does not prove a region")
        self.proved = np.where(self.proved == 0, found, self.proved)
        self.slopes, self.moved = v[:p], steep * radius
        self.reach = np.minimum(self.reach, (abs(near(x)) + near(lengths) * radius).up)
        self.whole = np.minimum(self.whole, length(near(self.reach[:p])))


# --- the data ---------------------------------------------------------------------------------


class ArrayFile:
    """An .npz file: a proof, or data in X (or CSR's data, indices, indptr), y and other arrays."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path)

    def opened(self, name):
        """What an array holds, as a stream, its shape and type; nothing is evaluated."""
        stream = self.archive.open(f"{name}.npy")
        readable(np.lib.format.read_magic(stream) == (1, 0), "an array of an unknown version")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=2048)
        readable(not (fortran and len(shape) > 1), "an array is stored by columns, and not by rows")
        # long doubles are of 12 or 16 bytes
        readable(dtype.kind in "biufU" and dtype.str[1:3] != "f1", f"an array holds {dtype}")
        return stream, shape, dtype

    def column(self, name, empty=None):
        stream, shape, dtype = self.opened(name)
        return np.frombuffer(stream.read(), dtype=dtype).reshape(shape)

    def batches(self, n_rows, p):
        """Blocks of rows: the numbers of columns, others being 0, and the entries in these."""
        if "X.npy" in self.archive.namelist():
            stream, (_, width), dtype = self.opened("X")
            readable(width == p, f"X has {width} columns and not {p}")
            while content := stream.read(n_rows * p * dtype.itemsize):
                yield np.arange(p), np.frombuffer(content, dtype=dtype).reshape(-1, p)
            return
        values, cols, ends = (self.column(name) for name in ("data", "indices", "indptr"))
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        readable(len(values) == len(cols) == len(rows) == ends[-1], "indptr does not fit")
        readable((cols >= 0) & (cols < p), "a column is out of range")
        readable(len(np.unique(rows * p + cols)) == len(cols), "an entry is there twice")
        for start in range(0, len(ends) - 1, n_rows):
            block = ends[start : start + n_rows + 1]
            here = slice(block[0], block[-1])
            used, places = np.unique(cols[here], return_inverse=True)
            entries = np.zeros((len(block) - 1, len(used)), dtype=values.dtype)
            entries[rows[here] - start, places] = values[here]
            yield used, entries


def doubles(cells):
    """Numbers, none of them rounded."""
    kind, found = cells.dtype.kind, cells.astype(np.float64)
    readable(kind in "fb" or (kind in "iu" and (abs(found) < 2**53).all()), "not exact doubles")
    return found


# how columns were made: one rounded operation after the other, as whoever wrote the proof did it
OPERATIONS = {"subtract": np.subtract, "divide": np.divide, "multiply": np.multiply, "add": np.add}
OPERATIONS["fill"] = lambda x, a: np.where(np.isnan(x), a, x)


class Data:
    """What a statement is about: rows in blocks; targets and weights as a whole."""

    def __init__(self, file, s):
        self.file, self.n, self.p, self.kept = file, s["n_samples"], s["n_features"], None
        self.transform, pairs = s["transform"], LOSSES[s["loss"]["name"]][0] == "interval"
        self.complete = s["transform"] or s["kernel"]
        # what an empty cell of a table stands for; that of a label is a label
        empty = [-math.inf, math.inf] if pairs else [None if s["labels"] else math.nan]
        found = [file.column(name, empty[i]) for i, name in enumerate(s["target"])]
        self.target = np.column_stack([*map(doubles, found)] if pairs else found)
        readable(self.target.shape == (self.n, 1 + pairs), "y has another shape")
        own = {"weight": np.ones(self.n), "epsilons": np.full(self.n, s["loss"].get("epsilon", 0))}
        for name, usual in own.items():
            own[name] = one = usual if s[name] is None else doubles(file.column(s[name], math.nan))
            readable(one.shape == (self.n,) and (abs(one) < 1e150).all(), f"{name}: not one a row")
        self.weights, self.epsilon = own.values()

    def made(self, batch):
        """Columns and entries, transformed, and a column of ones."""
        cols, found = batch[0], doubles(batch[1])
        # what is transformed may become other than 0, and a kernel's diagonal is needed
        readable(len(cols) == self.p or not self.complete, "columns of zeros have to be stored")
        for operation, given in self.transform:
            found = OPERATIONS[operation](found, np.array(given))
        readable(abs(found) < 1e150, "X holds what is no number, or too large a one")
        return np.append(cols, self.p), ar.array(np.append(found, np.ones((len(found), 1)), axis=1))

    def blocks(self):
        """(rows, columns, matrix), read again for every pass unless all of them can be kept."""
        start, held, kept, size = 0, 0, [], max(min(BLOCK_ENTRIES // self.p, 4096), 1)
        for cols, matrix in self.kept or map(self.made, self.file.batches(size, self.p)):
            rows = slice(start, start + len(matrix))
            start, held = rows.stop, held + matrix.size
            kept = [*kept, (cols, matrix)] if held <= KEPT_ENTRIES else []
            yield rows, cols, matrix
        readable(start == self.n, f"X has {start} rows and not {self.n}")
        self.kept = kept


def read_data(path, s):
    """The columns of a table are read by safesift_tables, all else here."""
    if s["features"] is None:
        return Data(ArrayFile(path), s)
    from safesift_tables import TableFile

    return Data(TableFile(path, s["features"]), s)


def targets(statement, data, positive):
    """What the loss of a part asks for: labels as −1 and 1, numbers, or ends of intervals."""
    if statement["labels"] is None:
        y, size = doubles(data.target), abs(doubles(data.target))
        sane = ((size < 1e150) | (size == math.inf)).all() and (size.min(axis=1) < 1e150).all()
        readable(sane and (y[:, 0] <= y[:, -1]).all(), "a target is no number, or empty")
        return y if y.shape[1] == 2 else y[:, 0]
    labels = data.target[:, 0].tolist()
    used = {own for own, weight in zip(labels, data.weights, strict=True) if weight != 0}
    readable(used <= {*statement["labels"]}, "a label is not among those of the statement")
    return np.where([own == positive for own in labels], 1.0, -1.0)


# --- the file ---------------------------------------------------------------------------------

# parameters; what is taken as it is
PENALTIES = {"l2": (), "l1": (), "elastic_net": ("l1_ratio",)}
PENALTIES |= {"l2_ball": ("radius",), "l1_ball": ("radius",)}
PLAIN = "features weight epsilons root verdicts slots root_before slots_before"


def parameters(record, names):
    """Numbers of a record, neither next to nothing nor huge, so that products are neither."""
    found = {name: float(record[name]) for name in names}
    readable([v == 0 or 1e-100 <= abs(v) <= 1e100 for v in found.values()], f"the size of {names}")
    return found


def understood(text):
    """A statement, made again of all that is known of it here: it has to come out the same.

    So whatever is missing, unknown, there twice or of another type is refused.
    """
    s = json.loads(text)
    loss, penalty, n, p = s["loss"], s["penalty"], s["n_samples"], s["n_features"]
    kind, names, *_ = LOSSES[loss["name"]]
    names = [name for name in names if name != "epsilon" or s["epsilons"] is None]
    again = {
        "format": FORMAT,
        **{name: int(s[name]) for name in ("n_samples", "n_features")},
        "loss": {"name": loss["name"], **parameters(loss, ["factor", *names])},
        "penalty": {"name": penalty["name"], **parameters(penalty, PENALTIES[penalty["name"]])},
        **parameters(s, ["alpha"]),
        **{name: bool(s[name]) for name in ("intercept", "kernel")},
        **{name: s[name] and [*s[name]] for name in ("target", "labels", "positives")},
        **{name: s[name] for name in PLAIN.split()},
        "transform": [[name, [float(one) for one in given]] for name, given in s["transform"]],
        "gaps": [float(gap) for gap in s["gaps"]],
        "rules": [[*rules] for rules in s["rules"]],
    }
    readable(json.dumps(again, allow_nan=False) == text, "something is missing, unknown or odd")
    readable(s["epsilons"] is None or "epsilon" in LOSSES[loss["name"]][1], "there is no epsilon")
    readable(not s["kernel"] or (penalty["name"] == "l2" and n == p), "a kernel has its own norm")
    labels, lists = s["labels"], [s["features"], *(given for _, given in s["transform"])]
    own = None if kind in ("number", "interval") else [*dict.fromkeys(labels)]
    readable(labels == own and {*s["positives"]} <= {*(own or [None])}, "labels are not fit")
    readable([one is None or len(one) == p for one in lists], "lists are not for p features")
    readable(len(s["gaps"]) == len(s["rules"]) == len(s["positives"]) <= 10_000, "so many problems")
    readable([len(rules) <= 100 for rules in s["rules"]], "there are too many steps")
    return s


ARRAYS = {"statement": "|u1", "verdicts": "|u1", "numbers": "<f8"}
ARRAYS |= {"absent": "<u8", "removed": "<u8", "removed_leaves": "|u1"}


def read_proof(path):
    """Statement and arrays; none is compressed, so that none holds more than the file is long."""
    file = ArrayFile(path)
    found = sorted((one.filename, one.compress_type) for one in file.archive.infolist())
    stored = sorted((f"{name}.npy", zipfile.ZIP_STORED) for name in ARRAYS)
    readable(found == stored, "there are other arrays, or two of one name, or compressed ones")
    arrays = {name: file.column(name) for name in ARRAYS}
    found = {name: array.dtype.str * (array.ndim == 1) for name, array in arrays.items()}
    readable(found == ARRAYS, "arrays have other types or shapes")
    readable(len(arrays["statement"]) <= MOST_STATEMENT, "the statement is too long")
    s = understood(arrays["statement"].tobytes().decode("utf-8"))
    readable(len(arrays["verdicts"]) == len(s["gaps"]) * -(-s["n_samples"] // 4), "other verdicts")
    readable(np.isfinite(arrays["numbers"]), "a number of a step is none")
    readable(len(arrays["numbers"]) > 2 * len(s["gaps"]) * s["n_features"], "models are missing")
    return s, arrays


# --- checking ---------------------------------------------------------------------------------


def check_part(s, data, i, rest, bits):
    """Run the steps of one problem, and compare what they prove with what is claimed.

    `rest` has the numbers of the file in the order in which they are needed.
    """

    def taken(size):
        return ar.array(np.frombuffer(rest.read(8 * size), dtype="<f8").reshape(size))

    d, problem = data.p + 1, Problem(s, data, targets(s, data, s["positives"][i]), taken(1)[0])
    model, nu = taken(d), None if problem.smooth else taken(data.n)
    problem.rule_gap(taken(d), nu)
    for rule in s["rules"][i]:
        sizes = {"features": [d - 1], "ball": [1, 1], "region": [d, 1, 1, problem.alive.sum() ** 2]}
        getattr(problem, f"rule_{rule}")(*map(taken, sizes[rule]))
    # min P ≥ P(x) − gap(x) at any point x
    gap = (problem.value(model)[0] - problem.floor).up
    need(gap <= s["gaps"][i], f"the gap is {float(gap):.3g}, more than claimed")
    claimed = np.stack([bits >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).ravel()
    # of rows that are not there nothing is proved
    fine = (claimed == 0) | (claimed == np.append(problem.proved, [0] * (len(claimed) - data.n)))
    need(fine, f"{(~fine).sum()} verdicts are not proved, the first on row {fine.argmin()}")
    return claimed[: data.n]


def in_words(s, verdicts):
    """The statement for people; what is cut off ends with dots."""
    for name in s:
        said = json.dumps(s[name])
        yield f"{name}: {said[:200]}{' …' * (len(said) > 200)}"
    yield from ["assumed: X is a kernel matrix, positive semidefinite"] * s["kernel"]
    for positive, gap, codes in zip(s["positives"], s["gaps"], verdicts, strict=True):
        who = "" if s["labels"] is None else f"{positive!r} against the rest: "
        n = np.bincount(codes, minlength=4)
        pieces = f"flat {n[1]}, quadratic {n[2]}, linear {n[3]}, open {n[0]}"
        yield f"{who}P(model) - min P <= {gap!r}; rows: {pieces}"
    flat = int((np.stack(verdicts) == FLAT).all(axis=0).sum())
    yield f"{flat} rows may be deleted, together, with W kept: the optima stay what they are"


def check_expected(s, wishes):
    """Compare a statement with what somebody wants it to say: numbers, or texts as printed."""
    facts = s | s["loss"] | s["penalty"] | {"gap": max(s["gaps"])}
    facts |= {"loss": s["loss"]["name"], "penalty": facts.pop("name")}
    for wish in filter(None, re.split(r",(?=\w+=)", wishes)):
        name, _, wanted = wish.strip().partition("=")
        readable("=" in wish and name in facts, f"give NAME=VALUE, the name one of {sorted(facts)}")
        said, same = facts[name], wanted in (str(facts[name]), json.dumps(facts[name]))
        if type(said) is float:
            same = said <= float(wanted) if name == "gap" else said == float(wanted)
        need(same, f"{name} is {json.dumps(said)} and not {wanted}")


def check(proof_path, data_path, exact=False, expect=""):
    """The proof, the data, verdicts, and the statement in words; raises Unproved."""
    global ar
    ar = Rationals() if exact else Floats()
    s, arrays = read_proof(proof_path)
    check_expected(s, expect)
    data, rest = read_data(data_path, s), io.BytesIO(arrays["numbers"].tobytes())
    bits = np.split(arrays["verdicts"], len(s["gaps"]))
    verdicts = [check_part(s, data, i, rest, bits[i]) for i in range(len(bits))]
    need(not rest.read(1), "there are more numbers than steps need")
    return (s, arrays), data, verdicts, [*in_words(s, verdicts)]


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
    except Exception as error:  # whatever a hostile file makes of the libraries that read it
        proof = isinstance(error, Unproved)
        print(f"NOT PROVED: {error}" if proof else f"NOT READABLE: {type(error).__name__}: {error}")
        return 1 if proof else 2
    print("PROVED:", *lines, *["not compared here: roots and slots"] * (work is check), sep="\n  ")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
