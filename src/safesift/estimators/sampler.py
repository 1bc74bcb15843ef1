"""Screening in the convention of imbalanced-learn's samplers.

What the samplers share: the convention of imbalanced-learn, which need not be installed.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets

from safesift.arithmetic.threads import computes
from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.linear import LinearModel
from safesift.estimators.models import MODELS
from safesift.estimators.validating import validated
from safesift.losses import LOSSES, Loss
from safesift.penalties import Penalty
from safesift.problem.inputs import check_weights
from safesift.regions import Region
from safesift.registry import missing_extra, resolve
from safesift.workflows.compression import compress

Array = NDArray[np.float64]


try:
    from imblearn.base import BaseSampler
    from imblearn.utils import check_target_type
except ImportError:  # the names exist all the same, for `from safesift import *`
    BaseSampler, check_target_type = BaseEstimator, None


class Resampler(BaseSampler):
    """Chooses samples in `fit`, which sets `sample_indices_`."""

    def _require_imblearn(self) -> None:
        """To be called before anything else: nothing works without."""
        if check_target_type is None:
            raise missing_extra(type(self).__name__, "imblearn")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        return tags

    @abstractmethod
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the samples, without returning them."""

    @computes
    def fit_resample(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any]:
        """The chosen samples, in their order, unchanged and in the type they came in.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            That of the chosen samples is ``sample_weight[sampler.sample_indices_]``.

        Returns
        -------
        X_kept, y_kept
        """
        rows = self.fit(X, y, sample_weight).sample_indices_
        return _safe_indexing(X, rows), _safe_indexing(y, rows)

    def _fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        return self.fit_resample(X, y)


def as_labels(y: Any) -> NDArray:
    """Labels as they are; an indicator of one class against the rest becomes labels."""
    return check_target_type(y, indicate_one_vs_all=True)[0]


class SampleScreener(Resampler):
    """Removes the samples that provably cannot change a linear model.

    It solves the problem to a small duality gap and drops the samples that are then proved to lie
    on a flat piece of their loss at every optimum; with more than two classes, those that no class
    needs against the rest. What is left has the same optimum as everything, if the divisor W of
    the mean loss stays that of *all* samples:

    * an estimator that averages the loss, such as `SafeClassifier`, takes `alpha_kept_`;
    * one that sums it, such as LinearSVC, keeps its C, and so fits into a Pipeline as it is.

    Needs imbalanced-learn: ``pip install 'safesift[sampler]'``.

    Parameters
    ----------
    loss : str or Loss, default="squared_hinge"
        A name of `safesift.losses.LOSSES` or an object with its parameters. With a loss of
        numbers or of intervals y holds such targets.
    penalty : str or Penalty, default="l2"
        A name of `safesift.penalties.PENALTIES` or an object with its parameters.
    alpha : float, default=1e-4
        Weight of the penalty, next to the mean loss.
    l1_ratio : float in [0, 1), optional
        Share of the l1 norm in penalty="elastic_net", 0.5 by default; None with any other.
    fit_intercept : bool, default=True
        Whether the model to come has an intercept that is not penalised.
    tol : float, default=1e-6
        Relative duality gap up to which the problem is solved; the smaller, the more samples are
        dropped. What is dropped is proved at any gap.
    max_iter : int, default=1000
        The largest number of steps.
    screening : "auto", str or Region, default="auto"
        The region that decides.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
        For the solvers that draw random numbers.
    verbose : int, default=0

    Attributes
    ----------
    sample_indices_ : array of shape (n_kept,)
        Row numbers of what is kept, rising. A class of which no sample matters keeps its first.
    alpha_kept_ : float
        The alpha for the kept rows alone: alpha·W/W_kept.
    estimator_ : SafeClassifier, SafeRegressor or IntervalRegressor
        The model that was fitted on the way, on all samples.
    sampling_strategy_ : str
        "not influential": of no effect, part of the convention.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only where X has feature names that are strings.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(1000, class_sep=2.0, random_state=0)
    >>> screener = ss.SampleScreener(alpha=1e-2)
    >>> X_kept, y_kept = screener.fit_resample(X, y)
    >>> len(y_kept) < 300
    True
    >>> everything = ss.SafeClassifier(alpha=1e-2, tol=1e-9).fit(X, y)
    >>> kept = ss.SafeClassifier(alpha=screener.alpha_kept_, tol=1e-9).fit(X_kept, y_kept)
    >>> np.allclose(everything.coef_, kept.coef_, atol=1e-5)
    True
    """

    def __init__(
        self,
        loss: str | Loss = "squared_hinge",
        *,
        penalty: str | Penalty = "l2",
        alpha: float = 1e-4,
        l1_ratio: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        screening: str | Region = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._require_imblearn()
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.screening = screening
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @computes
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Screen the samples, without returning those that are kept.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        loss = resolve("loss", self.loss, LOSSES, Loss)
        targets = y
        if loss.task == "classification":
            targets = as_labels(y)
        model = MODELS[loss.task](**self.get_params(deep=False)).fit(X, targets, sample_weight)
        weights = check_weights(sample_weight, len(model.kept_))
        kept = model.kept_ | _first_of_each_class(model, np.asarray(targets), weights)
        found = {
            "sample_indices_": np.flatnonzero(kept),
            "alpha_kept_": float(self.alpha * weights.sum() / weights[kept].sum()),
            "estimator_": model,
            "sampling_strategy_": "not influential",
            "n_features_in_": model.n_features_in_,
        }
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(model, "feature_names_in_"):
            found["feature_names_in_"] = model.feature_names_in_
        self.__dict__.update(found)
        return self


def _first_of_each_class(model: LinearModel, y: NDArray, weights: Array) -> NDArray[np.bool_]:
    """The first sample of every class of which none is kept: to keep more is always safe.

    Of all samples, where there are no classes.
    """
    added = np.zeros(len(weights), dtype=bool)
    groups = [weights > 0]
    if isinstance(model, SafeClassifier):
        groups = [(y.ravel() == label) & (weights > 0) for label in model.classes_]
    for group in groups:
        if not model.kept_[group].any():
            added[np.flatnonzero(group)[0]] = True
    return added


# --- compression in the convention of imbalanced-learn's samplers -------------------------


class SampleCompressor(Resampler):
    """Keeps a given number of samples, those from which a linear model is best trained.

    A Pipeline hands on rows without weights, so by default the rows are chosen to be used without:
    see `reweight`, and `safesift.compress` for what is chosen.

    Needs imbalanced-learn: ``pip install 'safesift[sampler]'``.

    Parameters
    ----------
    n_keep : int or float, default=0.1
        How many samples to keep, or which share of those of positive weight (0 < n_keep ≤ 1).
    loss : str or Loss, default="squared_hinge"
        A name of `safesift.losses.LOSSES` or an object with its parameters. With a loss of
        numbers or of intervals y holds such targets.
    penalty : str or Penalty, default="l2"
        A name of `safesift.penalties.PENALTIES` or an object with its parameters.
    alpha : float, default=1e-4
        Weight of the penalty, next to the mean loss.
    l1_ratio : float in [0, 1), optional
        Share of the l1 norm in penalty="elastic_net", 0.5 by default; None with any other.
    fit_intercept : bool, default=True
        Whether the model to come has an intercept that is not penalised.
    method : {"hybrid", "screening", "margin", "random", "leverage"}, default="hybrid"
        How they are chosen.
    reweight : bool, default=False
        Choose rows that need weights, which are then in `sample_weight_`: far more accurate, where
        what follows takes weights.
    stratify : bool, default=False
        Keep of every class its share; for numbers and intervals, of every tenth of the targets.
    screening : str or Region, default="auto"
        The region of the screening test.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    sample_indices_ : array of shape (n_kept,)
        Row numbers of what is kept, rising: of every class at least one.
    sample_weight_ : array of shape (n_kept,) or None
        The weights to train with, None if there are none.
    alpha_ : float
        The alpha to train with on the kept rows, for an estimator that averages the loss.
    certified_ : bool
        Whether the optimum of the kept rows, with that alpha and those weights, is proved to be
        the optimum of all.
    sampling_strategy_ : str
        "most informative": of no effect, part of the convention.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only where X has feature names that are strings.

    Examples
    --------
    >>> import safesift as ss
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(1000, random_state=0)
    >>> X_small, y_small = ss.SampleCompressor(n_keep=0.1, random_state=0).fit_resample(X, y)
    >>> X_small.shape
    (100, 20)
    """

    def __init__(
        self,
        n_keep: int | float = 0.1,
        *,
        loss: str | Loss = "squared_hinge",
        penalty: str | Penalty = "l2",
        alpha: float = 1e-4,
        l1_ratio: float | None = None,
        fit_intercept: bool = True,
        method: str = "hybrid",
        reweight: bool = False,
        stratify: bool = False,
        screening: str | Region = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._require_imblearn()
        self.n_keep = n_keep
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.method = method
        self.reweight = reweight
        self.stratify = stratify
        self.screening = screening
        self.n_jobs = n_jobs
        self.random_state = random_state

    @computes
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the samples, without returning them.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        task = resolve("loss", self.loss, LOSSES, Loss).task
        targets = y
        if task == "classification":
            targets = as_labels(y)
        if task == "interval":
            rows = validated(self, X)  # the ends may be infinite
        else:
            rows, targets = validated(self, X, targets, y_numeric=task == "regression")
        if task == "classification":
            check_classification_targets(targets)
        small = compress(rows, targets, sample_weight=sample_weight, **self.get_params(deep=False))
        self.sample_indices_ = small.indices
        self.sample_weight_ = small.weights
        self.alpha_ = small.alpha
        self.certified_ = small.certified
        self.sampling_strategy_ = "most informative"
        return self
