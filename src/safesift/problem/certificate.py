"""What is proved at a point, from all rows: made once, carried from then on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.printing import Brief
from safesift.problem.duality import DualPoint
from safesift.problem.evaluation import Evaluation, Rounding

if TYPE_CHECKING:
    from safesift.problem.problem import Problem


# what is hardly more than rounding, as a share of that; and what is small, relative to P
_HARDLY, _SMALL = 0.25, 1e-6


def gap_between(at: Evaluation, rounding: Rounding, dual: DualPoint) -> float:
    """P(point) − D(dual), rounded upwards; infinite where it is not known."""
    gap = at.value + rounding.value - dual.value
    return math.inf if math.isnan(gap) else max(gap, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Brief):
    """A point, a dual point, and the duality gap between them, rounding included.

    Whoever has the data can verify it: the value at the point and the value of the dual point are
    sums over the rows, and their difference bounds P(point) − min P by weak duality. Regions are
    built from it, solvers stop by it, results carry it. `Problem.certify` makes one.

    Attributes
    ----------
    problem : Problem
    at : Evaluation
        Of the problem, at the point.
    dual : DualPoint
        Feasible; its value is a lower bound on min P.
    rounding : Rounding
        What floating-point arithmetic may have done to the evaluation.
    gap : float
        P(point) − min P is at most that.
    reference : float
        What gaps are relative to: P of the best constant model, unless that is 0.
    noise : float
        What rounding leaves of a gap that is found without sums over the samples (`Dual.own_gap`),
        infinite where it cannot be.
    """

    problem: Problem
    at: Evaluation
    dual: DualPoint
    rounding: Rounding
    gap: float
    reference: float
    noise: float = math.inf

    def improved(self, dual: DualPoint) -> Certificate:
        """The same point with another dual point, where that is better."""
        if not dual.value > self.dual.value:
            return self
        gap = min(self.gap, gap_between(self.at, self.rounding, dual))
        return replace(self, dual=dual, gap=gap)

    @property
    def relative_gap(self) -> float:
        return self.gap / self.reference

    @property
    def attainable(self) -> float:
        """A gap that steps can reach: hardly more than what is set aside for rounding.

        That is about the same at all points nearby, so that no step makes it smaller. Where it is
        large, steps still lead to a better model, of which nobody can prove that it is: the rest
        of the gap has to be small by itself, too. Infinite where rounding leaves nothing to prove.
        """
        aside = min(self.rounding.value + self.dual.rounding, self.noise)
        if not aside < self.reference:
            return math.inf
        return aside + min(_HARDLY * aside, _SMALL * self.reference)

    @property
    def value(self) -> float:
        """An upper bound on P at the point, and so on the optimal value."""
        return self.at.value + self.rounding.value

    def with_features(self, kept: NDArray[np.bool_]) -> Certificate:
        """The same on some of the features, where the others are 0 at every optimum.

        Both problems then have the same least value, so that a gap of the one is a gap of the
        other; and where the others are 0 at the point, too, nothing has to be computed again.
        """
        problem, (coef, intercept) = self.problem.with_features(kept), self._split
        point = problem.join(coef[kept], intercept)
        if coef[~kept].any():
            return problem.certify(problem.evaluate(point))
        columns = np.append(kept, True) if problem.fit_intercept else kept
        at = replace(
            self.at,
            point=point,
            loss_gradient=self.at.loss_gradient[columns],
            subgradient=self.at.subgradient[columns],
        )
        return replace(self, problem=problem, at=at)

    @property
    def _split(self) -> tuple[NDArray[np.float64], float]:
        return self.problem.split(self.at.point)
