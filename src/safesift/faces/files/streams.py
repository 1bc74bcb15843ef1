"""Where rows come from and go to: files that may be compressed, and pipes.

Files are written so that they are either complete or not there, and whether they may be written is
found out before the work and not after it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

# the name that stands for standard input and output
PIPE = "-"

# extension -> how to open; all work on a path or on an open binary file
COMPRESSIONS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# how compressed content begins, for what has no extension
_BEGINNINGS = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}

_HEAD_BYTES = 2**16


@dataclass(frozen=True)
class Source:
    """What samples are read from, as often as needed: a file, or what came through a pipe.

    Attributes
    ----------
    path : Path or None
        The file; None for a pipe.
    content : bytes
        What came through the pipe, as it came: rows are read once to screen them and once to copy
        them, and a pipe can be read only once.
    separator : str or None
        What is between the cells of separated text; None where it is to be found out.
    """

    path: Path | None
    content: bytes = b""
    separator: str | None = None

    @classmethod
    def named(cls, name: str, separator: str | None = None) -> Source:
        """The file of that name, or all that comes through standard input for `-`."""
        if name == PIPE:
            return cls(None, sys.stdin.buffer.read(), separator)
        return cls(Path(name), separator=separator)

    def __str__(self) -> str:
        return "standard input" if self.path is None else str(self.path)

    @property
    def file(self) -> Path:
        """The file, for formats that no pipe holds."""
        assert self.path is not None
        return self.path

    def open(self) -> IO[bytes]:
        """A stream of its content, decompressed."""
        if self.path is not None:
            return _opened(self.path, "rb", self.path.suffix)
        found = (suffix for sign, suffix in _BEGINNINGS.items() if self.content.startswith(sign))
        return _opened(io.BytesIO(self.content), "rb", next(found, ""))

    def head(self) -> tuple[bytes, bool]:
        """How its content begins, and whether that is all of it."""
        with self.open() as stream:
            content = stream.read(_HEAD_BYTES + 1)
        return content[:_HEAD_BYTES], len(content) <= _HEAD_BYTES


def _opened(file: Path | IO[bytes], mode: str, suffix: str) -> IO[bytes]:
    """Open `file` through the compression that the extension stands for."""
    suffix = suffix.lower()
    if suffix in COMPRESSIONS:
        return COMPRESSIONS[suffix](file, mode)
    return open(file, mode) if isinstance(file, Path) else file


@contextmanager
def writing(name: str) -> Iterator[IO[bytes]]:
    """A binary stream to the file of that name, or to standard output for `-`."""
    if name != PIPE:
        with replacing(Path(name)) as stream:
            yield stream
        return
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A binary stream whose content becomes the file only if the block ends well.

    It is written next to the file under another name and moved there in one step, so that a
    failed or interrupted run leaves the old file, or none.
    """
    path = path.resolve()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "xb") as raw, _opened(raw, "wb", path.suffix) as stream:
            yield stream
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def reading(source: Source, what: str, *broken: type[Exception]) -> Iterator[None]:
    """Turn the many ways in which a file can be broken into one sentence."""
    ways: tuple[type[Exception], ...] = (
        OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, *broken,
    )  # fmt: skip
    try:
        yield
    except UnicodeError as error:
        raise ValueError(_not_utf8(source)) from error
    except ways as error:
        if "invalid UTF8" in str(error):
            raise ValueError(_not_utf8(source)) from error
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's own, and not a decompressor's
        reason = str(error).strip().partition("\n")[0] or "it ends too early"
        raise ValueError(f"{source} cannot be read as {what}: {reason}") from error


def _not_utf8(source: Source) -> str:
    return f"{source} is not UTF-8: convert it, for instance with iconv -f latin1 -t utf-8."


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


def check_output(output: Path, source: Source, overwrite: bool) -> None:
    """Refuse, in one sentence, an output that cannot be written or that would destroy something."""
    directory = output.resolve().parent
    if not directory.is_dir():
        raise ValueError(f"{directory}: there is no such directory for the output.")
    if not os.access(directory, os.W_OK):
        raise ValueError(f"{directory}: no permission to write the output there.")
    if not output.exists():
        return
    if source.path is not None and os.path.samefile(source.path, output):
        raise ValueError(f"{output} is the input itself: choose another name for the output.")
    if not output.is_file():
        raise ValueError(f"{output} exists and is not a file: choose another name for the output.")
    if not overwrite:
        raise ValueError(f"{output} exists already: add --overwrite, or choose another name.")


def check_second_output(second: Path, output: str | None, source: Source, overwrite: bool) -> None:
    """The same for a file that is written beside the output."""
    taken = [source.path, None if output is None else Path(output)]
    if second.resolve() in [path.resolve() for path in taken if path is not None]:
        raise ValueError(f"{second} is the name of two files: choose another one.")
    check_output(second, source, overwrite)
