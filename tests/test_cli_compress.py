"""The command compress: the rows of the library in every format, what it says and refuses."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import safesift as ss
from safesift.cli.work import amount
from tests.cli_files import N, assert_refused, command, kept_rows, run, samples

compress = command("compress")


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.npz", "data.svm"])
def test_keeps_the_rows_that_the_library_keeps(data, name):
    before = (data / name).read_bytes()
    result = compress(data, name, "--keep", "25%", "--random-state", "3", "--json")
    assert result.exit_code == 0, result.stderr
    X, y, _ = samples()
    expected = ss.compress(X, y, n_keep=0.25, reweight=False, random_state=3)
    assert kept_rows(data, name) == expected.indices.tolist()
    assert (data / name).read_bytes() == before
    summary = json.loads(result.stdout)
    assert (summary["samples"], summary["kept"]) == (N, 30)
    assert summary["alpha"] == 1e-4
    assert summary["alpha_kept"] == pytest.approx(expected.alpha)
    assert summary["method"] == "hybrid"
    assert summary["format"] in ("CSV", "Parquet", "npz", "svmlight")
    assert summary["weights_output"] is None
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--method", "screening"], {"method": "screening"}),
        (["--method", "random", "--stratify"], {"method": "random", "stratify": True}),
        (["--loss", "safe_logistic", "--mu", "0.5", "--intercept"],
         {"loss": ss.losses.SafeLogistic(0.5), "fit_intercept": True}),
        (["--penalty", "l1", "--method", "leverage"], {"penalty": "l1", "method": "leverage"}),
        (["--method", "screening", "--no-intercept", "--screening", "gap_ball"],
         {"method": "screening", "fit_intercept": False, "screening": "gap_ball"}),
    ],
)  # fmt: skip
def test_options_reach_the_library(data, arguments, options):
    shared = ["--keep", "20", "--alpha", "0.02", "--random-state", "0"]
    result = compress(data, "data.csv", *shared, *arguments)
    assert result.exit_code == 0, result.stderr
    X, y, _ = samples()
    how = {"alpha": 0.02, "reweight": False, "random_state": 0} | options
    expected = ss.compress(X, y, n_keep=20, **how)
    assert kept_rows(data, "data.csv") == expected.indices.tolist()


def test_weights_are_written_beside(data):
    result = run(
        "compress", data / "data.csv", "--target", "label", "--ignore", "note", "--weights",
        "weight", "--keep", "0.3", "--random-state", "1", "-o", data / "kept.csv",
        "--weights-output", data / "weights.txt",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    X, y, weight = samples()
    expected = ss.compress(X, y, n_keep=0.3, sample_weight=weight, random_state=1)
    np.testing.assert_array_equal(np.loadtxt(data / "weights.txt"), expected.weights)
    assert kept_rows(data, "data.csv") == expected.indices.tolist()
    text = " ".join(result.stdout.split())
    assert "weights.txt" in text.replace(" ", "")
    assert "with these sample weights and alpha = 0.0001" in text


def test_numbers_and_intervals(data):
    for more in (["--loss", "squared"], ["--loss", "squared_interval", "--upper", "x1"]):
        X, _, _ = samples()
        ends = {"low": np.minimum(X[:, 0], X[:, 1]), "high": np.maximum(X[:, 0], X[:, 1])}
        np.savez(data / "d.npz", X=X[:, 2:], y=ends["low"], x1=ends["high"])
        result = run("compress", data / "d.npz", "--keep", "12", *more, "--overwrite",
                     "-o", data / "kept.npz")  # fmt: skip
        assert result.exit_code == 0, result.stderr
        with np.load(data / "kept.npz") as kept:
            assert len(kept["X"]) == len(kept["y"]) == len(kept["x1"]) == 12


def test_more_than_two_classes(data):
    result = run("compress", data / "data.csv", "--target", "weight", "--ignore", "note,label",
                 "--keep", "9", "--stratify", "-o", data / "kept.csv")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    weight = samples()[2]
    assert set(weight[kept_rows(data, "data.csv")]) == {0, 1, 2}


def test_says_what_was_kept_and_how_to_train(data):
    result = compress(data, "data.csv", "--keep", "10%")
    text = " ".join(result.stdout.split())
    assert f"12 of {N} rows kept (10 %)" in text
    assert "method hybrid" in text and "proof none" in text
    assert "With --weights-output FILE the rows are chosen together with weights" in text
    everything = compress(data, "data.csv", "--keep", "100%", "--overwrite")
    assert "certified" in everything.stdout
    ball = compress(data, "data.csv", "--keep", "10%", "--penalty", "l2_ball", "--overwrite")
    assert "with the same radius" in " ".join(ball.stdout.split())


def test_help_names_methods_and_options():
    text = run("compress", "--help").stdout
    for words in ("--keep AMOUNT", "--weights-output FILE", "hybrid|screening|margin", "--target",
                  "--stratify", "--random-state", "--loss", "required"):  # fmt: skip
        assert words in text, words
    assert "compress" in run("--help").stdout


@pytest.mark.parametrize(
    ("text", "expected"), [("10%", 0.1), ("0.1", 0.1), ("6000", 6000), ("1", 1), (" 5 % ", 0.05)]
)
def test_amounts(text, expected):
    assert amount(text) == pytest.approx(expected)
    assert type(amount(text)) is type(expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--keep", "many"], "--keep many is neither a share of the rows"),
        (["--keep", "0"], "--keep 0 is neither a share of the rows"),
        (["--keep", "120%"], "--keep 120% is neither a share of the rows"),
        (["--keep", "1000"], "at most 120"),
        (["--keep", "9", "--method", "screning"], "did you mean 'screening'"),
        (["--keep", "9", "--weights-output", "-"], "--weights-output needs the name of a file"),
        (["--keep", "9", "--upper", "x1"], "--upper is for intervals"),
        (["--keep", "9", "--delta", "1"], "--delta is no parameter of --loss squared_hinge"),
        (["--keep", "9", "--weights-output", "absent/w.txt"], "there is no such directory"),
    ],
)
def test_refuses_in_one_sentence(data, arguments, words):
    left = os.listdir(data)
    assert_refused(compress(data, "data.csv", *arguments), words, data, left)


def test_refuses_weights_where_something_is(data):
    (data / "w.txt").write_text("mine")
    left = os.listdir(data)
    for path, words in [
        ("w.txt", "exists already: add --overwrite"),
        ("data.csv", "is the name of two files"),
        ("kept.csv", "is the name of two files"),
    ]:
        result = compress(data, "data.csv", "--keep", "9", "--weights-output", data / path)
        assert_refused(result, words, data, left)
    assert (data / "w.txt").read_text() == "mine"


def test_needs_an_amount(data):
    result = compress(data, "data.csv")
    assert result.exit_code == 2
    assert "Missing option '--keep'" in result.stderr
