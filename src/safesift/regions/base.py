"""What a region is: a recipe, and the set it builds.

A `Region` is a recipe with its parameters. `Region.build` makes from a certificate, what is proved
at a point, a `TestSet`: a set that contains *every* optimum and bounds the prediction of every
row over itself. Regions never see the loss otherwise than through the problem's values and
subgradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.design.base import Design
from safesift.design.rows import rows_of
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Bounds, RowBounds
from safesift.problem.problem import Problem

Array = NDArray[np.float64]


class RegionError(ValueError):
    """A region turned out not to contain the optimum, so nothing it says can be trusted."""


class TestSet(ABC):
    """A set that contains every optimum of a problem.

    Attributes
    ----------
    certified : bool
        False as soon as a guess entered.
    complete : bool
        False where a smaller duality gap at the centre would tell much more.
    """

    __test__ = False  # not a test case, whatever pytest thinks of the name
    complete: bool = True

    @property
    @abstractmethod
    def certified(self) -> bool:
        """Whether it is proved to contain every optimum."""

    @abstractmethod
    def bounds(self, design: Design) -> Bounds:
        """Bounds on the predictions of any rows over the set; infinite where nothing is known."""

    def own_bounds(self, problem: Problem) -> Bounds:
        """Of the rows of the problem it was built for: what was found on the way counts."""
        return self.bounds(problem.design)

    def own_row_bounds(self, problem: Problem) -> RowBounds:
        """The same, to be taken a block at a time where that spares vectors of length n."""
        return self.own_bounds(problem)

    @abstractmethod
    def describe(self) -> str:
        """What it is, in a few words."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    def zero_features(self, n_features: int) -> NDArray[np.bool_]:
        """Features that are 0 everywhere in the set."""
        return np.zeros(n_features, dtype=bool)


def bounds_of_rows(test_set: TestSet, design: Design, rows: NDArray) -> Bounds:
    """The bounds of the rows of a mask; of all rows, if gathering them would cost more."""
    if np.count_nonzero(rows) > 0.8 * len(rows):
        return test_set.bounds(design).take(rows)
    return test_set.bounds(rows_of(design).only(rows))


class Region(ABC):
    """A recipe for a `TestSet`.

    Attributes
    ----------
    is_ellipsoid : bool
        Whether the set is an ellipsoid, with a centre at which it can be cut.
    """

    is_ellipsoid: bool = False

    def validate(self, problem: Problem) -> None:
        """Raise ValueError, before any heavy work, if the region cannot serve this problem."""
        return

    @abstractmethod
    def build(self, certificate: Certificate) -> TestSet:
        """The set, from what is proved at its centre."""


def require_strong_convexity(name: str, problem: Problem, intercept_allowed: bool = False) -> None:
    """Refuse problems that are not strongly convex in all coordinates, and say what to use."""
    if problem.fit_intercept and not intercept_allowed:
        reason = "the intercept is not penalised"
    elif problem.strong_convexity == 0:
        reason = f"the penalty {problem.penalty!r} is not strongly convex"
    else:
        return
    raise ValueError(
        f"screening={name!r} needs strong convexity in all coordinates, but {reason}: "
        "use screening='ellipsoid' or 'auto', or give an l2 part to the penalty and no intercept."
    )


def clean(bounds: Bounds) -> Bounds:
    """Where arithmetic overflowed nothing is known: NaN becomes infinite bounds."""
    if not (np.isnan(bounds.lower).any() or np.isnan(bounds.upper).any()):
        return bounds
    return Bounds(
        np.where(np.isnan(bounds.lower), -np.inf, bounds.lower),
        np.where(np.isnan(bounds.upper), np.inf, bounds.upper),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Intersection(TestSet):
    """Several sets that all contain every optimum: the best bound of them, per row.

    Attributes
    ----------
    members : tuple of TestSet
    why : str
        Why there is nothing better, for whoever reads about the set.
    """

    members: tuple[TestSet, ...]
    why: str = ""

    @property
    def certified(self) -> bool:
        return all(member.certified for member in self.members)

    def bounds(self, design: Design) -> Bounds:
        bounds = Bounds.none_for(design)
        for member in self.members:
            bounds = bounds.intersect(member.bounds(design))
        return bounds

    def own_bounds(self, problem: Problem) -> Bounds:
        bounds = Bounds.none_for(problem.design)
        for member in self.members:
            bounds = bounds.intersect(member.own_bounds(problem))
        return bounds

    def describe(self) -> str:
        sets = " ∩ ".join(member.describe() for member in self.members)
        return f"{sets} ({self.why})" if self.why else sets

    def zero_features(self, n_features: int) -> NDArray[np.bool_]:
        return np.any([member.zero_features(n_features) for member in self.members], axis=0)


@dataclass(frozen=True, eq=False, repr=False)
class Everything(TestSet):
    """The whole space: where no region applies, nothing can be decided."""

    why: str = "no region applies"
    certified: bool = True

    def bounds(self, design: Design) -> Bounds:
        return Bounds.none_for(design)

    def describe(self) -> str:
        return f"the whole space ({self.why})"
