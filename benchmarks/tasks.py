"""What is solved, and the one evaluator that measures everybody's answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from safesift.losses import LOSSES
from safesift.problem.duality import DualPoint
from safesift.problem.inputs import make_problems


@dataclass(frozen=True)
class Task:
    """A loss and a penalty by the names of the library, without intercept and sample weights."""

    loss: str
    penalty: str

    def __str__(self) -> str:
        return f"{self.loss}-{self.penalty}"

    @property
    def has_kinks(self) -> bool:
        return math.isinf(LOSSES[self.loss]().smoothness)


@dataclass(frozen=True)
class Measure:
    """How good a model is, relative to P of the best constant model.

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
    """Gaps of given coefficients on all rows: independent of who computed them, and how."""

    def __init__(self, X: Any, y: np.ndarray, task: Task) -> None:
        self._task = task
        made = make_problems(
            X, y, loss=task.loss, penalty=task.penalty, alpha=1.0, fit_intercept=False
        )
        self._problem = made.problem

    def measure(self, coef: np.ndarray, alpha: float, floor: float = -math.inf) -> Measure:
        """Gap and excess; `floor` is a certified lower bound on the optimal value."""
        problem = self._problem.at_level(float(alpha))
        at = problem.evaluate(np.ravel(coef).astype(np.float64))
        own = problem.certify(at)
        best = own.improved(DualPoint(np.empty(0), floor))
        gap = (best if self._task.has_kinks else own).gap
        return Measure(gap / problem.constant_value, best.gap / problem.constant_value)

    def floor(self, coef: np.ndarray, alpha: float, gap: float) -> float:
        """The lower bound on the optimal value that a model with a certified gap amounts to."""
        value = self._problem.at_level(float(alpha)).primal(np.ravel(coef).astype(np.float64))
        return value - float(gap)
