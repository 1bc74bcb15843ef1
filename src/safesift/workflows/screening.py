"""Screening: the samples that provably cannot change a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.design.factory import check_finite
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Bounds, Decisions, Fold, check_fold, decide
from safesift.problem.evaluation import Evaluation
from safesift.problem.inputs import check_point, make_problems
from safesift.problem.problem import Problem
from safesift.regions import REGIONS, Region, TestSet
from safesift.regions.center import Center
from safesift.regions.features import zero_features
from safesift.registry import provided, resolve
from safesift.solvers import rough_solution

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Check:
    """Whether a solution confirms the decisions: see `ScreeningResult.check`.

    Attributes
    ----------
    violations : mask
        Decided samples that are not on their piece at the solution; they must come back.
    gap : float
        Duality gap of the solution on *all* rows.
    """

    violations: Mask
    gap: float

    @property
    def passed(self) -> bool:
        """Whether every decided sample is on its piece at the solution."""
        return not self.violations.any()


@dataclass(frozen=True, eq=False)
class Screened:
    """A region, its bounds on the decision values at every optimum, and the decisions."""

    certificate: Certificate
    region: TestSet
    bounds: Bounds
    decisions: Decisions
    classes: NDArray | None = None

    @property
    def problem(self) -> Problem:
        return self.certificate.problem

    @property
    def at(self) -> Evaluation:
        return self.certificate.at

    @property
    def lower(self) -> Array:
        return self.bounds.lower

    @property
    def upper(self) -> Array:
        return self.bounds.upper

    @property
    def certified(self) -> bool:
        return self.region.certified

    @property
    def kept(self) -> Mask:
        """False where the sample is dropped: it cannot change the model. The others may."""
        return ~self.decisions.dropped

    @property
    def undecided(self) -> Mask:
        """Rows still needed once the decided ones are folded."""
        return self.decisions.undecided

    @property
    def coef(self) -> Array:
        return self.problem.split(self.at.point)[0]

    @property
    def intercept(self) -> float:
        return self.problem.split(self.at.point)[1]


@dataclass(frozen=True, eq=False)
class ScreeningResult(Screened):
    """What `screen` found.

    Attributes
    ----------
    lower, upper : arrays of shape (n_samples,)
        Bounds on the decision value a_iᵀx* + c* at every optimum.
    zero_coef : mask of shape (n_features,)
        Features certified to be zero at every optimum.
    certified : bool
        False as soon as a guess (a guessed radius, a cut from a subset) entered.
    region : TestSet
        The set that was used.
    coef, intercept
        The centre: the given solution, or that of the short run of a solver.
    classes : array or None
        The two labels that stand for -1 and 1.
    problem : Problem
    decisions : Decisions
    """

    @property
    def gap(self) -> float:
        """Duality gap at the centre, on all rows."""
        return self.certificate.gap

    @cached_property
    def zero_coef(self) -> Mask:
        """Features certified to be zero at every optimum (under a penalty with an l1 part)."""
        zero = zero_features(Center.of(self.certificate), 2.0 * self.gap)
        if not self.certified:
            return zero
        return zero | self.region.zero_features(self.problem.design.n_features)

    @cached_property
    def reduced(self) -> Problem:
        """The reduced problem: `folded.Q`, `folded.q`, `folded.r` and the undecided rows.

        It has exactly the optima of the full one. Computed when first asked for: one pass, and a
        Gram matrix of the samples on quadratic pieces.
        """
        return replace(self.problem.reduce(self.decisions), certified=self.certified)

    @property
    def alpha_kept(self) -> float:
        """The alpha to use on the kept rows alone with a solver that averages over its rows.

        Dropping rows must not change the divisor W, so alpha grows by W / W_kept.
        """
        kept = float(self.problem.weights[self.kept].sum())
        return self.problem.alpha * self.problem.divisor / kept if kept > 0 else np.inf

    @cached_property
    def score(self) -> Array:
        """Ranks the samples: the larger, the harder and the more informative.

        How far the interval [lower, upper] sticks out of the flat piece, negative where the
        sample is dropped. For a loss without a flat piece, the largest slope over the interval.
        """
        return flat_excess(self.problem, self.bounds)

    def check(self, coef: Any, intercept: float = 0.0) -> Check:
        """Whether a solution of the reduced problem confirms the decisions, in one pass.

        If it solves the problem of the kept (or reduced) rows and every decided sample lies on
        its piece at it, it solves the full problem, whatever region the decisions came from.
        """
        at = self.problem.evaluate(check_point(self.problem, coef, intercept))
        margin = self.problem.prediction_error(at)
        decisions = self.decisions
        on_piece = (at.pred - margin > decisions.lower) & (at.pred + margin < decisions.upper)
        violations = ~on_piece & ~decisions.undecided
        return Check(violations, self.problem.certify(at).gap)

    def repaired(self, check: Check) -> ScreeningResult:
        """The same result with the violating samples brought back."""
        return replace(self, decisions=self.decisions.without(check.violations))

    def summary(self) -> str:
        """What was kept and why, as a small table."""
        return provided("summary")(self)


def flat_excess(problem: Problem, bounds: Bounds) -> Array:
    """How far intervals of predictions stick out of the flat piece: `ScreeningResult.score`."""
    for piece in problem.pieces:
        if piece.is_flat:
            with np.errstate(invalid="ignore"):
                # an infinite end is never exceeded: fmax passes over inf − inf
                return np.fmax(piece.lower - bounds.lower, bounds.upper - piece.upper)
    ends = [np.abs(problem.loss.slope(end, problem.y)) for end in bounds]
    return np.maximum(*ends)


def screen(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "squared_hinge",
    penalty: str | Penalty = "l2",
    alpha: float = 1e-4,
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    coef: Any = None,
    intercept: float = 0.0,
    screening: str | Region = "auto",
    fold: Fold = "auto",
) -> ScreeningResult:
    """Find the samples that provably cannot change the optimum of a regularised empirical risk.

    The risk is (1/W) Σ s_i f(a_iᵀx + c; y_i) + alpha·R(x) with W = Σ s_i.

    Parameters
    ----------
    X : array, CSR matrix, pandas or polars frame, Design, of shape (n_samples, n_features)
        Used as it is, float32 or float64 (or integers), in any order. A `safesift.design.Design`
        must have been told of the intercept.
    y : array of shape (n_samples,), or (n_samples, 2) for intervals
        Any two labels for a classification loss, numbers for a regression loss, lower and upper
        ends for an interval loss (-inf and inf allowed; one column means width zero).
    loss : str or Loss, default="squared_hinge"
        A name of `safesift.losses.LOSSES` or an object with its parameters.
    penalty : str or Penalty, default="l2"
        A name of `safesift.penalties.PENALTIES` or an object with its parameters.
    alpha : float, default=1e-4
        Weight of the penalty (λ in the paper). For decisions that hold for a whole interval of
        alphas see `screen_range`.
    l1_ratio : float in [0, 1), optional
        Share of the l1 norm in penalty="elastic_net", 0.5 by default; None with any other.
    fit_intercept : bool, default=True
        Add an intercept that is not penalised.
    sample_weight : array of shape (n_samples,), optional
        Weight 0 is exactly removal, weight 2 exactly repetition.
    coef : array of shape (n_features,), optional
        An approximate solution, from any library: the centre of the regions. By default a short
        run of a solver makes one.
    intercept : float, default=0.0
        Goes with `coef`.
    screening : str or Region, default="auto"
        The region that decides: a name of `safesift.regions.REGIONS`, or an object.
    fold : {"auto", "always", "never"}, default="auto"
        Whether samples on a quadratic piece go into a Gram matrix; see `decide`.

    Returns
    -------
    ScreeningResult

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 5))
    >>> y = np.where(X[:, 0] + 0.1 * rng.normal(size=1000) > 0, "yes", "no")
    >>> result = ss.screen(X, y, loss="squared_hinge", alpha=1e-2)
    >>> bool(result.certified), bool(result.kept.sum() < 600)
    (True, True)
    """
    check_fold(fold)
    region = resolve("screening", screening, REGIONS, Region)
    inputs = make_problems(
        X, y, loss=loss, penalty=penalty, alpha=alpha, l1_ratio=l1_ratio,
        fit_intercept=fit_intercept, sample_weight=sample_weight,
    )  # fmt: skip
    problem = inputs.problem
    region.validate(problem)
    point = None if coef is None else problem.feasible(check_point(problem, coef, intercept))
    check_finite(problem.design)
    at = rough_solution(problem) if point is None else problem.evaluate(point)
    certificate = problem.certify(at)
    test_set = region.build(certificate)
    bounds = test_set.own_bounds(problem)
    decisions = decide(problem, bounds, fold)
    return ScreeningResult(certificate, test_set, bounds, decisions, inputs.classes)


# --- solve on what was kept, check on everything, bring back what was dropped wrongly -----


@dataclass(frozen=True, eq=False)
class Repaired:
    """A solution that every dropped sample confirms.

    Attributes
    ----------
    coef, intercept
        The solution.
    result : ScreeningResult
        The decisions that held.
    check : Check
        The last check; `check.gap` is the duality gap on all rows.
    n_rounds : int
        How often the kept rows were solved.
    """

    coef: Array
    intercept: float
    result: ScreeningResult
    check: Check
    n_rounds: int


def solve_and_repair(
    result: ScreeningResult,
    solve: Callable[[Problem], tuple[Array, float]],
    max_rounds: int = 20,
) -> Repaired:
    """Solve the reduced problem until no decided sample contradicts the solution.

    Ends in the right answer even where the region was a guess: each round brings back the samples
    that are not on their piece, and a round in which there is none proves the solution optimal
    for the full problem, as far as `solve` is exact.

    Parameters
    ----------
    result : ScreeningResult
    solve : callable
        Takes a reduced `Problem`, returns coefficients and intercept.
    max_rounds : int, default=20
        After so many, everything is kept.

    Returns
    -------
    Repaired
    """
    for n_rounds in range(1, max_rounds + 1):
        coef, intercept = solve(result.reduced)
        check = result.check(coef, intercept)
        if check.passed:
            return Repaired(np.asarray(coef), float(intercept), result, check, n_rounds)
        result = result.repaired(check)
    everything = Check(np.ones(len(result.kept), dtype=bool), np.inf)
    result = result.repaired(everything)
    coef, intercept = solve(result.reduced)
    check = result.check(coef, intercept)
    return Repaired(np.asarray(coef), float(intercept), result, check, max_rounds + 1)
