"""f_μ = (f* + μΩ)* of a function known numerically: value, slope, curvature and conjugate.

With y ∈ ∂f(z) the curve

    t = z + μΩ'(y),    f_μ(t) = f(z) + μ(yΩ'(y) − Ω(y)),    f_μ'(t) = y,    f_μ*(y) = f*(y) + μΩ(y)

is the graph of f_μ (Fenchel–Young with equality for f at (z, y) and for μΩ at (y, t − z)). It is
tabulated once; a query is bracketed in the table and finished by safeguarded Newton steps. f_μ is
flat where y = 0, and f* + μΩ is convex where t never falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.losses.graph import Graph
from safesift.losses.omegas import DualTerm
from safesift.losses.scalar import ScalarFunction, solve_increasing

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# samples handled at once: what they need fits into the processor's cache
_BLOCK = 16_384
# curvature found beyond this grows like that of an exponential
_UNBOUNDED = 1e50
# slopes stay this far inside the range of f', so that their conjugate is attained
_INSIDE = 1.0 - 8 * EPS
# nodes on a vertical part of the graph, that is at a kink of f
_AT_KINK = 65
# where the slopes of a function without a minimum are this small, its limit is reached, or never
_NEAR, _FAR = 1e-20, 1e-60


@dataclass(frozen=True, eq=False)
class Convolved:
    """The infimum convolution of a traced function f with a dual term.

    Parameters
    ----------
    graph : Graph
        Of f.
    term : DualTerm
    given : float
        A Lipschitz constant of f', infinite where none is known for certain.

    Attributes
    ----------
    flat : (float, float)
        The ends of the flat region, equal where there is none.
    dual_interval : (float, float)
        The closure of the domain of the conjugate.
    """

    graph: Graph
    term: DualTerm
    given: float = math.inf

    @cached_property
    def _branches(self) -> tuple[Branch, Branch]:
        return make_branch(self.graph, self.term, -1), make_branch(self.graph, self.term, 1)

    @cached_property
    def flat(self) -> tuple[float, float]:
        left, right = self._branches
        return left.edge, right.edge

    # --- primal -----------------------------------------------------------------------------

    def value(self, t: Array) -> Array:
        function, infimum = self.graph.function, self.graph.infimum

        def on_branch(t: Array, branch: Branch) -> Array:
            z, y, omega = branch.locate(t)
            with np.errstate(all="ignore"):
                value = function.value(z) - infimum + branch.extra(y, omega)
            # where the function itself overflowed the loss is larger than any number
            return np.maximum(np.where(np.isnan(value), math.inf, value), 0.0)

        return self._by_branch(t, on_branch)

    def slope(self, t: Array) -> Array:
        low, high = self.dual_interval
        return self._by_branch(t, lambda t, branch: np.clip(branch.locate(t)[1], low, high))

    def curvature(self, t: Array) -> Array:
        return self._by_branch(t, lambda t, branch: branch.curvature(t))

    def location(self, t: Array) -> Array:
        """The z at which f_μ takes its value and slope from f."""
        return self._by_branch(t, lambda t, branch: branch.locate(t)[0])

    def _by_branch(self, t: Array, function: Callable[[Array, Branch], Array]) -> Array:
        """A function of t outside the flat region, 0 inside."""
        low, high = self.flat

        def on_block(t: Array) -> Array:
            result = np.zeros(len(t))
            for branch, rows in zip(self._branches, (t < low, t > high), strict=True):
                if rows.any():
                    result[rows] = function(t[rows], branch)
            return result

        return _by_block(t, on_block)

    # --- dual -------------------------------------------------------------------------------

    @cached_property
    def dual_interval(self) -> tuple[float, float]:
        low, high = (self._limit_slope(*nodes) for nodes in (self.graph.left, self.graph.right))
        first, last = self.term.omega.domain
        return max(-low * _INSIDE, first), min(high * _INSIDE, last)

    @staticmethod
    def _limit_slope(z: Array, y: Array) -> float:
        """The largest |slope| of f on one side, infinite where it still grows far out."""
        if not len(z):
            return 0.0
        outermost, size = np.abs(y).max(), np.abs(z)
        within = np.abs(y[size <= max(1e-8 * size.max(), 1.0)]).max(initial=0.0)
        return float(outermost) if outermost <= within * (1.0 + 1e-6) else math.inf

    @property
    def lipschitz(self) -> float:
        low, high = self.dual_interval
        return max(-low, high) * (1.0 + 16 * EPS)

    def conjugate(self, u: Array) -> Array:
        """f_μ*(u), +inf outside its domain and beyond the slopes of the table."""

        def on_block(u: Array) -> Array:
            z, known = self._conjugate_point(u)
            with np.errstate(all="ignore"):
                inside = z * u - (self.graph.function.value(z) - self.graph.infimum)
                inside = np.where(u == 0, 0.0, inside + self.term.value(u))
            return np.where(known & ~np.isnan(inside), inside, math.inf)

        return _by_block(u, on_block)

    def conjugate_size(self, u: Array) -> Array:
        """The size of the terms of f_μ*(u), to which its error is relative."""

        def on_block(u: Array) -> Array:
            z, _ = self._conjugate_point(u)
            with np.errstate(all="ignore"):
                size = np.abs(z * u) + np.abs(self.graph.function.value(z)) + self.graph.level
                size = size + np.abs(self.term.value(np.clip(u, *self.dual_interval)))
            return np.where(u == 0, 0.0, size)

        return _by_block(u, on_block)

    def _conjugate_point(self, u: Array) -> tuple[Array, Mask]:
        """z with f'(z) = u, and whether the table reaches that far."""
        low, high = self.dual_interval
        z, known = np.zeros(u.shape), (u >= low) & (u <= high)
        for (nodes, slopes), rows in (
            (self.graph.left, known & (u < 0)),
            (self.graph.right, known & (u > 0)),
        ):
            if rows.any():
                reached = rows & (np.abs(u) <= np.abs(slopes).max())
                known &= reached | ~rows
                z[reached] = self._inverse_slope(u[reached], nodes, slopes)
        return z, known

    def _inverse_slope(self, u: Array, nodes: Array, slopes: Array) -> Array:
        negative = slopes[0] < 0
        edge, side = self.graph.minimum[0 if negative else 1], -1 if negative else 1
        if math.isfinite(edge):
            nodes, slopes = _joined(side, nodes, edge), _joined(side, slopes, 0.0)
        # on a plateau of slopes the end next to the minimum, where nothing cancels
        after = np.searchsorted(slopes, u, side="right" if negative else "left")
        after = np.clip(after, 1, len(nodes) - 1)
        low, high = nodes[after - 1], nodes[after]
        rise = slopes[after] - slopes[after - 1]
        with np.errstate(all="ignore"):
            share = np.where(rise > 0, (u - slopes[after - 1]) / rise, 1.0 if negative else 0.0)
        start = low + np.clip(share, 0.0, 1.0) * (high - low)
        return solve_increasing(self.graph.function.slope_and_rate, u, low, high, start)

    # --- constants --------------------------------------------------------------------------

    @cached_property
    def smoothness(self) -> float:
        """The largest curvature found: on the table, towards minimum and kinks, and between nodes.

        Functions can bend more where nobody looked. At most what is proved.
        """
        between = self._convolved_with(self.graph.steepness) * (1.0 + 1e-6)
        measured = max(between, *(branch.largest_curvature() for branch in self._branches))
        return min(measured if measured <= _UNBOUNDED else math.inf, self.proved_smoothness)

    @property
    def proved_smoothness(self) -> float:
        """A Lipschitz constant of the slope, infinite where none is known for certain.

        f is L-smooth just where f* is 1/L-strongly convex, and a convex term with modulus m adds to
        that: 1/(1/L + m). So it is at most 1/μ with a quadratic Ω, whatever f.
        """
        return self._convolved_with(self.given) if self.term.omega.is_convex else math.inf

    def _convolved_with(self, smoothness: float) -> float:
        """What the term makes of the smoothness of f, rounded up."""
        modulus = (1.0 / smoothness if smoothness > 0 else math.inf) + self.term.strong_convexity
        return 1.0 / modulus * (1.0 + 8 * EPS) if modulus > 0 else math.inf


def _by_block(t: Array, function: Callable[[Array], Array]) -> Array:
    """A function of many numbers, so many at a time that they stay in the processor's cache."""
    t = np.asarray(t, dtype=np.float64)
    flat, result = t.ravel(), np.empty(t.size)
    for start in range(0, t.size, _BLOCK):
        result[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return result.reshape(t.shape)


# --- one side of the graph ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Branch:
    """One side of the graph of f_μ, where its slopes are negative, or positive.

    It has nodes (t, z, y) in increasing order.

    Attributes
    ----------
    edge : float
        Where the flat region begins, seen from this side.
    vertical : mask
        Segments on which z is a kink of f and only y moves.
    bounded : bool
        Whether the domain of Ω ends the branch: beyond, the slope stays.
    """

    function: ScalarFunction
    term: DualTerm
    side: int
    t: Array
    z: Array
    y: Array
    edge: float
    vertical: Mask
    bounded: bool

    def locate(self, t: Array) -> tuple[Array, Array, Array]:
        """z, slope y, and t − z ∈ μ∂Ω(y), for t on this side of the flat region."""
        at = self._segment(t)
        z = self._solve(t, at)
        low, high = self.y[at], self.y[at + 1]
        outside = self._is_beyond(t)
        y = self.function.slope(z)
        # beyond the reach of an interpolant slopes are those of the end of the table
        y = np.where(np.isnan(y), high if self.side < 0 else low, y)
        y = np.where(outside, y, np.clip(y, low, high))
        kinked = self.vertical[at] & ~outside
        if kinked.any():
            y[kinked] = self._slope_at_kink(t[kinked], at[kinked])
        with np.errstate(all="ignore"):
            omega = np.where(kinked, t - z, self.term.slope(y, self.side))
        if outside.any():
            self._continue(t, outside, z, y, omega)
        return z, y, omega

    def extra(self, y: Array, omega: Array) -> Array:
        """yΩ' − Ω: what the term adds to f."""
        return y * omega - self.term.value(y)

    def curvature(self, t: Array) -> Array:
        z, y, _ = self.locate(t)
        at = self._segment(t)
        with np.errstate(all="ignore"):
            own, added = self.function.curvature(z), self.term.curvature(y)
            curved = np.where(self.vertical[at], 1.0 / added, own / (1.0 + own * added))
        tail = self._is_beyond(t) & self.bounded
        return np.where(np.isfinite(curved) & ~tail, np.maximum(curved, 0.0), 0.0)

    def largest_curvature(self) -> float:
        """Over the table and ever closer to minimum and kinks; infinite where f_μ has a kink."""
        if len(self.t) < 2:
            return 0.0
        if (self.vertical & (np.diff(self.t) <= 0)).any():
            return math.inf
        places = [self.edge, *self.t[:-1][self.vertical], *self.t[1:][self.vertical]]
        near = np.ravel([p + self.side * np.geomspace(1e-8, 1e-1, 8) for p in places])
        near = near[np.isfinite(near)]
        far = self.curvature(np.array([self.t[0], self.t[-1]]))
        middle = self.curvature(0.5 * (self.t[1:] + self.t[:-1]))
        close = self.curvature(near)
        largest = float(max(middle.max(), close.max(initial=0.0)))
        grows = close.max(initial=0.0) > 10.0 * middle.max() or far.max() >= largest > 1e6
        if grows:
            return math.inf  # for all that can be seen, without end
        return largest * (1.0 + 1e-6)

    def _is_beyond(self, t: Array) -> Mask:
        """Whether the table ends before t."""
        return t < self.t[0] if self.side < 0 else t > self.t[-1]

    def _segment(self, t: Array) -> NDArray[np.intp]:
        return np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)

    def _solve(self, t: Array, at: NDArray[np.intp]) -> Array:
        """z with z + μΩ'(f'(z)) = t."""
        if self.term.constant_curvature == 0.0:
            return t - self.term.slope(np.full(1, float(self.side)), self.side)
        low, high = self.z[at], self.z[at + 1]
        start = low + self._share(t, at) * (high - low)
        return solve_increasing(self._t_and_rate, t, low, high, start)

    def _share(self, t: Array, at: NDArray[np.intp]) -> Array:
        """How far along its segment t is, from 0 to 1."""
        rise = self.t[at + 1] - self.t[at]
        with np.errstate(all="ignore"):
            return np.clip(np.where(rise > 0, (t - self.t[at]) / rise, 0.0), 0.0, 1.0)

    def _t_and_rate(self, z: Array) -> tuple[Array, Array]:
        slope, rate = self.function.slope_and_rate(z)
        slope = np.minimum(slope, 0.0) if self.side < 0 else np.maximum(slope, 0.0)
        return z + self.term.slope(slope, self.side), 1.0 + self.term.curvature(slope) * rate

    def _slope_at_kink(self, t: Array, at: NDArray[np.intp]) -> Array:
        low, high = self.y[at], self.y[at + 1]

        def slope_and_rate(y: Array) -> tuple[Array, Array]:
            return self.term.slope(y, self.side), self.term.curvature(y)

        start = low + self._share(t, at) * (high - low)
        return solve_increasing(slope_and_rate, t - self.z[at], low, high, start)

    def _continue(self, t: Array, rows: Mask, z: Array, y: Array, omega: Array) -> None:
        """Beyond the table, in place: a constant slope, or f itself."""
        end = 0 if self.side < 0 else -1
        if self.bounded:
            z[rows], y[rows] = self.z[end], self.y[end]
            omega[rows] = t[rows] - self.z[end]
            return
        z[rows] = t[rows] * (self.z[end] / self.t[end]) if self.t[end] else t[rows]
        slope = self.function.slope(z[rows])
        y[rows] = np.where(np.isfinite(slope), slope, self.y[end])
        omega[rows] = self.term.slope(y[rows], self.side)


def make_branch(graph: Graph, term: DualTerm, side: int) -> Branch:
    """The branch of one side.

    Raises
    ------
    ValueError
        If t falls along it: then f* + μΩ is not convex.
    """
    nodes, slopes = graph.left if side < 0 else graph.right
    limit = term.omega.domain[(side + 1) // 2]
    inside = slopes >= limit if side < 0 else slopes <= limit
    bounded = bool((~inside).any())
    z, y = nodes[inside & (slopes != 0)], slopes[inside & (slopes != 0)]
    if bounded and limit != 0 and len(z):
        z, y = _up_to_the_limit(graph, z, y, nodes, slopes, limit)
    minimum = graph.minimum[(side + 1) // 2]
    at_zero = term.omega.slopes_at_zero(term.mu)[(side + 1) // 2]
    if math.isfinite(minimum) and math.isfinite(at_zero):
        z, y = _joined(side, z, minimum), _joined(side, y, 0.0)
    z, y = _with_nodes_at_kinks(z, y)
    with np.errstate(all="ignore"):
        added = term.slope(y, side)
        t = z + added
    edge = minimum + at_zero if math.isfinite(minimum) else _limit(graph, side, z, y, added)
    if math.isfinite(edge) and not math.isfinite(minimum):
        settled = np.abs(y) >= _FAR * graph.central
        t, z, y = t[settled], z[settled], y[settled]
    _require_increasing(t, z, y)
    vertical = _vertical(z, y)
    t = np.maximum.accumulate(t)
    return Branch(graph.function, term, side, t, z, y, edge, vertical, bounded)


def _joined(side: int, values: Array, value: float) -> Array:
    """With one more, at the end next to the minimum."""
    return np.append(values, value) if side < 0 else np.insert(values, 0, value)


def _up_to_the_limit(
    graph: Graph, z: Array, y: Array, nodes: Array, slopes: Array, limit: float
) -> tuple[Array, Array]:
    """With the node at which the slope of f meets the end of Ω's domain."""
    at = int(np.searchsorted(slopes, limit))
    low, high = nodes[max(at - 1, 0)], nodes[min(at, len(nodes) - 1)]
    found = solve_increasing(
        graph.function.slope_and_rate, *(np.array([v]) for v in (limit, low, high, low))
    )
    if limit < 0:
        return np.insert(z, 0, found), np.insert(y, 0, limit)
    return np.append(z, found), np.append(y, limit)


def _limit(graph: Graph, side: int, z: Array, y: Array, slopes: Array) -> float:
    """The limit of t = z + μΩ'(y) as the slopes y of f tend to 0 at infinity; maybe infinite.

    It is finite only where μΩ' falls as fast as z grows, which is seen in their differences: a
    large constant in μΩ' must not hide that t grows.
    """
    if not len(z):
        return side * math.inf
    inner = -1 if side < 0 else 0
    near, far = (np.flatnonzero(np.abs(y) >= share * graph.central) for share in (_NEAR, _FAR))
    if not (len(near) and len(far) and abs(y[inner]) < _FAR * graph.central):
        return -side * math.inf
    near, far = near[inner], far[inner]
    growth = (z[far] - z[near]) + (slopes[far] - slopes[near])
    settled = abs(growth) <= 1e-9 * abs(z[far] - z[near])
    return float(z[far] + slopes[far]) if settled else -side * math.inf


def _vertical(z: Array, y: Array) -> Mask:
    narrow = np.diff(z) <= 4 * EPS * np.maximum(np.abs(z[1:]), 1e-290)
    return narrow & (np.diff(y) > 1e-10 * np.abs(y[1:]))


def _with_nodes_at_kinks(z: Array, y: Array) -> tuple[Array, Array]:
    for at in np.flatnonzero(_vertical(z, y))[::-1]:
        between = np.linspace(y[at], y[at + 1], _AT_KINK)[1:-1]
        z = np.insert(z, at + 1, np.full(len(between), z[at]))
        y = np.insert(y, at + 1, between)
    return z, y


def _require_increasing(t: Array, z: Array, y: Array) -> None:
    falls = -np.diff(t)
    room = 1e-10 * (np.abs(z) + np.abs(t - z))[1:]
    bad = ~(falls <= room)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"f* + μΩ is not convex (its derivative falls around u={y[at]:.4g}): choose another "
            "omega, or another mu."
        )
