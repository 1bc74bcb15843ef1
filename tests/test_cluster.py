"""Rows in blocks on a cluster: the same bits as here, whatever becomes of the workers."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safesift as ss
from safesift.problem.risk import ChangedDataError
from safesift.workflows.scale import dask_engine, driver
from safesift.workflows.scale.codes import Packed
from safesift.workflows.scale.engine import Task, Threads, Tree
from tests.cluster import LENGTH, N_BLOCKS, P, Some, frame, make, whole_cluster
from tests.laws import scale_laws as laws
from tests.laws.problems import Recipe
from tests.laws.strategies import examples
from tests.laws.test_scale import cuts

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


def fitted(rows, **given) -> ss.SafeClassifier:
    return ss.SafeClassifier(alpha=1e-3, n_jobs=1, random_state=0).fit(rows, **given)


def bits(model) -> tuple:
    """All that a fit finds, to the last bit."""
    masks = (np.asarray(mask).tobytes() for mask in (model.kept_, model.undecided_))
    told = [{k: v for k, v in one.items() if k != "seconds"} for one in model.history_]
    return model.coef_.tobytes(), model.intercept_.tobytes(), model.dual_gap_, *masks, told


def here() -> tuple:
    with laws.small_samples(200, whole=False):
        return bits(fitted(ss.blocks.calls(make, N_BLOCKS)))


def on(client, rows, **given) -> tuple:
    with laws.small_samples(200, whole=False), ss.engine(client):
        return bits(fitted(rows, **given))


# --- the same bits ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_any_number_of_workers_finds_the_same_bits(n_workers):
    client = whole_cluster()
    assert on(Some(client, n_workers), ss.blocks.calls(make, N_BLOCKS)) == here()


@examples(0.15)
@given(case=cuts, n_workers=st.integers(1, 3))
def test_random_problems_have_the_same_bits(case, n_workers):
    law_same_bits_on_workers(case, Some(whole_cluster(), n_workers))


def law_same_bits_on_workers(case: laws.Cut, client) -> None:
    _, known = laws.solved(case)
    with ss.engine(client):
        _, found = laws.solved(case)
    for mine, theirs in zip(found.fits[0], known.fits[0], strict=True):
        assert mine.coef.tobytes() == theirs.coef.tobytes()
        assert (mine.intercept, mine.gap, mine.value) == (
            theirs.intercept, theirs.gap, theirs.value,
        )  # fmt: skip
        assert (np.asarray(mine.kept) == np.asarray(theirs.kept)).all()
        assert (np.asarray(mine.undecided) == np.asarray(theirs.undecided)).all()


def test_rows_that_are_not_aligned_in_memory_have_the_same_bits():
    """As arrays that came through a pipe may be: for NumPy they take another way through BLAS."""

    def moved(k):
        X, y, weights = make(k)
        buffer = np.empty(X.nbytes + 1, np.uint8)[1:].view(X.dtype).reshape(X.shape)
        buffer[...] = X
        return buffer, y, weights

    with laws.small_samples(200, whole=False):
        assert bits(fitted(ss.blocks.calls(moved, N_BLOCKS))) == here()


def test_a_tree_of_promises_is_the_tree_of_sums():
    """Which sums are added to which depends on how many there are, and on nothing else."""
    for n in range(1, 40):
        one, other = Tree(lambda a, b: f"({a}+{b})"), Tree(lambda a, b: (*a, *b))
        for k in range(n):
            one.add(str(k))
            other.add((k,))
        assert other.total() == tuple(range(n))
        assert one.total().count("+") == n - 1


# --- faults -----------------------------------------------------------------------------------


def deadly(folder: str, pass_: int, part: int):
    """Blocks; whoever reads this one in this pass is killed, the first time."""

    def make_block(k):
        if k == part:
            n_reads = len(list(Path(folder).glob("read-*")))
            (Path(folder) / f"read-{n_reads}").touch()
            if n_reads + 1 == pass_:
                os.kill(os.getpid(), signal.SIGKILL)
        return make(k)

    return make_block


@pytest.mark.parametrize(("pass_", "part"), [(1, 4), (2, N_BLOCKS - 1)])
def test_a_worker_that_is_killed_in_a_pass_changes_nothing(pass_, part, tmp_path):
    client = whole_cluster()
    before = set(client.run(os.getpid).values())
    rows = ss.blocks.calls(deadly(str(tmp_path), pass_, part), N_BLOCKS)
    assert on(client, rows) == here()
    assert before - set(client.run(os.getpid).values())


def test_a_stale_sum_after_a_retry_breaks_the_law(monkeypatch):
    """Parts of a pass under the keys of the one before: the scheduler has them, and takes them."""
    client, whole = Some(whole_cluster(), 3), dask_engine.Dask._key
    # a loss that curves everywhere takes several passes
    case = laws.Cut(Recipe("logistic", "l2", seed=3), (0.2, 0.5, 0.7))
    law_same_bits_on_workers(case, client)

    def stale(self, what, number):
        n_passes, self._n_passes = self._n_passes, min(self._n_passes, 2)
        key = whole(self, what, number)
        self._n_passes = n_passes
        return key if what == "part" else whole(self, what, number)

    monkeypatch.setattr(dask_engine.Dask, "_key", stale)
    monkeypatch.setattr(driver.Driver.run, "__defaults__", (6,))
    with pytest.raises(AssertionError):
        law_same_bits_on_workers(case, client)


def test_what_a_worker_refuses_is_said_here():
    client = whole_cluster()

    def with_nan(k):
        X, y, weights = make(k)
        X[7, 2] = np.nan if k == 5 else 0.0
        return X, y, weights

    with pytest.raises(ValueError, match=r"block 5: X contains NaN .*row 7"):
        on(client, ss.blocks.calls(with_nan, N_BLOCKS))

    def narrow(k):
        X, y, weights = make(k)
        return X[:, : P - (k == 2)], y, weights

    with pytest.raises(ValueError, match="block 3 has 4 columns, but block 2 has 3"):
        on(client, ss.blocks.calls(narrow, N_BLOCKS))


def test_a_partition_of_other_columns_is_named():
    ddf = dd.from_map(frame, range(N_BLOCKS), meta=frame(0).iloc[:0])
    rows = ss.blocks.dask(ddf, target="label")
    for wrong, words in (
        (frame(3).drop(columns="x1"), "there is no column 'x1', which the frame has"),
        (frame(3).astype({"x1": object}).assign(x1="two"), "could not convert string to float"),
    ):
        with pytest.raises(ValueError, match=f"partition 3: {words}"):
            list(rows.holding(3, (wrong, None, None)).blocks(3))


def test_a_client_that_is_closed_is_said_to_be():
    from distributed import Client

    client = Client(whole_cluster().scheduler.address, set_as_default=False)

    def slow(k):
        time.sleep(0.3)
        return make(k)

    threading.Timer(0.5, client.close).start()
    with pytest.raises(RuntimeError, match="the client was closed in the middle of a pass"):
        on(client, ss.blocks.calls(slow, N_BLOCKS))
    with pytest.raises(ValueError, match="client is closed: make another one"), ss.engine(client):
        pass


def test_nothing_is_left_of_what_was_refused():
    client = whole_cluster()

    def broken(k):
        if k == 4:
            raise OSError("the disk is gone")
        return make(k)

    def parts():
        keys = client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks)))
        return {key for key in keys if "safesift-part" in key}

    before = parts()
    with pytest.raises(OSError, match="the disk is gone"):
        on(client, ss.blocks.calls(broken, N_BLOCKS))
    gc.collect()
    for _ in range(50):
        if parts() <= before:
            break
        time.sleep(0.1)
    assert parts() <= before


def test_data_that_change_between_passes_are_noticed_by_workers(tmp_path):
    client = whole_cluster()

    def unsteady(k):
        X, y, weights = make(k)
        if k == 3:
            n_reads = len(list(tmp_path.glob("read-*")))
            (tmp_path / f"read-{n_reads}").touch()
            X[0, 0] += 1e-9 * (n_reads == 1)
        return X, y, weights

    with pytest.raises(ChangedDataError, match=r"block 3 changed .* 400 rows from row 0"):
        on(client, ss.blocks.calls(unsteady, N_BLOCKS))


# --- frames and arrays of dask ----------------------------------------------------------------


def pids_of_reads(folder: Path) -> list[int]:
    return [int(path.name.partition("-")[0]) for path in folder.iterdir()]


def test_partitions_of_a_frame_stay_where_they_are(tmp_path):
    client = whole_cluster()

    def read(k, name):
        (tmp_path / f"{os.getpid()}-{name}-{k}-{os.urandom(4).hex()}").touch()
        return frame(k)

    kept, lazy = (
        dd.from_map(read, range(N_BLOCKS), name=name, meta=frame(0).iloc[:0])
        for name in ("kept", "lazy")
    )
    pids = set(client.run(os.getpid).values())
    with client.as_current():
        kept = kept.persist()
        known = here()
        found = on(client, kept, target="label", sample_weight="w")
        assert found == known
        assert len(pids_of_reads(tmp_path)) == N_BLOCKS
        # inside nothing: the client of the process is that of the frame
        with laws.small_samples(200, whole=False):
            # and one that is not persisted is read anew in every pass
            model = fitted(lazy, target="label", sample_weight="w")
    # nor is any client that of the process, but that which has the frame
    with laws.small_samples(200, whole=False):
        assert bits(fitted(kept, target="label", sample_weight="w")) == known
    assert bits(model) == known and list(model.feature_names_in_) == [f"x{j}" for j in range(P)]
    reads = pids_of_reads(tmp_path)
    assert len(reads) == N_BLOCKS * (1 + model.history_[-1]["passes"])
    assert set(reads) <= pids and os.getpid() not in reads


def test_arrays_of_dask_with_and_without_a_cluster():
    parts = [make(k) for k in range(N_BLOCKS)]
    X, y, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    chunked = da.from_array(X, chunks=(LENGTH, P))
    targets, s = da.from_array(y, chunks=1000), da.from_array(weights, chunks=LENGTH)
    with laws.small_samples(200, whole=False):
        found = bits(fitted(chunked, y=targets, sample_weight=s))
        assert found == here() == bits(fitted(chunked, y=y, sample_weight=weights))
    client = whole_cluster()
    assert on(client, chunked, y=targets, sample_weight=s) == found
    with ss.engine(client):
        path = ss.safe_path(chunked, targets, sample_weight=s, alphas=[1e-2, 1e-3])
        result = ss.screen(chunked, targets, sample_weight=s, alpha=1e-3)
    assert path.relative_gaps.max() <= 1e-6
    known = ss.screen(ss.blocks.calls(make, N_BLOCKS), alpha=1e-3)
    assert (np.asarray(result.kept) == np.asarray(known.kept)).all()


def test_alphas_are_chosen_and_rows_compressed_where_they_are():
    client, rows = whole_cluster(), ss.blocks.calls(make, N_BLOCKS)
    ddf = dd.concat([dd.from_pandas(frame(k), npartitions=1) for k in range(N_BLOCKS)])
    columns = zip(*map(make, range(N_BLOCKS)), strict=True)
    X, y, weights = (da.from_array(np.concatenate(one), chunks=LENGTH) for one in columns)
    chosen = ss.SafeClassifierCV(alphas=[1e-1, 1e-2, 1e-3], cv=2)
    arguments = {"n_keep": 50, "alpha": 1e-3, "random_state": 0}
    with laws.small_samples(200, whole=False):
        known = chosen.fit(rows).scores_, ss.compress(rows, **arguments)
        with ss.engine(client):
            scores = chosen.fit(ddf, target="label", sample_weight="w").scores_
            small = ss.compress(X, y, sample_weight=weights, **arguments)
    assert (scores == known[0]).all()
    assert (small.indices == known[1].indices).all() and (small.weights == known[1].weights).all()


def test_what_is_no_source_is_refused():
    X, y, _ = make(0)
    chunked, ddf = da.from_array(X, chunks=(100, 2)), dd.from_pandas(frame(0), npartitions=2)
    with pytest.raises(ValueError, match=r"parts of rows .* X.rechunk"):
        fitted(chunked, y=y)
    whole = chunked.rechunk({1: -1})
    with pytest.raises(ValueError, match=r"X must have rows and columns, got 1 dimension"):
        fitted(whole[:, 0], y=y)
    with pytest.raises(ValueError, match="target='label' names columns, which an array"):
        fitted(whole, target="label")
    with pytest.raises(ValueError, match="y has 399 entries but X has 400 rows"):
        fitted(whole, y=y[1:])
    with pytest.raises(ValueError, match="one of them"):
        fitted(ddf)
    with pytest.raises(ValueError, match="no column 'lable'"):
        fitted(ddf, target="lable")
    with pytest.raises(ValueError, match=r"the column 'label' of type .* holds no numbers"):
        fitted(ddf, target="w")
    with pytest.raises(ValueError, match="y has 1 partitions but X has 2"):
        fitted(ddf[["x0"]], y=ddf["label"].repartition(npartitions=1))
    with pytest.raises(ValueError, match="y is no dask array or series"):
        fitted(ddf[["x0"]], y=y)
    with pytest.raises(ValueError, match="names a column of a dask frame, and X is none"):
        fitted(X, y=y, target="label")
    with pytest.raises(TypeError, match="must be a dask array or frame, got ndarray"):
        ss.blocks.dask(X, y)
    with pytest.raises(TypeError, match=r"must be a distributed\.Client, got int"), ss.engine(3):
        pass


# --- what travels -----------------------------------------------------------------------------


def test_what_travels_is_small(tmp_path):
    """Neither the rows of a source nor a byte for a row go along with a pass or a task."""
    rng = np.random.default_rng(0)
    path = tmp_path / "X.npy"
    np.save(path, rng.normal(size=(20_000, P)))
    X = np.load(path, mmap_mode="r")
    rows = ss.blocks.arrays(X, X[:, 0] > 0, memory="10 MB")
    seen = []

    class Weighing(Threads):
        def carry_out(self, work, tasks, take):
            task = tasks[0]
            n_rows = sum(map(len, task.codes))
            seen.append((len(dask_engine._parcel(work)), len(pickle.dumps(task)), n_rows))
            return super().carry_out(work, tasks, take)

    with ss.engine(Weighing()):
        fitted(rows)
    assert len(seen) >= 3
    for parcel, task, n_rows in seen:
        assert parcel < 20_000 and task < n_rows / 4 + 600
    assert len(pickle.dumps(rows)) < X.nbytes / 10
    again = pickle.loads(pickle.dumps(rows))
    assert isinstance(again._X, np.memmap) and (again._X == X).all()


@pytest.mark.parametrize("most", [2, 4, 6])
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_codes_travel_in_two_bits_or_four(most, n):
    codes = np.random.default_rng(n).integers(0, most, n).astype(np.uint8)
    task = pickle.loads(pickle.dumps(Task(3, [codes, codes[:0]])))
    assert task.part == 3 and (task.codes[0] == codes).all() and not len(task.codes[1])
    assert len(Packed.of(codes).data) == -(-n * (2 if codes.max(initial=0) < 4 else 4) // 8)
