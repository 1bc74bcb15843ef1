"""Ellipsoids, balls, and ellipsoids cut by a half-space: one set, one closed-form test."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, ROOT_UNDERFLOW, norm
from safesift.design.base import Design
from safesift.problem.decisions import Bounds
from safesift.problem.problem import Problem
from safesift.regions.base import RegionError, TestSet, clean
from safesift.regions.shape import Shape

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """{ x : normalᵀ(x − centre of the ellipsoid) ≤ −depth }; a negative depth cuts less."""

    normal: Array
    depth: float


class KnownPredictions(NamedTuple):
    """Predictions of a problem's rows at the centre of a set, and what they round by."""

    pred: Array
    size: float


@dataclass(frozen=True, eq=False, repr=False)
class EllipsoidalSet(TestSet):
    """{ z + Bu + e : ‖u‖ ≤ 1, ‖e‖ ≤ slack }, cut by a half-space where there is one.

    Attributes
    ----------
    center : array
        z, with the intercept last where there is one.
    shape : Shape
        B.
    slack : float
        What the arithmetic that made z and B may have lost: the set holds all that an exact
        step would leave of the one before.
    cut : HalfSpace or None
    name : str
    certified : bool
    known : KnownPredictions or None
        At the centre, where a pass over the rows of the problem already gave them.
    """

    center: Array
    shape: Shape
    slack: float = 0.0
    cut: HalfSpace | None = None
    name: str = "ellipsoid"
    certified: bool = True
    known: KnownPredictions | None = None

    @np.errstate(over="ignore", invalid="ignore")
    def bounds(self, design: Design) -> Bounds:
        return self._around(design, self._predictions(design))

    @np.errstate(over="ignore", invalid="ignore")
    def own_bounds(self, problem: Problem) -> Bounds:
        return self._around(problem.design, self.known or self._predictions(problem.design))

    def _predictions(self, design: Design) -> KnownPredictions:
        return KnownPredictions(design.matvec(self.center), design.size(self.center))

    def _around(self, design: Design, known: KnownPredictions) -> Bounds:
        pred, widths = known.pred, self.shape.half_widths(design)
        up, down = self._reach(design, widths)
        error = self.error(design, known, widths, slice(None))
        return clean(Bounds(pred - (down + error), pred + (up + error)))

    def error(self, design: Design, known: KnownPredictions, widths: Array, rows: slice) -> Array:
        """Rounding of the predictions of some rows at the centre, and the slack of the set."""
        pred = np.abs(known.pred[rows])
        relative, absolute = self.error_terms(design, known)
        return relative * design.row_norms[rows] + 4 * EPS * (pred + widths) + absolute

    def error_terms(self, design: Design, known: KnownPredictions) -> tuple[float, float]:
        """What of that is relative to the norms of rows, and what underflow loses of any."""
        relative = design.dot_error * known.size + self.slack
        return relative, math.sqrt(design.n_columns) * ROOT_UNDERFLOW  # of squares in the widths

    def coordinate_bounds(self) -> Bounds:
        """Bounds on every coordinate of an optimum, the cut left aside."""
        reach = self.shape.coordinate_widths() + self.slack
        reach = reach * (1.0 + 8 * EPS) + 4 * EPS * np.abs(self.center)
        return clean(Bounds(self.center - reach, self.center + reach))

    def _reach(self, design: Design, widths: Array) -> tuple[Array, Array]:
        """max aᵢᵀ(x − z) and max −aᵢᵀ(x − z) over the set, slack aside."""
        depth = self.cut_depth()
        if self.cut is None or depth <= -1.0:
            return widths, widths
        image = self.shape.transpose_product(self.cut.normal)
        length = norm(image)
        direction = self.shape.product(image / length)
        along = design.matvec(direction)
        # |error of aᵢᵀB g̃|, twice: of the product, and of the vector B g̃
        error = (2.0 * design.dot_error + self.shape.dimension * EPS) * (
            design.row_norms * self.shape.size
        )
        return cap_height(widths, along - error, depth), cap_height(widths, -along - error, depth)

    def cut_depth(self) -> float:
        """Relative depth θ of the cut, -1 without one: at 1 a single point is left.

        Raises
        ------
        RegionError
            If the half-space misses the ellipsoid: it did not contain the optimum.
        """
        if self.cut is None:
            return -1.0
        length = norm(self.shape.transpose_product(self.cut.normal))
        normal = norm(self.cut.normal)
        # both the slack of the set and the rounding of Bᵀg loosen the cut
        loosened = self.slack * normal + 4.0 * self.shape.dimension * EPS * self.shape.size * normal
        if not length > loosened:
            return -1.0
        return relative_depth(self.cut.depth - loosened, length, self.name)

    def embedded(self, columns: NDArray) -> EllipsoidalSet:
        """The same set among more coordinates, 0 in those outside the mask."""
        if columns.all():
            return self
        center = np.zeros(len(columns))
        center[columns] = self.center
        return replace(self, center=center, shape=self.shape.embedded(columns), known=None)

    def describe(self) -> str:
        cut = "" if self.cut is None else ", cut by a half-space"
        return f"{self.name}{cut}"


@dataclass(frozen=True, eq=False, repr=False)
class Hull(TestSet):
    """Ellipsoids of which one contains every optimum, for every alpha of a range another one."""

    members: tuple[EllipsoidalSet, ...]

    @property
    def certified(self) -> bool:
        return all(member.certified for member in self.members)

    def bounds(self, design: Design) -> Bounds:
        return _wider([member.bounds(design) for member in self.members])

    def coordinate_bounds(self) -> Bounds:
        """Bounds on every coordinate of an optimum."""
        return _wider([member.coordinate_bounds() for member in self.members])

    def describe(self) -> str:
        return " or ".join(dict.fromkeys(member.describe() for member in self.members))


def _wider(each: list[Bounds]) -> Bounds:
    return Bounds(
        reduce(np.minimum, (bounds.lower for bounds in each)),
        reduce(np.maximum, (bounds.upper for bounds in each)),
    )


@dataclass(frozen=True, eq=False, repr=False)
class BallTimesInterval(TestSet):
    """{ (x, c) : ‖x − center‖ ≤ radius, low ≤ c ≤ high }: a ball, and an interval for c.

    Where no ellipsoid is needed the product is smaller than the ellipsoid around it.
    """

    center: Array
    radius: float
    interval: tuple[float, float]
    name: str = "ball"
    certified: bool = True
    known: KnownPredictions | None = None
    # the intercept that these are with
    known_at: float = 0.0

    @np.errstate(over="ignore", invalid="ignore")
    def bounds(self, design: Design) -> Bounds:
        middle = 0.5 * (self.interval[0] + self.interval[1])
        point = np.append(self.center, middle)
        # before the product, as in an evaluation
        size = design.size(point)
        return self._around(design, KnownPredictions(design.matvec(point), size), middle)

    @np.errstate(over="ignore", invalid="ignore")
    def own_bounds(self, problem: Problem) -> Bounds:
        if self.known is None:
            return self.bounds(problem.design)
        return self._around(problem.design, self.known, self.known_at)

    def _around(self, design: Design, known: KnownPredictions, intercept: float) -> Bounds:
        """Bounds from the predictions with some intercept."""
        (low, high), (pred, size) = self.interval, known
        norms, last = design.row_norms, self._last_column(design)
        # the row without its last entry, rounded upwards
        features = np.sqrt(np.maximum(norms**2 - last**2, 0.0) + 8 * EPS * norms**2)
        reach, last = self.radius * features, np.abs(last)
        down, up = max(intercept - low, 0.0) * last, max(high - intercept, 0.0) * last
        error = design.dot_error * size * norms + 4 * EPS * (np.abs(pred) + reach + down + up)
        error += np.sqrt(design.n_columns) * ROOT_UNDERFLOW * (1.0 + self.radius)
        return clean(Bounds(pred - (reach + down + error), pred + (reach + up + error)))

    def _last_column(self, design: Design) -> Array:
        if design.intercept:
            return np.ones_like(design.row_norms)
        return design.matvec(np.append(np.zeros_like(self.center), 1.0))

    def describe(self) -> str:
        low, high = self.interval
        return f"{self.name}, intercept in [{low:.3g}, {high:.3g}]"


def relative_depth(depth: float, length: float, name: str) -> float:
    """depth / length, at most 1; clearly above 1 the cut misses the set."""
    theta = depth / length
    if math.isnan(theta):
        return -1.0
    if theta > 1.0 + 1e-9:
        raise RegionError(
            f"the {name} does not contain the optimum (a cut of relative depth {theta:.3g} misses "
            "it): give a larger radius, or use a certified start."
        )
    return min(theta, 1.0)


def cap_height(widths: Array, along: Array, depth: float) -> Array:
    """max ãᵀu over ‖u‖ ≤ 1, g̃ᵀu ≤ −depth, for ‖ã‖ = widths and ãᵀg̃ = along.

    The closed form of the paper's test, corrected (its γ carries a factor ½ under the root that
    makes it unsafe). It grows with `widths` and falls with `along`, so that upper bounds on the
    first and lower bounds on the second are safe.
    """
    along = np.clip(along, -widths, widths)
    across = np.sqrt(widths - along) * np.sqrt(widths + along)
    cut = np.sqrt(1.0 - depth**2) * across - depth * along
    return np.where(along <= -depth * widths, widths, cut)
