"""The estimators that choose their alpha by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safesift.estimators.classifier import Classification, labels
from safesift.estimators.folds import CrossValidated
from safesift.estimators.linear import Samples
from safesift.estimators.regressor import Regression
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.regions import Region

Array = NDArray[np.float64]


class SafeClassifierCV(CrossValidated, Classification):
    """`SafeClassifier` with alpha chosen by cross-validation.

    All folds and the full data are solved along one path of alphas, in shared passes over the
    data, each from the solution for the alpha before; every point is certified.

    Parameters
    ----------
    alphas : int or array, default=20
        The alphas to choose from, or how many: from `safesift.grids.alpha_max` down to 1e-4 times
        it, evenly spaced in their logarithms. For a ball, its radii instead.
    cv : int, splitter or iterable, default=5
        As in scikit-learn: an integer means stratified folds, without shuffling.
    scoring : str, callable or None, default=None
        What to maximise, by default the accuracy. Scores are averaged over the folds with the
        weights of their held-out samples. Of equal scores the largest alpha wins.
    loss, penalty, l1_ratio, fit_intercept, tol, max_iter, class_weight, screening, solver, \
n_jobs, random_state, verbose
        As in `SafeClassifier`.

    Attributes
    ----------
    alpha_ : float
        The best alpha, or radius.
    alphas_ : array of shape (n_alphas,)
        Falling; radii grow.
    scores_ : array of shape (n_folds, n_alphas)
    mean_score_path_ : array of shape (n_alphas,)
    coef_, intercept_, classes_, dual_gap_, n_iter_, kept_, kept_per_class_, undecided_, history_
        Of the model fitted on all samples with `alpha_`, as in `SafeClassifier`.

    Examples
    --------
    >>> import safesift as ss
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ss.SafeClassifierCV(alphas=5, cv=3).fit(scale(X), y)
    >>> model.scores_.shape, bool(model.mean_score_path_.max() > 0.95)
    ((3, 5), True)
    """

    def __init__(
        self,
        alphas: int | ArrayLike = 20,
        *,
        cv: Any = 5,
        scoring: Any = None,
        loss: str | Loss = "squared_hinge",
        penalty: str | Penalty = "l2",
        l1_ratio: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Mapping | str | None = None,
        screening: str | Region | None = "auto",
        solver: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.screening = screening
        self.solver = solver
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _default_score(
        self, samples: Samples, rows: NDArray[np.intp], pred: Array, weights: Array
    ) -> float:
        scores = pred[:, 0] if pred.shape[1] == 1 else pred
        right = labels(scores, samples.classes) == samples.y[rows]
        return float(np.average(right, weights=weights))


class SafeRegressorCV(CrossValidated, Regression):
    """`SafeRegressor` with alpha chosen by cross-validation.

    All folds and the full data are solved along one path of alphas, in shared passes over the
    data, each from the solution for the alpha before; every point is certified.

    Parameters
    ----------
    alphas : int or array, default=20
        The alphas to choose from, or how many: from `safesift.grids.alpha_max` down to 1e-4 times
        it, evenly spaced in their logarithms. For a ball, its radii instead.
    cv : int, splitter or iterable, default=5
        As in scikit-learn: an integer means consecutive folds, without shuffling.
    scoring : str, callable or None, default=None
        What to maximise, by default R². Scores are averaged over the folds with the weights of
        their held-out samples. Of equal scores the largest alpha wins.
    loss, epsilon, penalty, l1_ratio, fit_intercept, tol, max_iter, screening, solver, n_jobs, \
random_state, verbose
        As in `SafeRegressor`.

    Attributes
    ----------
    alpha_ : float
        The best alpha, or radius.
    alphas_ : array of shape (n_alphas,)
        Falling; radii grow.
    scores_ : array of shape (n_folds, n_alphas)
    mean_score_path_ : array of shape (n_alphas,)
    coef_, intercept_, dual_gap_, n_iter_, kept_, undecided_, history_
        Of the model fitted on all samples with `alpha_`, as in `SafeRegressor`.

    Examples
    --------
    >>> import safesift as ss
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ss.SafeRegressorCV(alphas=5, cv=3, penalty="l1", epsilon=20.0).fit(X, y)
    >>> bool(model.mean_score_path_.max() > 0.4)
    True
    """

    def __init__(
        self,
        alphas: int | ArrayLike = 20,
        *,
        cv: Any = 5,
        scoring: Any = None,
        loss: str | Loss = "squared_epsilon_insensitive",
        epsilon: ArrayLike = 0.1,
        penalty: str | Penalty = "l2",
        l1_ratio: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        screening: str | Region | None = "auto",
        solver: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.epsilon = epsilon
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.screening = screening
        self.solver = solver
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _default_score(
        self, samples: Samples, rows: NDArray[np.intp], pred: Array, weights: Array
    ) -> float:
        y = samples.y[rows]
        spread = float(weights @ (y - np.average(y, weights=weights)) ** 2)
        rest = float(weights @ (y - pred[:, 0]) ** 2)
        # of a constant y scikit-learn's convention
        return 1.0 - rest / spread if spread > 0 else float(rest == 0)
