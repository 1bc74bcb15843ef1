"""What was tried to make leaving samples out say something that is not so."""

from __future__ import annotations

import numpy as np
import pytest

import safesift as ss
from safesift.arithmetic.compiled import leave_out as loops

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
    X = 1e6 + rng.normal(size=(5, 1))
    y, weights = rng.normal(size=5), 10.0 ** np.array([-5.0, 3.0, 0.0, -2.0, 2.0])
    options = {"loss": "squared", "alpha": 1e-8, "sample_weight": weights}
    ss.leave_one_out(X, y, max_iter=10, **options)
    assert asked and len(set(asked)) == 1
