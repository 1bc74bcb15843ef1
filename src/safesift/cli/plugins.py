"""Commands of other packages, found through their entry points when somebody asks for them.

How commands refuse: in one sentence, without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints


class Refusal(click.ClickException):
    """One sentence on stderr, exit code 2."""

    exit_code = 2


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Show what the library or the system refuses as a sentence, without a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read the output went away: click ends quietly
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise Refusal(f"{where}{error.strerror or error}.") from error
    except (ValueError, TypeError, MemoryError) as error:
        # what other libraries say may go over several lines
        raise Refusal(" ".join(str(error).split()) or type(error).__name__) from error


_GROUP = "safesift.commands"


# commands that are documented with the library but are not in it, and what to do to get them
_ELSEWHERE = {
    "reproduce": "reproduce is a command of the package safesift-paper, which is not installed: "
    "run pip install ./paper in a checkout of safesift's repository."
}


class PluggableGroup(click.Group):
    """Commands of its own, and those that other packages add to them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_entry_points().names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or _from_elsewhere(cmd_name)


def _entry_points() -> EntryPoints:
    from importlib import metadata  # not needed to start, and slow

    return metadata.entry_points(group=_GROUP)


def _from_elsewhere(name: str) -> click.Command | None:
    for entry in _entry_points().select(name=name):
        return _loaded(entry)
    return _refusing(name, _ELSEWHERE[name]) if name in _ELSEWHERE else None


def _loaded(entry: EntryPoint) -> click.Command:
    try:
        return entry.load()
    except Exception as error:  # of any kind: the help and the other commands must go on working
        return _refusing(
            entry.name,
            f"{entry.name} cannot be loaded from {entry.value} ({error}): install its package "
            "again, for this version of safesift.",
        )


def _refusing(name: str, sentence: str) -> click.Command:
    """A command that only says why it cannot run, whatever its arguments."""

    def refuse() -> None:
        raise Refusal(sentence)

    return click.Command(
        name,
        callback=refuse,
        short_help="Cannot be run here: try it to see why.",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
