"""Laws of the estimators: optimal to what the gap says, whatever the parameters and the storage."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import safesift as ss
from safesift.losses import LOSSES
from safesift.penalties import PENALTIES
from safesift.problem.inputs import make_problems
from tests.laws.reference import NotSolvedError, objective, optimum
from tests.laws.strategies import examples, losses, penalties

ESTIMATORS = {
    "classification": ss.SafeClassifier,
    "regression": ss.SafeRegressor,
    "interval": ss.IntervalRegressor,
}
NAMES = sorted(LOSSES)


@st.composite
def samples(draw, task):
    n, p = draw(st.integers(4, 25)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.choice([rng.normal(size=(n, p)), rng.integers(-2, 3, (n, p)).astype(float)])
    signal = X @ rng.normal(size=p) + rng.normal(size=n)
    y = signal > np.median(signal)
    if task != "classification":
        y = signal
    if task == "interval":
        y = np.column_stack([signal, signal + rng.uniform(0, 2, n)])
    weights = draw(st.sampled_from([np.ones(n), rng.choice([0.0, 1.0, 2.5], n)]))
    if task == "classification":
        assume(len(np.unique(y[weights > 0])) == 2)
    assume(weights.any())
    stored = draw(st.sampled_from([np.asarray, sparse.csr_array, np.asfortranarray]))
    return stored(X), y, weights


def fitted(model, X, y, weights):
    with warnings.catch_warnings():
        # the gap says how far it came
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=weights)


def problem_of(model, X, y, weights):
    return make_problems(
        X, y, loss=model.loss, penalty=model.penalty, alpha=model.alpha,
        fit_intercept=model.fit_intercept, sample_weight=weights,
    ).problem  # fmt: skip


def point_of(model, problem):
    return problem.join(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))


@pytest.mark.parametrize("penalty", sorted(PENALTIES))
@pytest.mark.parametrize("name", NAMES)
@examples(0.034)
@given(data=st.data())
def test_the_gap_is_the_truth(name, penalty, data):
    """P at the fitted model is at most dual_gap_ above an optimum found independently."""
    loss = data.draw(losses(name))
    X, y, weights = data.draw(samples(loss.task))
    model = ESTIMATORS[loss.task](
        loss=loss,
        penalty=data.draw(penalties(penalty)),
        alpha=data.draw(st.sampled_from([1e-3, 0.03, 1.0])),
        fit_intercept=data.draw(st.booleans()),
        screening=data.draw(st.sampled_from(["auto", "auto", None])),
    )
    fitted(model, X, y, weights)
    problem = problem_of(model, X, y, weights)
    value = objective(problem, point_of(model, problem))
    try:
        best = optimum(problem)
    except NotSolvedError:
        assume(False)
    size = max(1.0, problem.constant_value)
    assert value <= best.value + model.dual_gap_ + 1e-7 * size
    assert model.dual_gap_ == model.history_[-1]["gap"]
    # what is dropped is flat at the optimum, up to the accuracy of the reference
    pred = problem.evaluate(best.point).pred
    flat = np.abs(loss.slope(pred, problem.y)) <= 1e-3
    assert (flat | model.kept_ | (weights == 0)).all()


@pytest.mark.parametrize("name", ["squared_hinge", "safe_logistic", "huber", "squared_interval"])
@examples(0.15)
@given(data=st.data())
def test_screening_does_not_change_the_model(name, data):
    """Two points of gap Δ are within 2√(2Δ/alpha) of each other, by strong convexity."""
    loss = data.draw(losses(name))
    X, y, weights = data.draw(samples(loss.task))
    alpha = data.draw(st.sampled_from([1e-2, 0.3]))
    common = {"loss": loss, "alpha": alpha, "fit_intercept": False}
    kind = ESTIMATORS[loss.task]
    ways = ["auto", None, "curvature", "gap_ball", ss.regions.HalfSpaceCut(ss.regions.GapBall())]
    models = [fitted(kind(**common, screening=way), X, y, weights) for way in ways]
    for model in models[1:]:
        reach = sum(np.sqrt(2.0 * m.dual_gap_ / alpha) for m in (models[0], model))
        assert np.linalg.norm(model.coef_ - models[0].coef_) <= reach + 1e-9


@examples(0.1)
@given(data=st.data())
def test_more_classes_are_one_against_the_rest(data):
    seed, n_classes = data.draw(st.integers(0, 2**16)), data.draw(st.integers(3, 5))
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 40)])
    X = rng.normal(size=(len(y), 3)) + 2.0 * rng.normal(size=(n_classes, 3))[y]
    weights = rng.choice([0.5, 1.0, 3.0], len(y))
    loss = data.draw(st.sampled_from(["squared_hinge", "safe_logistic"]))
    model = ss.SafeClassifier(loss, alpha=0.01, tol=1e-10, screening="curvature")
    together = model.fit(X, y, weights)
    coefs, intercepts = together.coef_, together.intercept_
    assert (together.kept_ == together.kept_per_class_.any(axis=1)).all()
    for label in range(n_classes):
        alone = model.fit(X, y == label, weights)
        np.testing.assert_allclose(coefs[label], alone.coef_[0], atol=1e-3)
        np.testing.assert_allclose(intercepts[label], alone.intercept_[0], atol=1e-3)
