"""One side of the graph of f_μ: the part where its slope is negative, or positive."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.losses.graph import Graph
from safesift.losses.omegas import Omega
from safesift.losses.scalar import ScalarFunction, solve_increasing

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# nodes on a vertical part of the graph, that is at a kink of f
_AT_KINK = 65
# where the slopes of a function without a minimum are this small, its limit is reached, or never
_NEAR, _FAR = 1e-20, 1e-60


@dataclass(frozen=True)
class DualTerm:
    """μΩ(u) + ½·width·u², what is added to the conjugate of f."""

    omega: Omega
    mu: float
    width: float = 0.0

    def value(self, u: Array) -> Array:
        return self.omega.value(u, self.mu) + 0.5 * self.width * np.square(u)

    def slope(self, u: Array, side: int) -> Array:
        """Its derivative; at 0 the one from the given side."""
        away = self.omega.slope(u, self.mu) + self.width * u
        return np.where(u == 0, self.omega.slopes_at_zero(self.mu)[(side + 1) // 2], away)

    def curvature(self, u: Array) -> Array:
        return self.omega.curvature(u, self.mu) + self.width

    @property
    def constant_curvature(self) -> float | None:
        """Its second derivative away from 0 where that is a constant."""
        own = self.omega.constant_curvature
        return None if own is None else own * self.mu + self.width

    @property
    def strong_convexity(self) -> float:
        """A modulus that is known without looking at f."""
        return self.constant_curvature or 0.0


@dataclass(frozen=True, eq=False)
class Branch:
    """Nodes (t, z, y) of f_μ on one side of its flat region, in increasing order.

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
        outside = t < self.t[0] if self.side < 0 else t > self.t[-1]
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
        tail = (t < self.t[0] if self.side < 0 else t > self.t[-1]) & self.bounded
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

    def _segment(self, t: Array) -> NDArray[np.intp]:
        return np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)

    def _solve(self, t: Array, at: Array) -> Array:
        """z with z + μΩ'(f'(z)) = t."""
        if self.term.constant_curvature == 0.0:
            return t - self.term.slope(np.full(1, float(self.side)), self.side)
        low, high = self.z[at], self.z[at + 1]
        start = low + self._share(t, at) * (high - low)
        return solve_increasing(self._t_and_rate, t, low, high, start)

    def _share(self, t: Array, at: Array) -> Array:
        """How far along its segment t is, from 0 to 1."""
        rise = self.t[at + 1] - self.t[at]
        with np.errstate(all="ignore"):
            return np.clip(np.where(rise > 0, (t - self.t[at]) / rise, 0.0), 0.0, 1.0)

    def _t_and_rate(self, z: Array) -> tuple[Array, Array]:
        slope, rate = self.function.slope_and_rate(z)
        slope = np.minimum(slope, 0.0) if self.side < 0 else np.maximum(slope, 0.0)
        return z + self.term.slope(slope, self.side), 1.0 + self.term.curvature(slope) * rate

    def _slope_at_kink(self, t: Array, at: Array) -> Array:
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
