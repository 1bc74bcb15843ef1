"""What the methods know of the samples: problems, solutions, regions, each when first asked for.

The norm ‖·‖ in which H = (1/W) Σ s_i a_i a_iᵀ + alpha·I is the identity, and leverage scores.

The ridge leverage of a row is a_iᵀH⁻¹a_i: how far it sticks out of what the others span. Their
weighted mean is the effective dimension, the number of directions that the data, and not the
penalty, determine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from safesift.arithmetic.numerics import EPS, cholesky
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
from safesift.workflows.verdicts import flat_excess

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


# beyond this many columns no Gram matrix is factorised
_LARGEST_GRAM = 2000


# random directions of an estimate: its relative error is about √(2/64), a sixth
_N_DIRECTIONS = 64


_CG_STEPS, _CG_TOLERANCE = 60, 0.03


# of a constraint there is no alpha: this share of the mean eigenvalue instead
_RIDGE_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class LeverageMetric(ABC):
    """Measures rows and gradients.

    Attributes
    ----------
    leverage : array of shape (n_samples,)
        a_iᵀH⁻¹a_i.
    dimension : float
        The effective dimension, trace(H⁻¹(H − alpha·I)).
    """

    leverage: Array
    dimension: float

    @classmethod
    def of(cls, problem: Problem, seed: int) -> LeverageMetric:
        """Exact where the Gram matrix is small, else by its diagonal and random projections."""
        small = problem.design.n_columns <= _LARGEST_GRAM
        return (WholeMetric if small else DiagonalMetric)._of(problem, seed)

    @classmethod
    @abstractmethod
    def _of(cls, problem: Problem, seed: int) -> LeverageMetric: ...

    @abstractmethod
    def whiten(self, gradients: Array) -> Array:
        """H^(-½) times columns, up to a rotation."""

    @abstractmethod
    def whiten_transpose(self, columns: Array) -> Array:
        """The transpose of `whiten`."""


@dataclass(frozen=True, eq=False)
class WholeMetric(LeverageMetric):
    """By a Cholesky factor of H."""

    factor: Array

    @classmethod
    def _of(cls, problem: Problem, seed: int) -> WholeMetric:
        design, shares = rows_of(problem.design), problem.shares
        H = design.gram(shares)
        H[np.diag_indices_from(H)] += _ridges(problem, np.diag(H))
        factor = cholesky(H)[0]
        inverse = solve_triangular(factor, np.eye(len(H)), lower=True)
        leverage = design.projected_sq(inverse.T, np.ones(len(H)))
        return cls(leverage, float(shares @ leverage), factor)

    def whiten(self, gradients: Array) -> Array:
        return solve_triangular(self.factor, gradients, lower=True)

    def whiten_transpose(self, columns: Array) -> Array:
        return solve_triangular(self.factor, columns, lower=True, trans="T")


@dataclass(frozen=True, eq=False)
class DiagonalMetric(LeverageMetric):
    """By the diagonal of H; leverage by random projections.

    For independent standard normal u and v the vector z = Aᵀ√(s/W)u + √alpha·v has covariance H, so
    that (a_iᵀH⁻¹z)² has the leverage as its mean. H⁻¹z is found by a few conjugate gradients.
    """

    roots: Array

    @classmethod
    def _of(cls, problem: Problem, seed: int) -> DiagonalMetric:
        design, shares = rows_of(problem.design), problem.shares
        diagonal = design.columns_sq(shares)
        ridges = _ridges(problem, diagonal)
        rng = np.random.default_rng(seed)
        u = rng.standard_normal((design.n_samples, _N_DIRECTIONS))
        v = rng.standard_normal((design.n_columns, _N_DIRECTIONS))
        z = design.rmatvec(np.sqrt(shares)[:, None] * u) + np.sqrt(ridges)[:, None] * v
        solved = _conjugate_gradients(design, shares, ridges, diagonal + ridges, z)
        leverage = np.square(design.matvec(solved)).mean(axis=1)
        return cls(leverage, float(shares @ leverage), np.sqrt(diagonal + ridges))

    def whiten(self, gradients: Array) -> Array:
        return gradients / self.roots[:, None]

    def whiten_transpose(self, columns: Array) -> Array:
        return columns / self.roots[:, None]


def _ridges(problem: Problem, diagonal: Array) -> Array:
    """What is added to the diagonal: alpha, and next to nothing for an intercept."""
    p = problem.design.n_features
    mean = float(diagonal[:p].mean())
    ridge = _RIDGE_SHARE * mean if problem.penalty.is_constraint else problem.alpha
    # so that the factors exist for any alpha
    least = 64 * problem.design.n_columns * EPS * max(float(diagonal.max()), ridge)
    ridges = np.full(problem.design.n_columns, least)
    ridges[:p] += ridge
    return ridges


def _conjugate_gradients(
    design: RowDesign, shares: Array, ridges: Array, diagonal: Array, right: Array
) -> Array:
    """H⁻¹ times columns, roughly, preconditioned by the diagonal."""
    solved, residual = np.zeros_like(right), right.copy()
    scaled = residual / diagonal[:, None]
    direction, energy = scaled.copy(), np.sum(residual * scaled, axis=0)
    wanted = _CG_TOLERANCE**2 * energy
    for _ in range(_CG_STEPS):
        if (energy <= wanted).all():
            break
        image = design.gram_product(direction, shares) + ridges[:, None] * direction
        step = energy / np.sum(direction * image, axis=0)
        solved += step * direction
        residual -= step * image
        scaled = residual / diagonal[:, None]
        before, energy = energy, np.sum(residual * scaled, axis=0)
        direction = scaled + (energy / before) * direction
    return solved


_TOLERANCE = 1e-7


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
    def predictions(self) -> Array:
        """At the solutions, (n_samples, n_problems)."""
        return np.stack([fit.at.pred for fit in self.fits], axis=1)

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
        if len(self.problems) == 1:
            return self.predictions[:, 0]
        return np.take_along_axis(self.predictions, self.class_codes[:, None], axis=1)[:, 0]

    @cached_property
    def class_codes(self) -> NDArray[np.intp]:
        """Which class a sample is of; zeros without classes, any number without weight."""
        if self.classes is None or self.labels is None:
            return np.zeros(len(self.weights), dtype=np.intp)
        counted = self.counted
        codes = np.zeros(len(self.weights), dtype=np.intp)
        codes[counted] = np.searchsorted(self.classes, self.labels[counted])
        return codes

    @cached_property
    def margins(self) -> Array:
        """How far the prediction at the solution is out of the flat piece, negative inside."""
        return self._excess([Bounds(pred, pred) for pred in self.predictions.T])

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
        pairs = zip(self.test_sets, self.problems, strict=True)
        return self._excess([test_set.own_bounds(problem) for test_set, problem in pairs])

    def _excess(self, bounds: list[Bounds]) -> Array:
        pairs = zip(self.problems, bounds, strict=True)
        worst = np.max([flat_excess(problem, part) for problem, part in pairs], axis=0)
        # nothing known of a sample that asks for nothing: when in doubt it is kept
        return np.where(np.isnan(worst), 0.0, worst)

    @cached_property
    def metric(self) -> LeverageMetric:
        """The norm in which gradients and rows are measured."""
        return LeverageMetric.of(self.problems[0], self.seed)


def examine(
    X: Any, y: Any, model: Training, sample_weight: Any, screening: str | Region, seed: int
) -> Examined:
    """Check the arguments and make the problems; nothing is solved yet."""
    region = resolve("screening", screening, REGIONS, Region)
    inputs = make_problems(X, y, sample_weight=sample_weight, **vars(model))
    region.validate(inputs.problems[0])
    check_finite(inputs.problems[0].design, columns=column_names(X))
    return Examined(inputs.problems, inputs.labels, inputs.classes, model, region, seed)
