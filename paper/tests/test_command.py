"""`safesift reproduce` is there where this package is installed."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from safesift.cli.commands import cli
from safesift_paper import experiments
from safesift_paper.command import reproduce


def test_the_command_line_finds_it():
    context = click.Context(cli)
    assert cli.get_command(context, "reproduce") is reproduce
    assert "reproduce" in cli.list_commands(context)


def test_help():
    listed = CliRunner().invoke(cli, ["--help"]).stdout
    assert "reproduce" in listed and "Run the paper's experiments" in listed
    assert "--stand-in DATA" in CliRunner().invoke(cli, ["reproduce", "--help"]).stdout


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_helping_is_quick(argument):
    """The help of all commands imports this one, but not what it runs."""
    script = (
        "import sys\n"
        "from safesift.cli.commands import cli\n"
        f"cli([{argument!r}], standalone_mode=False)\n"
        "print([m for m in ('numpy', 'rich') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_experiment_loads():
    assert [experiments.load(name).name for name in experiments.NAMES] == list(experiments.NAMES)
