"""Linear regression on interval targets, certified."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from safesift.intervals import as_intervals, distance
from safesift.losses import LOSSES, Loss
from safesift.numerics import total
from safesift.penalties import Penalty
from safesift.problem import Problem
from safesift.registry import resolve
from safesift.solvers.path import solve_path
from safesift.solvers.records import Settings, Solution
from safesift.validation import check_positive, check_weights, make_problem

Array = NDArray[np.float64]

_INTERVAL_LOSSES = {name: loss for name, loss in LOSSES.items() if loss.task == "interval"}


class IntervalRegressor(RegressorMixin, BaseEstimator):
    """Linear regression on interval targets, with a certified duality gap.

    Minimises (1/W) Σ s_i f(a_iᵀx + c; [l_i, u_i]) + alpha·R(x), W = Σ s_i, with f = ½·distance² to
    the interval, or the distance itself. The intercept c is not penalised. It is fitted by Newton
    steps that fold away, as they go, the samples that are proved to be on one piece of their loss
    at every optimum; the gap is measured on all samples.

    Parameters
    ----------
    alpha : float, default=1e-3
        Weight of the penalty, next to the mean loss.
    penalty : str or Penalty, default="l2"
        "l2", "l1", "elastic_net", "l2_ball", "l1_ball", or an object with its parameters, such as
        ``safesift.penalties.ElasticNet(l1_ratio=0.9)``.
    loss : str or Loss, default="squared_interval"
        "squared_interval", "absolute_interval" (robust), "smoothed_interval", or an object.
    fit_intercept : bool, default=True
    tol : float, default=1e-6
        Relative duality gap to reach: relative to the objective of the best constant model.
    max_iter : int, default=1000
        The largest number of Newton steps.
    warm_start : bool, default=False
        Start from the last solution, as in a loop over alphas.
    verbose : int, default=0
        Whether to print a line per check.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    dual_gap_ : float
        Certified: the objective is at most that far above its minimum, measured on all samples.
    n_iter_ : int
        Newton steps.
    kept_ : array of shape (n_samples,)
        False where the sample is proved to have no influence: without it the model is the same.
    undecided_ : array of shape (n_samples,)
        True where it is not proved on which piece of its loss the sample lies.
    history_ : list of dict
        How things stood each time the gap was measured on all samples: `passes` over the data,
        `seconds`, `gap`, `relative_gap`, how many samples were kept and undecided (`n_kept`,
        `n_undecided`), and how many features were not proved to be zero (`n_features`).
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only where X has feature names that are strings.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([[-np.inf, 0.0], [0.5, 1.5], [1.8, 2.5], [3.0, np.inf]])
    >>> model = ss.IntervalRegressor(alpha=1e-6).fit(X, Y)
    >>> print(model.predict([[1.0], [2.0]]).round(2))
    [1. 2.]
    >>> float(model.coverage(X, Y + [[-0.01, 0.01]]))
    1.0
    """

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        penalty: str | Penalty = "l2",
        loss: str | Loss = "squared_interval",
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.penalty = penalty
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array or frame of shape (n_samples, 2) or (n_samples,)
            Lower and upper ends, -inf and inf where there is none; one column means intervals of
            width zero.
        sample_weight : array of shape (n_samples,), optional
            Weight 0 is exactly removal, weight 2 exactly repetition.

        Returns
        -------
        self
        """
        tol = check_positive("tol", self.tol)
        loss = self._checked_loss()
        if not isinstance(self.max_iter, Integral) or self.max_iter < 1:
            raise ValueError(f"max_iter must be a positive integer, got {self.max_iter!r}.")
        start = self._last_solution() if self.warm_start else None
        X = self._checked_features(X, reset=True)
        problem = make_problem(
            X, self._checked_targets(X, y), loss=loss, penalty=self.penalty, alpha=self.alpha,
            fit_intercept=bool(self.fit_intercept), sample_weight=sample_weight,
        ).problem  # fmt: skip
        if start is not None and len(start) != problem.design.n_columns:
            raise ValueError(
                f"warm_start=True, but the last model had {len(start)} coefficients (with the "
                f"intercept) and this one has {problem.design.n_columns}: set warm_start=False."
            )
        settings = Settings(tol, int(self.max_iter))
        ((found,),) = solve_path([[problem]], settings, [start])
        self._keep_solution(problem, found.solution)
        self.kept_ = found.kept
        self.undecided_ = found.undecided
        self.history_ = [asdict(check) for check in found.history]
        if self.verbose:
            self._tell()
        return self

    def _checked_loss(self) -> Loss:
        loss = resolve("loss", self.loss, _INTERVAL_LOSSES, Loss)
        if loss.task != "interval":
            raise ValueError(
                f"loss={self.loss!r} is not a loss of intervals: use one of "
                f"{', '.join(_INTERVAL_LOSSES)}."
            )
        return loss

    def _checked_features(self, X: Any, reset: bool) -> Any:
        kinds = [np.float64, np.float32]
        return validate_data(self, X, accept_sparse="csr", dtype=kinds, reset=reset)

    def _checked_targets(self, X: Any, y: Any) -> Array:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        intervals = as_intervals(y)
        check_consistent_length(X, intervals)
        return intervals

    def _last_solution(self) -> Array | None:
        if not hasattr(self, "coef_"):
            return None
        return np.append(self.coef_, self.intercept_) if self.fit_intercept else self.coef_

    def _keep_solution(self, problem: Problem, solution: Solution) -> None:
        self.coef_, self.intercept_ = problem.split(solution.at.point)
        self.dual_gap_ = float(solution.gap)
        self.n_iter_ = solution.n_iter
        if solution.converged:
            return
        remedy = (
            "increase max_iter"
            if solution.n_iter >= self.max_iter
            else "rounding allows no more, so scale the features or the targets"
        )
        warnings.warn(
            f"IntervalRegressor did not converge: the relative duality gap is "
            f"{solution.relative_gap:.2g} after {solution.n_iter} Newton steps, above "
            f"tol={self.tol:g}; {remedy}, or accept a larger tol.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _tell(self) -> None:
        for check in self.history_:
            print(
                f"{check['passes']:.1f} passes, {check['seconds']:.2g} s: relative gap "
                f"{check['relative_gap']:.2g}, {check['n_kept']} kept, "
                f"{check['n_undecided']} undecided"
            )

    # --- using ------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """Predictions, of shape (n_samples,)."""
        check_is_fitted(self)
        X = self._checked_features(X, reset=False)
        return safe_sparse_dot(X, self.coef_) + self.intercept_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """1 − Σ distance² / Σ distance² of the best constant: R² where intervals are points.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array or frame of shape (n_samples, 2) or (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
            1 is best. Where some constant lies in all intervals, so that nothing is left to
            explain, 1 if the predictions do so too, else 0.
        """
        pred, intervals, shares = self._compared(X, y, sample_weight)
        squares = total(shares, distance(pred, intervals) ** 2)
        best = _best_constant_squares(intervals, shares)
        if best == 0:
            return float(squares == 0)
        return 1.0 - squares / best

    def coverage(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of intervals that the predictions hit.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array or frame of shape (n_samples, 2) or (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        pred, intervals, shares = self._compared(X, y, sample_weight)
        return total(shares, (distance(pred, intervals) == 0).astype(np.float64))

    def _compared(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
        """Predictions, intervals, and the share of each sample in the total weight."""
        pred = self.predict(X)
        intervals = self._checked_targets(pred, y)
        weights = check_weights(sample_weight, len(pred))
        return pred, intervals, weights / weights.sum()


def _best_constant_squares(intervals: Array, shares: Array) -> float:
    """Σ shares·distance² of the constant for which it is least."""
    problem = make_problem(
        np.zeros((len(intervals), 1)), intervals, loss="squared_interval", penalty="l2", alpha=1.0,
        fit_intercept=True, sample_weight=shares,
    ).problem  # fmt: skip
    return 2.0 * problem.constant_value
