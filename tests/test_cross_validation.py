"""SafeClassifierCV and SafeRegressorCV: the scores of a search, from one path."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, mean_absolute_error, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss
from safesift.estimators import linear


@pytest.mark.slow
@parametrize_with_checks(
    [
        ss.SafeClassifierCV(alphas=[1e-3], cv=2, screening="curvature"),
        ss.SafeRegressorCV(alphas=2, cv=2, screening="curvature"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_classification(200, 6, flip_y=0.1, random_state=1)
    return scale(X), y


@pytest.fixture(scope="module")
def numbers():
    X, y = make_regression(150, 6, noise=30.0, random_state=0)
    return X, y / y.std()


ALPHAS = [1.0, 1e-1, 1e-3]


@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_scores_are_those_of_a_search(two_classes, scoring):
    X, y = two_classes
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    model = ss.SafeClassifierCV(ALPHAS, cv=cv, scoring=scoring, screening="curvature").fit(X, y)
    single = ss.SafeClassifier(screening="curvature")
    search = GridSearchCV(single, {"alpha": ALPHAS}, cv=cv, scoring=scoring).fit(X, y)
    results = search.cv_results_
    for fold in range(4):
        expected = results[f"split{fold}_test_score"]
        np.testing.assert_allclose(model.scores_[fold], expected, atol=1e-6)
    np.testing.assert_allclose(model.mean_score_path_, results["mean_test_score"], atol=1e-6)
    assert model.alpha_ == search.best_params_["alpha"]
    np.testing.assert_allclose(model.coef_, search.best_estimator_.coef_, atol=1e-3)
    assert model.score(X, y) == pytest.approx(search.score(X, y))


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_regression(numbers, scoring):
    X, y = numbers
    model = ss.SafeRegressorCV(
        ALPHAS, cv=3, scoring=scoring, penalty="l1", epsilon=0.05, screening="curvature"
    ).fit(X, y)
    single = ss.SafeRegressor(penalty="l1", epsilon=0.05, screening="curvature")
    search = GridSearchCV(single, {"alpha": ALPHAS}, cv=3, scoring=scoring).fit(X, y)
    np.testing.assert_allclose(
        model.mean_score_path_, search.cv_results_["mean_test_score"], atol=1e-3
    )
    assert model.alpha_ == search.best_params_["alpha"]
    assert model.dual_gap_ <= 1e-6 and model.kept_.shape == (150,)


def test_more_classes():
    X, y = load_iris(return_X_y=True)
    model = ss.SafeClassifierCV(3, cv=3, screening="curvature").fit(X, y)
    assert model.coef_.shape == (3, 4) and model.scores_.shape == (3, 3)
    assert model.mean_score_path_.max() > 0.9
    single = ss.SafeClassifier(alpha=model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-2)


def test_one_path_on_one_design(two_classes, monkeypatch):
    """All folds and all alphas go to the solver at once, held-out rows having weight 0."""
    X, y = two_classes
    calls, solve = [], linear.solve_path
    monkeypatch.setattr(linear, "solve_path", lambda *args: calls.append(args) or solve(*args))
    ss.SafeClassifierCV(3, cv=4, screening="curvature").fit(X, y)
    ((levels, _, _),) = calls
    assert len(levels) == 3 and all(len(problems) == 5 for problems in levels)
    assert len({id(problem.design) for problems in levels for problem in problems}) == 1
    assert [problem.divisor for problem in levels[0]] == [200, 150, 150, 150, 150]
    alphas = [problems[0].alpha for problems in levels]
    assert alphas == sorted(alphas, reverse=True)


def test_weights_are_repetitions(two_classes):
    X, y = two_classes
    rng = np.random.default_rng(0)
    weights, fold = rng.integers(0, 3, len(y)), rng.integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weights)

    def splits(folds):
        return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]

    model = ss.SafeClassifierCV(4, tol=1e-10, class_weight="balanced", screening="curvature")
    weighted = clone(model).set_params(cv=splits(fold)).fit(X, y, sample_weight=weights)
    repeated = clone(model).set_params(cv=splits(fold[rows])).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.alphas_, repeated.alphas_, rtol=1e-9)
    np.testing.assert_allclose(weighted.scores_, repeated.scores_, atol=1e-9)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


def test_folds_without_weight(two_classes):
    X, y = two_classes
    weights = (np.arange(200) >= 50).astype(float)
    model = ss.SafeClassifierCV(2, cv=KFold(4), screening="curvature").fit(X, y, weights)
    np.testing.assert_allclose(model.mean_score_path_, model.scores_[1:].mean(axis=0))
    only_those = [(np.arange(50, 200), np.arange(50))]
    with pytest.raises(ValueError, match="no held-out sample"):
        clone(model).set_params(cv=only_those).fit(X, y, weights)
    with pytest.raises(ValueError, match="training samples of a fold"):
        clone(model).set_params(cv=[only_those[0][::-1]]).fit(X, y, weights)


def test_scores_are_in_the_order_of_the_caller(two_classes):
    X, y = two_classes
    falling = ss.SafeClassifierCV([1.0, 1e-1, 1e-3], cv=3, random_state=0).fit(X, y)
    mixed = ss.SafeClassifierCV([1e-3, 1.0, 1e-1, 1.0], cv=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(mixed.alphas_, [1e-3, 1.0, 1e-1, 1.0])
    np.testing.assert_array_equal(mixed.scores_, falling.scores_[:, [2, 0, 1, 0]])
    np.testing.assert_array_equal(mixed.mean_score_path_, falling.mean_score_path_[[2, 0, 1, 0]])
    assert len(set(falling.mean_score_path_)) == 3  # so that an order can be told
    assert mixed.alpha_ == falling.alpha_
    np.testing.assert_array_equal(mixed.coef_, falling.coef_)


def test_radii_of_a_ball(two_classes):
    X, y = two_classes
    model = ss.SafeClassifierCV(4, cv=3, penalty="l1_ball", screening="curvature").fit(X, y)
    assert (np.diff(model.alphas_) > 0).all()
    assert np.abs(model.coef_).sum() <= model.alpha_ * (1 + 1e-9)


def test_groups_are_routed(two_classes):
    X, y = two_classes
    groups = np.arange(200) // 20
    with config_context(enable_metadata_routing=True):
        cv = GroupKFold(5).set_split_request(groups=True)
        model = ss.SafeClassifierCV(2, cv=cv, screening="curvature").fit(X, y, groups=groups)
        scorer = make_scorer(roc_auc_score, response_method="decision_function")
        scorer.set_score_request(sample_weight=True)
        weighted = ss.SafeClassifierCV(2, cv=3, scoring=scorer, screening="curvature")
        weighted.set_fit_request(sample_weight=True).fit(X, y, sample_weight=np.ones(200))
        assert weighted.score(X, y, sample_weight=np.ones(200)) > 0.8
    by_hand = GroupKFold(5).split(X, y, groups)
    expected = ss.SafeClassifierCV(2, cv=by_hand, screening="curvature").fit(X, y)
    np.testing.assert_allclose(model.scores_, expected.scores_)
    with pytest.raises(ValueError, match="groups"):
        ss.SafeClassifierCV(2, cv=GroupKFold(5)).fit(X, y, groups=groups)


def test_a_scorer_may_look_at_the_rows(numbers):
    X, y = numbers

    def score(model, X, y):
        assert model.coef_.shape == (6,) and X.shape[1] == 6
        return -mean_absolute_error(y, model.predict(X))

    cv = ShuffleSplit(2, random_state=0)
    ours = ss.SafeRegressorCV(2, cv=cv, scoring=score, screening="curvature").fit(X, y)
    named = clone(ours).set_params(scoring="neg_mean_absolute_error").fit(X, y)
    np.testing.assert_allclose(ours.scores_, named.scores_)


def test_what_is_refused_and_what_is_said(two_classes):
    X, y = two_classes
    with pytest.raises(ValueError, match="alphas must be"):
        ss.SafeClassifierCV([1.0, -1.0]).fit(X, y)
    with pytest.raises(ValueError, match="n_alphas must be a positive integer"):
        ss.SafeClassifierCV(0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"for \d+ of 6 problems: the relative"):
        ss.SafeClassifierCV(2, cv=2, max_iter=1, tol=1e-12, screening="curvature").fit(X, y)
