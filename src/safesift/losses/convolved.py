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
from safesift.losses.branch import Branch, DualTerm, make_branch
from safesift.losses.graph import Graph
from safesift.losses.scalar import solve_increasing

Array = NDArray[np.float64]

# samples handled at once: what they need fits into the processor's cache
_BLOCK = 16_384
# curvature found beyond this grows like that of an exponential
_UNBOUNDED = 1e50
# slopes stay this far inside the range of f', so that their conjugate is attained
_INSIDE = 1.0 - 8 * EPS


@dataclass(frozen=True, eq=False)
class Convolved:
    """The infimum convolution of a traced function with a dual term.

    Attributes
    ----------
    flat : (float, float)
        The ends of the flat region, equal where there is none.
    dual_interval : (float, float)
        The closure of the domain of the conjugate.
    """

    graph: Graph
    term: DualTerm

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

    def _conjugate_point(self, u: Array) -> tuple[Array, NDArray[np.bool_]]:
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
        # on a plateau of slopes the end next to the minimum, where nothing cancels
        side = "right" if negative else "left"
        after = np.searchsorted(slopes, u, side=side)
        edge = self.graph.minimum[0 if negative else 1]
        if math.isfinite(edge):
            nodes = np.append(nodes, edge) if negative else np.insert(nodes, 0, edge)
            slopes = np.append(slopes, 0.0) if negative else np.insert(slopes, 0, 0.0)
            after = after if negative else after + 1
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

        At most 1/μ with a quadratic Ω, whatever f: f* + μΩ is then strongly convex.
        """
        steepness, added = self.graph.steepness, self.term.constant_curvature or 0.0
        between = steepness / (1.0 + steepness * added) * (1.0 + 1e-6)
        measured = max(between, *(branch.largest_curvature() for branch in self._branches))
        if measured > _UNBOUNDED:
            measured = math.inf
        strong = self.term.strong_convexity
        return min(measured, 1.0 / strong if strong > 0 else math.inf)


def _by_block(t: Array, function: Callable[[Array], Array]) -> Array:
    """A function of many numbers, so many at a time that they stay in the processor's cache."""
    t = np.asarray(t, dtype=np.float64)
    flat, result = t.ravel(), np.empty(t.size)
    for start in range(0, t.size, _BLOCK):
        result[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return result.reshape(t.shape)
