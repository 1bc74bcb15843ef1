"""Every format gives the right numbers, and gives its rows back byte by byte."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.datasets import dump_svmlight_file

from safesift.faces import files
from safesift.faces.files import Columns
from safesift.faces.files.streams import replacing

CELLS = 'id,a,"b, b",y,note\n'


def read(path, **columns):
    return files.read(path, Columns(**columns))


def copied(table, keep, name):
    """The bytes that writing some rows gives."""
    path = table.source.path.with_name(name)
    table.write_rows(np.array(keep, dtype=bool), path)
    return path.read_bytes()


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


# --- CSV ----------------------------------------------------------------------------------------


def test_csv_numbers_and_labels(write):
    path = write("d.csv", CELLS + '7,1.50,"2",yes,"x ""y"""\n8, 1e-3 ,+4,no,\n')
    table = read(path, target="y", ignore=("id", "note"))
    np.testing.assert_array_equal(table.samples.X, [[1.5, 2.0], [1e-3, 4.0]])
    assert table.samples.X.dtype == np.float64
    assert table.samples.y.tolist() == ["yes", "no"]
    assert table.samples.weights is None


def test_csv_features_in_the_order_given_and_weights(write):
    path = write("d.csv", CELLS + "7,1,2,yes,\n8,3,4,no,\n")
    table = read(path, target="y", features=("b, b", "a"), weights="id")
    np.testing.assert_array_equal(table.samples.X, [[2, 1], [4, 3]])
    np.testing.assert_array_equal(table.samples.weights, [7, 8])


def test_csv_labels_that_are_numbers_are_compared_as_numbers(write):
    path = write("d.csv", "a,y\n1,1\n2,1.0\n3,0\n")
    assert read(path, target="y").samples.y.tolist() == [1.0, 1.0, 0.0]


ROWS = [
    '007,1.50,"2",yes,"quoted, with comma"\r\n',
    '008,2.0,3,no,"two\nlines and ""quotes"""\n',
    "\n",
    '009,1e0,4,yes,a "loose" quote\r\n',
    "010,.5,5,no,é",
]


@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_csv_rows_are_copied_byte_by_byte(write, bom):
    path = write("d.csv", bom + CELLS + "".join(ROWS))
    table = read(path, target="y", features=("a", "b, b"))
    assert table.n_rows == 4
    assert copied(table, [1, 1, 1, 1], "all.csv") == path.read_bytes()
    first_and_last = bom + CELLS + ROWS[0] + ROWS[2] + ROWS[4]
    assert copied(table, [1, 0, 0, 1], "some.csv").decode() == first_and_last
    assert copied(table, [0, 0, 0, 0], "none.csv").decode() == bom + CELLS + ROWS[2]


def test_csv_bytes_that_are_not_utf8_stay_in_ignored_columns(write):
    path = write("d.csv", b"a,y,note\n1,0,caf\xe9\n2,1,\xff\n")
    table = read(path, target="y", ignore=("note",))
    assert copied(table, [0, 1], "k.csv") == b"a,y,note\n2,1,\xff\n"


@pytest.mark.parametrize(("extension", "module"), [(".gz", gzip), (".bz2", bz2)])
def test_csv_compressed(write, extension, module):
    path = write("d.csv" + extension, module.compress(b"a,y\n1,0\n2,1\n3,0\n"))
    table = read(path, target="y")
    np.testing.assert_array_equal(table.samples.X[:, 0], [1, 2, 3])
    assert module.decompress(copied(table, [1, 0, 1], "k.csv" + extension)) == b"a,y\n1,0\n3,0\n"
    assert copied(table, [1, 0, 1], "plain.csv") == b"a,y\n1,0\n3,0\n"


def test_csv_in_many_blocks(write, monkeypatch):
    monkeypatch.setattr("safesift.faces.files.arrow_files._BLOCK_BYTES", 64)
    rows = [f"{i},{i % 2},{'x' * (i % 9)}\n" for i in range(200)]
    path = write("d.csv", "a,y,t\n" + "".join(rows))
    table = read(path, target="y", ignore=("t",), weights=None)
    np.testing.assert_array_equal(table.samples.X[:, 0], np.arange(200))
    np.testing.assert_array_equal(table.samples.y, np.arange(200) % 2)
    with pytest.raises(ValueError, match=r"'t' holds text .'x' in row 2."):
        read(path, target="y")


def test_csv_that_changed_meanwhile_is_not_copied(write):
    path = write("d.csv", "a,y\n1,0\n2,1\n")
    table = read(path, target="y")
    path.write_text("a,y\n1,0\n")
    with pytest.raises(ValueError, match="had 2 rows"):
        table.write_rows(np.ones(2, dtype=bool), path.with_name("k.csv"))
    assert os.listdir(path.parent) == ["d.csv"]


def _cells(text, separator):
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))[1:]


@given(
    rows=st.lists(st.tuples(st.booleans(), st.text('a", \n\r\t;é', max_size=6)), min_size=1),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    separator=st.sampled_from([",", ";", "\t"]),
)
def test_csv_any_text_keeps_its_row(tmp_path_factory, rows, quoting, end, separator):
    # the writer quotes only the line ends it writes itself: such a file is ambiguous
    assume(
        quoting == csv.QUOTE_ALL or not any(set("\n\r") & set(text) - set(end) for _, text in rows)
    )
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=separator, quoting=quoting, lineterminator=end)
        writer.writerow(["number", "text", "y"])
        writer.writerows([i, text, i % 2] for i, (_, text) in enumerate(rows))
    keep = np.array([kept for kept, _ in rows])
    table = read(path, target="y", ignore=("text",))
    kept = _cells(copied(table, keep, "k.csv").decode(), separator)
    all_rows = _cells(path.read_bytes().decode(), separator)
    assert kept == [row for row, k in zip(all_rows, keep, strict=True) if k]
    np.testing.assert_array_equal(table.samples.X[keep, 0], [float(row[0]) for row in kept])


# --- Parquet ------------------------------------------------------------------------------------


def parquet_file(path, columns, **options):
    schema_metadata = {b"who": b"me"}
    table = pa.table(columns).replace_schema_metadata(schema_metadata)
    parquet.write_table(table, path, **options)
    return path


def test_parquet_round_trip(tmp_path):
    n = 50
    columns = {
        "a.b": pa.array(np.arange(n), pa.int64()),
        "flag": pa.array([i % 3 == 0 for i in range(n)]),
        "y": pa.array(["no", "yes"] * (n // 2)).dictionary_encode(),
        "tags": pa.array([[i, i + 1] for i in range(n)]),
        "when": pa.array(range(n), pa.timestamp("ns")),
    }
    codecs = {"a.b": "zstd", "flag": "none", "y": "gzip", "tags.list.element": "snappy"}
    path = parquet_file(tmp_path / "d.parquet", columns, compression=codecs, row_group_size=20)
    table = read(path, target="y", features=("a.b", "flag"))
    np.testing.assert_array_equal(table.samples.X[:, 0], np.arange(n))
    assert table.samples.y[:2].tolist() == ["no", "yes"]

    keep = np.arange(n) % 4 == 1
    keep[20:40] = False
    table.write_rows(keep, tmp_path / "k.pq")
    before, after = parquet.ParquetFile(path), parquet.ParquetFile(tmp_path / "k.pq")
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    assert after.read().equals(before.read().filter(pa.array(keep)))
    assert after.num_row_groups == 2
    for column in range(before.metadata.num_columns):
        old, new = (f.metadata.row_group(0).column(column) for f in (before, after))
        assert new.compression == old.compression


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((pa.float32(), pa.float32()), np.float32),
        ((pa.float32(), pa.float64()), np.float64),
        ((pa.int8(), pa.float32()), np.float64),
        ((pa.bool_(), pa.uint64()), np.float64),
        ((pa.decimal128(25, 2), pa.float64()), np.float64),
    ],
)
def test_parquet_matrix_type(tmp_path, kinds, expected):
    columns = {f"c{i}": pa.array([1, 0]).cast(kind) for i, kind in enumerate(kinds)}
    path = parquet_file(tmp_path / "d.parquet", {**columns, "y": [0, 1]})
    table = read(path, target="y")
    assert table.samples.X.dtype == expected
    np.testing.assert_array_equal(table.samples.X, [[1, 1], [0, 0]])


def test_parquet_of_pandas_and_polars(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    data = {"a": [1.0, 2.0, 3.0], "y": ["u", "v", "u"]}
    pandas.DataFrame(data).to_parquet(tmp_path / "pandas.parquet")
    polars.DataFrame(data).write_parquet(tmp_path / "polars.parquet")
    for name in ("pandas", "polars"):
        table = read(tmp_path / f"{name}.parquet", target="y")
        assert table.samples.y.tolist() == ["u", "v", "u"]
        table.write_rows(np.array([True, False, True]), tmp_path / "k.parquet")
        assert pandas.read_parquet(tmp_path / "k.parquet")["a"].tolist() == [1.0, 3.0]


# --- npz ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_round_trip(tmp_path, save):
    n, keep = 6, np.array([1, 0, 1, 1, 0, 0], dtype=bool)
    arrays = {
        "X": np.arange(2.0 * n, dtype=np.float32).reshape(n, 2),
        "y": np.array(["u", "v"] * 3),
        "sample_weight": np.arange(n),
        "cube": np.arange(n * 8).reshape(n, 2, 4),
        "names": np.array(["one", "two"]),
        "scalar": np.array(3.5),
    }
    save(tmp_path / "d.npz", **arrays)
    table = read(tmp_path / "d.npz")
    assert table.samples.X.dtype == np.float32
    assert table.samples.weights is None
    np.testing.assert_array_equal(
        read(tmp_path / "d.npz", weights="sample_weight").samples.weights, arrays["sample_weight"]
    )
    table.write_rows(keep, tmp_path / "k.npz")
    with np.load(tmp_path / "k.npz") as kept:
        assert kept.files == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(
                kept[name], array[keep] if len(array.shape) and len(array) == n else array
            )
            assert kept[name].dtype == array.dtype


# --- svmlight -----------------------------------------------------------------------------------

SVMLIGHT = ["# made by hand\n", "1 1:0.50 3:2e0 # first\r\n", "\n", "-1 qid:7 2:1 #\n", "1 3:4"]


@pytest.mark.parametrize("name", ["d.svm", "d.svmlight", "d.libsvm", "d.txt"])
def test_svmlight_round_trip(write, name):
    table = read(write(name, "".join(SVMLIGHT)))
    np.testing.assert_array_equal(table.samples.X.toarray(), [[0.5, 0, 2], [0, 1, 0], [0, 0, 4]])
    assert table.samples.y.tolist() == [1, -1, 1]
    assert copied(table, [1, 1, 1], "all.txt").decode() == "".join(SVMLIGHT)
    expected = "".join(SVMLIGHT[:1] + SVMLIGHT[2:])
    assert copied(table, [0, 1, 1], "some.svm").decode() == expected


@pytest.mark.parametrize(("extension", "module"), [(".gz", gzip), (".bz2", bz2)])
def test_svmlight_compressed(write, extension, module):
    X, buffer = np.random.default_rng(0).normal(size=(5, 3)).round(3), io.BytesIO()
    dump_svmlight_file(X, np.arange(5), buffer)
    table = read(write("d.svm" + extension, module.compress(buffer.getvalue())))
    np.testing.assert_array_equal(table.samples.X.toarray(), X)
    lines = buffer.getvalue().splitlines(keepends=True)
    expected = lines[0] + lines[4]
    assert module.decompress(copied(table, [1, 0, 0, 0, 1], "k.svm" + extension)) == expected


# --- what is refused ----------------------------------------------------------------------------

TABLE = "age,city,height,y\n30,Rome,1.8,yes\n40,Oslo,1.7,no\n"


@pytest.mark.parametrize(
    ("content", "columns", "words"),
    [
        (TABLE, {}, "--target is missing"),
        (TABLE, {"target": ""}, "--target is missing"),
        (TABLE, {"target": "z"}, "no column 'z': there are age, city, height, y"),
        (TABLE, {"target": "y", "features": ("hieght",)}, "did you mean 'height'"),
        (TABLE, {"target": "y", "ignore": ("City",)}, "did you mean 'city'"),
        (TABLE, {"target": "y", "weights": "agee"}, "did you mean 'age'"),
        (TABLE, {"target": "y"}, "'city' holds text .'Rome' in row 1.: .*--one-hot.*--ignore"),
        (TABLE, {"target": "y", "features": ("age",), "ignore": ("city",)}, "not both"),
        (TABLE, {"target": "y", "features": ("age", "y")}, "'y' cannot be a feature"),
        (TABLE, {"target": "y", "weights": "y"}, "both --target and --weights"),
        (TABLE, {"target": "y", "ignore": ("age", "city", "height")}, "no feature left"),
        (TABLE, {"target": "y", "features": ("age",), "kind": "regression"}, "'y' holds text"),
        ("a,a,y\n1,2,0\n", {"target": "y"}, "2 columns named 'a'"),
        ("a,y\n1,0\n,1\n", {"target": "y"}, "'a' has missing values .first in row 2.: .*--impute"),
        (
            "a,y\n1,0\nNA,1\n",
            {"target": "y"},
            "'a' has missing values .first in row 2.: .*--impute",
        ),
        (
            "a,y\n1,0\nnan,1\n",
            {"target": "y"},
            "'a' has missing values .first in row 2.: .*--impute",
        ),
        ("a,y\n1,0\n-inf,1\n", {"target": "y"}, "'a' has infinite values .first in row 2."),
        ("a,y\n1,0\n1_000,1\n", {"target": "y"}, "'a' holds text"),
        ("a;y\n2;0\n-1,5;1\n", {"target": "y"}, "decimal commas .'-1,5' in row 2.: write points"),
        (b"caf\xe9,y\n1,0\n", {"target": "y"}, "d.csv is not UTF-8: convert it"),
        (b"a,y\n1,caf\xe9\n2,b\n", {"target": "y"}, "d.csv is not UTF-8: convert it"),
        ("a,y\n1,0\n".encode("utf-16"), {"target": "y"}, "d.csv is not UTF-8: convert it"),
        ("a,y\n1,0\n2,\n", {"target": "y"}, "'y' has a missing .* row 2"),
        ("a,y\n1,0\n2\n", {"target": "y"}, "cannot be read as CSV: .*Expected 2 columns"),
        ("a,y\n", {"target": "y"}, "holds no rows"),
        ("", {"target": "y"}, "cannot be read as CSV: .*[Ee]mpty"),
    ],
)
def test_csv_refusals(write, content, columns, words):
    with pytest.raises(ValueError, match=words) as caught:
        read(write("d.csv", content), **columns)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1.0, None]), "'a' has missing values .first in row 2.: .*--impute"),
        (pa.array([1.0, np.nan]), "'a' has missing values .first in row 2.: .*--impute"),
        (pa.array(["u", "v"]), "'a' holds text .'u' in row 1"),
        (pa.array(["u", "v"]).dictionary_encode(), "'a' holds text"),
        (pa.array([[1], [2]]), "'a' holds list"),
        (pa.array([1, 2], pa.timestamp("s")), "'a' holds timestamp"),
    ],
)
def test_parquet_refusals(tmp_path, column, words):
    path = parquet_file(tmp_path / "d.parquet", {"a": column, "y": [0, 1]})
    with pytest.raises(ValueError, match=words):
        read(path, target="y")


@pytest.mark.parametrize(
    "column", [pa.array(["u", None]), pa.array([1, None]), pa.array([None, None])]
)
def test_parquet_missing_labels(tmp_path, column):
    path = parquet_file(tmp_path / "d.parquet", {"a": [1, 2], "y": column})
    with pytest.raises(ValueError, match="'y' has a missing"):
        read(path, target="y")


def test_parquet_labels_of_no_use(tmp_path):
    path = parquet_file(tmp_path / "d.parquet", {"a": [1, 2], "y": [[1], [2]]})
    with pytest.raises(ValueError, match=r"'y' holds list.*, not labels"):
        read(path, target="y")


@pytest.mark.parametrize(
    ("arrays", "columns", "words"),
    [
        ({"y": [0, 1]}, {}, "no array 'X'"),
        ({"X": [[1.0]], "y": [0, 1]}, {}, r"one entry per sample, got X \(1, 1\), y \(2,\)"),
        ({"X": [[1.0]], "y": 0}, {}, "one entry per sample"),
        ({"X": [1.0, 2.0], "y": [0, 1]}, {}, "X must be a matrix"),
        ({"X": [["a"], ["b"]], "y": [0, 1]}, {}, "X holds <U1, not numbers"),
        ({"X": [[1.0]], "y": np.array([{}], dtype=object)}, {}, "'y' cannot be read: Object"),
        ({"X": [[1.0]], "y": [0], "sample_weight": [1]}, {"weights": "weights"}, "sample_weight"),
        ({"X": [[1.0]], "y": [0]}, {"features": ("a",)}, "--features names a column"),
    ],
)
def test_npz_refusals(tmp_path, arrays, columns, words):
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(ValueError, match=words):
        read(tmp_path / "d.npz", **columns)


@pytest.mark.parametrize("option", ["target", "features", "ignore", "weights"])
def test_svmlight_has_no_columns(write, option):
    with pytest.raises(ValueError, match=f"--{option} names a column"):
        read(write("d.svm", "1 1:1\n"), **{option: "a"})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.csv.gz", b"not compressed"),
        # without a time stamp, which would be part of the test's name
        ("d.csv.gz", gzip.compress(b"a,y\n1,0\n" * 9999, mtime=0)[:-30]),
        ("d.parquet", b"not parquet"),
        ("d.npz", b"not an archive"),
        ("d.svm", b"one 1:1\n"),
        ("d.svm", b"1 a:1\n"),
        ("d.svm.bz2", b"not compressed"),
    ],
)
def test_broken_files(write, name, content):
    path = write(name, content)
    with pytest.raises(ValueError, match=f"{name} cannot be read as ") as caught:
        read(path, target=None if ".svm" in name or "npz" in name else "y")
    assert "\n" not in str(caught.value)


def test_unknown_extension(tmp_path):
    with pytest.raises(ValueError, match=r"unknown kind of file, use one of \.csv, \.csv\.gz"):
        files.format_of(tmp_path / "d.xls")
    assert files.format_of(tmp_path / "D.CSV.GZ").format_name == "CSV"


# --- complete or not there ----------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["k.csv", "k.csv.gz"])
def test_a_failed_write_leaves_what_was_there(tmp_path, error, name):
    (tmp_path / name).write_text("old")
    with pytest.raises(error), replacing(tmp_path / name) as stream:
        stream.write(b"half")
        raise error
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "old"


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_text("")
    with replacing(tmp_path / "k.csv") as stream:
        stream.write(b"")
    assert (tmp_path / "k.csv").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_mask_of_the_wrong_length_is_refused(write):
    table = read(write("d.svm", "1 1:1\n-1 1:2\n"))
    with pytest.raises(ValueError, match="keep has 3 entries but the table has 2 rows"):
        table.write_rows(np.ones(3, dtype=bool), table.source.path.with_name("k.svm"))
