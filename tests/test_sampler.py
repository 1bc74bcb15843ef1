"""SampleScreener: imbalanced-learn's checks, and the same model from fewer rows."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imblearn.pipeline import make_pipeline
from imblearn.utils.estimator_checks import estimator_checks_generator
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss

# a list of what imblearn's own parametrize_with_checks passes to pytest as a generator
CHECKS = list(estimator_checks_generator(ss.SampleScreener()))


@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=lambda x: getattr(x, "func", x))
def test_imbalanced_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([ss.SampleScreener(screening="curvature")])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_classification(1000, 8, class_sep=1.5, random_state=0)
    return scale(X), y


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_route_with_alpha_kept(two_classes, penalty, classes):
    """Kept rows with alpha_kept_ give the coefficients of all rows; with alpha they do not."""
    X, y = two_classes
    if classes == 3:
        X, y = load_iris(return_X_y=True)
    screener = ss.SampleScreener(penalty=penalty, alpha=1e-2, screening="curvature")
    X_kept, y_kept = screener.fit_resample(X, y)
    assert len(y_kept) < len(y)
    np.testing.assert_array_equal(X[screener.sample_indices_], X_kept)
    np.testing.assert_array_equal(y[screener.sample_indices_], y_kept)
    model = ss.SafeClassifier(penalty=penalty, alpha=1e-2, tol=1e-10, screening="curvature")
    model.fit(X, y)
    coef = model.coef_.copy()
    wrong = clone(model).fit(X_kept, y_kept)
    right = model.set_params(alpha=screener.alpha_kept_).fit(X_kept, y_kept)
    np.testing.assert_allclose(right.coef_, coef, atol=1e-6)
    assert np.abs(wrong.coef_ - coef).max() > 1e-4


def test_weights(two_classes):
    X, y = two_classes
    weights = np.random.default_rng(0).choice([0.0, 1.0, 4.0], len(y))
    screener = ss.SampleScreener(alpha=1e-2)
    X_kept, y_kept = screener.fit_resample(X, y, sample_weight=weights)
    kept = weights[screener.sample_indices_]
    assert (kept > 0).all()
    assert screener.alpha_kept_ == pytest.approx(1e-2 * weights.sum() / kept.sum())
    everything = ss.SafeClassifier(alpha=1e-2, tol=1e-10).fit(X, y, weights)
    fewer = ss.SafeClassifier(alpha=screener.alpha_kept_, tol=1e-10).fit(X_kept, y_kept, kept)
    np.testing.assert_allclose(fewer.coef_, everything.coef_, atol=1e-6)


def test_a_pipeline_with_a_sum(two_classes):
    """LinearSVC sums the loss: in a pipeline its C is that of all rows."""
    X, y = two_classes
    svc = LinearSVC(
        C=1 / (2 * len(y) * 1e-2), fit_intercept=False, dual=False, tol=1e-9, max_iter=10**5
    )
    everything = make_pipeline(StandardScaler(), svc).fit(X, y)
    screener = ss.SampleScreener(alpha=1e-2, fit_intercept=False)
    fewer = make_pipeline(StandardScaler(), screener, clone(svc)).fit(X, y)
    assert len(fewer[1].sample_indices_) < 0.6 * len(y)
    np.testing.assert_allclose(fewer[-1].coef_, everything[-1].coef_, atol=1e-5)
    assert fewer.predict(X).shape == y.shape


def test_rows_come_back_as_they_were(two_classes):
    X, y = two_classes
    rows = ss.SampleScreener(alpha=1e-2).fit(X, y).sample_indices_
    labels = np.array(["no", "yes"])[y]
    for data, targets in [
        (pd.DataFrame(X, columns=list("abcdefgh")), pd.Series(labels)),
        (pl.DataFrame(X), pl.Series(labels)),
        (sparse.csr_array(X), labels),
    ]:
        screener = ss.SampleScreener(alpha=1e-2)
        X_kept, y_kept = screener.fit_resample(data, targets)
        np.testing.assert_array_equal(screener.sample_indices_, rows)
        assert type(X_kept) is type(data) and type(y_kept) is type(targets)
        assert list(np.asarray(y_kept)) == list(labels[rows])


def test_numbers_and_intervals(two_classes):
    X, _ = two_classes
    y = X[:, 0] + 0.1 * np.random.default_rng(0).normal(size=len(X))
    screener = ss.SampleScreener(ss.losses.SquaredEpsilonInsensitive(0.2), alpha=1e-3)
    X_kept, y_kept = screener.fit_resample(X, y)
    assert len(y_kept) < 0.5 * len(y)
    model = ss.SafeRegressor(epsilon=0.2, alpha=1e-3, tol=1e-10)
    everything = model.fit(X, y).coef_
    fewer = model.set_params(alpha=screener.alpha_kept_).fit(X_kept, y_kept).coef_
    np.testing.assert_allclose(fewer, everything, atol=1e-6)
    ends = np.column_stack([y - 0.2, y + 0.2])
    intervals = ss.SampleScreener("squared_interval", alpha=1e-3)
    assert intervals.fit_resample(X, ends)[1].shape == (len(y_kept), 2)


def test_no_class_disappears():
    """A loss so flat that every sample is dropped: one of each class stays."""
    X, y = load_iris(return_X_y=True)
    screener = ss.SampleScreener(ss.losses.SquaredHinge(mu=5.0), alpha=1.0)
    _, y_kept = screener.fit_resample(X, y)
    assert set(y_kept) == {0, 1, 2}
    assert np.isfinite(screener.alpha_kept_)


@pytest.mark.parametrize("name", ["SampleScreener", "SampleCompressor"])
def test_without_imbalanced_learn(monkeypatch, name):
    """Where it is missing, the modules are imported all the same."""
    monkeypatch.setitem(sys.modules, "imblearn.base", None)
    monkeypatch.delitem(sys.modules, "safesift.estimators.sampler", raising=False)
    sampler = getattr(importlib.import_module("safesift.estimators.sampler"), name)
    with pytest.raises(ImportError, match=rf"{name} needs .* pip install 'safesift\[sampler\]'"):
        sampler()
