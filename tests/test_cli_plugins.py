"""Commands of other packages: found where they are installed, explained where they are not."""

from __future__ import annotations

import pytest

from safesift.cli import Refusal, in_one_sentence
from tests.cli_files import run

PLUGIN = """
import click
from safesift.cli import in_one_sentence

@click.command(short_help="Greet somebody.")
@click.argument("name")
def greet(name):
    with in_one_sentence():
        if name == "nobody":
            raise ValueError("nobody cannot be greeted: name somebody.")
        click.echo(f"hello {name}")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes a package that consists of one module, as pip leaves it behind."""

    def make(module, source, **commands):
        (tmp_path / f"{module}.py").write_text(source)
        about = tmp_path / f"{module}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        lines = [f"{name} = {module}:{function}" for name, function in commands.items()]
        (about / "entry_points.txt").write_text("\n".join(["[safesift.commands]", *lines]))
        monkeypatch.syspath_prepend(str(tmp_path))

    return make


@pytest.fixture
def bare(monkeypatch):
    """No other package is installed."""
    from importlib import metadata

    monkeypatch.setattr(metadata, "entry_points", lambda **chosen: metadata.EntryPoints())


def test_installed(install):
    install("greetings", PLUGIN, greet="greet")
    assert run("greet", "you").stdout == "hello you\n"
    listed = run("--help").stdout
    assert "Greet somebody." in listed and "screen" in listed


def test_a_plug_in_refuses_as_all_commands_do(install):
    install("greetings", PLUGIN, greet="greet")
    result = run("greet", "nobody")
    assert result.exit_code == 2
    assert result.stderr == "Error: nobody cannot be greeted: name somebody.\n"


def test_commands_of_the_library_are_not_replaced(install):
    install("greetings", PLUGIN, demo="greet")
    assert "handwritten digits" in run("demo", "--help").stdout


def test_a_broken_plug_in_does_not_harm_the_others(install):
    install("broken", "import no_such_module", broken="nothing")
    result = run("broken", "anything", "--at-all")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "broken cannot be loaded from broken:nothing (No module named" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "screen" in run("--help").stdout


@pytest.mark.parametrize("arguments", [[], ["all", "--quick"], ["--help"]])
def test_not_installed(bare, arguments):
    result = run("reproduce", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "safesift-paper, which is not installed: run pip install ./paper" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_help_lists_what_is_there(bare):
    assert "reproduce" not in run("--help").stdout


def test_other_names_are_not_known(bare):
    result = run("reproducer")
    assert result.exit_code == 2 and "No such command 'reproducer'" in result.stderr


def test_refusals_are_public():
    with pytest.raises(Refusal, match="too large"), in_one_sentence():
        raise MemoryError("too large")
