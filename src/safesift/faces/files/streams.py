"""Open files that may be compressed, and write files that are either complete or not there.

Whether a file may be written is found out before the work and not after it.
"""

from __future__ import annotations

import bz2
import gzip
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

# extension -> how to open; both work on a path or on an open binary file
COMPRESSIONS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}


def open_compressed(file: Path | IO[bytes], mode: str, name: str) -> IO[bytes]:
    """Open `file` through the compression that the extension of `name` stands for."""
    suffix = Path(name).suffix.lower()
    if suffix in COMPRESSIONS:
        return COMPRESSIONS[suffix](file, mode)
    return open(file, mode) if isinstance(file, Path) else file


def open_read(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed."""
    return open_compressed(path, "rb", path.name)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A binary stream whose content becomes the file only if the block ends well.

    It is written next to the file under another name and moved there in one step, so that a
    failed or interrupted run leaves the old file, or none.
    """
    path = path.resolve()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "xb") as raw, open_compressed(raw, "wb", path.name) as stream:
            yield stream
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def reading(path: Path, what: str, *broken: type[Exception]) -> Iterator[None]:
    """Turn the many ways in which a file can be broken into one sentence."""
    ways: tuple[type[Exception], ...] = (OSError, EOFError, zipfile.BadZipFile, zlib.error, *broken)
    try:
        yield
    except ways as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's own, and not a decompressor's
        reason = str(error).strip().partition("\n")[0] or "it ends too early"
        raise ValueError(f"{path} cannot be read as {what}: {reason}") from error


def copy_rows(records: Iterable[tuple[bool, bytes]], keep: Mask, stream: IO[bytes]) -> None:
    """Copy the rows where `keep` is True, and all that is not a row, byte by byte.

    Parameters
    ----------
    records : iterable of (bool, bytes)
        Whether it is a row, and its bytes.
    """
    row = 0
    for is_row, raw in records:
        if not is_row or (row < len(keep) and keep[row]):
            stream.write(raw)
        row += is_row
    if row != len(keep):
        raise ValueError(
            f"The file had {len(keep)} rows when read and has {row} when copied: was it changed "
            "meanwhile, or are its quotes unbalanced?"
        )


def check_output(output: Path, source: Path, overwrite: bool) -> None:
    """Refuse, in one sentence, an output that cannot be written or that would destroy something."""
    directory = output.resolve().parent
    if not directory.is_dir():
        raise ValueError(f"{directory}: there is no such directory for the output.")
    if not os.access(directory, os.W_OK):
        raise ValueError(f"{directory}: no permission to write the output there.")
    if not output.exists():
        return
    if os.path.samefile(source, output):
        raise ValueError(f"{output} is the input itself: choose another name for the output.")
    if not output.is_file():
        raise ValueError(f"{output} exists and is not a file: choose another name for the output.")
    if not overwrite:
        raise ValueError(f"{output} exists already: add --overwrite, or choose another name.")


def check_second_output(second: Path, output: Path, source: Path, overwrite: bool) -> None:
    """The same for a file that is written beside the output."""
    if second.resolve() in (output.resolve(), source.resolve()):
        raise ValueError(f"{second} is the name of two files: choose another one.")
    check_output(second, source, overwrite)
