"""Paths: every point certified, whatever the order, the storage and the screening."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import safesift as ss
from safesift.arithmetic.tally import counting
from safesift.problem.inputs import make_problems
from safesift.regions import Curvature
from safesift.solvers.records import Settings
from tests.laws.reference import optimum
from tests.solving import newton_path

ALPHAS = np.geomspace(1e-1, 1e-4, 6)


def samples(n=600, p=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    score = X[:, 0] - 0.5 * X[:, 1] + 0.7 * rng.normal(size=n) + 0.3
    return X, np.where(score > 0, 1.0, -1.0)


def problem_at(X, y, alpha, **model):
    usual = {"loss": "squared_hinge", "penalty": "l2", "fit_intercept": False}
    return make_problems(X, y, alpha=alpha, **usual | model)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net"])
@pytest.mark.parametrize("loss", ["squared_hinge", "safe_logistic"])
def test_every_point_is_optimal(loss, penalty, fit_intercept):
    X, y = samples(150, 5)
    path = ss.safe_path(
        X, y, alphas=ALPHAS[1:4], loss=loss, penalty=penalty, fit_intercept=fit_intercept, tol=1e-8
    )
    for alpha, coef, intercept, gap in zip(
        path.alphas, path.coefs, path.intercepts, path.dual_gaps, strict=True
    ):
        problem = problem_at(
            X, y, alpha, loss=loss, penalty=penalty, fit_intercept=fit_intercept
        ).problem
        value = problem.primal(problem.join(coef, float(intercept)))
        assert gap <= 1e-8 * problem.constant_value
        assert value - optimum(problem).value <= gap + 1e-7


def test_screening_does_not_change_the_model():
    X, y = samples()
    paths = [
        ss.safe_path(X, y, alphas=ALPHAS, fit_intercept=True, tol=1e-10, screening=screening)
        for screening in ("auto", None, "curvature", Curvature(rank=3))
    ]
    for path in paths[1:]:
        np.testing.assert_allclose(path.coefs, paths[0].coefs, atol=1e-8)
        np.testing.assert_allclose(path.intercepts, paths[0].intercepts, atol=1e-8)
        np.testing.assert_array_equal(path.n_kept[path.n_undecided == 0],
                                      paths[0].n_kept[path.n_undecided == 0])  # fmt: skip


@pytest.mark.parametrize("store", [sparse.csr_array, np.asfortranarray, np.float32, "frame"])
def test_storage(store):
    X, y = samples()
    X = X.astype(np.float32).astype(np.float64)
    if store == "frame":
        import pandas as pd

        stored = pd.DataFrame(X)
    else:
        stored = X.astype(np.float32) if store is np.float32 else store(X)
    expected = ss.safe_path(X, y, alphas=ALPHAS[:3], tol=1e-10, fit_intercept=False)
    found = ss.safe_path(stored, y, alphas=ALPHAS[:3], tol=1e-10, fit_intercept=False)
    np.testing.assert_allclose(found.coefs, expected.coefs, atol=1e-9)


def test_weights_are_repetitions():
    X, y = samples(200)
    weights = np.random.default_rng(1).integers(0, 4, 200)
    weighted = ss.safe_path(
        X, y, alphas=ALPHAS, sample_weight=weights, tol=1e-10, fit_intercept=False
    )
    repeated = ss.safe_path(
        X.repeat(weights, 0), y.repeat(weights), alphas=ALPHAS, tol=1e-10, fit_intercept=False
    )
    np.testing.assert_allclose(weighted.coefs, repeated.coefs, atol=1e-9)


def test_a_path_keeps_the_order_of_the_caller():
    X, y = samples()
    mixed, falling = [1e-3, 1e-1, 1e-2, 1e-1], [1e-1, 1e-2, 1e-3]
    path = ss.safe_path(X, y, alphas=mixed, random_state=0)
    np.testing.assert_array_equal(path.alphas, mixed)
    good = ss.safe_path(X, y, alphas=falling, random_state=0)
    places = [falling.index(alpha) for alpha in mixed]
    # solved in the good order all the same, so that the numbers are the same to the last bit
    for name in ("coefs", "intercepts", "dual_gaps", "relative_gaps", "n_kept", "n_iter", "passes"):
        np.testing.assert_array_equal(getattr(path, name), getattr(good, name)[places])
    assert len(path.seconds) == len(path.n_undecided) == 4


@pytest.mark.parametrize(("ball", "order"), [("l1_ball", 1), ("l2_ball", 2)])
def test_radii_keep_their_order(ball, order):
    X, y = samples()
    path = ss.safe_path(X, y, penalty=ball, alphas=[0.2, 0.1], fit_intercept=False)
    norms = np.linalg.norm(path.coefs, ord=order, axis=1)
    np.testing.assert_allclose(norms, [0.2, 0.1], rtol=1e-6)


@pytest.mark.parametrize("penalty", ["l2", "l2_ball"])
def test_the_picture_is_drawn_in_order(penalty):
    X, y = samples()
    path = ss.safe_path(X, y, alphas=[1e-2, 1e-1, 1e-3], penalty=penalty, max_iter=5000)
    axes = path.plot()
    for line in axes.lines:
        assert (np.diff(line.get_xdata()) > 0).all()
    by_alpha = dict(zip(path.alphas, path.coefs[:, 0], strict=True))
    drawn = [line for line in axes.lines if set(line.get_ydata()) == set(by_alpha.values())]
    assert [dict(zip(*line.get_data(), strict=True)) for line in drawn] == [by_alpha]
    assert axes.get_xlabel() == ("alpha" if penalty == "l2" else "radius")
    assert axes.xaxis_inverted() == (penalty == "l2")


def test_default_grid_begins_with_the_constant_model():
    X, y = samples()
    path = ss.safe_path(X, y, penalty="l1", n_alphas=4, eps=1e-4, fit_intercept=True)
    assert len(path.alphas) == 4
    assert not path.coefs[0].any() and path.coefs[1].any()
    assert path.alphas[-1] == pytest.approx(1e-4 * path.alphas[0])


def explained(path, X, y, **model):
    """The objectives along a path, relative to that of the best constant model."""
    values = []
    for alpha, coef, intercept in zip(path.alphas, path.coefs, path.intercepts, strict=True):
        problem = problem_at(X, y, 1.0, fit_intercept=True, **model).problem.at_level(alpha)
        point = problem.feasible(problem.join(coef, float(intercept)))
        values.append(problem.primal(point) / problem.constant_value)
    return np.array(values)


@pytest.mark.parametrize("penalty", ["l2", "l1", "l2_ball"])
def test_default_grid_ends_where_the_objective_stands_still(penalty):
    X, y = samples()
    path = ss.safe_path(X, y, penalty=penalty, n_alphas=8)
    values = explained(path, X, y, penalty=penalty)
    assert values[0] > 0.98
    # half a decade a step, a thousandth a decade
    falls = -np.diff(values)
    assert np.abs(np.diff(np.log10(path.alphas))) == pytest.approx(0.5)
    assert falls[-1] <= 0.5e-3 * 1.001 and (path.relative_gaps <= 1e-6).all()
    further = path.alphas[-1] * (100.0 if penalty == "l2_ball" else 0.01)
    beyond = ss.safe_path(X, y, penalty=penalty, alphas=[further])
    assert values[-1] - explained(beyond, X, y, penalty=penalty)[0] < 5e-3


def test_units_do_not_matter():
    X, y = samples(200)
    for penalty in ("l2", "l1"):
        paths = [ss.safe_path(c * X, y, penalty=penalty, tol=1e-9) for c in (1.0, 1000.0, 1e-3)]
        for path, c in zip(paths[1:], (1000.0, 1e-3), strict=True):
            assert len(path.alphas) == len(paths[0].alphas)
            np.testing.assert_allclose(c * path.coefs, paths[0].coefs, atol=1e-5)


def test_columns_in_other_units_have_their_say():
    """The signal is in a column a million times as small as the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X[:, 3] + 0.1 * rng.normal(size=200)
    X[:, 3] *= 1e-6
    path = ss.safe_path(X, y, n_alphas=4, loss="squared")
    pred = X @ path.coefs[-1] + path.intercepts[-1]
    assert np.corrcoef(pred, y)[0, 1] > 0.98


def test_what_cannot_be_solved_ends_a_path_and_is_not_part_of_it():
    X, y = samples(100)
    X[:, 0] *= 1e8
    path = ss.safe_path(X, y, n_alphas=4, loss="squared_hinge", tol=1e-7)
    assert (path.relative_gaps <= 1e-7).all() and 4 <= len(path.alphas) < 21


def test_elastic_net_by_its_ratio():
    X, y = samples()
    named = ss.safe_path(
        X, y, penalty="elastic_net", l1_ratio=0.3, alphas=ALPHAS[:2], fit_intercept=False
    )
    built = ss.safe_path(
        X, y, penalty=ss.penalties.ElasticNet(0.3), alphas=ALPHAS[:2], fit_intercept=False
    )
    np.testing.assert_array_equal(named.coefs, built.coefs)
    with pytest.raises(ValueError, match="goes with penalty='elastic_net' only"):
        ss.safe_path(X, y, l1_ratio=0.3, fit_intercept=False)


def test_later_points_cost_about_a_pass():
    """Each further alpha reads the rows near their kinks, and all rows once."""
    X, y = samples(20000, 10)
    alphas = np.geomspace(1e-2, 1e-3, 20)
    screened = ss.safe_path(X, y, alphas=alphas, fit_intercept=False)
    everything = ss.safe_path(X, y, alphas=alphas, screening=None, fit_intercept=False)
    assert screened.passes[5:].max() < 1.5
    assert screened.passes[5:].sum() < 0.8 * everything.passes[5:].sum()
    assert (screened.n_undecided == 0).all() and (screened.relative_gaps < 1e-9).all()


def test_wrong_guesses_are_found_out(monkeypatch):
    """With no row in doubt at all, the pass over all rows brings back those that moved."""
    from safesift.solvers import newton

    X, y = samples(2000)
    expected = ss.safe_path(X, y, alphas=ALPHAS, tol=1e-10, fit_intercept=False)
    monkeypatch.setattr(newton, "_FURTHER", 0.0)
    monkeypatch.setattr(newton, "_MEAN_SHARE", 0.0)
    found = ss.safe_path(X, y, alphas=ALPHAS, tol=1e-10, fit_intercept=False)
    assert (found.relative_gaps <= 1e-10).all()
    np.testing.assert_allclose(found.coefs, expected.coefs, atol=1e-5)


def test_problems_together_are_the_problems_alone():
    """Folds and classes share passes, not results."""
    X, y = samples(3000)
    rng = np.random.default_rng(0)
    design = problem_at(X, y, 1.0).problem
    folds = [design.reweighted((rng.random(3000) < 0.7).astype(float)) for _ in range(3)]
    levels = [[fold.at_level(alpha) for fold in folds] for alpha in ALPHAS]
    with counting() as shared:
        together = [[fit.coef for fit in fits] for fits in newton_path(levels, Settings())]
    with counting() as separate:
        alone = [
            [fit.coef for (fit,) in newton_path([[row[k]] for row in levels], Settings())]
            for k in range(3)
        ]
    np.testing.assert_allclose(together, np.swapaxes(alone, 0, 1), atol=1e-8)
    assert shared.rows < 0.7 * separate.rows


def test_not_converged():
    X, y = samples()
    with pytest.warns(ConvergenceWarning, match="safe_path did not converge: .* increase max_iter"):
        path = ss.safe_path(X, y, alphas=[1e-3], max_iter=1, tol=1e-12, fit_intercept=False)
    assert path.relative_gaps[0] > 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alphas": []}, "alphas must be"),
        ({"alphas": [0.0, 1.0]}, "alphas must be"),
        ({"tol": 0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be a positive integer"),
        ({"screening": "gap_bal"}, "screening"),
        ({"n_alphas": 0}, "n_alphas must be"),
        ({"eps": 2.0}, "eps must be below 1"),
        ({"eps": 0.1, "alphas": [1.0]}, "eps=0.1 is for a grid that is found"),
    ],
)
def test_wrong_arguments(arguments, message):
    X, y = samples(20)
    with pytest.raises(ValueError, match=message):
        ss.safe_path(X, y, **arguments)


def test_picture():
    import matplotlib

    matplotlib.use("agg")
    X, y = samples(100)
    axes = ss.safe_path(X, y, alphas=ALPHAS, fit_intercept=False).plot()
    assert axes.get_xlabel() == "alpha"
    assert len(axes.lines) == X.shape[1]


@pytest.mark.parametrize("solver", ["newton", "dual_descent", "relay"])
def test_a_guess_is_never_published_as_proved(solver):
    """A radius that is a guess may say which rows to read, not what became of them."""
    X, y = samples(200)
    guess = ss.regions.GuessedBall(0.5)
    found = ss.safe_path(X, y, alphas=[1e-3], screening=guess, solver=solver, fit_intercept=False)
    assert found.relative_gaps[0] <= 1e-6
    assert found.n_kept[0] == found.n_undecided[0] == 200


# --- targets that are all the same ---------------------------------------------------------------

# of some the mean is not exact, so that they seem to spread by its rounding
SAME = [0.0, 1.0, 0.1, 151.3, 1e6 / 3, -1e9 / 3]


@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "squared", "huber"])
@pytest.mark.parametrize("value", SAME)
def test_a_constant_target_has_a_constant_model(value, loss):
    """And nobody is warned: filterwarnings turns a warning into an error."""
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.full(50, value)
    for penalty in ("l2", "l1"):
        path = ss.safe_path(X, y, loss=loss, penalty=penalty, n_alphas=3)
        assert (path.relative_gaps <= 1e-6).all() and not path.coefs.any()
        np.testing.assert_allclose(path.intercepts, value, rtol=1e-15)
        model = ss.SafeRegressor(loss, penalty=penalty).fit(X, y)
        assert not model.coef_.any() and model.intercept_ == pytest.approx(value, rel=1e-15)
        assert model.history_[-1]["relative_gap"] <= 1e-6
    machine = ss.SafeKernelRegressor(loss).fit(X, y)
    np.testing.assert_allclose(machine.predict(X), value, rtol=1e-9, atol=1e-12)
    chosen = ss.SafeRegressorCV(3, cv=3, loss=loss).fit(X, y)
    assert not chosen.coef_.any() and (chosen.scores_ == 1.0).all()


def test_targets_so_tiny_that_their_squares_underflow():
    """Nothing divides by zero; that rounding allows no proof of a relative gap is said."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.warns(ConvergenceWarning, match="rounding"):
        model = ss.SafeRegressor("squared").fit(X, 1e-200 * X[:, 0])
    assert np.isfinite(model.dual_gap_)
