"""The best alpha of an interval by cross-validation, with a proof that none is better.

Bounds on every held-out prediction for all alphas of an interval bound the validation error of all
of them (`workflows/alpha_search.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from safesift.arithmetic.threads import computes
from safesift.design.factory import check_finite
from safesift.losses import Loss
from safesift.parameters import check_count, check_positive
from safesift.penalties import Penalty
from safesift.problem.inputs import Inputs, make_problems, row_numbers
from safesift.problem.problem import Problem
from safesift.problem.scales import column_names
from safesift.problem.training import Training
from safesift.registry import provided
from safesift.workflows.alpha_search import Interval, Search
from safesift.workflows.held_out import HeldOut, Metric
from safesift.workflows.showing import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedAlpha(Shown):
    """The best alpha, and the proof that no other one of the interval is better by much.

    Attributes
    ----------
    alpha : float
    error : float
        Its validation error, or an upper bound on that.
    least : float
        No alpha of the interval has a smaller one: `error` − `least` is at most epsilon where it
        is resolved.
    intervals : tuple of Interval
        In rising order, without gaps: low and high end, and the bounds on the error between them.
    unresolved : tuple of Interval
        Those among them in which an alpha may still be better by more than epsilon.
    resolved : bool
        Whether there are none.
    trials : array of shape (n_trials, 2)
        The alphas at which models were found, solved for or stepped to from one nearby, and their
        errors, nearly: only `error` and `intervals` are proved.
    metric : str
    training : Training
        Loss, penalty and intercept of the models.
    """

    alpha: float
    error: float
    least: float
    intervals: tuple[Interval, ...]
    unresolved: tuple[Interval, ...]
    trials: Array
    metric: str
    training: Training

    @property
    def resolved(self) -> bool:
        return not self.unresolved

    def summary(self) -> str:
        """What is proved, in a few lines."""
        low, high = self.intervals[0].low, self.intervals[-1].high
        lines = [
            f"alpha = {self.alpha:.6g} of [{low:g}, {high:g}]: {self.training}",
            f"  {self.metric} error at most {self.error:.6g}; no alpha has less than "
            f"{self.least:.6g}",
            f"  {len(self.intervals)} intervals, models at {len(self.trials)} alphas",
        ]
        if self.unresolved:
            worst = min(self.unresolved, key=lambda one: one.lower)
            lines.append(
                f"  unresolved: {len(self.unresolved)} intervals, such as [{worst.low!r}, "
                f"{worst.high!r}] with errors from {worst.lower:.6g}"
            )
        return "\n".join(lines)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the bounds on the validation error against alpha.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        return provided("plot_certified_alpha")(self, axes)


@computes
def certify_alpha(
    X: Any,
    y: Any,
    *,
    alphas: tuple[float, float] = (1e-6, 1.0),
    cv: Any = 5,
    metric: Metric | None = None,
    quantile: float = 0.5,
    loss: str | Loss = "squared_hinge",
    epsilon: float = 1e-3,
    penalty: str | Penalty = "l2",
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    alpha_tol: float = 1e-9,
    max_solves: int = 2000,
    n_jobs: int | None = None,
) -> CertifiedAlpha:
    """Choose alpha by cross-validation, and prove that no alpha in between is better.

    Parameters
    ----------
    X, y, loss, penalty, l1_ratio, fit_intercept, sample_weight
        As in `screen`; losses with curvature prove most, and intervals are no targets here.
    alphas : (float, float), default=(1e-6, 1.0)
        The ends of the interval.
    cv : int, splitter or iterable, default=5
        As in `SafeClassifierCV`.
    metric : {"zero_one", "absolute", "squared", "pinball"}, optional
        The validation error, averaged over held-out samples with their weights: the share of wrong
        labels for a classification, the squared error for a regression by default.
    quantile : float in (0, 1), default=0.5
        Of metric="pinball".
    epsilon : float, default=1e-3
        How much better another alpha may be, in units of the metric: it ends when that is proved.
        0 asks for the exact best error.
    alpha_tol : float, default=1e-9
        Intervals whose ends are nearer than that, relatively, are not cut any more.
    max_solves : int, default=2000
        About the most alphas to find models at, ten at least where the loss is smooth and the
        penalty l2; what is not proved by then is `unresolved`.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    CertifiedAlpha

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> y = X[:, 0] + 0.7 * rng.normal(size=200) > 0
    >>> best = ss.certify_alpha(X, y, alphas=(1e-3, 1.0), epsilon=0.01)
    >>> best.resolved, best.error - best.least <= 0.01
    (True, True)
    """
    low, high = _checked_ends(alphas)
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be 0 or more, got {epsilon!r}.")
    check_positive("alpha_tol", alpha_tol)
    limit = check_count("max_solves", max_solves)
    training = Training(loss, penalty, high, l1_ratio, bool(fit_intercept))
    inputs = make_problems(X, y, sample_weight=sample_weight, **vars(training))
    problem = inputs.problems[0]
    if problem.penalty.is_constraint:
        raise ValueError(f"penalty={penalty!r} is a constraint and has no alpha: use 'l2' or 'l1'.")
    named = _checked_metric(metric, problem, quantile)
    check_finite(problem.design, columns=column_names(X))
    folds = _folds(X, inputs, cv)
    held_out = [HeldOut.of(inputs, test, problem.weights, named, quantile) for _, test in folds]
    search = Search(inputs.problems, folds, held_out, epsilon, alpha_tol, limit)
    search.run(low, high)
    return _result(search, named, training)


def certified_among(
    inputs: Inputs, folds: Sequence[tuple[Rows, Rows]], weights: Array, ends: tuple[float, float],
    epsilon: float, training: Training,
) -> CertifiedAlpha:  # fmt: skip
    """`certify_alpha` for problems and folds that exist already, by the default metric.

    `weights` are those of the errors: samples may weigh something else in the training.
    """
    named = _checked_metric(None, inputs.problems[0], 0.5)
    held_out = [HeldOut.of(inputs, test, weights, named, 0.5) for _, test in folds]
    search = Search(inputs.problems, folds, held_out, epsilon, 1e-9, 2000)
    search.run(*ends)
    return _result(search, named, training)


def _checked_ends(alphas: Any) -> tuple[float, float]:
    try:
        low, high = alphas
    except (TypeError, ValueError):
        raise TypeError(f"alphas must be a pair (low, high), got {alphas!r}.") from None
    low, high = check_positive("alphas[0]", low), check_positive("alphas[1]", high)
    if not low < high:
        raise ValueError(f"alphas must be (low, high) with low < high, got {alphas!r}.")
    return low, high


def _checked_metric(metric: Any, problem: Problem, quantile: float) -> Metric:
    task = problem.loss.task
    if task == "interval":
        raise ValueError("loss: the validation error of intervals is not defined here.")
    known = ("zero_one",) if task == "classification" else ("squared", "absolute", "pinball")
    if metric is None:
        return known[0]  # type: ignore[return-value]
    if metric not in known:
        raise ValueError(f"metric must be one of {', '.join(known)} for a {task}, got {metric!r}.")
    if not 0.0 < quantile < 1.0:
        raise ValueError(f"quantile must be between 0 and 1, got {quantile!r}.")
    return metric


def _folds(X: Any, inputs: Inputs, cv: Any) -> list[tuple[Rows, Rows]]:
    problem, labels = inputs.problems[0], inputs.labels
    y = problem.y if labels is None else labels
    splitter = check_cv(cv, y, classifier=labels is not None)
    rows = np.arange(len(y))[:, None] if not hasattr(X, "shape") else X
    folds = [(row_numbers(train), row_numbers(test)) for train, test in splitter.split(rows, y)]
    if not all(problem.weights[train].sum() > 0 for train, _ in folds):
        raise ValueError(
            "cv: the training samples of a fold have no weight at all: use fewer folds."
        )
    if not any(problem.weights[test].sum() > 0 for _, test in folds):
        raise ValueError("cv: no held-out sample has a positive weight: use other folds.")
    return folds


def _result(search: Search, metric: str, training: Training) -> CertifiedAlpha:
    intervals = sorted([*search.closed, *search.open])
    least = min((one.lower for one in intervals), default=math.nan)
    # where nothing is proved of any alpha, the one that seems to be best
    seeming = min(search.trials, key=lambda alpha: (search.trials[alpha], alpha))
    return CertifiedAlpha(
        alpha=search.alpha if math.isfinite(search.error) else seeming,
        error=search.error,
        least=min(least, search.error),
        intervals=tuple(intervals),
        unresolved=search.unresolved,
        trials=np.array(sorted(search.trials.items())),
        metric=metric,
        training=replace(training, alpha=math.nan),
    )
