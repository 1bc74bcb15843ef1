"""SafeClassifierCV and SafeRegressorCV: the scores of a search, from one path."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    make_classification,
    make_regression,
)
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


ALPHAS = [1.0, 1e-1, 1e-3, 1e-4, 1e-5]


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
    assert model.coef_.shape == (3, 4) and model.scores_.shape == (3, len(model.alphas_))
    assert model.mean_score_path_.max() > 0.9
    single = ss.SafeClassifier(alpha=model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.coef_, single.coef_, atol=1e-2)


def test_one_path_on_one_design(two_classes, monkeypatch):
    """All folds and all alphas go to the solver at once, held-out rows having weight 0."""
    X, y = two_classes
    calls, solve = [], linear.solve_path
    monkeypatch.setattr(linear, "solve_path", lambda *args: calls.append(args) or solve(*args))
    ss.SafeClassifierCV(3, eps=1e-4, cv=4, screening="curvature").fit(X, y)
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
    with pytest.raises(ValueError, match=r"eps=0\.1 is for a grid that is found"):
        ss.SafeClassifierCV([1.0, 0.1], eps=0.1).fit(X, y)
    for eps in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="eps must be"):
            ss.SafeClassifierCV(3, eps=eps).fit(X, y)


# --- how far a grid goes --------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l2", "l1", "l2_ball"])
def test_raw_columns_have_a_grid_that_is_wide_enough(penalty):
    """Units that differ by 1e5: within four decades the score is 0.923."""
    X, y = load_breast_cancer(return_X_y=True)
    model = ss.SafeClassifierCV(8, penalty=penalty).fit(X, y)
    assert model.mean_score_path_.max() >= 0.96
    if penalty == "l2":
        assert ss.SafeClassifierCV(8, eps=1e-4).fit(X, y).mean_score_path_.max() < 0.94


def test_a_signal_in_a_tiny_unit_is_found():
    """All that is to be explained is in a column a hundred thousand times as small as noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 3] + 0.3 * rng.normal(size=200)
    X[:, 3] *= 1e-5
    assert ss.SafeRegressorCV(6, epsilon=0.0).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("penalty", ["l2", "l1", "l2_ball"])
@pytest.mark.parametrize("task", ["labels", "numbers"])
def test_units_of_the_features_do_not_matter(two_classes, numbers, penalty, task):
    X, y = two_classes if task == "labels" else numbers
    how = {"cv": 3, "penalty": penalty, "tol": 1e-9}
    model = (ss.SafeClassifierCV if task == "labels" else ss.SafeRegressorCV)(6, **how)
    plain, scaled = clone(model).fit(X, y), clone(model).fit(1000 * X, y)
    assert len(scaled.alphas_) == len(plain.alphas_)
    np.testing.assert_allclose(scaled.scores_, plain.scores_, atol=1e-6)
    np.testing.assert_allclose(1000 * scaled.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(scaled.predict(1000 * X), plain.predict(X), atol=1e-4)


def test_units_of_the_targets_do_not_matter(numbers):
    X, y = numbers
    model = ss.SafeRegressorCV(6, cv=3, loss="squared", tol=1e-9)
    plain, scaled = clone(model).fit(X, y), clone(model).fit(X, 1e4 * y)
    np.testing.assert_allclose(scaled.alphas_, plain.alphas_, rtol=1e-5)
    np.testing.assert_allclose(scaled.predict(X), 1e4 * plain.predict(X), rtol=1e-4, atol=1.0)


def test_a_grid_ends_where_the_score_gets_no_better(two_classes):
    X, y = two_classes
    model = ss.SafeClassifierCV(8, cv=3).fit(X, y)
    decades = np.log10(model.alphas_[0] / model.alphas_)
    best = np.log10(model.alphas_[0] / model.alpha_)
    assert np.diff(decades) == pytest.approx(0.5) and decades[-1] < 12
    # two decades in vain, unless nothing moves any more
    assert decades[-1] <= max(best, 6.0) + 2.5
    assert model.scores_.shape == (3, len(model.alphas_)) == (3, len(model.mean_score_path_))


def test_what_cannot_be_solved_ends_a_grid_and_is_not_part_of_it():
    """Nobody asked for those alphas: nobody is told, unless a better one may be among them."""
    X, y = load_breast_cancer(return_X_y=True)
    model = ss.SafeClassifierCV(4, cv=2, loss="hinge", max_iter=300, random_state=0)
    with pytest.warns(UserWarning, match="beyond it tol is not reached, so scale") as said:
        model.fit(X, y)
    assert not [one for one in said if issubclass(one.category, ConvergenceWarning)]
    assert model.alpha_ == model.alphas_[-1] and 4 <= len(model.alphas_) < 20


@pytest.mark.parametrize(
    ("alphas", "message"),
    [
        ([1e-2, 1e-3, 1e-4], r"at the largest of 3 alphas, 0\.01: add larger ones"),
        ([1e3, 1e2, 10.0], r"at the smallest of 3 alphas, 10: add smaller ones"),
        ([1.0], None),
        ([1e3, 1e1, 1e-1, 1e-3], None),
    ],
)
def test_an_edge_is_mentioned(alphas, message):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 40))
    y = X[:, 0] + 2.0 * rng.normal(size=80)
    model = ss.SafeRegressorCV(alphas, cv=4, loss="squared")
    if message is None:
        model.fit(X, y)
    else:
        with pytest.warns(UserWarning, match=message):
            model.fit(X, y)


def test_an_edge_is_mentioned_where_more_can_be_explained(numbers):
    X, y = numbers
    # the more the better here, up to where there is no penalty to speak of
    model = ss.SafeRegressorCV([1e-2, 1e-5, 1e-6], cv=3, loss="squared").fit(X, y)
    assert model.alpha_ == 1e-6
    constant = np.ones(len(y))
    assert ss.SafeRegressorCV(5, cv=3).fit(X, constant).alphas_.size > 1
    with pytest.warns(UserWarning, match="at the smallest of 3 alphas.*set a smaller eps"):
        ss.SafeRegressorCV(3, eps=1e-2, cv=3, loss="squared").fit(X, y)
    ball = ss.SafeRegressorCV([1e-2, 1e-1], cv=3, penalty="l2_ball")
    with pytest.warns(UserWarning, match=r"at the largest of 2 alphas, 0\.1: add larger ones"):
        ball.fit(X, y)
