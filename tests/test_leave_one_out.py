"""What users see of leave-one-out, of prediction intervals and of certified alphas."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_predict
from sklearn.preprocessing import scale

import safesift as ss
from safesift.problem.risk import ChangedDataError


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, "yes", "no")


@pytest.fixture(scope="module")
def loo(samples):
    return ss.leave_one_out(*samples, alpha=1e-2)


# --- the result ---------------------------------------------------------------------------------


def test_scores_are_those_of_scikit_learn(samples, loo):
    X, y = samples
    model = ss.SafeClassifier(alpha=1e-2, tol=1e-10)
    found = cross_val_predict(model, X, y, cv=LeaveOneOut())
    assert (found == loo.prediction).all()
    assert loo.score() == accuracy_score(y, found) == loo.score("accuracy")
    assert 0.5 < loo.score("roc_auc") <= 1.0
    assert loo.certain.all()


def test_change_is_how_far_a_sample_pulls(samples, loo):
    X, y = samples
    own = ss.SafeClassifier(alpha=1e-2, tol=1e-12).fit(X, y).decision_function(X)
    assert np.allclose(loo.fitted, own, atol=1e-6)
    sign = np.where(y == "yes", 1.0, -1.0)
    # with a sample its margin is larger than without; alpha times (W - 1)/W pulls a little
    assert (sign * loo.change < 1e-2).all()
    assert np.allclose(loo.change, loo.decision - loo.fitted)


def test_influence_is_what_refits_say(samples, loo):
    X, y = samples
    new = np.random.default_rng(1).normal(size=(3, 4))
    found = loo.influence(new, top=4)
    assert found.rows.shape == found.effects.shape == (3, 4)
    before = ss.SafeClassifier(alpha=1e-2, tol=1e-12).fit(X, y).decision_function(new)
    for k in range(3):
        for row, effect in zip(found.rows[k], found.effects[k], strict=True):
            kept = np.arange(len(y)) != row
            model = ss.SafeClassifier(alpha=1e-2, tol=1e-12).fit(X[kept], y[kept])
            after = model.decision_function(new[k : k + 1])[0]
            assert np.isclose(after - before[k], effect, atol=1e-6)
    whole = np.hstack([effects for _, effects in loo.influence_blocks(new)])
    assert whole.shape == (3, 120)
    assert np.allclose(np.sort(-np.abs(whole))[:, :4], -np.abs(found.effects))


def test_influence_of_smooth_and_kinked_losses(samples):
    X, y = samples
    for loss in ("logistic", "hinge"):
        loo = ss.leave_one_out(X[:40], y[:40], alpha=5e-2, loss=loss)
        found = loo.influence(X[100:102], top=1)
        kept = np.arange(40) != found.rows[0, 0]
        with_it, without = (
            ss.SafeClassifier(alpha=5e-2, loss=loss, tol=1e-9).fit(X[:40][rows], y[:40][rows])
            for rows in (slice(None), kept)
        )
        moved = without.decision_function(X[100:101]) - with_it.decision_function(X[100:101])
        assert np.isclose(moved[0], found.effects[0, 0], atol=2e-3)


def test_suspects_find_a_wrong_label(samples):
    X, y = samples
    margins = ss.SafeClassifier(alpha=1e-2).fit(X, y).decision_function(X)
    sure = int(np.argmax(margins))
    wrong = y.copy()
    wrong[sure] = "no"
    assert sure in ss.leave_one_out(X, wrong, alpha=1e-2).suspects(3)


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    loo = ss.leave_one_out(X, y, alpha=1e-2)
    assert loo.decision.shape == (150, 3)
    some = np.arange(0, 150, 10)
    split = [(np.delete(np.arange(150), i), [i]) for i in some]
    for train, (i,) in split:
        model = ss.SafeClassifier(alpha=1e-2, tol=1e-12).fit(X[train], y[train])
        assert np.allclose(model.decision_function(X[[i]])[0], loo.decision[i], atol=1e-5)
    assert loo.influence(X[:2], top=2).rows.shape == (2, 3, 2)
    assert set(loo.suspects(5)) & set(np.flatnonzero(loo.prediction != y))


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_groups_are_folds(loss):
    X, y = load_breast_cancer(return_X_y=True)
    X, folds = scale(X), np.arange(569) % 5
    if loss == "logistic":
        X, y, folds = X[:150], y[:150], folds[:150]
        model = ss.SafeClassifier(loss=loss, alpha=0.3, tol=1e-12)
    else:
        y = X[:, 0] + X[:, 1] ** 2
        model = ss.SafeRegressor(loss=loss, alpha=0.3, tol=1e-12)
    loo = ss.leave_one_out(X, y, loss=loss, alpha=0.3, groups=folds)
    split = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(5)]
    method = "predict" if loss != "logistic" else "decision_function"
    found = cross_val_predict(model, X, y, cv=split, method=method)
    assert np.allclose(loo.decision, found, atol=1e-4)
    assert ((loo.lower <= found + 1e-4) & (found - 1e-4 <= loo.upper)).all()


def test_summary_and_plot(loo):
    pytest.importorskip("matplotlib").use("Agg")
    assert "120 models without a sample each" in loo.summary()
    axes = loo.plot()
    assert "without the sample" in axes.get_ylabel()
    assert "LeaveOneOut(" in repr(loo) and len(repr(loo)) < 1000


def test_data_that_changed_are_noticed(samples):
    X, y = samples[0].copy(), samples[1]
    loo = ss.leave_one_out(X, y, alpha=1e-2)
    X[3] += 1.0
    with pytest.raises(ChangedDataError, match="changed"):
        loo.influence(X[:1])


# --- errors -------------------------------------------------------------------------------------


def test_refusals(samples):
    X, y = samples
    with pytest.raises(ValueError, match="constraint"):
        ss.leave_one_out(X, y, penalty="l2_ball")
    with pytest.raises(ValueError, match=r"Hinge.*L1"):
        ss.leave_one_out(X, y, loss="hinge", penalty="l1")
    last = np.array(["no"] * 119 + ["yes"])
    with pytest.raises(ValueError, match=r"class 'yes' has no other samples.*row 119"):
        ss.leave_one_out(X, last)
    with pytest.raises(ValueError, match="groups has 3 entries"):
        ss.leave_one_out(X, y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="use more groups"):
        ss.leave_one_out(X, X[:, 0], loss="squared", groups=np.zeros(120))
    with pytest.raises(ValueError, match="width"):
        ss.leave_one_out(X, y, width=0.0)


# --- prediction intervals -----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["plus", "minmax"])
def test_intervals_are_those_of_the_definition(method):
    X, y = load_diabetes(return_X_y=True)
    X, y = 20.0 * X[:90], y[:90] / 50.0
    loo = ss.leave_one_out(X[:60], y[:60], loss="squared", alpha=1e-2)
    found = ss.jackknife_plus(loo, X[60:], level=0.9, method=method)
    models = [
        ss.SafeRegressor(loss="squared", alpha=1e-2, tol=1e-12).fit(
            np.delete(X[:60], i, axis=0), np.delete(y[:60], i)
        )
        for i in range(60)
    ]
    pred = np.array([model.predict(X[60:]) for model in models])
    residuals = np.array([abs(y[i] - models[i].predict(X[i : i + 1])[0]) for i in range(60)])
    if method == "plus":
        lower = np.sort(pred - residuals[:, None], axis=0)[6 - 1]
        upper = np.sort(pred + residuals[:, None], axis=0)[55 - 1]
    else:
        most = np.sort(residuals)[55 - 1]
        lower, upper = pred.min(axis=0) - most, pred.max(axis=0) + most
    assert np.allclose(found.lower, lower, atol=1e-5) and np.allclose(found.upper, upper, atol=1e-5)
    assert found.guaranteed == (0.8 if method == "plus" else 0.9)
    assert found.coverage(y[60:]) >= found.guaranteed - 0.15


def test_coverage_is_at_least_what_is_guaranteed():
    covered = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 5))
        y = X[:, 0] + rng.standard_t(3, size=100)
        loo = ss.leave_one_out(X[:50], y[:50], loss="huber", alpha=0.1)
        covered.append(ss.jackknife_plus(loo, X[50:], level=0.8).coverage(y[50:]))
    assert np.mean(covered) >= 0.75
    assert np.mean(covered) <= 0.9


def test_label_sets():
    X, y = load_iris(return_X_y=True)
    shuffled = np.random.default_rng(0).permutation(150)
    train, test = shuffled[:100], shuffled[100:]
    loo = ss.leave_one_out(X[train], y[train], alpha=1e-2)
    sets = ss.jackknife_plus(loo, X[test], level=0.9)
    assert sets.contains.shape == (50, 3)
    assert sets.coverage(y[test]) >= sets.guaranteed - 0.1
    wide = ss.jackknife_plus(loo, X[test], level=0.9, method="minmax")
    assert (wide.contains >= sets.contains).all()
    two = y[train] < 2
    binary = ss.leave_one_out(X[train][two], y[train][two], alpha=1e-2)
    assert ss.jackknife_plus(binary, X[test[:3]]).contains.shape == (3, 2)


def test_groups_of_one_size_have_intervals(samples):
    X, _ = samples
    loo = ss.leave_one_out(X, X[:, 0] ** 2, loss="squared", groups=np.arange(120) % 10)
    new = ss.jackknife_plus(loo, X[:5])
    assert 0.8 - 2.0 * 0.9 / 13.0 <= new.guaranteed < 0.8
    with pytest.raises(ValueError, match="groups"):
        ss.jackknife_plus(loo, X, method="minmax")


def test_levels_and_weights_are_checked(samples):
    X, y = samples
    loo = ss.leave_one_out(X, X[:, 0], loss="squared", sample_weight=np.arange(120) % 3)
    with pytest.raises(ValueError, match="exchangeable"):
        ss.jackknife_plus(loo, X)
    plain = ss.leave_one_out(X, y)
    with pytest.raises(ValueError, match="level"):
        ss.jackknife_plus(plain, X, level=1.5)
    with pytest.raises(ValueError, match="method"):
        ss.jackknife_plus(plain, X, method="naive")


# --- alphas -------------------------------------------------------------------------------------


def check_no_alpha_is_better(seed: int, **options) -> None:
    """No alpha of a dense grid is better than the certificate allows, nor outside its band."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    X[40:] = X[:20]
    score = X[:, 0] + rng.normal(size=60)
    y = score if "metric" in options else np.where(score > 0, 1, -1)
    cv = KFold(3)
    found = ss.certify_alpha(X, y, alphas=(1e-3, 1.0), cv=cv, **options)
    assert found.resolved and found.error - found.least <= options["epsilon"] + 1e-12
    ends = np.array([one.low for one in found.intervals] + [found.intervals[-1].high])
    for alpha in np.geomspace(1.0000001e-3, 0.9999999, 25):
        errors = []
        for train, test in cv.split(X):
            if "metric" in options:
                model = ss.SafeRegressor(loss=options["loss"], alpha=alpha, tol=1e-12)
                residual = y[test] - model.fit(X[train], y[train]).predict(X[test])
                errors += list(np.abs(residual))
            else:
                model = ss.SafeClassifier(alpha=alpha, tol=1e-12).fit(X[train], y[train])
                errors += list(model.predict(X[test]) != y[test])
        error = np.mean(errors)
        assert error >= found.least - 1e-9
        one = found.intervals[np.searchsorted(ends, alpha) - 1]
        assert one.lower - 1e-9 <= error <= one.upper + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_no_alpha_is_better_than_certified(epsilon):
    check_no_alpha_is_better(1, epsilon=epsilon)


def test_no_alpha_is_better_in_a_regression():
    check_no_alpha_is_better(3, epsilon=0.01, metric="absolute", loss="huber")


def test_what_is_not_proved_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    found = ss.certify_alpha(X, X[:, 0] + rng.normal(size=60) > 0, epsilon=0.0, max_solves=3)
    assert not found.resolved and "unresolved" in found.summary()
    with pytest.raises(ValueError, match="metric"):
        ss.certify_alpha(X, X[:, 0] > 0, metric="squared")
    with pytest.raises(ValueError, match="low < high"):
        ss.certify_alpha(X, X[:, 0] > 0, alphas=(1.0, 0.1))


def test_plot_of_certified_alphas():
    pytest.importorskip("matplotlib").use("Agg")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = rng.integers(0, 3, size=60)
    found = ss.certify_alpha(X, y, alphas=(1e-2, 1.0), epsilon=0.1, cv=3)
    assert found.plot().get_xscale() == "log"


# --- estimators ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*found its best score")
def test_alpha_is_chosen_by_leave_one_out():
    X, y = load_breast_cancer(return_X_y=True)
    X, alphas = scale(X)[:120], [1.0, 0.1]
    model = ss.SafeClassifierCV(alphas=alphas, cv="loo").fit(X, y[:120])
    plain = ss.SafeClassifierCV(alphas=alphas, cv=LeaveOneOut()).fit(X, y[:120])
    assert np.allclose(model.mean_score_path_, plain.mean_score_path_)
    assert model.scores_.shape == (1, 2) and np.allclose(model.coef_, plain.coef_)
    ranked = ss.SafeClassifierCV(alphas=alphas, cv="loo", scoring="roc_auc").fit(X, y[:120])
    assert (ranked.scores_ <= 1.0).all()
    target = X[:, 0] + X[:, 1] ** 2
    regressor = ss.SafeRegressorCV(alphas=alphas, cv="loo").fit(X, target)
    expected = ss.leave_one_out(
        X, target, loss="squared_epsilon_insensitive", alpha=regressor.alpha_
    ).score()
    assert np.isclose(regressor.mean_score_path_.max(), expected)


def test_alpha_is_certified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + rng.normal(size=150) > 0
    model = ss.SafeClassifierCV(alphas="certified", cv=3).fit(X, y)
    assert model.certificate_.resolved and model.alpha_ == model.certificate_.alpha
    assert model.score(X, y) > 0.6
    with pytest.raises(ValueError, match="certified"):
        ss.SafeClassifierCV(alphas="exact").fit(X, y)
    with pytest.raises(ValueError, match="goes with folds"):
        ss.SafeClassifierCV(alphas="certified", cv="loo").fit(X, y)


def test_units_of_columns_do_not_spoil_the_intervals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * 10.0 ** np.arange(-4, 2) + np.array([0, 0, 0, 1, 10, 1e3])
    y = np.where(X[:, 5] - X[:, 4] + rng.normal(size=80) * 5 > 995, 1, -1)
    loo = ss.leave_one_out(X, y, alpha=1e-4)
    assert loo.n_refits == 0
    assert np.median(loo.upper - loo.lower) < 1e-5
    for row in (0, 17, 40):
        left = np.arange(80) != row
        model = ss.SafeClassifier(alpha=1e-4, tol=1e-9).fit(X[left], y[left])
        value = model.decision_function(X[[row]])[0]
        assert loo.lower[row] - 1e-3 <= value <= loo.upper[row] + 1e-3


def test_models_that_are_not_settled_among_a_support_are_no_noise():
    """Of some of them the radius is infinite, and the size of a feature outside 0."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 40)) + 0.5 * rng.normal(size=(300, 1))
    y = X[:, :3].sum(axis=1) / 2.0 + rng.normal(size=300) > 0
    X = np.hstack([X, np.zeros((300, 1))])  # a column of zeros is outside of every support
    loo = ss.leave_one_out(X, y, loss="smoothed_hinge", penalty="elastic_net", alpha=1e-2)
    assert np.isfinite(loo.upper - loo.lower).all()
