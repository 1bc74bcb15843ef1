"""B with BBᵀ ⪰ (diag + Q + Σ share_i weight_i a_i a_iᵀ)⁻¹: exactly, or through few directions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import on_host
from safesift.arithmetic.numerics import EPS
from safesift.design.rows import rows_of
from safesift.problem.gram import WeightedGram
from safesift.problem.problem import Problem
from safesift.regions.nystrom import NystromCurvature, directions
from safesift.regions.shape import Shape
from safesift.regions.whitening import Whitening, whiten

Array = NDArray[np.float64]

# beyond this many columns the exact matrix is not made unless asked for
LARGEST_EXACT = 1000
DEFAULT_RANK = 100


class Metric(NamedTuple):
    """B with BBᵀ ⪰ H⁻¹, and a bound on ‖B‖₂."""

    shape: Shape
    stretch: float


class CurvatureModel(ABC):
    """The curvature of the weighted samples, as much of it as the model can see."""

    @abstractmethod
    def move(self, weights: Array) -> None:
        """Change the weights of the samples."""

    @abstractmethod
    def metric(self, diagonal: Array) -> Metric | None:
        """B for the present weights; `diagonal` is the curvature of the penalised coordinates.

        None where the matrix is singular, or too close to it for the arithmetic.
        """

    @property
    @abstractmethod
    def scale(self) -> float:
        """The size of the samples' curvature, per coordinate."""

    @abstractmethod
    def describe(self) -> str: ...


class ExactModel(CurvatureModel):
    """All of the curvature, by a Cholesky factor of the n_columns × n_columns matrix."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._gram = WeightedGram(rows_of(problem.design))

    def move(self, weights: Array) -> None:
        self._gram.move(self._problem.shares * weights)

    @property
    def scale(self) -> float:
        return float(np.trace(self._gram.matrix)) / self._problem.design.n_columns

    def whitening(self, diagonal: Array) -> Whitening | None:
        padded = np.zeros(self._problem.design.n_columns)
        padded[: len(diagonal)] = diagonal
        H = on_host(self._gram.matrix) + np.diag(padded)
        spread_sq = self._gram.spread**2 + padded
        if self._problem.Q is not None:
            H += self._problem.Q
            spread_sq += np.diag(self._problem.Q)
        return whiten(H, np.sqrt(spread_sq), self._problem.hessian_error(self._gram.error))

    def metric(self, diagonal: Array) -> Metric | None:
        white = self.whitening(diagonal)
        if white is None:
            return None
        factor = white.basis / np.sqrt(1.0 - white.looseness)
        shape = Shape(len(factor), 1.0, None, factor)
        return Metric(shape, min(shape.stretch, self.stretch(white, diagonal)))

    def stretch(self, white: Whitening, diagonal: Array) -> float:
        """‖B‖₂ from TTᵀ ⪯ (1 + looseness)·H⁻¹ and H ⪰ diagonal, infinite with an intercept."""
        least = float(diagonal.min())
        if self._problem.fit_intercept or not least > 0:
            return math.inf
        loose = white.looseness
        return math.sqrt((1.0 + loose) / ((1.0 - loose) * least)) * (1.0 + 8 * EPS)

    def describe(self) -> str:
        return "exact"


class NystromModel(CurvatureModel):
    """The curvature in `rank` directions; folded samples and the rest of it are left out."""

    def __init__(self, problem: Problem, rank: int) -> None:
        self._problem, self._rank = problem, rank
        self._curvature: NystromCurvature | None = None
        self._total = 0.0

    def move(self, weights: Array) -> None:
        # no more than there is of it, whatever the rounding of shares and curvatures
        weights = self._problem.shares * weights * (1.0 - self._problem.curvature_error)
        if self._curvature is None and weights.any():
            design = rows_of(self._problem.design)
            basis = directions(design, weights, self._rank)
            self._curvature = NystromCurvature(design, basis)
        if self._curvature is not None:
            self._curvature.move(weights)
        self._total = float(weights @ self._problem.design.row_norms**2)

    @property
    def scale(self) -> float:
        return self._total / self._problem.design.n_columns

    def metric(self, diagonal: Array) -> Metric | None:
        ridge = float(diagonal.min())
        if not ridge > 0:
            return None
        shape = None
        if self._curvature is not None:
            shape = self._curvature.shape(ridge)
        elif not self._problem.fit_intercept:
            shape = Shape.ball(len(diagonal), ridge**-0.5 * (1.0 + 8 * EPS), dense=False)
        return None if shape is None else Metric(shape, shape.stretch)

    def describe(self) -> str:
        return f"rank {self._rank}"


def models(problem: Problem, rank: int | None) -> tuple[list[CurvatureModel], ExactModel | None]:
    """The models to find weights with, the next where one finds none, and the one to sharpen with.

    By default few directions find the weights where the matrix is not small, and all of it is
    used only for the rows that are then still in doubt.
    """
    n_columns = problem.design.n_columns
    if rank is not None and rank < n_columns:
        return [NystromModel(problem, rank)], None
    if rank is None and n_columns > LARGEST_EXACT:
        return [NystromModel(problem, DEFAULT_RANK)], None
    exact = ExactModel(problem)
    if rank is None and n_columns > 2 * DEFAULT_RANK and problem.strong_convexity > 0:
        return [NystromModel(problem, DEFAULT_RANK), exact], exact
    return [exact], exact
