"""SafeClassifier and SafeRegressor: scikit-learn's conventions, and what they promise."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss
from safesift.estimators import linear


@pytest.mark.slow
@parametrize_with_checks(
    [
        ss.SafeClassifier(),
        ss.SafeClassifier("safe_logistic", alpha=1e-3, screening="curvature"),
        ss.SafeRegressor(),
        ss.SafeRegressor("huber", penalty="elastic_net", l1_ratio=0.3, screening="curvature"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_classification(400, 8, class_sep=1.5, flip_y=0.05, random_state=0)
    return scale(X), y


@pytest.fixture(scope="module")
def numbers():
    X, y = make_regression(300, 5, noise=20.0, random_state=0)
    return X, y / y.std()


# --- the same models as elsewhere -----------------------------------------------------------------


@pytest.mark.parametrize(("loss", "factor"), [("squared_hinge", 2.0), ("hinge", 1.0)])
def test_linear_svc(two_classes, loss, factor):
    X, y = two_classes
    alpha, weights = 1e-2, np.random.default_rng(0).uniform(0.5, 2, len(y))
    ours = ss.SafeClassifier(loss, alpha=alpha, fit_intercept=False, tol=1e-9)
    ours.fit(X, y, sample_weight=weights)
    C = 1 / (factor * weights.sum() * alpha)
    theirs = LinearSVC(
        C=C, loss=loss, fit_intercept=False, dual=loss == "hinge", tol=1e-8, max_iter=10**6,
        random_state=0,
    )  # fmt: skip
    theirs.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)


@pytest.mark.parametrize(
    ("loss", "factor"), [("squared_epsilon_insensitive", 2.0), ("epsilon_insensitive", 1.0)]
)
def test_linear_svr(numbers, loss, factor):
    X, y = numbers
    ours = ss.SafeRegressor(loss, epsilon=0.2, alpha=1e-2, fit_intercept=False, tol=1e-9).fit(X, y)
    theirs = LinearSVR(
        epsilon=0.2, loss=loss, C=1 / (factor * len(y) * 1e-2), fit_intercept=False,
        dual=factor == 1, tol=1e-8, max_iter=10**6, random_state=0,
    )  # fmt: skip
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, y).coef_, atol=2e-4)


def test_ridge(numbers):
    X, y = numbers
    ours = ss.SafeRegressor("squared", alpha=0.1).fit(X, y)
    theirs = Ridge(alpha=0.1 * len(y)).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-8)


@pytest.mark.parametrize(
    ("theirs", "parameters"),
    [
        (Lasso(alpha=0.05, tol=1e-10), {"penalty": "l1", "alpha": 0.05}),
        (
            ElasticNet(alpha=0.05, l1_ratio=0.3, tol=1e-10),
            {"penalty": "elastic_net", "l1_ratio": 0.3, "alpha": 0.05},
        ),
    ],
    ids=["lasso", "elastic net"],
)
def test_lasso_and_elastic_net(numbers, theirs, parameters):
    ours = ss.SafeRegressor("squared", **parameters, tol=1e-10).fit(*numbers)
    np.testing.assert_allclose(ours.coef_, theirs.fit(*numbers).coef_, atol=1e-6)


def test_logistic_regression(two_classes):
    X, y = two_classes
    ours = ss.SafeClassifier("logistic", alpha=1e-2, tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=1 / (len(y) * 1e-2), tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_the_signature_of_the_issue(two_classes):
    X, y = two_classes
    model = ss.SafeClassifier(
        loss="squared_hinge", penalty="l2", alpha=1e-4, l1_ratio=None, fit_intercept=True,
        tol=1e-6, max_iter=100, class_weight=None, screening="auto", warm_start=False,
        n_jobs=None, random_state=None, verbose=0,
    ).fit(X, y, sample_weight=None)  # fmt: skip
    assert model.coef_.shape == (1, 8) and model.intercept_.shape == (1,)
    assert isinstance(model.dual_gap_, float) and isinstance(model.n_iter_, int)
    assert model.kept_.shape == model.undecided_.shape == (400,)
    names = {"passes", "seconds", "gap", "relative_gap", "n_kept", "n_undecided", "n_features"}
    assert set(model.history_[-1]) == names
    assert model.history_[-1]["relative_gap"] <= 1e-6


def test_more_classes():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = ss.SafeClassifier(alpha=1e-3).fit(X, names)
    assert model.coef_.shape == (3, 4) and model.dual_gap_.shape == (3,)
    assert len(model.history_) == 3 and model.history_[0][-1]["gap"] == model.dual_gap_[0]
    assert set(model.predict(X)) == set(names)
    assert not model.kept_.all()


def test_dropped_samples_have_no_influence():
    """Without the dropped rows, with the divisor of all, every class has the same model."""
    X, y = load_iris(return_X_y=True)
    model = ss.SafeClassifier(alpha=1e-2, tol=1e-10).fit(X, y)
    assert 0 < model.kept_.sum() < 150
    again = clone(model).set_params(alpha=1e-2 / model.kept_.mean())
    again.fit(X[model.kept_], y[model.kept_])
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-6)


# --- weights --------------------------------------------------------------------------------------


def test_class_weights_are_sample_weights(two_classes):
    X, y = two_classes
    y = y + (X[:, 0] > 1)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(y))
    totals = np.bincount(y, weights)
    balanced = (totals.sum() / (3 * totals))[y]
    plain = ss.SafeClassifier(alpha=1e-2, tol=1e-9)
    for class_weight, factors in [("balanced", balanced), ({1: 3.0}, np.where(y == 1, 3.0, 1.0))]:
        weighted = clone(plain).set_params(class_weight=class_weight).fit(X, y, weights)
        by_hand = plain.fit(X, y, weights * factors)
        np.testing.assert_allclose(weighted.coef_, by_hand.coef_, atol=1e-9)


def test_classes_without_weight_are_none(two_classes):
    X, y = two_classes
    extra = np.where(np.arange(400) < 3, 7, y)
    weights = (extra != 7).astype(float)
    with_them = ss.SafeClassifier(class_weight="balanced").fit(X, extra, weights)
    without = ss.SafeClassifier(class_weight="balanced").fit(X[3:], y[3:])
    assert with_them.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(with_them.coef_, without.coef_, rtol=1e-7)
    assert not with_them.kept_[:3].any()
    with pytest.raises(ValueError, match="one class only"):
        ss.SafeClassifier().fit(X, y, sample_weight=y)


def test_epsilon_of_every_sample(numbers):
    X, y = numbers
    epsilon = np.linspace(0, 0.5, len(y))
    model = ss.SafeRegressor(epsilon=epsilon).fit(X, y)
    intervals = ss.IntervalRegressor(alpha=1e-4).fit(X, np.column_stack([y - epsilon, y + epsilon]))
    np.testing.assert_allclose(model.coef_, intervals.coef_, atol=1e-4)


# --- probabilities --------------------------------------------------------------------------------


def test_logistic_probabilities(two_classes):
    X, y = two_classes
    model = ss.SafeClassifier("logistic", alpha=1e-2).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)))


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.5])
def test_the_link_of_safe_logistic(mu):
    """η(t) = f'(−t)/(f'(t) + f'(−t)), and ½ where both slopes vanish, written out."""
    model = ss.SafeClassifier(ss.losses.SafeLogistic(mu)).fit([[-1.0], [1.0]], [0, 1])
    model.coef_, model.intercept_ = np.ones((1, 1)), np.zeros(1)
    t = np.linspace(-3, 3, 61)

    def slope(m):
        return 1 - np.exp(np.minimum(m + mu - 1, 0))

    with np.errstate(invalid="ignore"):
        expected = slope(-t) / (slope(t) + slope(-t))
    expected = np.where(slope(t) + slope(-t) == 0, 0.5, expected)
    found = model.predict_proba(t[:, None])
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(model.predict_log_proba(t[:, None]), np.log(found))


def test_probabilities_of_more_classes():
    X, y = load_iris(return_X_y=True)
    model = ss.SafeClassifier("safe_logistic", alpha=1e-3).fit(X, y)
    found = model.predict_proba(X)
    assert found.shape == (150, 3) and (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    model.coef_, model.intercept_ = np.zeros((3, 4)), np.full(3, -10.0)
    np.testing.assert_array_equal(model.predict_proba(X[:1]), np.full((1, 3), 1 / 3))


def test_hinges_have_no_probabilities(two_classes):
    model = ss.SafeClassifier().fit(*two_classes)
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    why = (
        "SafeClassifier has no predict_proba with loss='squared_hinge', which gives no prob.*: use"
    )
    with pytest.raises(AttributeError, match=why):
        model.predict_proba(two_classes[0])
    with pytest.raises(AttributeError, match=why):
        model.predict_log_proba(two_classes[0])
    tracker = ss.SafeTracker(model).fit(*two_classes)
    with pytest.raises(AttributeError, match=why):
        tracker.predict_proba(two_classes[0])
    # the class has them, with what they are for
    assert "Probabilities" in ss.SafeClassifier.predict_proba.__doc__
    assert not hasattr(ss.SafeClassifier("no such loss"), "predict_proba")


# --- storage --------------------------------------------------------------------------------------


def test_storage_does_not_matter(two_classes):
    X, y = two_classes
    model = ss.SafeClassifier(alpha=1e-2, tol=1e-10).fit(X, y)
    frames = [pl.DataFrame(X), pd.DataFrame(X), sparse.csc_matrix(X), np.asfortranarray(X)]
    for data in frames:
        other = clone(model).fit(data, y)
        np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-8)
        np.testing.assert_array_equal(other.predict(data), model.predict(X))
    named = clone(model).fit(pd.DataFrame(X, columns=list("abcdefgh")), pd.Series(y))
    assert named.feature_names_in_.tolist() == list("abcdefgh")
    single = clone(model).set_params(tol=1e-6).fit(X.astype(np.float32), pl.Series(y))
    np.testing.assert_allclose(single.coef_, model.coef_, atol=1e-3)


def test_float32_is_not_copied():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 250)).astype(np.float32)
    y = X[:, 0] > 0
    model = ss.SafeClassifier(alpha=1.0, tol=1e-2, max_iter=100)
    tracemalloc.start()
    model.fit(X, y).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a float64 copy alone would be twice X
    assert peak < X.nbytes, f"{peak / X.nbytes:.2f} times X"


# --- living with scikit-learn ---------------------------------------------------------------------


def test_pipelines_and_searches(two_classes):
    X, y = two_classes
    pipeline = make_pipeline(StandardScaler(), ss.SafeClassifier(screening="curvature"))
    grid = {"safeclassifier__alpha": [1e-3, 10.0], "safeclassifier__penalty": ["l2", "l1"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.85
    assert "SafeClassifier" in search._repr_html_()
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_sample_weights_are_routed(two_classes):
    X, y = two_classes
    weights = (np.arange(400) % 2).astype(float)
    with config_context(enable_metadata_routing=True):
        model = ss.SafeClassifier(alpha=1e-2).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        found = cross_validate(
            model, X, y, cv=2, params={"sample_weight": weights}, return_estimator=True
        )
    half = clone(model).fit(X[1::2][:100], y[1::2][:100])
    assert len(found["estimator"]) == 2
    assert found["estimator"][1].coef_.shape == half.coef_.shape


def test_callbacks_follow_every_step(two_classes):
    callback = pytest.importorskip("sklearn.callback")

    tasks = []

    class Counter:
        def setup(self, estimator, context):
            tasks.append("setup")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            tasks.append(context.task_name)
            if context.task_name == "fit":
                assert fitted_estimator.predict(two_classes[0]).shape == (400,)

        def teardown(self, estimator, context):
            tasks.append("teardown")

    assert isinstance(Counter(), callback.FitCallback)
    model = ss.SafeClassifier().set_callbacks(Counter()).fit(*two_classes)
    assert tasks[0] == "setup" and tasks[-2:] == ["fit", "teardown"]
    assert len(tasks) >= model.n_iter_ + 3
    monitor = callback.ScoringMonitor(scoring="accuracy")
    ss.SafeClassifier().set_callbacks(monitor).fit(*two_classes)


# --- stopping, starting, refusing -----------------------------------------------------------------


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_fit_leaves_the_old_model(two_classes, monkeypatch, stop):
    X, y = two_classes
    model = ss.SafeClassifier().fit(X, y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}

    def interrupted(*args):
        raise stop

    monkeypatch.setattr(linear, "solve_path", interrupted)
    with pytest.raises(stop):
        model.fit(pd.DataFrame(X[:, :3], columns=list("abc")), y)
    assert {name: value for name, value in vars(model).items() if name.endswith("_")} == before
    assert model.predict(X).shape == y.shape
    fresh = ss.SafeClassifier()
    with pytest.raises(stop):
        fresh.fit(X, y)
    assert not [name for name in vars(fresh) if name.endswith("_")]


def test_convergence_warning(two_classes):
    X, y = two_classes
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap is .* increase max_iter"):
        ss.SafeClassifier(max_iter=1, alpha=1e-6, tol=1e-10).fit(X, y)
    three = y + (X[:, 0] > 1)
    with pytest.warns(ConvergenceWarning, match="for 3 of 3 problems") as caught:
        ss.SafeClassifier(max_iter=1, alpha=1e-6, tol=1e-10).fit(X, three)
    assert caught[0].filename == __file__


def test_warm_start(two_classes):
    X, y = two_classes
    model = ss.SafeClassifier(warm_start=True).fit(X, y)
    assert model.n_iter_ > 0 == model.fit(X, y).n_iter_
    with pytest.raises(ValueError, match="set warm_start=False"):
        model.fit(X, y + (X[:, 0] > 1))
    assert model.coef_.shape == (1, 8)


def test_threads_do_not_change_the_model(two_classes):
    X, y = two_classes
    one, two = (ss.SafeClassifier(tol=1e-10, n_jobs=n, random_state=0).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_verbose(two_classes, capsys):
    model = ss.SafeClassifier(verbose=2).fit(*two_classes)
    printed = capsys.readouterr().out
    assert printed.count("relative gap") == len(model.history_)
    assert "step 1 of at most 1000" in printed


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"alpha": 0.0}, ValueError, "alpha must be positive"),
        ({"tol": -1.0}, ValueError, "tol must be positive"),
        ({"max_iter": 0}, ValueError, "max_iter must be a positive integer"),
        ({"loss": "sqared_hinge"}, ValueError, "did you mean 'squared_hinge'"),
        ({"loss": ss.losses.Squared()}, ValueError, "is not a loss for labels"),
        ({"penalty": "l3"}, ValueError, "penalty='l3' is not known"),
        ({"l1_ratio": 0.5}, ValueError, "goes with penalty='elastic_net' only"),
        ({"penalty": "elastic_net", "l1_ratio": 1.0}, ValueError, "use penalty='l1'"),
        ({"screening": "ball"}, ValueError, "screening='ball' is not known"),
        ({"screening": 3}, TypeError, "screening must be a name"),
        ({"screening": "gap_ball"}, ValueError, "needs strong convexity"),
        ({"class_weight": "even"}, ValueError, "class_weight must be"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be a number of threads"),
        ({"n_jobs": 1.5}, ValueError, "n_jobs must be a number of threads"),
    ],
    ids=str,
)
def test_bad_parameters(two_classes, parameters, error, words):
    with pytest.raises(error, match=words):
        ss.SafeClassifier(**parameters).fit(*two_classes)


def test_losses_of_labels_are_no_regression(numbers):
    with pytest.raises(ValueError, match="is not a loss for numbers"):
        ss.SafeRegressor(ss.losses.Hinge()).fit(*numbers)


def test_import_stays_light():
    code = (
        "import sys, safesift; "
        "assert not {'sklearn', 'imblearn', 'numba', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert {"SafeClassifier", "SafeRegressor", "SampleScreener"} <= set(dir(ss))
