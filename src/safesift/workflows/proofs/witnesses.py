"""The steps of a proof: found with all the library knows, and worth what the checker says.

A prover may be as clever as it likes, since whatever it proposes is verified by `safesift_check`.
So it asks the checker itself what each witness proves, with a larger unit roundoff than there is
(`_Cautious`), and claims just that: another machine's order of summation then makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

import safesift_check as checker
from safesift.design.rows import rows_of
from safesift.problem.problem import Problem
from safesift.solvers import Fit, Settings, solve_path
from safesift.workflows.proofs.rows import ProblemRows

Array = NDArray[np.float64]

# the gap, relative, at which a region is looked for: that of the model itself is mostly larger
_POLISHED = 1e-13
# T is stored up to so many columns, where a region without it leaves rows open
_WIDEST = 2000
# so small a share of rows that is left open is not worth a T
_FEW = 5e-4
# the η of regions: TᵀHT is nearly the identity, unless weights had to be lowered
_TIGHT, _FIRM, _LOOSE = 1e-4, 0.1, 0.5
# T is tried so often, with an ε that grows by this factor
_TRIES, _GROWTH = 10, 3.0
# shifts of the intercept that are tried for tangents, in units of the targets
_SHIFTS = tuple(10.0**power for power in range(-6, 1))
_MORE = 1.0 + 1e-6
# so many regions with T
_ROUNDS = 4
# steps of Newton's method for an intercept
_CENTRING = 20


class _Cautious(checker.Floats):
    """Four times the roundoff: what is proved with it is proved on any machine."""

    u, tiny = 4 * checker.Floats.u, 2 * checker.Floats.tiny


@dataclass
class Witness:
    """Steps, the numbers that belong to them, in their order, and what they prove."""

    gap: float
    steps: list[dict[str, Any]] = field(default_factory=list)
    numbers: list[Array] = field(default_factory=list)
    verdicts: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    zero: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def add(self, rule: str, *numbers: Array, **step: Any) -> None:
        self.steps.append({"rule": rule, **step})
        self.numbers += [np.ravel(those) for those in numbers]


def find_witness(
    problem: Problem, point: Array, fit: Fit | None, statement: dict[str, Any], rows: ProblemRows
) -> Witness:
    """Steps that prove a gap at a point, and as many verdicts as possible."""
    before, checker.ar = checker.ar, _Cautious()
    try:
        with np.errstate(all="ignore"):
            return _Search(problem, np.asarray(point, dtype=np.float64), statement, rows).run(fit)
    finally:
        checker.ar = before


@dataclass
class _Search:
    problem: Problem
    point: Array
    statement: dict[str, Any]
    rows: ProblemRows

    def run(self, fit: Fit | None) -> Witness:
        problem, kinked = self.problem, np.isinf(self.problem.loss.smoothness)
        near = self._polished(fit if kinked else None)
        nu = _in_domain(problem, near.dual.nu) if kinked else None
        proved = self.checked = checker.Problem(self.statement, self.rows, problem.y)
        found = Witness(np.inf, numbers=[self.point] if nu is None else [self.point, nu])
        # P of the model less what P is at least, by a point that is as good or better
        better = self._centred(problem.feasible(near.at.point))
        proved.rule_gap(better, nu)
        found.add("gap", better)
        if self.statement["penalty"]["name"] in ("l1", "elastic_net") and not kinked:
            proved.rule_features()
            found.add("features")
        has_pieces = bool(problem.pieces)
        if has_pieces and not kinked and not self.statement["kernel"]:
            self._regions(found, better)
        if has_pieces and (kinked or self.statement["kernel"]):
            self._ball(found)
        gap = (proved.value(self.point)[0] - proved.floor).up
        found.gap = float(gap) * _MORE + 1e-300
        found.verdicts, found.zero = proved.proved, ~proved.alive
        return found

    def _polished(self, known: Fit | None) -> Fit:
        """A fit around which bounds are tight."""
        settings = Settings(tol=_POLISHED, max_iter=1000)
        if known is not None and known.relative_gap <= 1e-10:
            return known
        ((fit,),) = solve_path([[self.problem]], settings, [self.point])
        return fit

    def _centred(self, point: Array) -> Array:
        """The best intercept for these coefficients, to the last digits.

        Slopes then cancel but for rounding, and what a gap pays to have them cancel exactly is
        next to nothing.
        """
        problem, shift, best, least = self.problem, 0.0, 0.0, np.inf
        if not problem.fit_intercept or np.isinf(problem.loss.smoothness):
            return point
        pred = problem.design.matvec(point)
        for _ in range(_CENTRING):
            rest = float(problem.shares @ problem.loss.slope(pred + shift, problem.y))
            curvature = float(problem.shares @ problem.loss.curvature(pred + shift, problem.y))
            if not (abs(rest) < least and curvature > 0):
                break
            best, least, shift = shift, abs(rest), shift - rest / curvature
        coef, intercept = problem.split(point)
        return problem.join(coef, intercept + best)

    # --- regions ----------------------------------------------------------------------------

    def _regions(self, found: Witness, better: Array) -> None:
        """One without T where the penalty is strongly convex, and some with T for what is left."""
        point, alive = better.copy(), self.checked.alive
        point[: len(alive)][~alive] = 0.0
        multiplier = self._multiplier(point)
        self._mean_form(found, point, multiplier)
        for _ in range(_ROUNDS):
            if not (self._open() and self._round(found, point, multiplier)):
                return

    def _open(self) -> bool:
        """Whether more rows are left than T is worth, and T is small enough."""
        n_columns = int(self.checked.alive.sum()) + self.problem.fit_intercept
        return float((self.checked.proved == 0).mean()) > _FEW and 0 < n_columns <= _WIDEST

    def _round(self, found: Witness, point: Array, multiplier: float) -> bool:
        """A region with T and the features that it rules out; whether anything was proved.

        A region bounds the coefficients, too, which adds to the curvature of kinks, and a feature
        that is ruled out can be the one that made H singular: so there may be more in another.
        """
        checked = self.checked
        before = {name: getattr(checked, name) for name in ("proved", "alive", "moved", "slopes")}
        before["reach"] = checked.reach.copy()
        region = self._square_form(point, multiplier)
        if region is None:
            return False
        if checked.sparse:
            checked.rule_features()
        fewer = bool((before["alive"] & ~checked.alive).any())
        if not (fewer or ((before["proved"] == 0) & (checked.proved != 0)).any()):
            vars(checked).update(before)
            return False
        T, step = region
        found.add("region", point.copy(), T, **step)
        if fewer:
            found.add("features")
            point[: len(checked.alive)][~checked.alive] = 0.0
        return True

    def _multiplier(self, point: Array) -> float:
        """That of a ball: how hard the constraint pulls."""
        penalty = self.statement["penalty"]
        if "radius" not in penalty:
            return 0.0
        coef, _ = self.problem.split(point)
        gradient = self.problem.evaluate(point).loss_gradient[: len(coef)]
        if penalty["name"] == "l1_ball":
            used = coef != 0
            return float(np.abs(gradient[used]).mean()) if used.any() else 0.0
        size = float(coef @ coef)
        return max(0.0, -float(gradient @ coef) / size) if size > 0 else 0.0

    def _accepted(self, point: Array, step: dict[str, Any], witness: Array) -> bool:
        try:
            self.checked.rule_region(point, step, witness)
        except checker.Unproved:
            return False
        return True

    def _mean_form(self, found: Witness, point: Array, multiplier: float) -> None:
        """The region that needs no T: κ > 0, and an intercept that the rows hold in place."""
        ball = self.statement["penalty"]["name"] == "l2_ball" and multiplier > 0
        if not (self.problem.strong_convexity > 0 or ball):
            return
        alive, mean, weights = self.checked.alive, np.zeros(0), self._weights(point)
        step = {"form": "mean", "eta": _TIGHT, "epsilon": 0.0, "multiplier": multiplier}
        step["beta"] = 0.0
        for share in (1.0 - 0.5 * _TIGHT, 0.7):
            if self.problem.fit_intercept:
                total = float(weights.sum())
                if not total > 0:
                    return
                mean = (self.problem.design.rmatvec(weights)[: len(alive)] / total)[alive]
                step["beta"] = float(np.sqrt(share / total))
            if self._accepted(point, step, mean):
                found.add("region", point, mean, **step)
                return
            step["eta"] = _LOOSE

    def _weights(self, point: Array, reach: Array | None = None) -> Array:
        """Shares times curvatures at a point, or the least secants within some reach."""
        problem = self.problem
        pred = problem.design.matvec(point)
        if reach is None:
            return problem.shares * problem.loss.curvature(pred, problem.y)
        loss = checker.Loss(self.statement["loss"], problem.y, self.rows.epsilon)
        error = np.full_like(pred, 1e-14) * (1.0 + np.abs(pred))
        return problem.shares * loss.secant_floor(checker.Near(pred, error), 2.0 * reach)

    def _square_form(self, point: Array, multiplier: float) -> tuple[Array, dict] | None:
        """The region with T, T⁻ᵀT⁻¹ the Hessian of what surely curves; tried with less and less."""
        problem, alive = self.problem, self.checked.alive
        columns = np.append(alive, True) if problem.fit_intercept else alive
        weights, etas, epsilon = self._weights(point), [_TIGHT], 0.0
        base = self._penalty_curvature(point, multiplier)[columns]
        penalised = np.append(np.ones(int(alive.sum())), np.zeros(int(problem.fit_intercept)))
        for _ in range(_TRIES):
            gram = rows_of(problem.with_features(alive).design).gram(weights)
            try:
                T = _whitening(gram + np.diag(base + epsilon * penalised))
            except LinAlgError:
                epsilon = max(100.0 * epsilon, 1e-13 * float(gram.diagonal().max()))
                continue
            step = {"form": "square", "epsilon": epsilon, "multiplier": multiplier, "beta": 0.0}
            for eta in etas:
                if self._accepted(point, step | {"eta": eta}, T.ravel()):
                    return T, step | {"eta": eta}
            g = problem.evaluate(point).subgradient[columns]
            rows = problem.with_features(alive).design.matvec(T)
            coef, _ = problem.split(point)
            far = (np.abs(coef) + self.checked.reach)[alive]
            slack = epsilon * min(
                float(far @ far), (self.checked.whole + np.linalg.norm(coef)) ** 2
            )
            steep = np.linalg.norm(T.T @ g) * 2.0 + 1e-15 + np.sqrt(slack)
            reach = np.linalg.norm(rows, axis=1) * steep + 1e-300
            if not np.isfinite(reach).all():
                break
            weights, etas = self._weights(point, reach / (1.0 - _LOOSE)), [_FIRM, _LOOSE]
            epsilon = max(_GROWTH * epsilon, 1e-13 * float(gram.diagonal().max()))
        return None

    def _penalty_curvature(self, point: Array, multiplier: float) -> Array:
        """A little less than the D of the checker."""
        problem, p = self.problem, self.problem.design.n_features
        coef, _ = problem.split(point)
        D = np.zeros(problem.design.n_columns)
        name = self.statement["penalty"]["name"]
        D[:p] = 0.5 * multiplier if name == "l2_ball" else problem.strong_convexity
        tau = multiplier if name == "l1_ball" else problem.penalty.sparse_threshold(problem.alpha)
        if tau > 0:
            gradient = problem.evaluate(point).loss_gradient[:p]
            room = np.maximum(tau - np.abs(gradient), 0.0) / self.checked.reach
            D[:p] += np.where(coef == 0, room, 0.0)
        return D * (1.0 - 1e-6)

    # --- balls ------------------------------------------------------------------------------

    def _ball(self, found: Witness) -> None:
        """The gap ball around the point of the gap, with tangents."""
        shifts = self._shifts() if self.problem.fit_intercept else []
        try:
            self.checked.rule_ball(shifts)
        except checker.Unproved:
            return
        found.add("ball", shifts=[float(shift) for shift in shifts])

    def _shifts(self) -> list[float]:
        """The two shifts of the intercept whose tangents bound it best."""
        best: dict[int, tuple[float, float]] = {}
        for size in _SHIFTS:
            for shift in (-size * self.problem.unit, size * self.problem.unit):
                try:
                    side, offset = self.checked.tangent(np.float64(shift))
                except checker.Unproved:
                    continue
                if side not in best or abs(offset) < best[side][0]:
                    best[side] = abs(float(offset)), shift
        return [shift for _, shift in best.values()]


def _whitening(H: Array) -> Array:
    """T with TᵀHT = I."""
    factor = cholesky(H, lower=True)
    return solve_triangular(factor, np.eye(len(H)), lower=True).T


def _in_domain(problem: Problem, nu: Array) -> Array:
    """A dual point, moved into the domain of the conjugates, 0 where rows have no weight."""
    lower, upper = problem.loss.dual_interval(problem.y)
    return np.where(problem.weights > 0, np.clip(nu, lower, upper), 0.0)
