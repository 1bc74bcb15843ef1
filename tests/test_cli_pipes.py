"""Rows from standard input and to standard output, where nothing but rows goes."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.cli_files import assert_refused, command, run

screen = command("screen")
COLUMNS = ("--target", "label", "--ignore", "note,weight")
ALPHA = ("--alpha", "0.01")


def kept(data, name):
    """What the command writes to a file."""
    result = screen(data, name, *ALPHA, output=f"kept.{name.partition('.')[2]}")
    assert result.exit_code == 0, result.stderr
    return (data / f"kept.{name.partition('.')[2]}").read_bytes()


def tabbed(data):
    """The table with tabs in place of commas: there are commas and quotes in its notes."""
    import csv

    with open(data / "data.csv", newline="", encoding="utf-8") as source:
        rows = list(csv.reader(source))
    with open(data / "data.tsv", "w", newline="", encoding="utf-8") as target:
        csv.writer(target, delimiter="\t").writerows(rows)
    return data / "data.tsv"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("name", ["data.csv", "data.svm"])
def test_from_a_pipe_to_a_pipe(data, name, pack):
    columns = COLUMNS if name == "data.csv" else ()
    content = pack((data / name).read_bytes())
    result = run("screen", "-", *columns, *ALPHA, "-o", "-", input=content)
    assert result.exit_code == 0, result.stderr
    assert result.stdout_bytes == kept(data, name)
    assert "rows kept" in result.stderr
    assert "standard input" in result.stderr and "standard output" in result.stderr


def test_tabs_are_found_out(data):
    content = tabbed(data).read_bytes()
    result = run("screen", "-", *COLUMNS, *ALPHA, "-o", "-", "--json", input=content)
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stderr)
    assert facts["format"] == "TSV"
    assert (facts["input"], facts["output"]) == ("-", "-")
    rows = result.stdout_bytes.splitlines(keepends=True)
    assert set(rows) <= set(content.splitlines(keepends=True))
    assert len(rows) == facts["kept"] + 1
    assert facts["kept"] == len(kept(data, "data.csv").splitlines()) - 1


def test_one_end_only(data):
    content = (data / "data.csv").read_bytes()
    to_file = run("screen", "-", *COLUMNS, *ALPHA, "-o", data / "k.csv", input=content)
    assert to_file.exit_code == 0 and "rows kept" in to_file.stdout
    from_file = run("screen", data / "data.csv", *COLUMNS, *ALPHA, "-o", "-")
    assert from_file.exit_code == 0 and "rows kept" in from_file.stderr
    assert from_file.stdout_bytes == (data / "k.csv").read_bytes() == kept(data, "data.csv")


def test_without_output_nothing_but_words(data):
    result = run("screen", "-", *COLUMNS, input=(data / "data.csv").read_bytes())
    assert "Nothing was written" in result.stdout


def test_compress(data):
    arguments = ("compress", "-", *COLUMNS, "--keep", "10", "-o", "-")
    result = run(
        *arguments, "--weights-output", data / "w.txt", input=(data / "data.csv").read_bytes()
    )
    assert result.exit_code == 0, result.stderr
    assert len(result.stdout_bytes.splitlines()) == 11
    assert len(np.loadtxt(data / "w.txt")) == 10


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("data.parquet", "A pipe cannot hold Parquet"),
        ("data.npz", "A pipe cannot hold npz"),
    ],
)
def test_formats_that_do_not_go_through_a_pipe(data, name, words):
    left = os.listdir(data)
    piped = run("screen", "-", "-o", "-", input=(data / name).read_bytes())
    assert_refused(piped, words, data, left)
    columns = COLUMNS if name == "data.parquet" else ()
    result = run("screen", data / name, *columns, "-o", "-")
    assert_refused(result, "cannot be written to a pipe: name a file with --output", data, left)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "standard input cannot be read as CSV"),
        (b"a,label\n", "standard input holds no rows"),
        (b"a,b\n1,2\n", "There is no column 'label'"),
    ],
)
def test_refuses_what_is_no_table(data, content, words):
    left = os.listdir(data)
    result = run("screen", "-", "--target", "label", "-o", "-", input=content)
    assert_refused(result, words, data, left)


# --- as a process -------------------------------------------------------------------------------


def process(*arguments, **options):
    command = [sys.executable, "-m", "safesift", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, **options)


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_a_reader_that_goes_away_ends_it_quietly(data):
    columns = " ".join(COLUMNS)
    shell = f"{sys.executable} -m safesift screen data.csv {columns} -o - 2>err | true"
    rows = b"".join([(data / "data.csv").read_bytes(), *[b"1,2,3,4,yes,1,\n"] * 20_000])
    (data / "data.csv").write_bytes(rows)
    subprocess.run(shell, shell=True, cwd=data, check=True)
    assert "Traceback" not in (data / "err").read_text()
    assert "Broken" not in (data / "err").read_text()


def test_where_nothing_can_be_written(data):
    """A container: no home, no folder for temporary files, and a file system to read from."""
    nowhere = str(data / "absent")
    env = {**os.environ, "HOME": nowhere, "TMPDIR": nowhere, "XDG_CACHE_HOME": nowhere}
    content = (data / "data.csv").read_bytes()
    done = process("screen", "-", *COLUMNS, *ALPHA, "-o", "-", input=content, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == kept(data, "data.csv")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("screen", "data.svm"), 0),
        (("screen", "absent.svm"), 2),
        (("screen", "data.svm", "--alpha", "much"), 2),
        (("screen",), 2),
        (("--help",), 0),
    ],
)
def test_exit_codes(data, arguments, code):
    done = process(*arguments, cwd=data)
    assert done.returncode == code
    assert bool(done.stderr) == (code != 0)
    assert bool(done.stdout) == (code == 0)
