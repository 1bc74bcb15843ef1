"""What a tracker shows of the model it holds at the moment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from safesift.estimators.linear import LinearModel
from safesift.estimators.tracking.data import Data
from safesift.estimators.tracking.state import State, kept_samples, undecided_slots

Array = NDArray[np.float64]


def _delegates(name: str) -> Any:
    """The method is there where the estimator, fitted or not, has it."""

    def has(tracker: Tracked) -> bool:
        return hasattr(getattr(tracker, "estimator_", tracker.estimator), name)

    return available_if(has)


class Tracked:
    """Attributes and methods of the fitted estimator, and the samples it was fitted on."""

    estimator: LinearModel
    estimator_: LinearModel
    _state: State

    @property
    def coef_(self) -> Array:
        return self._fitted("coef_")

    @property
    def intercept_(self) -> Any:
        return self._fitted("intercept_")

    @property
    def classes_(self) -> NDArray:
        return self._fitted("classes_")

    @property
    def dual_gap_(self) -> Any:
        return self._fitted("dual_gap_")

    @property
    def n_features_in_(self) -> int:
        return self._fitted("n_features_in_")

    @property
    def feature_names_in_(self) -> NDArray:
        return self._fitted("feature_names_in_")

    def _fitted(self, name: str, *default: Any) -> Any:
        if "estimator_" not in vars(self):
            raise AttributeError(f"SafeTracker has no {name} yet: call fit first.")
        return getattr(self.estimator_, name, *default)

    @property
    def kept_(self) -> NDArray[np.bool_]:
        known = self._fitted("kept_", None)
        return kept_samples(self._state) if known is None else known

    @property
    def undecided_(self) -> NDArray[np.bool_]:
        known = self._fitted("undecided_", None)
        if known is not None:
            return known
        undecided = np.zeros(len(self._data.y), dtype=bool)
        undecided[undecided_slots(self._state)] = True
        return undecided[self._data.order]

    @property
    def _data(self) -> Data:
        if "_state" not in vars(self):
            raise AttributeError("SafeTracker has no samples yet: call fit first.")
        return self._state.data

    @property
    def X_(self) -> Any:
        return self._data.store.rows(self._data.order)

    @property
    def y_(self) -> NDArray:
        return self._data.y[self._data.order]

    @property
    def sample_weight_(self) -> Array:
        return self._data.sample_weight[self._data.order]

    def predict(self, X: Any) -> NDArray:
        """Classes or numbers, as the estimator predicts them.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X)

    @_delegates("decision_function")
    def decision_function(self, X: Any) -> Array:
        """Scores of a classifier: positive for `classes_[1]`, or one column per class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(X)

    @_delegates("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Probabilities, for the logistic losses.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R² of a regressor.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.score(X, y, sample_weight)
