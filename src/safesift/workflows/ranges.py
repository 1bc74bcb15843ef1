"""Decisions that hold for every alpha in an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.threads import computes
from safesift.design.factory import check_finite
from safesift.losses import Loss
from safesift.parameters import check_positive
from safesift.penalties import Penalty
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Fold, check_fold, decide
from safesift.problem.inputs import check_point, make_problems
from safesift.problem.problem import Problem
from safesift.problem.scales import column_names
from safesift.problem.training import Training, check_points
from safesift.regions import Curvature
from safesift.regions.base import Intersection
from safesift.regions.center import Center
from safesift.solvers import Fit, Settings, solve_path, spending
from safesift.workflows.verdicts import Screened, ScreeningResult, Verdicts

Array = NDArray[np.float64]

# the relative gap to which the centre of a range is solved
_TOL = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class RangeResult(Verdicts):
    """What `screen_range` found, for every alpha of an interval at once.

    Attributes
    ----------
    alpha_range : (float, float)
        Of alphas.
    kept : mask of shape (n_samples,)
        False where the sample is dropped for all of them.
    undecided : mask of shape (n_samples,)
    lower, upper : arrays of shape (n_samples,), or (n_samples, n_classes) with several classes
        Bounds on the decision value at every optimum for every alpha of the interval.
    certified : bool
    coef, intercept
        The (first) centre.
    parts : tuple of Screened
        One for each problem.
    """

    alpha_range: tuple[float, float] = field(kw_only=True)

    @computes
    def result(self, alpha: float) -> ScreeningResult:
        """The same decisions for one alpha of the interval: one pass over the data."""
        low, high = self.alpha_range
        if not low <= check_positive("alpha", alpha) <= high:
            raise ValueError(
                f"alpha={alpha!r} is outside the interval [{low!r}, {high!r}] that was certified: "
                "screen a wider range."
            )
        parts = tuple(_at_level(part, alpha) for part in self.parts)
        training = replace(self.training, alpha=alpha)
        return ScreeningResult(
            parts, training, self.classes, self.feature_names, n_jobs=self.n_jobs
        )


def _at_level(part: Screened, alpha: float) -> Screened:
    part.problem.check_unchanged()
    problem = part.problem.at_level(alpha)
    with spending() as spent:
        certificate = problem.certify(problem.evaluate(part.at.point))
    return replace(part, fit=Fit.at_centre(certificate, part.decisions, _TOL, spent))


@computes
def screen_range(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "squared_hinge",
    penalty: str | Penalty = "l2",
    alpha_range: tuple[float, float],
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    coef: Any = None,
    intercept: Any = 0.0,
    screening: str | Curvature = "auto",
    fold: Fold = "auto",
    n_jobs: int | None = None,
) -> RangeResult:
    """Certify decisions for every alpha in an interval, from one centre or a few.

    For a fixed subgradient of the penalty the gradient of the objective is affine in alpha, and
    with the curvature of the small end the bounds of a curvature region are convex in alpha: its
    two ends decide for all alphas between them.

    Parameters
    ----------
    X, y, loss, penalty, l1_ratio, fit_intercept, sample_weight, fold
        As in `screen`.
    alpha_range : (float, float)
        The ends of the interval, low and high.
    coef : array of shape (n_features,) or (n_centers, n_features), optional
        One approximate solution or more, for any alpha of the interval; the best bound of all
        counts. With more than two classes a row for each of them. By default the solution for the
        geometric mean of the ends.
    intercept : float or array, default=0.0
        Goes with `coef`.
    screening : Curvature or "auto", default="auto"
        With its parameters.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    RangeResult

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=500) > 0
    >>> found = ss.screen_range(X, y, alpha_range=(0.01, 0.011))
    >>> bool(found.undecided.sum() < 50), bool(found.result(0.0105).certified)
    (True, True)
    """
    check_fold(fold)
    low, high = _check_interval(alpha_range)
    region = Curvature() if screening == "auto" else screening
    if not isinstance(region, Curvature):
        raise TypeError(
            f"screening must be 'auto' or a regions.Curvature for a range, got {screening!r}."
        )
    training = Training(
        loss, penalty, math.sqrt(low) * math.sqrt(high), l1_ratio, bool(fit_intercept)
    )
    inputs = make_problems(X, y, sample_weight=sample_weight, **vars(training))
    problems = inputs.problems
    given = None if coef is None else _check_centers(problems, coef, intercept)
    check_finite(problems[0].design, columns=column_names(X))
    centers = _solutions(problems) if given is None else given
    parts = [_screened(certificates, (low, high), region, fold) for certificates in centers]
    for problem in problems:
        problem.seal()
    names, ends = column_names(X), (low, high)
    return RangeResult(
        tuple(parts), training, inputs.classes, names, n_jobs=n_jobs, alpha_range=ends
    )


def _solutions(problems: Sequence[Problem]) -> list[list[Certificate]]:
    """What is proved at the solution of every problem."""
    (fits,) = solve_path([problems], Settings(_TOL, decided=()))
    return [[fit.certificate] for fit in fits]


def _screened(
    certificates: Sequence[Certificate], ends: tuple[float, float], region: Curvature, fold: Fold
) -> Screened:
    """One problem, by the best bounds that its centres give."""
    problem = certificates[0].problem
    with spending() as spent:
        sets = [region.build_for(Center(certificate, ends)) for certificate in certificates]
        test_set = sets[0] if len(sets) == 1 else Intersection(tuple(sets))
        bounds = test_set.own_bounds(problem)
    fit = Fit.at_centre(certificates[0], decide(problem, bounds, fold), _TOL, spent)
    return Screened(fit, test_set, bounds)


def _check_interval(alpha: Any) -> tuple[float, float]:
    try:
        low, high = alpha
    except (TypeError, ValueError):
        raise TypeError(f"alpha_range must be a pair (low, high), got {alpha!r}.") from None
    low, high = check_positive("alpha_range[0]", low), check_positive("alpha_range[1]", high)
    if low > high:
        raise ValueError(f"alpha_range must be (low, high) with low <= high, got {alpha!r}.")
    return low, high


def _check_centers(
    problems: Sequence[Problem], coef: Any, intercept: Any
) -> list[list[Certificate]]:
    """Solutions as the user passes them: for several classes one each, for a problem several."""
    if len(problems) > 1:
        points = check_points(problems, coef, intercept)
        return [[_certified(one, at)] for one, at in zip(problems, points, strict=True)]
    (problem,) = problems
    return [[_certified(problem, at) for at in _check_several(problem, coef, intercept)]]


def _certified(problem: Problem, point: Array) -> Certificate:
    return problem.certify(problem.evaluate(problem.feasible(point)))


def _check_several(problem: Problem, coef: Any, intercept: Any) -> list[Array]:
    try:
        coef = np.asarray(coef, dtype=np.float64)
        intercept = np.asarray(intercept, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            "coef and intercept must hold numbers: a solution, or several as rows of a matrix."
        ) from None
    rows = np.atleast_2d(coef)
    if coef.ndim > 2 or len(rows) == 0 or intercept.shape not in ((), (len(rows),)):
        raise ValueError(
            f"coef has shape {coef.shape} and intercept {intercept.shape}: pass one solution, or "
            "one row and one intercept for each."
        )
    intercepts = np.broadcast_to(intercept, len(rows))
    return [check_point(problem, row, float(c)) for row, c in zip(rows, intercepts, strict=True)]
