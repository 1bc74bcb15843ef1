"""What the samplers share: the convention of imbalanced-learn, which need not be installed."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

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
            raise ImportError(
                f"{type(self).__name__} needs imbalanced-learn: pip install 'safesift[sampler]'."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        return tags

    @abstractmethod
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the samples, without returning them."""

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
