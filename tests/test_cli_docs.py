"""The help, the README and the documentation agree with each other and with what happens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from safesift.cli.commands import cli
from tests.cli_files import run

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "command.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = [cli.commands[name] for name in ("screen", "compress")]


def command_lines():
    """Every line of the documentation that calls screen or compress on a file."""
    for page in PAGES:
        for line in page.read_text().splitlines():
            if re.match(r"    (gzip .*\| )?safesift (screen|compress|fit|report) ", line):
                yield pytest.param(line.strip(), id=f"{page.stem}: {line.strip()}")


@pytest.fixture
def folder(tmp_path):
    """The files that the documentation speaks of, and the command in the path."""
    rng = np.random.default_rng(0)
    n = 7000
    X = rng.normal(size=(n, 3)).round(3)
    names = ["a", "b", "c"]
    labelled = pd.DataFrame(X, columns=names).assign(label=np.where(X[:, 0] > 0, "yes", "no"))
    labelled.to_csv(tmp_path / "big.csv", index=False)
    labelled.to_parquet(tmp_path / "big.parquet")
    (tmp_path / "clicks").mkdir()
    labelled.to_parquet(tmp_path / "clicks" / "monday.parquet")
    some = pd.DataFrame(X[:80], columns=names)
    target = X[:80, 0] + 0.1 * rng.normal(size=80)
    ends = some.assign(low=np.where(X[:80, 1] > 1, -np.inf, target - 1), high=target + 1)
    ends.to_csv(tmp_path / "survival.csv", index=False)
    ends.to_csv(tmp_path / "data.csv", index=False)
    prices = some.assign(price=target, cheap=np.where(target < 0, "yes", "no"))
    prices.assign(cheap=(target < 0).astype(int)).to_csv(
        tmp_path / "prices.tsv.gz", index=False, sep="\t"
    )
    passengers = some.assign(
        name=[f"n{i}" for i in range(80)],
        sex=np.where(X[:80, 2] > 0, "f", "m"),
        age=np.where(X[:80, 1] > 1, np.nan, 30.0),
        survived=np.where(target > 0, "yes", "no"),
    )
    passengers.to_csv(tmp_path / "passengers.csv", index=False)
    shim = tmp_path / "bin" / "safesift"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m safesift "$@"\n')
    shim.chmod(0o755)
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("line", list(command_lines()))
def test_documented_command_lines_run(folder, line):
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    env = {**os.environ, "PATH": path}
    done = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search("rows kept|trained on|cannot change the model", done.stdout + done.stderr)
    if "-o " in line or "--output " in line:
        (output,) = re.findall(r"(?:-o|--output|>) ((?:small|model|kept|report)\S+)", line)
        assert (folder / output).stat().st_size > 0


def test_there_are_command_lines():
    assert len(list(command_lines())) >= 10


def test_every_option_is_documented_and_every_documented_option_exists():
    every = [*COMMANDS, *(cli.commands[name] for name in ("fit", "predict", "check"))]
    known = {name for one in every for option in one.params for name in option.opts[:1]}
    known = {name for name in known if name.startswith("--")}
    known |= {name for one in COMMANDS for option in one.params for name in option.secondary_opts}
    helps = "".join(run(one.name, "--help").stdout for one in every)
    for name in known:
        assert name in helps, name
    # what model it is and how it is found is explained elsewhere; the rest belongs to this page
    model = {
        "--mu", "--width", "--delta", "--l1-ratio", "--radius", "--penalty", "--screening",
        "--effort", "--tol", "--max-iter", "--random-state", "--method", "--stratify",
        "--intercept", "--no-intercept",
    }  # fmt: skip
    text = PAGE.read_text()
    assert {name for name in known - model if name not in text} == set()
    for page in PAGES:
        lines = [
            line for line in page.read_text().splitlines() if "safesift " in line or page == PAGE
        ]
        mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", "\n".join(lines)))
        # of other commands
        assert mentioned - {"--help", "--quick"} <= known, page


def test_options_that_commands_share_are_declared_once():
    screen, compress = ({o.name: o for o in one.params} for one in COMMANDS)
    for name in screen.keys() & compress.keys():
        ours, theirs = screen[name], compress[name]
        assert (ours.opts, ours.type.name) == (theirs.opts, theirs.type.name), name
        assert getattr(ours, "help", None) == getattr(theirs, "help", None), name
        assert ours.default == theirs.default, name
    source = (ROOT / "src" / "safesift" / "cli" / "commands.py").read_text()
    for name in ('"--output"', '"--json"', '"--overwrite"', '"--target"'):
        # that of the demo is a picture, of fit a model, of predict a table of its own, of report a
        # page
        expected = 5 if name == '"--output"' else 1
        assert source.count(name) == expected, name


def test_every_key_of_json_is_documented(folder):
    documented = {
        key
        for line in PAGE.read_text().partition("## For machines")[2].splitlines()
        if line.startswith("| `")
        for key in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    shared = (folder / "passengers.csv", "--target", "survived", "--id", "name", "--rows", "--json",
              "--features", "a,b,c")  # fmt: skip
    keys = set()
    calls = [["screen", *shared], ["compress", *shared, "--keep", "9"]]
    calls += [["screen", folder / "clicks", "--target", "label", "--json"]]
    for call in calls:
        result = run(*call)
        assert result.exit_code == 0, result.stderr
        keys |= json.loads(result.stdout).keys()
    assert keys == documented


def test_formats_are_documented():
    from safesift.faces import files

    text = PAGE.read_text()
    for extension in files.FORMATS:
        assert f"`.{extension.strip('.').partition('.')[0]}`" in text
    for word in ("NA", "N/A", "NaN", "null", "None", "?"):
        assert f"`{word}`" in text
