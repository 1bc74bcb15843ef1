"""Ranking, compressing and curves: what users call, what they get, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification, make_regression

import safesift as ss
from safesift import progress
from safesift.design.rows import rows_of
from safesift.problem.inputs import make_problems
from safesift.regions import Region
from safesift.regions.base import Everything
from safesift.workflows.compression.examined import Training, examine
from safesift.workflows.compression.metric import DiagonalMetric, SumsInMemory, WholeMetric

METHODS = ("screening", "margin", "random", "leverage", "hybrid")


@pytest.fixture(scope="module")
def labelled():
    X, y = make_classification(600, 8, class_sep=1.2, flip_y=0.05, random_state=0)
    return X / np.sqrt(8), y


@pytest.fixture(scope="module")
def numbers():
    X, y = make_regression(400, 6, noise=20.0, random_state=0)
    return X, y / y.std()


# --- ranking --------------------------------------------------------------------------------


def test_screening_ranks_by_the_value_of_the_test(labelled):
    X, y = labelled
    ranking = ss.rank_samples(X, y, alpha=1e-2, screening="gap_ball", fit_intercept=False)
    full = ss.SafeClassifier(alpha=1e-2, fit_intercept=False, tol=1e-9).fit(X, y)
    result = ss.screen(X, y, alpha=1e-2, coef=full.coef_, screening="gap_ball", fit_intercept=False)
    np.testing.assert_allclose(ranking.scores, result.score, atol=1e-3)
    assert (np.diff(ranking.scores[ranking.order]) <= 0).all()
    assert ranking.n_certified == (ranking.scores >= 0).sum() < len(y)


def test_margin_is_the_distance_from_the_flat_piece(labelled, numbers):
    X, y = labelled
    model = ss.SafeClassifier(alpha=1e-2, tol=1e-9).fit(X, y)
    margins = 1.0 - (2 * y - 1) * model.decision_function(X)
    ranking = ss.rank_samples(X, y, alpha=1e-2, method="margin", fit_intercept=True)
    np.testing.assert_allclose(ranking.scores, margins, atol=1e-3)
    X, y = numbers
    loss = ss.losses.SquaredEpsilonInsensitive(0.3)
    model = ss.SafeRegressor(loss, alpha=1e-2, tol=1e-9).fit(X, y)
    ranking = ss.rank_samples(X, y, loss=loss, alpha=1e-2, method="margin", fit_intercept=True)
    np.testing.assert_allclose(ranking.scores, np.abs(model.predict(X) - y) - 0.3, atol=1e-3)


def test_a_loss_that_is_flat_nowhere(numbers):
    X, y = numbers
    ranking = ss.rank_samples(X, y, loss="squared", alpha=1e-2, fit_intercept=False)
    assert ranking.n_certified == len(y)
    assert (ranking.scores > 0).all()


class Nowhere(Region):
    """Knows nothing, as where the data do not bound an intercept."""

    def build(self, certificate):
        return Everything()


def test_bounds_that_say_nothing_are_ranked_by_margin(labelled):
    X, y = labelled
    ranking = ss.rank_samples(X, y, alpha=1e-2, screening=Nowhere(), fit_intercept=False)
    assert np.isinf(ranking.scores).all()
    margins = ss.rank_samples(X, y, alpha=1e-2, method="margin", fit_intercept=False)
    np.testing.assert_array_equal(ranking.order, margins.order)
    assert ranking.n_certified == len(y)


def test_leverage_is_exact(labelled):
    X, y = labelled
    ranking = ss.rank_samples(X, y, alpha=1e-2, method="leverage", fit_intercept=False)
    H = X.T @ X / len(y) + 1e-2 * np.eye(X.shape[1])
    expected = np.einsum("ij,jk,ik->i", X, np.linalg.inv(H), X)
    np.testing.assert_allclose(ranking.scores, expected, rtol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_leverage_of_many_columns_is_estimated(intercept):
    X = sparse.random_array((300, 60), density=0.2, random_state=0, format="csr")
    problem = make_problems(
        X, np.arange(300) % 2, loss="squared_hinge", penalty="l2", alpha=1e-2,
        fit_intercept=intercept,
    ).problem  # fmt: skip
    sums, rows = SumsInMemory(problem), rows_of(problem.design)
    exact, estimated = (kind.made(sums, 0).leverage(rows) for kind in (WholeMetric, DiagonalMetric))
    some = exact > 1e-9
    assert np.mean(np.abs(estimated[some] / exact[some] - 1.0)) < 0.25
    assert problem.shares @ estimated == pytest.approx(problem.shares @ exact, rel=0.1)


def test_wide_data_are_compressed():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 2500), density=0.01, random_state=rng, format="csr")
    y = np.asarray(X @ rng.normal(size=2500)) > 0
    small = ss.compress(X, y, n_keep=0.3, alpha=1e-3, random_state=0, fit_intercept=False)
    assert len(small.indices) == 90
    assert small.weights.sum() == pytest.approx(300)


def test_several_classes_count_as_for_the_class_that_needs_them_most():
    X, y = load_iris(return_X_y=True)
    scores = [
        ss.rank_samples(X, y == label, alpha=1e-2, method="margin", fit_intercept=False).scores
        for label in range(3)
    ]
    together = ss.rank_samples(X, y, alpha=1e-2, method="margin", fit_intercept=False)
    np.testing.assert_allclose(together.scores, np.max(scores, axis=0), atol=1e-3)
    assert together.classes.tolist() == [0, 1, 2]
    ranking = ss.rank_samples(X, y, alpha=1e-1, fit_intercept=False)
    kept = np.sort(ranking.order[: ranking.n_certified])
    assert len(kept) < len(y)
    model = ss.SafeClassifier(alpha=1e-1, tol=1e-10, fit_intercept=False).fit(X, y)
    coef = model.coef_.copy()
    model.set_params(alpha=1e-1 * len(y) / len(kept)).fit(X[kept], y[kept])
    np.testing.assert_allclose(model.coef_, coef, atol=1e-5)


# --- compressing ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_same_random_state_the_same_rows(labelled, method):
    X, y = labelled
    first, again, other = (
        ss.compress(X, y, n_keep=60, method=method, random_state=seed, fit_intercept=False)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.indices, again.indices)
    if first.weights is not None:
        np.testing.assert_array_equal(first.weights, again.weights)
    assert (method in ("random", "hybrid")) == (set(first.indices) != set(other.indices))


def test_numbers_and_shares(labelled):
    X, y = labelled
    for n_keep, count in [(60, 60), (0.1, 60), (1.0, 600), (600, 600), (np.int64(7), 7)]:
        small = ss.compress(X, y, n_keep=n_keep, method="random", fit_intercept=False)
        assert len(small.indices) == count == small.kept.sum()
        assert (np.diff(small.indices) > 0).all()
    everything = ss.compress(X, y, n_keep=1.0, fit_intercept=False)
    assert everything.certified
    np.testing.assert_allclose(everything.weights, 1.0)


def test_rows_in_the_type_they_came_in(labelled):
    X, y = labelled
    rows = ss.compress(X, y, n_keep=50, random_state=0, fit_intercept=False).indices
    labels = np.array(["no", "yes"])[y]
    for data, targets in [
        (pd.DataFrame(X), pd.Series(labels)),
        (pl.DataFrame(X), pl.Series(labels)),
        (sparse.csr_array(X), labels),
        (X.tolist(), labels.tolist()),
    ]:
        small = ss.compress(data, targets, n_keep=50, random_state=0, fit_intercept=False)
        np.testing.assert_array_equal(small.indices, rows)
        X_small, y_small = small.take(data, targets)
        assert type(X_small) is type(data)
        assert list(y_small) == list(labels[rows])
    assert len(small.take(X)) == 50


@pytest.mark.parametrize("method", METHODS)
def test_strata_keep_their_shares(labelled, numbers, method):
    X, y = labelled
    rare = np.flatnonzero(y == 1)[:40]
    rows = np.concatenate([np.flatnonzero(y == 0), rare])
    X, y = X[rows], y[rows]
    small = ss.compress(
        X, y, n_keep=0.2, method=method, stratify=True, random_state=0, fit_intercept=False
    )
    assert (y[small.indices] == 1).sum() == round(0.2 * 40)
    X, y = numbers
    small = ss.compress(
        X, y, n_keep=100, loss="squared_epsilon_insensitive", method=method, stratify=True,
        random_state=0, fit_intercept=False,
    )  # fmt: skip
    tenths = np.searchsorted(np.quantile(y, np.linspace(0, 1, 11)[1:-1]), y, side="right")
    assert set(np.bincount(tenths[small.indices])) == {10}


@pytest.mark.parametrize("method", METHODS)
def test_every_class_is_there(method):
    X, y = load_iris(return_X_y=True)
    small = ss.compress(
        X, y, n_keep=3, method=method, alpha=1e-2, random_state=0, fit_intercept=False
    )
    assert set(y[small.indices]) == {0, 1, 2}


@pytest.mark.parametrize("reweight", [False, True])
def test_hybrid_is_exact_where_the_budget_allows(labelled, reweight):
    X, y = labelled
    active = ss.screen(X, y, alpha=1e-2, fit_intercept=False).kept.sum()
    small = ss.compress(
        X, y, n_keep=int(active) + 5, alpha=1e-2, reweight=reweight, fit_intercept=False
    )
    assert small.certified
    assert (small.weights is not None) == reweight
    full = ss.SafeClassifier(alpha=1e-2, tol=1e-10, fit_intercept=False).fit(X, y)
    model = ss.SafeClassifier(alpha=small.alpha, tol=1e-10, fit_intercept=False)
    model.fit(*small.take(X, y), sample_weight=small.weights)
    np.testing.assert_allclose(model.coef_, full.coef_, atol=1e-5)


def test_given_weights_stay_without_reweighting(labelled):
    X, y = labelled
    weights = np.random.default_rng(0).choice([0.0, 1.0, 3.0], len(y))
    for method in METHODS:
        small = ss.compress(
            X,
            y,
            n_keep=50,
            method=method,
            sample_weight=weights,
            reweight=False,
            random_state=0,
            fit_intercept=False,
        )
        np.testing.assert_array_equal(small.weights, weights[small.indices])
        assert (small.weights > 0).all()


def test_alpha_stays_where_the_kept_rows_stand_for_all(labelled):
    X, y = labelled
    for method in ("random", "leverage"):
        small = ss.compress(
            X, y, n_keep=60, alpha=1e-2, method=method, reweight=False, fit_intercept=False
        )
        assert small.weights is None and small.alpha == pytest.approx(1e-2)
    for method in ("screening", "margin"):
        small = ss.compress(X, y, n_keep=60, alpha=1e-2, method=method, fit_intercept=False)
        assert small.weights is None and small.alpha == pytest.approx(1e-2 * 600 / 60)
    between = ss.compress(X, y, n_keep=60, alpha=1e-2, reweight=False, fit_intercept=False).alpha
    assert 1e-2 < between < 1e-2 * 600 / 60


def test_intervals(numbers):
    X, y = numbers
    Y = np.column_stack([y - 0.3, np.where(y > 1, np.inf, y + 0.3)])
    for method in METHODS:
        small = ss.compress(
            X,
            Y,
            n_keep=0.25,
            loss="squared_interval",
            method=method,
            stratify=True,
            fit_intercept=False,
        )
        assert len(small.indices) == 100


def test_constraints(labelled):
    X, y = labelled
    small = ss.compress(
        X, y, n_keep=50, penalty=ss.penalties.L2Ball(2.0), random_state=0, fit_intercept=False
    )
    assert small.weights.sum() == pytest.approx(len(y))


def test_few_rows_are_better_than_random_ones(labelled):
    """The point of it all, on a small scale: mean test accuracy over random states."""
    X, y = labelled
    train, test = slice(0, 400), slice(400, 600)
    scores = {}
    for method in ("hybrid", "random", "screening"):
        found = []
        for seed in range(5):
            small = ss.compress(
                X[train], y[train], n_keep=40, alpha=1e-3, method=method, fit_intercept=True,
                random_state=seed,
            )  # fmt: skip
            model = ss.SafeClassifier(alpha=small.alpha)
            model.fit(*small.take(X[train], y[train]), sample_weight=small.weights)
            found.append(model.score(X[test], y[test]))
        scores[method] = np.mean(found)
    assert scores["hybrid"] >= max(scores["random"], scores["screening"])


# --- curves ---------------------------------------------------------------------------------


def test_a_curve(labelled):
    X, y = labelled
    told = []
    with progress.listening(lambda *news: told.append(news)):
        curve = ss.compression_curve(
            X, y, alpha=1e-2, fractions=[0.9, 0.0, 0.5], methods=METHODS, n_repeats=3,
            random_state=0, fit_intercept=False,
        )  # fmt: skip
    assert curve.fractions.tolist() == [0.9, 0.0, 0.5]
    assert curve.n_kept.tolist() == [48, 480, 240]
    assert curve.scores.shape == (5, 3, 3)
    assert curve.mean.shape == curve.standard_error.shape == (5, 3)
    np.testing.assert_allclose(curve.scores[:, 1], np.tile(curve.full, (5, 1)), atol=0.01)
    assert ("ranking", 3, 3) in told and ("fitting", 48, 48) in told
    axes = curve.plot()
    for line in axes.lines[1:]:  # after that of all samples
        assert (np.diff(line.get_xdata()) <= 0).all()
    assert "deleted" in axes.get_xlabel() and axes.get_ylabel() == "test accuracy"
    labels = {text.get_text() for text in axes.get_legend().get_texts()}
    assert labels == {"all samples", *METHODS}


def test_a_curve_on_threads_is_the_same(labelled, capsys):
    X, y = labelled
    how = {"alpha": 1e-2, "fractions": [0.5, 0.9], "n_repeats": 2, "random_state": 3}
    alone = ss.compression_curve(X, y, **how, n_jobs=1)
    several = ss.compression_curve(X, y, **how, n_jobs=2, verbose=1)
    np.testing.assert_array_equal(alone.scores, several.scores)
    assert "fitting: 14 of 14" in capsys.readouterr().out


def test_a_curve_of_numbers_with_test_data(numbers):
    X, y = numbers
    how = {"loss": "squared_epsilon_insensitive", "fractions": [0.5, 0.8], "n_repeats": 2}
    test = X[300:], y[300:]
    curve = ss.compression_curve(X[:300], y[:300], **how, test=test, random_state=0)
    assert curve.metric == "R²"
    assert curve.standard_error[curve.methods.index("screening")].max() < 1e-6
    errors = ss.compression_curve(
        X[:300], y[:300], **how, test=test, random_state=0, scoring="neg_mean_squared_error"
    )
    assert errors.metric == "neg_mean_squared_error"
    assert (errors.scores < 0).all()
    with pytest.raises(ValueError, match="not among hybrid, screening, random"):
        curve.of("margin")


def test_a_curve_without_enough_rows_for_the_classes():
    X, y = load_iris(return_X_y=True)
    curve = ss.compression_curve(
        X, y, fractions=[0.99], methods=["random"], n_repeats=2, fit_intercept=False
    )
    assert np.isnan(curve.scores).all()


# --- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_keep": 0}, "n_keep=0 must be at least 1 and at most 600"),
        ({"n_keep": 601}, "at most 600"),
        ({"n_keep": 1.5}, r"n_keep=1.5 must be in \(0, 1\]"),
        ({"n_keep": 0.0}, r"must be in \(0, 1\]"),
        ({"n_keep": 1}, "fewer than the 2 classes"),
        ({"method": "hybird"}, "did you mean 'hybrid'"),
        ({"method": None}, "method=None is not known"),
        ({"loss": "squard"}, "loss='squard' is not known"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"screening": "bal"}, "screening='bal' is not known"),
        ({"sample_weight": np.zeros(600)}, "sample_weight is zero everywhere"),
        ({"sample_weight": np.ones(3)}, "sample_weight has 3 entries"),
    ],
)
def test_refuses(labelled, arguments, words):
    X, y = labelled
    with pytest.raises(ValueError, match=words):
        ss.compress(X, y, **{"n_keep": 10} | arguments)


def test_refuses_what_is_no_number(labelled):
    for n_keep in ("10%", None, True):
        with pytest.raises(TypeError, match="n_keep must be a number of samples or a share"):
            ss.compress(*labelled, n_keep=n_keep, fit_intercept=False)


def test_refuses_data_that_are_not_finite(labelled):
    X, y = labelled
    X = X.copy()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        ss.rank_samples(X, y, fit_intercept=False)


@pytest.mark.parametrize("fractions", [[], [1.0], [-0.1], 0.5, ["a"]])
def test_refuses_fractions(labelled, fractions):
    with pytest.raises(ValueError, match="fractions must be a list"):
        ss.compression_curve(*labelled, fractions=fractions, fit_intercept=False)


def test_refuses_methods_and_repeats_of_a_curve(labelled):
    with pytest.raises(ValueError, match="did you mean 'margin'"):
        ss.compression_curve(*labelled, methods=["margins"], fit_intercept=False)
    with pytest.raises(ValueError, match="n_repeats must be a positive integer"):
        ss.compression_curve(*labelled, n_repeats=0, fit_intercept=False)


def test_nothing_is_solved_for_random_and_leverage(labelled, monkeypatch):
    from safesift.workflows.compression import examined

    monkeypatch.setattr(examined, "solve_path", lambda *_: pytest.fail("solved"))
    for method in ("random", "leverage"):
        ss.compress(*labelled, n_keep=10, method=method, fit_intercept=False)
        ss.rank_samples(*labelled, method=method, fit_intercept=False)
    samples = examine(*labelled, Training(), None, "auto", 0)
    assert samples.class_codes.shape == (600,)
