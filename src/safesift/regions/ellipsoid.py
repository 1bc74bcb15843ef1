"""The ellipsoid method as a test region: the paper's Algorithm 1, sound in floating point."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from safesift import progress
from safesift.arithmetic.numerics import EPS, norm
from safesift.parameters import require_positive
from safesift.problem.certificate import Certificate
from safesift.problem.problem import Problem
from safesift.regions.ball import GapBall, NormBall, ObjectiveBall, StartRegion, plain_ball
from safesift.regions.base import Region, TestSet
from safesift.regions.curvature import Curvature
from safesift.regions.cuts import CutMaker, Depth, _check_depth
from safesift.regions.ellipsoidal import EllipsoidalSet, HalfSpace, relative_depth
from safesift.registry import resolve

# below this dimension a dense matrix costs nothing and loses nothing
_ALWAYS_DENSE = 64

_STARTS = {
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
