"""Compression in the convention of imbalanced-learn's samplers."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from safesift.estimators.linear import FLOATS
from safesift.estimators.resampling import Resampler, as_labels
from safesift.losses import LOSSES, Loss
from safesift.penalties import Penalty
from safesift.regions import Region
from safesift.registry import resolve
from safesift.workflows.compression import compress


class SampleCompressor(Resampler):
    """Keeps a given number of samples, those from which a linear model is best trained.

    A Pipeline hands on rows without weights, so by default the rows are chosen to be used without:
    see `reweight`, and `safesift.compress` for what is chosen.

    Needs imbalanced-learn: ``pip install 'safesift[sampler]'``.

    Parameters
    ----------
    n_keep : int or float, default=0.1
        How many samples to keep, or which share of those of positive weight (0 < n_keep ≤ 1).
    method : {"hybrid", "screening", "margin", "random", "leverage"}, default="hybrid"
        How they are chosen.
    loss : str or Loss, default="squared_hinge"
        A name of `safesift.losses.LOSSES` or an object with its parameters. With a loss of
        numbers or of intervals y holds such targets.
    penalty : str or Penalty, default="l2"
        A name of `safesift.penalties.PENALTIES` or an object with its parameters.
    alpha : float, default=1e-4
        Weight of the penalty, next to the mean loss.
    fit_intercept : bool, default=True
        Whether the model to come has an intercept that is not penalised.
    reweight : bool, default=False
        Choose rows that need weights, which are then in `sample_weight_`: far more accurate, where
        what follows takes weights.
    stratify : bool, default=False
        Keep of every class its share; for numbers and intervals, of every tenth of the targets.
    region : str or Region, default="auto"
        The region of the screening test.
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
        method: str = "hybrid",
        loss: str | Loss = "squared_hinge",
        penalty: str | Penalty = "l2",
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        reweight: bool = False,
        stratify: bool = False,
        region: str | Region = "auto",
        random_state: Any = None,
    ) -> None:
        self._require_imblearn()
        self.n_keep = n_keep
        self.method = method
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.reweight = reweight
        self.stratify = stratify
        self.region = region
        self.random_state = random_state

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
        how = {"accept_sparse": "csr", "dtype": FLOATS}
        if task == "interval":
            rows = validate_data(self, X, **how)  # the ends may be infinite
        else:
            numeric = task == "regression"
            rows, targets = validate_data(self, X, targets, **how, y_numeric=numeric)
        if task == "classification":
            check_classification_targets(targets)
        small = compress(rows, targets, sample_weight=sample_weight, **self.get_params(deep=False))
        self.sample_indices_ = small.indices
        self.sample_weight_ = small.weights
        self.alpha_ = small.alpha
        self.certified_ = small.certified
        self.sampling_strategy_ = "most informative"
        return self
