"""What was tried to make leaving samples out say something that is not so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import safesift as ss
from safesift.arithmetic.compiled import leave_out as loops
from safesift.penalties import L2, Penalty
from safesift.problem.decisions import Bounds
from safesift.problem.inputs import make_problems
from safesift.solvers import sparse_newton
from safesift.workflows.alpha_search import Interval, Search, _cut
from safesift.workflows.held_out import HeldOut, mean_between
from safesift.workflows.leaving_out import base as base_module
from safesift.workflows.leaving_out import smooth
from safesift.workflows.leaving_out.groups import Groups
from safesift.workflows.leaving_out.models import Models
from safesift.workflows.leaving_out.refits import solved
from safesift.workflows.leaving_out.support import SupportSpace
from tests.additions.euclidean import Euclidean
from tests.laws.leaving_out_laws import Case, check_exact

# --- rounding, as large as one can see ----------------------------------------------------------


def without_the_first(t, piece, breaks, quad, lin, z_error):
    """`loops.leave_out` of sample 0 in one dimension where every z is 1 as computed.

    That of sample 0 is exact, those of the others are known up to an error.
    """
    n = len(t)
    errors = np.append(0.0, np.full(n - 1, z_error))
    samples = (
        t, np.zeros(n), np.full(n, 1.0 / n), piece, breaks, quad, lin, 1.0 + errors, errors,
    )  # fmt: skip
    white = (np.zeros(1), 0.0, 0.0, 0.0, np.zeros(1), 0.0)
    none, one = np.zeros((1, 0)), np.zeros(1, np.int64)
    status, move, radius = one.copy(), np.zeros((1, 1)), np.zeros(1)
    loops.leave_out(
        one, one, np.array([0, 1]), np.ones((1, 1)), np.arange(n), samples, np.zeros(n - 1),
        (np.arange(1, n), np.ones((n - 1, 1))), np.inf, white, np.zeros(1), loops.workspace(1),
        (np.zeros(1), np.zeros(1), status, one.copy(), one.copy(), np.zeros(1), radius, move,
         none.astype(np.int64), none),
    )  # fmt: skip
    assert status[0] == loops.SETTLED
    return move[0, 0], radius[0]


def root(gradient):
    """Where an increasing function is 0."""
    low, high = -1.0, 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if gradient(middle) > 0 else (middle, high)
    return 0.5 * (low + high)


@pytest.mark.parametrize("jumps", [False, True])
def test_samples_that_may_be_beyond_a_kink_are_paid_for(jumps):
    """Many samples arrive at a kink, and z is known up to an error only.

    They stay on a flat piece, as computed, or jump over it from a curved one to another: their
    exact slopes may be those of the next piece, or of the piece in between.
    """
    n, z_error, short = 41, 1e-3, 1e-6
    step = 1.0 / n
    z = 1.0 - z_error if jumps else 1.0 + z_error
    quad, lin = np.zeros((n, 3)), np.zeros((n, 3))
    breaks, piece = np.tile([-50.0, 50.0], (n, 1)), np.ones(n, np.int64)
    # sample 0 has a slope and no curvature: without it the model moves by its share of that
    lin[0] = 1.0
    t = np.append(0.0, np.full(n - 1, -step))
    if jumps:
        quad[1:, [0, 2]], lin[1:, 0], breaks[1:], piece[1:] = 1.0, short, [-short, 0.0], 0
    else:
        quad[1:, 2], breaks[1:] = 1.0, [-50.0, 0.0]

    def slope(at: float) -> float:
        return max(at, 0.0) + (min(at + short, 0.0) if jumps else 0.0)

    others = (n - 1.0) / n * z
    # at the base the exact matrix is the identity
    ridge = 1.0 - (others * z if jumps else 0.0)
    exact = root(lambda u: ridge * u + others * (slope(t[1] + z * u) - slope(t[1])) - step)
    found, radius = without_the_first(t, piece, breaks, quad, lin, z_error)
    assert abs(exact - found) <= radius, (exact, found, radius)


# --- inputs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, X[:, 0] + rng.normal(size=40)


@pytest.fixture(scope="module")
def regression(samples):
    return ss.leave_one_out(*samples, loss="squared", alpha=1e-2)


def test_new_rows_are_checked(samples, regression):
    X, _ = samples
    with pytest.raises(ValueError, match="X has 4 features, but the models have 3"):
        ss.jackknife_plus(regression, np.ones((2, 4)))
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or infinity"):
            ss.jackknife_plus(regression, np.full((2, 3), bad))
    with pytest.raises(TypeError, match="loo must be a result of leave_one_out, got ndarray"):
        ss.jackknife_plus(X, X)


def test_columns_of_frames_are_compared(samples):
    frames = pytest.importorskip("pandas")
    X, y = samples
    frame = frames.DataFrame(X, columns=list("abc"))
    loo = ss.leave_one_out(frame, y, loss="squared", alpha=1e-2)
    assert (loo.influence(frame[:1], top=1).rows == loo.influence(X[:1], top=1).rows).all()
    for ask in (loo.influence, lambda new: ss.jackknife_plus(loo, new)):
        with pytest.raises(ValueError, match="X has the columns c, b, a"):
            ask(frame[["c", "b", "a"]])


def correct(model, X, y):
    return float((model.predict(X) == y).mean())


@pytest.mark.filterwarnings("ignore:.*found its best score")
def test_scorers_that_take_no_weights(samples):
    X, y = samples
    labels = np.where(y > 0, "yes", "no")
    loo = ss.leave_one_out(X, labels, alpha=1e-2)
    assert loo.score(correct) == loo.score()
    model = ss.SafeClassifierCV(alphas=[1.0, 1e-2], cv="loo", scoring=correct).fit(X, labels)
    assert model.scores_[0, 1] == loo.score()
    with pytest.raises(ValueError, match="'neg_log_loss' needs probabilities"):
        loo.score("neg_log_loss")


def test_a_sample_that_outweighs_all_others_can_be_left_out(samples):
    X, y = samples
    weights = np.append(1e18, np.ones(39))
    loo = ss.leave_one_out(X, y, loss="squared", alpha=1e-2, sample_weight=weights)
    others = ss.leave_one_out(
        X, y, loss="squared", alpha=1e-2, sample_weight=np.append(0.0, np.ones(39))
    )
    assert loo.lower[0] <= others.fitted[0] + 1e-9 and others.fitted[0] - 1e-9 <= loo.upper[0]
    with pytest.raises(ValueError, match="without the samples left out with row 0 none"):
        ss.leave_one_out(X, y, loss="squared", sample_weight=np.append(1.0, np.zeros(39)))


def test_a_model_that_does_not_converge_is_not_solved_for_again_and_again(monkeypatch):
    from safesift.workflows.leaving_out import refits

    solved, asked = refits.solved, []
    monkeypatch.setattr(refits, "solved", lambda *args: asked.append(args[2]) or solved(*args))
    rng = np.random.default_rng(0)
    # sparse, so that it is not centred
    X = sparse.csr_array(1e6 + rng.normal(size=(5, 1)))
    y, weights = rng.normal(size=5), 10.0 ** np.array([-5.0, 3.0, 0.0, -2.0, 2.0])
    options = {"loss": "squared", "alpha": 1e-8, "sample_weight": weights}
    ss.leave_one_out(X, y, max_iter=10, **options)
    assert asked and len(set(asked)) == 1


# --- rounding of whitened rows of smooth losses -------------------------------------------------


def test_curvature_that_leaves_is_not_less_because_of_rounding():
    """z is known up to an error, as large as one can see: the radius pays for it."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        d, k = 4, 3
        own = rng.normal(size=(k, d))
        loads = np.full(k, 0.9 / np.linalg.norm(own, 2) ** 2)
        errors = np.full(k, 1e-2)
        norms = np.linalg.norm(own, axis=1) + errors
        base = SimpleNamespace(
            looseness=0.0, share_error=0.0, n_columns=d, z_norms=norms, z_errors=errors,
            pred_error=np.zeros(k), at=SimpleNamespace(pred=np.zeros(k)),
        )  # fmt: skip
        space = smooth.SmoothSpace(base, 1e-3)
        space.__dict__["_load"] = loads
        found = Models.empty(Groups.of(np.zeros(k)))
        rows, r = np.arange(k), rng.normal(size=d)
        table = [smooth.Secants(1e9, 0.0, 0.0, 0.0)]
        system = smooth._System(own, loads)
        space._certify(0, rows, own, system, np.zeros(d), r, 0.0, 0.0, table, found)
        # every row longer by its error
        true = own * (1.0 + errors / np.linalg.norm(own, axis=1))[:, None]
        left = 1.0 - np.linalg.norm(true * np.sqrt(loads)[:, None], 2) ** 2
        assert found.radius[0] >= np.linalg.norm(r) / left


# --- samples without influence, on the support ------------------------------------------------


def test_samples_that_cross_on_the_way_to_the_optimum_are_paid_for():
    """The base is far from its own optimum, on the way to which samples change their piece.

    What derivatives of the features outside are said to be is within what is allowed for.
    """
    crossed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 8))
        y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1, -1)
        problem = make_problems(
            X, y, loss="squared_hinge", penalty="l1", alpha=0.05, fit_intercept=False
        ).problem
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sparse_newton, "_SHARP", np.inf)
            patch.setattr(sparse_newton, "_ALL_ROWS", 0)
            fit = solved(problem, None, 1e-2)
            patch.setattr(base_module, "_POLISHING", 1)
            space, groups = SupportSpace.of(fit), Groups.single(60)
        if space is None:
            continue
        todo = np.flatnonzero(~space.inner._pulling)
        part = space.inner.models(groups, todo, np.zeros(len(todo)), True, 64)
        alone = space.inner._own_optimum
        if not len(todo) or not part.settled[todo].all():
            continue
        inner = space.inner.base
        exact = base_module.base_at(inner.problem, solved(inner.problem, None, 1e-14).at.point)
        true = X.T @ (problem.shares * exact.at.nu)
        said = space._derivatives + part.moves[todo] @ space._response.T
        said = said + space._moved(part, todo)[0]
        columns, whole = space._sizes
        room = np.outer(part.radius[todo], columns * whole) + 1e-9
        assert (np.abs(said - true[~space.features]) <= room).all()
        crossed += int(alone.changed[0] > 0)
    assert crossed


# --- pieces that nearly touch -------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "width"), [(0.3, 0.1), (0.1, 0.05), (0.7, 0.1)])
def test_ends_of_pieces_that_are_no_floats_do_no_harm(samples, epsilon, width):
    X, y = samples
    loss = ss.losses.SmoothedEpsilonInsensitive(epsilon, width)
    check_exact(Case(X, y, loss, 1e-2), rows=range(0, 40, 5))
    loo = ss.leave_one_out(X, y, loss=loss, alpha=1e-2)
    assert loo.n_refits == 0 and (loo.upper - loo.lower).max() < 1e-6


# --- validation errors --------------------------------------------------------------------------


def held_out(X, y, weights):
    inputs = make_problems(
        X, y, loss="squared_hinge", penalty="l2", alpha=1.0, sample_weight=weights
    )
    return HeldOut.of(inputs, np.arange(len(y)), inputs.problems[0].weights, "zero_one", 0.5)


def errors_between(one, lower, upper):
    bounds = [Bounds(low, high) for low, high in zip(lower.T, upper.T, strict=True)]
    return mean_between([one], [one.between(bounds)])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_of_labels_lie_between_their_bounds(n_classes):
    """For any weights, exactly, and rows that are the same have the same label."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, k = 12, 1 if n_classes == 2 else n_classes
        X = rng.integers(1, 3, (n, 2)).astype(float)
        y = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes))
        weights = rng.choice([0.1, 0.2, 0.3, 0.7], n)
        one = held_out(X, y, weights)
        centre = X @ rng.normal(size=(2, k))
        room = rng.choice([0.0, 0.3, 2.0])
        low, high = errors_between(one, centre - room, centre + room)
        pred = centre + X @ rng.normal(size=(2, k))
        pred = np.clip(pred, centre - room, centre + room)
        label = (pred[:, 0] > 0).astype(int) if k == 1 else pred.argmax(axis=1)
        error = math.fsum(weights[label != y]) / math.fsum(weights)
        assert low <= error <= high
        if room == 0.0:
            assert low == error == high


def test_of_contradictory_samples_some_are_wrong():
    X, y = np.zeros((6, 2)), np.array([0, 1, 2, 0, 0, 1])
    wide = np.ones((6, 3))
    assert errors_between(held_out(X, y, None), -wide, wide) == (0.5, 5 / 6)


def test_an_interval_that_is_better_is_never_overlooked(samples, monkeypatch):
    """Also where nothing but the bounds of whole intervals is known."""
    X, y = samples
    known = Search._between

    def of_intervals(self, nearby, todo):
        return known(self, nearby, [(low, high) for low, high in todo if low < high])

    monkeypatch.setattr(Search, "_between", of_intervals)
    found = ss.certify_alpha(X, y > 0, alphas=(1e-2, 1.0), cv=3, epsilon=0.0)
    assert found.error - found.least <= 0.0 or not found.resolved
    assert found.error < 1.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("low", [1e-6, 1.1e-3])
def test_intervals_of_a_few_floats_end(samples, loss, low):
    X, y = samples
    high = low * (1.0 + 7e-16)
    options = {"alphas": (low, high), "cv": 3, "epsilon": 0.0, "alpha_tol": 1e-300}
    found = ss.certify_alpha(X, y > 0, loss=loss, max_solves=50, **options)
    assert (found.intervals[0].low, found.intervals[-1].high) == (low, high)


@pytest.mark.parametrize("max_solves", [1, 30, 100, 300])
def test_no_more_models_are_found_than_asked_for(samples, max_solves):
    X, y = samples
    options = {"alphas": (1e-4, 10.0), "cv": 3, "epsilon": 0.0, "max_solves": max_solves}
    for loss, target in (("squared_hinge", y > 0), ("squared", y)):
        found = ss.certify_alpha(X, target, loss=loss, **options)
        assert len(found.trials) <= max(max_solves, 10)
        assert all(one.high == two.low for one, two in pairwise(found.intervals))
    assert not found.resolved
    assert max_solves < 100 or found.least > 0.5 * found.error


def test_nothing_is_resolved_where_no_error_is_known():
    """Not even for an epsilon that is infinite, as the variance of huge targets is."""
    search = Search([], [], [], math.inf, 1e-9, 1)
    search.open = [Interval(0.1, 1.0, 0.0, math.inf)]
    assert search.unresolved == tuple(search.open)


def test_cuts_stay_within_an_interval():
    for steps in range(1, 60):
        pair = (1e-6, 1e-6 + steps * np.spacing(1e-6))
        cut = _cut(pair, 4)
        assert (cut[0][0], cut[-1][1]) == pair
        assert all(low < high for low, high in cut)
        assert all(one[1] == two[0] for one, two in pairwise(cut))


@dataclass(frozen=True)
class Twice(Penalty):
    """R(x) = ‖x‖²: at alpha what l2 is at 2·alpha."""

    strong_convexity = 2.0

    def value(self, coef):
        return 2.0 * L2().value(coef)

    def support(self, u, alpha, error=0.0):
        return L2().support(u, 2.0 * alpha, error)

    def prox(self, coef, step):
        return L2().prox(coef, 2.0 * step)

    def least_norm(self, coef, gradient, alpha):
        return L2().least_norm(coef, gradient, 2.0 * alpha)

    def norm_bound(self, objective, alpha):
        return L2().norm_bound(objective, 2.0 * alpha)


def test_certified_errors_of_a_penalty_from_outside(samples):
    X, y = samples
    options = {"loss": "squared", "cv": 3, "epsilon": 0.02, "metric": "absolute"}
    found = ss.certify_alpha(X, y, penalty=Twice(), alphas=(0.05, 0.5), **options)
    known = ss.certify_alpha(X, y, alphas=(0.1, 1.0), **(options | {"epsilon": 1e-4}))
    for one in found.intervals:
        for other in known.intervals:
            if other.low <= 2.0 * one.high and other.high >= 2.0 * one.low:
                assert one.lower <= other.upper and one.upper >= other.lower
    assert found.least <= known.error and found.error >= known.least


@pytest.mark.parametrize("penalty", [Twice(), Euclidean()])
def test_leaving_out_with_a_penalty_from_outside(samples, penalty):
    X, y = samples
    loo = ss.leave_one_out(X, y, loss="squared", penalty=penalty, alpha=0.1)
    for row in (0, 7, 21):
        rest = np.delete(np.arange(40), row)
        model = ss.SafeRegressor(loss="squared", penalty=penalty, alpha=0.1, tol=1e-12)
        expected = model.fit(X[rest], y[rest]).predict(X[[row]])[0]
        assert loo.lower[row] - 1e-7 <= expected <= loo.upper[row] + 1e-7
    assert np.median(loo.upper - loo.lower) < 1e-3


@pytest.mark.filterwarnings("ignore:.*found its best score")
def test_certified_errors_are_weighted_as_scores_are(samples):
    X, y = samples
    labels, weights = y > 0.5, np.tile([0.5, 1.0, 3.0, 1.0], 10)
    for class_weight in ("balanced", {False: 1.0, True: 5.0}):
        options = {"cv": 4, "class_weight": class_weight}
        model = ss.SafeClassifierCV(alphas="certified", **options)
        model.fit(X, labels, sample_weight=weights)
        plain = ss.SafeClassifierCV(alphas=[model.alpha_], tol=1e-10, **options)
        plain.fit(X, labels, sample_weight=weights)
        assert np.isclose(1.0 - plain.mean_score_path_[0], model.certificate_.error, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*found its best score")
def test_folds_may_be_masks_or_lists(samples):
    X, y = samples
    labels, fold = y > 0, np.arange(40) % 3
    masks = [(fold != k, fold == k) for k in range(3)]
    numbers = [tuple(map(np.flatnonzero, one)) for one in masks]
    lists = [tuple(rows.tolist() for rows in one) for one in numbers]
    errors, scores = set(), set()
    for cv in (masks, numbers, lists):
        errors.add(ss.certify_alpha(X, labels, alphas=(1e-2, 1.0), cv=cv, epsilon=0.01).error)
        model = ss.SafeClassifierCV(alphas=[1.0, 0.1], cv=cv).fit(X, labels)
        scores.add(tuple(model.mean_score_path_))
    assert len(errors) == len(scores) == 1
    nobody = np.where(fold == 0, 1.0, 0.0)
    with pytest.raises(ValueError, match="training samples of a fold have no weight"):
        ss.certify_alpha(X, labels, cv=numbers, sample_weight=nobody)


# --- intervals and sets -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["plus", "minmax"])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_samples_without_weight_are_as_good_as_removed(samples, method, n_classes):
    X, y = samples
    weights = np.where(np.arange(40) % 5 == 2, 0.0, 1.0)
    kept, loss = weights > 0, "squared" if n_classes == 0 else "squared_hinge"
    if n_classes:
        y = np.digitize(y, [0.0] if n_classes == 2 else [-0.5, 0.5])
    new = np.random.default_rng(1).normal(size=(6, 3))
    all_of_them = ss.leave_one_out(X, y, loss=loss, alpha=0.1, sample_weight=weights)
    others = ss.leave_one_out(X[kept], y[kept], loss=loss, alpha=0.1)
    one, two = (ss.jackknife_plus(loo, new, 0.8, method) for loo in (all_of_them, others))
    if n_classes:
        assert (one.contains == two.contains).all()
    else:
        assert np.allclose([one.lower, one.upper], [two.lower, two.upper], atol=1e-9)
