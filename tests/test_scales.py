"""Columns in very different units: said where it matters, and by their names."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import safesift as ss
from safesift.problem.inputs import make_problems
from safesift.problem.scales import ColumnScales, column_names, column_scales


def samples(factor: float = 1e11, n: int = 200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] + X[:, 2] + 0.5 * rng.normal(size=n) > 0
    X[:, 2] *= factor
    return X, y


def problem_of(X, y, **how):
    return make_problems(X, y, loss="squared_hinge", penalty="l2", alpha=1e-2, **how).problem


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array, np.float32])
def test_scales_are_those_of_the_weighted_rows(store):
    X, y = samples(1e4)
    X[:, 1] *= 1e-3
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.0], len(y))
    # a row without weight counts nowhere
    X[np.flatnonzero(weights == 0)[0], 3] = 1e12
    found = column_scales(problem_of(store(X), y, sample_weight=weights))
    rms = np.sqrt(np.average(X**2, axis=0, weights=weights))
    assert (found.largest, found.smallest) == (2, 1) and not isinstance(found.largest, np.integer)
    assert found.largest_rms == pytest.approx(rms[2], rel=1e-6)
    assert found.ratio == pytest.approx(rms[2] / rms[1], rel=1e-6)
    assert found.far_apart


def test_nothing_to_compare():
    X, y = samples(1.0)
    assert not column_scales(problem_of(X, y)).far_apart
    assert column_scales(problem_of(X[:, :1], y)) is None
    X[:, 1:] = 0.0
    assert column_scales(problem_of(X, y)) is None


def test_names_and_numbers():
    scales = ColumnScales(2, 0, 3e8, 1.0)
    assert scales.described() == "column X[:, 2] is 3e+08 times as large as column X[:, 0]"
    assert "column 'c' is 3e+08 times as large as column 'a'" in scales.described(["a", "b", "c"])
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    assert column_names(frame) == column_names(pl.DataFrame({"a": [1.0], "b": [2.0]})) == ("a", "b")
    assert column_names(frame.to_numpy()) is None
    assert column_names(pd.DataFrame([[1.0, 2.0]])) is None


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("how", ["fit", "cv", "path", "tracker"])
@pytest.mark.parametrize("named", [False, True])
def test_a_warning_names_the_column(how, loss, named):
    X, y = samples()
    large = "'income'" if named else r"X\[:, 2\]"
    X = pd.DataFrame(X, columns=["a", "b", "income", "c"]) if named else X
    fits = {
        "fit": lambda: ss.SafeClassifier(loss, alpha=1e-2).fit(X, y),
        "cv": lambda: ss.SafeClassifierCV([1e-2], cv=2, loss=loss).fit(X, y),
        "path": lambda: ss.safe_path(X, y, alphas=[1e-2, 1e-3], loss=loss),
        "tracker": lambda: ss.SafeTracker(ss.SafeClassifier(loss, alpha=1e-2)).fit(X, y),
    }
    with pytest.warns(ConvergenceWarning, match=rf"column {large} is 1e\+11 times as large as"):
        fits[how]()


def test_nothing_is_said_where_it_does_not_matter():
    """A solver that reaches its tolerance needs no advice, whatever the columns."""
    X, y = samples(1e7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ss.SafeClassifier(alpha=1e-2, tol=1e-4).fit(X, y)
    assert model.dual_gap_ <= 1e-4
