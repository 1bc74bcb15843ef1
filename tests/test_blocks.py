"""Rows in blocks: sources, what they refuse, files that are written, memory and reads."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy import sparse

import safesift as ss
from safesift.arithmetic.tally import counting
from safesift.problem.risk import ChangedDataError
from safesift.workflows.scale import budget
from safesift.workflows.scale.codes import CodeStore, RowMask

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, P = 3000, 4


def samples(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P))
    y = np.where(X[:, 0] - X[:, 1] + 0.4 * rng.normal(size=n) > 0, "yes", "no")
    return X, y, rng.integers(0, 3, n).astype(float)


def table(X, y, weights):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return pa.table({**columns, "label": y, "w": weights, "name": np.arange(len(y)).astype(str)})


FEATURES = [f"x{j}" for j in range(P)]


@pytest.fixture
def parquet_files(tmp_path):
    """Two files of five row groups, below directories that name days."""
    X, y, weights = samples()
    for day, rows in ((1, slice(0, 1600)), (2, slice(1600, N))):
        folder = tmp_path / "in" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(table(X[rows], y[rows], weights[rows]), folder / "a.parquet", 700)
    return tmp_path / "in"


def same_model(found, known, tol=1e-6):
    np.testing.assert_allclose(found.coef_, known.coef_, atol=2e-3)
    assert found.dual_gap_ <= tol
    kept = np.asarray(found.kept_)
    undecided = np.asarray(found.undecided_)
    assert (kept | ~known.kept_)[~undecided].all()
    assert (kept == known.kept_).mean() > 0.98


def in_memory(**parameters):
    X, y, weights = samples()
    return ss.SafeClassifier(alpha=1e-3, **parameters).fit(X, y, weights)


# --- where rows come from -------------------------------------------------------------------


def test_arrays_are_the_same_as_in_memory():
    X, y, weights = samples()
    for matrix in (X, X.astype(np.float32), np.asfortranarray(X), sparse.csr_array(X)):
        rows = ss.blocks.arrays(matrix, y, weights, memory="1 MB")
        assert rows.n_parts > 3
        same_model(ss.SafeClassifier(alpha=1e-3).fit(rows), in_memory())


def test_calls_are_the_same_as_in_memory():
    X, y, weights = samples()
    parts = np.array_split(np.arange(N), 7)

    def make(k):
        rows = parts[k]
        return sparse.csr_array(X[rows]), y[rows], weights[rows]

    rows = ss.blocks.calls(make, 7)
    same_model(ss.SafeClassifier(alpha=1e-3).fit(rows), in_memory())


def test_parquet_with_partitions_and_projection(parquet_files):
    rows = ss.blocks.parquet(
        parquet_files / "**" / "*.parquet", target="label", columns=FEATURES, weight="w"
    )
    assert rows.n_parts == 5 and rows.n_rows == N
    model = ss.SafeClassifier(alpha=1e-3).fit(rows)
    same_model(model, in_memory())
    assert list(model.feature_names_in_) == FEATURES
    days = ss.blocks.parquet(parquet_files, target="label", columns=["x0", "day"])
    assert ss.SafeClassifier(alpha=1e-3).fit(days).coef_.shape == (1, 2)


@pytest.mark.parametrize("kind", ["csv", "arrow", "feather"])
def test_other_formats(kind, tmp_path):
    import pyarrow.csv
    import pyarrow.feather

    X, y, weights = samples()
    rows, path = table(X, y, weights), tmp_path / f"a.{kind}"
    if kind == "csv":
        pyarrow.csv.write_csv(rows, path)
    elif kind == "feather":
        pyarrow.feather.write_feather(rows, path)
    else:
        with pa.ipc.new_file(str(path), rows.schema) as writer:
            writer.write_table(rows)
    source = getattr(ss.blocks, kind)(path, target="label", columns=FEATURES, weight="w")
    same_model(ss.SafeClassifier(alpha=1e-3).fit(source), in_memory())
    kept = ss.screen(source, alpha=1e-3).write(tmp_path / "kept")
    again = getattr(ss.blocks, kind)(kept / f"a.{kind}", target="label", columns=FEATURES)
    assert sum(block.n_rows for block in again.blocks(0)) == in_memory().kept_.sum()


def test_several_classes_class_weights_and_regression():
    X, _, weights = samples()
    rng = np.random.default_rng(1)
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=N), [-0.5, 0.5])
    rows = ss.blocks.arrays(X, y, weights)
    for class_weight in (None, "balanced", {0: 2.0, 1: 1.0, 2: 0.5}):
        model = ss.SafeClassifier(alpha=1e-3, class_weight=class_weight)
        found, known = model.fit(rows), ss.SafeClassifier(alpha=1e-3, class_weight=class_weight)
        known.fit(X, y, weights)
        np.testing.assert_allclose(found.coef_, known.coef_, atol=3e-3)
        assert len(found.kept_per_class_) == 3 and found.classes_.tolist() == [0, 1, 2]
        assert (found.predict(X) == known.predict(X)).mean() > 0.999
    target = X @ [1.0, -1.0, 0.0, 0.5] + 3.0 + 0.3 * rng.normal(size=N)
    for loss in ("squared_epsilon_insensitive", "huber", "squared"):
        found = ss.SafeRegressor(loss, alpha=1e-3).fit(ss.blocks.arrays(X, target, weights))
        known = ss.SafeRegressor(loss, alpha=1e-3).fit(X, target, weights)
        np.testing.assert_allclose(found.coef_, known.coef_, atol=2e-3)
        assert abs(found.intercept_ - known.intercept_) < 2e-3


def test_intervals_and_balls():
    X, _, weights = samples()
    rng = np.random.default_rng(1)
    middle = X @ [1.0, -1.0, 0.0, 0.5] + 0.3 * rng.normal(size=N)
    ends = np.column_stack([middle - 0.5, np.where(middle > 1, np.inf, middle + 0.5)])
    found = ss.IntervalRegressor(alpha=1e-3).fit(ss.blocks.arrays(X, ends, weights))
    known = ss.IntervalRegressor(alpha=1e-3).fit(X, ends, weights)
    np.testing.assert_allclose(found.coef_, known.coef_, atol=2e-3)
    assert (np.asarray(found.kept_) == known.kept_).mean() > 0.99
    for penalty in ("l1", "elastic_net", ss.penalties.L2Ball(0.5), ss.penalties.L1Ball(0.5)):
        arguments = {"penalty": penalty, "alpha": 1e-2, "loss": "huber"}
        found = ss.SafeRegressor(**arguments).fit(ss.blocks.arrays(X, middle, weights))
        known = ss.SafeRegressor(**arguments).fit(X, middle, weights)
        np.testing.assert_allclose(found.coef_, known.coef_, atol=5e-3)
        assert ((found.coef_ == 0) == (known.coef_ == 0)).all()


def test_columns_in_units_of_their_deviation():
    X, y, weights = samples()
    far = X * [1.0, 1e3, 1e-2, 1.0] + [1e4, 0.0, 3.0, -1.0]
    s = weights / weights.sum()
    mean = s @ far
    deviation = np.sqrt(s @ (far - mean) ** 2)
    known = ss.SafeClassifier(alpha=1e-3).fit((far - mean) / deviation, y, weights)
    found = ss.SafeClassifier(alpha=1e-3).fit(ss.blocks.arrays(far, y, weights, scale="standard"))
    np.testing.assert_allclose(found.coef_ * deviation, known.coef_, atol=2e-3)
    np.testing.assert_allclose(found.scaling_.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.scaling_.deviation, deviation, rtol=1e-10)
    assert (found.predict(far) == known.predict((far - mean) / deviation)).mean() > 0.999
    sparse_rows = ss.blocks.arrays(sparse.csr_array(X), y, weights, scale="standard")
    found = ss.SafeClassifier(alpha=1e-3).fit(sparse_rows)
    mean = s @ X
    deviation = np.sqrt(s @ (X - mean) ** 2)
    known = ss.SafeClassifier(alpha=1e-3).fit((X - mean) / deviation, y, weights)
    np.testing.assert_allclose(found.coef_ * deviation, known.coef_, atol=2e-3)
    with pytest.raises(ValueError, match="centred by the intercept"):
        ss.SafeClassifier(fit_intercept=False).fit(sparse_rows)


def test_a_path_shares_its_passes():
    X, y, _ = samples()
    alphas = [1e-3, 1e-1, 1e-2]
    with counting() as tally:
        found = ss.safe_path(ss.blocks.arrays(X, y), alphas=alphas)
    known = ss.safe_path(X, y, alphas=alphas)
    assert found.alphas.tolist() == alphas
    np.testing.assert_allclose(found.coefs, known.coefs, atol=2e-3)
    assert (found.relative_gaps <= 1e-6).all()
    assert found.passes.sum() <= 6
    assert tally.rows <= 12 * N  # some rows of the sample are counted when they are copied
    with pytest.raises(ValueError, match="list some, as alphas"):
        ss.safe_path(ss.blocks.arrays(X, y))


# --- what is refused --------------------------------------------------------------------------


def test_what_cannot_be_read_is_named(tmp_path, parquet_files):
    X, y, weights = samples()
    bad = X.copy()
    bad[1650, 2] = np.nan
    pq.write_table(table(bad[1600:], y[1600:], weights[1600:]), parquet_files / "day=2/a.parquet",
                   row_group_size=40)  # fmt: skip
    rows = ss.blocks.parquet(parquet_files, target="label", columns=FEATURES)
    with pytest.raises(ValueError, match=r"day=2/a.parquet, row group 1: .*row 10, column 'x2'"):
        ss.SafeClassifier().fit(rows)
    with pytest.raises(ValueError, match="no column 'y'"):
        ss.blocks.parquet(parquet_files, target="y")
    with pytest.raises(ValueError, match="there are no such files"):
        ss.blocks.parquet(parquet_files / "*.nothing", target="label")
    with pytest.raises(FileNotFoundError, match="no such file"):
        ss.blocks.parquet(tmp_path / "nothing.parquet", target="label")
    with pytest.raises(ValueError, match="'name' of type string holds no numbers"):
        ss.SafeClassifier().fit(ss.blocks.parquet(parquet_files, target="label"))


def test_blocks_that_do_not_fit_together():
    X, y, _ = samples(20)

    def other_columns(k):
        return (X, y) if k < 2 else (X[:, :3], y)

    with pytest.raises(ValueError, match="block 2 has 3 columns, but block 0 has 4"):
        ss.screen(ss.blocks.calls(other_columns, 3))
    with pytest.raises(ValueError, match="block 1 has labels such as 1, but block 0 such as"):
        ss.screen(ss.blocks.calls(lambda k: (X, y if k == 0 else np.ones(20, int)), 2))
    with pytest.raises(ValueError, match=r"block 0: the weight is negative \(first in row 3\)"):
        ss.screen(ss.blocks.calls(lambda k: (X, y, np.where(np.arange(20) == 3, -1.0, 1.0)), 1))
    with pytest.raises(ValueError, match=r"block 1: y contains NaN \(first in row 0\)"):
        ss.screen(ss.blocks.calls(lambda k: (X, np.full(20, [1.0, np.nan][k])), 2), loss="huber")
    with pytest.raises(ValueError, match="block 0, from row 0 on: y must hold numbers"):
        ss.screen(ss.blocks.calls(lambda k: (X, y), 1), loss="huber")
    ends = np.column_stack([X[:, 0] + 1.0, X[:, 0]])
    with pytest.raises(ValueError, match="from row 0 on: y has intervals whose lower"):
        ss.screen(ss.blocks.arrays(X, ends), loss="squared_interval")
    with pytest.raises(ValueError, match="block 0: y is continuous"):
        ss.screen(ss.blocks.calls(lambda k: (X, X[:, 0]), 1))
    with pytest.raises(ValueError, match="one class only"):
        ss.screen(ss.blocks.arrays(X, np.ones(20)))
    with pytest.raises(ValueError, match="there are no rows"):
        ss.screen(ss.blocks.calls(lambda k: (X[:0], y[:0]), 2))
    with pytest.raises(TypeError, match="must return"):
        ss.screen(ss.blocks.calls(lambda k: X, 1))
    with pytest.raises(ValueError, match="20 rows from row 0 on, but 19 targets"):
        ss.screen(ss.blocks.calls(lambda k: (X, y[1:]), 1))


def test_labels_are_those_that_are_labels_in_memory():
    X, y, _ = samples(20)
    with pytest.raises(ValueError, match=r"y is continuous \(such as inf in row"):
        ss.SafeClassifier().fit(ss.blocks.arrays(X, np.where(y == y[0], np.inf, 0.0)))
    with pytest.raises(ValueError, match="y holds complex objects, which are no labels"):
        ss.SafeClassifier().fit(ss.blocks.arrays(X, np.where(y == y[0], 1j, 0.0)))
    wide = np.where(y == y[0], 1, 0).astype(np.longdouble)
    assert ss.SafeClassifier().fit(ss.blocks.arrays(X, wide)).classes_.tolist() == [0, 1]


def test_options_without_a_meaning_are_refused():
    X, y, _ = samples(20)
    rows = ss.blocks.arrays(X, y)
    with pytest.raises(ValueError, match=r"y=.* has no meaning for fit"):
        ss.SafeClassifier().fit(rows, "no")
    with pytest.raises(ValueError, match=r"^y has no meaning for fit of rows that come in blocks"):
        ss.SafeClassifier().fit(rows, y)
    with pytest.raises(ValueError, match="solver='newton' has no meaning"):
        ss.screen(rows, solver="newton")
    with pytest.raises(ValueError, match="cv='loo' needs rows in memory"):
        ss.SafeClassifierCV(cv="loo").fit(rows)
    with pytest.raises(ValueError, match="scoring='roc_auc' has no meaning for fit"):
        ss.SafeClassifierCV(scoring="roc_auc").fit(rows)
    with pytest.raises(ValueError, match="alphas='certified' needs rows in memory"):
        ss.SafeClassifierCV("certified").fit(rows)
    with pytest.raises(ValueError, match="scale='standard' has no meaning for rows that are kept"):
        ss.compress(ss.blocks.arrays(X, y, scale="standard"), n_keep=5)
    with pytest.raises(TypeError, match="SafeKernelClassifier does not take rows in blocks"):
        ss.SafeKernelClassifier().fit(rows)
    with pytest.raises(ValueError, match="scale must be None or 'standard'"):
        ss.blocks.arrays(X, y, scale="robust")
    with pytest.raises(ValueError, match="epsilon must be one number"):
        ss.SafeRegressor(epsilon=np.ones(20)).fit(ss.blocks.arrays(X, X[:, 0]))


def test_data_that_change_between_passes(parquet_files):
    X, y, _ = samples()
    n_calls = [0]

    def unsteady(k):
        n_calls[0] += 1
        return X[k::3] + (1e-9 if n_calls[0] == 5 else 0.0), y[k::3]

    # with more memory nobody would read them again
    with pytest.raises(ChangedDataError, match=r"block 1 changed .* 1000 rows from row 0"):
        ss.SafeClassifier(n_jobs=1).fit(ss.blocks.calls(unsteady, 3, memory=20_000))
    n_calls[0] = 0

    def relabelled(k):
        n_calls[0] += 1
        return X[k::3], np.where(n_calls[0] == 6, "maybe", y[k::3])

    with pytest.raises(ChangedDataError, match="block 2 changed"):
        ss.SafeClassifier(n_jobs=1).fit(ss.blocks.calls(relabelled, 3, memory=20_000))
    rows = ss.blocks.parquet(parquet_files, target="label", columns=FEATURES)
    result = ss.screen(rows, alpha=1e-3)
    other = table(X[:1600] + 1.0, y[:1600], np.ones(1600))
    pq.write_table(other, parquet_files / "day=1/a.parquet", row_group_size=700)
    with pytest.raises((ChangedDataError, OSError), match=r"day=1/a.parquet, row group 0"):
        result.write(parquet_files.parent / "kept")
    assert sorted(os.listdir(parquet_files.parent)) == ["in"]


# --- what is written --------------------------------------------------------------------------


def test_kept_rows_are_written_as_they_came(parquet_files):
    rows = ss.blocks.parquet(parquet_files, target="label", columns=FEATURES, weight="w")
    result = ss.screen(rows, alpha=1e-3)
    folder = result.write(parquet_files.parent / "kept")
    kept = np.asarray(result.kept)
    names = []
    for day in (1, 2):
        found = pq.read_table(folder / f"day={day}" / "a.parquet", partitioning=None)
        assert found.schema.names == [*FEATURES, "label", "w", "name"]
        names += found.column("name").to_pylist()
    expected = [*np.arange(1600).astype(str), *np.arange(N - 1600).astype(str)]
    assert names == [name for name, keep in zip(expected, kept, strict=True) if keep]
    record = json.loads((folder / "safesift.json").read_text())
    X, y, weights = samples()
    few = ss.SafeClassifier(alpha=record["alpha_kept"], tol=1e-9)
    few.fit(X[kept], y[kept], weights[kept])
    np.testing.assert_allclose(few.coef_, result.to_estimator().coef_, atol=2e-3)
    with pytest.raises(FileExistsError, match="exists already"):
        result.write(folder)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_kept_rows_of_arrays(storage, tmp_path):
    X, y, weights = samples()
    rows = ss.blocks.arrays(storage(X), y, weights, memory="1 MB")
    result = ss.screen(rows, alpha=1e-3)
    folder = result.write(tmp_path / "kept")
    parts = [np.load(path) for path in sorted(folder.glob("*.npz"))]
    places = np.concatenate([part["row"] for part in parts])
    assert (places == np.flatnonzero(np.asarray(result.kept))).all()
    assert (np.concatenate([part["y"] for part in parts]) == y[places]).all()
    if storage is np.asarray:
        assert (np.concatenate([part["X"] for part in parts]) == X[places]).all()
    else:
        first = parts[0]
        matrix = sparse.csr_array((first["data"], first["indices"], first["indptr"]))
        assert (matrix.toarray() == X[first["row"]]).all()


# --- what is held -----------------------------------------------------------------------------


@pytest.mark.parametrize(("n_codes", "budget"), [(4, 10**6), (4, 0), (6, 0), (20, 0), (20, 10**6)])
def test_pieces_of_rows_in_memory_and_on_disk(n_codes, budget):
    rng = np.random.default_rng(0)
    lengths = {0: 7, 1: 0, 2: 1, 3: 1000}
    store = CodeStore(lengths, 2, n_codes, budget)
    assert store.on_disk == (budget == 0)
    known = {
        (part, k): rng.integers(0, n_codes, n).astype(np.uint8)
        for part, n in lengths.items()
        for k in (0, 1)
    }
    for (part, k), codes in known.items():
        store.put(part, k, codes)
    store.patch(3, 1, np.array([5, 999]), np.array([1, 2], np.uint8))
    known[3, 1][[5, 999]] = 1, 2
    for whose in (store, pickle.loads(pickle.dumps(store))):
        for (part, k), codes in known.items():
            assert (whose.get(part, k) == codes).all()
    true = np.arange(n_codes) == 1
    mask = RowMask(store, [0, 1], true)
    expected = np.concatenate([true[known[p, 0]] | true[known[p, 1]] for p in lengths])
    assert (np.asarray(mask) == expected).all()
    assert mask.sum() == expected.sum() and len(mask) == 1008


def test_a_budget_that_no_matrix_fits_into():
    X = np.random.default_rng(0).normal(size=(2000, 400))
    rows = ss.blocks.arrays(X, X[:, 0] > 0, memory="5 MB")
    with pytest.raises(MemoryError, match="matrices of 400 columns for one problem need"):
        ss.SafeClassifier().fit(rows)


def test_fewer_problems_at_a_time_where_matrices_are_large():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 100))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    known = ss.SafeClassifier(alpha=1e-2).fit(ss.blocks.arrays(X, y))
    found = ss.SafeClassifier(alpha=1e-2).fit(ss.blocks.arrays(X, y, memory="4 MB"))
    passes = [history[-1]["passes"] for history in found.history_]
    assert passes[0] < passes[1] < passes[2]
    np.testing.assert_allclose(found.coef_, known.coef_, atol=1e-2)


def test_wide_sparse_rows_are_held(monkeypatch):
    monkeypatch.setattr(budget, "_WHOLE_SHARE", 0.0)
    rng = np.random.default_rng(0)
    X = sparse.random(3000, 6000, 0.003, format="csr", random_state=0)
    X.data[:] = 1.0
    y = X @ rng.normal(size=6000) > 0
    rows = ss.blocks.arrays(X, y, memory="60 MB")
    found = ss.SafeClassifier(alpha=1e-2, fit_intercept=False).fit(rows)
    known = ss.SafeClassifier(alpha=1e-2, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(found.coef_, known.coef_, atol=5e-3)
    wrong = np.asarray(~np.asarray(found.kept_)) & known.kept_ & ~known.undecided_
    assert not wrong.any()


def run(program: str, *arguments: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


MAKE = """
    import json, sys
    import numpy as np
    import safesift as ss

    n, p, length = 1_500_000, 40, 50_000

    def make(k):
        rng = np.random.default_rng(k)
        X = rng.standard_normal((length, p), dtype=np.float32)
        return X, X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(length, dtype=np.float32) > 0

    def anonymous():
        fields = dict(line.split(":") for line in open("/proc/self/status"))
        return 1024 * int(fields["RssAnon"].split()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_memory_is_bounded_and_rows_are_read_once_in_a_pass():
    """240 MB of rows are fitted with far less than that, and nobody reads more than there is."""
    program = (
        MAKE
        + """
    reads, peak = [], [0]

    def counted(k):
        reads.append(k)
        peak[0] = max(peak[0], anonymous())
        return make(k)

    ss.SafeClassifier(alpha=1e-3, n_jobs=1).fit(ss.blocks.calls(make, 2))  # compiled by now
    before, reads[:], peak[0] = anonymous(), [], 0
    rows = ss.blocks.calls(counted, n // length, memory="60 MB")
    model = ss.SafeClassifier(alpha=1e-3, n_jobs=1).fit(rows)
    passes = model.history_[-1]["passes"]
    print(json.dumps({"grown": peak[0] - before, "reads": len(reads), "passes": passes,
                      "blocks": n // length, "gap": model.dual_gap_}))
    """
    )
    found = run(program)
    assert found["passes"] <= 6
    # some blocks are kept, and read once only
    assert found["blocks"] < found["reads"] <= found["passes"] * found["blocks"]
    assert found["grown"] < 140e6


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_a_memory_map_is_read_within_the_budget(tmp_path):
    program = (
        MAKE
        + """
    from safesift.estimators import linear

    linear._LARGEST_MAP, linear._MEMORY_OF_MAPS = 10**6, "60 MB"
    path = sys.argv[1]
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, p))
    y = np.empty(n, bool)
    for k in range(n // length):
        X[k * length : (k + 1) * length], y[k * length : (k + 1) * length] = make(k)
    del X
    ss.SafeClassifier(alpha=1e-3, n_jobs=1).fit(ss.blocks.calls(make, 2))
    X = np.load(path, mmap_mode="r")
    before = anonymous()
    model = ss.SafeClassifier(alpha=1e-3, n_jobs=1).fit(X, y)
    print(json.dumps({"grown": anonymous() - before, "gap": model.dual_gap_,
                      "kept": int(model.kept_.sum())}))
    """
    )
    found = run(program, str(tmp_path / "X.npy"))
    assert found["grown"] < 120e6
    assert 0 < found["kept"] < 1_500_000
