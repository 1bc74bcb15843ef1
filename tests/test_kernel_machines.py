"""SafeKernelClassifier, SafeKernelRegressor and safe_kernel_path: conventions, and their peers."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import chi2_kernel, pairwise_kernels, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import scale
from sklearn.svm import SVC, SVR, NuSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss
from safesift.design.kernel import GramColumns
from safesift.design.kernels import PairwiseKernel
from safesift.problem.inputs import make_problems
from tests.laws.kernel_laws import with_kernel


@pytest.mark.slow
@parametrize_with_checks(
    [
        ss.SafeKernelClassifier(),
        ss.SafeKernelClassifier("hinge", kernel="laplacian", screening=None),
        ss.SafeKernelRegressor(),
        ss.SafeKernelRegressor("epsilon_insensitive", screening="curvature"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.normal(size=200)


def hinge_objective(K, y, beta, intercept, alpha, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    losses = np.maximum(1 - y * (K @ beta + intercept), 0)
    return weights @ losses / weights.sum() + 0.5 * alpha * beta @ K @ beta


def coordinates(model, n):
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta


# --- the same models as elsewhere -----------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-1, 1e-2, 1e-4])
@pytest.mark.parametrize("weighted", [False, True])
def test_svc(moons, alpha, weighted):
    """The hinge with an intercept: SVC's objective is not lower, ours not by more than 1e-6."""
    X, y = moons
    signs, n = np.where(y == 1, 1.0, -1.0), len(y)
    weights = np.random.default_rng(0).uniform(0.2, 3, n) if weighted else np.ones(n)
    ours = ss.SafeKernelClassifier("hinge", gamma=1.0, alpha=alpha).fit(X, y, weights)
    theirs = SVC(C=1 / (weights.sum() * alpha), gamma=1.0, tol=1e-9).fit(X, y, weights)
    K = rbf_kernel(X, gamma=1.0)
    values = [
        hinge_objective(K, signs, coordinates(m, n), m.intercept_[0], alpha, weights)
        for m in (ours, theirs)
    ]
    assert abs(values[0] - values[1]) <= 1e-6 * values[1]
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_nu_svc(moons):
    """NuSVC is SVC with its margin rescaled: the same signs at the alpha that belongs to its nu."""
    X, y = moons
    theirs = NuSVC(nu=0.3, gamma=1.0, tol=1e-8).fit(X, y)
    # its largest dual coefficient is C, that of the bounded support vectors
    C = np.abs(theirs.dual_coef_).max()
    ours = ss.SafeKernelClassifier("hinge", gamma=1.0, alpha=1 / (len(y) * C)).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-2)


def test_svr(waves):
    X, y = waves
    ours = ss.SafeKernelRegressor("epsilon_insensitive", epsilon=0.1, gamma=0.5, alpha=1e-3)
    ours.fit(X, y)
    theirs = SVR(C=1 / (len(y) * 1e-3), epsilon=0.1, gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "cosine"])
@pytest.mark.parametrize("single", [False, True])
def test_kernel_ridge(waves, kernel, single):
    X, y = waves
    X = X.astype(np.float32) if single else X
    how = {"kernel": kernel, "gamma": 0.7, "degree": 2, "coef0": 0.5}
    weights = np.random.default_rng(0).uniform(0.1, 2, len(y))
    ours = ss.SafeKernelRegressor("squared", alpha=1e-2, fit_intercept=False, **how)
    ours.fit(X, y, weights)
    theirs = KernelRidge(alpha=1e-2 * weights.sum(), **how).fit(X.astype(np.float64), y, weights)
    new = X[:50] + np.float32(0.1)
    np.testing.assert_allclose(ours.predict(new), theirs.predict(new), atol=1e-7)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "safe_logistic", "logistic"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_linear_kernel_is_the_linear_classifier(loss, fit_intercept):
    X, y = make_classification(150, 6, flip_y=0.1, random_state=0)
    X = scale(X)
    how = {"alpha": 1e-2, "fit_intercept": fit_intercept, "tol": 1e-9}
    linear = ss.SafeClassifier(loss, **how).fit(X, y)
    kernel = ss.SafeKernelClassifier(loss, kernel="linear", **how).fit(X, y)
    coef = kernel.dual_coef_ @ kernel.support_vectors_
    # two points of gap Δ are within 2√(2Δ/alpha) of each other
    reach = np.sqrt(2 * linear.dual_gap_ / 1e-2) + np.sqrt(2 * kernel.dual_gap_ / 1e-2)
    assert np.linalg.norm(coef - linear.coef_) <= reach + 1e-8
    np.testing.assert_allclose(kernel.intercept_, linear.intercept_, atol=20 * reach + 1e-6)
    # what neither leaves undecided, both decide alike
    sure = ~(kernel.undecided_ | linear.undecided_)
    assert (kernel.kept_ == linear.kept_)[sure].all()


@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "epsilon_insensitive", "huber"])
def test_linear_kernel_is_the_linear_regressor(waves, loss):
    X, y = waves
    how = {"alpha": 1e-2, "tol": 1e-9}
    linear = ss.SafeRegressor(loss, **how).fit(X, y)
    kernel = ss.SafeKernelRegressor(loss, kernel="linear", **how).fit(X, y)
    coef = kernel.dual_coef_[0] @ kernel.support_vectors_
    reach = np.sqrt(2 * linear.dual_gap_ / 1e-2) + np.sqrt(2 * kernel.dual_gap_ / 1e-2)
    assert np.linalg.norm(coef - linear.coef_) <= reach + 1e-8


# --- data -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_weights_are_repetitions(moons, loss):
    X, y = moons
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    model = ss.SafeKernelClassifier(loss, alpha=1e-2, tol=1e-9)
    weighted = clone(model).fit(X, y, counts)
    repeated = clone(model).fit(X[rows], y[rows])
    removed = clone(model).fit(X[counts > 0], y[counts > 0], counts[counts > 0])
    for other in (repeated, removed):
        np.testing.assert_allclose(
            weighted.decision_function(X), other.decision_function(X), atol=1e-5
        )
        np.testing.assert_allclose(weighted.gamma_, other.gamma_, rtol=1e-12)
    assert not weighted.kept_[counts == 0].any()


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "cosine"])
def test_storage_does_not_matter(moons, kernel):
    X, y = moons
    model = ss.SafeKernelClassifier(kernel=kernel, alpha=1e-2, tol=1e-9)
    plain = clone(model).fit(X, y).decision_function(X)
    K = pairwise_kernels(X, metric=kernel, **_parameters(clone(model).fit(X, y)))
    given = clone(model).set_params(kernel="precomputed").fit(K, y)
    for found in (
        clone(model).fit(sparse.csr_matrix(X), y).decision_function(sparse.csr_matrix(X)),
        clone(model).fit(np.asfortranarray(X), y).decision_function(X),
        given.decision_function(K),
    ):
        np.testing.assert_allclose(found, plain, atol=1e-6)
    single = clone(model).fit(X.astype(np.float32), y).decision_function(X.astype(np.float32))
    np.testing.assert_allclose(single, plain, atol=1e-3)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(
    ("kernel", "gamma", "shift"),
    [("rbf", "scale", 1e7), ("rbf", 2.0, [1e7, -3e6]), ("laplacian", "scale", 1e7)],
)
def test_the_origin_does_not_matter(moons, kernel, gamma, shift, loss, store):
    """Kernels of distances: the same model far from 0, to what the rows there can tell."""
    X, y = moons
    model = ss.SafeKernelClassifier(loss, kernel=kernel, gamma=gamma, alpha=1e-3)
    near = clone(model).fit(store(X), y)
    far = clone(model).fit(store(X + shift), y)
    # a float64 near 1e7 is rounded to 2e-9
    np.testing.assert_allclose(
        far.decision_function(store(X + shift)), near.decision_function(store(X)), atol=1e-6
    )
    np.testing.assert_array_equal(far.kept_, near.kept_)
    assert far.gamma_ == pytest.approx(near.gamma_, rel=1e-7)


def test_units_do_not_matter(moons):
    X, y = moons
    model = ss.SafeKernelClassifier(gamma="scale", alpha=1e-3, tol=1e-9)
    plain, other = clone(model).fit(X, y), clone(model).fit(1000 * X, y)
    np.testing.assert_allclose(
        other.decision_function(1000 * X), plain.decision_function(X), atol=1e-6
    )


def _parameters(model):
    names = {"rbf": ("gamma",), "laplacian": ("gamma",), "poly": ("gamma", "degree", "coef0")}
    values = {"gamma": model.gamma_, "degree": model.degree, "coef0": model.coef0}
    return {name: values[name] for name in names.get(model.kernel, ())}


def test_function_as_kernel(moons):
    X, y = np.abs(moons[0]), moons[1]
    model = ss.SafeKernelClassifier(kernel=chi2_kernel, alpha=1e-2).fit(X, y)
    given = ss.SafeKernelClassifier(kernel="precomputed", alpha=1e-2).fit(chi2_kernel(X), y)
    np.testing.assert_allclose(
        model.decision_function(X), given.decision_function(chi2_kernel(X)), atol=1e-4
    )


def test_more_classes():
    X, y = load_iris(return_X_y=True)
    model = ss.SafeKernelClassifier("hinge", alpha=1e-3).fit(X, y)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.kept_per_class_.shape == (150, 3) and model.dual_gap_.shape == (3,)
    assert model.score(X, y) > 0.95
    alone = ss.SafeKernelClassifier("hinge", alpha=1e-3).fit(X, y == 1)
    np.testing.assert_allclose(
        model.decision_function(X)[:, 1], alone.decision_function(X), atol=1e-2
    )


def test_class_weight(moons):
    X, y = moons
    by_class = ss.SafeKernelClassifier(class_weight={0: 1.0, 1: 5.0}, gamma=1.0, alpha=1e-2)
    by_sample = ss.SafeKernelClassifier(gamma=1.0, alpha=1e-2)
    by_class.fit(X, y)
    by_sample.fit(X, y, np.where(y == 1, 5.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_sample.decision_function(X))


def test_probabilities(moons):
    X, y = moons
    model = ss.SafeKernelClassifier("logistic", alpha=1e-3).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (300, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (proba.argmax(axis=1) == model.predict(X)).all()


def test_pickle_and_cross_validation(moons):
    X, y = moons
    K = rbf_kernel(X)
    model = ss.SafeKernelClassifier(kernel="precomputed").fit(K, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(K), model.predict(K))
    assert cross_val_score(ss.SafeKernelClassifier(kernel="precomputed"), K, y).mean() > 0.85


# --- screening ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "smoothed_hinge"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_kept_samples_give_the_same_model(moons, loss, fit_intercept):
    X, y = moons
    model = ss.SafeKernelClassifier(
        loss, gamma=1.0, alpha=1e-3, fit_intercept=fit_intercept, tol=1e-9
    )
    whole = clone(model).fit(X, y)
    kept = whole.kept_
    assert kept.sum() < 0.8 * len(y)
    assert kept[whole.support_].all()
    less = clone(model).set_params(alpha=1e-3 * len(y) / kept.sum()).fit(X[kept], y[kept])
    np.testing.assert_allclose(less.decision_function(X), whole.decision_function(X), atol=1e-4)


def test_screening_does_not_change_the_model(moons):
    X, y = moons
    ways = ["auto", "curvature", "gap_ball", None]
    models = [ss.SafeKernelClassifier(screening=way, tol=1e-10).fit(X, y) for way in ways]
    for model in models[1:]:
        np.testing.assert_allclose(
            model.decision_function(X), models[0].decision_function(X), atol=1e-4
        )
    kept = [int(model.kept_.sum()) for model in models]
    assert kept[1] <= kept[2] <= kept[3] < len(y)


def test_the_papers_ellipsoid_on_a_kernel(moons):
    """For small n, to compare: rows of a factor of K make everything linear apply."""
    X, y = moons[0][:60], moons[1][:60]
    K = rbf_kernel(X, gamma=1.0)
    how = {"loss": "squared_hinge", "alpha": 1e-3}
    A = ss.kernel_rows(K)
    np.testing.assert_allclose(A @ A.T, K, atol=1e-10)
    model = ss.SafeKernelClassifier(
        kernel="precomputed", alpha=1e-3, fit_intercept=False, screening="curvature"
    ).fit(K, y)
    coef = A.T @ coordinates(model, len(y))
    ellipsoid = ss.screen(A, y, **how, coef=coef, screening="ellipsoid")
    # both hold: what the ellipsoid drops carries nothing
    assert not (~ellipsoid.kept)[model.support_].any()
    assert (~model.kept_).sum() >= (~ellipsoid.kept).sum() > 0


# --- paths and memory -----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_path(moons, loss):
    X, y = moons
    alphas = [1e-2, 1e-1, 1e-3]
    path = ss.safe_kernel_path(X, y, alphas=alphas, loss=loss, fit_intercept=True)
    assert list(path.alphas) == alphas
    assert (path.relative_gaps <= 1e-6).all()
    assert (path.kept.sum(axis=1) == path.n_kept).all() and path.n_kept[-1] < len(y) / 2
    for k, alpha in enumerate(alphas):
        alone = ss.SafeKernelClassifier(loss, alpha=alpha).fit(X, y)
        decision = rbf_kernel(X, gamma=path.gamma) @ path.dual_coefs[k] + path.intercepts[k]
        np.testing.assert_allclose(decision, alone.decision_function(X), atol=2e-2)


def test_path_of_intervals(waves):
    X, y = waves
    Y = np.column_stack([y - 0.3, np.where(np.arange(len(y)) % 3, y + 0.3, np.inf)])
    path = ss.safe_kernel_path(
        X, Y, alphas=[1e-2, 1e-3], loss="squared_interval", fit_intercept=False
    )
    assert (path.relative_gaps <= 1e-6).all() and path.classes is None


def test_warm_start(moons):
    X, y = moons
    model = ss.SafeKernelClassifier(alpha=1e-2, warm_start=True).fit(X, y)
    model.fit(X, y)
    assert model.n_iter_ == 0
    model.set_params(alpha=1e-1).fit(X, y)
    cold = ss.SafeKernelClassifier(alpha=1e-1).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), cold.decision_function(X), atol=1e-2)
    with pytest.raises(ValueError, match="warm_start=False"):
        model.fit(X[:-1], y[:-1])


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_memory_stays_within_its_budget(loss):
    """No n × n matrix, and a model as good where hardly anything can be kept."""
    X, y = make_moons(3000, noise=0.2, random_state=0)
    model = ss.SafeKernelClassifier(loss, gamma=1.0, alpha=1e-3, memory="2 MB")
    model.fit(X[:300], y[:300])  # what is imported and compiled
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6 < 8 * 3000**2
    assert model.dual_gap_ <= 1e-6
    roomy = ss.SafeKernelClassifier(loss, gamma=1.0, alpha=1e-3).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), roomy.decision_function(X), atol=2e-2)


def test_kept_rows_are_rows_of_the_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    kernel = PairwiseKernel(X, "rbf", {"gamma": 0.5})
    K, gram = rbf_kernel(X, gamma=0.5), GramColumns(kernel, memory=500_000)
    for _ in range(6):
        beta = np.where(rng.random(700) < rng.random(), rng.normal(size=700), 0.0)
        np.testing.assert_allclose(gram.product(beta), K @ beta, atol=1e-11)
        rows = np.sort(rng.permutation(700)[:300])
        np.testing.assert_allclose(gram.submatrix(rows), K[np.ix_(rows, rows)], atol=1e-14)
        np.testing.assert_allclose(
            gram.block(rows[:50], rows), K[np.ix_(rows[:50], rows)], atol=1e-14
        )


def test_import_stays_light():
    code = (
        "import safesift, sys; assert not any(m.startswith(('sklearn', 'numba', 'safesift.rkhs')) "
        "for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- errors ---------------------------------------------------------------------------------------


def fit_precomputed(K, y=None):
    y = np.arange(len(K)) % 2 if y is None else y
    return ss.SafeKernelClassifier(kernel="precomputed").fit(K, y)


def test_not_a_kernel_matrix():
    K = rbf_kernel(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(ValueError, match=r"20 × 19.*square"):
        fit_precomputed(K[:, :-1])
    wrong = K.copy()
    wrong[3, 4] += 0.1
    with pytest.raises(ValueError, match=r"not symmetric.*0\.1"):
        fit_precomputed(wrong)
    with pytest.raises(ValueError, match=r"not positive semidefinite.*least eigenvalue -0\.5"):
        fit_precomputed(K - (np.linalg.eigvalsh(K)[0] + 0.5) * np.eye(20))
    with pytest.raises(ValueError, match=r"not positive semidefinite.*with itself"):
        fit_precomputed(-K)
    with pytest.raises(ValueError, match=r"sparse.*toarray"):
        fit_precomputed(sparse.csr_matrix(K), np.arange(20) % 2)
    fit_precomputed(K.astype(np.float32))


def test_indefinite_beyond_what_is_checked(monkeypatch):
    """Where only a part is checked beforehand, negative curvature is found while solving."""
    from safesift.design import kernels as factory

    monkeypatch.setattr(factory, "_CHECKED", 1)
    rng = np.random.default_rng(0)
    B = rng.normal(size=(80, 80))
    K = 0.5 * (B + B.T)
    np.fill_diagonal(K, 1.0)
    for loss in ("hinge", "squared_hinge"):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            ss.SafeKernelClassifier(loss, kernel="precomputed", alpha=1e-4).fit(
                K, np.arange(80) % 2
            )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rfb"}, "kernel='rfb' is not known: did you mean 'rbf'"),
        ({"kernel": "sigmoid"}, "is not known"),
        ({"kernel": "poly", "coef0": -1.0}, "coef0 must be 0 or more"),
        ({"kernel": "poly", "degree": 2.5}, "degree must be a positive integer"),
        ({"gamma": -1.0}, "gamma must be positive"),
        ({"memory": 0}, "memory must be a size"),
        (
            {"screening": "ellipsoid"},
            "screening='ellipsoid' is not known.*auto, curvature, gap_ball",
        ),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"loss": "squared"}, "loss"),
        ({"kernel": lambda X, Y: X @ Y.T - 3}, "not positive semidefinite"),
        ({"kernel": lambda X, Y: (X @ Y.T)[:, :1]}, "kernel returned shape"),
        ({"kernel": lambda X, Y: X[:, :1] - Y[:, 0]}, "not symmetric"),
    ],
)
def test_errors(moons, parameters, message):
    with pytest.raises(ValueError, match=message):
        ss.SafeKernelClassifier(**parameters).fit(*moons)


def test_says_when_it_did_not_converge(moons):
    many = make_moons(1500, noise=0.25, random_state=0)
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        ss.SafeKernelClassifier("hinge", alpha=1e-6, max_iter=1).fit(*many)
    # what one round solves is as exact as it gets: more of them would not help
    with pytest.warns(ConvergenceWarning, match="rounding allows no less"):
        ss.SafeKernelClassifier("hinge", alpha=1e-6, tol=1e-14, max_iter=1).fit(*moons)
    with pytest.warns(ConvergenceWarning, match="safe_kernel_path did not converge"):
        ss.safe_kernel_path(
            *moons, alphas=[1e-6], loss="hinge", tol=1e-15, max_iter=1, fit_intercept=False
        )


def test_rounding_is_that_of_how_predictions_came_about(moons):
    """Also where many others were computed since, and the way there is forgotten."""
    X, y = moons
    problem = with_kernel(
        make_problems(X, y, loss="hinge", penalty="l2", alpha=1e-2, fit_intercept=False).problem,
        X,
        "rbf",
    )
    design, rng = problem.design, np.random.default_rng(0)
    beta = rng.normal(size=len(y))
    worn = replace(design.element(beta), work=20.0 * design.gram.size(beta))
    design.remember(worn)
    at = problem.evaluate(beta)
    before = problem.rounding(at).value
    for _ in range(10):
        design.element(rng.normal(size=len(y)))
    assert problem.rounding(at).value == before
    assert at.size == worn.work
