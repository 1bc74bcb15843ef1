"""Linear regression on interval targets, certified."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length

from safesift.arithmetic.numerics import total
from safesift.arithmetic.threads import computes
from safesift.estimators.linear import LinearModel, Samples
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.inputs import as_intervals, check_weights, distance, make_problems
from safesift.regions import Region

Array = NDArray[np.float64]


class IntervalRegressor(RegressorMixin, LinearModel):
    """Linear regression on interval targets, with a certified duality gap.

    Minimises (1/W) Σ s_i f(a_iᵀx + c; [l_i, u_i]) + alpha·R(x), W = Σ s_i, with f = ½·distance² to
    the interval, or the distance itself. The intercept c is not penalised. It is fitted by Newton
    steps that fold away, as they go, the samples that are proved to be on one piece of their loss
    at every optimum; the gap is measured on all samples.

    Parameters
    ----------
    loss : str or Loss, default="squared_interval"
        "squared_interval", "absolute_interval" (robust), "smoothed_interval", or an object.
    penalty : str or Penalty, default="l2"
        "l2", "l1", "elastic_net", "l2_ball", "l1_ball", or an object with its parameters, such as
        ``safesift.penalties.L2Ball(radius=2.0)``.
    alpha : float, default=1e-4
        Weight of the penalty, next to the mean loss.
    l1_ratio : float in [0, 1), optional
        Share of the l1 norm in penalty="elastic_net", 0.5 by default; None with any other.
    fit_intercept : bool, default=True
    tol : float, default=1e-6
        Relative duality gap to reach: relative to the objective of the best constant model.
    max_iter : int, default=1000
        The largest number of steps.
    screening : "auto", None, str or Region, default="auto"
        "auto": whatever is fastest; a region, by name or as an object: rows are left out where it
        decides them; None: every step reads every row. The solution is the same.
    solver : str, default="auto"
        A name of `safesift.solvers.SOLVERS`, or "auto": the one that is estimated to be the
        fastest. One that does not suit the problem is refused with the reason.
    warm_start : bool, default=False
        Start from the last solution, as in a loop over alphas.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
        For the solvers that draw random numbers.
    verbose : int, default=0
        1 prints a line per check, 2 one per step as well.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    dual_gap_ : float
        Certified: the objective is at most that far above its minimum, measured on all samples.
    n_iter_ : int
        Steps of the solver.
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

    _task = "interval"

    def __init__(
        self,
        loss: str | Loss = "squared_interval",
        *,
        penalty: str | Penalty = "l2",
        alpha: float = 1e-4,
        l1_ratio: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        screening: str | Region | None = "auto",
        solver: str = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.screening = screening
        self.solver = solver
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting ----------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        X = self._validated(X, reset=True)
        targets = self._checked_targets(X, y)
        weights = check_weights(sample_weight, len(targets))
        return Samples(X, targets, weights, weights)

    def _checked_targets(self, X: Any, y: Any) -> Array:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        intervals = as_intervals(y)
        check_consistent_length(X, intervals)
        return intervals

    # --- using ------------------------------------------------------------------------------

    @computes
    def predict(self, X: Any) -> Array:
        """Predictions, of shape (n_samples,)."""
        return self._predictions(X)

    @computes
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

    @computes
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
    problem = make_problems(
        np.zeros((len(intervals), 1)), intervals, loss="squared_interval", penalty="l2", alpha=1.0,
        fit_intercept=True, sample_weight=shares,
    ).problem  # fmt: skip
    return 2.0 * problem.constant_value
