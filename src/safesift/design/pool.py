"""Rows that come in blocks and are read again and again, and the few of them that are held.

A source may yield its rows in blocks of any length; they are cut anew into blocks of one size in
memory, so that nothing that is decided about them depends on how they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.design.factory import as_design, check_finite
from safesift.design.rows import RowDesign, rows_of

Array = NDArray[np.float64]

# a block's share of the budget, and how many of them there are at a time at most: what the source
# yields, what is cut from it, what products convert, what is taken from it
_BLOCK_SHARE, _BLOCKS_AT_ONCE = 1 / 32, 4
# numbers that are computed for every row (predictions, bounds, slopes, verdicts), in bytes as they
# were measured: for a row of a block, and for one that a model is fitted to
_PER_ROW, _PER_HELD_ROW = 128, 512


@dataclass(frozen=True)
class Budget:
    """How much memory a pool may take, in bytes."""

    n_bytes: int

    @property
    def block(self) -> int:
        """What the rows of a block may take."""
        return int(self.n_bytes * _BLOCK_SHARE)

    @property
    def held(self) -> int:
        """What the rows in doubt may take."""
        return self.n_bytes - _BLOCKS_AT_ONCE * self.block

    def after(self, n_bytes: int) -> Budget:
        """What is left for everything else once a copy of some size is made."""
        return Budget(self.n_bytes - n_bytes)


class RowLabels(Protocol):
    """Which class the rows of a pool are of."""

    def signs(self, start: int, n_rows: int, given: Any) -> Array:
        """-1 or 1 for so many rows from a number on, with the labels they came with or None."""

    @property
    def described(self) -> str:
        """Where the labels come from, for error messages."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a pool that follow each other.

    Attributes
    ----------
    start : int
        The number of the first one.
    rows : RowDesign
    signs : array of shape (n_rows,)
        Their classes, -1 and 1.
    """

    start: int
    rows: RowDesign
    signs: Array

    @property
    def stop(self) -> int:
        return self.start + self.rows.n_samples

    def part(self, first: int, last: int) -> Block:
        """Some of them, read where they lie."""
        rows = self.rows.only(np.arange(first, last))
        return Block(self.start + first, rows, self.signs[first:last])

    def held(self, which: NDArray[np.bool_], like: Any) -> HeldRows:
        """A copy of those that a mask selects, of the kind that it has below another matrix."""
        here = np.flatnonzero(which)
        rows = _of_kind(self.rows.take(here).data, like)
        return HeldRows(here + self.start, self.signs[here], rows)


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Some rows of a pool, in memory.

    Attributes
    ----------
    indices : array of shape (n_held,)
        Their numbers in the pool.
    signs : array of shape (n_held,)
        Their classes, -1 and 1.
    rows : array or CSR matrix of shape (n_held, n_features)
    """

    indices: NDArray[np.intp]
    signs: Array
    rows: Any

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def n_bytes(self) -> int:
        """What they take while a model is fitted to them: twice, and the numbers per row."""
        return 2 * _n_bytes(self.rows) + len(self) * _PER_HELD_ROW

    def as_in(self, block: Block) -> NDArray[np.bool_]:
        """Which of them a block, which has them all, has as they are held."""
        here = self.indices - block.start
        ours, theirs = self.rows, block.rows.take(here).data
        same = self.signs == block.signs[here]
        if sparse.issparse(ours) or sparse.issparse(theirs):
            unequal = sparse.csr_array(ours) != sparse.csr_array(theirs)
            return same & (np.diff(unequal.tocsr().indptr) == 0)
        return same & (ours == theirs).all(axis=1)


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that can be read several times, a block at a time.

    Attributes
    ----------
    read : callable
        Begins to read from the first row: an iterator of blocks of any length, each a matrix or a
        pair of a matrix and labels.
    like : RowDesign
        Rows with the same columns; the blocks have an intercept where it has one.
    labels : RowLabels
    budget : Budget
    plain : callable
        Turns a frame into a matrix, or refuses the names of its columns.
    n_rows : int or None
        How many there are, where that is known before they are read.
    lengths : mapping of str to int
        The arguments that have one entry per row, by their names: how many entries they have.
    name : str
        Of the argument, for error messages.
    """

    read: Callable[[], Iterable[Any]]
    like: RowDesign
    labels: RowLabels
    budget: Budget
    plain: Callable[[Any], Any] = np.asarray
    n_rows: int | None = None
    lengths: Mapping[str, int] = field(default_factory=dict)
    name: str = "X_pool"

    def blocks(self) -> Iterator[Block]:
        """All rows, in blocks as large as the budget allows."""
        if self.n_rows is not None:
            self._check_lengths(self.n_rows, is_all=True)
        n_rows = 0
        for rows, signs in self._cut():
            design = rows_of(as_design(rows, self.like.intercept))
            check_finite(design, self.name, n_rows)
            yield Block(n_rows, design, signs)
            n_rows += design.n_samples
        if n_rows == 0:
            raise ValueError(f"{self.name} holds no rows: pass at least one.")
        self._check_lengths(n_rows, is_all=True)

    def _cut(self) -> Iterator[tuple[Any, Array]]:
        """What is read, cut anew where a block is full."""
        waiting: list[tuple[Any, Array]] = []
        used = 0
        for rows, signs in self._labelled():
            ends, used = _block_ends(rows, used, self.budget.block)
            done = 0
            for end in ends:
                yield _together([*waiting, (rows[done:end], signs[done:end])])
                waiting, done = [], end
            if done < rows.shape[0]:
                # whoever makes the blocks may fill the same memory again
                waiting.append((rows[done:].copy(), signs[done:].copy()))
        if waiting:
            yield _together(waiting)

    def _labelled(self) -> Iterator[tuple[Any, Array]]:
        """What is read as matrices, and the signs of their rows."""
        done = 0
        for block in self.read():
            given, labels = block if is_pair(block) else (block, None)
            rows = self._matrix(given, done)
            self._check_lengths(done + rows.shape[0])
            yield rows, self.labels.signs(done, rows.shape[0], labels)
            done += rows.shape[0]

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

    def _check_lengths(self, n_rows: int, is_all: bool = False) -> None:
        """Refuse entries for other rows than the pool has, or has so far."""
        for name, n_entries in self.lengths.items():
            if n_entries < n_rows or (is_all and n_entries > n_rows):
                count = n_rows if is_all else f"at least {n_rows}"
                raise ValueError(
                    f"{name} has {n_entries} entries but {self.name} has {count} rows: pass one "
                    "per row."
                )


def _block_ends(rows: Any, used: int, most: int) -> tuple[list[int], int]:
    """Before which of some rows blocks end, and what the last one takes so far.

    Parameters
    ----------
    used : int
        What the rows take that came before and are not in a whole block yet.
    most : int
        What a block may take; a row that is larger is one by itself.
    """
    least, taken = _least_row(rows), used + np.cumsum(_row_bytes(rows))
    ends: list[int] = []
    n_rows, done, base = rows.shape[0], 0, 0
    while done < n_rows:
        end = int(np.searchsorted(taken, base + most, side="right"))
        if end == done and (ends or not used):
            end += 1
        if end == n_rows and taken[-1] + least <= base + most:
            return ends, int(taken[-1]) - base
        base = int(taken[end - 1]) if end else used
        ends.append(end)
        done = end
    return ends, used if n_rows == 0 else 0


def _row_bytes(rows: Any) -> NDArray[np.int64]:
    """What every row of a matrix takes, with the numbers that are computed for it."""
    if not sparse.issparse(rows):
        return np.full(rows.shape[0], _least_row(rows))
    return np.diff(rows.indptr).astype(np.int64) * _entry_bytes(rows) + _PER_ROW


def _least_row(rows: Any) -> int:
    """What a row of a matrix takes at least."""
    return _PER_ROW + (0 if sparse.issparse(rows) else rows.shape[1] * rows.dtype.itemsize)


def _mean_row(rows: Any) -> float:
    """What a row takes in the mean; of what does not say, as in a float64 array."""
    if sparse.issparse(rows):
        return _PER_ROW + rows.nnz * _entry_bytes(rows) / max(rows.shape[0], 1)
    return _PER_ROW + rows.shape[-1] * getattr(getattr(rows, "dtype", None), "itemsize", 8)


def _entry_bytes(rows: Any) -> int:
    """What a stored entry of a CSR matrix takes, with its column."""
    return rows.dtype.itemsize + rows.indices.itemsize


def _n_bytes(rows: Any) -> int:
    if sparse.issparse(rows):
        return rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    return rows.nbytes


def _of_kind(rows: Any, like: Any) -> Any:
    """Rows of the kind and type that they have in one matrix with others."""
    rows = rows.astype(np.result_type(rows.dtype, like.dtype), copy=False)
    if sparse.issparse(like):
        return sparse.csr_array(rows)
    return rows.toarray() if sparse.issparse(rows) else rows


def _together(parts: Sequence[tuple[Any, Array]]) -> tuple[Any, Array]:
    rows, signs = zip(*parts, strict=True)
    return stacked(rows), np.concatenate(signs)


def stacked(parts: Sequence[Any]) -> Any:
    """Matrices on top of each other: sparse if the first one is."""
    if len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate([part.toarray() if sparse.issparse(part) else part for part in parts])


# --- what a pool may be -------------------------------------------------------------------------


def is_pair(block: Any) -> bool:
    """Whether a block is rows with their labels: no matrix has a matrix for its first row."""
    return isinstance(block, list | tuple) and len(block) == 2 and _n_dimensions(block[0]) == 2


def reader(source: Any, budget: Budget, name: str = "X_pool") -> Callable[[], Iterable[Any]]:
    """What begins to read whatever the user holds, from the first row each time.

    Parameters
    ----------
    source : array, sparse matrix, frame, iterable of blocks, or callable that returns one
    budget : Budget
        As much of a matrix as makes a block is converted at a time.
    name : str
        Of the argument, for error messages.
    """
    if callable(source):
        return source
    if _is_matrix(source):
        return _slices(source, budget)
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


def n_rows_of(source: Any) -> int | None:
    """How many rows there are, where that can be known without reading them."""
    if not _is_matrix(source):
        return None
    return source.shape[0] if hasattr(source, "shape") else len(source)


def by_rows(source: Any, budget: Budget, name: str = "X_pool") -> tuple[Any, Budget]:
    """A sparse matrix whose rows can be read one by one, and what a copy leaves of the budget."""
    if not sparse.issparse(source) or source.format == "csr":
        return source, budget
    n_bytes = source.nnz * (source.dtype.itemsize + np.dtype(np.int64).itemsize)
    if n_bytes > budget.held:
        raise MemoryError(
            f"{name} is a sparse matrix in the format {source.format!r}, and a copy by rows takes "
            f"up to {in_words(n_bytes)} of the {in_words(budget.n_bytes)} that memory allows: pass "
            f"{name}.tocsr(), or a larger memory."
        )
    return source.tocsr(), budget.after(n_bytes)


def in_words(n_bytes: int) -> str:
    """A size for people."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} bytes"


def _n_dimensions(X: Any) -> int:
    """Of an array or of nested lists, by their first rows."""
    if isinstance(X, list | tuple):
        return 1 + (_n_dimensions(X[0]) if X else 0)
    return len(getattr(X, "shape", ()))


def _is_matrix(X: Any) -> bool:
    """Whether it is one matrix, and not a list of them."""
    if isinstance(X, list | tuple):
        return bool(X) and _n_dimensions(X) <= 2
    return bool(getattr(X, "shape", ()))


def _slices(X: Any, budget: Budget) -> Callable[[], Iterator[Any]]:
    from sklearn.utils import _safe_indexing

    matrix = np.asarray(X) if isinstance(X, list | tuple) else X
    n_rows = max(int(budget.block // _mean_row(matrix)), 1)

    def rows(start: int) -> Any:
        part = slice(start, start + n_rows)
        return _safe_indexing(matrix, part) if hasattr(matrix, "columns") else matrix[part]

    def read() -> Iterator[Any]:
        start, block = 0, rows(0)
        # what is no matrix is refused by whoever reads it
        while len(block.shape) != 2 or block.shape[0]:
            yield block
            start += n_rows
            block = rows(start)

    return read
