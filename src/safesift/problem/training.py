"""The model that samples are for, and its solutions as points of its problems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.losses import Loss
from safesift.penalties import PENALTIES, Penalty
from safesift.problem.inputs import check_point
from safesift.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """The model that is trained, in the words of whoever trains it; NaN for the alpha of a path."""

    loss: str | Loss = "squared_hinge"
    penalty: str | Penalty = "l2"
    alpha: float = 1e-4
    l1_ratio: float | None = None
    fit_intercept: bool = True

    def __str__(self) -> str:
        ratio = "" if self.l1_ratio is None else f" (l1_ratio={self.l1_ratio:g})"
        penalty, alpha = self.penalty, f" alpha={self.alpha:g},"
        if math.isnan(self.alpha):
            alpha = ""
        elif (ball := self.constraint) is not None:
            penalty, alpha = ball, ""
        intercept = "an intercept" if self.fit_intercept else "no intercept"
        return f"{self.loss} and {penalty}{ratio},{alpha} {intercept}"

    @property
    def constraint(self) -> Penalty | None:
        """A ball, which has a radius, and to which alpha means nothing."""
        named = PENALTIES.get(self.penalty) if isinstance(self.penalty, str) else None
        penalty = self.penalty if named is None else named()
        return penalty if isinstance(penalty, Penalty) and penalty.is_constraint else None


def check_points(problems: Sequence[Problem], coef: Any, intercept: Any) -> list[Array]:
    """Given coefficients and intercepts as points, a row for each problem if there are several."""
    if len(problems) == 1:
        return [check_point(problems[0], coef, intercept)]
    coefs = np.asarray(coef)
    if coefs.ndim != 2 or len(coefs) != len(problems):
        raise ValueError(
            f"coef has shape {coefs.shape}, but there are {len(problems)} classes: pass a row of "
            "coefficients for each."
        )
    try:
        intercepts = np.broadcast_to(np.ravel(intercept), len(problems))
    except ValueError:
        raise ValueError(
            f"intercept has shape {np.shape(intercept)}, but there are {len(problems)} classes: "
            "pass one for each."
        ) from None
    return [
        check_point(problem, row, one)
        for problem, row, one in zip(problems, coefs, intercepts, strict=True)
    ]
