"""What is known of a problem at a point, and what decided samples leave behind of theirs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, UNDERFLOW, norm
from safesift.arithmetic.printing import Brief
from safesift.problem.looks import SampleSums

if TYPE_CHECKING:
    from safesift.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Quadratic(Brief):
    """½xᵀQx + qᵀx + r: what decided samples leave behind. `Q` is None where nothing is quadratic.

    With an intercept its coordinate is the last one.
    """

    q: Array
    r: float
    Q: Array | None = None

    def product(self, point: Array) -> Array:
        """Q @ point."""
        return np.zeros_like(point) if self.Q is None else self.Q @ point

    def value(self, point: Array) -> float:
        """½xᵀQx + qᵀx + r."""
        return 0.5 * float(point @ self.product(point)) + float(self.q @ point) + self.r

    def gradient(self, point: Array) -> Array:
        """Qx + q."""
        return self.product(point) + self.q

    def size(self, length: float) -> float:
        """A bound on ‖Qx + q‖ for ‖x‖ ≤ length, to which rounding errors are relative."""
        matrix = 0.0 if self.Q is None else float(np.linalg.norm(self.Q))
        return matrix * length + norm(self.q)


@dataclass(frozen=True, eq=False, repr=False)
class Folded(Quadratic):
    """What decided samples leave behind: sums over them, and how far those may be off.

    Attributes
    ----------
    Q_error : float
        |computed Q − exact| ≤ Q_error·ccᵀ, entry by entry, with c_j² = Q_jj.
    q_error, r_error : float
        ‖computed q − exact‖₂, |computed r − exact|.
    """

    Q_error: float = 0.0
    q_error: float = 0.0
    r_error: float = 0.0

    @property
    def _size_error(self) -> float:
        """‖computed Q − exact‖: of ccᵀ that is ‖c‖², the trace."""
        return 0.0 if self.Q is None else self.Q_error * float(np.trace(self.Q))

    def value_error(self, length: float) -> float:
        """By how much the value at points of some length is off, on account of these errors."""
        return self.r_error + length * (self.q_error + 0.5 * length * self._size_error)

    def gradient_error(self, length: float) -> float:
        """By how much the gradient at points of some length is off, on account of these errors."""
        return self.q_error + length * self._size_error

    def plus(self, other: Folded) -> Folded:
        """The sums over both.

        With c² = c₁² + c₂² in every coordinate, c₁c₁ᵀ + c₂c₂ᵀ ≤ ccᵀ by Cauchy and Schwarz: the
        errors of two matrices are no more than the larger one, and adding them is rounded.
        """
        q, r = self.q + other.q, self.r + other.r
        matrices = [Q for Q in (self.Q, other.Q) if Q is not None]
        return Folded(
            q,
            r,
            sum(matrices[1:], start=matrices[0]) if matrices else None,
            max(self.Q_error, other.Q_error) + 2 * EPS,
            self.q_error + other.q_error + EPS * norm(q),
            self.r_error + other.r_error + EPS * abs(r),
        )

    def columns(self, columns: NDArray[np.bool_]) -> Folded:
        """The same in some of the coordinates: the others are 0."""
        Q = None if self.Q is None else self.Q[np.ix_(columns, columns)]
        return replace(self, q=self.q[columns], Q=Q)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Brief):
    """One pass over the data at one point: value, slopes ν and subgradient of the objective.

    Attributes
    ----------
    point : array
        Coefficients, then the intercept if there is one.
    size : float
        What the rounding of the predictions is relative to: the norm of the point, or more.
    pred, nu : arrays of shape (n_samples,)
        Predictions, and the slopes of the loss at them.
    loss_gradient : array
        (1/W) Aᵀ(s∘ν), without penalty and folded part.
    subgradient : array
        The subgradient of P of least norm that belongs to these slopes.
    subgradient_slack : float
        P(point) + subgradientᵀ(u − point) ≤ P(u) + slack for all u, rounding aside.
    value : float
        P(point).
    sums : SampleSums
        Over the samples, of all that a certificate needs.
    penalty_error : float
        |computed R − exact R| at the point.
    """

    point: Array
    size: float
    pred: Array
    nu: Array
    loss_gradient: Array
    subgradient: Array
    subgradient_slack: float
    value: float
    sums: SampleSums
    penalty_error: float


@dataclass(frozen=True)
class Rounding:
    """Bounds on what floating-point arithmetic did to an `Evaluation`.

    Attributes
    ----------
    value : float
        |computed P − exact P|.
    gradient : float
        ‖computed subgradient − exact one‖₂.
    cut : float
        The computed subgradient g satisfies gᵀ(x* − point) ≤ cut + gradient·‖x* − point‖ for
        every optimum. 0 for smooth losses; a loss with kinks may be on the wrong side of one.
    """

    value: float
    gradient: float
    cut: float


# --- bounds on what floating-point arithmetic did to an evaluation of a problem -----------


def rounding_of(problem: Problem, at: Evaluation) -> Rounding:
    """Bounds on the error of an evaluation: of rounding, and of a numeric loss."""
    design, loss, folded = problem.design, problem.loss, problem.folded
    with np.errstate(over="ignore", invalid="ignore"):
        sums, size = at.sums, at.size
        penalty = at.penalty_error
        value = (
            (design.sum_error + 16 * EPS + loss.precision) * sums.size
            + sums.change
            + (0.0 if penalty == 0.0 else problem.alpha * penalty)
            # products with a tiny alpha or weight may underflow
            + (design.n_samples + 8) * UNDERFLOW
        )
        sizes = design.size(at.subgradient) + design.size(at.loss_gradient) + problem.alpha * size
        gradient = (design.sum_error + loss.precision) * sums.load + 8 * EPS * sizes
        gradient += problem.risk.rows.underflow
        if folded is not None:
            lost = design.n_columns * EPS * folded.size(size)
            value += lost * size + 8 * EPS * abs(folded.r) + folded.value_error(size)
            gradient += lost + folded.gradient_error(size)
        if math.isinf(loss.smoothness):
            return Rounding(_known(value), _known(gradient), _known(2.0 * value))
        return Rounding(_known(value), _known(gradient + sums.drift), 0.0)


def _known(bound: float) -> float:
    """A bound that overflowed into NaN is no bound."""
    return math.inf if math.isnan(bound) else bound
