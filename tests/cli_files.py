"""Samples in every format the command line reads, and how its tests call it."""

from __future__ import annotations

import os
from inspect import signature
from pathlib import Path

import numpy as np
import pyarrow as pa
from click.testing import CliRunner
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from sklearn.datasets import dump_svmlight_file

from safesift.cli.commands import cli

N, P = 120, 4
NAMES = [f"x{i}" for i in range(P)]


def samples():
    """Numbers with few digits, so that every format holds them exactly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P)).round(3)
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=N) > 0, "yes", "no")
    return X, y, rng.integers(0, 3, size=N)


def write_all(folder):
    """The same samples in every format, with a column of text where there are columns."""
    X, y, weight = samples()
    columns = {name: X[:, i] for i, name in enumerate(NAMES)}
    columns |= {"label": y, "weight": weight, "note": [f'row "{i}", é' for i in range(N)]}
    table = pa.table(columns)
    arrow_csv.write_csv(table, folder / "data.csv")
    parquet.write_table(table, folder / "data.parquet")
    np.savez(folder / "data.npz", X=X, y=y, sample_weight=weight, names=NAMES)
    dump_svmlight_file(X, y == "yes", str(folder / "data.svm"))


# before version 8.2 click mixed both streams unless told otherwise
_SEPARATE = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def run(*arguments, **options):
    return CliRunner(**_SEPARATE).invoke(cli, [str(argument) for argument in arguments], **options)


def command(name):
    """A call of a command on one of the files, whose output lies beside it."""

    def call(data, file, *arguments, output=None, **options):
        output = data / (output or f"kept.{file.partition('.')[2]}")
        columns = ["--target", "label", "--ignore", "note,weight"] if has_columns(file) else []
        return run(name, data / file, *columns, *arguments, "--output", output, **options)

    return call


def has_columns(name):
    return name.endswith((".csv", ".parquet"))


def assert_refused(result, words, folder, left):
    """One sentence, exit code 2, and no file more than before."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert sorted(os.listdir(folder)) == sorted(left)


def kept_rows(data, name):
    """Which rows of the input are in the output, after a look at all their content."""
    if name == "data.npz":
        with np.load(data / "kept.npz") as kept:
            all_rows, rows = samples()[0].tolist(), kept["X"].tolist()
            assert kept["names"].tolist() == NAMES
            assert len(kept["y"]) == len(kept["sample_weight"]) == len(rows)
    elif name == "data.parquet":
        all_rows, rows = (
            parquet.read_table(data / f"{stem}.parquet").to_pylist() for stem in ("data", "kept")
        )
    else:
        all_rows, rows = (
            (data / f"{stem}{Path(name).suffix}").read_text("utf-8").splitlines()
            for stem in ("data", "kept")
        )
        if name == "data.csv":
            assert rows.pop(0) == all_rows.pop(0)
    return [all_rows.index(row) for row in rows]
