"""The best alpha of an interval by cross-validation, with a proof that none is better.

Bounds on every held-out prediction for all alphas of an interval (`screen_range`'s) bound the
validation error of all of them. Intervals that may hold a better alpha than the best one seen are
cut in two, until none is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from safesift.arithmetic.printing import Brief
from safesift.arithmetic.threads import computes, each
from safesift.design.factory import check_finite
from safesift.design.rows import rows_of
from safesift.losses import Loss
from safesift.parameters import check_count, check_positive
from safesift.penalties import Penalty
from safesift.problem.decisions import Bounds
from safesift.problem.inputs import Inputs, make_problems
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk
from safesift.problem.scales import column_names
from safesift.problem.training import Training
from safesift.regions import Curvature
from safesift.regions.center import Center
from safesift.registry import provided
from safesift.solvers import Fit, Settings, solve_path
from safesift.workflows.alpha_bounds import Nearby, covers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Metric = Literal["zero_one", "absolute", "squared", "pinball"]

# the relative gap to which the middles of intervals are solved
_TOL = 1e-6
# so many intervals to begin with, to a decade
_TO_A_DECADE = 8


class Interval(NamedTuple):
    """Alphas from low to high, and between what their validation errors lie."""

    low: float
    high: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedAlpha(Brief):
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
        The alphas at which models were solved for, and their errors.
    metric : str
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
            f"  {len(self.intervals)} intervals, {len(self.trials)} alphas solved for",
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
    epsilon : float, default=1e-3
        How much better another alpha may be, in units of the metric: it ends when that is proved.
        0 asks for the exact best error.
    alpha_tol : float, default=1e-9
        Intervals whose ends are nearer than that, relatively, are not cut any more.
    metric : {"zero_one", "absolute", "squared", "pinball"}, optional
        The validation error, averaged over held-out samples with their weights: the share of wrong
        labels for a classification, the squared error for a regression by default.
    quantile : float in (0, 1), default=0.5
        Of metric="pinball".
    max_solves : int, default=2000
        The most alphas to solve for; what is not proved by then is `unresolved`.
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
    training = Training(loss, penalty, high, l1_ratio, bool(fit_intercept))
    inputs = make_problems(X, y, sample_weight=sample_weight, **vars(training))
    problem = inputs.problems[0]
    if problem.penalty.is_constraint:
        raise ValueError(f"penalty={penalty!r} is a constraint and has no alpha: use 'l2' or 'l1'.")
    named = _checked_metric(metric, problem, quantile)
    check_finite(problem.design, columns=column_names(X))
    folds = _folds(X, inputs, cv)
    errors = [_Errors.of(inputs, test, named, quantile) for _, test in folds]
    search = _Search(inputs.problems, folds, errors, epsilon, alpha_tol)
    search.run(low, high, check_count("max_solves", max_solves))
    return search.result(named, training)


def certified_among(
    inputs: Inputs, folds: Sequence[tuple[Rows, Rows]], ends: tuple[float, float], epsilon: float,
    training: Training,
) -> CertifiedAlpha:  # fmt: skip
    """`certify_alpha` for problems and folds that exist already, by the default metric."""
    named = _checked_metric(None, inputs.problems[0], 0.5)
    errors = [_Errors.of(inputs, test, named, 0.5) for _, test in folds]
    search = _Search(inputs.problems, folds, errors, epsilon, 1e-9)
    search.run(*ends, 2000)
    return search.result(named, training)


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
    folds = [(train, test) for train, test in splitter.split(rows, y)]
    if not any(problem.weights[test].sum() > 0 for _, test in folds):
        raise ValueError("cv: no held-out sample has a positive weight: use other folds.")
    return folds


# --- errors of predictions that are known to lie in intervals -------------------------------


@dataclass(frozen=True, eq=False)
class _Errors:
    """The held-out samples of a fold: least and largest sum of their errors.

    Rows that are the same are one row with the weights of several labels: whatever it is predicted
    to be, one of them is wrong.
    """

    rows: Rows
    y: NDArray
    weights: Array
    metric: Metric
    quantile: float
    twins: Rows
    positive: Array
    negative: Array

    @classmethod
    def of(cls, inputs: Inputs, test: Rows, metric: Metric, quantile: float) -> _Errors:
        problem, labels = inputs.problems[0], inputs.labels
        rows = np.sort(test[problem.weights[test] > 0])
        weights = problem.weights[rows]
        y = problem.y[rows] if labels is None else labels[rows]
        if labels is not None and inputs.classes is not None and len(inputs.classes) > 2:
            y = np.searchsorted(inputs.classes, y)
        twins = _same_rows(rows_of(problem.design).gathered(rows))
        positive = negative = np.zeros(0)
        if metric == "zero_one" and len(inputs.problems) == 1:
            y = problem.y[rows]
            positive = np.bincount(twins, weights=weights * (y > 0)).astype(float)
            negative = np.bincount(twins, weights=weights * (y < 0)).astype(float)
        return cls(rows, y, weights, metric, quantile, twins, positive, negative)

    def between(self, bounds: Sequence[Bounds]) -> tuple[float, float]:
        """The least and the largest sum of errors, for predictions in these bounds."""
        if self.metric != "zero_one":
            return self._of_numbers(bounds[0])
        if len(bounds) > 1:
            return self._of_classes(bounds)
        first = np.unique(self.twins, return_index=True)[1]
        lower, upper = bounds[0].lower[first], bounds[0].upper[first]
        above, below = lower > 0, upper <= 0
        sure = np.where(above, self.negative, self.positive)
        least = np.where(above | below, sure, np.minimum(self.positive, self.negative))
        most = np.where(above | below, sure, np.maximum(self.positive, self.negative))
        return float(least.sum()), float(most.sum())

    def _of_classes(self, bounds: Sequence[Bounds]) -> tuple[float, float]:
        lower = np.stack([one.lower for one in bounds], axis=1)
        upper = np.stack([one.upper for one in bounds], axis=1)
        own = np.asarray(self.y, dtype=np.intp)[:, None]
        mine = [np.take_along_axis(one, own, axis=1)[:, 0] for one in (lower, upper)]
        others = []
        for one in (lower, upper):
            rest = one.copy()
            np.put_along_axis(rest, own, -np.inf, axis=1)
            others.append(rest.max(axis=1))
        surely_wrong, surely_right = mine[1] < others[0], mine[0] > others[1]
        return float(self.weights[surely_wrong].sum()), float(self.weights[~surely_right].sum())

    def _of_numbers(self, bounds: Bounds) -> tuple[float, float]:
        """Errors are quasi-convex in the prediction: largest at an end, least at y or at an end."""
        nearest = np.clip(self.y, bounds.lower, bounds.upper)
        least = self._error(nearest)
        most = np.maximum(self._error(bounds.lower), self._error(bounds.upper))
        return float(self.weights @ least), float(self.weights @ most)

    def _error(self, pred: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            residual = self.y - pred
            if self.metric == "squared":
                return residual**2
            if self.metric == "absolute":
                return np.abs(residual)
            return np.maximum(self.quantile * residual, (self.quantile - 1.0) * residual)


def _same_rows(block: Any) -> Rows:
    """A number for every row, the same for rows that are the same."""
    from scipy import sparse

    if sparse.issparse(block):
        block = block.tocsr()
        block.sort_indices()
        parts = zip(
            np.split(block.indices, block.indptr[1:-1]), np.split(block.data, block.indptr[1:-1]),
            strict=True,
        )  # fmt: skip
        keys = [(one.tobytes(), two.tobytes()) for one, two in parts]
    else:
        # 0.0 and -0.0 are the same number
        keys = [(row.tobytes(), b"") for row in np.ascontiguousarray(block) + 0.0]
    seen: dict[tuple[bytes, bytes], int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)


# --- the search -----------------------------------------------------------------------------


class _Search:
    """Intervals that are cut in two while they may hold a better alpha."""

    def __init__(
        self, problems: Sequence[Problem], folds: Sequence[tuple[Rows, Rows]],
        errors: Sequence[_Errors], epsilon: float, alpha_tol: float,
    ) -> None:  # fmt: skip
        self._epsilon, self._alpha_tol, self._errors = epsilon, alpha_tol, errors
        self._n_classes = len(problems)
        self._problems = [
            problem.reweighted(_trained(problem.weights, train))
            for train, _ in folds
            for problem in problems
        ]
        self._whole = float(sum(one.weights.sum() for one in errors))
        self._trials: list[tuple[float, float]] = []
        self._closed: list[Interval] = []
        self._open: list[Interval] = []
        # of every problem the base of its last fit
        self._nearby: dict[Risk, tuple[Fit, Nearby | None]] = {}
        self.alpha, self.error = math.nan, math.inf

    def run(self, low: float, high: float, max_solves: int) -> None:
        n = max(int(_TO_A_DECADE * math.log10(high / low)), 1)
        ends = np.geomspace(low, high, n + 1)
        ends[0], ends[-1] = low, high
        pairs = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
        solved = 0
        while pairs:
            pairs.sort(reverse=True)
            left = max(max_solves - solved, 0)
            if not left:
                self._open += [Interval(a, b, 0.0, math.inf) for a, b in pairs]
                break
            found = list(self._bounded(pairs[:left]))
            solved += len(found)
            pairs = [*pairs[left:], *self._cut(found)]

    def _cut(self, found: list[Interval]) -> Iterator[tuple[float, float]]:
        """The halves of what is not proved yet, and of what was thought to be."""
        candidates = [*found, *self._open]
        self._open = []
        for one in candidates:
            if one.lower >= self.error - self._epsilon or one.upper == one.lower:
                self._closed.append(one)
                continue
            middle = math.sqrt(one.low) * math.sqrt(one.high)
            if one.high <= one.low * (1.0 + self._alpha_tol) or not one.low < middle < one.high:
                self._open.append(one)
                continue
            yield one.low, middle
            yield middle, one.high

    def _bounded(self, pairs: Sequence[tuple[float, float]]) -> Iterator[Interval]:
        """Bounds for all alphas of some intervals, in falling order."""
        middles = [math.sqrt(low) * math.sqrt(high) for low, high in pairs]
        levels = [[one.at_level(alpha) for one in self._problems] for alpha in middles]
        fits = solve_path(levels, Settings(_TOL, decided=()))
        best: tuple[float, float, Sequence[Fit]] = (self.error, math.nan, ())
        for (low, high), alpha, found in zip(pairs, middles, fits, strict=True):
            rough = self._sums(found, [Bounds(fit.at.pred, fit.at.pred) for fit in found])[1]
            self._trials.append((alpha, rough))
            if rough < best[0]:
                best = rough, alpha, found
            least, most = self._between(found, (low, high))
            yield Interval(low, high, least, most)
        self._try(*best[1:])

    def _try(self, alpha: float, fits: Sequence[Fit]) -> None:
        """Whether an alpha is better than the best one so far, by what is proved of it."""
        if fits:
            _, error = self._between(fits, (alpha,))
            if error < self.error:
                self.alpha, self.error = alpha, error

    def _between(self, fits: Sequence[Fit], alphas: tuple[float, ...]) -> tuple[float, float]:
        # a thread for every fold
        return self._sums(fits, list(each(lambda fit: self._bounds(fit, alphas), fits)))

    def _bounds(self, fit: Fit, alphas: tuple[float, ...]) -> Bounds:
        if covers(fit.problem):
            if self._nearby.get(fit.problem.risk, (None, None))[0] is not fit:
                self._nearby[fit.problem.risk] = fit, Nearby.of(fit)
            nearby = self._nearby[fit.problem.risk][1]
            found = None if nearby is None else nearby.bounds(min(alphas), max(alphas))
            if found is not None:
                return found
        return Curvature().build_for(Center(fit.certificate, alphas)).own_bounds(fit.problem)

    def _sums(self, fits: Sequence[Fit], bounds: Sequence[Bounds]) -> tuple[float, float]:
        least = most = 0.0
        for k, errors in enumerate(self._errors):
            own = bounds[k * self._n_classes : (k + 1) * self._n_classes]
            low, high = errors.between([one.take(errors.rows) for one in own])
            least, most = least + low, most + high
        # sums of weights, or of errors, are rounded
        room = 1e-13 * len(fits[0].at.pred) ** 0.5
        exact = self._errors[0].metric == "zero_one"
        low, high = least / self._whole, most / self._whole
        return (low, high) if exact else (low * (1.0 - room), high * (1.0 + room))

    def result(self, metric: str, training: Training) -> CertifiedAlpha:
        intervals = sorted([*self._closed, *self._open])
        least = min((one.lower for one in intervals), default=math.nan)
        unresolved = tuple(
            one for one in sorted(self._open) if one.lower < self.error - self._epsilon
        )
        return CertifiedAlpha(
            alpha=self.alpha,
            error=self.error,
            least=min(least, self.error),
            intervals=tuple(intervals),
            unresolved=unresolved,
            trials=np.array(sorted(self._trials)),
            metric=metric,
            training=Training(**{**vars(training), "alpha": math.nan}),
        )


def _trained(weights: Array, train: Rows) -> Array:
    return weights * np.bincount(train, minlength=len(weights))
