"""The estimator for each kind of target."""

from __future__ import annotations

from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.interval import IntervalRegressor
from safesift.estimators.linear import LinearModel
from safesift.estimators.regressor import SafeRegressor

MODELS: dict[str, type[LinearModel]] = {
    "classification": SafeClassifier,
    "regression": SafeRegressor,
    "interval": IntervalRegressor,
}
