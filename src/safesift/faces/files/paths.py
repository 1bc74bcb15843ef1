"""Whether a file may be written, found out before the work and not after it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from safesift.faces.files import format_of


def check_paths(source: Path, output: Path, overwrite: bool) -> None:
    """Refuse, in one sentence, what would fail later or would destroy something.

    Parameters
    ----------
    source : Path
        The file to read. It is never overwritten, by whatever name it goes.
    output : Path
        The file to write, in the format of `source`.
    overwrite : bool
        Whether the output may exist already.
    """
    if not source.exists():
        raise ValueError(f"{source}: there is no such file.")
    if not source.is_file():
        raise ValueError(f"{source} is not a file.")
    table = format_of(source)
    if format_of(output) is not table:
        raise ValueError(
            f"The output is written in the format of the input, {table.format_name}: "
            f"give {output.name} one of the extensions {', '.join(table.extensions)}."
        )
    _check_directory(output)
    if output.exists():
        _check_existing(source, output, overwrite)


def check_text_output(output: Path, others: Sequence[Path], overwrite: bool) -> None:
    """The same for a file of text that is written beside the others."""
    _check_directory(output)
    for other in others:
        if output.resolve() == other.resolve():
            raise ValueError(f"{output} is the name of two files: choose another one.")
    if output.exists():
        _check_existing(others[0], output, overwrite)


def _check_directory(output: Path) -> None:
    directory = output.resolve().parent
    if not directory.is_dir():
        raise ValueError(f"{directory}: there is no such directory for the output.")
    if not os.access(directory, os.W_OK):
        raise ValueError(f"{directory}: no permission to write the output there.")


def _check_existing(source: Path, output: Path, overwrite: bool) -> None:
    if os.path.samefile(source, output):
        raise ValueError(f"{output} is the input itself: choose another name for the output.")
    if not output.is_file():
        raise ValueError(f"{output} exists and is not a file: choose another name for the output.")
    if not overwrite:
        raise ValueError(f"{output} exists already: add --overwrite, or choose another name.")
