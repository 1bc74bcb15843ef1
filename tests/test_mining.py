"""Mining: where a pool may come from, what is said of it, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import safesift as ss
from safesift.progress import listening

NAMES = list("abcde")
N_POOL = 5000
# a block has 744 rows of five float64
SMALL = "4 MB"


@pytest.fixture(scope="module")
def training():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(2, 1, (50, 5)), rng.normal(-1, 1, (50, 5))])
    return X, np.repeat(["rare", "common"], 50)


@pytest.fixture(scope="module")
def pool():
    return np.random.default_rng(1).normal(-1, 1, (N_POOL, 5))


@pytest.fixture(scope="module")
def model(training):
    return ss.SafeClassifier(alpha=1e-3).fit(*training)


@pytest.fixture(scope="module")
def mined(pool, model, training):
    return ss.mine_hard(pool, model, *training, label="common")


def test_the_model_is_that_of_all_rows(mined, pool, model, training):
    X, y = training
    before = model.coef_.copy()
    everything = ss.SafeClassifier(alpha=1e-3, tol=1e-9).fit(
        np.vstack([X, pool]), np.append(y, np.repeat("common", N_POOL))
    )
    np.testing.assert_allclose(mined.model.coef_, everything.coef_, atol=1e-6)
    np.testing.assert_allclose(mined.model.intercept_, everything.intercept_, atol=1e-6)
    np.testing.assert_array_equal(mined.indices, np.flatnonzero(everything.kept_[100:]))
    np.testing.assert_array_equal(mined.X_kept, pool[mined.indices])
    np.testing.assert_array_equal(mined.model.kept_, everything.kept_[:100])
    assert mined.proved and mined.n_proved == N_POOL - mined.n_kept
    assert mined.dual_gap == mined.model.dual_gap_ < 1e-6
    assert mined.model.predict(X).shape == (100,)
    np.testing.assert_array_equal(model.coef_, before)


def test_only_what_is_in_doubt_is_held(mined):
    assert mined.passes == len(mined.history) <= 4
    assert mined.n_kept <= max(one.n_held for one in mined.history) < N_POOL // 10
    assert mined.history[-1].n_new == 0
    assert "proved" in mined.summary()


def test_the_summary_names_the_model(mined, pool, training):
    (line,) = [line for line in mined.summary().splitlines() if "model" in line]
    for word in ("squared_hinge", "l2", "alpha=0.001", "with an intercept", "label 'common'"):
        assert word in line
    X, y = training
    model = ss.SafeClassifier(
        ss.losses.SmoothedHinge(), penalty="elastic_net", l1_ratio=0.25, class_weight="balanced",
        fit_intercept=False, alpha=0.1,
    ).fit(X, y)  # fmt: skip
    other = ss.mine_hard(pool, model, X, y, y_pool=np.repeat("common", N_POOL)).summary()
    for word in ("SmoothedHinge", "l1_ratio=0.25", "without an", "'balanced'", "labels of its own"):
        assert word in other


def test_what_is_kept_in_three_ways(mined, pool):
    assert mined.kept.shape == (N_POOL,) and mined.kept.dtype == bool
    np.testing.assert_array_equal(np.flatnonzero(mined.kept), mined.indices)
    np.testing.assert_array_equal(pool[mined.kept], mined.X_kept)
    assert mined.y_kept.tolist() == ["common"] * mined.n_kept


# --- where a pool may come from -----------------------------------------------------------------


def sources(pool, folder):
    frame = pd.DataFrame(pool, columns=NAMES)
    frame.assign(note="x").to_csv(folder / "pool.csv.gz", index=False)
    frame.assign(note="x").to_parquet(folder / "pool.parquet")
    np.savez_compressed(folder / "pool.npz", X=pool)
    blocks = [pool[:1], pool[1:3000], pool[3000:3000], pool[3000:]]
    return {
        "frame": frame,
        "polars": pl.DataFrame(frame),
        "csv": folder / "pool.csv.gz",
        "parquet": str(folder / "pool.parquet"),
        "npz": folder / "pool.npz",
        "nested lists": pool.tolist(),
        "list of blocks": blocks,
        "list of frames": [frame[:10], frame[10:]],
        "function": lambda: iter(blocks),
        "CSR": sparse.csr_matrix(pool),
        "CSC array": sparse.csc_array(pool),
        "columns first": np.asfortranarray(pool),
    }


def test_every_kind_of_pool_gives_the_same(pool, training, mined, tmp_path):
    X, y = training
    named = pd.DataFrame(X, columns=NAMES)
    model = ss.SafeClassifier(alpha=1e-3).fit(named, y)
    for name, source in sources(pool, tmp_path).items():
        found = ss.mine_hard(source, model, named, y, label="common", memory=SMALL)
        assert found.proved, name
        np.testing.assert_array_equal(found.indices, mined.indices, err_msg=name)
        np.testing.assert_allclose(found.model.coef_, mined.model.coef_, atol=1e-10)
        assert found.model.feature_names_in_.tolist() == NAMES


def test_blocks_may_be_made_in_the_same_memory(pool, training, model, mined):
    def blocks():
        buffer = np.empty((130, 5))
        for start in range(0, N_POOL, 130):
            part = pool[start : start + 130]
            buffer[: len(part)] = part
            yield buffer[: len(part)]

    found = ss.mine_hard(blocks, model, *training, label="common", memory=SMALL)
    np.testing.assert_array_equal(found.indices, mined.indices)
    np.testing.assert_array_equal(found.X_kept, mined.X_kept)


def test_sparse_training_rows_and_a_dense_pool(pool, training, mined):
    X, y = sparse.csr_array(training[0]), training[1]
    found = ss.mine_hard(pool, ss.SafeClassifier(alpha=1e-3).fit(X, y), X, y, label="common")
    assert sparse.issparse(found.X_kept)
    np.testing.assert_array_equal(found.indices, mined.indices)


def test_integers_stay_what_they_are(training):
    pool = np.random.default_rng(2).integers(-9, 1, (3000, 5)).astype(np.int8)
    X, y = training[0].astype(np.float32), training[1]
    found = ss.mine_hard(pool, ss.SafeClassifier(alpha=1e-3).fit(X, y), X, y, label="common")
    assert found.proved and found.X_kept.dtype == np.float32


def test_the_memory_does_not_grow_with_the_pool(training, model):
    def blocks(n_blocks):
        for seed in range(n_blocks):
            yield np.random.default_rng(seed).normal(-1, 1, (10_000, 5))

    def peak(n_blocks):
        tracemalloc.start()
        try:
            found = ss.mine_hard(
                lambda: blocks(n_blocks), model, *training, label="common", memory="60 MB"
            )
            return tracemalloc.get_traced_memory()[1], found
        finally:
            tracemalloc.stop()

    peak(1)
    (small, _), (large, found) = peak(2), peak(20)
    assert found.proved and found.n_pool == 200_000
    # twenty blocks are 8 MB, two 0.8 MB
    assert large < small + 4e6


# --- labels -------------------------------------------------------------------------------------


def mixed_pool():
    """Rows of both classes, some of them on the wrong side, and their labels."""
    rng = np.random.default_rng(5)
    labels = np.where(rng.random(N_POOL) < 0.3, "rare", "common")
    centres = np.where(labels == "rare", 2.0, -1.0)
    return rng.normal(centres[:, None], 1, (N_POOL, 5)), labels


def labelled_sources(pool, labels, folder):
    """Every way in which a pool may come with targets, and what `mine_hard` is told of them."""
    frame = pd.DataFrame(pool, columns=NAMES)
    frame.assign(note="x", kind=labels).to_csv(folder / "mixed.csv", index=False)
    frame.assign(kind=pd.Categorical(labels)).to_parquet(folder / "mixed.parquet")
    np.savez(folder / "mixed.npz", X=pool, y=labels)
    np.savez_compressed(folder / "named.npz", X=pool, kind=labels, y=np.zeros(3))
    pairs = [(pool[a:b], labels[a:b]) for a, b in ((0, 1), (1, 2000), (2000, 2000), (2000, N_POOL))]
    return {
        "array": (pool, {"y_pool": labels}),
        "list": (pool, {"y_pool": labels.tolist()}),
        "series": (frame, {"y_pool": pd.Series(labels)}),
        "CSC": (sparse.csc_array(pool), {"y_pool": labels}),
        "pairs": (pairs, {}),
        "lists of two": ([list(pair) for pair in pairs], {}),
        "frames and series": ([(frame, pd.Series(labels))], {}),
        "function": (lambda: iter(pairs), {}),
        "csv": (folder / "mixed.csv", {"y_pool": "kind"}),
        "csv, y_pool": (folder / "mixed.csv", {"y_pool": labels}),
        "parquet": (folder / "mixed.parquet", {"y_pool": "kind"}),
        "npz": (folder / "mixed.npz", {}),
        "npz, named": (folder / "named.npz", {"y_pool": "kind"}),
    }


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_pool_with_targets(training, class_weight, tmp_path):
    X, y = training
    pool, labels = mixed_pool()
    parameters = {"alpha": 1e-3, "class_weight": class_weight, "tol": 1e-9}
    everything = ss.SafeClassifier(**parameters).fit(np.vstack([X, pool]), np.append(y, labels))
    named = pd.DataFrame(X, columns=NAMES)
    model = ss.SafeClassifier(**parameters).fit(named, y)
    for name, (source, told) in labelled_sources(pool, labels, tmp_path).items():
        found = ss.mine_hard(source, model, named, y, memory=SMALL, **told)
        assert found.proved, name
        np.testing.assert_allclose(found.model.coef_, everything.coef_, atol=1e-6, err_msg=name)
        np.testing.assert_array_equal(found.indices, np.flatnonzero(everything.kept_[100:]))
        np.testing.assert_array_equal(found.y_kept, labels[found.indices], err_msg=name)
        assert set(found.y_kept) == {"rare", "common"} and found.label is None


@pytest.mark.parametrize("kind", [int, float, bool])
def test_labels_of_files_that_are_numbers(kind, training, tmp_path):
    """What text stands for is compared with the classes."""
    X, y = training
    pool, labels = mixed_pool()
    y, labels = (y == "rare").astype(kind), (labels == "rare").astype(kind)
    named = pd.DataFrame(X, columns=NAMES)
    model = ss.SafeClassifier(alpha=1e-3).fit(named, y)
    expected = ss.mine_hard(pd.DataFrame(pool, columns=NAMES), model, named, y, y_pool=labels)
    pd.DataFrame(pool, columns=NAMES).assign(y=labels).to_csv(tmp_path / "d.csv", index=False)
    sources = [(tmp_path / "d.csv", "y")]
    if kind is not bool:
        dump_svmlight_file(pool, labels, str(tmp_path / "d.svm"), zero_based=False)
        dump_svmlight_file(pool, labels, str(tmp_path / "zero.svm"), zero_based=True)
        sources += [(tmp_path / "d.svm", None), (tmp_path / "zero.svm", None)]
    for source, y_pool in sources:
        found = ss.mine_hard(source, model, named, y, y_pool=y_pool, memory=SMALL)
        np.testing.assert_array_equal(found.indices, expected.indices)
        assert found.y_kept.dtype == y.dtype


def test_labels_that_are_digits_stay_text(training, tmp_path):
    """A part of a file may hold no other label than one that looks like a number."""
    X, y = training
    pool, labels = mixed_pool()
    y, labels = np.where(y == "rare", "1", "none"), np.where(labels == "rare", "1", "none")
    rows = np.argsort(labels)
    frame = pd.DataFrame(pool[rows], columns=NAMES).assign(y=labels[rows])
    frame.to_parquet(tmp_path / "d.parquet")
    named = pd.DataFrame(X, columns=NAMES)
    model = ss.SafeClassifier(alpha=1e-3).fit(named, y)
    found = ss.mine_hard(tmp_path / "d.parquet", model, named, y, y_pool="y", memory="1 MB")
    assert found.proved and set(found.y_kept) == {"1", "none"}


def test_a_pool_without_targets_needs_a_label(pool, training, model, tmp_path):
    """The trap: classes_[0], alphabetically the first, was taken silently."""
    np.savez(tmp_path / "pool.npz", X=pool)
    for source in (
        pool,
        [pool],
        lambda: iter([pool]),
        sparse.csr_array(pool),
        tmp_path / "pool.npz",
    ):
        with pytest.raises(ValueError, match="label='common' or label='rare', or y_pool") as error:
            ss.mine_hard(source, model, *training)
        assert "\n" not in str(error.value)


def test_labels_from_two_sides_are_refused(pool, training, model, tmp_path):
    labels = np.repeat("common", N_POOL)
    np.savez(tmp_path / "pool.npz", X=pool, y=labels)
    dump_svmlight_file(pool, np.zeros(N_POOL), str(tmp_path / "pool.svm"))
    with pytest.raises(TypeError, match="label='common' and y_pool are both given"):
        ss.mine_hard(pool, model, *training, label="common", y_pool=labels)
    for source in ([(pool, labels)], tmp_path / "pool.npz", tmp_path / "pool.svm"):
        for told in ({"label": "common"}, {"y_pool": labels}):
            (name,) = told
            with pytest.raises(TypeError, match=f"with targets, .* so {name} must not be given"):
                ss.mine_hard(source, model, *training, **told)


@pytest.mark.parametrize(
    ("make", "y_pool", "words"),
    [
        (lambda X: X, np.repeat("odd", N_POOL), "y_pool has the label 'odd' .first in row 0."),
        (lambda X: X, np.repeat(1, N_POOL), "y_pool has the label 1 .*'common' and 'rare'"),
        (lambda X: X, [None] * N_POOL, "missing labels"),
        (lambda X: X, pd.array([pd.NA] * N_POOL, "string"), "missing labels"),
        (lambda X: X, ["common"] * 7, f"y_pool has 7 entries but X_pool has {N_POOL} rows"),
        (lambda X: X, ["common"] * (N_POOL + 1), f"but X_pool has {N_POOL} rows"),
        (lambda X: lambda: [X], ["common"] * (N_POOL + 1), f"but X_pool has {N_POOL} rows"),
        (lambda X: X, np.full((N_POOL, 2), "common"), "one entry per sample"),
        (lambda X: X, "kind", "names a column of a file, but X_pool is a ndarray"),
        (lambda X: [(X, ["common"] * 3)], None, f"{N_POOL} rows but 3 targets, from row 0 on"),
        (lambda X: [(X, ["common"] * N_POOL), X], None, "without targets"),
        (lambda X: [X, (X, ["common"] * N_POOL)], None, "without targets"),
        (
            lambda X: [(X, ["common"] * N_POOL), (X, ["odd"] * N_POOL)],
            None,
            f"X_pool has the label 'odd' .first in row {N_POOL}.",
        ),
    ],
)
def test_refused_labels(make, y_pool, words, pool, training, model):
    with pytest.raises((TypeError, ValueError), match=words):
        ss.mine_hard(make(pool), model, *training, y_pool=y_pool)


def test_refused_labels_of_files(training, tmp_path):
    X, y = training
    frame = pd.DataFrame(X, columns=NAMES)
    model = ss.SafeClassifier(alpha=1e-3).fit(frame, y)
    frame.assign(kind=y).to_csv(tmp_path / "d.csv", index=False)
    frame.assign(kind=[*y[:-1], None]).to_csv(tmp_path / "missing.csv", index=False)
    np.savez(tmp_path / "short.npz", X=X, y=y[:7])
    dump_svmlight_file(X, np.zeros(100), str(tmp_path / "d.svm"))
    for name, y_pool, words in [
        ("d.csv", "kinds", "did you mean 'kind'"),
        ("d.csv", "a", "'a' cannot be a feature: it is the target"),
        ("missing.csv", "kind", "'kind' has a missing .* row 100"),
        ("short.npz", None, "X has 100 rows but y has 7 entries"),
        ("short.npz", "kind", "no member 'kind.npy'"),
        ("d.svm", "kind", "no column 'kind'"),
    ]:
        with pytest.raises(ValueError, match=words):
            ss.mine_hard(tmp_path / name, model, frame, y, y_pool=y_pool)


# --- memory -------------------------------------------------------------------------------------


def peak_of(function):
    """What a call returns, or the error it raises, and the most it allocated."""
    tracemalloc.start()
    try:
        try:
            found = function()
        except MemoryError as error:
            found = error
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("store", [np.asarray, np.float32, sparse.csr_array, sparse.csc_array])
def test_rows_in_doubt_that_do_not_fit_are_refused_before_they_are_held(store, training, model):
    """The trap: with the wrong label all rows of a large pool were held, until memory was out."""
    pool = store(np.random.default_rng(6).normal(-1, 1, (50_000, 5)))
    mined = ss.mine_hard(pool, model, *training, label="common", memory="6 MB")
    assert mined.proved
    error, peak = peak_of(lambda: ss.mine_hard(pool, model, *training, label="rare", memory="6 MB"))
    assert isinstance(error, MemoryError) and peak < 6e6 + 2e6
    words = re.fullmatch(
        r"(\d+) rows of X_pool are in doubt after (\d+) were read, and to fit a model to them "
        r"takes (\S+) MB where memory leaves (\S+) MB: increase memory, or alpha, or check "
        r"label='rare', since rows of the wrong class are all in doubt\.",
        str(error),
    )
    n_held, n_read, taken, left = map(float, words.groups())
    assert n_held < n_read < 50_000 and left < taken < 6


@pytest.mark.parametrize("n_features", [3, 60])
def test_what_is_held_fits_into_the_budget(n_features):
    """Nearly everything is in doubt: as much is held as the budget allows, and not more."""
    rng = np.random.default_rng(7)
    X, pool = rng.normal(size=(100, n_features)), rng.normal(size=(40_000, n_features))
    y = np.arange(100) % 2
    model = ss.SafeClassifier("safe_logistic", alpha=1e-2).fit(X, y)
    ss.mine_hard(pool[:50], model, X, y, label=0)  # what is compiled stays
    error, peak = peak_of(lambda: ss.mine_hard(pool, model, X, y, label=0, memory="10 MB"))
    assert isinstance(error, MemoryError) and peak < 10e6


def memory_map(folder, order="C"):
    shape = (60_000, 50)
    pool = np.lib.format.open_memmap(
        folder / "pool.npy", "w+", np.float32, shape, fortran_order=order == "F"
    )
    pool[:] = np.random.default_rng(8).normal(-1, 1, shape)
    pool.flush()
    return np.load(folder / "pool.npy", mmap_mode="r")


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_memory_map_is_never_in_memory_as_a_whole(order, tmp_path):
    rng = np.random.default_rng(9)
    pool = memory_map(tmp_path, order)
    X = np.vstack([rng.normal(0.5, 1, (50, 50)), rng.normal(-1, 1, (50, 50))]).astype(np.float32)
    y = np.repeat(["rare", "common"], 50)
    model = ss.SafeClassifier(alpha=1e-2).fit(X, y)
    ss.mine_hard(pool[:50], model, X, y, label="common")
    found, peak = peak_of(lambda: ss.mine_hard(pool, model, X, y, label="common", memory="3 MB"))
    # converted as a whole it would be 24 MB
    assert found.proved and found.n_pool == 60_000
    assert peak < 6e6 < pool.nbytes and found.X_kept.dtype == np.float32


def test_a_sparse_pool_is_not_copied():
    """But for one that is not stored by rows, which is copied once if it fits."""
    rare, pool = (
        sparse.random(n, 100, 0.2, "csr", np.float32, random_state=n) for n in (50, 100_000)
    )
    pool.data *= -4
    X, y = sparse.vstack([rare, pool[:50]], "csr"), np.repeat(["rare", "common"], 50)
    model = ss.SafeClassifier(alpha=1e-3).fit(X, y)
    told = {"label": "common", "pool_weight": 1e-3}
    ss.mine_hard(pool[:50], model, X, y, **told)  # what is compiled stays
    found, peak = peak_of(lambda: ss.mine_hard(pool, model, X, y, memory="5 MB", **told))
    assert found.proved and found.X_kept.dtype == np.float32
    assert peak < 5e6 < (pool.data.nbytes + pool.indices.nbytes) / 3
    columns = pool.tocsc()
    with pytest.raises(MemoryError, match=r"in the format 'csc', and a copy .* X_pool\.tocsr\(\)"):
        ss.mine_hard(columns, model, X, y, memory="5 MB", **told)
    again = ss.mine_hard(columns, model, X, y, memory="50 MB", **told)
    np.testing.assert_array_equal(again.indices, found.indices)


def test_dense_rows_of_a_file_beside_sparse_ones(tmp_path):
    """How many rows are read at a time depends on what they take, not on the training rows."""
    rng = np.random.default_rng(10)
    rows = rng.normal(-1, 0.5, (30_000, 200)).astype(np.float32)
    np.savez(tmp_path / "pool.npz", X=4 * rows)
    rows[:50] *= -1
    rows[:100, 5:] = 0
    X, y = sparse.csr_array(rows[:100]), np.repeat(["rare", "common"], 50)
    model = ss.SafeClassifier(alpha=1e-1, fit_intercept=False).fit(X, y)
    ss.mine_hard(rows[:50], model, X, y, label="rare")
    found, peak = peak_of(
        lambda: ss.mine_hard(tmp_path / "pool.npz", model, X, y, label="common", memory="5 MB")
    )
    assert found.proved and peak < 5e6 < rows.nbytes / 4


# --- without extras -----------------------------------------------------------------------------


WITHOUT_EXTRAS = """
import sys
sys.modules.update(dict.fromkeys(["pyarrow", "pandas", "polars", "click", "rich", "matplotlib"]))
import numpy as np
from scipy import sparse
import safesift as ss

file = np.load(sys.argv[1] + "/pool.npz")
pool, X, y = (file[name] for name in ("X", "training", "labels"))
model = ss.SafeClassifier(alpha=1e-3).fit(X, y)
for source in (pool, pool.tolist(), sparse.csr_array(pool), [pool], lambda: [pool],
               sys.argv[1] + "/pool.npz"):
    assert ss.mine_hard(source, model, X, y, label="common").proved
numbers = (y == "rare").astype(int)
model = ss.SafeClassifier(alpha=1e-3).fit(X, numbers)
assert ss.mine_hard(sys.argv[1] + "/pool.svm", model, X, numbers).proved
print("all proved")
"""


def test_arrays_and_matrix_files_need_no_extra(pool, training, tmp_path):
    X, y = training
    np.savez(tmp_path / "pool.npz", X=pool, training=X, labels=y)
    dump_svmlight_file(pool, np.zeros(N_POOL), str(tmp_path / "pool.svm"))
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, str(tmp_path)], capture_output=True, text=True
    )
    assert run.stdout == "all proved\n", run.stderr


@pytest.mark.parametrize("name", ["pool.csv", "pool.csv.gz", "pool.parquet"])
def test_a_file_that_needs_an_extra_names_it(name, training, model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'safesift\[cli\]'"):
        ss.mine_hard(tmp_path / name, model, *training, label="common")


# --- weights, labels, losses --------------------------------------------------------------------


def test_a_pool_of_the_other_class(training, model):
    X, y = training
    pool = np.random.default_rng(3).normal(2, 1, (2000, 5))
    found = ss.mine_hard(pool, model, X, y, label="rare")
    everything = ss.SafeClassifier(alpha=1e-3, tol=1e-9).fit(
        np.vstack([X, pool]), np.append(y, np.repeat("rare", 2000))
    )
    np.testing.assert_allclose(found.model.coef_, everything.coef_, atol=1e-6)


def test_balanced_classes_count_the_pool(pool, training):
    X, y = training
    model = ss.SafeClassifier(alpha=1e-3, class_weight="balanced", tol=1e-9).fit(X, y)
    found = ss.mine_hard(pool, model, X, y, label="common")
    everything = ss.SafeClassifier(alpha=1e-3, class_weight="balanced", tol=1e-9).fit(
        np.vstack([X, pool]), np.append(y, np.repeat("common", N_POOL))
    )
    np.testing.assert_allclose(found.model.coef_, everything.coef_, atol=1e-6)


def test_a_region_of_its_own(pool, training, mined):
    model = ss.SafeClassifier(alpha=1e-3, screening="curvature").fit(*training)
    found = ss.mine_hard(pool, model, *training, label="common")
    assert found.proved
    np.testing.assert_allclose(found.model.coef_, mined.model.coef_, atol=1e-6)


def test_a_guessed_region_proves_nothing(pool, training):
    model = ss.SafeClassifier(alpha=1e-3).fit(*training)
    model.set_params(screening=ss.regions.GuessedBall(radius=0.1))
    with pytest.warns(ConvergenceWarning, match="a guess and proves nothing"):
        found = ss.mine_hard(pool, model, *training, label="common")
    assert not found.proved and found.n_proved == 0


# --- what ends without a proof ------------------------------------------------------------------


def test_ended_early(pool, training, model, mined):
    with pytest.warns(ConvergenceWarning, match="increase max_passes"):
        found = ss.mine_hard(pool, model, *training, label="common", max_passes=1)
    assert not found.proved and found.dual_gap > mined.dual_gap
    assert "NOT proved" in found.summary()
    # the model given is as good as its gap says, on all rows
    np.testing.assert_array_equal(found.model.coef_, model.coef_)


def test_a_pool_in_another_order_every_time(pool, training, model):
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning, match="changed between passes.*nothing is proved"):
        found = ss.mine_hard(
            lambda: [rng.permutation(pool)], model, *training, label="common", max_passes=4
        )
    assert not found.proved


def test_a_pool_that_changes_once(pool, training, model, mined):
    """What was read last counts."""
    other = np.concatenate([pool[1:], np.random.default_rng(4).normal(-1, 1, (300, 5))])
    readings = iter([pool])
    with pytest.warns(ConvergenceWarning, match="about the rows as they were read last;"):
        found = ss.mine_hard(lambda: [next(readings, other)], model, *training, label="common")
    fresh = ss.mine_hard(other, model, *training, label="common")
    assert found.proved and found.n_pool == N_POOL + 299
    np.testing.assert_array_equal(found.indices, fresh.indices)
    np.testing.assert_array_equal(found.X_kept, fresh.X_kept)
    np.testing.assert_allclose(found.model.coef_, fresh.model.coef_, atol=1e-8)


def test_a_model_that_does_not_converge(pool, training):
    model = ss.SafeClassifier("hinge", alpha=1e-3).fit(*training).set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning):
        found = ss.mine_hard(pool, model, *training, label="common")
    assert np.isfinite(found.dual_gap)


# --- what is said on the way --------------------------------------------------------------------


def test_verbose_and_progress(pool, training, model, capsys):
    heard = []
    with listening(lambda *words: heard.append(words)):
        found = ss.mine_hard(pool, model, *training, label="common", verbose=1)
    assert [words for words in heard if words[0] == "pool"][-1] == ("pool", found.passes, 20)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == found.passes and printed[-1].endswith("proved")


# --- what is refused ----------------------------------------------------------------------------


def with_nan(pool):
    spoilt = pool.copy()
    spoilt[1234, 2] = np.nan
    return spoilt


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda pool: iter([pool]), "can be read once only"),
        (lambda pool: 3, "must be a matrix"),
        (lambda pool: pool[:, :3], "3 features .* training rows have 5"),
        (lambda pool: pool[0], "2 dimensions"),
        (lambda pool: [], "holds no rows"),
        (lambda pool: pool[:0], "holds no rows"),
        (lambda pool: [["a"] * 5], "has type"),
        (lambda pool: "nowhere.csv", "there is no file nowhere.csv"),
        (with_nan, "X_pool contains NaN or infinity .first in row 1234."),
    ],
)
def test_refused_pools(make, words, pool, training, model):
    with pytest.raises((TypeError, ValueError), match=words):
        ss.mine_hard(make(pool), model, *training, label="common")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": "none"}, "none of the model's classes"),
        ({"memory": "32 megs"}, "memory must be a size such as '500 MB'"),
        ({"memory": 0}, "memory must be a size"),
        ({"max_passes": 0}, "max_passes must be a positive integer"),
        ({"pool_weight": 0}, "pool_weight must be positive"),
        ({"pool_weight": 0.0}, "pool_weight must be positive"),
        ({"pool_weight": np.zeros(N_POOL)}, "^pool_weight is zero everywhere"),
        ({"pool_weight": np.full(N_POOL, -1)}, "^pool_weight is negative"),
        ({"pool_weight": np.full(N_POOL, np.nan)}, "^pool_weight contains NaN"),
        ({"pool_weight": np.full(N_POOL, 1e308)}, "^pool_weight is too large"),
        ({"pool_weight": np.ones((N_POOL, 2))}, "^pool_weight must have one entry"),
        ({"pool_weight": np.ones(7)}, "pool_weight has 7 entries"),
        ({"pool_weight": np.ones(N_POOL + 1)}, f"X_pool has {N_POOL} rows"),
    ],
)
def test_refused_options(options, words, pool, training, model):
    with pytest.raises(ValueError, match=words):
        ss.mine_hard(pool, model, *training, **{"label": "common"} | options)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": "logistic"}, "flat nowhere"),
        ({"loss": "hinge", "penalty": "l1"}, "no curvature"),
    ],
)
def test_refused_models(parameters, words, pool, training):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ss.SafeClassifier(**parameters).fit(*training)
    with pytest.raises(ValueError, match=words):
        ss.mine_hard(pool, model, *training, label="common")


def test_a_region_that_does_not_suit_is_refused_before_any_pass(training):
    changed = ss.SafeClassifier(alpha=1e-3).fit(*training).set_params(screening="gap_ball")
    with pytest.raises(ValueError, match="needs strong convexity"):
        ss.mine_hard(lambda: pytest.fail("read"), changed, *training, label="common")


def test_a_model_must_be_a_fitted_one_of_two_classes(pool, training, model):
    X, y = training
    with pytest.raises(NotFittedError):
        ss.mine_hard(pool, ss.SafeClassifier(), X, y)
    with pytest.raises(TypeError, match="must be a SafeClassifier"):
        ss.mine_hard(pool, "svm", X, y)
    three = ss.SafeClassifier().fit(X, np.arange(100) % 3)
    with pytest.raises(ValueError, match="3 classes, mining needs two"):
        ss.mine_hard(pool, three, X, y)
    with pytest.raises(ValueError, match="pass its training data"):
        ss.mine_hard(pool, model, X, np.arange(100) % 2)
    with pytest.raises(ValueError, match="pass its training data"):
        ss.mine_hard(pool, model, X[:, :3], y)


def test_refused_files(training, tmp_path):
    X, y = training
    model = ss.SafeClassifier(alpha=1e-3).fit(X, y)
    frame = pd.DataFrame(X, columns=NAMES)
    frame.assign(more=1.0).to_csv(tmp_path / "wide.csv", index=False)
    with pytest.raises(ValueError, match=r"6 columns but there are 5 features"):
        ss.mine_hard(tmp_path / "wide.csv", model, X, y, label="common")
    np.savez(tmp_path / "other.npz", Z=X)
    with pytest.raises(ValueError, match=r"no member 'X.npy'"):
        ss.mine_hard(tmp_path / "other.npz", model, X, y, label="common")
    np.savez(tmp_path / "columns.npz", X=np.asfortranarray(X))
    with pytest.raises(ValueError, match="stored row by row"):
        ss.mine_hard(tmp_path / "columns.npz", model, X, y, label="common")
    named = ss.SafeClassifier(alpha=1e-3).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        ss.mine_hard(frame[NAMES[::-1]], named, frame, y, label="common")
