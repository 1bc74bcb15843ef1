"""What the library refuses, warns of or explains reaches the command in terms of its options."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest

from safesift.cli import words
from tests.cli_files import run, samples

INTERVALS = ("--target", "low", "--upper", "high", "--loss", "squared_interval")

# the file, the options, and what must be said
PROVOKED = [
    ("nan.npz", (), "A feature is missing or infinite (first in row 2): fill missing values in "
     "with --impute mean, or remove those rows."),
    ("huge.npz", (), "too large to square (first in row 1, norm beyond 1e154): use --scale "
     "standard."),
    ("halves.npz", (), "The target is continuous (such as 1.5), and a classification loss needs "
     "labels: use a --loss for numbers, such as squared_epsilon_insensitive, or whole numbers or "
     "text for labels."),
    ("one_class.npz", (), "The target has one class only"),
    ("data.npz", ("--weights", "negative"), "--weights is negative (first in row 4)"),
    ("data.npz", ("--loss", "squared"), "use a --loss for labels, such as squared_hinge"),
    ("data.npz", ("--penalty", "l3"), "--penalty l3 is not known: did you mean 'l2'?"),
    ("data.npz", ("--screening", "bal"), "--screening bal is not known"),
    ("data.npz", ("--screening", "gap_ball"), "--screening gap_ball needs strong convexity in all "
     "coordinates, but the intercept is not penalised: use --screening ellipsoid or auto, or use "
     "--no-intercept and a --penalty with an l2 part."),
    ("data.npz", ("--screening", "gap_ball", "--penalty", "l1", "--no-intercept"),
     "but --penalty l1 is not strongly convex"),
    ("data.npz", ("--alpha", "-1"), "--alpha must be positive and finite, got -1.0."),
    ("data.npz", ("--penalty", "elastic_net", "--l1-ratio", "2"),
     "--l1-ratio must be in [0, 1), got 2.0: for 1 use --penalty l1."),
    ("data.npz", ("--mu", "nan"), "--mu must be finite"),
    ("data.npz", ("--tol", "0"), "--tol must be positive"),
    ("data.npz", ("--max-iter", "0"), "--max-iter must be a positive integer, got 0."),
    ("data.npz", ("--n-jobs", "0"), "--n-jobs must be a number of threads"),
    ("data.npz", ("--random-state", "-1"), "--random-state must be between 0 and"),
    ("data.npz", ("--loss", "logistic"), "--loss logistic is flat nowhere, so that every sample "
     "has its influence: use --loss squared_hinge, hinge, safe_logistic or an insensitive one."),
    ("data.npz", ("--alpha", "100"), "at --alpha 100 most of them are inside the margin"),
    ("wide.npz", ("--effort", "quick"), "so use --scale standard."),
    ("wide.npz", ("--effort", "quick"), "column 'large' is 1e+09 times as large as column 'small'"),
    ("data.npz", ("--effort", "quick", "--alpha", "1e-9", "--screening", "norm_ball",
                  "--no-intercept"), "use --effort full"),
    ("data.npz", ("--max-iter", "1", "--alpha", "1e-9", "--screening", "norm_ball",
                  "--no-intercept"), "use a smaller --tol, or a larger --max-iter"),
    ("data.npz", ("--penalty", "l2_ball", "--radius", "100", "--loss", "hinge"),
     "use --penalty l2, l1 or elastic_net in its place, with the --alpha that has the same model."),
    ("turned.csv", INTERVALS, "exceeds the upper one in 2 rows (1, 3): --target names the lower "
     "ends, --upper the upper ones."),
    ("one_turned.csv", INTERVALS, "exceeds the upper one in 1 row (2): --target names"),
    ("open.csv", (*INTERVALS, "--loss", "absolute_interval"),
     "Nothing bounds the predictions (the whole space (the data do not bound the intercept)): "
     "set --no-intercept"),
    ("open.csv", (*INTERVALS, "--screening", "ellipsoid"), "--intercept: the data do not bound the "
     "intercept (is there only one class, or a loss that is flat on one side?); use "
     "--no-intercept."),
]  # fmt: skip
CHOSEN = [
    ("data.npz", ("--keep", "1000"),
     "--keep 1000 must be at least 1 and at most 120, the number of samples of positive weight."),
    ("data.npz", ("--keep", "1"), "--keep 1 keeps 1 of 120 samples, fewer than the 2 classes"),
    ("data.npz", ("--keep", "9", "--method", "screning"), "--method screning is not known"),
]  # fmt: skip
IN_BLOCKS = ("--memory", "1GB", "--target", "y")
PROVOKED += [
    ("nan.csv", IN_BLOCKS, "nan.csv: a feature is missing or infinite (first in row 2, column "
     "'a'): fill them in, or remove those rows, before."),
    ("halves.csv", IN_BLOCKS, "halves.csv: the target is continuous (such as 1.5 in row 2)"),
]  # fmt: skip
CASES = [("screen", *case) for case in PROVOKED] + [("compress", *case) for case in CHOSEN]

# how only Python speaks
PYTHON = re.compile(
    r"fit_intercept|sample_weight|n_keep|max_iter|random_state|l1_ratio|\bX\b|\by\b|\bcoef\b|"
    r"(loss|penalty|screening|method|alpha|tol|effort)='?\w"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("words")
    X, y, weight = samples()
    negative = np.where(np.arange(len(y)) == 3, -1.0, weight)
    np.savez(path / "data.npz", X=X, y=y, negative=negative)
    np.savez(path / "halves.npz", X=X, y=1.5 * (y == "yes"))
    np.savez(path / "nan.npz", X=[[1.0], [np.nan]], y=[0, 1])
    np.savez(path / "huge.npz", X=[[1e200], [1.0]], y=[0, 1])
    np.savez(path / "one_class.npz", X=X, y=np.full(len(y), "a"))
    scales = np.array([1e6, 1e-3, 1.0, 1.0])
    names = ["large", "small", "c", "d"]
    np.savez(path / "wide.npz", X=np.sign(X) * scales, y=y, feature_names=names)
    (path / "nan.csv").write_text("a,y\n1,0\nnan,1\n")
    (path / "halves.csv").write_text("a,y\n1,0\n2,1.5\n")
    (path / "turned.csv").write_text("a,low,high\n1,2,1\n2,1,2\n3,9,5\n")
    (path / "one_turned.csv").write_text("a,low,high\n1,1,2\n2,3,2\n3,4,5\n")
    (path / "open.csv").write_text("a,low,high\n1,,2\n2,,3\n3,,4\n")
    return path


def said(folder, command, name, options):
    """Why it was refused, or why little is proved."""
    result = run(command, folder / name, *options, "--json")
    if result.exit_code == 0:
        return json.loads(result.stdout)["reason"]
    assert result.exit_code == 2 and result.stderr.startswith("Error: ")
    return result.stderr.removeprefix("Error: ").strip()


@pytest.mark.parametrize(("command", "name", "options", "expected"), CASES)
def test_in_the_words_of_the_command(folder, command, name, options, expected):
    text = said(folder, command, name, options)
    assert expected in text
    assert not PYTHON.search(text), text


def test_every_entry_of_the_table_is_provoked(folder, monkeypatch):
    monkeypatch.setattr(words, "_PATTERNS", [])
    sentences = [said(folder, command, name, options) for command, name, options, _ in CASES]
    assert sum(bool(PYTHON.search(sentence)) for sentence in sentences) > len(sentences) / 2
    never = {pattern for pattern, _ in words.WORDS}
    for sentence in sentences:
        for pattern, replacement in words.WORDS:
            if re.search(pattern, sentence):
                never.discard(pattern)
            sentence = re.sub(pattern, replacement, sentence)
    assert never == set()


def test_warnings_are_heard_in_the_words_of_the_command(folder, monkeypatch):
    from safesift.cli import work

    def warning(*arguments, screen=work.screen, **options):
        warnings.warn("sample_weight is odd: set fit_intercept=False.", UserWarning, stacklevel=1)
        warnings.warn("numbers overflow", RuntimeWarning, stacklevel=1)
        return screen(*arguments, **options)

    monkeypatch.setattr(work, "screen", warning)
    result = run("screen", folder / "data.npz")
    assert result.exit_code == 0, result.stderr
    assert "--weights is odd: set --no-intercept." in result.stdout
    facts = json.loads(run("screen", folder / "data.npz", "--json").stdout)
    assert facts["notes"] == ["--weights is odd: set --no-intercept."]
    assert "overflow" not in result.stdout + result.stderr
