"""Mining: where a pool may come from, what is said of it, and what is refused."""

from __future__ import annotations

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
    return ss.mine_hard(pool, model, *training)


def test_the_model_is_that_of_all_rows(mined, pool, model, training):
    X, y = training
    before = model.coef_.copy()
    everything = ss.SafeClassifier(alpha=1e-3, tol=1e-9).fit(
        np.vstack([X, pool]), np.append(y, np.repeat("common", N_POOL))
    )
    np.testing.assert_allclose(mined.model_.coef_, everything.coef_, atol=1e-6)
    np.testing.assert_allclose(mined.model_.intercept_, everything.intercept_, atol=1e-6)
    np.testing.assert_array_equal(mined.indices, np.flatnonzero(everything.kept_[100:]))
    np.testing.assert_array_equal(mined.X_kept, pool[mined.indices])
    np.testing.assert_array_equal(mined.model_.kept_, everything.kept_[:100])
    assert mined.proved and mined.n_proved == N_POOL - mined.n_kept
    assert mined.dual_gap == mined.model_.dual_gap_ < 1e-6
    assert mined.model_.predict(X).shape == (100,)
    np.testing.assert_array_equal(model.coef_, before)


def test_only_what_is_in_doubt_is_held(mined):
    assert mined.passes == len(mined.history) <= 4
    assert mined.n_kept <= max(one.n_held for one in mined.history) < N_POOL // 10
    assert mined.history[-1].n_new == 0
    assert "proved" in mined.summary()


# --- where a pool may come from -----------------------------------------------------------------


def sources(pool, folder):
    frame = pd.DataFrame(pool, columns=NAMES)
    frame.assign(note="x").to_csv(folder / "pool.csv.gz", index=False)
    frame.assign(note="x").to_parquet(folder / "pool.parquet")
    np.savez_compressed(folder / "pool.npz", X=pool)
    dump_svmlight_file(pool, np.zeros(N_POOL), str(folder / "pool.svm"), zero_based=False)
    dump_svmlight_file(pool, np.zeros(N_POOL), str(folder / "zero.svm"), zero_based=True)
    blocks = [pool[:1], pool[1:3000], pool[3000:3000], pool[3000:]]
    return {
        "frame": frame,
        "polars": pl.DataFrame(frame),
        "csv": folder / "pool.csv.gz",
        "parquet": str(folder / "pool.parquet"),
        "npz": folder / "pool.npz",
        "svmlight": folder / "pool.svm",
        "svmlight from 0": folder / "zero.svm",
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
        found = ss.mine_hard(source, model, named, y, block_size=700)
        assert found.proved, name
        np.testing.assert_array_equal(found.indices, mined.indices, err_msg=name)
        np.testing.assert_allclose(found.model_.coef_, mined.model_.coef_, atol=1e-10)
        assert found.model_.feature_names_in_.tolist() == NAMES


def test_blocks_may_be_made_in_the_same_memory(pool, training, model, mined):
    def blocks():
        buffer = np.empty((130, 5))
        for start in range(0, N_POOL, 130):
            part = pool[start : start + 130]
            buffer[: len(part)] = part
            yield buffer[: len(part)]

    found = ss.mine_hard(blocks, model, *training, block_size=700)
    np.testing.assert_array_equal(found.indices, mined.indices)
    np.testing.assert_array_equal(found.X_kept, mined.X_kept)


def test_sparse_training_rows_and_a_dense_pool(pool, training, mined):
    X, y = sparse.csr_array(training[0]), training[1]
    found = ss.mine_hard(pool, ss.SafeClassifier(alpha=1e-3).fit(X, y), X, y)
    assert sparse.issparse(found.X_kept)
    np.testing.assert_array_equal(found.indices, mined.indices)


def test_integers_stay_what_they_are(training):
    pool = np.random.default_rng(2).integers(-9, 1, (3000, 5)).astype(np.int8)
    X, y = training[0].astype(np.float32), training[1]
    found = ss.mine_hard(pool, ss.SafeClassifier(alpha=1e-3).fit(X, y), X, y)
    assert found.proved and found.X_kept.dtype == np.float32


def test_the_memory_does_not_grow_with_the_pool(training, model):
    def blocks(n_blocks):
        for seed in range(n_blocks):
            yield np.random.default_rng(seed).normal(-1, 1, (10_000, 5))

    def peak(n_blocks):
        tracemalloc.start()
        try:
            found = ss.mine_hard(lambda: blocks(n_blocks), model, *training, block_size=10_000)
            return tracemalloc.get_traced_memory()[1], found
        finally:
            tracemalloc.stop()

    peak(1)
    (small, _), (large, found) = peak(2), peak(20)
    assert found.proved and found.n_pool == 200_000
    # twenty blocks are 8 MB, two 0.8 MB
    assert large < small + 4e6


# --- weights, labels, losses --------------------------------------------------------------------


def test_a_pool_of_the_other_class(training, model):
    X, y = training
    pool = np.random.default_rng(3).normal(2, 1, (2000, 5))
    found = ss.mine_hard(pool, model, X, y, label="rare")
    everything = ss.SafeClassifier(alpha=1e-3, tol=1e-9).fit(
        np.vstack([X, pool]), np.append(y, np.repeat("rare", 2000))
    )
    np.testing.assert_allclose(found.model_.coef_, everything.coef_, atol=1e-6)


def test_balanced_classes_count_the_pool(pool, training):
    X, y = training
    model = ss.SafeClassifier(alpha=1e-3, class_weight="balanced", tol=1e-9).fit(X, y)
    found = ss.mine_hard(pool, model, X, y)
    everything = ss.SafeClassifier(alpha=1e-3, class_weight="balanced", tol=1e-9).fit(
        np.vstack([X, pool]), np.append(y, np.repeat("common", N_POOL))
    )
    np.testing.assert_allclose(found.model_.coef_, everything.coef_, atol=1e-6)


def test_a_region_of_its_own(pool, training, mined):
    model = ss.SafeClassifier(alpha=1e-3, screening="curvature").fit(*training)
    found = ss.mine_hard(pool, model, *training)
    assert found.proved
    np.testing.assert_allclose(found.model_.coef_, mined.model_.coef_, atol=1e-6)


def test_a_guessed_region_proves_nothing(pool, training):
    model = ss.SafeClassifier(alpha=1e-3).fit(*training)
    model.set_params(screening=ss.regions.GuessedBall(radius=0.1))
    with pytest.warns(ConvergenceWarning, match="a guess and proves nothing"):
        found = ss.mine_hard(pool, model, *training)
    assert not found.proved and found.n_proved == 0


# --- what ends without a proof ------------------------------------------------------------------


def test_ended_early(pool, training, model, mined):
    with pytest.warns(ConvergenceWarning, match="increase max_passes"):
        found = ss.mine_hard(pool, model, *training, max_passes=1)
    assert not found.proved and found.dual_gap > mined.dual_gap
    assert "NOT proved" in found.summary()
    # the model given is as good as its gap says, on all rows
    np.testing.assert_array_equal(found.model_.coef_, model.coef_)


def test_a_pool_in_another_order_every_time(pool, training, model):
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning, match="changed between passes.*nothing is proved"):
        found = ss.mine_hard(lambda: [rng.permutation(pool)], model, *training, max_passes=4)
    assert not found.proved


def test_a_pool_that_changes_once(pool, training, model, mined):
    """What was read last counts."""
    other = np.concatenate([pool[1:], np.random.default_rng(4).normal(-1, 1, (300, 5))])
    readings = iter([pool])
    with pytest.warns(ConvergenceWarning, match="about the rows as they were read last;"):
        found = ss.mine_hard(lambda: [next(readings, other)], model, *training)
    fresh = ss.mine_hard(other, model, *training)
    assert found.proved and found.n_pool == N_POOL + 299
    np.testing.assert_array_equal(found.indices, fresh.indices)
    np.testing.assert_array_equal(found.X_kept, fresh.X_kept)
    np.testing.assert_allclose(found.model_.coef_, fresh.model_.coef_, atol=1e-8)


def test_a_model_that_does_not_converge(pool, training):
    model = ss.SafeClassifier("hinge", alpha=1e-3).fit(*training).set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning):
        found = ss.mine_hard(pool, model, *training)
    assert np.isfinite(found.dual_gap)


# --- what is said on the way --------------------------------------------------------------------


def test_verbose_and_progress(pool, training, model, capsys):
    heard = []
    with listening(lambda *words: heard.append(words)):
        found = ss.mine_hard(pool, model, *training, verbose=1)
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
        ss.mine_hard(make(pool), model, *training)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": "none"}, "none of the model's classes"),
        ({"block_size": "3 GB"}, "such as '32 MB'"),
        ({"block_size": 0}, "block_size must be a positive integer"),
        ({"max_passes": 0}, "max_passes must be a positive integer"),
        ({"pool_weight": 0.0}, "pool_weight must be positive"),
        ({"pool_weight": np.ones(7)}, "pool_weight has 7 entries"),
        ({"pool_weight": np.ones(N_POOL + 1)}, f"X_pool has {N_POOL} rows"),
    ],
)
def test_refused_options(options, words, pool, training, model):
    with pytest.raises(ValueError, match=words):
        ss.mine_hard(pool, model, *training, **options)


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
        ss.mine_hard(pool, model, *training)


def test_a_region_that_does_not_suit_is_refused_before_any_pass(training):
    changed = ss.SafeClassifier(alpha=1e-3).fit(*training).set_params(screening="gap_ball")
    with pytest.raises(ValueError, match="needs strong convexity"):
        ss.mine_hard(lambda: pytest.fail("read"), changed, *training)


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
        ss.mine_hard(tmp_path / "wide.csv", model, X, y)
    np.savez(tmp_path / "other.npz", Z=X)
    with pytest.raises(ValueError, match=r"no member 'X.npy'"):
        ss.mine_hard(tmp_path / "other.npz", model, X, y)
    np.savez(tmp_path / "columns.npz", X=np.asfortranarray(X))
    with pytest.raises(ValueError, match="stored row by row"):
        ss.mine_hard(tmp_path / "columns.npz", model, X, y)
    named = ss.SafeClassifier(alpha=1e-3).fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        ss.mine_hard(frame[NAMES[::-1]], named, frame, y)
