"""Two hundred people ask to be forgotten: train again each time, or bring the model up to date."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

from safesift.arithmetic.printing import Brief
from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.tracker import SafeTracker

Array = NDArray[np.float64]

N_SAMPLES, N_REQUESTS, ALPHA = 10_000, 200, 1e-4


@dataclass(frozen=True, eq=False, repr=False)
class Forgotten(Brief):
    """What it took to forget rows one by one.

    Attributes
    ----------
    n_samples, n_requests : int
    again_seconds, tracked_seconds : float
        All trainings of LinearSVC, all updates of the tracker and its first fit.
    coef_change : float
        How far the last two models are apart, relative to the largest coefficient.
    worst_gap : float
        The largest relative duality gap of all models of the tracker.
    """

    n_samples: int
    n_requests: int
    again_seconds: float
    tracked_seconds: float
    coef_change: float
    worst_gap: float

    @property
    def times_faster(self) -> float:
        return self.again_seconds / self.tracked_seconds


def forget(n_samples: int = N_SAMPLES, n_requests: int = N_REQUESTS) -> Forgotten:
    """Both ways, on the same made-up rows, in the same order."""
    X, y = make_classification(
        n_samples, 30, n_informative=12, class_sep=1.2, flip_y=0.02, random_state=0
    )
    requests = np.random.default_rng(0).choice(n_samples, n_requests, replace=False)
    # what is compiled at the first call is compiled once for good, and not part of the story
    _track(X[:200], y[:200], requests[:1] % 200)
    tracker, tracked_seconds = _track(X, y, requests)
    again, again_seconds = _train_again(X, y, requests)
    change = np.abs(again.coef_ - tracker.estimator_.coef_).max() / np.abs(again.coef_).max()
    gaps = [record["relative_gap"] for record in tracker.history_]
    return Forgotten(
        n_samples, n_requests, again_seconds, tracked_seconds, float(change), float(max(gaps))
    )


def _track(X: Array, y: NDArray, requests: NDArray[np.intp]) -> tuple[SafeTracker, float]:
    began = time.perf_counter()
    tracker = SafeTracker(SafeClassifier(alpha=ALPHA, fit_intercept=False)).fit(X, y)
    rows = np.arange(len(y))
    for request in requests:
        place = int(np.flatnonzero(rows == request)[0])
        tracker.update(remove=[place])
        rows = np.delete(rows, place)
    return tracker, time.perf_counter() - began


def _train_again(X: Array, y: NDArray, requests: NDArray[np.intp]) -> tuple[LinearSVC, float]:
    began, rows = time.perf_counter(), np.arange(len(y))
    for request in requests:
        rows = rows[rows != request]
        # sums its losses, without our ½
        C = 1.0 / (2.0 * len(rows) * ALPHA)
        model = LinearSVC(C=C, fit_intercept=False, dual=False).fit(X[rows], y[rows])
    return model, time.perf_counter() - began
