"""The regularised empirical risk, its dual, and the only place where a duality gap is computed.

    P(x, c) = (1/W) Σ s_i f(a_iᵀx + c; b_i) + ½xᵀQx + qᵀx + r + alpha·R(x),    W = Σ s_i

The folded part Q, q, r is zero until samples are decided (`Problem.reduce`). A *point* is the
vector (x, c), or x alone without an intercept; R sees x only. With ν one number per sample and z
a point, a dual value is

    D(ν, z) = −(1/W) Σ s_i f*(ν_i; b_i) − ½zᵀQz + r − alpha·R*(−v/alpha),
    v = (1/W) Aᵀ(s∘ν) + Qz + q,   and v = 0 on the intercept's coordinate,

and D(ν, z) ≤ P at every point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import (
    EPS,
    UNDERFLOW,
    exact_sum,
    prediction_error,
    sum_over_blocks,
    target_size,
    total,
)
from safesift.design.base import Design
from safesift.losses import Loss
from safesift.losses.base import Piece
from safesift.penalties import Penalty
from safesift.problem.constant import best_constant
from safesift.problem.duality import Dual, DualPoint, Ray
from safesift.problem.evaluation import Evaluation, Quadratic, Rounding

if TYPE_CHECKING:
    from safesift.problem.decisions import Decisions

__all__ = ["Evaluation", "Problem", "Quadratic", "Rounding", "evaluate_together"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """A regularised empirical risk on a `Design`, with some samples possibly folded away.

    Parameters
    ----------
    design : Design
        The rows, with a column of ones where there is an intercept.
    y : array of shape (n_samples,) or (n_samples, 2)
        Labels -1 and 1, targets, or lower and upper ends.
    loss : Loss
    penalty : Penalty
    alpha : float
        Weight of the penalty, λ in the paper.
    weights : array of shape (n_samples,)
        Sample weights s_i.
    divisor : float
        W, the total weight of the *full* problem. It stays when rows are dropped.
    folded : Quadratic or None
    certified : bool
        False for what is left after decisions that a guess entered.
    """

    design: Design
    y: Array
    loss: Loss
    penalty: Penalty
    alpha: float
    weights: Array
    divisor: float
    folded: Quadratic | None = None
    certified: bool = True

    # --- shape ------------------------------------------------------------------------------

    @property
    def fit_intercept(self) -> bool:
        return self.design.intercept

    @property
    def Q(self) -> Array | None:
        """Matrix of the folded samples, None where none is on a quadratic piece."""
        return None if self.folded is None else self.folded.Q

    @property
    def q(self) -> Array:
        """Linear term of the folded samples."""
        return np.zeros(self.design.n_columns) if self.folded is None else self.folded.q

    @property
    def r(self) -> float:
        """Constant term of the folded samples."""
        return 0.0 if self.folded is None else self.folded.r

    @property
    def strong_convexity(self) -> float:
        """κ of alpha·R; it does not count the intercept's coordinate."""
        return self.alpha * self.penalty.strong_convexity

    @cached_property
    def shares(self) -> Array:
        """s_i / W."""
        return self.weights / self.divisor

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of every sample's loss."""
        return tuple(self.loss.pieces(self.y))

    def join(self, coef: Array, intercept: float = 0.0) -> Array:
        """The point made of coefficients and intercept."""
        return np.append(coef, intercept) if self.fit_intercept else np.asarray(coef)

    def split(self, point: Array) -> tuple[Array, float]:
        """Coefficients and intercept of a point."""
        return (point[:-1], float(point[-1])) if self.fit_intercept else (point, 0.0)

    def feasible(self, point: Array) -> Array:
        """The point, moved inside the constraint if the penalty is one and the point is not.

        A hair inside: its value then bounds the optimal one, whatever the rounding of norms.
        """
        coef, intercept = self.split(point)
        if self.penalty.contains(coef):
            return point
        return self.join(self.penalty.inside(coef), intercept)

    # --- primal -----------------------------------------------------------------------------

    def primal(self, point: Array) -> float:
        """P(point)."""
        return self.evaluate(point).value

    def evaluate(self, point: Array) -> Evaluation:
        """Value and subgradient at a point, in one pass over the rows."""
        return evaluate_together([(self, point)])[0]

    def reevaluate(self, at: Evaluation) -> Evaluation:
        """What another level of the same path knows of a point, for this one: no pass needed."""

        def part(rows: slice) -> tuple[float]:
            losses = self.loss.take(rows).value(at.pred[rows], self.y[rows])
            return (total(self.shares[rows], losses),)

        with np.errstate(over="ignore", invalid="ignore"):
            (mean_loss,) = sum_over_blocks(self.design.n_samples, part)
            return self._evaluation(at.point, at.pred, at.nu, at.loss_gradient, mean_loss)

    def _evaluation(
        self, point: Array, pred: Array, nu: Array, loss_gradient: Array, mean_loss: float
    ) -> Evaluation:
        coef, _ = self.split(point)
        value = mean_loss + _scaled(self.alpha, self.penalty.value(coef))
        gradient = loss_gradient
        if self.folded is not None:
            value += self.folded.value(point)
            gradient = gradient + self.folded.product(point) + self.folded.q
        p = self.design.n_features
        penalised = self.penalty.least_norm(coef, gradient[:p], self.alpha)
        return Evaluation(
            point=point,
            pred=pred,
            nu=nu,
            loss_gradient=loss_gradient,
            subgradient=np.concatenate([penalised.vector, gradient[p:]]),
            subgradient_slack=penalised.slack,
            value=value,
        )

    def rounding(self, at: Evaluation) -> Rounding:
        """Bounds on the error of an evaluation: of rounding, and of a numeric loss."""
        known = self.__dict__.get("_rounding")
        if known is None or known[0] is not at:
            # a gap, a region and its bounds all ask for the same evaluation
            known = self.__dict__["_rounding"] = (at, self._rounding_of(at))
        return known[1]

    def _rounding_of(self, at: Evaluation) -> Rounding:
        design = self.design
        coef, _ = self.split(at.point)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = sum_over_blocks(design.n_samples, lambda rows: self._errors_of(at, rows))
            load, losses, change, drift = sums
            size = design.size(at.point)
            value = (
                (design.sum_error + 16 * EPS + self.loss.precision) * losses
                + change
                + _scaled(self.alpha, self.penalty.value_error(coef))
                # products with a tiny alpha or weight may underflow
                + (design.n_samples + 8) * UNDERFLOW
            )
            gradient = (design.sum_error + self.loss.precision) * load + 8 * EPS * (
                design.size(at.subgradient) + design.size(at.loss_gradient) + self.alpha * size
            )
            if self.folded is not None:
                folded = design.n_columns * EPS * self.folded.size(size)
                value += folded * size + 8 * EPS * abs(self.folded.r)
                gradient += folded
            if math.isinf(self.loss.smoothness):
                return Rounding(_known(value), _known(gradient), _known(2.0 * value))
            return Rounding(_known(value), _known(gradient + self.loss.smoothness * drift), 0.0)

    def _errors_of(self, at: Evaluation, rows: slice) -> tuple[float, float, float, float]:
        """Sums over some samples: of loads, sizes of losses, changes of losses, weighted errors."""
        loss, y, shares = self.loss.take(rows), self.y[rows], self.shares[rows]
        nu, norms = at.nu[rows], self.design.row_norms[rows]
        error = self._prediction_error(at, rows)
        if math.isinf(loss.smoothness):
            change = np.minimum(_rise(loss, at.pred[rows], error, y), loss.lipschitz * error)
        else:
            by_slope = error * (np.abs(nu) + 0.5 * loss.smoothness * error)
            change = np.minimum(by_slope, loss.lipschitz * error)
        return (
            total(shares, np.abs(nu) * norms),
            total(shares, loss.value_size(at.pred[rows], y)),
            total(shares, change),
            total(shares, norms * error),
        )

    def prediction_error(self, at: Evaluation) -> Array:
        """Bounds on the error of the predictions and of their distance to the targets."""
        return self._prediction_error(at, slice(None))

    def _prediction_error(self, at: Evaluation, rows: slice) -> Array:
        pred, norms = at.pred[rows], self.design.row_norms[rows]
        sizes = target_size(self.loss.take(rows), self.y[rows])
        rounding = prediction_error(self.design, at.point, norms, pred, sizes)
        return rounding + self.loss.precision * (np.abs(pred) + sizes + 1.0)

    def smooth_gradient(self, at: Evaluation) -> Array:
        """The gradient of everything but the penalty."""
        if self.folded is None:
            return at.loss_gradient
        return at.loss_gradient + self.folded.product(at.point) + self.folded.q

    # --- dual -------------------------------------------------------------------------------

    def dual(self, nu: Array, point: Array | None = None) -> float:
        """D(ν, point): a lower bound on the optimum, −inf where (ν, point) is not feasible.

        Parameters
        ----------
        nu : array of shape (n_samples,)
        point : array, default 0
            Stands for the folded samples; of no effect without a folded quadratic part.

        Notes
        -----
        With an intercept Σ s_i ν_i must be 0, which floating point cannot meet exactly: the value
        is that of a point next to ν at which it is, all slopes of one sign shrunk.
        """
        point = np.zeros(self.design.n_columns) if point is None else point
        return Dual(self).value(Ray(nu, self.design.rmatvec(self.shares * nu), point))

    def best_dual(self, at: Evaluation, known: DualPoint | None = None) -> DualPoint:
        """The best dual point on the rays through the slopes at a point, or a better one known."""
        return Dual(self).best(at, known)

    @cached_property
    def centers(self) -> Array:
        """A number per sample where its loss is small: the target, the middle of an interval."""
        anchors = self.loss.anchors(self.y)
        return (anchors / len(anchors)).sum(axis=0)

    @cached_property
    def unit(self) -> float:
        """The scale of predictions: 1 for labels, the spread of the targets for regression."""
        if self.loss.task == "classification":
            return 1.0
        weight = float(self.shares.sum())
        if weight == 0:
            return 1.0
        mean = total(self.shares, self.centers) / weight
        return total(self.shares, np.abs(self.centers - mean)) or 1.0

    def gap(self, at: Evaluation, dual: DualPoint | None = None) -> float:
        """An upper bound on P(point) − min P, rounding included.

        Of the problem at hand: for a *reduced* problem it bounds the distance to the reduced
        optimum, and says something about the full one only where every decided sample is on its
        piece at the point (`ScreeningResult.check` verifies that in one pass).
        """
        dual = self.best_dual(at) if dual is None else dual
        gap = at.value + self.rounding(at).value - dual.value
        return math.inf if math.isnan(gap) else max(gap, 0.0)

    @property
    def constant_value(self) -> float:
        """P of the best constant model, by which gaps are made relative."""
        return self._best_constant[1]

    @property
    def constant_point(self) -> Array:
        """The best constant model: coefficients 0, and the best intercept if there is one."""
        return self.join(np.zeros(self.design.n_features), self._best_constant[0])

    @cached_property
    def _best_constant(self) -> tuple[float, float]:
        return best_constant(self)

    # --- reduction --------------------------------------------------------------------------

    def reweighted(self, weights: Array) -> Problem:
        """The same samples with other weights, and their sum as the divisor."""
        moved = replace(self, weights=weights, divisor=float(weights.sum()))
        for name in ("pieces", "centers"):
            moved.__dict__[name] = getattr(self, name)
        return moved

    def at_level(self, alpha: float, penalty: Penalty | None = None) -> Problem:
        """The same samples with another alpha, or another radius of the constraint."""
        moved = replace(self, alpha=alpha, penalty=self.penalty if penalty is None else penalty)
        for name in ("shares", "pieces", "centers", "unit", "_best_constant"):
            # none depends on the penalty, which is 0 at 0
            moved.__dict__[name] = getattr(self, name)
        return moved

    def with_features(self, features: NDArray) -> Problem:
        """The same objective on some of the features: the others are 0 at every point."""
        columns = np.append(features, True) if self.fit_intercept else features
        folded = self.folded
        if folded is not None:
            Q = None if folded.Q is None else folded.Q[np.ix_(columns, columns)]
            folded = Quadratic(folded.q[columns], folded.r, Q)
        return replace(self, design=self.design.columns(features), folded=folded)

    def restrict(self, rows: NDArray) -> Problem:
        """The same objective with only some of the rows in its sum; W does not change."""
        return replace(
            self,
            design=self.design.take(rows),
            y=self.y[rows],
            loss=self.loss.take(rows),
            weights=self.weights[rows],
        )

    def reduce(self, decisions: Decisions) -> Problem:
        """Fold the decided samples away: same optima, fewer rows, the same divisor W."""
        linear = np.where(decisions.folded, decisions.linear, 0.0) * self.shares
        quadratic = np.where(decisions.folded, decisions.quadratic, 0.0) * self.shares
        constant = np.where(decisions.folded | decisions.dropped, decisions.constant, 0.0)
        folded = Quadratic(
            q=self.design.rmatvec(linear),
            r=total(self.shares, constant),
            Q=self.design.gram(quadratic) if quadratic.any() else None,
        )
        before = self.folded
        if before is not None:
            Q = before.Q if folded.Q is None else folded.Q
            Q = before.Q + folded.Q if before.Q is not None and folded.Q is not None else Q
            folded = Quadratic(folded.q + before.q, folded.r + before.r, Q)
        return replace(self.restrict(decisions.undecided), folded=folded)


def evaluate_together(queries: Sequence[tuple[Problem, Array]]) -> list[Evaluation]:
    """Evaluate problems that share one design at a point each, in one pass over the rows."""
    if not queries:
        return []
    problems = [problem for problem, _ in queries]
    design = problems[0].design
    nu = np.empty((len(queries), design.n_samples))
    losses: list[dict[int, float]] = [{} for _ in queries]

    def dual(pred: Array, rows: slice) -> Array:
        out = np.zeros_like(pred)
        columns = pred.reshape(len(pred), len(problems)).T
        weighted = out.reshape(len(pred), len(problems)).T
        for k, problem in enumerate(problems):
            loss, y, shares = problem.loss.take(rows), problem.y[rows], problem.shares[rows]
            nu[k, rows] = loss.slope(columns[k], y)
            losses[k][rows.start] = total(shares, loss.value(columns[k], y))
            np.multiply(shares, nu[k, rows], out=weighted[k], where=shares > 0)
        return out

    with np.errstate(over="ignore", invalid="ignore"):
        if len(queries) == 1:
            pred, gradient = design.pass_through(queries[0][1], dual)
        else:
            points = np.stack([point for _, point in queries], axis=1)
            pred, gradient = design.pass_through(points, dual)
        preds = np.ascontiguousarray(pred.reshape(design.n_samples, len(queries)).T)
        gradients = gradient.reshape(design.n_columns, len(queries)).T
        return [
            problem._evaluation(
                point, preds[k], nu[k], gradients[k].copy(), exact_sum(losses[k].values())
            )
            for k, (problem, point) in enumerate(queries)
        ]


def _rise(loss: Loss, pred: Array, error: Array, y: Array) -> Array:
    """The most by which a convex loss changes within some distance: how far it rises to the ends.

    Far from a kink on a flat piece that is nothing, whatever the Lipschitz constant.
    """
    ends = np.maximum(loss.value(pred - error, y), loss.value(pred + error, y))
    rounding = (32 * EPS + 4.0 * loss.precision) * loss.value_size(pred, y)
    return (ends - loss.value(pred, y)) + rounding


def _known(bound: float) -> float:
    """A bound that overflowed into NaN is no bound."""
    return math.inf if math.isnan(bound) else bound


def _scaled(alpha: float, penalty: float) -> float:
    return 0.0 if penalty == 0.0 else alpha * penalty
