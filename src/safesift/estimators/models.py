"""The estimator for each kind of target."""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.devices.arrays import on_host
from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.interval import IntervalRegressor
from safesift.estimators.linear import LinearModel, Samples
from safesift.estimators.regressor import SafeRegressor
from safesift.losses import LOSSES, Loss
from safesift.registry import resolve
from safesift.workflows.scale.results import BlockScreening
from safesift.workflows.verdicts import ScreeningResult

MODELS: dict[str, type[LinearModel]] = {
    "classification": SafeClassifier,
    "regression": SafeRegressor,
    "interval": IntervalRegressor,
}


def estimator_of(result: ScreeningResult) -> LinearModel:
    """The model at the centre of a screening, as `fit` would have left it."""
    fits = [part.fit for part in result.parts]
    problem = fits[0].problem
    model = MODELS[problem.loss.task](**vars(result.training), n_jobs=result.n_jobs)
    model.n_features_in_ = problem.design.n_features
    if result.feature_names is not None:
        model.feature_names_in_ = np.array(result.feature_names, dtype=object)
    weights = result.weights
    samples = Samples(problem.design, on_host(problem.y), weights, weights, result.classes)
    return model._fitted_from(samples, fits)


def estimator_of_blocks(result: BlockScreening) -> LinearModel:
    """The model of rows that came in blocks, as `fit` would have left it."""
    loss = resolve("loss", result.training.loss, LOSSES, Loss)
    model = MODELS[loss.task](**vars(result.training))
    model._publish_blocks(result.solution)
    return model
