"""The command line on interval targets, in every format that can hold them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import safesift as ss
from safesift.faces import files
from tests.cli_files import assert_refused, run

N, NAMES = 60, ("x0", "x1")
MODEL = ("--loss", "squared_interval", "--alpha", "0.02")


def samples():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N, 2)).round(3)
    center = (2 * X[:, 0] + 0.1 * rng.normal(size=N)).round(3)
    Y = np.column_stack([center - 0.5, center + 0.75])
    Y[::3, 0], Y[1::3, 1] = -np.inf, np.inf
    return X, Y


@pytest.fixture
def data(tmp_path):
    """The same samples; open ends are empty or infinite cells, nulls, and infinities."""
    X, Y = samples()
    opened = [[end if np.isfinite(end) else None for end in row] for row in Y.tolist()]
    lines = ["x0,x1,low,high"]
    for i in range(N):
        blanks = ("", "") if i % 2 else ("-inf", " Inf")
        ends = [
            blank if end is None else repr(end)
            for end, blank in zip(opened[i], blanks, strict=True)
        ]
        lines.append(",".join([*map(repr, X[i].tolist()), *ends]))
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    columns = {"x0": X[:, 0], "x1": X[:, 1]}
    columns |= {"low": pa.array([low for low, _ in opened]), "high": pa.array(Y[:, 1])}
    parquet.write_table(pa.table(columns), tmp_path / "data.parquet")
    np.savez(tmp_path / "data.npz", X=X, low=Y[:, 0], high=Y[:, 1])
    np.savez(tmp_path / "pairs.npz", X=X, y=Y)
    (tmp_path / "data.svm").write_text("1 1:0.5\n-1 1:0.25\n")
    return tmp_path


COLUMNS = ("--target", "low", "--upper", "high")


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("data.csv", COLUMNS),
        ("data.parquet", COLUMNS),
        ("data.npz", COLUMNS),
        ("pairs.npz", ()),
    ],
)
def test_keeps_the_rows_that_the_library_keeps(data, name, columns):
    X, Y = samples()
    expected = ss.screen(X, Y, loss="squared_interval", alpha=0.02).kept
    assert 0 < expected.sum() < N
    output = data / f"kept.{name.partition('.')[2]}"
    result = run("screen", data / name, *columns, *MODEL, "--output", output)
    assert result.exit_code == 0, result.output
    table = files.read(output, files.Columns(
        target="low" if columns else None, upper="high" if columns else None, kind="interval",
    ))  # fmt: skip
    np.testing.assert_array_equal(table.samples.X, X[expected])
    np.testing.assert_array_equal(table.samples.y, Y[expected])


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("data.csv", ("--target", "low", *MODEL), "--upper is missing"),
        ("data.npz", ("--target", "low", *MODEL), "--upper is missing"),
        ("data.csv", (*COLUMNS, "--loss", "squared"), "--upper is for intervals"),
        ("data.csv", ("--target", "low", "--upper", "hihg", *MODEL), "did you mean 'high'"),
        ("data.csv", ("--target", "low", "--upper", "low", *MODEL), "cannot be both"),
        ("data.csv", ("--target", "high", "--upper", "low", *MODEL), "lower end exceeds"),
        ("data.csv", (*COLUMNS, "--features", "x0,high", *MODEL), "it is --upper"),
        ("data.svm", MODEL, "one target per row"),
    ],
)
def test_refuses_in_one_sentence(data, name, arguments, words):
    left = [path.name for path in data.iterdir()]
    output = data / f"kept.{name.partition('.')[2]}"
    result = run("screen", data / name, *arguments, "--output", output)
    assert_refused(result, words, data, left)


def test_refuses_text_among_the_ends(data):
    (data / "data.csv").write_text("x0,low,high\n1,,2\n2,many,3\n")
    result = run("screen", data / "data.csv", *COLUMNS, *MODEL, "-o", data / "kept.csv")
    assert result.exit_code == 2
    assert "'low' holds text ('many' in row 2)" in result.stderr
