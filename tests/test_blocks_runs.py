"""Rows in blocks: what is held of them, runs that go on, cross-validation, mining."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.model_selection import KFold, StratifiedKFold

import safesift as ss
from safesift.design.block_sources import calls
from safesift.workflows.scale import budget
from safesift.workflows.scale.codes import CodeStore
from safesift.workflows.scale.engine import Task
from safesift.workflows.scale.folds import Folds
from safesift.workflows.scale.found import Held
from safesift.workflows.scale.remembering import Remembered
from safesift.workflows.scale.sparing import Known
from safesift.workflows.scale.survey import Survey
from tests.test_blocks import FEATURES, N, P, same_model, samples

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def in_passes(monkeypatch):
    """Not all rows fit, however few they are."""
    monkeypatch.setattr(budget, "_WHOLE_SHARE", 0.0)


# --- all rows at once -------------------------------------------------------------------------


def test_rows_that_fit_are_solved_as_in_memory(tmp_path):
    import pyarrow.csv

    X, y = load_wine(return_X_y=True)
    names = [f"x{j}" for j in range(X.shape[1])]
    columns = {name: X[:, j] for j, name in enumerate(names)}
    pyarrow.csv.write_csv(pa.table({**columns, "kind": y}), tmp_path / "wine.csv")
    known = ss.SafeClassifier(alpha=1e-3).fit(X, y)
    for rows in (
        ss.blocks.arrays(X, y),
        ss.blocks.csv(tmp_path / "wine.csv", target="kind"),
        ss.blocks.arrays(sparse.csr_array(X), y),
    ):
        found = ss.SafeClassifier(alpha=1e-3).fit(rows)
        assert max(history[-1]["passes"] for history in found.history_) == 2
        assert (found.dual_gap_ <= known.dual_gap_ * (1 + 1e-6) + 1e-9).all()
        np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-6, atol=1e-9)
        assert (np.asarray(found.kept_) == known.kept_).all()
        assert (np.asarray(found.undecided_) == known.undecided_).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_losses_with_kinks(whole, intercept, monkeypatch):
    """Rows near a kink are held, and their slopes are those of the dual of the reduced problem."""
    if not whole:
        monkeypatch.setattr(budget, "_WHOLE_SHARE", 0.0)
    X, y, weights = samples()
    arguments = {"alpha": 1e-2, "fit_intercept": intercept}
    found = ss.SafeClassifier("hinge", **arguments).fit(
        ss.blocks.arrays(X, y, weights, memory="3 MB")
    )
    known = ss.SafeClassifier("hinge", **arguments).fit(X, y, weights)
    assert found.dual_gap_ <= 1e-6 and found.history_[-1]["passes"] <= 8
    np.testing.assert_allclose(found.coef_, known.coef_, atol=0.03)
    kept, undecided = np.asarray(found.kept_), np.asarray(found.undecided_)
    assert (kept == known.kept_)[~undecided & ~known.undecided_].all()
    if not intercept:
        assert undecided.mean() < 0.2
    target = X @ [1.0, -1.0, 0.0, 0.5] + 3.0 + 0.3 * np.random.default_rng(2).normal(size=N)
    found = ss.SafeRegressor("epsilon_insensitive", **arguments).fit(
        ss.blocks.arrays(X, target, weights, memory="1 MB")
    )
    known = ss.SafeRegressor("epsilon_insensitive", **arguments).fit(X, target, weights)
    assert found.dual_gap_ <= 1e-5
    np.testing.assert_allclose(found.coef_, known.coef_, atol=0.03)


@pytest.mark.parametrize("seed", range(4))
def test_columns_as_they_come_converge_in_passes(seed, in_passes):
    """A pass in which little was gained leads to another action, not to the same again."""
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(seed)
    if seed:
        X = X * 10.0 ** rng.integers(-1, 2, X.shape[1]) + rng.normal(0, 10, X.shape[1])
    found = ss.SafeClassifier(alpha=1e-3).fit(ss.blocks.arrays(X, y, memory="2 MB"))
    known = ss.SafeClassifier(alpha=1e-3).fit(X, y)
    assert max(history[-1]["passes"] for history in found.history_) <= 15
    for row, theirs, gap in zip(found.coef_, known.coef_, found.dual_gap_, strict=True):
        assert gap < 1e-6
        assert np.linalg.norm(row - theirs) <= np.sqrt(2 * gap / 1e-3) + np.sqrt(
            2 * known.dual_gap_.max() / 1e-3
        )


# --- blocks that are kept ---------------------------------------------------------------------


def counted(n_blocks=6):
    """Blocks that count how often they are made, and are made in the same memory every time."""
    X, y, weights = samples()
    parts = np.array_split(np.arange(N), n_blocks)
    buffer, reads = np.empty((len(parts[0]), P)), []

    def make(k):
        reads.append(k)
        buffer[:] = X[parts[k]]
        return buffer, y[parts[k]], weights[parts[k]]

    return make, reads


def test_blocks_that_fit_are_made_once(in_passes):
    make, reads = counted()
    known = ss.SafeClassifier(alpha=1e-3, n_jobs=1).fit(ss.blocks.calls(make, 6, memory=20_000))
    n_passes = known.history_[-1]["passes"]
    assert len(reads) == 6 * n_passes
    reads.clear()
    found = ss.SafeClassifier(alpha=1e-3, n_jobs=1).fit(ss.blocks.calls(make, 6, memory="10 MB"))
    assert sorted(reads) == list(range(6))
    same_model(found, ss.SafeClassifier(alpha=1e-3).fit(*samples()))
    reads.clear()
    some = ss.SafeClassifier(alpha=1e-3, n_jobs=1).fit(ss.blocks.calls(make, 6, memory=200_000))
    assert 6 < len(reads) < 6 * some.history_[-1]["passes"]
    np.testing.assert_allclose(some.coef_, found.coef_, atol=2e-3)


def test_what_is_kept_stays_within_its_budget():
    make, _ = counted()
    source = calls(make, 6)
    size = next(source.blocks(0)).n_bytes
    kept = Remembered(source, 2.5 * size)
    for _ in range(2):
        for part in range(6):
            first = next(kept.blocks(part)).X[0].copy()
            list(kept.blocks(part))
            assert (first == samples()[0][500 * part]).all()
    assert kept._n_bytes == 2 * size
    kept.shrink(1.5 * size)
    assert list(kept._kept) == [0]
    kept.forget(0)
    assert kept._n_bytes == 0
    views = ss.blocks.arrays(*samples())
    kept = Remembered(views, 10**9)
    list(kept.blocks(0))
    assert not kept._kept


# --- runs that go on --------------------------------------------------------------------------

RUN = """
    import json, os, signal, sys
    import numpy as np
    import safesift as ss

    directory, kill_at = sys.argv[1], int(sys.argv[2])
    n_calls = [0]

    def make(k):
        n_calls[0] += 1
        if n_calls[0] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        rng = np.random.default_rng(k)
        X = rng.normal(size=(2000, 40))
        return X, X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=2000) > 0

    rows = ss.blocks.calls(make, 10, memory="4 MB", checkpoint=directory or None)
    model = ss.SafeClassifier(alpha=1e-3, n_jobs=1).fit(rows)
    print(json.dumps({"coef": model.coef_.tobytes().hex(), "calls": n_calls[0],
                      "kept": np.asarray(model.kept_).tobytes().hex(), "gap": model.dual_gap_,
                      "passes": model.history_[-1]["passes"]}))
"""


def run(directory, kill_at=-1):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(RUN), str(directory), str(kill_at)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if kill_at >= 0:
        assert done.returncode == -signal.SIGKILL
        return None
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_run_that_is_killed_goes_on_after_its_last_pass(tmp_path):
    known = run("")
    assert known["passes"] >= 3
    in_a_pass = (known["calls"] - 10) // (known["passes"] - 1)
    directory = tmp_path / "run"
    run(directory, kill_at=5)  # in the first pass: nothing is known yet
    assert [path.name for path in directory.iterdir()] == ["run.json"]
    run(directory, kill_at=10 + in_a_pass // 2)  # in the second
    assert sorted(path.name for path in directory.iterdir()) == ["pass-000001", "run.json"]
    # the first part is looked at, and the second pass is made anew without what was kept
    run(directory, kill_at=1 + 10 + in_a_pass // 2)
    assert sorted(path.name for path in directory.iterdir()) == ["pass-000002", "run.json"]
    found = run(directory)
    for name in ("coef", "kept", "gap", "passes"):
        assert found[name] == known[name]
    assert found["calls"] < known["calls"]
    # no pass is made, and all parts are looked at
    again = run(directory)
    assert again["calls"] == 10 and again["coef"] == known["coef"]


def test_a_checkpoint_of_another_run_is_refused(tmp_path, in_passes):
    X, y, _ = samples()

    def fit(X=X, alpha=1e-3, cut=N, **more):
        rows = ss.blocks.arrays(X[:cut], y[:cut], memory="1 MB", checkpoint=tmp_path / "run")
        return ss.SafeClassifier(alpha=alpha, **more).fit(rows)

    model = fit()
    assert (fit().coef_ == model.coef_).all()
    with pytest.raises(ValueError, match=r"run' is of another run, with alphas \[0.001\] where"):
        fit(alpha=1e-2)
    with pytest.raises(ValueError, match="of another run, with class_weight None where"):
        fit(class_weight="balanced")
    with pytest.raises(ValueError, match="of another run, with last part"):
        fit(cut=N - 10)
    with pytest.raises(ValueError, match=r"is of other data, rows 0 to .* is not what it was"):
        fit(X=X + 1.0)
    late = X.copy()
    late[-1] += 1.0
    with pytest.raises(ValueError, match=rf"is of other data, rows \d+ to {N - 1} is not what it"):
        fit(X=late)
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="holds something else"):
        ss.SafeClassifier().fit(ss.blocks.arrays(X, y, checkpoint=other))
    # killed between writing what it is and giving that its name
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / ".run.json.part").write_text("{")
    same_model(ss.SafeClassifier().fit(ss.blocks.arrays(X, y, checkpoint=begun)),
               ss.SafeClassifier().fit(X, y))  # fmt: skip
    assert (begun / "run.json").exists() and not (begun / ".run.json.part").exists()
    with pytest.raises(TypeError, match="checkpoint must be a directory, got int"):
        ss.blocks.arrays(X, y, checkpoint=3)


@pytest.mark.parametrize("name", ["codes", "state.pickle"])
def test_a_checkpoint_that_lost_its_end_is_refused(name, tmp_path, in_passes):
    X, y, _ = samples()
    rows = ss.blocks.arrays(X, y, memory="1 MB", checkpoint=tmp_path / "run")
    ss.SafeClassifier(alpha=1e-3).fit(rows)
    (path,) = (tmp_path / "run").glob(f"pass-*/{name}")
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(ValueError, match=rf"run' is damaged, pass-\d+/{name} cannot be read"):
        ss.SafeClassifier(alpha=1e-3).fit(rows)


@pytest.mark.parametrize("disk", [False, True])
def test_pieces_of_rows_are_written_and_read_back(disk, tmp_path):
    rng = np.random.default_rng(0)
    lengths = {0: 70, 1: 1000}
    store, other = (CodeStore(lengths, 2, 4, 0 if disk else 10**6) for _ in range(2))
    for part, n in lengths.items():
        for k in range(2):
            store.put(part, k, rng.integers(0, 4, n).astype(np.uint8))
    with open(tmp_path / "codes", "wb") as file:
        store.dump(file)
    with open(tmp_path / "codes", "rb") as file:
        other.load(file)
    for part in lengths:
        for k in range(2):
            assert (store.get(part, k) == other.get(part, k)).all()


# --- cross-validation -------------------------------------------------------------------------


@pytest.mark.parametrize("n_folds", [2, 3, 5])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_folds_are_those_of_scikit_learn(n_folds, n_classes):
    rng = np.random.default_rng(n_folds)
    chances = [[1], [0.7, 0.3], [0.2, 0.7, 0.1]][n_classes - 1]
    y = rng.choice(["b", "a", "c"][:n_classes], 101, p=chances)
    X, parts = rng.normal(size=(101, 2)), np.split(np.arange(101), [0, 13, 14, 60])
    labelled = n_classes > 1
    targets = y if labelled else X[:, 0]
    source = calls(lambda k: (X[parts[k]], targets[parts[k]]), len(parts))
    survey = Survey(source, "classification" if labelled else "regression")
    found = survey(Task(0))
    for part in range(1, len(parts)):
        found = survey.plus(found, survey(Task(part)))
    folds = Folds.cut(n_folds, found.counts)
    blocks = [block for part in range(len(parts)) for block in source.blocks(part)]
    mine = np.concatenate([folds.of(block) for block in blocks])
    cv = (StratifiedKFold if labelled else KFold)(n_folds)
    for fold, (_, test) in enumerate(cv.split(X, targets)):
        assert (np.flatnonzero(mine == fold) == test).all()
    with pytest.raises(ValueError, match="cv=200 is greater than the number of rows"):
        Folds.cut(200, found.counts)


@pytest.mark.filterwarnings("ignore:.* found its best score at")
@pytest.mark.parametrize("whole", [False, True])
def test_cross_validation_is_the_same_as_in_memory(whole, monkeypatch):
    if not whole:
        monkeypatch.setattr(budget, "_WHOLE_SHARE", 0.0)
    X, y, weights = samples()
    weights = weights + 0.5  # none is 0: folds are those of scikit-learn
    y3 = np.digitize(X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=N), [-0.5, 0.5])
    alphas = [1e-3, 1e-1, 1e-2]
    for labels, class_weight in ((y, None), (y3, "balanced")):
        arguments = {"alphas": alphas, "cv": 4, "class_weight": class_weight, "tol": 1e-8}
        found = ss.SafeClassifierCV(**arguments)
        found.fit(ss.blocks.arrays(X, labels, weights, memory="50 MB" if whole else "2 MB"))
        known = ss.SafeClassifierCV(**arguments).fit(X, labels, weights)
        np.testing.assert_allclose(found.scores_, known.scores_, atol=2e-3)
        np.testing.assert_allclose(found.mean_score_path_, known.mean_score_path_, atol=1e-3)
        assert found.alphas_.tolist() == alphas and found.alpha_ == known.alpha_
        np.testing.assert_allclose(found.coef_, known.coef_, atol=2e-3)
        assert (np.asarray(found.kept_) == known.kept_).mean() > 0.98
    target = X @ [1.0, -1.0, 0.0, 0.5] + 3.0 + 0.3 * np.random.default_rng(2).normal(size=N)
    for penalty in ("l2", "l1"):
        arguments = {"alphas": [1.0, 1e-1, 1e-2], "cv": 3, "penalty": penalty, "tol": 1e-8}
        found = ss.SafeRegressorCV(**arguments).fit(ss.blocks.arrays(X, target, weights))
        known = ss.SafeRegressorCV(**arguments).fit(X, target, weights)
        np.testing.assert_allclose(found.scores_, known.scores_, atol=1e-4)
        assert found.alpha_ == known.alpha_


def test_an_end_of_the_grid_that_is_the_best_is_told(in_passes):
    X, y, _ = samples()
    rows = ss.blocks.arrays(X, y, memory="2 MB")
    with pytest.warns(UserWarning, match="best score at the smallest of 2 alphas, 1: add smaller"):
        ss.SafeClassifierCV([10.0, 1.0], cv=3).fit(rows)


@pytest.mark.filterwarnings("ignore:.* found its best score at")
def test_alphas_that_are_not_given_come_from_a_sample(in_passes):
    X, y, _ = samples()
    model = ss.SafeClassifierCV(6, cv=3).fit(ss.blocks.arrays(X, y, memory="2 MB"))
    assert model.alphas_.shape == (6,) and model.scores_.shape == (3, 6)
    assert model.alphas_[-1] / model.alphas_[0] == pytest.approx(1e-4)
    assert model.score(X, y) > 0.85
    names = {f"x{j}": X[:, j] for j in range(P)}
    frame = pytest.importorskip("pandas").DataFrame(names)
    named = ss.SafeClassifierCV(3, cv=3).fit(ss.blocks.arrays(frame, y))
    assert list(named.feature_names_in_) == FEATURES


# --- parts that are not read again ------------------------------------------------------------


def test_parts_whose_rows_cannot_have_left_their_pieces_are_not_read(in_passes, monkeypatch):
    """Rows that are sorted by how sure they are: most parts have none near its kink."""
    monkeypatch.setattr(budget, "cache", lambda memory: 0.0)
    monkeypatch.setattr(budget.Size, "cache_beside", lambda self, n_problems: 0.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=len(X)) > 0.2, 1, -1)
    order = np.argsort(y * (X[:, 0] - X[:, 1]), kind="stable")
    X, y, reads = X[order], y[order], []

    def make(k):
        reads.append(k)
        return X[500 * k : 500 * (k + 1)], y[500 * k : 500 * (k + 1)]

    rows = ss.blocks.calls(make, 40, memory="300 kB")
    found = ss.SafeClassifier(alpha=1e-4, n_jobs=1).fit(rows)
    passes = found.history_[-1]["passes"]
    times = np.bincount(reads, minlength=40)
    assert passes >= 4 and len(reads) < 40 * passes - 20, (passes, len(reads))
    # the survey, the first look, and the first step, which is a long one, are for all of them
    assert times.min() >= 2 and times.max() == passes
    same_model(found, ss.SafeClassifier(alpha=1e-4).fit(X, y))


def test_what_was_held_is_let_go_before_parts_are_read_again():
    places, ones = np.tile(np.arange(5), 2), np.ones(10)
    held = Held(np.repeat([0, 1], 5), places, np.ones((10, P)), ones, ones, np.ones((10, 1), bool))
    known, before = Known([0]), weakref.ref(held.X)
    known.held = held
    del held
    assert known.held_elsewhere([1]).parts.tolist() == [0] * 5
    assert before() is None


# --- mining -----------------------------------------------------------------------------------


def test_a_pool_of_blocks():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(2, 1, (50, P)), rng.normal(-1, 1, (50, P))])
    y = np.repeat(["rare", "common"], 50)
    model = ss.SafeClassifier(alpha=1e-3).fit(X, y)
    pool = rng.normal(-1, 1, (5000, P))
    labels = np.repeat("common", 5000)
    rows = ss.blocks.calls(lambda k: (pool[1000 * k : 1000 * (k + 1)], labels[:1000]), 5)
    found = ss.mine_hard(rows, model, X, y)
    known = ss.mine_hard(pool, model, X, y, label="common")
    assert found.proved and (found.indices == known.indices).all()
    np.testing.assert_array_equal(found.X_kept, pool[found.indices])
    with pytest.raises(TypeError, match="X_pool comes with targets"):
        ss.mine_hard(rows, model, X, y, label="common")
    weighted = ss.blocks.arrays(pool, labels, np.full(5000, 2.0))
    with pytest.raises(ValueError, match="has weights of its own: pass pool_weight"):
        ss.mine_hard(weighted, model, X, y)


def test_nothing_is_left_of_a_run_that_fails(tmp_path, in_passes):
    """A directory of a run holds complete passes only, whatever ends it."""
    X, y, _ = samples()
    calls_made = [0]

    def make(k):
        calls_made[0] += 1
        if calls_made[0] == 9:
            raise KeyboardInterrupt
        return X[k::4], y[k::4]

    rows = ss.blocks.calls(make, 4, memory=50_000, checkpoint=tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        ss.SafeClassifier(n_jobs=1).fit(rows)
    left = sorted(os.listdir(tmp_path / "run"))
    assert left in (["pass-000002", "run.json"], ["pass-000001", "run.json"])
