"""Open files that may be compressed, and write files that are either complete or not there."""

from __future__ import annotations

import bz2
import gzip
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

# extension -> how to open; both work on a path or on an open binary file
COMPRESSIONS = {".gz": gzip.open, ".bz2": bz2.open}


def open_compressed(file: Path | BinaryIO, mode: str, name: str) -> BinaryIO:
    """Open `file` through the compression that the extension of `name` stands for."""
    opener = COMPRESSIONS.get(Path(name).suffix.lower())
    if opener is not None:
        return opener(file, mode)
    return open(file, mode) if isinstance(file, Path) else file


def open_read(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed."""
    return open_compressed(path, "rb", path.name)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary stream whose content becomes the file only if the block ends well.

    It is written next to the file under another name and moved there in one step, so that a
    failed or interrupted run leaves the old file, or none.
    """
    path = path.resolve()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "xb") as raw:
            stream = open_compressed(raw, "wb", path.name)
            yield stream
            # a compressed stream has an end to write; it leaves `raw` open
            stream.close()
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def reading(path: Path, what: str, *broken: type[Exception]) -> Iterator[None]:
    """Turn the many ways in which a file can be broken into one sentence."""
    try:
        yield
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, *broken) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "it ends too early"
        raise ValueError(f"{path} cannot be read as {what}: {reason}") from error
