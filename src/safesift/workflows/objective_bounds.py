"""What an infimum convolution costs: bounds on the loss, and on the optimal value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safesift.arithmetic.numerics import EPS, total
from safesift.arithmetic.threads import computes
from safesift.losses import Loss
from safesift.losses.omegas import Omega
from safesift.losses.safe import infimum_convolution, resolve_loss, resolve_omega
from safesift.parameters import require_non_negative
from safesift.penalties import Penalty
from safesift.problem.certificate import Certificate
from safesift.problem.evaluation import Evaluation
from safesift.problem.inputs import check_point, make_problems
from safesift.problem.problem import Problem
from safesift.problem.training import Training
from safesift.solvers import solve

Array = NDArray[np.float64]


class PointwiseBounds(NamedTuple):
    """lower ≤ f_μ(pred; y) ≤ upper, elementwise."""

    lower: Array
    upper: Array


@dataclass(frozen=True)
class ObjectiveBounds:
    """Certified bounds on the optimal values of the original and of the regularised problem.

    Attributes
    ----------
    original : (float, float)
        Bounds on P_λ, the optimal value with the loss f.
    regularised : (float, float)
        Bounds on P_{λ,μ}, the optimal value with f_μ.
    delta : float
        P_λ − delta ≤ P_{λ,μ} ≤ P_λ.
    training : Training
        The model, with the original loss.
    """

    original: tuple[float, float]
    regularised: tuple[float, float]
    delta: float
    training: Training

    def summary(self) -> str:
        """The bounds, and the model they are about."""
        return "\n".join([
            f"the optimal value falls by at most {self.delta:.3g}",
            f"  model: {self.training}",
            f"  with the original loss between {self.original[0]:.6g} and {self.original[1]:.6g}",
            f"  with the safe one between {self.regularised[0]:.6g} and {self.regularised[1]:.6g}",
        ])  # fmt: skip


def pointwise_bound(
    loss: str | Loss, pred: ArrayLike, y: ArrayLike, omega: str | Omega | Callable, mu: float
) -> PointwiseBounds:
    """f − μΩ(f') ≤ f_μ ≤ f for a norm Ω, f' any subgradient of f at the prediction.

    Proof: in f_μ(t) = max_u tu − f*(u) − μΩ(u) the choice u = f'(t) gives the lower bound, since
    there tu − f*(u) = f(t); dropping μΩ ≥ 0 gives the upper one.

    Parameters
    ----------
    loss : str or Loss
    pred, y : arrays
        Predictions and targets (labels -1 and 1 for classification).
    omega : str, Omega or callable
        A norm, that is a multiple of |u|.
    mu : float

    Returns
    -------
    PointwiseBounds
    """
    loss, omega = resolve_loss(loss), _norm(omega)
    require_non_negative("mu", mu)
    value, slope = loss.value(pred, y), loss.slope(pred, y)
    return PointwiseBounds(value - omega.value(slope, mu), value)


@computes
def objective_bounds(
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    omega: str | Omega | Callable = "l1",
    mu: float = 0.5,
    penalty: str | Penalty = "l2",
    alpha: float = 1e-4,
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    coef: Any = None,
    intercept: float = 0.0,
    n_jobs: int | None = None,
) -> ObjectiveBounds:
    """Bounds P_λ − δ* ≤ P_{λ,μ} ≤ P_λ on the optimal values with and without μΩ, Ω a norm.

    δ* = (1/W) Σ s_i μΩ(f'(a_iᵀx)) + gap at an approximate optimum x of the *regularised* problem,
    gap its certified duality gap. Proof: f_μ ≤ f gives the right-hand side, and

        P_λ ≤ P(x) ≤ P_μ(x) + (1/W) Σ s_i μΩ(f'(a_iᵀx)) ≤ P_{λ,μ} + gap + (1/W) Σ s_i μΩ(f').

    (The paper takes δ at the optimum of P − δ, which is not a convex problem.)

    Parameters
    ----------
    X, y, loss, penalty, alpha, l1_ratio, fit_intercept, sample_weight
        As in `safesift.screen`; `loss` is the original one.
    omega : str, Omega or callable, default="l1"
        A norm, that is a multiple of |u|.
    mu : float, default=0.5
    coef, intercept
        An approximate solution of the regularised problem; a short run of a solver by default.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    ObjectiveBounds
    """
    loss, omega = resolve_loss(loss), _norm(omega)
    safe = infimum_convolution(loss, omega, mu)
    problem = make_problems(
        X, y, loss=safe, penalty=penalty, alpha=alpha, l1_ratio=l1_ratio,
        fit_intercept=fit_intercept, sample_weight=sample_weight,
    ).problem  # fmt: skip
    if coef is None:
        certificate = solve(problem, tol=1e-8).certificate
    else:
        point = problem.feasible(check_point(problem, coef, intercept))
        certificate = problem.certify(problem.evaluate(point))
    return bounds_at(certificate, loss, omega, mu)


def bounds_at(certificate: Certificate, loss: Loss, omega: Omega, mu: float) -> ObjectiveBounds:
    """The bounds from a certificate of the regularised problem; `loss` is the original one."""
    problem, dual = certificate.problem, certificate.dual
    original = problem.with_loss(loss)
    there = original.evaluate(certificate.at.point)
    highest = there.value + original.rounding(there).value
    shift = total(problem.shares, omega.value(there.nu, mu))
    shift += mu * float(omega.value(1.0, 1.0)) * _slope_error(original, there)
    delta = shift * (1.0 + problem.design.sum_error + 16 * EPS) + certificate.gap
    regularised = (dual.value, certificate.value)
    training = Training(loss, problem.penalty, problem.alpha, None, problem.fit_intercept)
    return ObjectiveBounds((dual.value, highest), regularised, delta, training)


def _slope_error(problem: Problem, at: Evaluation) -> float:
    """How far the mean |slope| may be off, since predictions are rounded.

    At a kink every slope between the two sides is a subgradient: nothing is added there.
    """
    if math.isinf(problem.loss.smoothness):
        return 0.0
    error = problem.loss.slope_error(at.pred, problem.prediction_error(at), problem.y)
    return total(problem.shares, error)


def _norm(omega: str | Omega | Callable) -> Omega:
    omega = resolve_omega(omega)
    if not omega.is_norm:
        raise ValueError(
            f"omega={type(omega).__name__} is not a norm, which these bounds need: use 'l1' or "
            "another multiple of |u|."
        )
    return omega
