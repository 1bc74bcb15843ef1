"""The ellipsoid method as a test region: the paper's Algorithm 1, sound in floating point.

Half-spaces that contain every optimum, from one evaluation of the objective.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.arithmetic.numerics import EPS, norm
from safesift.parameters import require_positive
from safesift.problem.certificate import Certificate
from safesift.problem.evaluation import Evaluation, Rounding
from safesift.problem.problem import Problem
from safesift.regions.ball import GapBall, NormBall, ObjectiveBall, StartRegion, plain_ball
from safesift.regions.base import Region, TestSet
from safesift.regions.curvature import Curvature
from safesift.regions.ellipsoidal import EllipsoidalSet, HalfSpace, relative_depth
from safesift.registry import resolve

Array = NDArray[np.float64]


Depth = Literal["deep", "central"]


class CutMaker:
    """Cuts the centre of a set off, remembering the best objective value seen.

    For g ∈ ∂P(z), every optimum satisfies gᵀ(x* − z) ≤ P_best − P(z) ≤ 0: a *deep* cut uses the
    best value known, a *central* one only that it is at most P(z). Rounding errors of values and
    gradient make the cut shallower. Outside a norm-ball constraint the constraint itself cuts.
    """

    def __init__(self, certificate: Certificate, depth: Depth) -> None:
        self._problem, self._known, self._depth = certificate.problem, certificate, depth
        self._best = math.inf
        self._learn(certificate.at, certificate.rounding)

    def __call__(self, region: EllipsoidalSet) -> HalfSpace:
        """The cut through or above the centre of `region`: at most one pass over the data."""
        coef, _ = self._problem.split(region.center)
        outside = self._problem.penalty.feasibility_cut(coef)
        if outside is not None:
            depth = outside.depth * (1.0 - 1e-12) if self._depth == "deep" else 0.0
            return HalfSpace(self._problem.join(outside.normal, 0.0), depth)
        at, rounding = self._evaluate(region.center)
        reach = region.shape.size + region.slack
        lost = at.subgradient_slack + rounding.cut + rounding.gradient * reach
        gained = at.value - rounding.value - self._best
        self._learn(at, rounding)
        if self._depth == "central" or not gained > 0:
            gained = 0.0
        return HalfSpace(at.subgradient, gained - lost)

    def _learn(self, at: Evaluation, rounding: Rounding) -> None:
        """A value bounds the optimal one only where the point is surely feasible."""
        if self._problem.penalty.contains(self._problem.split(at.point)[0]):
            self._best = min(self._best, at.value + rounding.value)

    def _evaluate(self, center: Array) -> tuple[Evaluation, Rounding]:
        if np.array_equal(center, self._known.at.point):
            return self._known.at, self._known.rounding
        at = self._problem.evaluate(center)
        return at, self._problem.rounding(at)


@dataclass(frozen=True)
class HalfSpaceCut(Region):
    """Another region, cut by a subgradient at its centre.

    Costs one pass more than the region (none where its centre was evaluated already) and one
    product for the test.

    Parameters
    ----------
    region : Region
        What to cut: a ball or an ellipsoid.
    depth : {"deep", "central"}, default="deep"
        Whether to use that the best value seen is below the value at the centre.
    """

    region: Region
    depth: Depth = "deep"

    def validate(self, problem: Problem) -> None:
        _check_depth(self.depth)
        if isinstance(self.region, StartRegion):
            self.region.validate_start(problem)
        elif isinstance(self.region, Region) and self.region.is_ellipsoid:
            self.region.validate(problem)
        else:
            raise ValueError(
                f"screening=HalfSpaceCut(...) needs a ball or an ellipsoid to cut, got "
                f"{self.region!r}: pass for example GapBall() or Ellipsoid()."
            )

    @np.errstate(over="ignore", invalid="ignore")
    def build(self, certificate: Certificate) -> TestSet:
        whole = self._whole(certificate)
        cut = replace(whole, cut=CutMaker(certificate, self.depth)(whole))
        cut.cut_depth()  # an empty intersection is an error here, not when bounds are asked for
        return cut

    def _whole(self, certificate: Certificate) -> EllipsoidalSet:
        # with an intercept a ball is a product set: cut the ellipsoid around it
        if isinstance(self.region, StartRegion):
            return self.region.start(certificate, dense=False)
        whole = self.region.build(certificate)
        assert isinstance(whole, EllipsoidalSet), "what `is_ellipsoid` says"
        return whole


def _check_depth(depth: str) -> None:
    if depth not in ("deep", "central"):
        raise ValueError(f"depth must be 'deep' or 'central', got {depth!r}.")


# below this dimension a dense matrix costs nothing and loses nothing
_ALWAYS_DENSE = 64


_STARTS: dict[str, type[StartRegion]] = {
    "gap_ball": GapBall,
    "objective_ball": ObjectiveBall,
    "norm_ball": NormBall,
    "curvature": Curvature,
}


@dataclass(frozen=True)
class Ellipsoid(Region):
    """k steps of the ellipsoid method from a ball that contains every optimum.

    Each step evaluates the objective at the centre (one pass over the data), keeps the half of the
    ellipsoid in which every optimum lies, and encloses it in the smallest ellipsoid. In dimension
    d a step shrinks the volume by about e^{−1/(2(d+1))}, so it pays in low dimension.

    Parameters
    ----------
    n_steps : int, default=50
        How many; fewer are made where rounding errors forbid to cut further.
    start : "auto", str or StartRegion, default="auto"
        The first ellipsoid. "auto" is the duality gap's ball with strong convexity, else the norm
        ball; "curvature" is the smallest one.
    depth : {"deep", "central"}, default="deep"
        Deep cuts use the best value seen; the paper's are central.
    form : {"auto", "dense", "low_rank"}, default="auto"
        How the matrix is stored; "auto" is low rank when the dimension exceeds n_steps and 64.
    subset : float or None, default=None
        Compute the cuts, central ones, on this fraction of the rows, as the paper's experiments
        did. A subgradient of a subset's objective does not cut the full problem safely: the
        result is marked as not certified.
    random_state : int, default=0
        Chooses the subset.
    """

    n_steps: int = 50
    start: str | StartRegion = "auto"
    depth: Depth = "deep"
    form: Literal["auto", "dense", "low_rank"] = "auto"
    subset: float | None = None
    random_state: int = 0
    is_ellipsoid = True

    def validate(self, problem: Problem) -> None:
        if not isinstance(self.n_steps, numbers.Integral) or self.n_steps < 0:
            raise ValueError(f"n_steps must be a whole number, 0 or more, got {self.n_steps!r}.")
        _check_depth(self.depth)
        if self.form not in ("auto", "dense", "low_rank"):
            raise ValueError(f"form must be 'auto', 'dense' or 'low_rank', got {self.form!r}.")
        if self.subset is not None:
            require_positive("subset", self.subset)
        if self.subset is not None and self.subset > 1.0:
            raise ValueError(f"subset must be a fraction in (0, 1] or None, got {self.subset!r}.")
        self._start(problem).validate_start(problem)

    @np.errstate(over="ignore", invalid="ignore")
    def build(self, certificate: Certificate) -> TestSet:
        problem = certificate.problem
        current = self._start(problem).start(certificate, self._dense(problem))
        # a subset's best value says nothing about the full objective: its cuts stay central
        depth = self.depth if self.subset is None else "central"
        cut_maker = CutMaker(self._cut_from(certificate), depth)
        steps = 0
        while steps < self.n_steps:
            following = ellipsoid_step(current, cut_maker(current))
            if following is None:
                break
            current, steps = following, steps + 1
            progress.report("ellipsoid", steps, self.n_steps)
        certified = current.certified and self.subset is None
        name = f"ellipsoid ({steps} steps from the {current.name})"
        return replace(current, name=name, certified=certified)

    def _start(self, problem: Problem) -> StartRegion:
        if self.start == "auto":
            return plain_ball(problem)
        return resolve("start", self.start, _STARTS, StartRegion)

    def _dense(self, problem: Problem) -> bool:
        if self.form == "auto":
            return problem.design.n_columns <= max(self.n_steps, _ALWAYS_DENSE)
        return self.form == "dense"

    def _cut_from(self, certificate: Certificate) -> Certificate:
        if self.subset is None:
            return certificate
        problem = certificate.problem
        n = problem.design.n_samples
        rng = np.random.default_rng(self.random_state)
        rows = np.sort(rng.permutation(n)[: max(1, round(self.subset * n))])
        part = problem.restrict(rows)
        divisor = max(float(part.weights.sum()), np.finfo(float).tiny)
        part = replace(part, risk=part.risk.with_divisor(divisor))
        return part.certify(part.evaluate(certificate.at.point))


def ellipsoid_step(current: EllipsoidalSet, cut: HalfSpace) -> EllipsoidalSet | None:
    """The smallest ellipsoid around what a cut leaves of an ellipsoid; None if it cuts nothing.

    With θ the relative depth and d the dimension, the centre moves by (1 + dθ)/(d + 1) along the
    cut; the radius shrinks to d(1 − θ)/(d + 1) along it and grows by d√((1 − θ²)/(d² − 1)) across
    it. In dimension 1 there is no across: bisection. What rounding may have lost goes into
    `slack`.

    Raises
    ------
    RegionError
        If the cut misses the ellipsoid.
    """
    d = current.shape.dimension
    shape, coordinates, rest = current.shape.extended(cut.normal)
    image = shape.scale * (shape.factor.T @ coordinates)
    length, normal = norm(image), norm(cut.normal)
    size = shape.size
    lost = 4.0 * (d + 8) * EPS * size  # by any product with B, in either form
    loosened = normal * (current.slack + lost) + rest * size
    if not (math.isfinite(length) and length > loosened):
        return None
    # a hair less than 1, so that a point keeps a shape
    theta = min(relative_depth(cut.depth - loosened, length, current.name), 1.0 - 1e-9)
    if theta <= -1.0 / d:
        return None
    direction = image / length
    step = (1.0 + d * theta) / (d + 1.0)
    along = d * (1.0 - theta) / (d + 1.0)
    across = d * math.sqrt((1.0 - theta) * (1.0 + theta) / (d * d - 1.0)) if d > 1 else along
    moved = step * shape.scale * shape.expand(shape.factor @ direction)
    center = current.center - moved
    return replace(
        current,
        center=center,
        shape=shape.squeezed(direction, along, across),
        slack=current.slack + 2.0 * lost + 4.0 * EPS * norm(center),
        known=None,
    )
