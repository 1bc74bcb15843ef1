"""Rows in blocks: compression is what it is in memory, and holds what it keeps only."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest
from scipy import sparse

import safesift as ss
from safesift.workflows.compression import blocks as compressed_blocks
from safesift.workflows.compression import metric, ranking
from safesift.workflows.compression import samples as compressed_samples
from safesift.workflows.scale import budget
from tests.test_blocks import FEATURES, MAKE, N, run, samples, table

pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def in_passes(monkeypatch):
    """Not all rows fit, however few they are."""
    monkeypatch.setattr(budget, "_WHOLE_SHARE", 0.0)


@pytest.mark.parametrize("method", ["hybrid", "screening", "margin", "random", "leverage"])
@pytest.mark.parametrize("weighted", [False, True])
def test_compression_is_the_same_as_in_memory(method, weighted, in_passes):
    X, y, weights = samples()
    weights = weights if weighted else None
    arguments = {"n_keep": 300, "alpha": 1e-3, "method": method, "random_state": 0}
    found = ss.compress(ss.blocks.arrays(X, y, weights, memory="2 MB"), **arguments)
    known = ss.compress(X, y, sample_weight=weights, **arguments)
    assert len(np.intersect1d(found.indices, known.indices)) >= 290
    assert found.alpha == pytest.approx(known.alpha, rel=1e-3)
    assert (found.weights is None) == (known.weights is None)
    if found.weights is not None and known.weights is not None:
        assert found.weights.sum() == pytest.approx(known.weights.sum(), rel=1e-2)
    ranking = ss.rank_samples(
        ss.blocks.arrays(X, y, weights, memory="2 MB"), alpha=1e-3, method=method, random_state=0
    )
    assert sorted(ranking.order.tolist()) == list(range(N))
    if method == "screening":
        kept = ss.SafeClassifier(alpha=1e-3, tol=1e-7).fit(X, y, weights).kept_
        front = ranking.order[: ranking.n_certified]
        assert np.isin(np.flatnonzero(kept), front).all()
        assert ranking.n_certified <= kept.sum() + 5


def test_compressed_rows_are_written_with_their_weights(tmp_path):
    X, y, weights = samples()
    for name, rows in (("a", slice(0, 1600)), ("b", slice(1600, N))):
        pq.write_table(table(X[rows], y[rows], weights[rows]), tmp_path / f"{name}.parquet", 700)
    for weight, column in ((None, "sample_weight"), ("w", "w")):
        rows = ss.blocks.parquet(
            tmp_path / "*.parquet", target="label", columns=FEATURES, weight=weight
        )
        small = ss.compress(rows, n_keep=200, alpha=1e-3, random_state=0)
        folder = small.write(tmp_path / f"small-{column}")
        again = ss.blocks.parquet(
            folder / "*.parquet", target="label", columns=FEATURES, weight=column
        )
        record = json.loads((folder / "safesift.json").read_text())
        assert record["kept"] == 200 and record["rows"] == N
        blocks = [block for part in range(again.n_parts) for block in again.blocks(part)]
        np.testing.assert_allclose(np.concatenate([b.weights for b in blocks]), small.weights)
        np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), X[small.indices])
        model = ss.SafeClassifier(alpha=record["alpha_kept"]).fit(again)
        everything = ss.SafeClassifier(alpha=1e-3).fit(X, y, None if weight is None else weights)
        np.testing.assert_allclose(model.coef_, everything.coef_, atol=0.3)
    arrays = ss.compress(ss.blocks.arrays(X, y, memory="1 MB"), n_keep=100, alpha=1e-3)
    folder = arrays.write(tmp_path / "arrays")
    parts = [np.load(path) for path in sorted(folder.glob("*.npz"))]
    assert (np.concatenate([part["row"] for part in parts]) == arrays.indices).all()
    np.testing.assert_allclose(np.concatenate([part["weight"] for part in parts]), arrays.weights)
    with pytest.raises(MemoryError, match="a ranking of 3000 rows takes"):
        ss.rank_samples(ss.blocks.arrays(X, y, memory=300_000), alpha=1e-3)


@pytest.mark.parametrize("stratify", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_what_compression_knows_of_rows_may_be_on_disk(storage, stratify, in_passes, monkeypatch):
    """In a few rows at a time, from a file, the same rows are chosen, with the same weights."""
    X, y, weights = samples()
    rows = ss.blocks.arrays(storage(X), y, weights, memory="2 MB")
    arguments = {"n_keep": 0.1, "alpha": 1e-3, "stratify": stratify, "random_state": 0}
    known = ss.compress(rows, **arguments)
    monkeypatch.setattr(budget, "held", lambda memory: 0)
    monkeypatch.setattr(compressed_blocks, "_AT_ONCE", 97)
    monkeypatch.setattr(ranking, "_SPARE", 5)
    found = ss.compress(rows, **arguments)
    np.testing.assert_array_equal(found.indices, known.indices)
    np.testing.assert_allclose(found.weights, known.weights, rtol=1e-9)


@pytest.mark.parametrize("method", ["hybrid", "margin"])
def test_pieces_of_which_no_row_has_any_weight(method, in_passes, monkeypatch):
    X, y, weights = samples()
    weights[: N // 2] = 0.0
    rows = ss.blocks.arrays(X, y, weights, memory="2 MB")
    arguments = {"n_keep": 0.2, "alpha": 1e-3, "method": method, "random_state": 0}
    known = ss.compress(rows, **arguments)
    monkeypatch.setattr(compressed_blocks, "_AT_ONCE", 97)
    np.testing.assert_array_equal(ss.compress(rows, **arguments).indices, known.indices)


@pytest.mark.parametrize("file", ["numbers of rows", "kept rows"])
def test_a_disk_without_room_is_told_before_it_is_written_to(file, in_passes, monkeypatch):
    """A map of a file that the disk has no room for would end the process."""
    X, y, _ = samples()

    def full(descriptor, offset, n_bytes):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    taken = compressed_blocks.ExaminedBlocks.taken

    def beyond(self, kept):
        monkeypatch.setattr(budget, "held", lambda memory: 0)
        return taken(self, kept)

    if file == "kept rows":
        monkeypatch.setattr(compressed_blocks.ExaminedBlocks, "taken", beyond)
    else:
        monkeypatch.setattr(budget, "held", lambda memory: 0)
    with pytest.raises(OSError, match=r"file of \d+ kB cannot be made \(No space left.*set TMPDIR"):
        ss.compress(ss.blocks.arrays(X, y, memory="2 MB"), n_keep=500, loss="logistic", alpha=1e-3)


def test_rows_that_are_too_many_to_be_sorted_are_spread_as_evenly(monkeypatch, in_passes):
    """Every tenth of the predictions of a class gives its share, also where few are looked at."""
    X, y, _ = samples()
    rows = ss.blocks.arrays(X, y, memory="2 MB")
    monkeypatch.setattr(compressed_blocks, "_MOST_VALUES", 100)
    monkeypatch.setattr(compressed_samples, "_FEWEST_OF_A_CLASS", 50)
    small = ss.compress(rows, n_keep=600, alpha=1e-3, random_state=0)
    model = ss.SafeClassifier(alpha=1e-3).fit(X, y)
    decisions = model.decision_function(X)
    shares = np.bincount(np.digitize(decisions[small.indices], np.quantile(decisions, [0.2, 0.5])),
                         small.weights) / len(y)  # fmt: skip
    np.testing.assert_allclose(shares, [0.2, 0.3, 0.5], atol=0.04)
    fewer = ss.SafeClassifier(alpha=small.alpha).fit(X[small.indices], y[small.indices],
                                                     sample_weight=small.weights)  # fmt: skip
    assert abs(fewer.score(X, y) - model.score(X, y)) < 0.01


@pytest.mark.parametrize("n_columns", [3, 12])
def test_the_norm_of_wide_rows_is_found_in_passes(n_columns, monkeypatch, in_passes):
    """Without a Gram matrix; estimates of the leverage are as near as they are in memory."""
    monkeypatch.setattr(metric, "_LARGEST_GRAM", 8)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, n_columns)) * np.geomspace(1, 0.1, n_columns)
    y = X[:, 0] > 0.3 * rng.normal(size=2000)
    found = ss.rank_samples(ss.blocks.arrays(X, y, memory="2 MB"), method="leverage", alpha=1e-2)
    A = np.column_stack([X, np.ones(2000)])
    H = A.T @ A / 2000 + np.diag([1e-2] * n_columns + [0.0])
    exact = np.einsum("ij,jk,ik->i", A, np.linalg.inv(H), A)
    apart = np.mean(np.abs(found.scores / exact - 1.0))
    assert apart < (1e-6 if n_columns == 3 else 0.25)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_memory_of_a_compression_does_not_grow_with_the_rows():
    """Eight times as many rows take no more, although every one of them has its numbers."""
    program = (
        MAKE
        + """
    p, length = 10, 50_000

    class Peak(threading.Thread):
        bytes, ended = 0, False

        def run(self):
            while not self.ended:
                self.bytes = max(self.bytes, anonymous())
                time.sleep(0.005)

    sizes = []
    for n_blocks in (2, 4, 32):  # the first one compiles
        rows = ss.blocks.calls(make, n_blocks, memory="24 MB")
        peak = Peak(daemon=True)
        peak.start()
        small = ss.compress(rows, n_keep=500, alpha=1e-3, random_state=0, n_jobs=1)
        peak.ended = True
        peak.join()
        sizes.append(peak.bytes)
    print(json.dumps({"sizes": sizes, "kept": len(small.indices),
                      "weight": float(small.weights.sum())}))
    """
    )
    found = run(program.replace("import json, sys", "import json, sys, threading, time"))
    few, many = found["sizes"][1:]
    assert found["kept"] == 500 and found["weight"] == pytest.approx(32 * 50_000)
    # 28 blocks more have 90 MB of numbers
    assert many - few < 20e6
