"""What the methods know of the samples: problems, solutions, regions, each when first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.design import Design
from safesift.design.factory import check_finite
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.decisions import Bounds
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.regions import REGIONS, Region
from safesift.regions.base import TestSet
from safesift.registry import resolve
from safesift.solvers import Fit, Settings, solve_path
from safesift.workflows.compression.leverage import Metric
from safesift.workflows.screening import flat_excess

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Model:
    """The training that the kept rows are for."""

    loss: str | Loss = "squared_hinge"
    penalty: str | Penalty = "l2"
    alpha: float = 1e-4
    fit_intercept: bool = False


@dataclass(frozen=True, eq=False)
class Examined:
    """The samples as problems on one design: one, or one per class against the rest.

    Attributes
    ----------
    problems : tuple of Problem
    labels : array of shape (n_samples,) or None
        As the user gave them.
    classes : array or None
        Those with a sample of positive weight.
    region : Region
        The set for the screening test.
    seed : int
        For solvers and estimates that draw random numbers.
    """

    problems: tuple[Problem, ...]
    labels: NDArray | None
    classes: NDArray | None
    region: Region
    seed: int

    @property
    def design(self) -> Design:
        return self.problems[0].design

    @property
    def weights(self) -> Array:
        return self.problems[0].weights

    @property
    def counted(self) -> Mask:
        """Rows of positive weight: the others are not part of the problem."""
        return self.weights > 0

    @cached_property
    def fits(self) -> list[Fit]:
        """Solutions certified on all rows, one per problem."""
        settings = Settings(tol=_TOLERANCE, seed=self.seed)
        (fits,) = solve_path([list(self.problems)], settings)
        return fits

    @cached_property
    def slopes(self) -> Array:
        """Dual solutions ν, (n_samples, n_problems): at a kink they are not the loss's slopes."""
        return np.stack([fit.dual.nu for fit in self.fits], axis=1)

    @cached_property
    def active(self) -> Mask:
        """Rows of weight not proved to lie on a flat piece of their loss at every optimum."""
        return np.any([fit.kept for fit in self.fits], axis=0) & self.counted

    @cached_property
    def own_predictions(self) -> Array:
        """The prediction of every sample; with several classes, that of its own class."""
        predictions = np.stack([fit.at.pred for fit in self.fits], axis=1)
        if len(self.problems) == 1:
            return predictions[:, 0]
        return np.take_along_axis(predictions, self.class_codes[:, None], axis=1)[:, 0]

    @cached_property
    def class_codes(self) -> NDArray[np.intp]:
        """Which class a sample is of; zeros without classes, any number without weight."""
        if self.classes is None:
            return np.zeros(len(self.weights), dtype=np.intp)
        counted = self.counted
        codes = np.zeros(len(self.weights), dtype=np.intp)
        codes[counted] = np.searchsorted(self.classes, self.labels[counted])
        return codes

    @cached_property
    def margins(self) -> Array:
        """How far the prediction at the solution is out of the flat piece, negative inside."""
        predictions = [fit.at.pred for fit in self.fits]
        return self._excess([Bounds(pred, pred) for pred in predictions])

    @cached_property
    def test_sets(self) -> list[TestSet]:
        """The regions of the screening test, around the solutions."""
        return [self.region.build(fit.certificate) for fit in self.fits]

    @property
    def certified(self) -> bool:
        """Whether no guess entered the regions."""
        return all(test_set.certified for test_set in self.test_sets)

    @cached_property
    def test_values(self) -> Array:
        """How far the bounds of the region reach out of the flat piece, negative where dropped."""
        return self._excess([test_set.bounds(self.design) for test_set in self.test_sets])

    def _excess(self, bounds: list[Bounds]) -> Array:
        pairs = zip(self.problems, bounds, strict=True)
        worst = np.max([flat_excess(problem, part) for problem, part in pairs], axis=0)
        # nothing known of a sample that asks for nothing: when in doubt it is kept
        return np.where(np.isnan(worst), 0.0, worst)

    @cached_property
    def metric(self) -> Metric:
        """The norm in which gradients and rows are measured."""
        return Metric.of(self.problems[0], self.seed)


def examine(
    X: Any, y: Any, model: Model, sample_weight: Any, region: str | Region, seed: int
) -> Examined:
    """Check the arguments and make the problems; nothing is solved yet."""
    region = resolve("region", region, REGIONS, Region)
    inputs = make_problems(X, y, sample_weight=sample_weight, **vars(model))
    region.validate(inputs.problems[0])
    check_finite(inputs.problems[0].design)
    return Examined(inputs.problems, inputs.labels, inputs.classes, region, seed)
