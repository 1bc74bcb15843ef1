"""The steps of a proof: found with all the library knows, and worth what the checker says.

A prover may be as clever as it likes, since whatever it proposes is verified by `safesift_check`.
So it asks the checker itself what each witness proves, with a larger unit roundoff than there is
(`_Cautious`), and claims just that: another machine's order of summation then makes no difference.
"""

from __future__ import annotations

import copy
import io
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
# so small a share of rows that is left open is not worth another step
_FEW = 5e-5
# balls are tried so often, as long as they become smaller by this factor
_BALLS, _SMALLER = 4, 0.7
# the η of regions: TᵀHT is nearly the identity, unless weights had to be lowered
_TIGHT, _FIRM, _LOOSE = 1e-4, 0.1, 0.5
# T is tried so often, with an ε that grows by this factor
_TRIES, _GROWTH = 10, 3.0
# bounds on the intercept are looked for between these powers of 10, in units of the targets
_POWERS, _HALVINGS = (-14.0, 4.0), 10
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
    """Rules, the numbers that belong to them, in their order, and what they prove."""

    gap: float
    rules: list[str] = field(default_factory=list)
    numbers: list[Array] = field(default_factory=list)
    verdicts: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    zero: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def add(self, rule: str, *numbers: Any) -> None:
        self.rules.append(rule)
        self.numbers += [np.ravel(those) for those in numbers]


def packed(verdicts: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Two bits for each row, the first in the lowest."""
    four = np.zeros((-(-len(verdicts) // 4), 4), dtype=np.uint8)
    four.ravel()[: len(verdicts)] = verdicts
    return (four << np.array([0, 2, 4, 6], dtype=np.uint8)).sum(axis=1, dtype=np.uint8)


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
        # P of the model less what P is at least, by a point that is as good or better
        better = self._full(self._centred(problem.feasible(near.at.point)))
        self.multiplier = self._multiplier(better)
        nu = _in_domain(problem, near.dual.nu) if kinked else np.zeros(0)
        for rounds in range(_ROUNDS, -2, -1):
            found = self._steps(better, nu, rounds)
            if self._holds(found):
                break
        return found

    def _steps(self, better: Array, nu: Array, rounds: int) -> Witness:
        """All that is proved around a point, with so many regions; below 0 without balls."""
        problem, kinked = self.problem, np.isinf(self.problem.loss.smoothness)
        proved = checker.Problem(self.statement, self.rows, problem.y, self.multiplier)
        self.checked, model = proved, self._full(self.point)
        found = Witness(np.inf, numbers=[np.array([self.multiplier]), model, nu, better])
        proved.rule_gap(better, nu)
        if self._prunes():
            self._features(found)
        regional = not kinked and not self.statement["kernel"]
        if problem.pieces and rounds >= 0 and (proved.strong or not regional):
            self._ball(found)
        if problem.pieces and regional:
            self._regions(found, better, rounds)
        gap = (proved.value(model)[0] - proved.floor).up
        found.gap = float(gap) * _MORE + 1e-300
        found.verdicts, found.zero = proved.proved, ~proved.alive[:-1]
        return found

    def _holds(self, found: Witness) -> bool:
        """Whether the checker accepts it with the roundoff that there is, too.

        Bounds are tighter then and weights of a region larger, but T was made for those of the
        larger roundoff, and Gershgorin's bound does not grow with the weights. And a bound on the
        intercept may come to lie where a row has a kink, whose slopes are any there.
        """
        rows, tape = copy.copy(self.rows), io.BytesIO(np.concatenate(found.numbers).tobytes())
        rows.target = np.reshape(self.problem.y, (rows.n, -1))
        stated = {"labels": None, "positives": [None], "gaps": [found.gap], "rules": [found.rules]}
        before, checker.ar = checker.ar, checker.Floats()
        try:
            checker.check_part(self.statement | stated, rows, 0, tape, packed(found.verdicts))
        except checker.Unproved:
            return False
        finally:
            checker.ar = before
        return True

    def _full(self, point: Array) -> Array:
        """A point of the checker, which ends with an intercept, be it 0."""
        return point if self.problem.fit_intercept else np.append(point, 0.0)

    def _own(self, point: Array) -> Array:
        """A point of the library."""
        return point if self.problem.fit_intercept else point[:-1]

    def _prunes(self) -> bool:
        """Whether there is a rule that rules features out."""
        checked = self.checked
        return bool(checked.tau.mid > 0 and checked.smooth and not checked.is_ball)

    def _features(self, found: Witness) -> bool:
        """Rule out what can be; whether anything is new."""
        checked, p = self.checked, self.rows.p
        checked.rule_features(np.zeros(p, dtype=bool))
        zero = np.array(checked.vanish, dtype=bool)
        fewer = bool((zero & checked.alive[:p]).any())
        if fewer:
            checked.alive[:p][zero] = False
            found.add("features", zero.astype(np.float64))
        return fewer

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

    def _regions(self, found: Witness, better: Array, rounds: int) -> None:
        """Some with T, for what is left open."""
        point = better.copy()
        for _ in range(rounds):
            point[~self.checked.alive] = 0.0
            if not (self._open() and self._round(found, point)):
                return

    def _open(self) -> bool:
        """Whether more rows are left than T is worth, and T is small enough."""
        n_columns = int(self.checked.alive.sum())
        return self._left() and 0 < n_columns <= _WIDEST

    def _round(self, found: Witness, point: Array) -> bool:
        """A region with T and the features that it rules out; whether anything was proved.

        A region bounds the coefficients, too, which adds to the curvature of kinks, and a feature
        that is ruled out can be the one that made H singular: so there may be more in another.
        """
        checked, tried = self.checked, Witness(np.inf)
        names = ("proved", "alive", "moved", "slopes", "reach", "whole")
        before = {name: getattr(checked, name) for name in names}
        checked.alive = checked.alive.copy()
        region = self._square_form(point)
        if region is None:
            return False
        tried.add("region", point.copy(), *region)
        fewer = self._prunes() and self._features(tried)
        if not (fewer or ((before["proved"] == 0) & (checked.proved != 0)).any()):
            vars(checked).update(before)
            return False
        found.rules += tried.rules
        found.numbers += tried.numbers
        return True

    def _multiplier(self, point: Array) -> float:
        """That of a ball: how hard the constraint pulls."""
        penalty = self.statement["penalty"]
        if "radius" not in penalty:
            return 0.0
        gradient = self.problem.evaluate(self._own(point)).loss_gradient[: self.rows.p]
        if penalty["name"] == "l1_ball":
            return float(np.abs(gradient).max())
        return max(float(np.linalg.norm(gradient)) / penalty["radius"], 1e-30)

    def _weights(self, point: Array, reach: Array | None = None) -> Array:
        """Shares times curvatures at a point, or the least secants within some reach."""
        problem = self.problem
        pred = problem.design.matvec(self._own(point))
        if reach is None:
            return problem.shares * problem.loss.curvature(pred, problem.y)
        error = np.full_like(pred, 1e-14) * (1.0 + np.abs(pred))
        floor = self.checked.loss.secant_floor(checker.Near(pred, error), 2.0 * reach)
        return problem.shares * floor

    def _square_form(self, point: Array) -> tuple[list[float], Array] | None:
        """The region with T, T⁻ᵀT⁻¹ the Hessian of what surely curves; tried with less and less."""
        problem, alive, p = self.problem, self.checked.alive, self.rows.p
        columns = alive if problem.fit_intercept else alive[:-1]
        weights, etas, epsilon = self._weights(point), [_TIGHT], 0.0
        base = self._penalty_curvature(point)[columns]
        penalised = (np.arange(p + 1) < p)[alive].astype(np.float64)
        design = problem.with_features(alive[:p]).design
        for _ in range(_TRIES):
            gram = rows_of(design).gram(weights)
            try:
                T = _whitening(gram + np.diag(base + epsilon * penalised))
            except LinAlgError:
                epsilon = max(100.0 * epsilon, 1e-13 * float(gram.diagonal().max()))
                continue
            for eta in etas:
                if self._accepted(point, eta, epsilon, T):
                    return [eta, epsilon], T
            g = problem.evaluate(self._own(point)).subgradient[columns]
            far = self.checked.whole + np.linalg.norm(point[:p])
            steep = np.linalg.norm(T.T @ g) * 2.0 + 1e-15 + np.sqrt(epsilon) * far
            reach = np.linalg.norm(design.matvec(T), axis=1) * steep + 1e-300
            if not np.isfinite(reach).all():
                break
            weights, etas = self._weights(point, reach / (1.0 - _LOOSE)), [_FIRM, _LOOSE]
            epsilon = max(_GROWTH * epsilon, 1e-13 * float(gram.diagonal().max()))
        return None

    def _accepted(self, point: Array, eta: float, epsilon: float, T: Array) -> bool:
        try:
            self.checked.rule_region(point, eta, epsilon, T)
        except checker.Unproved:
            return False
        return True

    def _penalty_curvature(self, point: Array) -> Array:
        """A little less than the D of the checker."""
        checked, problem, p = self.checked, self.problem, self.rows.p
        D = np.zeros(problem.design.n_columns)
        D[:p] = float(checked.kappa.mid) * (0.5 if checked.is_ball else 1.0)
        if checked.tau.mid > 0:
            gradient = problem.evaluate(self._own(point)).loss_gradient[:p]
            room = np.maximum(float(checked.tau.mid) - np.abs(gradient), 0.0) / checked.reach[:p]
            D[:p] += np.where(point[:p] == 0, room, 0.0)
        return D * (1.0 - 1e-6)

    # --- balls ------------------------------------------------------------------------------

    def _ball(self, found: Witness) -> None:
        """Gap balls around the point of the gap, with the tightest bounds on the intercept.

        These make the next ball smaller, where there is a rest of slopes that do not cancel.
        """
        for _ in range(_BALLS):
            close, fitted = self.checked.close, self.problem.fit_intercept
            bounds = [self._bound(-1.0), self._bound(1.0)] if fitted else [0.0, 0.0]
            try:
                self.checked.rule_ball(*bounds)
            except checker.Unproved:
                return
            found.add("ball", bounds)
            if not (self._left() and self.checked.close < _SMALLER * close):
                return

    def _left(self) -> bool:
        """Whether more rows are open than another step is worth."""
        return float((self.checked.proved == 0).mean()) > _FEW

    def _bound(self, side: float) -> float:
        """The smallest bound on the intercept that the checker accepts, to some 2 %.

        Whether a bound is one depends on its size monotonously, so that the power is halved.
        """
        checked = self.checked
        pred = checked.predict(checked.model)[0]
        moved = checker.near(checked.row_norms()) * checked.close
        least, most = _POWERS
        for _ in range(_HALVINGS):
            power = 0.5 * (least + most)
            bound = side * 10.0**power * self.problem.unit
            slopes = checked.loss.value_and_slope(pred - moved * side + bound)[1]
            steep = (checked.share * slopes).sum()
            fine = steep.low > 0 if side > 0 else steep.up < 0
            least, most = (least, power) if fine else (power, most)
        return side * 10.0**most * self.problem.unit


def _whitening(H: Array) -> Array:
    """T with TᵀHT = I."""
    factor = cholesky(H, lower=True)
    return solve_triangular(factor, np.eye(len(H)), lower=True).T


def _in_domain(problem: Problem, nu: Array) -> Array:
    """A dual point, moved into the domain of the conjugates, 0 where rows have no weight."""
    lower, upper = problem.loss.dual_interval(problem.y)
    return np.where(problem.weights > 0, np.clip(nu, lower, upper), 0.0)
