"""`screen` as a user meets it: the result, other solvers, check and repair, odd data."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine, make_classification, make_regression
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import LinearSVC, LinearSVR

import safesift as ss
from safesift import solvers
from safesift.problem.problem import Problem
from tests.laws.reference import dense_rows, optimum


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X / np.sqrt((X**2).sum(axis=1).mean()), y


def linear_svc(X, y, C):
    model = LinearSVC(
        C=C, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-10, max_iter=10**5
    )
    return model.fit(X, y).coef_[0]


def test_result_as_documented(cancer):
    X, y = cancer
    result = ss.screen(X, y, loss="squared_hinge", penalty="l2", alpha=1e-3, fit_intercept=False)
    n = len(y)
    assert result.kept.shape == result.undecided.shape == (n,)
    assert result.kept.dtype == result.undecided.dtype == bool
    assert 0 < result.kept.sum() < 0.6 * n
    assert (result.lower <= result.upper).all()
    assert result.certified and 0 <= result.gap < 1e-6
    assert result.alpha_kept == pytest.approx(1e-3 * n / result.kept.sum())
    assert (result.score[~result.kept] < 0).all() and (result.score[result.kept] >= 0).all()
    assert "ball near the optimum" in result.region.describe()
    assert "samples kept" in result.summary() and "proved" in result.summary()
    reduced = result.reduced
    assert isinstance(reduced, Problem) and reduced is result.reduced
    assert reduced.Q.shape == (X.shape[1], X.shape[1])
    np.testing.assert_array_equal(reduced.Q, reduced.Q.T)
    assert reduced.q.shape == (X.shape[1],)
    assert reduced.design.n_samples == result.undecided.sum()


def test_same_model_from_linear_svc_on_the_kept_rows(cancer):
    """C = 1/(2Wα) stays what it is when rows go: the divisor is the full problem's."""
    X, y = cancer
    alpha = 1e-3
    C = 1 / (2 * len(y) * alpha)
    result = ss.screen(X, y, alpha=alpha, fit_intercept=False)
    full, kept = linear_svc(X, y, C), linear_svc(X[result.kept], y[result.kept], C)
    np.testing.assert_allclose(kept, full, atol=1e-6)
    check = result.check(kept)
    assert check.passed and check.gap < 1e-9


def test_same_model_from_a_mean_normalised_solver(cancer):
    """On the kept rows alone, alpha_kept gives the same optimum, and alpha another one."""
    X, y = cancer
    result = ss.screen(X, y, alpha=1e-3, fit_intercept=False)
    kept = ss.screen(X[result.kept], y[result.kept], alpha=result.alpha_kept, fit_intercept=False)
    naive = ss.screen(X[result.kept], y[result.kept], alpha=1e-3, fit_intercept=False)
    full = optimum(result.problem).point
    np.testing.assert_allclose(optimum(kept.problem).point, full, rtol=1e-9)
    assert np.linalg.norm(optimum(naive.problem).point - full) > 1e-2 * np.linalg.norm(full)


def test_regression_with_linear_svr():
    X, y = make_regression(300, 8, noise=5.0, random_state=0)
    y = y / y.std()
    loss = ss.losses.SquaredEpsilonInsensitive(epsilon=0.05)
    result = ss.screen(X, y, loss=loss, alpha=1e-2, fit_intercept=False)
    assert 0 < (~result.kept).sum() < 300
    C = 1 / (2 * len(y) * 1e-2)

    def fit(rows):
        model = LinearSVR(
            epsilon=0.05, loss="squared_epsilon_insensitive", C=C, dual=False,
            fit_intercept=False, tol=1e-10, max_iter=10**5,
        )  # fmt: skip
        return model.fit(X[rows], y[rows]).coef_

    np.testing.assert_allclose(fit(result.kept), fit(np.ones(300, bool)), atol=1e-6)


def test_hinge_folds_linear_pieces():
    X, y = make_classification(400, 6, class_sep=0.8, flip_y=0.2, random_state=0)
    result = ss.screen(X, y, loss="hinge", alpha=0.1, fit_intercept=False)
    folded = result.decisions.folded
    assert folded.sum() > 50 and result.reduced.Q is None
    assert np.linalg.norm(result.reduced.q) > 0
    np.testing.assert_allclose(
        optimum(result.reduced).point, optimum(result.problem).point, atol=1e-6
    )


def test_fold_rule_and_override():
    X, y = make_classification(60, 40, flip_y=0.3, random_state=0)
    always, never, auto = (
        ss.screen(X, y, alpha=1.0, fold=fold, fit_intercept=False)
        for fold in ("always", "never", "auto")
    )
    assert always.reduced.Q is not None and never.reduced.Q is None
    assert never.undecided.sum() > always.undecided.sum()
    n_quadratic = int((always.decisions.quadratic != 0).sum())
    assert (auto.reduced.Q is not None) == (n_quadratic >= 40)
    np.testing.assert_array_equal(always.kept, never.kept)


def test_decisions_about_some_rows(cancer):
    decisions = ss.screen(*cancer, alpha=1e-2, fold="always", fit_intercept=False).decisions
    some = decisions.take(slice(100, 300))
    assert some.dropped.any() and some.folded.any()
    for name in ("dropped", "folded", "undecided", "quadratic", "linear", "lower", "upper"):
        np.testing.assert_array_equal(getattr(some, name), getattr(decisions, name)[100:300])


def test_guess_is_not_certified_and_repair_finds_the_right_answer(cancer):
    X, y = cancer
    wrong = ss.regions.GuessedBall(radius=0.5)
    start = np.random.default_rng(0).normal(size=X.shape[1]) * 0.2
    result = ss.screen(X, y, alpha=1e-2, screening=wrong, coef=start, fit_intercept=False)
    assert not result.certified and "NOT certified" in result.summary()
    full = optimum(result.problem)
    first = result.check(optimum(result.reduced).point)
    assert not first.passed and first.violations.any()

    def solve(problem):
        return optimum(problem).point, 0.0

    repaired = ss.solve_and_repair(result, solve)
    assert repaired.n_rounds > 1 and repaired.check.passed
    np.testing.assert_allclose(repaired.coef, full.point, atol=1e-9)
    assert repaired.check.gap < 1e-10


def test_repair_gives_up_folding_after_max_rounds(cancer):
    X, y = cancer
    start = np.random.default_rng(0).normal(size=X.shape[1]) * 0.2
    guess = ss.regions.GuessedBall(radius=0.5)
    result = ss.screen(X, y, alpha=1e-2, screening=guess, coef=start, fit_intercept=False)
    repaired = ss.solve_and_repair(result, lambda p: (optimum(p).point, 0.0), max_rounds=1)
    assert repaired.n_rounds == 2 and repaired.result.undecided.all()
    np.testing.assert_allclose(repaired.coef, optimum(result.problem).point, atol=1e-9)


def test_subset_cuts_are_not_certified(cancer):
    X, y = cancer
    region = ss.regions.Ellipsoid(n_steps=5, subset=0.1)
    result = ss.screen(X, y, alpha=1e-2, screening=region, fit_intercept=False)
    assert not result.certified


def test_unpenalised_intercept_is_certified():
    X, y = make_classification(
        300, 4, n_informative=3, n_redundant=0, class_sep=3.0, random_state=0
    )
    result = ss.screen(X + 3.0, y, alpha=0.01, fit_intercept=True)
    assert result.certified and (~result.kept).sum() > 50
    assert result.reduced.Q.shape == (5, 5)
    best = optimum(result.problem)
    pred = dense_rows(result.problem) @ best.point
    assert ((result.lower <= pred) & (pred <= result.upper)).all()
    np.testing.assert_allclose(optimum(result.reduced).point, best.point, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_huge_and_tiny_scales(scale, loss):
    """Scaling X by s and alpha by s² is the same problem: nothing wrong, nothing lost."""
    X, y = make_classification(100, 4, random_state=1)
    alpha = 0.1
    plain = ss.screen(
        X, y, loss=loss, alpha=alpha, effort="quick", screening="gap_ball", fit_intercept=False
    )
    if not 1e-300 < alpha * scale**2 < 1e300:
        return
    scaled = ss.screen(
        X * scale, y, loss=loss, alpha=alpha * scale**2, screening="gap_ball",
        coef=plain.coef / scale, fit_intercept=False,
    )  # fmt: skip
    np.testing.assert_allclose(scaled.lower, plain.lower, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(scaled.kept, plain.kept)


def polished(X, y, alpha, point, fit_intercept):
    """Predictions at the optimum of the logistic loss, to which bounds are nearer than a fit."""
    A = np.column_stack([X, np.ones(len(y))]).astype(np.longdouble)[:, : X.shape[1] + fit_intercept]
    ridge = np.where(np.arange(A.shape[1]) < X.shape[1], np.longdouble(alpha), 0)
    point = point[: A.shape[1]].astype(np.longdouble)
    for _ in range(4):
        odds = np.exp(y * (A @ point))
        gradient = A.T @ (-y / (1 + odds)) / len(y) + ridge * point
        H = (A.T * (odds / (1 + odds) ** 2)) @ A / len(y) + np.diag(ridge)
        point = point - np.linalg.solve(H.astype(np.float64), gradient.astype(np.float64))
    assert np.abs(gradient).max() < 1e-19
    return (A @ point).astype(np.float64)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bounds_of_a_loss_without_pieces(fit_intercept):
    """Nothing can be dropped, and predictions are known all the same."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 5))
    y = np.sign(X[:, 0] + rng.normal(size=2000))
    model = {"loss": "logistic", "alpha": 1e-3, "fit_intercept": fit_intercept}
    result = ss.screen(X, y, **model)
    fitted = ss.SafeClassifier(**model, tol=1e-13).fit(X, y)
    exact = polished(X, y, 1e-3, np.append(fitted.coef_, fitted.intercept_), fit_intercept)
    assert (result.lower <= exact).all() and (exact <= result.upper).all()
    assert (result.upper - result.lower).max() < 1e-2


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e150])
@pytest.mark.parametrize("region", ["auto", "gap_ball", "gradient_ball", "ellipsoid"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "safe_logistic"])
def test_extreme_scales_with_a_plain_alpha_drop_nothing_wrongly(scale, region, loss):
    """Tiny rows all have margin 0 < 1 at the optimum: none may be dropped, whatever overflows."""
    X, y = make_classification(60, 3, n_informative=2, n_redundant=0, random_state=1)
    result = ss.screen(X * scale, y, loss=loss, alpha=1.0, screening=region, fit_intercept=False)
    assert not np.isnan(result.lower).any() and not np.isnan(result.upper).any()
    if scale < 1:
        assert result.kept.all()


def test_what_overflows_is_refused():
    X, y = make_classification(60, 3, n_informative=2, n_redundant=0, random_state=1)
    with pytest.raises(ValueError, match=r"X is too large to square .* rescale"):
        ss.screen(X * 1e200, y, fit_intercept=False)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_awkward_data(make):
    """Constant columns, zero rows, duplicated rows, n < p."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 30))
    X[:, 3], X[4], X[5] = 7.0, 0.0, X[6]
    y = np.where(X[:, 0] > 0, "b", "a")
    result = ss.screen(make(X), y, alpha=0.5, fit_intercept=False)
    best = optimum(result.problem)
    pred = X @ best.point
    assert ((result.lower <= pred + 1e-12) & (pred - 1e-12 <= result.upper)).all()
    assert result.kept[4]
    assert list(result.classes) == ["a", "b"]


def test_one_sample_per_class():
    result = ss.screen([[1.0], [-1.0]], ["yes", "no"], alpha=0.1, fit_intercept=False)
    assert result.kept.all()
    far = ss.screen([[1.0], [-1.0], [50.0]], [1, 0, 1], alpha=0.01, fit_intercept=False)
    assert list(far.kept) == [True, True, False]


def test_everything_can_be_dropped():
    """With μ large enough the loss is flat at 0, and no sample is needed."""
    X, y = make_classification(50, 3, n_informative=2, n_redundant=0, random_state=0)
    loss = ss.losses.SafeLogistic(mu=5.0)
    result = ss.screen(X, y, loss=loss, alpha=1.0, fit_intercept=False)
    assert not result.kept.any()
    assert result.alpha_kept == np.inf and result.reduced.design.n_samples == 0
    assert "0 of 50 samples kept" in result.summary()


def test_zero_weight_rows_are_dropped_first():
    X, y = make_classification(50, 3, n_informative=2, n_redundant=0, random_state=0)
    weights = np.ones(50)
    weights[:10] = 0.0
    labels = y.astype(object)
    labels[:10] = 7  # a third label that has no weight
    result = ss.screen(X, labels, alpha=0.1, sample_weight=weights, fit_intercept=False)
    assert not result.kept[:10].any() and list(result.classes) == [0, 1]
    assert "weightless" in result.summary()


def test_float32_stays_float32(cancer):
    X, y = cancer
    single = X.astype(np.float32)
    result = ss.screen(single, y, alpha=1e-3, fit_intercept=False)
    assert result.problem.design.data is single
    assert result.reduced.design.data.dtype == np.float32
    double = ss.screen(
        single.astype(np.float64), y, alpha=1e-3, coef=result.coef, fit_intercept=False
    )
    np.testing.assert_allclose(result.lower, double.lower, atol=1e-6)


def test_a_given_coef_is_used_as_it_is(cancer):
    X, y = cancer
    coef = np.arange(X.shape[1], dtype=float)
    np.testing.assert_array_equal(ss.screen(X, y, coef=coef, fit_intercept=False).coef, coef)
    np.testing.assert_array_equal(
        ss.screen(X, y, coef=coef[None, :], fit_intercept=False).coef, coef
    )
    inside = ss.screen(X, y, coef=coef, penalty=ss.penalties.L2Ball(radius=3), fit_intercept=False)
    assert np.linalg.norm(inside.coef) == pytest.approx(3)


def test_score_ranks_by_hardness(cancer):
    X, y = cancer
    for loss in ("squared_hinge", "logistic", "hinge"):
        result = ss.screen(X, y, loss=loss, alpha=1e-2, fit_intercept=False)
        margin = result.problem.y * (X @ result.coef)
        assert np.corrcoef(result.score, -margin)[0, 1] > 0.5


def test_import_is_cheap():
    """`import safesift` loads none of the extras, and scikit-learn only when it is needed."""
    heavy = ("matplotlib", "rich", "click", "pyarrow", "pandas", "sklearn", "scipy")
    code = f"import safesift, sys; print(*[name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


# --- with the power of the solver ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "alpha", "most"), [(load_breast_cancer, 1e-4, 87), (load_wine, 1e-3, 26)]
)
def test_raw_data_are_screened_as_the_estimator_screens_them(load, alpha, most):
    """569 of 569 and 178 of 178 rows were kept when the centre was that of a short run."""
    X, y = load(return_X_y=True)
    result = ss.screen(X, y, alpha=alpha, random_state=0)
    model = ss.SafeClassifier(alpha=alpha, random_state=0).fit(X, y)
    assert result.kept.sum() <= most and not (result.kept & ~model.kept_).any()
    assert result.relative_gap <= 1e-6 and result.reason == ""
    few = ss.SafeClassifier(alpha=result.alpha_kept, tol=1e-8).fit(*result.take(X, y))
    np.testing.assert_allclose(few.coef_, result.to_estimator().coef_, atol=1e-3)


def test_one_class_of_several_against_the_rest():
    X, y = load_wine(return_X_y=True)
    assert ss.screen(X, y == 1, alpha=1e-3).kept.sum() <= 14


def test_quick_effort_is_a_short_run():
    X, y = load_breast_cancer(return_X_y=True)
    quick, full = (ss.screen(X, y, alpha=1e-3, effort=effort) for effort in ("quick", "full"))
    assert quick.only.fit.n_iter == 0 < full.only.fit.n_iter
    assert full.relative_gap <= 1e-6 < 1e-3 < quick.relative_gap
    # what the short run read is counted, and not made up
    assert quick.only.fit.history[-1].passes > 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"effort": "some"}, "effort must be 'full' or 'quick'"),
        ({"effort": "quick", "coef": np.zeros(2)}, "exclude each other"),
        ({"screening": None}, "screens nothing"),
        ({"solver": "multiplier"}, "multiplier"),
        ({"y": [0, 1, 2, 0], "coef": np.zeros(2)}, "a row of coefficients for each"),
        ({"y": [0, 1, 2, 0], "coef": np.zeros((3, 2)), "intercept": [1, 2]}, "pass one for each"),
    ],
)
def test_what_excludes_each_other_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ss.screen(**{"X": np.eye(4, 2), "y": [0, 1, 0, 1]} | arguments)


def test_several_classes_have_a_part_each():
    X, y = load_wine(return_X_y=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    result = ss.screen(scale(X), names, alpha=1e-3)
    assert list(result.classes) == ["barbera", "barolo", "grignolino"]
    assert result.lower.shape == result.upper.shape == (178, 3)
    assert result.coef.shape == (3, 13) and result.intercept.shape == result.gap.shape == (3,)
    assert "3 classes, each against the rest" in result.summary()
    assert result.check(result.coef, result.intercept).passed
    with pytest.raises(AttributeError, match=r"result\.parts"):
        _ = result.problem
    again = ss.screen(scale(X), names, alpha=1e-3, coef=result.coef, intercept=result.intercept)
    assert again.kept.sum() <= 1.1 * result.kept.sum()

    def solve(problem):
        found = solvers.solve(problem, tol=1e-10)
        return found.coef, found.intercept

    repaired = ss.solve_and_repair(result, solve)
    assert repaired.n_rounds == 1 and repaired.coef.shape == (3, 13)


def test_a_range_of_alphas_for_several_classes():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    found = ss.screen_range(X, y, alpha_range=(1e-2, 1.05e-2))
    assert found.certified and 0 < found.kept.sum() < 178
    one = found.result(1.02e-2)
    assert one.training.alpha == 1.02e-2 and len(one.parts) == 3
    model = ss.SafeClassifier(alpha=1.02e-2, tol=1e-10).fit(X, y)
    assert one.check(model.coef_, model.intercept_).passed
    assert "for every alpha from 0.01 to 0.0105" in found.summary()


# --- why little is proved -----------------------------------------------------------------------


def test_reasons_are_what_was_measured(cancer):
    X, y = cancer
    assert "flat nowhere" in ss.screen(X, y, loss="logistic").reason
    assert "inside the margin" in ss.screen(X, y, alpha=10.0, fit_intercept=False).reason
    raw, labels = load_breast_cancer(return_X_y=True)
    assert "far from the optimum" in ss.screen(raw, labels, effort="quick").reason
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(300, 2))
    assert "overlap" in ss.screen(noise, rng.integers(0, 2, 300)).reason
    targets = 10.0 * rng.normal(size=300)
    assert "wider tube" in ss.screen(noise, targets, loss="epsilon_insensitive").reason


def test_a_reason_names_the_column(cancer):
    X, y = cancer
    table = pd.DataFrame(X.copy(), columns=[f"c{k}" for k in range(X.shape[1])])
    table["c3"] *= 1e8
    result = ss.screen(table, y, effort="quick")
    assert (
        "column 'c3' is 1e+08 times as large" in result.reason
        and "scale the columns" in result.reason
    )


# --- what is read later -------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ["reduced", "zero_coef", "score", "check", "summary"])
def test_samples_that_changed_since_are_noticed(ask):
    X, y = make_regression(80, 4, noise=5.0, random_state=0)
    result = ss.screen(X, y, loss="epsilon_insensitive", penalty="l1", alpha=0.1)
    X[3, 2] += 1e-3
    with pytest.raises(RuntimeError, match="changed after this result was made"):
        if ask == "check":
            result.check(result.coef, result.intercept)
        elif ask == "summary":
            result.summary()
        else:
            getattr(result, ask)


def test_targets_are_copied():
    X, y = make_regression(80, 4, noise=5.0, random_state=0)
    result, same = (ss.screen(X, y, loss="squared", random_state=0) for _ in range(2))
    y[:] = 0.0
    np.testing.assert_array_equal(result.score, same.score)
    assert result.check(result.coef, result.intercept).gap < 1e-3


def test_a_range_notices_that_its_samples_changed(cancer):
    X, y = cancer
    X = X.copy()
    found = ss.screen_range(X, y, alpha_range=(1e-2, 1.1e-2))
    X[0, 0] += 1.0
    with pytest.raises(RuntimeError, match="changed after this result was made"):
        found.result(1.05e-2)


def test_a_guess_is_tried_at_the_solution_only(cancer):
    X, y = cancer
    result = ss.screen(X, y, alpha=1e-3, screening=ss.regions.GuessedBall(0.01))
    assert not result.certified and result.relative_gap <= 1e-6
    assert result.kept.sum() < 0.5 * len(y) and result.check(result.coef, result.intercept).passed
