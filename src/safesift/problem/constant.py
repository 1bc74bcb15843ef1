"""The best constant model of a problem, by whose objective gaps are made relative."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from safesift.arithmetic.numerics import total

if TYPE_CHECKING:
    from safesift.problem.problem import Problem

Array = NDArray[np.float64]


def best_constant(problem: Problem) -> tuple[float, float]:
    """The constant, 0 without an intercept, and P there."""
    model = _Constant(problem)
    if not problem.fit_intercept:
        return 0.0, model.objective(0.0)
    low, span = model.range
    candidates = []
    # the search knows an offset to eight digits: the second one is of a smaller offset
    for _ in range(2):
        with np.errstate(over="ignore", invalid="ignore"):
            found = minimize_scalar(
                model.objective,
                bounds=(0.0, span),
                args=(low,),
                method="bounded",
                options={"xatol": 1e-10 * span},
            )
            for offset in (0.0, float(found.x), span):
                candidates.append((model.objective(offset, low), low + offset))
        low, span = low + float(found.x) - 5e-7 * span, 1e-6 * span
    value, constant = min(candidates)
    return constant, value


@dataclass(frozen=True, eq=False)
class _Constant:
    """P of constant models."""

    problem: Problem

    @property
    def range(self) -> tuple[float, float]:
        """Where the best constant lies: its lower end, and its length (not 0).

        Labels have their best log-odds within ±64, targets their best constant among themselves,
        intervals among their finite ends.
        """
        loss, counted = self.problem.loss, self.problem.shares > 0
        if loss.task == "classification" or not counted.any():
            return -64.0, 128.0
        anchors = loss.anchors(self.problem.y)[:, counted]
        return float(anchors.min()), float(np.ptp(anchors)) or 1.0

    @cached_property
    def distinct_targets(self) -> tuple[Array, Array]:
        """Targets and their shares, with equal labels put together."""
        y, shares = self.problem.y, self.problem.shares
        if self.problem.loss.task != "classification":
            return y, shares
        positive = float(shares[y > 0].sum())
        return np.array([-1.0, 1.0]), np.array([float(shares.sum()) - positive, positive])

    def objective(self, offset: float, origin: float = 0.0) -> float:
        """P of the constant origin + offset; targets are measured from the origin, exactly."""
        problem, (y, shares) = self.problem, self.distinct_targets
        if problem.loss.task != "classification":
            y, pred = y - origin, offset
        else:
            pred = origin + offset
        value = total(shares, problem.loss.value(np.full(len(y), pred), y))
        if problem.folded is not None:
            zeros = np.zeros(problem.design.n_features)
            value += problem.folded.value(problem.join(zeros, origin + offset))
        return value
