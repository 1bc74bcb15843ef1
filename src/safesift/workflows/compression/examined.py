"""Samples in memory: problems, solutions, regions, each computed when first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.design.factory import check_finite
from safesift.design.rows import RowDesign, rows_of
from safesift.problem.decisions import Bounds
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.problem.scales import column_names
from safesift.problem.training import Training
from safesift.regions import REGIONS, Region
from safesift.regions.base import TestSet
from safesift.registry import resolve
from safesift.solvers import Fit, Settings, solve_path
from safesift.workflows.compression.metric import LeverageMetric, SumsInMemory
from safesift.workflows.compression.samples import Samples
from safesift.workflows.verdicts import flat_excess

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Examined(Samples):
    """The samples as problems on one design: one, or one per class against the rest.

    Attributes
    ----------
    problems : tuple of Problem
    labels : array of shape (n_samples,) or None
        As the user gave them.
    classes : array or None
        Those with a sample of positive weight.
    training : Training
        The model that the kept rows are for.
    region : Region
        The set for the screening test.
    seed : int
        For solvers and estimates that draw random numbers.
    """

    problems: tuple[Problem, ...]
    labels: NDArray | None
    classes: NDArray | None
    training: Training
    region: Region
    seed: int

    @property
    def design(self) -> RowDesign:
        return rows_of(self.problems[0].design)

    # --- all rows, as one part ----------------------------------------------------------------

    def parts(self) -> Iterator[Examined]:
        yield self

    @property
    def start(self) -> int:
        return 0

    @property
    def n_rows(self) -> int:
        return len(self.weights)

    @property
    def alpha(self) -> float:
        return self.problems[0].alpha

    @property
    def divisor(self) -> float:
        return self.problems[0].divisor

    def taken(self, kept: NDArray[np.intp]) -> tuple[RowDesign, Array]:
        return self.design.take(kept), self.slopes[kept]

    # --- what is known of every row -----------------------------------------------------------

    @property
    def weights(self) -> Array:
        return self.problems[0].weights

    @cached_property
    def counted(self) -> Mask:
        return self.weights > 0

    @property
    def centers(self) -> Array:
        return self.problems[0].risk.targets.centers

    @cached_property
    def fits(self) -> list[Fit]:
        """Solutions certified on all rows, one per problem."""
        settings = Settings(tol=_TOLERANCE, seed=self.seed)
        (fits,) = solve_path([list(self.problems)], settings)
        return fits

    @cached_property
    def predictions(self) -> Array:
        """At the solutions, (n_samples, n_problems)."""
        return np.stack([fit.at.pred for fit in self.fits], axis=1)

    @cached_property
    def slopes(self) -> Array:
        """Dual solutions ν, (n_samples, n_problems): at a kink they are not the loss's slopes."""
        return np.stack([fit.dual.nu for fit in self.fits], axis=1)

    @cached_property
    def slope_sizes(self) -> Array:
        return np.linalg.norm(self.slopes, axis=1)

    @cached_property
    def leverage(self) -> Array:
        return self.metric.leverage(self.design)

    @cached_property
    def pull(self) -> Array:
        slopes = np.where(self.counted[:, None], self.slopes, 0.0)
        return self.design.rmatvec(self.weights[:, None] * slopes)

    @cached_property
    def active(self) -> Mask:
        return np.any([fit.kept for fit in self.fits], axis=0) & self.counted

    @cached_property
    def own_predictions(self) -> Array:
        return of_own_class(self.predictions, self.class_codes)

    @cached_property
    def class_codes(self) -> NDArray[np.intp]:
        return codes_of(self.labels, self.classes, self.counted)

    @cached_property
    def margins(self) -> Array:
        return excess(self.problems, [Bounds(pred, pred) for pred in self.predictions.T])

    @cached_property
    def test_sets(self) -> list[TestSet]:
        """The regions of the screening test, around the solutions."""
        return [self.region.build(fit.certificate) for fit in self.fits]

    @property
    def certified(self) -> bool:
        return all(test_set.certified for test_set in self.test_sets)

    @cached_property
    def test_values(self) -> Array:
        pairs = zip(self.test_sets, self.problems, strict=True)
        return excess(self.problems, [test_set.own_bounds(problem) for test_set, problem in pairs])

    @cached_property
    def metric(self) -> LeverageMetric:
        return LeverageMetric.of(SumsInMemory(self.problems[0]), self.seed)


def of_own_class(predictions: Array, codes: NDArray[np.intp]) -> Array:
    """The prediction of every sample; with several classes, that of its own class."""
    if predictions.shape[1] == 1:
        return predictions[:, 0]
    return np.take_along_axis(predictions, codes[:, None], axis=1)[:, 0]


def codes_of(labels: NDArray | None, classes: NDArray | None, counted: Mask) -> NDArray[np.intp]:
    """Which class samples are of; zeros without classes, and without weight."""
    codes = np.zeros(len(counted), dtype=np.intp)
    if classes is not None and labels is not None:
        codes[counted] = np.searchsorted(classes, labels[counted])
    return codes


def excess(problems: Sequence[Problem], bounds: Sequence[Bounds]) -> Array:
    """How far intervals of predictions reach out of the flat piece, for the worst problem."""
    pairs = zip(problems, bounds, strict=True)
    worst = np.max([flat_excess(problem, part) for problem, part in pairs], axis=0)
    # nothing known of a sample that asks for nothing: when in doubt it is kept
    return np.where(np.isnan(worst), 0.0, worst)


def examine(
    X: Any, y: Any, model: Training, sample_weight: Any, screening: str | Region, seed: int
) -> Examined:
    """Check the arguments and make the problems; nothing is solved yet."""
    region = resolve("screening", screening, REGIONS, Region)
    inputs = make_problems(X, y, sample_weight=sample_weight, **vars(model))
    region.validate(inputs.problems[0])
    check_finite(inputs.problems[0].design, columns=column_names(X))
    return Examined(inputs.problems, inputs.labels, inputs.classes, model, region, seed)
