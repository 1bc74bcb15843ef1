"""The command line: what it writes, what it says, and what it refuses before it does anything."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import scale as standardised

import safesift as ss
from safesift import progress
from safesift.cli.commands import screen as screen_command
from safesift.cli.console import stages
from safesift.faces import summaries
from tests.cli_files import N, assert_refused, command, has_columns, kept_rows, run, samples

screen = command("screen")


# --- what it does -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.npz", "data.svm"])
def test_keeps_the_rows_that_the_library_keeps(data, name):
    before = (data / name).read_bytes()
    result = screen(data, name, "--alpha", "0.01", "--json")
    assert result.exit_code == 0, result.stderr
    X, y, _ = samples()
    expected = ss.screen(X, y, alpha=0.01, random_state=0)
    assert 0 < expected.kept.sum() < 0.7 * N
    assert kept_rows(data, name) == np.flatnonzero(expected.kept).tolist()
    assert (data / name).read_bytes() == before
    summary = json.loads(result.stdout)
    assert summary["kept"] == expected.kept.sum()
    assert summary["certified"] is True
    assert summary["alpha_kept"] == pytest.approx(expected.alpha_kept)
    assert summary["input"] == str(data / name)
    assert summary["output"] == str(data / f"kept.{name.partition('.')[2]}")
    assert summary["format"] in ("CSV", "Parquet", "npz", "svmlight")
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--loss", "hinge"], {"loss": "hinge"}),
        (["--loss", "safe_logistic", "--mu", "0.5"], {"loss": ss.losses.SafeLogistic(0.5)}),
        (["--penalty", "elastic_net", "--l1-ratio", "0.2"],
         {"penalty": ss.penalties.ElasticNet(0.2)}),
        (["--penalty", "l2_ball", "--radius", "2"], {"penalty": ss.penalties.L2Ball(2.0)}),
        (["--intercept", "--screening", "ellipsoid"],
         {"fit_intercept": True, "screening": "ellipsoid"}),
        (["--no-intercept", "--screening", "gap_ball"],
         {"fit_intercept": False, "screening": "gap_ball"}),
        (["--effort", "quick"], {"effort": "quick"}),
        (["--tol", "1e-3", "--max-iter", "3"], {"tol": 1e-3, "max_iter": 3}),
    ],
)  # fmt: skip
def test_options_reach_the_library(data, arguments, options):
    result = screen(data, "data.csv", "--alpha", "0.02", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    X, y, _ = samples()
    expected = ss.screen(X, y, alpha=0.02, random_state=0, **options)
    assert kept_rows(data, "data.csv") == np.flatnonzero(expected.kept).tolist()
    assert json.loads(result.stdout)["region"] == expected.region.describe()


def test_regression(data):
    arguments = ["--loss", "squared_epsilon_insensitive", "--epsilon", "0.7", "--json"]
    result = run("screen", data / "data.csv", "--target", "x0", "--features", "x1, x2", *arguments,
                 "--alpha", "0.1", "-o", data / "kept.csv")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    X, _, _ = samples()
    loss = ss.losses.SquaredEpsilonInsensitive(0.7)
    expected = ss.screen(X[:, 1:3], X[:, 0], loss=loss, alpha=0.1)
    assert 0 < expected.kept.sum() < N
    assert kept_rows(data, "data.csv") == np.flatnonzero(expected.kept).tolist()


@pytest.mark.parametrize(
    ("name", "column"), [("data.csv", "weight"), ("data.npz", "sample_weight")]
)
def test_weights(data, name, column):
    columns = ["--target", "label", "--ignore", "note"] if has_columns(name) else []
    result = run("screen", data / name, *columns, "--weights", column, "--alpha", "0.01",
                 "-o", data / f"kept.{name.partition('.')[2]}")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "weightless" in result.stdout
    X, y, weight = samples()
    expected = ss.screen(X, y, sample_weight=weight, alpha=0.01, random_state=0)
    assert kept_rows(data, name) == np.flatnonzero(expected.kept).tolist()


def test_says_what_was_kept_and_why(data):
    result = screen(data, "data.csv", "--alpha", "0.01")
    X, y, _ = samples()
    expected = ss.screen(X, y, alpha=0.01, random_state=0)
    text = " ".join(result.stdout.split())
    assert f"{expected.kept.sum()} of {N} rows kept" in text
    assert "flat piece" in text
    assert "certified: the dropped rows cannot change the model" in text
    assert f"region {summaries.describe_regions(expected)}" in text
    assert "no is -1, yes is +1" in text
    assert f"alpha_kept = {expected.alpha_kept!r}" in text
    assert result.stderr == ""


def test_labels_that_are_numbers_read_as_they_were_written(data):
    words = "0 is -1, 1 is +1"
    assert words in " ".join(screen(data, "data.svm").stdout.split())
    X, y, _ = samples()
    assert words in ss.screen(X, (y == "yes").astype(float)).summary()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--loss", "logistic"], "--loss logistic is flat nowhere"),
        (["--alpha", "100"], "at --alpha 100 most of them are inside the margin"),
        (
            [
                "--effort",
                "quick",
                "--screening",
                "norm_ball",
                "--penalty",
                "l2_ball",
                "--radius",
                "9",
            ],
            "use --penalty l2, l1 or elastic_net in its place",
        ),
        (["--penalty", "l2_ball", "--radius", "2"], "with the same radius"),
    ],
)
def test_says_what_to_do(data, arguments, words):
    result = screen(data, "data.svm", *arguments)
    assert result.exit_code == 0, result.stderr
    assert words in " ".join(result.stdout.split())


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_several_classes(tmp_path, scale):
    wine = load_wine(as_frame=True)
    X, names = wine.data.to_numpy(), wine.target_names[wine.target]
    wine.data.assign(kind=names).to_csv(tmp_path / "wine.csv", index=False)
    arguments = ("screen", tmp_path / "wine.csv", "--target", "kind", "--scale", scale)
    result = run(*arguments, "--json", "--rows", "-o", tmp_path / "kept.csv")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    expected = ss.screen(X if scale == "none" else standardised(X), names, random_state=0)
    assert 0 < expected.kept.sum() < 60
    assert facts["kept_rows"] == np.flatnonzero(expected.kept).tolist()
    assert facts["classes"] == ["class_0", "class_1", "class_2"]
    assert facts["features"] == wine.feature_names
    assert facts["certified"] is True
    assert len((tmp_path / "kept.csv").read_text().splitlines()) == facts["kept"] + 1
    said = " ".join(run(*arguments).stdout.split())
    assert "kind: 3 classes, each against the rest: class_0, class_1, class_2" in said


def test_the_first_try(tmp_path):
    """A table as it comes, with text for labels, and hardly an option."""
    cancer = load_breast_cancer(as_frame=True)
    table = cancer.data.assign(diagnosis=cancer.target_names[cancer.target])
    table.to_csv(tmp_path / "cancer.csv", index=False)
    guess = run("screen", tmp_path / "cancer.csv")
    assert_refused(guess, "for instance --target diagnosis; there are mean radius,", tmp_path,
                   ["cancer.csv"])  # fmt: skip
    result = run("screen", tmp_path / "cancer.csv", "--target", "diagnosis")
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    text = " ".join(result.stdout.split())
    for words in ("of 569 rows kept", "benign is -1, malignant is +1", "features 30",
                  "squared_hinge, l2, alpha 0.0001, with intercept", "alpha_kept = ",
                  "Nothing was written: add --output FILE"):  # fmt: skip
        assert words in text, words
    assert int(text.split()[0]) < 100


def test_every_row_may_go(tmp_path):
    np.savez(tmp_path / "d.npz", X=np.eye(3), y=np.zeros(3))
    result = run("screen", tmp_path / "d.npz", "--loss", "epsilon_insensitive", "--no-intercept",
                 "-o", tmp_path / "k.npz")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "No row is left: the penalty alone decides" in " ".join(result.stdout.split())
    with np.load(tmp_path / "k.npz") as kept:
        assert kept["X"].shape == (0, 3)


def test_overwrite(data):
    (data / "kept.csv").write_text("old")
    assert screen(data, "data.csv", "--overwrite").exit_code == 0
    assert (data / "kept.csv").read_text().startswith('"x0"')


def test_a_link_as_output_stays_a_link(data):
    (data / "real.csv").write_text("old")
    (data / "kept.csv").symlink_to(data / "real.csv")
    assert screen(data, "data.csv", "--overwrite").exit_code == 0
    assert (data / "kept.csv").is_symlink()
    assert (data / "real.csv").read_text().startswith('"x0"')


def test_compressed_output_of_a_plain_file(data):
    assert screen(data, "data.svm", output="kept.svm.gz").exit_code == 0
    assert screen(data, "data.svm").exit_code == 0
    assert gzip.decompress((data / "kept.svm.gz").read_bytes()) == (data / "kept.svm").read_bytes()


# --- progress -----------------------------------------------------------------------------------


def test_progress_is_shown_for_long_work(data, monkeypatch):
    monkeypatch.setattr("safesift.cli.console.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("safesift.cli.console._is_terminal", lambda: True)
    result = screen(data, "data.csv", "--json")
    for words in ("reading data.csv", "screening", "writing kept.csv"):
        assert words in result.stderr, words
    json.loads(result.stdout)


def test_progress_shows_the_passes_of_the_solver(monkeypatch, capsys):
    monkeypatch.setattr("safesift.cli.console._is_terminal", lambda: True)
    monkeypatch.setattr("safesift.cli.console.PATIENCE_SECONDS", 0.0)
    with stages("screening"):
        progress.report("solver", 3, 10)
        time.sleep(0.3)
    assert "screening: solver" in capsys.readouterr().err


def test_no_progress_for_short_work(data, monkeypatch):
    monkeypatch.setattr("safesift.cli.console._is_terminal", lambda: True)
    result = screen(data, "data.csv", "--json")
    assert "reading" not in result.stderr


def test_progress_is_for_terminals_only(data, monkeypatch):
    """Logs of continuous integration force colours, and are files nevertheless."""
    monkeypatch.setattr("safesift.cli.console.PATIENCE_SECONDS", 0.0)
    result = screen(data, "data.csv", "--json", env={"FORCE_COLOR": "1"})
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.skipif(os.name != "posix", reason="needs pseudo-terminals")
def test_a_terminal_shows_progress(data):
    import pty

    script = (
        "from safesift.cli import console; console.PATIENCE_SECONDS = 0.0\n"
        "from safesift.__main__ import main; main()\n"
    )
    ours, theirs = pty.openpty()
    arguments = ["screen", "data.svm", "-o", "kept.svm"]
    began = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=data, stdout=subprocess.PIPE, stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    # a terminal holds little, and says so by an error when nobody writes to it any more
    with contextlib.suppress(OSError):
        while part := os.read(ours, 2**12):
            shown += part
    os.close(ours)
    printed, _ = began.communicate(timeout=60)
    assert began.returncode == 0
    assert "reading data.svm" in shown.decode(errors="replace")
    assert b"rows kept" in printed


# --- what it refuses ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mu", "1", "--loss", "logistic"], "--mu is no parameter of --loss logistic, only of"),
        (["--epsilon", "1", "--loss", "huber"], "only of epsilon_insensitive, "),
        (["--delta", "1"], "--delta is no parameter of --loss squared_hinge, only of huber."),
        (["--l1-ratio", "1"], "--l1-ratio is no parameter of --penalty l2, only of elastic_net."),
        (["--radius", "1"], "--radius is no parameter of --penalty l2, only of l2_ball and l1"),
        (["--loss", "squard_hinge"], "did you mean 'squared_hinge'?"),
        (["--loss", "squared"], "The column 'label' holds text"),
        (["--weights", "wieght"], "did you mean 'weight'?"),
        (["--features", "x0"], "Give --features or --ignore, not both."),
    ],
)
def test_refuses_in_one_sentence(data, arguments, words):
    left = os.listdir(data)
    assert_refused(screen(data, "data.csv", *arguments), words, data, left)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "label"], "The column 'note' holds text"),
        (["--target", "lable", "--ignore", "note"], "did you mean 'label'?"),
        (["--ignore", "note"], "--target is missing"),
        (["--target", "x0", "--ignore", "note,label"], "different numbers in 120 rows"),
    ],
)
def test_refuses_columns(data, arguments, words):
    left = os.listdir(data)
    result = run("screen", data / "data.csv", *arguments, "-o", data / "kept.csv")
    assert_refused(result, words, data, left)


@pytest.mark.parametrize(
    ("source", "output", "words"),
    [
        ("absent.csv", "kept.csv", "absent.csv: there is no such file."),
        (".", "kept.csv", "--overwrite is for one file in memory"),
        ("data.xls", "kept.csv", "unknown kind of file"),
        ("data.csv", "kept.parquet", "written in the format of the input, CSV"),
        ("data.csv", "kept", "unknown kind of file"),
        ("data.csv", "absent/kept.csv", "there is no such directory"),
        ("data.csv", "data.csv", "is the input itself"),
        ("data.csv", "soft.csv", "is the input itself"),
        ("data.csv", "hard.csv", "is the input itself"),
        ("data.csv", "folder.csv", "exists and is not a file"),
    ],
)
def test_refuses_paths_before_any_work(data, monkeypatch, source, output, words):
    (data / "data.xls").touch()
    (data / "soft.csv").symlink_to(data / "data.csv")
    os.link(data / "data.csv", data / "hard.csv")
    (data / "folder.csv").mkdir()
    monkeypatch.setattr("safesift.faces.files.read", lambda *_: pytest.fail("the file was read"))
    left, before = os.listdir(data), (data / "data.csv").read_bytes()
    result = run("screen", data / source, "--target", "label", "--overwrite", "-o", data / output)
    assert_refused(result, words, data, left)
    assert (data / "data.csv").read_bytes() == before


def test_refuses_an_output_that_exists(data):
    (data / "kept.csv").write_text("mine")
    left = os.listdir(data)
    assert_refused(screen(data, "data.csv"), "exists already: add --overwrite", data, left)
    assert (data / "kept.csv").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_refuses_a_folder_without_permission(data):
    (data / "closed").mkdir(mode=0o500)
    left = os.listdir(data)
    result = screen(data, "data.csv", output="closed/kept.csv")
    assert_refused(result, "no permission", data, left)


def test_refuses_infinite_entries_of_an_archive(tmp_path):
    np.savez(tmp_path / "d.npz", X=[[1.0], [np.inf]], y=[0, 1])
    result = run("screen", tmp_path / "d.npz", "-o", tmp_path / "k.npz")
    assert_refused(result, "missing or infinite (first in row 2)", tmp_path, ["d.npz"])


@pytest.mark.parametrize("name", ["screen", "compress"])
def test_without_output_nothing_is_written(data, name):
    left = os.listdir(data)
    amount = ["--keep", "9"] if name == "compress" else []
    result = run(name, data / "data.csv", *amount, "--target", "label", "--ignore", "note")
    assert result.exit_code == 0, result.stderr
    assert "Nothing was written: add --output FILE" in result.stdout
    assert sorted(os.listdir(data)) == sorted(left)


# --- interrupted --------------------------------------------------------------------------------


class _FullDisk:
    """Stands for the rows to copy: the first arrives, then the disk is full."""

    def __init__(self, error):
        self._error = error

    def __call__(self, records, keep, stream):
        stream.write(b"half a row")
        raise self._error


@pytest.mark.parametrize(
    ("error", "exit_code", "words"),
    [
        (OSError(28, "No space left on device"), 2, "Error: No space left on device.\n"),
        (KeyboardInterrupt(), 1, "Aborted!"),
    ],
)
def test_an_interrupted_write_leaves_nothing(data, monkeypatch, error, exit_code, words):
    monkeypatch.setattr("safesift.faces.files.arrow_files.copy_rows", _FullDisk(error))
    (data / "kept.csv").write_text("old")
    left = os.listdir(data)
    result = screen(data, "data.csv", "--overwrite")
    assert result.exit_code == exit_code
    assert words in result.stderr
    assert sorted(os.listdir(data)) == sorted(left)
    assert (data / "kept.csv").read_text() == "old"


# --- as a process -------------------------------------------------------------------------------


def process(*arguments, **options):
    command = [sys.executable, "-m", "safesift", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", **options)


def test_as_a_module(data):
    done = process("screen", data / "data.svm", "-o", data / "kept.svm", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["samples"] == N
    again = process("screen", data / "data.svm", "-o", data / "kept.svm")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith("Error: ")
    assert again.stderr.count("\n") == 1


def test_without_the_extra(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['rich'] = None")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = process("--version", env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "The command line needs rich: pip install 'safesift[cli]'.\n"


@pytest.mark.skipif(os.name != "posix", reason="needs SIGTERM")
def test_a_terminated_run_cleans_up(data):
    # a write that takes a minute, for a run that is terminated before
    script = (
        "import time, safesift.faces.files.arrow_files as c\n"
        "def wait(records, keep, stream):\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
        "c.copy_rows = wait\n"
        "from safesift.__main__ import main\n"
        "main()\n"
    )
    arguments = ["screen", "data.csv", "--target", "label", "--ignore", "note", "-o", "kept.csv"]
    left = sorted(os.listdir(data))
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=data, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout.readline() == "writing\n"
        assert len(os.listdir(data)) == len(left) + 1
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=20) == 128 + signal.SIGTERM
    assert sorted(os.listdir(data)) == left


# --- help ---------------------------------------------------------------------------------------


def test_version():
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"safesift, version {ss.__version__}\n")


def test_help_lists_every_option_and_every_name():
    text = run("screen", "--help").stdout
    for parameter in screen_command.params[1:]:
        assert parameter.opts[0] in text
    for registry in (ss.losses.LOSSES, ss.penalties.PENALTIES, ss.regions.REGIONS):
        for name in registry:
            assert name in text
    commands = run("--help").stdout
    assert "screen" in commands
    assert "demo" in commands


def test_every_parameter_of_a_loss_or_penalty_is_an_option():
    from inspect import signature

    options = {parameter.name for parameter in screen_command.params}
    for kind in (*ss.losses.LOSSES.values(), *ss.penalties.PENALTIES.values()):
        assert set(signature(kind).parameters) <= options


def test_starting_is_quick():
    seen = "[m for m in ('numpy', 'rich') if m in sys.modules]"
    script = f"import sys, safesift.cli.commands; print({seen})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n"
