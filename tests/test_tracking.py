"""SafeTracker: scikit-learn's conventions, and what it promises of an update."""

from __future__ import annotations

import contextlib
import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss
from safesift.estimators import tracker as trackers
from safesift.workflows.tracking import settle as settling


@pytest.mark.slow
@parametrize_with_checks([ss.SafeTracker(ss.SafeClassifier()), ss.SafeTracker(ss.SafeRegressor())])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_classification(1200, 6, class_sep=1.0, flip_y=0.1, random_state=0)
    return scale(X), y


@pytest.fixture(scope="module")
def numbers():
    X, y = make_regression(1200, 6, noise=20.0, random_state=0)
    return X, y / y.std()


def slide(tracker, X, y, step=20, n_steps=10, window=800):
    """A moving window, and a fresh fit on the last one."""
    tracker.fit(X[:window], y[:window])
    for start in range(window, window + n_steps * step, step):
        rows = slice(start, start + step)
        tracker.update(add=(X[rows], y[rows]), remove=np.arange(step))
    last = slice(n_steps * step, n_steps * step + window)
    return tracker, type(tracker.estimator)(**tracker.estimator.get_params()).fit(X[last], y[last])


def assert_same(tracker, fresh):
    """Two points of gap Δ are within 2√(2Δ/alpha) of each other; intercepts are near, too."""
    gaps = np.max(tracker.dual_gap_) + np.max(fresh.dual_gap_)
    far = 2.0 * np.sqrt(2.0 * gaps / fresh.alpha) + 1e-7
    assert np.abs(tracker.coef_ - fresh.coef_).max() <= far
    assert np.abs(tracker.intercept_ - fresh.intercept_).max() <= 10 * far


# --- the same model as a fresh fit ----------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, np.float32, sparse.csr_array, sparse.csr_matrix])
def test_a_moving_window(two_classes, storage, intercept):
    X, y = two_classes
    model = ss.SafeClassifier(alpha=1e-2, fit_intercept=intercept)
    tracker, fresh = slide(ss.SafeTracker(model), storage(X), y)
    assert_same(tracker, fresh)
    updates = tracker.history_[1:]
    assert all(update["local"] and update["why"] == "" for update in updates)
    assert max(update["relative_gap"] for update in updates) <= 1e-6
    assert np.mean([update["passes"] for update in updates]) < 0.3
    np.testing.assert_array_equal(tracker.predict(X[200:1000]), fresh.predict(X[200:1000]))
    assert tracker.score(X[1000:], y[1000:]) == fresh.score(X[1000:], y[1000:])
    # nearly the same is proved of the samples
    assert np.mean(tracker.kept_ == fresh.kept_) > 0.95 and tracker.undecided_.mean() < 0.05


@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "squared", "huber"])
def test_numbers(numbers, loss):
    tracker, fresh = slide(ss.SafeTracker(ss.SafeRegressor(loss, alpha=1e-2)), *numbers)
    assert_same(tracker, fresh)
    assert isinstance(tracker.intercept_, float) and tracker.coef_.shape == (6,)
    assert all(update["local"] for update in tracker.history_[1:])
    assert not hasattr(tracker, "decision_function") and not hasattr(tracker, "classes_")


def test_more_classes_with_weights_of_classes():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = scale(X)[order], np.array(["setosa", "versicolor", "virginica"])[y[order]]
    model = ss.SafeClassifier(alpha=1e-2, class_weight={"setosa": 2.0})
    tracker, fresh = slide(ss.SafeTracker(model), X, y, step=5, n_steps=6, window=100)
    assert tracker.coef_.shape == (3, 4) and tracker.dual_gap_.shape == (3,)
    assert_same(tracker, fresh)
    assert tracker.decision_function(X).shape == (150, 3)
    assert any(update["local"] for update in tracker.history_[1:])


def test_frames_keep_their_names(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abcdef"))
    tracker, fresh = slide(ss.SafeTracker(ss.SafeClassifier()), frame, y, n_steps=2)
    assert list(tracker.feature_names_in_) == list("abcdef")
    assert_same(tracker, fresh)
    with pytest.raises(ValueError, match="feature names"):
        tracker.update(add=(frame[list("fedcba")], y))


def test_samples_are_numbered_as_by_delete_and_append(two_classes):
    X, y = two_classes
    weights = np.arange(1.0, 101.0)
    tracker = ss.SafeTracker(ss.SafeClassifier()).fit(X[:100], y[:100], weights)
    relabelled = y[:100].copy()
    relabelled[[7, 3]] = 1 - relabelled[[7, 3]]
    mask = np.arange(100) % 10 == 0
    tracker.update(
        add=(X[100:103], y[100:103], [5.0, 0.0, 2.0]),
        remove=mask,
        relabel=([7, 3], relabelled[[7, 3]]),
    )
    np.testing.assert_array_equal(tracker.X_, np.r_[X[:100][~mask], X[100:103]])
    np.testing.assert_array_equal(tracker.y_, np.r_[relabelled[~mask], y[100:103]])
    np.testing.assert_array_equal(tracker.sample_weight_, np.r_[weights[~mask], 5.0, 0.0, 2.0])
    tracker.update(remove=-1).update(remove=slice(0, 2))
    assert len(tracker.y_) == 90 and tracker.history_[-1]["n_removed"] == 2
    fresh = ss.SafeClassifier().fit(tracker.X_, tracker.y_, tracker.sample_weight_)
    assert_same(tracker, fresh)


def test_the_data_of_the_user_stay_his(two_classes):
    X, y = two_classes[0][:100].copy(), two_classes[1][:100].copy()
    tracker = ss.SafeTracker(ss.SafeClassifier()).fit(X, y)
    X[:], y[:] = 0.0, 0
    np.testing.assert_array_equal(tracker.X_, two_classes[0][:100])
    tracker.update(remove=0)
    assert len(np.unique(tracker.y_)) == 2


def test_wider_numbers_and_longer_labels(two_classes):
    X, y = two_classes
    labels = np.array(["no", "yes"])[y]
    tracker = ss.SafeTracker(ss.SafeClassifier()).fit(X[:50].astype(np.float32), labels[:50])
    tracker.update(add=(X[50:60], np.array(["perhaps"] * 10)))
    assert tracker.X_.dtype == np.float64 and list(tracker.classes_) == ["no", "perhaps", "yes"]
    assert tracker.history_[-1]["why"] == "the classes changed"


@pytest.mark.parametrize(
    "storages", [(sparse.csr_array, np.asarray), (np.asarray, sparse.csr_array)]
)
def test_other_storage_is_taken_over(two_classes, storages):
    first, then = storages
    X, y = two_classes
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    tracker = ss.SafeTracker(ss.SafeClassifier()).fit(first(X[:100]), y[:100])
    for start in range(100, 400, 60):  # often enough for holes to be packed
        rows = slice(start, start + 60)
        tracker.update(add=(then(X[rows]), y[rows]), remove=np.arange(60))
    assert sparse.issparse(tracker.X_) == (first is sparse.csr_array)
    held = tracker.X_.toarray() if sparse.issparse(tracker.X_) else tracker.X_
    np.testing.assert_array_equal(held, X[300:400])
    assert_same(tracker, ss.SafeClassifier().fit(X[300:400], y[300:400]))


def test_copies_and_pickles_go_their_own_way(two_classes):
    X, y = two_classes
    tracker = ss.SafeTracker(ss.SafeClassifier()).fit(X[:100], y[:100])
    for other in (copy.deepcopy(tracker), pickle.loads(pickle.dumps(tracker))):
        other.update(add=(X[100:140], y[100:140]), remove=np.arange(40))
        other.update(add=(X[140:180], y[140:180]), remove=np.arange(40))
    np.testing.assert_array_equal(tracker.X_, X[:100])
    tracker.update(remove=0)
    assert_same(tracker, ss.SafeClassifier().fit(X[1:100], y[1:100]))


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda tracker: pickle.loads(pickle.dumps(tracker))]
)
def test_a_copy_shares_no_slots(two_classes, copied, storage):
    """The second edit writes to the slots that the first one set free."""
    X, y = storage(two_classes[0]), two_classes[1]
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X[:100], y[:100])
    before, after = copied(tracker), tracker
    after.update(add=(X[100:140], y[100:140]), remove=np.arange(40))
    after.update(add=(X[140:180], y[140:180]), remove=np.arange(40))
    assert_tracks(before, X[:100], y[:100])
    before.update(add=(X[180:260], y[180:260]))
    before.update(add=(X[260:300], y[260:300]), remove=np.arange(20))
    assert_tracks(after, X[80:180], y[80:180])
    rows = np.r_[20:100, 180:300]
    assert_tracks(before, X[rows], y[rows])


def assert_tracks(tracker, X, y):
    """These are the samples of a tracker, and its model is theirs."""
    assert abs(tracker.X_ - X).max() == 0
    np.testing.assert_array_equal(tracker.y_, y)
    assert_same(tracker, type(tracker.estimator)(**tracker.estimator.get_params()).fit(X, y))


def test_copying_costs_nothing_until_something_is_written(two_classes):
    X, y = two_classes
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X[:100], y[:100])
    slots = tracker._data.design.array
    other = copy.copy(tracker).update(remove=0)
    assert other._data.design.array is slots and tracker._data.design.array is slots
    other.update(add=(X[100:110], y[100:110]))
    own = other._data.design.array
    assert own is not slots
    # and from then on its slots are its own
    assert other.update(add=(X[110:115], y[110:115]))._data.design.array is own


def test_threads_take_turns(two_classes, monkeypatch):
    """Without turns, updates that were read at the same time undo each other."""
    X, y = two_classes
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X[:200], y[:200])
    right, together = trackers.read_edit, threading.Barrier(4)

    def slowly(*edit):
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(0.05)  # all that can be here at once, are
        return right(*edit)

    monkeypatch.setattr(trackers, "read_edit", slowly)

    def add(start):
        for first in range(start, start + 40, 10):
            tracker.update(add=(X[first : first + 10], y[first : first + 10]))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(200, 360, 40)))
    order = np.lexsort(tracker.X_.T)
    np.testing.assert_array_equal(tracker.X_[order], X[:360][np.lexsort(X[:360].T)])
    assert [record["n_added"] for record in tracker.history_] == [200] + [10] * 16
    assert_same(tracker, ss.SafeClassifier(alpha=1e-2).fit(tracker.X_, tracker.y_))


def test_a_tracker_that_threads_use_can_be_copied_and_cloned(two_classes):
    X, y = two_classes
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X[:100], y[:100])
    tracker.update(remove=0)
    for other in (
        copy.copy(tracker), copy.deepcopy(tracker), pickle.loads(pickle.dumps(tracker))
    ):  # fmt: skip
        assert other._turn is not tracker._turn
        other.update(remove=0)
        assert len(other.y_) == 98 and len(tracker.y_) == 99
    assert not [name for name in vars(clone(tracker)) if name.endswith("_")]


def test_every_update_makes_a_model_of_its_own(two_classes):
    """With nothing left of what was said about other samples."""
    X, y = two_classes
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X[:100], y[:100])
    before, coef = tracker.estimator_, tracker.coef_.copy()
    after = tracker.update(add=(X[100:140], y[100:140])).estimator_
    assert after is not before and after.get_params() == before.get_params()
    fitted = {name for name in vars(after) if name.endswith("_")}
    assert fitted == {"coef_", "intercept_", "dual_gap_", "classes_", "n_features_in_"}
    np.testing.assert_array_equal(before.coef_, coef)
    assert len(before.kept_) == 100 and len(tracker.kept_) == 140


# --- rounding -------------------------------------------------------------------------------------


def test_ten_thousand_rows_come_and_go():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_200, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0).astype(int)
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X[:200], y[:200])
    for i in range(200, 10_200, 10):
        tracker.update(add=(X[i : i + 10], y[i : i + 10]), remove=slice(0, 10))
    fresh = ss.SafeClassifier(alpha=1e-2, tol=1e-10).fit(X[-200:], y[-200:])
    np.testing.assert_allclose(tracker.coef_, fresh.coef_, atol=1e-6)
    history = tracker.history_[1:]
    assert max(update["residue"] for update in history) <= tracker.residue
    assert np.mean([update["passes"] for update in history]) < 1.0
    assert sum(update["why"] != "" for update in history) == 0


def test_what_large_rows_leave_behind_is_cleared_away(two_classes):
    X, y = two_classes
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X[:500], y[:500])
    tracker.update(add=(1e7 * X[500:510], y[500:510]))
    tracker.update(remove=np.arange(500, 510))
    last = tracker.history_[-1]
    assert (last["rebuilt"] or last["why"]) and last["residue"] <= tracker.residue
    assert not last["local"]
    assert_same(tracker, ss.SafeClassifier(alpha=1e-2).fit(X[:500], y[:500]))


def test_what_they_leave_behind_is_cleared_away_even_if_it_was_there_from_the_start(two_classes):
    X, y = two_classes
    X = X[:510] * np.where(np.arange(510) < 500, 1.0, 1e6)[:, None]
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X, y[:510])
    tracker.update(remove=slice(500, 510))
    last = tracker.history_[-1]
    assert (last["rebuilt"] or last["why"]) and last["residue"] <= tracker.residue
    assert_same(tracker, ss.SafeClassifier(alpha=1e-2).fit(X[:500], y[:500]))


# --- what cannot be followed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (ss.SafeClassifier("logistic"), "loss='logistic'"),
        (ss.SafeClassifier("hinge", fit_intercept=False, alpha=1.0), "loss='hinge'"),
        (ss.SafeClassifier(penalty="l1", alpha=1e-2), "penalty='l1'"),
        (ss.SafeClassifier(class_weight="balanced"), "class_weight='balanced'"),
    ],
    ids=str,
)
def test_everything_else_is_fitted_again(two_classes, model, words):
    tracker, fresh = slide(ss.SafeTracker(model), *two_classes, n_steps=2, window=300)
    assert words in tracker.history_[-1]["why"] and not tracker.history_[-1]["local"]
    assert tracker.history_[-1]["relative_gap"] <= 1e-6
    np.testing.assert_allclose(tracker.coef_, fresh.coef_, atol=2e-2)
    assert len(tracker.kept_) == 300


def test_steps_that_get_nowhere_end_in_a_refit(two_classes, monkeypatch):
    X, y = two_classes
    tracker = ss.SafeTracker(ss.SafeClassifier()).fit(X[:300], y[:300])
    monkeypatch.setattr(settling, "_MOST_STEPS", 0)
    tracker.update(add=(X[300:400], y[300:400]))
    assert "did not reach the tolerance" in tracker.history_[-1]["why"]
    assert_same(tracker, ss.SafeClassifier().fit(X[:400], y[:400]))


@pytest.mark.parametrize("far", [1e3, 1e6, 1e7])
def test_targets_far_from_zero(numbers, far):
    """Sums of their squares lose the value of P, but not its gradient, nor the gap."""
    X, y = numbers
    model = ss.SafeRegressor("squared_epsilon_insensitive")
    tracker, fresh = slide(ss.SafeTracker(model), X, y + far, n_steps=3)
    assert 0 < tracker.history_[-1]["relative_gap"] <= 1e-6
    assert all(update["why"] == "" for update in tracker.history_[1:])
    np.testing.assert_allclose(tracker.coef_, fresh.coef_, atol=1e-7)


def test_classes_that_come_and_go(two_classes):
    X, y = two_classes[0][:90], np.arange(90) % 3
    tracker = ss.SafeTracker(ss.SafeClassifier()).fit(X[y < 2], y[y < 2])
    tracker.update(relabel=(0, [2]))
    assert tracker.classes_.tolist() == [0, 1, 2] and tracker.coef_.shape == (3, 6)
    tracker.update(remove=0)
    assert tracker.classes_.tolist() == [0, 1] and tracker.coef_.shape == (1, 6)
    assert tracker.history_[-1]["why"] == "the classes changed"
    before = tracker.X_
    with pytest.raises(ValueError, match="one class only would be left"):
        tracker.update(remove=tracker.y_ == 0)
    np.testing.assert_array_equal(tracker.X_, before)


# --- stopping and refusing ------------------------------------------------------------------------


def interrupted(stop):
    def stopped(*arguments):
        raise stop

    return stopped


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize(
    ("module", "name", "label"), [(settling, "settle", None), (trackers, "_fitted", 7)]
)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_an_interrupted_update_changes_nothing(
    two_classes, monkeypatch, stop, module, name, label, storage
):
    """In the middle of its steps, or of the refit that a new class asks for."""
    X, y = storage(two_classes[0]), two_classes[1]
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2)).fit(X[:300], y[:300])
    tracker.update(add=(X[300:310], y[300:310]), remove=np.arange(10))
    known = tracker.coef_.copy(), tracker.y_.copy(), len(tracker.history_)
    labels = y[310:350] if label is None else np.full(40, label)
    with monkeypatch.context() as patched:
        patched.setattr(module, name, interrupted(stop))
        with pytest.raises(stop):
            tracker.update(add=(X[310:350], labels), remove=np.arange(5), relabel=([6], [0]))
    np.testing.assert_array_equal(tracker.coef_, known[0])
    np.testing.assert_array_equal(tracker.y_, known[1])
    assert len(tracker.history_) == known[2]
    # and the next one is as if nothing had happened
    tracker.update(add=(X[350:360], y[350:360]), remove=np.arange(10))
    rows = np.r_[20:310, 350:360]
    assert_same(tracker, ss.SafeClassifier(alpha=1e-2).fit(X[rows], y[rows]))


def test_an_interrupted_fit_leaves_the_old_model(two_classes, monkeypatch):
    X, y = two_classes
    tracker = ss.SafeTracker(ss.SafeClassifier()).fit(X[:100], y[:100])
    monkeypatch.setattr(trackers, "_fitted", interrupted(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tracker.fit(X[:, :3], y)
    assert tracker.n_features_in_ == 6 and len(tracker.y_) == 100
    tracker.update(remove=0)
    fresh = ss.SafeTracker(ss.SafeClassifier())
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert not [name for name in vars(fresh) if name.endswith("_")]


def test_convergence_warning(two_classes):
    X, y = two_classes
    model = ss.SafeClassifier(max_iter=1, alpha=1e-6, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="did not converge") as caught:
        tracker = ss.SafeTracker(model).fit(X[:300], y[:300])
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning) as caught:
        tracker.update(add=(X[300:600], 1 - y[300:600]))
    assert caught[0].filename == __file__


def test_verbose(two_classes, capsys):
    X, y = two_classes
    ss.SafeTracker(ss.SafeClassifier(verbose=1)).fit(X[:300], y[:300]).update(remove=0)
    assert capsys.readouterr().out.count("rows_read") == 2


@pytest.mark.parametrize(
    ("edit", "error", "words"),
    [
        ({"remove": 100}, IndexError, "remove: index 100 is out of range, there are 100 samples"),
        ({"remove": [-101]}, IndexError, "index -101 is out of range"),
        ({"remove": [0.5]}, TypeError, "remove must hold indices"),
        ({"remove": np.ones(7, dtype=bool)}, ValueError, "mask has shape"),
        ({"remove": np.arange(100)}, ValueError, "no sample would be left"),
        ({"relabel": 3}, ValueError, "relabel must be a pair"),
        ({"relabel": ([1, 2], [0])}, ValueError, "relabel has 2 indices, but 1 targets"),
        ({"relabel": ([1, 1], [0, 1])}, ValueError, "names a sample twice"),
        ({"relabel": ([1], [0]), "remove": [1]}, ValueError, "that remove takes away"),
        ({"relabel": ([1], ["a"])}, ValueError, "labels so far are int64"),
        ({"relabel": ([1], [np.nan])}, ValueError, "missing labels"),
        ({"add": np.ones((2, 6))}, ValueError, r"add must be \(X, y\)"),
        ({"add": (np.ones((2, 5)), [0, 1])}, ValueError, "X has 5 features"),
        ({"add": (np.full((2, 6), np.nan), [0, 1])}, ValueError, "NaN"),
        ({"add": (np.ones((2, 6)), [0])}, ValueError, "y has 1 entries but X has 2 rows"),
        ({"add": (np.ones((1, 6)), [0.5])}, ValueError, "Unknown label type"),
        ({"add": (np.ones((1, 6)), [0], [-1.0])}, ValueError, "sample_weight is negative"),
    ],
    ids=str,
)
def test_bad_edits(two_classes, edit, error, words):
    X, y = two_classes
    tracker = ss.SafeTracker(ss.SafeClassifier()).fit(X[:100], y[:100])
    with pytest.raises(error, match=words):
        tracker.update(**edit)
    assert len(tracker.history_) == 1
    tracker.update(remove=0)
    assert_same(tracker, ss.SafeClassifier().fit(X[1:100], y[1:100]))


def test_bad_targets(numbers):
    X, y = numbers
    tracker = ss.SafeTracker(ss.SafeRegressor()).fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="add: y contains NaN"):
        tracker.update(add=(X[:1], [np.nan]))
    with pytest.raises(ValueError, match="relabel: y must hold numbers"):
        tracker.update(relabel=(0, ["a"]))


def test_no_weight_left(numbers):
    X, y = numbers
    tracker = ss.SafeTracker(ss.SafeRegressor()).fit(X[:3], y[:3], [1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="positive weight would be left"):
        tracker.update(remove=0)


def test_bad_parameters(two_classes):
    with pytest.raises(TypeError, match="got SafeClassifierCV"):
        ss.SafeTracker(ss.SafeClassifierCV()).fit(*two_classes)
    with pytest.raises(ValueError, match="residue must be positive"):
        ss.SafeTracker(ss.SafeClassifier(), residue=0.0).fit(*two_classes)
    with pytest.raises(ValueError, match="one epsilon for all samples"):
        ss.SafeTracker(ss.SafeRegressor(epsilon=np.ones(1200))).fit(*two_classes)
    with pytest.raises(NotFittedError):
        ss.SafeTracker(ss.SafeClassifier()).update(remove=0)
    with pytest.raises(AttributeError, match="call fit first"):
        _ = ss.SafeTracker(ss.SafeClassifier()).coef_


# --- real data ------------------------------------------------------------------------------------


def test_electricity(data_folder):
    path = data_folder / "electricity.npz"
    if not path.exists():
        pytest.skip("electricity.npz is missing: get the set `electricity` from OpenML (id 151)")
    with np.load(path) as file:
        X, y = 2.0 * file["X"] - 1.0, file["y"]
    model = ss.SafeClassifier(alpha=1e-3, fit_intercept=False)
    tracker, fresh = slide(ss.SafeTracker(model), X, y, step=100, n_steps=30, window=10_000)
    assert_same(tracker, fresh)
    updates = tracker.history_[1:]
    assert max(update["relative_gap"] for update in updates) <= 1e-6
    assert np.mean([update["passes"] for update in updates]) < 0.2


@pytest.mark.parametrize("epsilon", [0.1, 1.0349022884990855])
def test_pieces_that_meet_at_a_rounded_end(epsilon):
    """ε + width need not be a float; the loss is made of pieces all the same, and followed."""
    X, y = make_regression(60, 3, noise=5.0, random_state=0)
    loss = ss.losses.SmoothedEpsilonInsensitive(epsilon=epsilon, width=1.0)
    tracker = ss.SafeTracker(ss.SafeRegressor(loss, alpha=1e-2)).fit(X[:50], y[:50] / 50)
    tracker.update(add=(X[50:52], y[50:52] / 50))
    assert tracker.history_[-1]["why"] == ""
    fresh = ss.SafeRegressor(loss, alpha=1e-2).fit(X[:52], y[:52] / 50)
    np.testing.assert_allclose(tracker.coef_, fresh.coef_, atol=1e-4)
