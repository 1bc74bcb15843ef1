"""Lower bounds on the optimal value: dual points, and the best one near a primal point.

`Problem.certify` is the way in; nobody else computes a gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from safesift.arithmetic.numerics import (
    EPS,
    UNDERFLOW,
    half_square_over,
    length_bound,
    norm,
    solve_positive,
    sum_over_blocks,
    total,
)
from safesift.arithmetic.printing import Brief
from safesift.penalties import L2
from safesift.problem.looks import SideSums
from safesift.problem.passes import Computation, Transposed

if TYPE_CHECKING:
    from safesift.problem.evaluation import Evaluation
    from safesift.problem.problem import Problem

Array = NDArray[np.float64]

# widths, in units of the targets, over which kinks are rounded off: for slopes and for solvers
WIDTHS = (0.3, 0.03, 0.003)

# slopes whose sum is this share of their sizes cancel
_BALANCED = 1e-14

# shares by which a folded part pulls an infeasible dual point towards the feasible ones
PULLS = tuple(10.0**power for power in range(-14, 0))


@dataclass(frozen=True, eq=False, repr=False)
class DualPoint(Brief):
    """A feasible dual point and a lower bound on the optimal value.

    Attributes
    ----------
    nu : array of shape (n_samples,)
    value : float
        The bound.
    rounding : float
        About how much larger it would be, were nothing set aside for rounding.
    """

    nu: Array
    value: float
    rounding: float = 0.0


@dataclass(frozen=True, eq=False)
class Ray:
    """The dual points c·(ν, point), c ≥ 0, with (1/W) Aᵀ(s∘ν) of c = 1."""

    nu: Array
    loss_gradient: Array
    point: Array


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual of a problem, on rays."""

    problem: Problem

    # --- the value of a dual point ----------------------------------------------------------

    def value(self, ray: Ray, multiple: float = 1.0) -> float:
        """D(multiple·ν, multiple·point), rounded downwards; −inf where it is not feasible."""
        return self.point(ray, multiple).value

    def point(self, ray: Ray, multiple: float = 1.0) -> DualPoint:
        """The point of a ray at some multiple."""
        problem, nu = self.problem, multiple * ray.nu
        plain, sizes = sum_over_blocks(
            problem.design.sample_blocks, lambda rows: self._conjugates_of(nu[rows], rows)
        )
        if plain == math.inf:
            return DualPoint(nu, -math.inf)
        error = self._rounding(ray)
        sizes *= problem.design.sum_error + 16 * EPS + problem.loss.precision
        # squares of tiny slopes underflow
        sizes += (len(nu) + 8) * UNDERFLOW
        conjugates = plain + sizes
        if problem.fit_intercept:
            rise, moved = self._balance(ray, multiple)
            conjugates, error = conjugates + rise, error + moved
        value = self._value(ray, multiple, conjugates, error)
        if not math.isfinite(value):
            return DualPoint(nu, value)
        return DualPoint(nu, value, self._value(ray, multiple, plain, 0.0) - value)

    def _conjugates(self, nu: Array, rows: slice = slice(None)) -> Array:
        """f*(ν_i), 0 for samples without weight, which no domain restricts."""
        problem = self.problem
        conjugates = problem.loss.take(rows).conjugate(nu, problem.y[rows])
        return np.where(problem.shares[rows] > 0, conjugates, 0.0)

    def _conjugates_of(self, nu: Array, rows: slice) -> tuple[float, float]:
        """Sums over some samples of s_i f*(ν_i)/W, and of the sizes of their terms."""
        problem, shares = self.problem, self.problem.shares[rows]
        sizes = problem.loss.take(rows).conjugate_size(nu, problem.y[rows])
        return total(shares, self._conjugates(nu, rows)), total(shares, sizes)

    def _value(self, ray: Ray, multiple: float, conjugates: float, error: float) -> float:
        """The dual value, given (1/W) Σ s_i f*(multiple·ν_i) and the error of v."""
        problem = self.problem
        v = self._v(ray, multiple)
        p = problem.design.n_features
        support = problem.penalty.support(v[:p], problem.alpha, error * max(multiple, 1.0))
        constant = size = 0.0
        if problem.folded is not None:
            length = multiple * norm(ray.point)
            curved = multiple * problem.folded.product(ray.point)
            constant = problem.folded.r - 0.5 * multiple * float(ray.point @ curved)
            size = abs(problem.folded.r) + length * problem.folded.size(length)
            constant -= problem.folded.value_error(length)
        # the rounding of these few sums and products
        lost = (problem.design.n_columns + 16) * EPS * (size + abs(conjugates) + support)
        value = constant - conjugates - support - lost
        return -math.inf if math.isnan(value) else value

    def _v(self, ray: Ray, multiple: float) -> Array:
        folded = self.problem.folded
        v = multiple * ray.loss_gradient
        return v if folded is None else v + multiple * folded.product(ray.point) + folded.q

    def _rounding(self, ray: Ray) -> float:
        """‖computed v − exact v‖ at the multiple 1."""
        problem = self.problem
        norms = problem.design.row_norms
        (load,) = sum_over_blocks(
            problem.design.sample_blocks,
            lambda rows: (total(problem.shares[rows], np.abs(ray.nu[rows]) * norms[rows]),),
        )
        error = (problem.design.sum_error + 8 * EPS) * load + problem.risk.rows.underflow
        if problem.folded is not None:
            length = norm(ray.point)
            error += problem.design.n_columns * EPS * problem.folded.size(length)
            error += problem.folded.gradient_error(length)
        return error

    # --- the intercept's constraint ---------------------------------------------------------

    def _rest(self, ray: Ray, multiple: float) -> tuple[float, float]:
        """Bounds on v on the intercept's coordinate, rounding included."""
        problem = self.problem
        size, lost = multiple * total(problem.shares, np.abs(ray.nu)), 0.0
        if problem.folded is not None:
            length = norm(ray.point)
            size += problem.design.n_columns * problem.folded.size(length)
            lost = max(multiple, 1.0) * problem.folded.gradient_error(length)
        v = float(self._v(ray, multiple)[-1])
        error = (problem.design.sum_error + 8 * EPS) * size + lost
        return v - error, v + error

    def _balance(self, ray: Ray, multiple: float) -> tuple[float, float]:
        """What it costs to make v vanish on the intercept's coordinate exactly.

        It vanishes only up to rounding. Moving the folded part's point, or shrinking all slopes of
        the sign of v by the factor 1 − |v|/mass, makes it exact; by convexity and f*(0) = 0 the
        conjugates then rise by at most |v|/mass times their size. Returned are bounds on that rise
        (infinite where the mass does not suffice) and on how far v moves.
        """
        problem, Q = self.problem, self.problem.Q
        low, high = self._rest(ray, multiple)
        if problem.folded is not None and Q is not None and Q[-1, -1] > 0:
            rest, off = max(-low, high), 1.0 + 4.0 * problem.folded.Q_error
            slope = multiple * abs(float((Q @ ray.point)[-1])) * off + 0.5 * rest
            return off * slope * rest / Q[-1, -1], off * rest / Q[-1, -1] * norm(Q[-1])
        rise = moved = 0.0
        for sign, rest in ((1.0, high), (-1.0, -low)):
            if rest <= 0:
                continue
            mass, size, load = self._sums_of_side(sign * multiple, ray)
            mass *= 1.0 - problem.design.sum_error
            if not mass >= rest:
                return math.inf, 0.0
            shrink = rest / mass
            rise, moved = max(rise, shrink * size), max(moved, shrink * load)
        return rise, moved

    def _sums_of_side(self, multiple: float, ray: Ray) -> tuple[float, ...]:
        """Of the slopes that a multiple makes positive: their sum, that of |f*|, and the load."""
        problem, norms = self.problem, self.problem.design.row_norms

        def sums(rows: slice) -> tuple[float, float, float]:
            shares, nu = problem.shares[rows], ray.nu[rows]
            conjugates = np.abs(self._conjugates(abs(multiple) * nu, rows))
            side = np.maximum(multiple * nu, 0.0)
            sizes = np.where(side > 0, conjugates, 0.0)
            return total(shares, side), total(shares, sizes), total(shares, side * norms[rows])

        return sum_over_blocks(problem.design.sample_blocks, sums)

    def _cancel(self, ray: Ray) -> Computation[Ray]:
        """A ray whose v vanishes on the intercept's coordinate, up to rounding.

        The positive and the negative slopes are scaled separately so that they cancel; scaling
        towards 0 keeps every ν_i in the domain of f*.
        """
        problem = self.problem
        if not problem.fit_intercept:
            return ray
        target = 0.0
        if problem.folded is not None:
            target = -float(problem.folded.product(ray.point)[-1] + problem.q[-1])
            own = 0.0 if problem.Q is None else problem.Q[-1, -1]
            if own > 0:
                # a folded quadratic part can take up the whole rest by itself
                moved = ray.point.copy()
                moved[-1] += (target - ray.loss_gradient[-1]) / own
                return Ray(ray.nu, ray.loss_gradient, moved)
        mass = problem.shares * ray.nu
        up, down = float(mass[mass > 0].sum()), float(-mass[mass < 0].sum())
        if abs(up - down - target) <= _BALANCED * (up + down):
            # they cancel as well as anything, and what is left is paid for by `_balance`
            return ray
        shrink_up, shrink_down = _fraction(target + down, up), _fraction(up - target, down)
        nu = ray.nu * np.where(ray.nu > 0, shrink_up, shrink_down)
        gradient = yield Transposed(problem.design, problem.shares * nu)
        return Ray(nu, gradient, ray.point)

    def feasible(self, ray: Ray) -> Computation[DualPoint]:
        """The dual point of a ray at the multiple 1, made feasible if an intercept demands it."""
        ray = yield from self._cancel(ray)
        return self.point(ray)

    # --- the best dual point ----------------------------------------------------------------

    def best(
        self, at: Evaluation, known: DualPoint | None = None, enough: float = -math.inf
    ) -> Computation[DualPoint]:
        """The best dual point on the rays through the slopes at a point, or a better one known.

        Where the slopes themselves leave a gap of no more than `enough`, no other is looked for.
        """
        best, own = known, self.own_gap(at)
        if own <= enough and math.isfinite(own):
            found = self._own_point(at, own)
            return found if best is None or found.value > best.value else best
        for ray in (yield from self._rays(at)):
            ray = yield from self._cancel(ray)
            pulled = yield from self._pulled(ray)
            for dual in (self._best_on(ray), *pulled):
                if best is None or dual.value > best.value:
                    best = dual
        assert best is not None  # there is a ray, and a point on each
        return best

    def own_gap(self, at: Evaluation) -> float:
        """The duality gap at a point, with its own slopes: for smooth losses and l2 penalties.

        By Fenchel's equality f(t) + f*(ν) = tν it is ‖g‖²/(2·alpha), with g the gradient of P: no
        sum over the samples is needed, and nothing cancels. An intercept demands that its own
        coordinate g_c vanish, which it does when the slopes of its sign are shrunk by 1 − η, for
        η = |g_c| over their mass: that moves g by at most η times their load, and the gap by
        η·first + η²·second (`SampleSums`). Infinite where nothing is known that way.
        """
        return self._gap_of_gradient(at, at.subgradient)

    def own_noise(self, at: Evaluation) -> float:
        """What is left of `own_gap` where the computed gradient vanishes."""
        return self._gap_of_gradient(at, np.zeros_like(at.subgradient))

    def _gap_of_gradient(self, at: Evaluation, gradient: Array) -> float:
        problem = self.problem
        if not isinstance(problem.penalty, L2) or math.isinf(problem.loss.proved_smoothness):
            return math.inf
        p, error = problem.design.n_features, problem.rounding(at).gradient
        cost = 0.0
        if problem.fit_intercept:
            shrink, side = self._shrinking(at, float(gradient[-1]), error)
            error += shrink * side.load
            cost = shrink * (side.first + shrink * side.second)
        # the conjugate of the penalty is its own shape, in whatever space it is
        return _known(problem.penalty.support(gradient[:p], problem.alpha, error) + cost)

    def _shrinking(self, at: Evaluation, rest: float, error: float) -> tuple[float, SideSums]:
        """How much slopes shrink for an intercept, and the sums over those that may have to.

        At exact predictions slopes are others by `SampleSums.drift` in all (rows with a one at the
        end are no shorter than 1), and losses by `SampleSums.change`. Infinite where there are not
        slopes enough.
        """
        sums, some = at.sums, 1e-6 + self.problem.design.sum_error
        # the sign of a rest within its error is not known: it may be either side that shrinks, and
        # one may cost nothing where the other costs much
        possible = ((sums.up, not rest < -error), (sums.down, not rest > error))
        load, mass, first, second = zip(*(side for side, may in possible if may), strict=True)
        exact = SideSums(
            load=(max(load) + sums.drift) * (1.0 + some),
            mass=min(mass) * (1.0 - some) - sums.drift,
            first=(max(first) + sums.change) * (1.0 + some),
            second=(max(second) + sums.change) * (1.0 + some),
        )
        rest = abs(rest) + error
        return (rest / exact.mass if rest < exact.mass else math.inf), exact

    def _own_point(self, at: Evaluation, gap: float) -> DualPoint:
        """The dual point that a gap of `own_gap` belongs to."""
        problem, nu, rounding = self.problem, at.nu, self.problem.rounding(at)
        if problem.fit_intercept:
            shrink, _ = self._shrinking(at, float(at.subgradient[-1]), rounding.gradient)
            nu = nu * np.where((nu > 0) == (at.subgradient[-1] > 0), 1.0 - shrink, 1.0)
        value = (at.value - rounding.value - gap) - 8 * EPS * (abs(at.value) + gap)
        return DualPoint(nu, -math.inf if math.isnan(value) else value, 2.0 * rounding.value)

    def _pulled(self, ray: Ray) -> Computation[list[DualPoint]]:
        """Feasible points next to one whose v is too large for the penalty, by a hair at best.

        Moving the folded part's point along −Q⁻¹v shrinks v; a multiple of the slopes need not,
        since it leaves q where it is.
        """
        problem = self.problem
        if problem.Q is None or math.isfinite(self.value(ray)):
            return []
        pull = solve_positive(problem.Q, self._v(ray, 1.0))
        found = []
        for share in PULLS:
            moved = Ray(ray.nu, ray.loss_gradient, ray.point - share * pull)
            pulled = yield from self._cancel(moved)
            found.append(self.point(pulled))
        return found

    def _rays(self, at: Evaluation) -> Computation[list[Ray]]:
        """Through the slopes at a point; at kinks also through slopes between the two sides.

        A loss with kinks has many slopes at a kink and an evaluation returns only one, so that
        the slopes of the loss rounded off over a few widths are tried too, in one pass more.
        """
        problem = self.problem
        rays = [Ray(at.nu, at.loss_gradient, at.point)]
        if math.isfinite(problem.loss.smoothness):
            return rays
        losses = [problem.loss.smoothed(width * problem.unit) for width in WIDTHS]
        slopes = np.stack([loss.slope(at.pred, problem.y) for loss in losses], axis=1)
        gradients = yield Transposed(problem.design, problem.shares[:, None] * slopes)
        return rays + [Ray(nu, g, at.point) for nu, g in zip(slopes.T, gradients.T, strict=True)]

    def _best_on(self, ray: Ray) -> DualPoint:
        """The best point of a ray: a concave problem in one variable."""
        problem = self.problem
        # a folded part shifts the intercept's constraint, which then holds at the multiple 1 only
        if problem.folded is not None and problem.fit_intercept:
            return max((self.point(ray, c) for c in (1.0, 0.0)), key=lambda dual: dual.value)
        error, conjugates = self._rounding(ray), self._conjugates_on(ray.nu)

        def estimate(multiple: float, error: float = error) -> float:
            return self._value(ray, multiple, conjugates(multiple), error)

        low, high = self._feasible_multiples(ray, error)
        if low < high and estimate(high) > estimate(high - 1e-6 * (high - low)):
            # a concave function that still rises at the end of an interval is largest there, as it
            # is under an l1 penalty, where feasibility ends the interval
            candidates = [high, 1.0, low]
        else:
            candidates = [1.0, *(self._stationary(estimate, low, high) if low < high else ())]
            candidates.sort(key=estimate, reverse=True)
        # a certified value takes several sums over the samples: of the best that is feasible only
        for multiple in candidates:
            at_end = multiple == high
            found = self._end(ray, high, error, estimate) if at_end else self.point(ray, multiple)
            if math.isfinite(found.value):
                return found
        return self.point(ray, 0.0)

    def _end(
        self, ray: Ray, high: float, error: float, estimate: Callable[..., float]
    ) -> DualPoint:
        """The point of a ray where feasibility that is proved ends, next to some multiple.

        That is a hair before it ends in exact arithmetic, and what the hair costs is rounding.
        """
        found = self.point(ray, high)
        if not math.isfinite(found.value) and self.problem.fit_intercept:
            # v moves once more as it is made to vanish on the intercept's coordinate
            error += self._balance(ray, high)[1]
            high = min(high, self._feasible_multiples(ray, error)[1])
            found = self.point(ray, high)
        if not math.isfinite(found.value):
            return found
        end = self._feasible_multiples(ray, 0.0)[1]
        lost = max(estimate(end, 0.0) - estimate(high, 0.0), 0.0)
        return replace(found, rounding=found.rounding + lost)

    @staticmethod
    def _stationary(estimate: Callable[[float], float], low: float, high: float) -> list[float]:
        """The multiple where a concave estimate is largest, and the ends of the interval."""
        found = minimize_scalar(
            lambda c: -estimate(c), bounds=(low, high), method="bounded", options={"xatol": 1e-12}
        )
        return [low, high, float(found.x)]

    def _conjugates_on(self, nu: Array) -> Callable[[float], float]:
        """c ↦ (1/W) Σ s_i f*(c·ν_i), from two sums where it is a quadratic polynomial."""
        problem = self.problem

        def part(multiple: float, rows: slice) -> tuple[float]:
            return (total(problem.shares[rows], self._conjugates(multiple * nu[rows], rows)),)

        def at(multiple: float) -> float:
            return sum_over_blocks(problem.design.sample_blocks, partial(part, multiple))[0]

        if not problem.loss.quadratic_rays:
            return cache(at)
        one, half = at(1.0), at(0.5)
        quadratic = 2.0 * one - 4.0 * half
        linear = 4.0 * half - one
        return lambda multiple: multiple * (quadratic * multiple + linear)

    def _feasible_multiples(self, ray: Ray, error: float) -> tuple[float, float]:
        """The interval of multiples c, within [0, 4], for which c·ν is in the dual's domain."""
        problem, nu = self.problem, ray.nu
        blocks = problem.design.sample_blocks
        room = min((self._room(nu[rows], rows) for rows in blocks), default=4.0)
        p = problem.design.n_features
        u = (self._v(ray, 1.0) - problem.q)[:p]
        low, high = problem.penalty.feasible_multiples(u, problem.q[:p], problem.alpha, error)
        return max(low, 0.0), min(high, room)

    def _room(self, nu: Array, rows: slice) -> float:
        """The largest multiple up to 4 for which the slopes of some samples stay in the domain."""
        problem = self.problem
        lower, upper = problem.loss.take(rows).dual_interval(problem.y[rows])
        counted = (problem.shares[rows] > 0) & (nu != 0)
        end = np.where(nu > 0, upper, lower)[counted]
        return float(np.min(end / nu[counted], initial=4.0))


def _fraction(wanted: float, available: float) -> float:
    """wanted / available, kept in [0, 1]."""
    if available <= 0 or wanted >= available:
        return 1.0
    return max(wanted / available, 0.0)


def stationary_gap(
    gradient: Array,
    error: float,
    alpha: float,
    ones: Array | None = None,
    ones_error: float = 0.0,
) -> float:
    """The duality gap of a smooth problem with l2 penalty at its own slopes, from the gradient.

    At ν = f'(Ax) Fenchel's equality f(t) + f*(ν) = νt leaves nothing of P − D but ‖g‖²/(2·alpha),
    with g the gradient of P: no sum over the samples is needed, and nothing cancels. An intercept
    demands Σ s_i ν_i = 0, which predictions moved by one δ meet: ν_i = f'(t_i + δ) on the rows that
    curve, δ = −g_c/Q_cc with Q = (1/W) Σ s_i f'' a_i a_iᵀ over those that stay on their quadratic
    piece. That moves v by δ·Q_c and costs ½δ²Q_cc.

    Parameters
    ----------
    gradient : array
        Of P at the point, over *all* samples; the intercept's coordinate is the last one.
    error : float
        ‖computed − exact gradient‖₂.
    alpha : float
    ones : array, optional
        The column Q_c of the intercept, where there is one.
    ones_error : float
        ‖computed − exact column‖₂.
    """
    if ones is None:
        return _known(half_square_over(length_bound(gradient) + error, alpha))
    least = float(ones[-1]) - ones_error
    if not least > 0:
        return math.inf
    shift = (abs(float(gradient[-1])) + error) / least
    moved = length_bound(gradient[:-1]) + error + shift * (length_bound(ones[:-1]) + ones_error)
    cost = 0.5 * shift * shift * (float(ones[-1]) + ones_error)
    return _known((half_square_over(moved, alpha) + cost) * (1.0 + 16 * EPS) + UNDERFLOW)


def _known(gap: float) -> float:
    """A gap that overflowed into NaN is none."""
    return math.inf if math.isnan(gap) else gap
