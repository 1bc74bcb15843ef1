"""What a file of text holds is found out from its content."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.faces import files
from safesift.faces.files import Columns, Source
from safesift.faces.files.sniffing import find_separator, is_svmlight
from tests.cli_files import run

TABLE = [["a", "b", "y"], ["1", "2.5", "no"], ["3", "4", "yes"]]


def text(rows, separator):
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator).writerows(rows)
    return stream.getvalue().encode()


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", " "])
def test_separators(separator):
    assert find_separator(text(TABLE, separator)) == separator


@pytest.mark.parametrize(
    ("content", "separator"),
    [
        (b"a;b\n1,5;2,5\n3,5;4,5\n", ";"),
        (b"a;b;c\n1,5;2,5;x\n", ";"),
        (b'a,b\n"x;y;z",1\n"u;v;w",2\n', ","),
        (b"name\tage\nDoe, John\t3\nRoe, Jane\t4\n", "\t"),
        (b"first name,last name\nJohn J.,Doe\n", ","),
        (b"a\n1\n2\n", ","),
        (b"", ","),
        (b"\xef\xbb\xbfa;b\r\n1;2\r\n", ";"),
    ],
)
def test_separators_among_others(content, separator):
    assert find_separator(content) == separator


def test_a_head_that_ends_in_the_middle():
    whole = text(TABLE * 50, ";")
    for cut in range(20, 200):
        assert find_separator(whole[:cut], is_all=False) == ";"
    in_quotes = b'a;b\n"1\n2";3\n"4;\n5'
    assert find_separator(in_quotes, is_all=False) == ";"


@given(
    rows=st.lists(
        st.lists(st.text('ab1.,;|\t "\n', max_size=4), min_size=3, max_size=3), min_size=2
    ),
    separator=st.sampled_from([",", "\t", ";", "|"]),
)
def test_tables_written_by_others_are_read_with_their_columns(rows, separator):
    """Quoted throughout, so that nothing in a cell looks like a separator."""
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(rows)
    assert find_separator(stream.getvalue().encode()) == separator


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"1 1:0.5 3:2\n-1 2:1\n", True),
        (b"# made by hand\n+1 1:0.5 # first\n\n0\n", True),
        (b"1 qid:3 1:0.5\n", True),
        (b"1.5e-3 1:-.5\n", True),
        (b"1 1:0.5\n" * 9999 + b"-1 1:0.", True),
        (b"a,y\n1,2\n", False),
        (b"time 1:30\n2 1:0.5\n", False),
        (b"1\n2\n", False),
        (b"1,2\n3,4\n", False),
        (b"", False),
    ],
)
def test_svmlight(content, expected):
    assert is_svmlight(content, is_all=False) is expected


def test_the_last_line_of_a_head_says_nothing():
    assert is_svmlight(b"1 1:0.5\n-1 1:", is_all=False)
    assert not is_svmlight(b"1 1:0.5\n-1 1:", is_all=True)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("d.txt", b"1 1:0.5\n-1 1:2\n", "svmlight"),
        ("d.txt", text(TABLE, ","), "CSV"),
        ("d.txt", text(TABLE, "\t"), "TSV"),
        ("d.data", text(TABLE, ";"), "CSV"),
        ("d.DAT", text(TABLE, " "), "CSV"),
        ("d.txt.gz", gzip.compress(text(TABLE, "\t"), mtime=0), "TSV"),
        ("d.txt.bz2", bz2.compress(b"1 1:0.5\n"), "svmlight"),
        ("d.csv", text(TABLE, "\t"), "CSV"),
        ("d.tsv", text(TABLE, "\t"), "TSV"),
        ("d.tab.xz", lzma.compress(text(TABLE, "\t")), "TSV"),
    ],
)
def test_formats(tmp_path, name, content, expected):
    (tmp_path / name).write_bytes(content)
    assert files.format_of(tmp_path / name).format_name == expected
    columns = Columns() if expected == "svmlight" else Columns(target="y")
    table = files.read(tmp_path / name, columns)
    if expected != "svmlight":
        np.testing.assert_array_equal(table.samples.X, [[1, 2.5], [3, 4]])
        assert table.samples.y.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("beginning", "words"), [(b"PAR1", "is a Parquet file"), (b"PK\x03\x04", "is a npz file")]
)
def test_what_is_no_text(tmp_path, beginning, words):
    (tmp_path / "d.txt").write_bytes(beginning + b"\x00" * 99)
    with pytest.raises(ValueError, match=words):
        files.format_of(tmp_path / "d.txt")


def test_a_given_separator_is_the_one(tmp_path):
    (tmp_path / "d.csv").write_bytes(b"a;b|y\n1;2|0\n3;4|1\n")
    columns = Columns(target="y", ignore=("a;b",), features=())
    with pytest.raises(ValueError, match="no feature left"):
        files.read(Source(tmp_path / "d.csv", separator="|"), columns)


@pytest.mark.parametrize(
    ("given", "separator"), [(";", ";"), ("tab", "\t"), ("\\t", "\t"), ("\t", "\t"), ("space", " ")]
)
def test_sep(tmp_path, given, separator):
    rows = [["n", "m", "y"], *[[str(i), str(i % 3), "no" if i < 5 else "yes"] for i in range(9)]]
    content = text(rows, separator)
    (tmp_path / "d.csv").write_bytes(content)
    result = run("screen", tmp_path / "d.csv", "--sep", given, "--target", "y", "-o",
                 tmp_path / "k.csv")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    lines = (tmp_path / "k.csv").read_bytes().splitlines(keepends=True)
    assert lines[0] == content.splitlines(keepends=True)[0]
    assert set(lines) <= set(content.splitlines(keepends=True))


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("d.csv", "ab", "--sep 'ab' is not one character"),
        ("d.csv", '"', "is not one character"),
        ("d.npz", ",", "--sep is for separated text, and"),
        ("d.svm", ",", "is svmlight"),
    ],
)
def test_sep_is_refused(tmp_path, name, given, words):
    (tmp_path / name).write_bytes(b"1 1:2\n")
    result = run("screen", tmp_path / name, "--sep", given, "--target", "y")
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    ("source", "output", "words"),
    [
        ("d.csv", "k.tsv", "format of the input, CSV: give k.tsv one of the extensions .csv."),
        ("d.tsv", "k.csv", "format of the input, TSV"),
        ("tabs.txt", "k.csv", "format of the input, TSV"),
        ("d.csv", "k.svm", "format of the input, CSV"),
        ("d.csv", "k.xls", "unknown kind of file, use one of .csv, .txt, .data, .dat."),
    ],
)
def test_names_that_would_lie_are_refused(tmp_path, source, output, words):
    (tmp_path / "d.csv").write_bytes(text(TABLE, ","))
    for name in ("d.tsv", "tabs.txt"):
        (tmp_path / name).write_bytes(text(TABLE, "\t"))
    result = run("screen", tmp_path / source, "--target", "y", "-o", tmp_path / output)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    ("header", "refused"),
    [("1.5,2,3", True), ("1,2,1e9", True), ("0,1,2", False), ("a,1,2", False), ("0,1,y", False)],
)
def test_a_first_line_of_numbers_is_no_header(tmp_path, header, refused):
    """The first sample would be lost; pandas numbers columns from 0."""
    (tmp_path / "d.csv").write_text(f"{header}\n1,2,0\n3,4,1\n")
    target = header.split(",")[-1]
    if refused:
        with pytest.raises(ValueError, match="put a line with names before it"):
            files.read(tmp_path / "d.csv", Columns(target=target))
    else:
        assert files.read(tmp_path / "d.csv", Columns(target=target)).n_rows == 2


def test_a_column_without_a_name_is_no_feature(tmp_path):
    (tmp_path / "d.csv").write_text(",a,y\n0,5,no\n1,6,yes\n2,5,no\n3,7,yes\n")
    assert files.read(tmp_path / "d.csv", Columns(target="y")).samples.names == ("a",)
    result = run("screen", tmp_path / "d.csv", "--target", "y")
    assert "The column without a name was taken for row numbers" in " ".join(result.stdout.split())
