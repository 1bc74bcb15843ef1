"""Laws of compression: what is called certified changes nothing, weights add up, order is order."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safesift as ss
from safesift.losses import LOSSES
from safesift.problem.inputs import make_problems
from safesift.workflows.compression import calibration, compressing
from safesift.workflows.compression.examined import Examined
from tests.laws.problems import Recipe, arrays, build, recipes
from tests.laws.reference import objective, optimum
from tests.laws.strategies import examples
from tests.laws.test_mutations import fails, some
from tests.laws.test_regions import decided

METHODS = ("screening", "margin", "random", "leverage", "hybrid")
SOLVING = ("screening", "margin", "hybrid")


def room(*optima) -> float:
    size = 1.0 + max(abs(best.value) for best in optima)
    return 1e-6 * size if max(best.accuracy for best in optima) > 1e-7 else 1e-10 * size


def law_front_of_the_ranking_is_enough(recipe: Recipe) -> None:
    """The rows up to n_certified, with the divisor of all, have an optimum of all rows."""
    X, y, arguments = arrays(recipe)
    problem = build(recipe)
    ranking = ss.rank_samples(X, y, **arguments, method="screening")
    kept = np.sort(ranking.order[: max(ranking.n_certified, 1)])
    best, fewer = optimum(problem), optimum(problem.restrict(kept))
    assert objective(problem, fewer.point) <= best.value + room(best, fewer)


def law_certified_is_certified(recipe: Recipe, method: str, stratify: bool) -> None:
    """Weights and alpha of a certified compression lead to an optimum of all rows."""
    X, y, arguments = arrays(recipe)
    problem = build(recipe)
    counted = np.flatnonzero(problem.weights > 0)
    few = min(2, len(counted))
    for n_keep in np.unique(np.linspace(few, len(counted), 4).astype(int)):
        small = ss.compress(
            X, y, **arguments, n_keep=int(n_keep), method=method, stratify=stratify, random_state=0
        )
        assert len(small.indices) == n_keep
        if small.certified:
            fewer = optimum(compressed(X, y, arguments, small))
            best = optimum(problem)
            assert objective(problem, fewer.point) <= best.value + room(best, fewer)
            return
    raise AssertionError("all rows are kept, and that is not certified")


def compressed(X, y, arguments, small):
    """The problem of the kept rows."""
    weights = np.ones(len(small.indices)) if small.weights is None else small.weights
    how = arguments | {"loss": arguments["loss"].take(small.indices), "alpha": small.alpha}
    how |= {"sample_weight": weights}
    problem = make_problems(X[small.indices], y[small.indices], **how).problem
    if problem.loss.task == "classification":
        # labels as in the whole problem, where a class may have no weight
        return problem.with_targets(y[small.indices])
    return problem


@examples(0.4)
@given(recipe=recipes())
def test_front_of_the_ranking_is_enough(recipe):
    decided(law_front_of_the_ranking_is_enough, recipe)


@examples(0.4)
@given(recipe=recipes(), method=st.sampled_from(SOLVING), stratify=st.booleans())
def test_certified_is_certified(recipe, method, stratify):
    decided(law_certified_is_certified, recipe, method, stratify)


@examples(0.5)
@given(
    recipe=recipes(),
    method=st.sampled_from(METHODS),
    stratify=st.booleans(),
    share=st.sampled_from([0.3, 0.6, 0.9, 1.0]),
)
def test_weights_add_up(recipe, method, stratify, share):
    X, y, arguments = arrays(recipe)
    weights = arguments["sample_weight"]
    weights = np.ones(len(y)) if weights is None else weights
    n_keep = max(2, round(share * int((weights > 0).sum())))
    n_keep = min(n_keep, int((weights > 0).sum()))
    small = ss.compress(
        X, y, **arguments, n_keep=n_keep, method=method, reweight=True, stratify=stratify,
        random_state=recipe.seed % 2**31,
    )  # fmt: skip
    assert len(small.indices) == len(small.weights) == n_keep
    assert (weights[small.indices] > 0).all()
    assert (small.weights > 0).all()
    assert small.weights.sum() == pytest.approx(weights.sum())
    assert small.alpha == arguments["alpha"]
    if stratify and LOSSES[recipe.loss].task == "classification":
        for label in np.unique(y):
            of_label = y[small.indices] == label
            assert small.weights[of_label].sum() == pytest.approx(weights[y == label].sum())


# well conditioned, so that two solutions of one problem agree and rounding decides nothing
ORDERLY = st.tuples(
    st.integers(0, 2**16),
    st.sampled_from(["squared_hinge", "safe_logistic", "squared_epsilon_insensitive", "squared"]),
    st.booleans(),
)


def orderly(seed, loss, intercept):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    signal = X @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=40)
    y = signal if LOSSES[loss].task == "regression" else np.where(signal > 0, 1, -1)
    return X, y, {"loss": loss, "penalty": "l2", "alpha": 0.05, "fit_intercept": intercept}


@examples(0.2)
@given(setting=ORDERLY, method=st.sampled_from(["screening", "margin", "leverage", "hybrid"]))
def test_permuted_rows_are_ranked_alike(setting, method):
    X, y, arguments = orderly(*setting)
    moved = np.random.default_rng(setting[0]).permutation(len(y))
    plain = ss.rank_samples(X, y, **arguments, method=method, random_state=0)
    other = ss.rank_samples(X[moved], y[moved], **arguments, method=method, random_state=0)
    np.testing.assert_allclose(other.scores, plain.scores[moved], rtol=1e-3, atol=1e-4)
    small = ss.compress(X, y, **arguments, method=method, n_keep=12, random_state=0)
    same = ss.compress(X[moved], y[moved], **arguments, method=method, n_keep=12, random_state=0)
    assert set(moved[same.indices]) == set(small.indices)


@examples(0.2)
@given(setting=ORDERLY, method=st.sampled_from(["screening", "margin"]))
def test_weight_two_is_repetition(setting, method):
    """The same scores; a repeated row's leverage is shared by its copies."""
    X, y, arguments = orderly(*setting)
    counts = np.random.default_rng(setting[0]).integers(1, 3, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    weighted = ss.rank_samples(X, y, **arguments, method=method, sample_weight=counts)
    repeated = ss.rank_samples(X[rows], y[rows], **arguments, method=method)
    np.testing.assert_allclose(weighted.scores[rows], repeated.scores, atol=1e-3)
    leverage = ss.rank_samples(X, y, **arguments, method="leverage", sample_weight=counts).scores
    copies = ss.rank_samples(X[rows], y[rows], **arguments, method="leverage").scores
    np.testing.assert_allclose(leverage[rows] / counts[rows], copies, rtol=1e-8)


@examples(0.2)
@given(setting=ORDERLY, method=st.sampled_from(METHODS))
def test_weight_zero_is_removal(setting, method):
    X, y, arguments = orderly(*setting)
    weights = np.random.default_rng(setting[0]).integers(0, 2, len(y)).astype(float)
    there = weights > 0
    ranking = ss.rank_samples(
        X, y, **arguments, method=method, sample_weight=weights, random_state=0
    )
    assert set(ranking.order[: there.sum()]) == set(np.flatnonzero(there))
    if method != "random":
        alone = ss.rank_samples(X[there], y[there], **arguments, method=method, random_state=0)
        np.testing.assert_allclose(ranking.scores[there], alone.scores, rtol=1e-3, atol=1e-3)


@examples(0.2)
@given(setting=ORDERLY, method=st.sampled_from(METHODS))
def test_single_precision_ranks_as_double(setting, method):
    X, y, arguments = orderly(*setting)
    X = X.astype(np.float32)
    single = ss.compress(X, y, **arguments, method=method, n_keep=15, random_state=0)
    double = ss.compress(
        X.astype(np.float64), y, **arguments, method=method, n_keep=15, random_state=0
    )
    np.testing.assert_array_equal(single.indices, double.indices)
    if single.weights is not None:
        np.testing.assert_allclose(single.weights, double.weights, rtol=1e-4)


def law_calibrated_weights_pull_as_all_rows(setting) -> None:
    """With many times as many rows as columns the model is that of all rows, nearly."""
    X, y, arguments = orderly(*setting)
    X, y = np.vstack([X] * 5), np.concatenate([y] * 5)
    X = X + 0.3 * np.random.default_rng(setting[0]).normal(size=X.shape)
    small = ss.compress(X, y, **arguments, n_keep=60, random_state=0)
    problem = make_problems(X, y, **arguments).problem
    best = optimum(problem)
    fewer = optimum(compressed(X, y, arguments | {"loss": problem.loss}, small))
    assert objective(problem, fewer.point) - best.value <= 1e-4 * problem.constant_value


@examples(0.2)
@given(setting=ORDERLY)
def test_calibrated_weights_pull_as_all_rows(setting):
    decided(law_calibrated_weights_pull_as_all_rows, setting)


# --- the laws can fail ------------------------------------------------------------------------


def test_mutation_scores_too_small(monkeypatch):
    """A test that reaches less far than it should."""
    assert not fails(law_front_of_the_ranking_is_enough, some())
    right = Examined.test_values.func
    wrong = cached_property(lambda self: right(self) - 0.3)
    wrong.__set_name__(Examined, "test_values")
    monkeypatch.setattr(Examined, "test_values", wrong)
    assert fails(law_front_of_the_ranking_is_enough, some())


def test_mutation_too_few_active(monkeypatch):
    """Rows with a little pull are taken for flat ones."""
    assert not fails(law_certified_is_certified, some(20), "hybrid", False)
    right = Examined.active.func
    wrong = cached_property(lambda self: right(self) & (self.margins > 0.3))
    wrong.__set_name__(Examined, "active")
    monkeypatch.setattr(Examined, "active", wrong)
    assert fails(law_certified_is_certified, some(20), "hybrid", False)


def test_mutation_alpha_as_it_was(monkeypatch):
    """Fewer rows, and the divisor with them."""
    record = compressing.Choice._record
    monkeypatch.setattr(
        compressing.Choice,
        "_record",
        lambda self, samples, *rest: replace(
            record(self, samples, *rest), alpha=samples.problems[0].alpha
        ),
    )
    assert fails(law_certified_is_certified, some(), "screening", False)


def test_mutation_design_weights_only(monkeypatch):
    """Without calibration the model is that of a sample."""
    settings = [(seed, "squared_hinge", False) for seed in range(10)]
    for setting in settings:
        law_calibrated_weights_pull_as_all_rows(setting)
    monkeypatch.setattr(calibration, "_moved", lambda part, weights, *rest: weights)
    with pytest.raises(AssertionError):
        for setting in settings:
            law_calibrated_weights_pull_as_all_rows(setting)
