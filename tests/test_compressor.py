"""SampleCompressor: imbalanced-learn's and scikit-learn's checks, and use in a pipeline."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imblearn.pipeline import make_pipeline
from imblearn.utils.estimator_checks import estimator_checks_generator
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss

# a list of what imblearn's own parametrize_with_checks passes to pytest as a generator
CHECKS = list(estimator_checks_generator(ss.SampleCompressor(random_state=0)))


@pytest.mark.parametrize(("estimator", "check"), CHECKS, ids=lambda x: getattr(x, "func", x))
def test_imbalanced_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([ss.SampleCompressor(0.5, reweight=True, stratify=True)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_classification(800, 8, class_sep=1.5, random_state=0)
    return scale(X), y


def test_in_a_pipeline(two_classes):
    X, y = two_classes
    compressor = ss.SampleCompressor(n_keep=0.1, alpha=1e-3, random_state=0)
    svc = LinearSVC(C=1.0, dual=False)
    fewer = make_pipeline(StandardScaler(), compressor, svc).fit(X, y)
    assert len(compressor.sample_indices_) == 80
    everything = make_pipeline(StandardScaler(), LinearSVC(C=1.0, dual=False)).fit(X, y)
    assert fewer.predict(X).shape == y.shape
    assert fewer.score(X, y) > everything.score(X, y) - 0.03


def test_with_weights(two_classes):
    X, y = two_classes
    compressor = ss.SampleCompressor(n_keep=120, alpha=1e-3, reweight=True, random_state=0)
    X_small, y_small = compressor.fit_resample(X, y)
    np.testing.assert_array_equal(X_small, X[compressor.sample_indices_])
    assert compressor.sample_weight_.sum() == pytest.approx(len(y))
    assert compressor.alpha_ == 1e-3
    model = ss.SafeClassifier(alpha=1e-3)
    full = model.fit(X, y).coef_
    small = model.fit(X_small, y_small, sample_weight=compressor.sample_weight_).coef_
    np.testing.assert_allclose(small, full, atol=0.05 * np.abs(full).max())


def test_it_is_compress(two_classes):
    X, y = two_classes
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(y))
    compressor = ss.SampleCompressor(0.2, stratify=True, random_state=5)
    compressor.fit(X, y, sample_weight=weights)
    expected = ss.compress(
        X, y, n_keep=0.2, stratify=True, reweight=False, fit_intercept=True,
        sample_weight=weights, random_state=5,
    )  # fmt: skip
    np.testing.assert_array_equal(compressor.sample_indices_, expected.indices)
    np.testing.assert_array_equal(compressor.sample_weight_, expected.weights)
    assert (weights[compressor.sample_indices_] > 0).all()


def test_rows_come_back_as_they_were(two_classes):
    X, y = two_classes
    rows = ss.SampleCompressor(random_state=0).fit(X, y).sample_indices_
    labels = np.array(["no", "yes"])[y]
    for frame, targets in [
        (pd.DataFrame(X, columns=list("abcdefgh")), pd.Series(labels)),
        (pl.DataFrame(X), pl.Series(labels)),
        (sparse.csr_array(X), labels),
    ]:
        compressor = ss.SampleCompressor(random_state=0)
        X_kept, y_kept = compressor.fit_resample(frame, targets)
        np.testing.assert_array_equal(compressor.sample_indices_, rows)
        assert type(X_kept) is type(frame) and type(y_kept) is type(targets)


def test_classes_numbers_and_intervals(two_classes):
    X, y = load_iris(return_X_y=True)
    _, y_kept = ss.SampleCompressor(0.1, stratify=True, random_state=0).fit_resample(X, y)
    assert np.bincount(y_kept).tolist() == [5, 5, 5]
    X, _ = two_classes
    target = X[:, 0] + 0.1 * X[:, 1]
    regression = ss.SampleCompressor(50, loss="squared_epsilon_insensitive")
    assert regression.fit_resample(X, target)[1].shape == (50,)
    ends = np.column_stack([target - 0.2, np.where(target > 1, np.inf, target + 0.2)])
    intervals = ss.SampleCompressor(50, loss="squared_interval")
    assert intervals.fit_resample(X, ends)[1].shape == (50, 2)
