"""Bytes in memory or, beyond a budget, in a nameless file."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from safesift.design.pool import in_words

Bytes = NDArray[np.uint8]
Array = NDArray[np.float64]

# what is copied to another file at a time
_PIECE = 2**24


def nameless_file(n_bytes: int) -> IO[bytes]:
    """A file of so many zeros without a name: whatever ends the process, nothing is left of it.

    Raises
    ------
    OSError
        Where it cannot be made, or the disk has no room for it: now, and not once it is written to
        (a map of a file without room ends the process).
    """
    with ExitStack() as made:
        try:
            file = made.enter_context(tempfile.TemporaryFile())
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, n_bytes)
            else:
                os.ftruncate(file.fileno(), n_bytes)
        except OSError as error:
            raise OSError(
                f"a temporary file of {in_words(n_bytes)} cannot be made ({error.strerror}): set "
                "TMPDIR to a folder on a disk with so much room, or increase memory."
            ) from None
        made.pop_all()
        return file


class Scratch:
    """So many bytes, zeros at first.

    Parameters
    ----------
    n_bytes : int
    budget : float
        What may be held in memory, in bytes.
    """

    def __init__(self, n_bytes: int, budget: float) -> None:
        self._n_bytes = n_bytes
        self._file: Any = None
        if n_bytes > budget:
            self._file = nameless_file(n_bytes)
            weakref.finalize(self, self._file.close)
        else:
            self._memory = np.zeros(n_bytes, dtype=np.uint8)

    def __getstate__(self) -> dict[str, Any]:
        """A copy for somebody else has all of it in memory."""
        return {"_n_bytes": self._n_bytes, "_file": None, "_memory": self.read(0, self._n_bytes)}

    @property
    def on_disk(self) -> bool:
        return self._file is not None

    def read(self, start: int, size: int) -> Bytes:
        """Some of them, not to be changed."""
        if self._file is None:
            return self._memory[start : start + size]
        found, done = np.empty(size, dtype=np.uint8), 0
        while done < size:  # one call reads at most 2 GB
            done += os.preadv(self._file.fileno(), [found.data[done:]], start + done)
        return found

    def write(self, start: int, content: Bytes) -> None:
        """Replace some of them."""
        if self._file is None:
            self._memory[start : start + len(content)] = content
            return
        done = 0
        while done < len(content):
            done += os.pwritev(self._file.fileno(), [content.data[done:]], start + done)

    def dump(self, file: IO[bytes]) -> None:
        """Write all of it, a piece at a time."""
        for start in range(0, self._n_bytes, _PIECE):
            file.write(self.read(start, min(_PIECE, self._n_bytes - start)).tobytes())

    def load(self, file: IO[bytes]) -> None:
        """Read what `dump` has written, all of it: an `EOFError` where some is missing."""
        for start in range(0, self._n_bytes, _PIECE):
            size = min(_PIECE, self._n_bytes - start)
            content = file.read(size)
            if len(content) < size:
                raise EOFError
            self.write(start, np.frombuffer(content, dtype=np.uint8))


class RowTable:
    """Some numbers of every row.

    Parameters
    ----------
    n_rows, n_columns : int
    budget : float
        What may be held in memory, in bytes.
    """

    def __init__(self, n_rows: int, n_columns: int, budget: float) -> None:
        self.n_rows, self._width = n_rows, 8 * n_columns
        self._scratch = Scratch(n_rows * self._width, budget)

    def put(self, start: int, numbers: Array) -> None:
        """Those of some rows that follow each other."""
        content = np.ascontiguousarray(numbers).view(np.uint8).ravel()
        self._scratch.write(self._width * start, content)

    def get(self, start: int, stop: int) -> Array:
        """The same, not to be changed."""
        found = self._scratch.read(self._width * start, self._width * (stop - start))
        return found.view(np.float64).reshape(stop - start, -1)

    def pieces(self, n_rows: int) -> Iterator[tuple[int, Array]]:
        """All rows, so many at a time, each time with the number of the first one."""
        for start in range(0, self.n_rows, n_rows):
            yield start, self.get(start, min(start + n_rows, self.n_rows))
