"""Balls from what was solved before: another alpha, or slightly different data. No pass needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, norm, prediction_error, root_over, target_size
from safesift.design import as_design
from safesift.penalties import L2
from safesift.problem.certificate import Certificate
from safesift.problem.problem import Problem
from safesift.regions.ball import Ball, BallRegion

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Previous(BallRegion):
    """A solution of a neighbouring problem with l2 penalty, and its certified duality gap.

    Being the solution *of that problem* is the caller's word; everything else is proved from it.
    """

    coef: Array
    gap: float

    def validate(self, problem: Problem) -> None:
        if not isinstance(problem.penalty, L2) or problem.fit_intercept:
            raise ValueError(
                f"screening={self.name!r} needs penalty='l2' and fit_intercept=False: "
                "pass the previous solution as coef= instead, with any other region."
            )
        if np.shape(self.coef) != (problem.design.n_features,):
            raise ValueError(
                f"screening={self.name!r}: coef has shape {np.shape(self.coef)}, "
                f"X has {problem.design.n_features} features."
            )
        if not (math.isfinite(self.gap) and self.gap >= 0):
            raise ValueError(f"screening={self.name!r}: gap must be finite and not negative.")


@dataclass(frozen=True, eq=False)
class AlphaBall(_Previous):
    """From the solution x₁ for another alpha: ‖x* − ½(1 + α₁/α)x₁*‖ ≤ ½|1 − α₁/α|·‖x₁*‖.

    At the optimum for α₁ the gradient of the objective for α is (α − α₁)x₁*, and the gradient
    ball around x₁* follows. x₁* is known up to √(2·gap/α₁).

    Parameters
    ----------
    coef : array of shape (n_features,)
        A solution for `alpha`, without intercept, l2 penalty, the same data and loss.
    gap : float
        Its certified (absolute) duality gap.
    alpha : float
        The other alpha.
    """

    alpha: float
    name = "alpha_ball"

    def validate(self, problem: Problem) -> None:
        super().validate(problem)
        if not self.alpha > 0:
            raise ValueError(f"screening='alpha_ball': alpha must be positive, got {self.alpha!r}.")

    def ball(self, certificate: Certificate) -> Ball:
        problem = certificate.problem
        known_to = root_over(2.0 * self.gap, self.alpha)
        ratio = self.alpha / problem.alpha
        center = 0.5 * (1.0 + ratio) * np.asarray(self.coef, dtype=np.float64)
        size = norm(self.coef) + known_to
        radius = 0.5 * abs(1.0 - ratio) * size + 0.5 * (1.0 + ratio) * known_to
        lost = (problem.design.n_columns + 16) * EPS
        return Ball(center, radius * (1.0 + lost) + lost * norm(center))


@dataclass(frozen=True, eq=False)
class Edit:
    """Rows that were added to, or removed from, a data set.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    sample_weight : array of shape (n_rows,), optional
    """

    X: Any
    y: Array
    sample_weight: Array | None = None

    def validate(self, problem: Problem) -> None:
        """Raise ValueError where these cannot be rows of the problem."""
        n, p = np.shape(self.X) if not hasattr(self.X, "shape") else self.X.shape
        if p != problem.design.n_features:
            raise ValueError(
                f"Edit: X has {p} features, the problem has {problem.design.n_features}."
            )
        if len(self.y) != n or (self.sample_weight is not None and len(self.sample_weight) != n):
            raise ValueError(f"Edit: y and sample_weight must have {n} entries, as X has rows.")
        if np.shape(self.y)[1:] != problem.y.shape[1:]:
            raise ValueError(
                f"Edit: y has shape {np.shape(self.y)}, but the targets of the problem have shape "
                f"{problem.y.shape}: give both the same columns."
            )
        if problem.loss.task == "classification" and not np.isin(self.y, (-1, 1)).all():
            raise ValueError("Edit: y must hold -1 and 1 for a classification loss.")


@dataclass(frozen=True, eq=False)
class EditBall(_Previous):
    """From the solution for slightly different data: only the edited rows are looked at.

    At the optimum x₁* of the old data the gradient of the new objective is

        (1 − W₀/W)·alpha·x₁* + (1/W)(Σ_added s ν a − Σ_removed s ν a),

    and the gradient ball around x₁* follows. x₁* is known up to √(2·gap/alpha), the slopes ν up to
    what that leaves them, or up to the whole range of the dual for a loss with kinks.

    Parameters
    ----------
    coef : array of shape (n_features,)
        A solution for the old data with the same alpha, loss and l2 penalty, without intercept.
    gap : float
        Its certified (absolute) duality gap.
    added, removed : Edit or None
        With labels -1 and 1 for classification.
    """

    added: Edit | None = None
    removed: Edit | None = None
    name = "edit_ball"

    def validate(self, problem: Problem) -> None:
        super().validate(problem)
        if problem.loss.n_parameters is not None:
            raise ValueError(
                "screening='edit_ball' needs a loss with one parameter for all samples: pass the "
                "previous solution as coef= instead, with any other region."
            )
        for edit in (self.added, self.removed):
            if edit is not None:
                edit.validate(problem)

    def ball(self, certificate: Certificate) -> Ball:
        problem = certificate.problem
        coef = np.asarray(self.coef, dtype=np.float64)
        alpha, total = problem.alpha, problem.divisor
        known_to = root_over(2.0 * self.gap, alpha)
        old_total, gradient, doubt = total, np.zeros_like(coef), 0.0
        for edit, sign in ((self.added, 1.0), (self.removed, -1.0)):
            if edit is not None:
                weight, change, error = _edit_gradient(problem, coef, edit, known_to)
                old_total -= sign * weight
                gradient += sign * change / total
                doubt += error / total
        rest = 1.0 - old_total / total
        gradient += rest * alpha * coef
        doubt += abs(rest) * alpha * known_to
        lost = (problem.design.n_columns + 16) * EPS
        moved = known_to + 0.5 * doubt / alpha + lost * (norm(coef) + norm(gradient) / alpha)
        radius = 0.5 * (norm(gradient) + doubt) / alpha + moved
        return Ball(coef - (0.5 / alpha) * gradient, radius * (1.0 + lost))


def _edit_gradient(
    problem: Problem, coef: Array, edit: Edit, known_to: float
) -> tuple[float, Array, float]:
    """Total weight of edited rows, Σ s ν a over them, and a bound on the error of that sum."""
    design, y = as_design(edit.X), np.asarray(edit.y, dtype=np.float64)
    weights = np.ones(len(y)) if edit.sample_weight is None else np.asarray(edit.sample_weight)
    loss, norms = problem.loss, design.row_norms
    pred = design.matvec(coef)
    nu = loss.slope(pred, y)
    sizes = target_size(loss, y)
    pred_error = norms * known_to + prediction_error(design, design.size(coef), norms, pred, sizes)
    pred_error += loss.precision * (np.abs(pred) + sizes + 1.0)
    low, high = loss.dual_interval(y)
    with np.errstate(invalid="ignore"):
        nu_error = np.fmin(loss.slope_error(pred, pred_error, y), high - low)
    error = float(weights @ (norms * (nu_error + (design.sum_error + loss.precision) * np.abs(nu))))
    return float(weights.sum()), design.rmatvec(weights * nu), error
