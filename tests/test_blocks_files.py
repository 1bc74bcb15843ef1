"""Rows in files: which ones are read, what their columns are, and that none is lost."""

from __future__ import annotations

import csv
from decimal import Decimal

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import safesift as ss
from safesift.design.file_source import found_files
from safesift.workflows.scale import budget
from safesift.workflows.scale.driver import Driver
from safesift.workflows.scale.passes import pieces_of
from tests.cli_files import run
from tests.test_blocks import FEATURES, samples, table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(path, seed=0, n=200, **columns):
    """A file of some rows, in which some columns are others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    X, y, weights = samples(n, seed)
    rows = table(X, y, weights)
    for name, values in columns.items():
        rows = rows.set_column(rows.schema.names.index(name), name, pa.array(values))
    pq.write_table(rows, path)
    return path


def read(paths, **more):
    return ss.blocks.parquet(paths, target="label", columns=FEATURES, **more)


# --- which files ------------------------------------------------------------------------------


def test_files_of_one_name_are_written_to_different_places(tmp_path):
    paths = [write(tmp_path / "a/x.parquet", 1), write(tmp_path / "x.parquet", 2)]
    result = ss.screen(read(paths), alpha=0.1)
    result.write(tmp_path / "kept")
    written = {
        str(path.relative_to(tmp_path / "kept")): len(pq.read_table(path))
        for path in (tmp_path / "kept").rglob("*.parquet")
    }
    assert set(written) == {"a/x.parquet", "x.parquet"}
    assert sum(written.values()) == result.kept.sum()


def test_a_file_that_is_named_twice_is_refused(tmp_path):
    paths = [write(tmp_path / "a.parquet", 1), write(tmp_path / "b.parquet", 2)]
    for given in ([*paths, paths[0]], [tmp_path / "*.parquet", paths[1]], [tmp_path, paths[0]]):
        with pytest.raises(ValueError, match="is there twice, and its rows would count twice"):
            read(given)


def test_a_name_with_brackets_is_a_name_where_there_is_such_a_file(tmp_path):
    named = write(tmp_path / "a[1].parquet", n=50)
    write(tmp_path / "a1.parquet", n=70)
    assert found_files(named) == (str(tmp_path), [str(named)])
    assert read(named).n_rows == 50
    named.unlink()
    assert read(named).n_rows == 70


def test_what_lies_below_hidden_directories_is_not_read(tmp_path):
    for name in ("a.parquet", "b/c.parquet", ".kept.17.part/a.parquet", "_temporary/0/a.parquet"):
        write(tmp_path / "in" / name)
    root, files = found_files(tmp_path / "in")
    assert files == [f"{root}/a.parquet", f"{root}/b/c.parquet"]
    # the directory itself may be anywhere
    assert len(found_files(tmp_path / "in/.kept.17.part")[1]) == 1


# --- what their columns are -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"label": [True, False] * 100}, {"label": [1, -1] * 100}),
        ({"label": [1, -1] * 100}, {"label": ["1", "-1"] * 100}),
        ({"label": ["1", "-1"] * 100}, {"label": [1, -1] * 100}),
        ({"x1": np.ones(200, dtype=np.float32)}, {"x1": np.full(200, 0.1)}),
        ({"x1": np.ones(200)}, {"x1": ["0.1"] * 200}),
    ],
)
def test_columns_that_would_not_be_what_they_are_are_refused(first, second, tmp_path):
    paths = [write(tmp_path / "a.parquet", **first), write(tmp_path / "b.parquet", **second)]
    (name,) = first
    with pytest.raises(ValueError, match=f"column '{name}' is of type .* in .*b.parquet.*, but"):
        ss.screen(read(paths))


DAYS = pa.array(np.array(["2024-01-01", "2024-01-02"] * 100, dtype="datetime64[D]"))
PRICES = pa.array([Decimal("0.5"), Decimal("1.5")] * 100)


@pytest.mark.parametrize("labels", [DAYS, PRICES], ids=["days", "prices"])
def test_labels_that_a_model_file_cannot_have_are_refused_before_training(labels, tmp_path):
    path = write(tmp_path / "a.parquet", label=labels)
    done = run("fit", path, "--target", "label", "--features", ",".join(FEATURES), "--memory",
               "1GB", "-o", tmp_path / "model.json")  # fmt: skip
    assert done.exit_code == 2 and "Traceback" not in done.stderr
    assert f"the column 'label' is of type {labels.type}, and the labels of a model" in said(done)
    assert not (tmp_path / "model.json").exists()


def said(done) -> str:
    """Without the breaks of lines."""
    return " ".join(done.stderr.split())


def test_labels_that_are_objects_are_refused_by_what_they_are(tmp_path):
    with pytest.raises(ValueError, match=r"a.parquet, row group 0: y holds Decimal objects"):
        ss.SafeClassifier().fit(read(write(tmp_path / "a.parquet", label=PRICES)))
    X, _, _ = samples(200)
    for y in ([1, "a"] * 100, ["a"] * 100 + [1.5] * 100):
        with pytest.raises(ValueError, match="block 0: y mixes labels of different types"):
            ss.SafeClassifier().fit(ss.blocks.calls(lambda k, y=y: (X, np.array(y, object)), 2))


def test_columns_of_other_types_that_are_what_they_are(tmp_path):
    whole = np.arange(200) % 7
    paths = [
        write(tmp_path / "a.parquet", x1=whole.astype(float)),
        write(tmp_path / "b.parquet", x1=whole),
        write(tmp_path / "c.parquet", x1=whole.astype(np.float32)),
        write(tmp_path / "d.parquet", label=pa.array(samples(200)[1]).dictionary_encode()),
    ]
    rows = read(paths)
    for part in range(3):
        (block,) = rows.blocks(part)
        assert (block.X[:, 1] == whole).all()
    assert ss.screen(rows).certified


def test_features_that_are_missing_are_not_scored(tmp_path):
    write(tmp_path / "a.parquet")
    columns = ("--target", "label", "--features", ",".join(FEATURES), "--memory", "1 GB")
    model, scores = tmp_path / "model.json", tmp_path / "scores.csv"
    assert run("fit", tmp_path / "a.parquet", *columns, "-o", model).exit_code == 0
    for value in (np.nan, np.inf, None):
        write(tmp_path / "b.parquet", x1=[0.5] * 7 + [value] + [0.5] * 192)
        result = run("predict", model, tmp_path / "b.parquet", "-o", scores)
        assert result.exit_code == 2 and not scores.exists()
        assert "b.parquet, row group 0: a feature is missing or infinite" in result.stderr
        assert "column 'x1'" in result.stderr


@pytest.mark.parametrize(
    "roles",
    [{"columns": ["x0", "label"]}, {"columns": ["x0", "x0"]}, {"weight": "label"}],
)
def test_a_column_has_one_part_to_play(roles, tmp_path):
    with pytest.raises(ValueError, match=r"the column '\w+' is named twice"):
        ss.blocks.parquet(write(tmp_path / "a.parquet"), target="label", **roles)


def test_no_file_that_is_read_is_written_over(tmp_path):
    paths = [write(tmp_path / "in" / name, n=50) for name in ("a.parquet", "b.parquet")]
    columns = ("--target", "label", "--features", ",".join(FEATURES))
    pattern, model = tmp_path / "in/*.parquet", tmp_path / "model.json"
    assert run("fit", pattern, *columns, "-o", model).exit_code == 0
    for result in (
        run("fit", pattern, *columns, "-o", paths[1], "--overwrite"),
        run("predict", model, pattern, "-o", paths[1], "--overwrite"),
    ):
        assert result.exit_code == 2 and "b.parquet is the input itself" in result.stderr
    assert len(pq.read_table(paths[1])) == 50


def test_columns_that_play_no_part_are_written_as_text_has_them(tmp_path):
    X, y, _ = samples(60)
    ids = [f"0{12345678901234567890 + k}" for k in range(60)]
    for name in ("a", "b"):
        lines = ["id,x0,x1,label,when"]
        lines += [f"{i},{a},{b},{z},2020-01-01T00:00:00+02:00" for i, (a, b), z in
                  zip(ids, X[:, :2].tolist(), y, strict=True)]  # fmt: skip
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    rows = ss.blocks.csv(tmp_path / "*.csv", target="label", columns=["x0", "x1"])
    result = ss.screen(rows, alpha=0.1)
    result.write(tmp_path / "kept")
    kept = np.asarray(result.kept).reshape(2, 60)
    for name, mine in zip(("a", "b"), kept, strict=True):
        with open(tmp_path / "kept" / f"{name}.csv", newline="") as file:
            written = list(csv.DictReader(file))
        assert [row["id"] for row in written] == [i for i, k in zip(ids, mine, strict=True) if k]
        assert {row["when"] for row in written} == {"2020-01-01T00:00:00+02:00"}
        assert [float(row["x0"]) for row in written] == X[mine, 0].tolist()


# --- runs that go on --------------------------------------------------------------------------


def test_what_ran_out_of_passes_is_folded_anew_by_a_run_that_goes_on(tmp_path, monkeypatch):
    """Every row is in the sums once, by the pieces that are known of it."""
    X, y, _ = samples()
    monkeypatch.setattr(budget, "_WHOLE_SHARE", 0.0)
    monkeypatch.setattr(budget.Size, "at_once", 1)

    def path():
        rows = ss.blocks.arrays(X, y, memory=100_000, checkpoint=tmp_path / "run")
        return ss.safe_path(rows, alphas=[1e-1, 1e-2], tol=1e-9)

    with monkeypatch.context() as patched:
        patched.setattr(Driver.run, "__defaults__", (2,))  # one pass for each of both problems
        with pytest.warns(ConvergenceWarning, match="did not converge for 2 of 2"):
            path()
    ones = np.column_stack([X, np.ones(len(X))])
    numbers = []
    taken = Driver._take

    def take(self, state, *more):
        told = taken(self, state, *more)
        numbers.append(state.number)
        codes = np.concatenate(
            [self._codes.get(part, state.number) for part in self._codes.lengths]
        )
        curved = [0.0, 0.0, *(np.max(piece.quadratic) for piece in pieces_of(state.query.loss))]
        known = (ones.T * np.array(curved)[codes]) @ ones / len(X)
        np.testing.assert_allclose(state.balance.folded(ones.shape[1]).Q, known, atol=1e-12)
        return told

    monkeypatch.setattr(Driver, "_take", take)
    path()
    assert set(numbers) == {0, 1}
