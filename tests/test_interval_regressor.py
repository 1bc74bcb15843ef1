"""IntervalRegressor: scikit-learn's checks, optimality, screening, and neuroblastoma."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss
from safesift.penalties import ElasticNet
from safesift.problem.inputs import distance, make_problems
from tests.laws.reference import optimum

INF = np.inf


@pytest.mark.slow
@parametrize_with_checks(
    [
        ss.IntervalRegressor(),
        ss.IntervalRegressor(penalty="l1"),
        ss.IntervalRegressor(penalty=ElasticNet(0.5), fit_intercept=False),
        ss.IntervalRegressor(loss="smoothed_interval", tol=1e-9),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


def samples(n=300, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    center = X @ np.arange(1.0, p + 1) + 3.0 + 0.5 * rng.normal(size=n)
    low, high = center - rng.uniform(0, 1, n), center + rng.uniform(0, 1, n)
    kind = rng.integers(0, 4, n)
    low, high = np.where(kind == 0, -INF, low), np.where(kind == 1, INF, high)
    return X, np.column_stack([low, np.where(kind == 2, low, high)])


# --- the model ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net", "l2_ball", "l1_ball"])
@pytest.mark.parametrize("loss", ["squared_interval", "absolute_interval", "smoothed_interval"])
def test_solution_is_optimal(loss, penalty, fit_intercept):
    X, Y = samples(60, 3, seed=2)
    weights = np.random.default_rng(1).choice([0.0, 1.0, 3.0], 60)
    model = ss.IntervalRegressor(
        alpha=0.05, penalty=penalty, loss=loss, fit_intercept=fit_intercept
    )
    model.fit(X, Y, sample_weight=weights)
    problem = make_problems(
        X, Y, loss=loss, penalty=penalty, alpha=0.05, fit_intercept=fit_intercept,
        sample_weight=weights,
    ).problem  # fmt: skip
    value = problem.primal(problem.join(model.coef_, model.intercept_))
    assert model.dual_gap_ <= 1e-6 * problem.constant_value
    assert value - optimum(problem).value <= model.dual_gap_ + 1e-9
    assert model.history_[-1]["gap"] == model.dual_gap_
    assert model.history_[-1]["n_undecided"] == model.undecided_.sum()


def test_the_issues_example():
    X, Y = samples()
    model = ss.IntervalRegressor(alpha=1e-3, penalty="l1", fit_intercept=True).fit(X, Y)
    assert model.predict(X).shape == (300,)
    assert model.kept_.dtype == bool and model.kept_.shape == (300,)
    assert model.dual_gap_ >= 0
    assert 0.3 < model.coverage(X, Y) <= 1


@pytest.mark.parametrize("loss", ["squared_interval", "absolute_interval"])
def test_dropped_samples_have_no_influence(loss):
    """Fitting on the kept samples alone, with the divisor of all, gives the same model."""
    X, Y = samples(400)
    Y[:, 0] -= 2.0
    Y[:, 1] += 2.0
    model = ss.IntervalRegressor(alpha=0.1, loss=loss, tol=1e-7).fit(X, Y)
    assert 0 < model.kept_.sum() < 200
    assert not (model.undecided_ & ~model.kept_).any()
    share = model.kept_.mean()
    kept = clone(model).set_params(alpha=0.1 / share).fit(X[model.kept_], Y[model.kept_])
    np.testing.assert_allclose(kept.coef_, model.coef_, atol=2e-3)
    np.testing.assert_allclose(kept.intercept_, model.intercept_, atol=2e-3)


def test_history_tells_how_things_stood():
    X, Y = samples(2000)
    model = ss.IntervalRegressor(alpha=0.1, tol=1e-9, loss="smoothed_interval").fit(X, Y)
    first, last = model.history_[0], model.history_[-1]
    assert first["n_undecided"] == 2000 and last["n_undecided"] < 100
    assert model.dual_gap_ <= first["gap"] and first["passes"] < last["passes"]


def test_equal_widths_are_support_vector_regression():
    """The same optimum as the squared ε-insensitive loss of scikit-learn's LinearSVR."""
    from sklearn.svm import LinearSVR

    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=100)
    alpha = 0.1
    model = ss.IntervalRegressor(alpha=alpha, fit_intercept=False, tol=1e-10)
    model.fit(X, np.column_stack([y - 0.25, y + 0.25]))
    other = LinearSVR(
        epsilon=0.25, loss="squared_epsilon_insensitive", C=1 / (2 * 100 * alpha), dual=False,
        fit_intercept=False, tol=1e-10, max_iter=10**5,
    )  # fmt: skip
    np.testing.assert_allclose(model.coef_, other.fit(X, y).coef_, rtol=1e-5)


def test_storage_does_not_matter():
    X, Y = samples()
    plain = ss.IntervalRegressor(alpha=0.01, tol=1e-10).fit(X, Y)
    stored = [
        (sparse.csr_array(X), Y),
        (sparse.csc_matrix(X), Y),
        (np.asfortranarray(X), Y.tolist()),
        (pl.DataFrame(X), pl.DataFrame(Y)),
    ]
    for data, targets in stored:
        other = clone(plain).fit(data, targets)
        np.testing.assert_allclose(other.coef_, plain.coef_, rtol=1e-9)
        np.testing.assert_allclose(other.predict(data), plain.predict(X), rtol=1e-9)
    single = clone(plain).set_params(tol=1e-6).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(single.coef_, plain.coef_, rtol=1e-4)


def test_feature_names():
    X, Y = samples()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = ss.IntervalRegressor().fit(frame, pd.DataFrame(Y, columns=["low", "high"]))
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("dcba")])


def test_warm_start():
    X, Y = samples()
    model = ss.IntervalRegressor(alpha=0.1, penalty="l1", warm_start=True).fit(X, Y)
    cold = model.n_iter_
    assert model.fit(X, Y).n_iter_ == 0 < cold
    model.set_params(alpha=0.09).fit(X, Y)
    fresh = ss.IntervalRegressor(alpha=0.09, penalty="l1").fit(X, Y)
    assert model.n_iter_ <= fresh.n_iter_
    np.testing.assert_allclose(model.coef_, fresh.coef_, atol=1e-4)
    with pytest.raises(ValueError, match="warm_start=True"):
        model.fit(X[:, :2], Y)


def test_grid_search_with_intervals():
    X, Y = samples()
    search = GridSearchCV(ss.IntervalRegressor(), {"alpha": [1e-3, 10.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"alpha": 1e-3}
    assert search.best_score_ > 0.9


# --- score and coverage ---------------------------------------------------------------------------


def test_score_of_points_is_r2():
    X, Y = samples()
    y, weights = Y[:, 0].copy(), np.random.default_rng(0).uniform(0, 2, 300)
    y[np.isinf(y)] = 0.0
    model = ss.IntervalRegressor(alpha=1.0).fit(X, y)
    expected = r2_score(y, model.predict(X), sample_weight=weights)
    assert model.score(X, y, sample_weight=weights) == pytest.approx(expected, abs=1e-8)


def test_score_and_coverage_by_hand():
    X = np.array([[0.0], [1.0], [2.0]])
    model = ss.IntervalRegressor(alpha=1e-9, fit_intercept=False).fit(X, [0.0, 1.0, 2.0])
    Y = np.array([[0.5, INF], [0.0, 2.0], [-INF, 1.0]])
    # distances ½, 0, 1; a constant in [½, 1] would hit all three
    assert model.coverage(X, Y) == pytest.approx(1 / 3)
    assert model.coverage(X, Y, sample_weight=[0, 1, 1]) == pytest.approx(1 / 2)
    assert model.score(X, Y) == 0
    assert model.score(X[1:2], Y[1:2]) == 1
    Y = np.array([[0.5, 0.5], [0.0, 2.0], [1.5, 1.5]])
    # distances ½, 0, ½; the best constant 1 is at ½ from both, too
    assert model.score(X, Y) == pytest.approx(0, abs=1e-6)


# --- refusals and warnings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"tol": -1.0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be a positive integer"),
        ({"loss": "squared_intervall"}, "did you mean 'squared_interval'"),
        ({"loss": ss.losses.Squared()}, "is not a loss for intervals"),
        ({"penalty": "l3"}, "penalty='l3' is not known"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, words):
    X, Y = samples(10)
    with pytest.raises(ValueError, match=words):
        ss.IntervalRegressor(**parameters).fit(X, Y)


def test_bad_targets_are_named():
    X, Y = samples(10)
    Y[[3, 7]] = [1.0, 0.0]
    with pytest.raises(ValueError, match=r"lower end exceeds the upper one in 2 rows \(3, 7\)"):
        ss.IntervalRegressor().fit(X, Y)


def test_a_column_warns_as_in_scikit_learn():
    X, _ = samples(10)
    with pytest.warns(DataConversionWarning, match="ravel"):
        ss.IntervalRegressor().fit(X, np.ones((10, 1)))


def test_convergence_warning_says_what_to_do():
    X, Y = samples()
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap is .* increase max_iter"):
        ss.IntervalRegressor(max_iter=1, tol=1e-10).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="rounding allows no less"):
        ss.IntervalRegressor(tol=1e-300).fit(X, Y)


def test_verbose(capsys):
    X, Y = samples()
    model = ss.IntervalRegressor(verbose=1).fit(X, Y)
    printed = capsys.readouterr().out
    assert printed.count("relative gap") == len(model.history_)


# --- neuroblastoma --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def neuroblastoma(data_folder):
    path = data_folder / "neuroblastoma.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there: put neuroblastoma.npz (X, lower, upper) into the folder")
    with np.load(path) as data:
        X, Y = data["X"], np.column_stack([data["lower"], data["upper"]])
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), Y


@pytest.mark.parametrize(("penalty", "largest"), [("l2", 1.0), ("l1", 0.2)])
def test_neuroblastoma_path(neuroblastoma, penalty, largest, capsys):
    """A relative gap of 1e-8 at 20 alphas over four decades, and what was decided at each."""
    X, Y = neuroblastoma
    model = ss.IntervalRegressor(penalty=penalty, tol=1e-8, warm_start=True)
    kept = []
    for alpha in np.geomspace(largest, 1e-4 * largest, 20):
        model.set_params(alpha=alpha).fit(X, Y)
        assert model.history_[-1]["relative_gap"] <= 1e-8
        problem = make_problems(
            X, Y, loss="squared_interval", penalty=penalty, alpha=alpha, fit_intercept=True
        ).problem
        at = problem.evaluate(problem.join(model.coef_, model.intercept_))
        assert problem.certify(at).gap <= 2e-8 * problem.constant_value
        # whatever is dropped lies strictly inside its interval
        inside = (at.pred > Y[:, 0]) & (at.pred < Y[:, 1])
        assert inside[~model.kept_].all()
        kept.append(int(model.kept_.sum()))
        decided = int((~model.undecided_).sum())
        print(f"{penalty} alpha {alpha:.2e}: {kept[-1]} of {len(Y)} kept, {decided} decided")
    if penalty == "l2":
        assert max(kept) < 0.1 * len(Y)
    assert capsys.readouterr().out.count("kept") == 20


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_neuroblastoma_against_a_conic_solver(neuroblastoma, penalty):
    X, Y = neuroblastoma[0][::10, :20], neuroblastoma[1][::10]
    model = ss.IntervalRegressor(alpha=1e-2, penalty=penalty, tol=1e-10).fit(X, Y)
    problem = make_problems(
        X, Y, loss="squared_interval", penalty=penalty, alpha=1e-2, fit_intercept=True
    ).problem
    best = optimum(problem)
    value = problem.primal(problem.join(model.coef_, model.intercept_))
    assert value == pytest.approx(best.value, rel=1e-6)
    pred = X @ best.point[:-1] + best.point[-1]
    np.testing.assert_allclose(model.predict(X), pred, atol=1e-4)


def test_neuroblastoma_beats_the_best_constant(neuroblastoma):
    X, Y = neuroblastoma
    hits, constant_hits = [], []
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        model = ss.IntervalRegressor(alpha=1e-2).fit(X[train], Y[train])
        hits.append(model.coverage(X[test], Y[test]))
        # of all constants the one that hits most training intervals lies at one of their ends
        ends = np.unique(Y[train][np.isfinite(Y[train])])
        shares = [(distance(np.full(len(train), end), Y[train]) == 0).mean() for end in ends]
        constant = ends[int(np.argmax(shares))]
        constant_hits.append((distance(np.full(len(test), constant), Y[test]) == 0).mean())
    assert np.mean(hits) > 0.96
    assert 1 - np.mean(hits) < 0.6 * (1 - np.mean(constant_hits))


def test_import_stays_light():
    code = "import sys, safesift; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "IntervalRegressor" in dir(ss)
