"""Screening: the samples that provably cannot change a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.threads import computes
from safesift.design.factory import check_finite
from safesift.design.placing import placed
from safesift.losses import Loss
from safesift.parameters import check_positive
from safesift.penalties import Penalty
from safesift.problem.decisions import Bounds, Decisions, Fold, check_fold, decide
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.problem.scales import column_names
from safesift.problem.training import Training, check_points
from safesift.regions import Region, TestSet
from safesift.regions.ball import Balls
from safesift.solvers import (
    Fit,
    Screening,
    Settings,
    choose,
    print_history,
    rough_solution,
    solve_path,
    spending,
)
from safesift.workflows.scale.on_device import samples_on_device
from safesift.workflows.scale.results import rows_in_blocks, screen_blocks
from safesift.workflows.verdicts import Screened, ScreeningResult

Array = NDArray[np.float64]
Effort = Literal["full", "quick"]


@computes
def screen(
    X: Any,
    y: Any = None,
    *,
    target: Any = None,
    loss: str | Loss = "squared_hinge",
    penalty: str | Penalty = "l2",
    alpha: float = 1e-4,
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    coef: Any = None,
    intercept: Any = 0.0,
    effort: Effort = "full",
    tol: float = 1e-6,
    max_iter: int = 1000,
    screening: str | Region = "auto",
    solver: str = "auto",
    fold: Fold = "auto",
    device: str | None = None,
    precision: str = "float64",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Any:
    """Find the samples that provably cannot change the optimum of a regularised empirical risk.

    The risk is (1/W) Σ s_i f(a_iᵀx + c; y_i) + alpha·R(x) with W = Σ s_i. It is solved as
    `SafeClassifier` and the other estimators solve it, and what is proved on the way counts: with
    more than two labels for each of them against the rest, and a sample is dropped where it is
    dropped for all of them.

    Parameters
    ----------
    X : array, CSR matrix, pandas or polars frame, torch tensor, CuPy array, Design
        Of shape (n_samples, n_features).
        Used as it is, float32 or float64 (or integers), in any order. A `safesift.design.Design`
        must have been told of the intercept. Or rows in blocks, made by `safesift.blocks`, which
        have their targets and weights with them; or a dask array or frame, whose partitions are
        read where they are.
    y : array of shape (n_samples,), or (n_samples, 2) for intervals
        Labels for a classification loss, numbers for a regression loss, lower and upper ends for
        an interval loss (-inf and inf allowed; one column means width zero). None with blocks.
    target : str, or pair of str for the ends of intervals, optional
        The column of targets, where X is a dask frame, in place of y; `sample_weight` then may be
        the name of a column, too.
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
    coef : array of shape (n_features,) or (n_classes, n_features), optional
        An approximate solution, from any library: the centre of the regions, and nothing is
        solved.
    intercept : float or array of shape (n_classes,), default=0.0
        Goes with `coef`.
    effort : {"full", "quick"}, default="full"
        "full": solve to `tol`, which also gives the model (`to_estimator`). "quick": a short run
        of a first-order solver, whose end is a decent centre for regions: for people who bring
        their own solver and want fewer rows for it.
    tol : float, default=1e-6
        The duality gap to reach, relative to the objective of the best constant model. What is
        dropped is proved at any gap.
    max_iter : int, default=1000
        The largest number of steps.
    screening : str or Region, default="auto"
        The region that decides: a name of `safesift.regions.REGIONS`, or an object.
    solver : str, default="auto"
        A name of `safesift.solvers.SOLVERS`, or "auto": the one that is estimated to be the
        fastest. One that does not suit the problem is refused with the reason.
    fold : {"auto", "always", "never"}, default="auto"
        Whether samples on a quadratic piece go into a Gram matrix; see `decide`.
    device : str, optional
        Where to compute, as "cuda": rows are moved there, as a whole if they fit, else block by
        block. By default where they are: arrays of torch and CuPy stay on their device.
    precision : "float64" or "float32", default="float64"
        Of the products of Gram matrices on a device: "float32" is faster on most cards. Gaps are
        measured in float64 all the same; near kinks fewer rows may be decided.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
        For the solvers that draw random numbers.
    verbose : int, default=0
        Print how the model came about.

    Returns
    -------
    ScreeningResult
        Its `reason` says, where little is proved, why, and what would help. For rows in blocks a
        `BlockScreening`, which writes the kept rows a block at a time.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 5))
    >>> y = np.where(X[:, 0] + 0.1 * rng.normal(size=1000) > 0, "yes", "no")
    >>> result = ss.screen(X, y, alpha=1e-2)
    >>> bool(result.certified), bool(result.kept.sum() < 600)
    (True, True)

    The model of the kept rows is the model of all of them:

    >>> X_kept, y_kept = result.take(X, y)
    >>> few = ss.SafeClassifier(alpha=result.alpha_kept, tol=1e-9).fit(X_kept, y_kept)
    >>> bool(np.allclose(few.coef_, result.to_estimator().coef_, atol=1e-4))
    True
    """
    check_fold(fold)
    settings = Settings.of(
        tol=tol,
        max_iter=max_iter,
        screening=_checked_screening(screening),
        random_state=random_state,
        solver=solver,
    )
    _check_effort(effort, coef)
    training = Training(loss, penalty, alpha, l1_ratio, bool(fit_intercept))
    X, y, sample_weight = samples_on_device("screen", X, y, sample_weight, device)
    source = rows_in_blocks(
        "screen", X, y, sample_weight, target, coef=(coef, None), effort=(effort, "full"),
        screening=(screening, "auto"), solver=(solver, "auto"), fold=(fold, "auto"),
        device=(device, None), precision=(precision, "float64"),
    )  # fmt: skip
    if source is not None:
        check_positive("alpha", alpha)
        return screen_blocks(source, training, settings.tol, settings.seed)
    names = column_names(X)
    rows = placed(X, device, precision)
    inputs = make_problems(rows, y, sample_weight=sample_weight, **vars(training))
    problems = inputs.problems
    settings.screening.validate(problems[0])
    choose(problems[0], 1, solver)
    points: Sequence[Array | None] = [None] * len(problems)
    if coef is not None:
        points = check_points(problems, coef, intercept)
    check_finite(problems[0].design, columns=names)
    if coef is None and effort == "full":
        parts = _solved(problems, settings, fold)
    else:
        centers = zip(problems, points, strict=True)
        parts = [_around(one, point, settings, fold) for one, point in centers]
    for problem in problems:
        problem.seal()  # results read the samples again when they are asked for more
    if verbose:
        print_history(part.fit for part in parts)
    return ScreeningResult(
        tuple(parts), training, inputs.classes, names, n_jobs=n_jobs, labels=inputs.labels
    )


def _checked_screening(screening: Any) -> Screening:
    if screening is None:
        raise ValueError("screening=None screens nothing: name a region, or leave it at 'auto'.")
    return Screening.of(screening)


def _check_effort(effort: Any, coef: Any) -> None:
    if effort not in ("full", "quick"):
        raise ValueError(f"effort must be 'full' or 'quick', got {effort!r}.")
    if effort == "quick" and coef is not None:
        raise ValueError(
            "effort='quick' and coef exclude each other, with coef nothing is solved: leave one "
            "of them out."
        )


def _around(problem: Problem, point: Array | None, settings: Settings, fold: Fold) -> Screened:
    """By the region around a given point, or around the end of a short run."""
    with spending() as spent:
        at = rough_solution(problem) if point is None else problem.evaluate(problem.feasible(point))
        certificate = problem.certify(at)
        region = settings.screening.thorough.build(certificate)
        bounds = region.own_bounds(problem)
    decisions = decide(problem, bounds, fold)
    return Screened(Fit.at_centre(certificate, decisions, settings.tol, spent), region, bounds)


def _solved(problems: Sequence[Problem], settings: Settings, fold: Fold) -> list[Screened]:
    """By all that is proved on the way to the solution, and at it.

    A region that was asked for decides at the solution, and nothing else does.
    """
    asked = settings.screening.region is not None
    ways = replace(settings, screening=Screening(), decided=()) if asked else settings
    (fits,) = solve_path([problems], ways)
    return [_with_bounds(fit, settings, fold) for fit in fits]


def _with_bounds(fit: Fit, settings: Settings, fold: Fold) -> Screened:
    """The solver has decided the rows; the bounds are those of its last region.

    A row that was decided has its prediction on its piece at every optimum.
    """
    problem, region = fit.problem, _region(fit, settings)
    bounds = region.own_bounds(problem)
    decisions = decide(problem, bounds, "always")
    if region.certified:
        decisions = fit.decisions.joined(decisions)
        bounds = bounds.intersect(_pieces(decisions))
    decisions = decisions.folding(problem, fold)
    return Screened(replace(fit, decisions=decisions), region, bounds)


def _pieces(decisions: Decisions) -> Bounds:
    """The ends of the pieces on which rows were found, infinite for the others."""
    found = decisions.which >= 1
    return Bounds(
        np.where(found, decisions.lower, -np.inf), np.where(found, decisions.upper, np.inf)
    )


def _region(fit: Fit, settings: Settings) -> TestSet:
    if settings.screening.region is None:
        if fit.region is not None:
            return fit.region
        if fit.problem.pieces:
            return Balls().build(fit.certificate)
    # of a loss without pieces bounds are all there is to say, and no solver has made any
    return settings.screening.thorough.build(fit.certificate)
