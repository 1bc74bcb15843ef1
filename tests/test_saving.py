"""Fitted estimators go into files and come back as they were: pickle, joblib and skops."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import skops.io
from scipy import sparse
from sklearn.base import BaseEstimator

import safesift as ss
from safesift.losses import LOSSES
from safesift.penalties import PENALTIES
from safesift.regions import REGIONS

PAGE = Path(__file__).parent.parent / "docs" / "estimators.md"

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(60, 4))
_TREND = X @ [1.0, -2.0, 0.5, 0.0] + 0.4 * _RNG.normal(size=60)
LABELS, THREE = np.where(_TREND > 0, "yes", "no"), np.digitize(_TREND, [-1.0, 1.0])
ENDS = np.column_stack([_TREND - 0.5, _TREND + 0.5])


def _resampled(sampler: Any) -> Any:
    sampler.fit_resample(X, LABELS)
    return sampler


def _tracker(rows: Any, y: Any, model: Any) -> ss.SafeTracker:
    return ss.SafeTracker(model).fit(rows[:50], y[:50]).update(add=(rows[50:], y[50:]), remove=3)


FITTED: dict[str, Callable[[], Any]] = {
    "SafeClassifier": lambda: ss.SafeClassifier(alpha=0.1).fit(X, LABELS),
    "SafeClassifier of objects": lambda: ss.SafeClassifier(
        ss.losses.SafeLogistic(mu=0.5), penalty=ss.penalties.ElasticNet(0.5), alpha=0.1,
        screening=ss.regions.HalfSpaceCut(ss.regions.GapBall()), fit_intercept=False,
    ).fit(X, THREE),
    "SafeClassifier of blocks": lambda: ss.SafeClassifier(alpha=0.1).fit(
        ss.blocks.arrays(X, THREE, memory="10 MB")
    ),
    "SafeRegressor": lambda: ss.SafeRegressor(epsilon=np.full(60, 0.2)).fit(X, _TREND),
    "IntervalRegressor": lambda: ss.IntervalRegressor(alpha=0.1).fit(X, ENDS),
    "SafeClassifierCV": lambda: ss.SafeClassifierCV(4, cv=3).fit(X, LABELS),
    "SafeRegressorCV": lambda: ss.SafeRegressorCV(4, cv=3).fit(X, _TREND),
    "SafeKernelClassifier": lambda: ss.SafeKernelClassifier(alpha=0.1).fit(X, LABELS),
    "SafeKernelRegressor": lambda: ss.SafeKernelRegressor(alpha=0.1).fit(X, _TREND),
    "SampleScreener": lambda: _resampled(ss.SampleScreener(alpha=0.1)),
    "SampleCompressor": lambda: _resampled(ss.SampleCompressor(alpha=0.1)),
    "SafeTracker": lambda: _tracker(X, LABELS, ss.SafeClassifier(alpha=0.1)),
    "SafeTracker of sparse rows": lambda: _tracker(
        sparse.csr_array(X), _TREND, ss.SafeRegressor(alpha=0.1)
    ),
}  # fmt: skip


@cache
def of_kind(kind: str) -> Any:
    return FITTED[kind]()


@pytest.fixture(params=FITTED)
def fitted(request: pytest.FixtureRequest) -> Any:
    return of_kind(request.param)


def test_no_estimator_is_forgotten() -> None:
    public = {name: getattr(ss, name) for name in ss.__all__}
    estimators = {
        name for name, value in public.items()
        if isinstance(value, type) and issubclass(value, BaseEstimator)
    }  # fmt: skip
    assert estimators == {name.partition(" ")[0] for name in FITTED}


def _joblib(model: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize(
    "again", [lambda model: pickle.loads(pickle.dumps(model)), _joblib], ids=["pickle", "joblib"]
)
def test_pickles(fitted: Any, again: Callable[[Any], Any]) -> None:
    assert_same(again(fitted), fitted)


def test_skops_with_the_types_of_the_page(fitted: Any) -> None:
    saved = skops.io.dumps(fitted)
    assert_same(skops.io.loads(saved, trusted=sorted(documented() | of_parameters())), fitted)


def test_the_page_names_no_type_in_vain() -> None:
    needed = {
        name for kind in FITTED
        for name in skops.io.get_untrusted_types(data=skops.io.dumps(of_kind(kind)))
    }  # fmt: skip
    assert documented() <= needed
    for name in documented():
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), kind), type)


@pytest.mark.parametrize("name", [*LOSSES, *PENALTIES, *REGIONS])
def test_what_is_given_as_an_object(name: str) -> None:
    given = next(table for table in (LOSSES, PENALTIES, REGIONS) if name in table)[name]()
    saved = skops.io.dumps(given)
    (kind,) = skops.io.get_untrusted_types(data=saved)
    assert repr(skops.io.loads(saved, trusted=[kind])) == repr(given)


# --- comparing ------------------------------------------------------------------------------------


def assert_same(other: Any, model: Any) -> None:
    """It knows the same, predicts the same, and goes on to the same."""
    assert type(other) is type(model) and repr(other) == repr(model)
    if isinstance(model, ss.SafeTracker):
        # a copy goes its own way
        model, change = copy.copy(model), {"add": (X[:2], model.y_[:2]), "remove": [7, 9]}
        model.update(**change), other.update(**change)
        np.testing.assert_array_equal(other.coef_, model.coef_)
        np.testing.assert_array_equal(other.undecided_, model.undecided_)
    elif hasattr(model, "fit_resample"):
        np.testing.assert_array_equal(other.sample_indices_, model.sample_indices_)
    else:
        np.testing.assert_array_equal(np.asarray(other.kept_), np.asarray(model.kept_))
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    if hasattr(model, "decision_function"):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))


def documented() -> set[str]:
    """The types that the page says to trust."""
    section = PAGE.read_text().partition("## Keeping a fitted model")[2].partition("\n## ")[0]
    return set(re.findall(r"`(safesift\.[\w.]+)`", section))


def of_parameters() -> set[str]:
    """The classes of losses, penalties and regions, which the page does not list one by one."""
    objects = [make() for table in (LOSSES, PENALTIES, REGIONS) for make in table.values()]
    objects.append(ss.regions.HalfSpaceCut(ss.regions.GapBall()))
    return {f"{type(one).__module__}.{type(one).__qualname__}" for one in objects}
