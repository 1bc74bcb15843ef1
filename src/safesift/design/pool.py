"""Rows that come in blocks and are read again and again, and the few of them that are held.

A source may yield its rows in blocks of any length; they are cut anew into blocks of one length, so
that nothing that is decided about them depends on how they came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.design.factory import as_design, check_finite
from safesift.design.rows import RowDesign, rows_of
from safesift.parameters import check_count

_MEGABYTES = re.compile(r"(\d+(?:\.\d+)?) ?MB")
# where one row is a few megabytes, a block has several all the same
_LEAST_ROWS = 16


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that can be read several times, a block at a time.

    Attributes
    ----------
    read : callable
        Begins to read from the first row: an iterator of blocks of any length.
    like : RowDesign
        Rows with the same columns; the blocks have an intercept where it has one.
    block_rows : int
        How many rows a block has that `blocks` yields, but for the last one.
    plain : callable
        Turns a frame into a matrix, or refuses the names of its columns.
    name : str
        Of the argument, for error messages.
    """

    read: Callable[[], Iterable[Any]]
    like: RowDesign
    block_rows: int
    plain: Callable[[Any], Any] = np.asarray
    name: str = "X_pool"

    def blocks(self) -> Iterator[tuple[int, RowDesign]]:
        """The number of the first row, and the rows."""
        start, waiting = 0, []
        for piece in self._pieces():
            waiting.append(piece)
            n_waiting = sum(part.shape[0] for part in waiting)
            if n_waiting == self.block_rows:
                yield start, self._checked(start, stacked(waiting))
                start, waiting = start + n_waiting, []
            else:
                # whoever makes the blocks may fill the same memory again
                waiting[-1] = piece.copy()
        if waiting:
            yield start, self._checked(start, stacked(waiting))

    def _pieces(self) -> Iterator[Any]:
        """Parts of what is read, cut where one of our blocks ends."""
        done = 0
        for block in self.read():
            rows, position = self._matrix(block, done), 0
            while position < rows.shape[0]:
                room = self.block_rows - done % self.block_rows
                piece = rows[position : position + room]
                yield piece
                position, done = position + piece.shape[0], done + piece.shape[0]

    def _matrix(self, block: Any, start: int) -> Any:
        """A block as an array or CSR matrix in its own type."""
        try:
            plain = self.plain(block) if hasattr(block, "columns") else block
            rows = rows_of(as_design(plain)).data
        except ValueError as error:
            raise ValueError(f"{self.name}, from row {start} on: {error}") from None
        if rows.shape[1] != self.like.n_features:
            raise ValueError(
                f"{self.name} has {rows.shape[1]} features (from row {start} on), but the training "
                f"rows have {self.like.n_features}: give it the same columns."
            )
        return rows

    def _checked(self, start: int, rows: Any) -> RowDesign:
        design = rows_of(as_design(rows, self.like.intercept))
        check_finite(design, self.name, start)
        return design


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Some rows of a pool, in memory.

    Attributes
    ----------
    indices : array of shape (n_held,)
        Their numbers in the pool, rising.
    rows : array or CSR matrix of shape (n_held, n_features)
    """

    indices: NDArray[np.intp]
    rows: Any

    @classmethod
    def of_block(cls, start: int, block: RowDesign, which: NDArray[np.bool_]) -> HeldRows:
        """Those of a block that a mask selects."""
        here = np.flatnonzero(which)
        return cls(here + start, block.take(here).data)

    @classmethod
    def joined(cls, parts: Sequence[HeldRows], like: Any) -> HeldRows:
        """Parts that follow each other, as one matrix of the kind of another."""
        numbers = [np.empty(0, dtype=np.intp), *(part.indices for part in parts)]
        return cls(np.concatenate(numbers), stacked([like[:0], *(part.rows for part in parts)]))

    def __len__(self) -> int:
        return len(self.indices)

    def differing(self, start: int, block: RowDesign) -> NDArray[np.intp]:
        """The numbers of those that a block, which has them all, does not have as they are held."""
        ours, theirs = self.rows, block.take(self.indices - start).data
        if sparse.issparse(ours) or sparse.issparse(theirs):
            unequal = sparse.csr_array(ours) != sparse.csr_array(theirs)
            return self.indices[np.diff(unequal.tocsr().indptr) > 0]
        return self.indices[(ours != theirs).any(axis=1)]


def stacked(parts: Sequence[Any]) -> Any:
    """Matrices on top of each other: sparse if the first one is."""
    if len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate([part.toarray() if sparse.issparse(part) else part for part in parts])


def rows_of_size(block_size: int | str, like: RowDesign) -> int:
    """How many rows a block has, given as their number or as a size such as "32 MB"."""
    if not isinstance(block_size, str):
        return check_count("block_size", block_size)
    size = _MEGABYTES.fullmatch(block_size.strip())
    if size is None or float(size[1]) == 0:
        raise ValueError(
            f"block_size must be a number of rows or a size such as '32 MB', got {block_size!r}."
        )
    X: Any = like.data
    n_bytes = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
    return max(int(float(size[1]) * 1e6 * like.n_samples / max(n_bytes, 1)), _LEAST_ROWS)


def reader(source: Any, block_rows: int, name: str = "X_pool") -> Callable[[], Iterable[Any]]:
    """What begins to read whatever the user holds, from the first row each time.

    Parameters
    ----------
    source : array, sparse matrix, frame, iterable of blocks, or callable that returns one
    block_rows : int
        So many rows of a matrix are converted at a time.
    name : str
        Of the argument, for error messages.
    """
    if callable(source):
        return source
    if _is_matrix(source):
        return _slices(source, block_rows)
    if isinstance(source, Iterator):
        raise TypeError(
            f"{name} is a {type(source).__name__}, which can be read once only, but a proof needs "
            "several passes: pass a function that returns a new one."
        )
    if isinstance(source, Iterable):
        return source.__iter__
    raise TypeError(
        f"{name} must be a matrix, a frame, a path, blocks of rows or a function that returns such "
        f"blocks, got {type(source).__name__}."
    )


def _is_matrix(X: Any) -> bool:
    """Whether it is one matrix, and not a list of them."""
    if isinstance(X, list | tuple):
        return bool(X) and np.ndim(X[0]) < 2 and not sparse.issparse(X[0])
    return hasattr(X, "shape")


def _slices(X: Any, block_rows: int) -> Callable[[], Iterator[Any]]:
    from sklearn.utils import _safe_indexing

    matrix = X.tocsr() if sparse.issparse(X) else X
    matrix = np.asarray(matrix) if isinstance(matrix, list | tuple) else matrix

    def rows(start: int) -> Any:
        part = slice(start, start + block_rows)
        return _safe_indexing(matrix, part) if hasattr(matrix, "columns") else matrix[part]

    def read() -> Iterator[Any]:
        start, block = 0, rows(0)
        # what is no matrix is refused by whoever reads it
        while len(block.shape) != 2 or block.shape[0]:
            yield block
            start += block_rows
            block = rows(start)

    return read
