"""What is solved, and the one evaluator that measures everybody's answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from safesift.losses import LOSSES
from safesift.problem.duality import DualPoint
from safesift.problem.inputs import make_problems

# without intercept; with one that is not penalised; with one that is the coefficient of a column
# of ones, penalised like every other: what LIBLINEAR and ReHLine solve
NONE, FREE, ONES = "none", "free", "ones"
INTERCEPTS = {NONE: "", FREE: "+intercept", ONES: "+ones"}


@dataclass(frozen=True)
class Task:
    """A loss and a penalty by the names of the library, which intercept, and how many classes.

    More than two classes are as many problems, each class against the rest.
    """

    loss: str
    penalty: str
    intercept: str = NONE
    n_classes: int = 2

    def __str__(self) -> str:
        return self.kind + INTERCEPTS[self.intercept]

    @property
    def kind(self) -> str:
        return f"{self.loss}-{self.penalty}"

    @property
    def classifies(self) -> bool:
        return LOSSES[self.loss]().task == "classification"

    @property
    def has_kinks(self) -> bool:
        return math.isinf(LOSSES[self.loss]().smoothness)


@dataclass(frozen=True, eq=False)
class Model:
    """Coefficients, a row per problem, and intercepts, whoever penalises them or does not."""

    coef: np.ndarray
    intercept: np.ndarray

    @classmethod
    def of(cls, coef: Any, intercept: Any = 0.0) -> Model:
        coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
        intercepts = np.broadcast_to(np.ravel(np.asarray(intercept, dtype=np.float64)), len(coef))
        return cls(coef, intercepts)

    @classmethod
    def with_ones(cls, coef: Any) -> Model:
        """Of coefficients whose last is that of a column of ones."""
        coef = np.atleast_2d(coef)
        return cls.of(coef[:, :-1], coef[:, -1])


@dataclass(frozen=True)
class Measure:
    """How good a model is, relative to P of the best constant model; the worst of its problems.

    Attributes
    ----------
    gap : float
        The duality gap, from the slopes at the model. At a kink the model does not tell the
        slopes: for losses with kinks the dual value is at least the floor.
    excess : float
        P minus the floor, which is nearly the optimal value: what a peer that knows no dual
        point could claim at best.
    """

    gap: float
    excess: float


class Evaluator:
    """Gaps of given models on all rows: independent of who computed them, and how."""

    def __init__(self, X: Any, y: np.ndarray, task: Task) -> None:
        self._task = task
        self._problems = make_problems(
            with_ones(X) if task.intercept == ONES else X, y,
            loss=task.loss, penalty=task.penalty, alpha=1.0, fit_intercept=task.intercept == FREE,
        ).problems  # fmt: skip

    @property
    def constant(self) -> float:
        """P of the best constant model, to which gaps are relative; the mean of several classes."""
        return float(np.mean([problem.constant_value for problem in self._problems]))

    def measure(self, model: Model, alpha: float, floors: Sequence[float] | None = None) -> Measure:
        """Gap and excess; `floors` are certified lower bounds on the optimal values."""
        known = [-math.inf] * len(self._problems) if floors is None else floors
        found = [
            self._measure(problem.at_level(float(alpha)), point, floor)
            for problem, point, floor in zip(
                self._problems, self._points(model), known, strict=True
            )
        ]
        return Measure(max(one.gap for one in found), max(one.excess for one in found))

    def values(self, model: Model, alpha: float) -> list[float]:
        """P of every problem at the model."""
        known = zip(self._problems, self._points(model), strict=True)
        return [problem.at_level(float(alpha)).primal(point) for problem, point in known]

    def floors(self, model: Model, alpha: float, gaps: Sequence[float]) -> list[float]:
        """The lower bounds on the optimal values that a model with certified gaps amounts to."""
        known = zip(self.values(model, alpha), gaps, strict=True)
        return [value - float(gap) for value, gap in known]

    def _measure(self, problem: Any, point: np.ndarray, floor: float) -> Measure:
        own = problem.certify(problem.evaluate(point))
        best = own.improved(DualPoint(np.empty(0), floor))
        gap = (best if self._task.has_kinks else own).gap
        return Measure(gap / problem.constant_value, best.gap / problem.constant_value)

    def _points(self, model: Model) -> np.ndarray:
        if self._task.intercept == NONE:
            return model.coef
        return np.column_stack([model.coef, model.intercept])


def with_ones(X: Any) -> Any:
    """The same with a column of ones behind it."""
    ones = np.ones((X.shape[0], 1))
    if sparse.issparse(X):
        return sparse.hstack([X, ones], format="csr")
    return np.hstack([X, ones])
