"""Samples that are read a block at a time, as often as a proof needs, and never as a whole.

A source is cut into *parts* that can be read in any order and by anybody: a slice of an array, a
row group of a file, what a function makes of a number. A part is read as one or more *blocks*, in
their order. Nothing that is computed depends on who reads which part.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic import tally
from safesift.arithmetic.fingerprints import fingerprint
from safesift.design.arrays import plain_array, refuse_missing
from safesift.design.factory import as_design, check_finite
from safesift.design.rows import rows_of
from safesift.parameters import check_memory

Array = NDArray[np.float64]

# numbers in a block: few enough for several of them to be held at a time, many enough for a thread
BLOCK_ENTRIES = 2**21

# entries below that can be squared and added up, however many there are
_SURELY_SQUARED = 1e140
# what a short text takes as an object
_TEXT_BYTES = 56

_SCALES = (None, "standard")


class Raw(NamedTuple):
    """Rows, targets and weights (or None) as a source has them."""

    X: Any
    y: Any
    weights: Any = None


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that follow each other in one part of a source.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        In the type in which it came.
    y : array of shape (n_rows,) or (n_rows, 2)
        As it came: labels, numbers, or ends of intervals.
    weights : array of shape (n_rows,)
    part, start : int
        The part, and the number of the first row in it.
    """

    X: Any
    y: NDArray
    weights: Array
    part: int
    start: int

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    @property
    def n_bytes(self) -> int:
        """What it takes in memory."""
        X = self.X
        parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
        texts = _TEXT_BYTES * len(self.y) if self.y.dtype == object else 0
        return texts + sum(part.nbytes for part in (*parts, self.y, self.weights))

    @property
    def largest(self) -> float:
        """max |entry|; NaN where one is."""
        entries = self.X.data if sparse.issparse(self.X) else self.X
        if not entries.size:
            return 0.0
        return float(np.maximum(entries.max(), -float(entries.min())))

    def copy(self) -> Block:
        """The same rows in arrays of its own."""
        return replace(self, X=self.X.copy(), y=self.y.copy(), weights=self.weights.copy())

    def seal(self) -> bytes:
        """Sixteen bytes by which whoever reads the block again notices that it has changed."""
        plain = self.y.dtype.kind in "fiub" and self.y.dtype.itemsize <= 8
        y = self.y if plain else _as_bytes(self.y)
        return fingerprint(self.X, y, self.weights)


class BlockSource(ABC):
    """Samples in parts that can be read again and again, made by the functions of `ss.blocks`.

    Parameters
    ----------
    memory : int or str
        What may be held at a time: of rows, and of matrices with a row for each column.
    scale : None or "standard"
        Whether columns are divided by their deviation, and centred, before anything is fitted.
    checkpoint : str or Path, optional
        A directory by which a run that was killed goes on after its last completed pass.

    Attributes
    ----------
    n_parts : int
    n_rows : int or None
        Where it is known before the rows are read.
    feature_names : tuple of str or None
    """

    feature_names: tuple[str, ...] | None = None
    n_rows: int | None = None

    def __init__(
        self, memory: int | str, scale: str | None, checkpoint: str | Path | None = None
    ) -> None:
        self.memory = check_memory(memory)
        if scale not in _SCALES:
            raise ValueError(f"scale must be None or 'standard', got {scale!r}.")
        if not isinstance(checkpoint, str | Path | None):
            raise TypeError(
                f"checkpoint must be a directory, got {type(checkpoint).__name__}: name one."
            )
        self.scale = scale
        self.checkpoint = None if checkpoint is None else Path(checkpoint)

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f", {self.n_rows} rows"
        return f"<{type(self).__name__}: {self.n_parts} parts{rows}>"

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """How many parts there are."""

    @abstractmethod
    def raw(self, part: int) -> Iterator[Raw]:
        """The blocks of a part, as they come."""

    @abstractmethod
    def place(self, part: int) -> str:
        """What a part is, for error messages."""

    def to_keep(self, block: Block) -> Block | None:
        """A block that stays as it is; None where it costs nothing to have it again.

        Whoever makes blocks may fill the same memory again: a copy, here.
        """
        return block.copy()

    # --- of rows that are on a cluster --------------------------------------------------------

    @property
    def client(self) -> Any:
        """Who knows of the cluster that the rows are on; None where they are not on any."""
        return None

    def pieces(self, part: int) -> Sequence[Any]:
        """What a part is made of there, none where whoever reads it finds it by himself."""
        return ()

    def holding(self, part: int, pieces: Sequence[Any]) -> BlockSource:
        """The source for somebody who has these pieces of a part at hand."""
        return self

    # --- rows ---------------------------------------------------------------------------------

    def blocks(self, part: int, checked: bool = False) -> Iterator[Block]:
        """The blocks of a part; where they are `checked`, what cannot be computed with is refused.

        Raises
        ------
        ValueError
            Names the part, the row in it and the column.
        """
        start = 0
        for raw in self.raw(part):
            try:
                block = _block(raw, part, start)
                if checked:
                    # row norms, which tell what is wrong and where, cost more than a look
                    if not block.largest < _SURELY_SQUARED:
                        rows = rows_of(as_design(block.X)).as_held()
                        check_finite(rows, first_row=start, columns=self.feature_names)
                    _check_entries(block)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{self.place(part)}: {error}") from None
            tally.count(block.n_rows)
            if block.n_rows:
                yield block
            start += block.n_rows


def _block(raw: Raw, part: int, start: int) -> Block:
    # what lies anywhere in memory is summed in another order: the same rows have the same bits
    X = _aligned(rows_of(as_design(raw.X)).data)
    y = np.require(plain_array("y", raw.y), requirements="A")
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if len(y) != X.shape[0]:
        raise ValueError(f"there are {X.shape[0]} rows from row {start} on, but {len(y)} targets.")
    if raw.weights is None:
        return Block(X, y, np.ones(len(y)), part, start)
    weights = plain_array("weight", raw.weights).astype(np.float64)
    if weights.shape != (len(y),):
        raise ValueError(f"there are {len(y)} rows from row {start} on, but the weights have shape "
                         f"{weights.shape}.")  # fmt: skip
    return Block(X, y, weights, part, start)


def _aligned(X: Any) -> Any:
    if not sparse.issparse(X):
        return np.require(X, requirements="A")
    if all(part.flags.aligned for part in (X.data, X.indices, X.indptr)):
        return X
    return X.copy()


def _check_entries(block: Block) -> None:
    """Refuse weights and targets that are missing, infinite, or negative."""
    y, weights = block.y, block.weights
    refuse_missing("y", y)
    if y.dtype.kind == "f":
        missing = np.isnan(y) if y.ndim == 1 else np.isnan(y).any(axis=1)
        _refuse(missing, "y contains NaN", block)
    _refuse(~np.isfinite(weights), "the weight is NaN or infinite", block)
    _refuse(weights < 0, "the weight is negative", block)


def _refuse(bad: NDArray[np.bool_], what: str, block: Block) -> None:
    if bad.any():
        row = block.start + int(np.argmax(bad))
        raise ValueError(f"{what} (first in row {row}): remove those rows first.")


def _as_bytes(y: NDArray) -> NDArray:
    text = np.asarray(y).astype(str)
    return np.frombuffer(blake2b(text.tobytes(), digest_size=16).digest(), dtype=np.uint8)


# --- arrays, and whatever can be made again by number ---------------------------------------


class ArraySource(BlockSource):
    """Rows of one matrix in memory or in a memory map, in slices."""

    def __init__(
        self,
        X: Any,
        y: Any,
        weight: Any,
        memory: int | str,
        scale: str | None,
        checkpoint: str | Path | None = None,
    ) -> None:
        super().__init__(memory, scale, checkpoint)
        self._X = X.tocsr() if sparse.issparse(X) else _matrix(X)
        self._y, self._weight = plain_array("y", y), weight
        if self._weight is not None:
            self._weight = plain_array("weight", weight)
        for name, values in (("y", self._y), ("weight", self._weight)):
            if values is not None and len(values) != self._X.shape[0]:
                raise ValueError(
                    f"{name} has {len(values)} entries but X has {self._X.shape[0]} rows."
                )
        self.n_rows = self._X.shape[0]
        names = getattr(X, "columns", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names = tuple(names)
        self._length = rows_in_a_block(self._X, self.memory)

    def __getstate__(self) -> dict[str, Any]:
        """A memory map travels by its name: whoever reads it opens the file."""
        state = dict(vars(self))
        for name in ("_X", "_y", "_weight"):
            if isinstance(state[name], np.memmap) and (place := _place(state[name])) is not None:
                state[name] = place
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        found = {k: v.opened() if isinstance(v, _MapPlace) else v for k, v in state.items()}
        self.__dict__.update(found)

    @property
    def n_parts(self) -> int:
        return max(-(-self._X.shape[0] // self._length), 1)

    def raw(self, part: int) -> Iterator[Raw]:
        rows = slice(part * self._length, (part + 1) * self._length)
        weights = None if self._weight is None else self._weight[rows]
        yield Raw(np.asarray(self._X[rows]) if not sparse.issparse(self._X) else self._X[rows],
                  self._y[rows], weights)  # fmt: skip

    def to_keep(self, block: Block) -> None:
        return None

    def place(self, part: int) -> str:
        first = part * self._length
        return f"rows {first} to {min(first + self._length, self._X.shape[0]) - 1}"


class CallSource(BlockSource):
    """Blocks that a function makes, each by its number."""

    def __init__(
        self,
        make: Any,
        n_blocks: int,
        memory: int | str,
        scale: str | None,
        checkpoint: str | Path | None = None,
    ) -> None:
        super().__init__(memory, scale, checkpoint)
        if not callable(make):
            raise TypeError(f"make_block must be a function, got {type(make).__name__}.")
        if not isinstance(n_blocks, int | np.integer) or n_blocks < 1:
            raise ValueError(f"n_blocks must be a positive integer, got {n_blocks!r}.")
        self._make, self._n_blocks = make, int(n_blocks)

    @property
    def n_parts(self) -> int:
        return self._n_blocks

    def raw(self, part: int) -> Iterator[Raw]:
        made = self._make(part)
        if not isinstance(made, tuple) or len(made) not in (2, 3):
            raise TypeError(
                f"make_block({part}) must return (X, y) or (X, y, weight), got "
                f"{type(made).__name__}."
            )
        yield Raw(*made)

    def place(self, part: int) -> str:
        return f"block {part}"


class _MapPlace(NamedTuple):
    """Where a memory map is."""

    filename: str
    dtype: Any
    shape: tuple[int, ...]
    offset: int
    order: Any

    def opened(self) -> np.memmap:
        return np.memmap(self.filename, self.dtype, "r", self.offset, self.shape, self.order)


def _place(array: np.memmap) -> _MapPlace | None:
    """None of a view, such as some of the columns, which is no map of its own."""
    whole = isinstance(array.base, mmap.mmap) and array.filename is not None
    if not whole or not (array.flags.c_contiguous or array.flags.f_contiguous):
        return None
    order = "C" if array.flags.c_contiguous else "F"
    return _MapPlace(str(array.filename), array.dtype, array.shape, array.offset, order)


def _matrix(X: Any) -> Any:
    """An array, referenced as it is: a memory map stays one."""
    array = X if isinstance(X, np.ndarray) else plain_array("X", X)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"X must be a matrix with rows and columns, got shape {array.shape}.")
    return array


def rows_in_a_block(X: Any, memory: int) -> int:
    """How many rows make a block: by their entries, and less where the budget is small."""
    entries = X.nnz / max(X.shape[0], 1) if sparse.issparse(X) else X.shape[1]
    most = min(BLOCK_ENTRIES, max(memory // 256, 1))
    return max(int(most // max(entries, 1)), 1)
