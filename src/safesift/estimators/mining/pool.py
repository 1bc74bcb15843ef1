"""A pool of rows that is read again and again, in blocks of the same number of rows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from safesift.design import as_design
from safesift.design.base import Design
from safesift.design.factory import check_finite
from safesift.parameters import check_count
from safesift.registry import provided

_MEGABYTES = re.compile(r"(\d+(?:\.\d+)?) ?MB")
# where one row is a few megabytes, a block has several all the same
_LEAST_ROWS = 16


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that can be read several times.

    Attributes
    ----------
    read : callable
        Begins to read from the first row: an iterator of blocks of any length.
    model : SafeClassifier
        Says what a row must look like.
    block_rows : int
        How many rows a block has that `blocks` yields, but for the last one: what is decided does
        not depend on how the pool was cut when it came.
    """

    read: Callable[[], Iterable[Any]]
    model: Any
    block_rows: int

    def blocks(self) -> Iterator[tuple[int, Design]]:
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
        model = self.model
        try:
            if hasattr(block, "columns"):
                # a frame: the names of its columns are compared with those of the training data
                block = model._validated(
                    block, reset=False, ensure_all_finite=False, ensure_min_samples=0
                )
            rows = as_design(block).data
        except ValueError as error:
            raise ValueError(f"X_pool, from row {start} on: {error}") from None
        if rows.shape[1] != model.n_features_in_:
            raise ValueError(
                f"X_pool has {rows.shape[1]} features (from row {start} on), but the model was "
                f"fitted on {model.n_features_in_}: give the pool the same columns."
            )
        return rows

    def _checked(self, start: int, rows: Any) -> Design:
        design = as_design(rows, bool(self.model.fit_intercept))
        check_finite(design, "X_pool", start)
        return design


def as_pool(X_pool: Any, model: Any, block_size: int | str, row_bytes: float) -> Pool:
    """A pool of whatever the user holds.

    Parameters
    ----------
    X_pool : array, sparse matrix, frame, path, iterable of blocks, or callable that returns one
    block_size : int or str
        Rows, or a size such as "32 MB".
    row_bytes : float
        About how large a row is.
    """
    block_rows = _block_rows(block_size, row_bytes)
    if isinstance(X_pool, str | os.PathLike):
        read = _file_reader(Path(X_pool), model, block_rows)
    elif callable(X_pool):
        read = X_pool
    elif _is_matrix(X_pool):
        matrix = X_pool.tocsr() if sparse.issparse(X_pool) else X_pool
        read = _slicer(np.asarray(matrix) if isinstance(matrix, list | tuple) else matrix)
        read = _per_block(read, block_rows)
    elif isinstance(X_pool, Iterator):
        raise TypeError(
            f"X_pool is a {type(X_pool).__name__}, which can be read once only, but a proof needs "
            "several passes: pass a function that returns a new one."
        )
    elif isinstance(X_pool, Iterable):
        read = X_pool.__iter__
    else:
        raise TypeError(
            f"X_pool must be a matrix, a frame, a path, blocks of rows or a function that returns "
            f"such blocks, got {type(X_pool).__name__}."
        )
    return Pool(read, model, block_rows)


def stacked(parts: list[Any]) -> Any:
    """Matrices on top of each other: sparse if the first one is."""
    if len(parts) == 1:
        return parts[0]
    if sparse.issparse(parts[0]):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate([part.toarray() if sparse.issparse(part) else part for part in parts])


def _block_rows(block_size: int | str, row_bytes: float) -> int:
    if not isinstance(block_size, str):
        return check_count("block_size", block_size)
    size = _MEGABYTES.fullmatch(block_size.strip())
    if size is None or float(size[1]) == 0:
        raise ValueError(
            f"block_size must be a number of rows or a size such as '32 MB', got {block_size!r}."
        )
    return max(int(float(size[1]) * 1e6 / max(row_bytes, 1.0)), _LEAST_ROWS)


def _is_matrix(X: Any) -> bool:
    """Whether it is one matrix, and not a list of them."""
    if isinstance(X, list | tuple):
        return bool(X) and np.ndim(X[0]) < 2 and not sparse.issparse(X[0])
    return hasattr(X, "shape")


def _slicer(matrix: Any) -> Callable[[slice], Any]:
    if hasattr(matrix, "columns"):
        return lambda rows: _safe_indexing(matrix, rows)
    return lambda rows: matrix[rows]


def _per_block(rows_of: Callable[[slice], Any], block_rows: int) -> Callable[[], Iterator[Any]]:
    """Slices of a matrix, so that only one of them is ever converted."""

    def read() -> Iterator[Any]:
        start, block = 0, rows_of(slice(0, block_rows))
        while len(block.shape) != 2 or block.shape[0]:
            yield block
            start += block_rows
            block = rows_of(slice(start, start + block_rows))

    return read


def _file_reader(path: Path, model: Any, block_rows: int) -> Callable[[], Iterator[Any]]:
    if not path.is_file():
        raise ValueError(f"X_pool: there is no file {path}.")
    table = provided("format_of")(path)
    names = tuple(getattr(model, "feature_names_in_", ()))
    return lambda: table.blocks(path, names, model.n_features_in_, block_rows)
