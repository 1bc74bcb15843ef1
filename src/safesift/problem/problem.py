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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import columns_of, on_host
from safesift.arithmetic.numerics import (
    EPS,
    SMALLEST,
    target_size,
    total,
)
from safesift.arithmetic.printing import Brief
from safesift.design.base import Design
from safesift.design.rows import rows_of
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.certificate import Certificate, gap_between
from safesift.problem.decisions import Decisions
from safesift.problem.duality import Dual, DualPoint, Ray
from safesift.problem.evaluation import (
    Evaluation,
    Folded,
    Rounding,
    rounding_of,
)
from safesift.problem.looks import Look, SampleSums, prediction_error
from safesift.problem.passes import Computation, Request, alone
from safesift.problem.pieces import SamplePieces
from safesift.problem.risk import SHARE_ERROR, Constant, Risk, Targets, best_constant

Array = NDArray[np.float64]

# beyond these, quotients by alpha and products with it are denormal: nothing bounds their rounding
_LEAST_ALPHA, _MOST_ALPHA = 1e-300, 1e300


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Brief):
    """A regularised empirical risk on a `Design`, with some samples possibly folded away.

    Parameters
    ----------
    risk : Risk
        The samples.
    penalty : Penalty
    alpha : float
        Weight of the penalty, λ in the paper.
    folded : Folded or None
        What decided samples left behind.
    certified : bool
        False for what is left after decisions that a guess entered.
    """

    risk: Risk
    penalty: Penalty
    alpha: float
    folded: Folded | None = None
    certified: bool = True

    def __post_init__(self) -> None:
        if self.penalty.is_constraint:
            return
        # of an elastic net the part that is strongly convex, too
        sizes = self.alpha, self.strong_convexity or self.alpha
        if not (min(sizes) >= _LEAST_ALPHA and max(sizes) <= _MOST_ALPHA):
            part = f" ({sizes[1]:.2g} for the squared norm)" if sizes[0] != sizes[1] else ""
            raise ValueError(
                f"alpha={self.alpha!r}{part} is beyond what can be computed with: choose it "
                f"between {_LEAST_ALPHA:g} and {_MOST_ALPHA:g}, or scale the features."
            )

    # --- samples ----------------------------------------------------------------------------

    @property
    def design(self) -> Design:
        return self.risk.design

    @property
    def loss(self) -> Loss:
        return self.risk.targets.loss

    @property
    def y(self) -> Array:
        return self.risk.targets.y

    @property
    def pieces(self) -> SamplePieces:
        """The pieces of every sample's loss."""
        return self.risk.targets.pieces

    @property
    def weights(self) -> Array:
        return self.risk.rows.weights

    @property
    def divisor(self) -> float:
        return self.risk.rows.divisor

    @property
    def shares(self) -> Array:
        """s_i / W."""
        return self.risk.shares

    @property
    def curvature_error(self) -> float:
        """By how much, relatively, a computed share times a curvature is off.

        So the computed Σ share_i w_i a_i a_iᵀ is within that times ccᵀ, entry by entry, of one with
        shares s_i/W and with curvatures that samples do have, beside the rounding of the sum;
        c_j² = Σ share_i w_i a_ij² (Cauchy and Schwarz).
        """
        return SHARE_ERROR + self.loss.curvature_error + 2 * EPS

    def hessian_error(self, gram_error: float) -> float:
        """|computed − exact| ≤ that·ccᵀ for Q + Σ share_i w_i a_i a_iᵀ, c² its diagonal.

        Of sums that are known to `gram_error`, of their terms, and of what was folded (errors of
        two sums are no more than the larger one: `Folded.plus`).
        """
        own = gram_error + self.curvature_error
        return own if self.folded is None else max(own, self.folded.Q_error) + 2 * EPS

    @property
    def unit(self) -> float:
        """The scale of predictions: 1 for labels, the spread of the targets for regression."""
        return self.risk.unit

    def seal(self) -> None:
        """Remember what the samples are: whoever reads them later can `check_unchanged`.

        A matrix is referenced and not copied, and its owner may change it. One look at it, for all
        classes and all levels of a path; rows that a reduced problem has copied need none.
        """
        self.risk.seal()

    def check_unchanged(self) -> None:
        """Raise `ChangedDataError` where the samples have changed since they were sealed."""
        self.risk.check_unchanged()

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
        with np.errstate(over="ignore", invalid="ignore"):
            return self._evaluation(at.point, at.size, at.pred, at.nu, at.loss_gradient, at.sums)

    def _evaluation(
        self,
        point: Array,
        size: float,
        pred: Array,
        nu: Array,
        loss_gradient: Array,
        sums: SampleSums,
    ) -> Evaluation:
        coef, _ = self.split(point)
        value = sums.loss + _scaled(self.alpha, self.penalty.value(coef))
        gradient = loss_gradient
        if self.folded is not None:
            value += self.folded.value(point)
            gradient = gradient + self.folded.gradient(point)
        p = self.design.n_features
        penalised = self.penalty.least_norm(coef, gradient[:p], self.alpha)
        return Evaluation(
            point=point,
            size=size,
            pred=pred,
            nu=nu,
            loss_gradient=loss_gradient,
            subgradient=np.concatenate([penalised.vector, gradient[p:]]),
            subgradient_slack=penalised.slack,
            value=value,
            sums=sums,
            penalty_error=self.penalty.value_error(coef),
        )

    def rounding(self, at: Evaluation) -> Rounding:
        """Bounds on the error of an evaluation: of rounding, and of a numeric loss."""
        return rounding_of(self, at)

    def prediction_error(self, at: Evaluation) -> Array:
        """Bounds on the error of the predictions and of their distance to the targets."""
        return prediction_error(self, at.size, at.pred, slice(None))

    def smooth_gradient(self, at: Evaluation) -> Array:
        """The gradient of everything but the penalty."""
        if self.folded is None:
            return at.loss_gradient
        return at.loss_gradient + self.folded.gradient(at.point)

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

    def certify(
        self, at: Evaluation, known: DualPoint | None = None, slopes: Evaluation | None = None
    ) -> Certificate:
        """What is proved at a point: the best dual point near it, and the duality gap.

        Of the problem at hand: for a *reduced* problem the gap bounds the distance to the reduced
        optimum, and says something about the full one only where every decided sample is on its
        piece at the point (`ScreeningResult.check` verifies that in one pass).

        Parameters
        ----------
        at : Evaluation
        known : DualPoint, optional
            Used if it is better than those on the rays through the slopes.
        slopes : Evaluation, optional
            Whose slopes to start from, by default those at the point; for a loss with kinks, of
            the loss rounded off.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return alone(self.certifying(at, known, slopes))

    def certifying(
        self, at: Evaluation, known: DualPoint | None = None, slopes: Evaluation | None = None
    ) -> Computation[Certificate]:
        """`certify`, with passes that can be shared."""
        dual = yield from Dual(self).best(at if slopes is None else slopes, known)
        return self.certified_by(at, dual)

    def certified_by(self, at: Evaluation, dual: DualPoint) -> Certificate:
        """What a given dual point proves at a point."""
        rounding, own = self.rounding(at), Dual(self)
        gap = min(gap_between(at, rounding, dual), own.own_gap(at))
        return Certificate(self, at, dual, rounding, gap, self.reference, own.own_noise(at))

    @property
    def constant_value(self) -> float:
        """P of the best constant model, by which gaps are made relative."""
        return self._constant.value

    @property
    def constant_point(self) -> Array:
        """The best constant model: coefficients 0, and the best intercept if there is one."""
        return self.join(np.zeros(self.design.n_features), self._constant.intercept)

    @cached_property
    def _constant(self) -> Constant:
        # it does not depend on the penalty, which is 0 at 0
        if self.folded is None:
            return self.risk.best_constant
        return best_constant(self.risk, self.folded)

    @property
    def reference(self) -> float:
        """P of the best constant model; where that is 0, a value of the size of the loss's unit.

        0 up to rounding: relative to less than that no gap can be small.
        """
        value, unit = self.constant_value, self.unit * min(self.unit, 1.0)
        # of the tiniest targets the squares underflow
        return max(value if value > 64 * EPS * unit else unit, SMALLEST)

    # --- neighbours -------------------------------------------------------------------------

    def at_level(self, level: float) -> Problem:
        """The same samples at another alpha, or at another radius of a constraint."""
        if self.penalty.is_constraint:
            ball: Any = self.penalty  # a dataclass with a radius, as every constraint is
            return replace(self, penalty=replace(ball, radius=float(level)))
        return replace(self, alpha=float(level))

    def reweighted(self, weights: Array) -> Problem:
        """The same samples with other weights, and their sum as the divisor."""
        return replace(self, risk=self.risk.reweighted(weights))

    def with_loss(self, loss: Loss) -> Problem:
        """The same samples under another loss."""
        return self._with_targets(Targets(loss, self.y))

    def with_targets(self, y: Array) -> Problem:
        """The same rows with other targets, as for another class against the rest."""
        return self._with_targets(Targets(self.loss, self.design.vector(y)))

    def _with_targets(self, targets: Targets) -> Problem:
        return replace(self, risk=replace(self.risk, targets=targets))

    def with_features(self, features: NDArray) -> Problem:
        """The same objective on some of the features: the others are 0 at every point."""
        columns = np.append(features, True) if self.fit_intercept else features
        folded = self.folded
        design = rows_of(self.design).columns(features)
        part = None if folded is None else folded.columns(columns)
        return replace(self, risk=self.risk.on(design), folded=part)

    def restrict(self, rows: NDArray) -> Problem:
        """The same objective with only some of the rows in its sum; W does not change."""
        return replace(self, risk=self.risk.restrict(rows))

    def reduce(self, decisions: Decisions) -> Problem:
        """Fold the decided samples away: same optima, fewer rows, the same divisor W."""
        folded = self.fold(decisions)
        if self.folded is not None:
            folded = folded.plus(self.folded)
        return replace(self.restrict(decisions.undecided), folded=folded)

    @np.errstate(over="ignore", invalid="ignore")
    def fold(self, decisions: Decisions) -> Folded:
        """The sums over the samples that are decided, and their errors: of sums and of terms.

        The linear term of a piece is a difference of numbers as large as the quadratic one times
        the target, the constant one of those times the target.
        """
        design, shares = rows_of(self.design), self.shares
        quadratic = np.where(decisions.folded, decisions.quadratic, 0.0)
        linear = np.where(decisions.folded, decisions.linear, 0.0)
        constant = np.where(decisions.folded | decisions.dropped, decisions.constant, 0.0)
        targets = np.where(decisions.folded, target_size(self.loss, self.y), 0.0)
        pulls = np.abs(linear) + quadratic * targets
        loads = np.where(decisions.folded, pulls * design.row_norms, 0.0)
        error = design.sum_error + self.curvature_error
        curved = bool(quadratic.any())
        return Folded(
            q=design.rmatvec(shares * linear),
            r=total(shares, constant),
            Q=on_host(design.gram(shares * quadratic)) if curved else None,
            Q_error=(design.gram_error + self.curvature_error) * (1.0 + 1e-6),
            q_error=error * total(shares, loads) + self.risk.rows.underflow,
            r_error=error * total(shares, np.abs(constant) + targets * pulls),
        )


def reweighted(problems: Sequence[Problem], weights: Array) -> list[Problem]:
    """Problems of the same samples, all classes against the rest, say, with other weights.

    They share what is known of the rows with those weights, whose sum is the divisor.
    """
    rows = problems[0].risk.reweighted(weights).rows
    return [replace(one, risk=replace(one.risk, rows=rows)) for one in problems]


@dataclass(frozen=True, eq=False)
class Evaluate(Request):
    """Value and subgradient of a problem at a point."""

    turn = 5
    problem: Problem
    point: Array

    @classmethod
    def answered(cls, requests: Sequence[Evaluate]) -> Sequence[Evaluation]:
        return evaluate_together([(request.problem, request.point) for request in requests])


def evaluate_together(queries: Sequence[tuple[Problem, Array]]) -> list[Evaluation]:
    """Evaluate problems that share one design at a point each, in one pass over the rows."""
    design = queries[0][0].design
    with np.errstate(over="ignore", invalid="ignore"):
        # before the pass: a kernel's space may forget, in between, how predictions came about
        sizes = [design.size(point) for _, point in queries]
        looks = [Look(problem, size) for (problem, _), size in zip(queries, sizes, strict=True)]
        if len(queries) == 1:
            pred, gradient = design.pass_through(queries[0][1], looks[0])
        else:
            points = np.stack([point for _, point in queries], axis=1)
            pred, gradient = design.pass_through(points, partial(_looks_at, looks))
        preds = [pred] if len(queries) == 1 else columns_of(pred)
        gradients = gradient.reshape(design.n_columns, len(queries)).T
        return [
            problem._evaluation(
                point, sizes[k], preds[k], looks[k].nu, gradients[k].copy(), looks[k].sums
            )
            for k, (problem, point) in enumerate(queries)
        ]


def evaluate_shifted(problem: Problem, at: Evaluation, shifts: Sequence[float]) -> list[Evaluation]:
    """Evaluate a problem at a point with other intercepts: one product serves all of them.

    The predictions are those of the point, shifted.
    """
    points = [np.append(at.point[:-1], at.point[-1] + shift) for shift in shifts]
    with np.errstate(over="ignore", invalid="ignore"):
        # the exact difference of the intercepts, which adding a shift may have rounded
        moved = [point[-1] - at.point[-1] for point in points]
        preds = [at.pred + move for move in moved]
        looks = [Look(problem, problem.design.size(point)) for point in points]
        loads = [look.of_all(pred) for look, pred in zip(looks, preds, strict=True)]
        gradients = problem.design.rmatvec(np.stack(loads).T).T
        parts = zip(points, preds, looks, gradients, strict=True)
        return [
            problem._evaluation(
                point, problem.design.size(point), pred, look.nu, gradient.copy(), look.sums
            )
            for point, pred, look, gradient in parts
        ]


def _looks_at(looks: Sequence[Look], pred: Array, rows: slice) -> Array:
    """The loads of several problems, whose predictions are columns."""
    loads = np.empty_like(pred)
    for k, look in enumerate(looks):
        loads[:, k] = look(pred[:, k], rows)
    return loads


def _scaled(alpha: float, penalty: float) -> float:
    return 0.0 if penalty == 0.0 else alpha * penalty
