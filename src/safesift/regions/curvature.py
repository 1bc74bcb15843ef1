"""The curvature region: samples that provably curve the objective shrink it by orders of magnitude.

See `regions.self_consistent` for the theorem and `regions.two_sided` for its sharper sequel.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import norm
from safesift.design.base import Design
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Bounds
from safesift.problem.problem import Problem
from safesift.regions.ball import Balls, GapBall, StartRegion, plain_ball
from safesift.regions.base import Everything, Intersection, TestSet
from safesift.regions.center import Center
from safesift.regions.curvature_models import ExactModel, NystromModel, models
from safesift.regions.ellipsoidal import EllipsoidalSet, Hull
from safesift.regions.energy import distance_bound
from safesift.regions.features import FeatureSubspace, zero_features
from safesift.regions.self_consistent import Known, SelfConsistent, bounds_of_all, self_consistent
from safesift.regions.two_sided import sharpen

Array = NDArray[np.float64]

# how often features and samples take turns under an l1 penalty
_MAX_TURNS = 6
# features are left out of the matrix when at least this share of them is certified to be zero
_WORTH_LEAVING_OUT = 0.1


@dataclass(frozen=True)
class Curvature(StartRegion):
    """The ellipsoid that the curvature of the samples themselves proves: see docs/theory.md.

    Needs a loss with curvature; where there is none (hinge, ε-insensitive) or where none can be
    proved, it is the plain ball. Needs neither a duality gap nor strong convexity nor a bounded
    intercept.

    Parameters
    ----------
    rank : int, optional
        How many directions of curvature to use (a certified Nyström approximation, or a Cholesky
        factor if that is all of them). By default all of them up to 200 columns and 100 beyond;
        up to 1 000 columns all of them are then used for the rows still in doubt.
    max_rounds : int, default=20
        At most so many rounds of lowering the weights, and as many of sharpening.
    sharpen : bool, default=True
        Whether to use the bounds once more, from both sides (`regions.two_sided`), where all of
        the directions are at hand.
    """

    rank: int | None = None
    max_rounds: int = 20
    sharpen: bool = True

    def __post_init__(self) -> None:
        if self.rank is not None and not (_is_whole(self.rank) and self.rank > 0):
            raise ValueError(f"rank must be a positive integer or None, got {self.rank!r}.")
        if not (_is_whole(self.max_rounds) and self.max_rounds > 1):
            raise ValueError(f"max_rounds must be an integer above 1, got {self.max_rounds!r}.")

    def build(self, certificate: Certificate) -> TestSet:
        return self.build_for(Center.of(certificate))

    @np.errstate(over="ignore", invalid="ignore")
    def build_for(self, center: Center) -> TestSet:
        """The set, for a centre that may stand for a range of alphas."""
        problem = center.problem
        if math.isinf(problem.loss.smoothness):
            return _plain(center, f"{type(problem.loss).__name__} has no curvature")
        if not center.can_be_bounded:
            return _plain(center, "the gradient overflows")
        return _Turns(self, center).take()

    def start(self, certificate: Certificate, dense: bool) -> EllipsoidalSet:
        problem = certificate.problem
        inner = whole = self.build(certificate)
        features = np.ones(problem.design.n_features, dtype=bool)
        if isinstance(whole, FeatureSubspace):
            inner, features = whole.inner, whole.features
        if not isinstance(inner, Tested):
            return plain_ball(problem).start(certificate, dense)
        columns = np.append(features, True) if problem.fit_intercept else features
        return inner.hull.members[0].embedded(columns)


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


class _Turns:
    """Features and samples take turns: each decision about one sharpens the other."""

    def __init__(self, recipe: Curvature, center: Center) -> None:
        self._recipe, self._center = recipe, center
        self._features = np.ones(center.problem.design.n_features, dtype=bool)
        self._known = _known_beforehand(center)

    def take(self) -> TestSet:
        if len(self._center.alphas) == 1:
            self._leave_out(2.0 * self._center.certificate.gap)
        found, exact = self._find()
        for _ in range(1, _MAX_TURNS):
            if found is None or not self._learn(found):
                break
            found, exact = self._find()
        return self._unfinished() if found is None else self._finish(found, exact)

    def _find(self) -> tuple[SelfConsistent | None, ExactModel | None]:
        """Self-consistent weights of the first model that has any, and the exact model if any."""
        trials, exact = models(self._center.problem, self._recipe.rank)
        found = None
        for model in trials:
            found = self_consistent(self._center, model, self._known, self._recipe.max_rounds)
            if found is not None and found.weights.any():
                break
        return found, exact

    def _learn(self, found: SelfConsistent) -> bool:
        """Whether the region says enough about the coefficients to build it again."""
        if self._center.problem.penalty.sparse_threshold(1.0) == 0:
            return False
        if self._leave_out(found.energy):
            return True
        lower, upper = found.hull.coordinate_bounds().take(slice(len(self._center.coef)))
        reach = np.minimum(self._known.reach, np.maximum(np.abs(lower), np.abs(upper)))
        distance = min(
            self._known.distance,
            norm(np.maximum(upper - self._center.coef, self._center.coef - lower)),
        )
        progress = distance < 0.5 * self._known.distance
        self._known = replace(self._known, reach=reach, distance=distance)
        return progress

    def _leave_out(self, energy: float) -> bool:
        """Go on with the features that may be non-zero, if enough of the others are certified."""
        center = self._center
        zero = zero_features(center, energy)
        if zero.sum() < max(_WORTH_LEAVING_OUT * len(zero), 1) or zero.all():
            return False
        kept = ~zero
        self._features[np.flatnonzero(self._features)[zero]] = False
        self._center = Center(center.certificate.with_features(kept), center.alphas)
        # what was known of the coefficients left is still true of them
        known = _known_beforehand(self._center)
        self._known = replace(
            known,
            reach=np.minimum(known.reach, self._known.reach[kept]),
            distance=min(known.distance, self._known.distance),
        )
        return True

    def _finish(self, found: SelfConsistent, exact: ExactModel | None) -> TestSet:
        center, known, hull = self._center, self._known, found.hull
        bounds = bounds_of_all(found, center.problem.design, known)
        if exact is not None and self._recipe.sharpen:
            diagonal = center.diagonal(known.reach)
            hull, bounds = sharpen(center, exact, diagonal, hull, bounds, self._recipe.max_rounds)
        zero = zero_features(center, found.energy)
        return self._in_all_features(Tested(hull, bounds, zero))

    def _unfinished(self) -> TestSet:
        return self._in_all_features(_plain(self._center, "no curvature can be proved"))

    def _in_all_features(self, test_set: TestSet) -> TestSet:
        if self._features.all():
            return test_set
        return FeatureSubspace(test_set, self._features, self._center.problem)


@dataclass(frozen=True, eq=False, repr=False)
class Tested(TestSet):
    """Ellipsoids, with what was found on the way to them.

    Attributes
    ----------
    hull : Hull
    known : Bounds
        On the rows of the problem, better than those of the last ellipsoid alone.
    zero : mask
        Features that are 0 at every optimum.
    """

    hull: Hull
    known: Bounds
    zero: NDArray[np.bool_]

    @property
    def certified(self) -> bool:
        return self.hull.certified

    def bounds(self, design: Design) -> Bounds:
        return self.hull.bounds(design)

    def own_bounds(self, problem: Problem) -> Bounds:
        return self.known

    def zero_features(self, n_features: int) -> NDArray[np.bool_]:
        return self.zero

    def describe(self) -> str:
        return self.hull.describe()


@np.errstate(over="ignore", invalid="ignore")
def _known_beforehand(center: Center) -> Known:
    """From the gap ball where there is one, and from the norm that the penalty allows."""
    problem, coef = center.problem, center.coef
    bound = center.norm_bound
    distance = bound + norm(coef)
    if problem.strong_convexity == 0 and len(center.alphas) == 1:
        # the loss at an optimum is no part of its penalty
        distance = min(distance, distance_bound(center.certificate))
    bounds = Bounds.none_for(problem.design)
    if problem.strong_convexity > 0 and not problem.fit_intercept and len(center.alphas) == 1:
        bounds = GapBall().build(center.certificate).own_bounds(problem)
    return Known(bounds, np.full(len(coef), bound), distance)


def _plain(center: Center, why: str) -> TestSet:
    """The best there is without curvature: balls, for one alpha."""
    if len(center.alphas) > 1:
        return _gradient_balls(center, why)
    return Balls(why).build(center.certificate)


def _gradient_balls(center: Center, why: str) -> TestSet:
    """The ball ½‖g‖/κ for every alpha of a range: a region in which no sample carries curvature."""
    model = NystromModel(center.problem, rank=1)
    found = self_consistent(center, model, _known_beforehand(center), max_rounds=1)
    return Everything(why) if found is None else Intersection((found.hull,), why)
