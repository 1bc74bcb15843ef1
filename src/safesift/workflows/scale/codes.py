"""The piece of every row in a few bits, in memory or, beyond a budget, in a nameless file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.workflows.scale.scratch import Scratch

Codes = NDArray[np.uint8]


def _bits(n_codes: int) -> int:
    """What a number below that takes: a loss of somebody else may have many pieces."""
    return next(bits for bits in (2, 4, 8) if n_codes <= 2**bits)


def _pack(codes: Codes, bits: int) -> Codes:
    """Small numbers, several to a byte."""
    per_byte = 8 // bits
    padded = np.zeros(-(-len(codes) // per_byte) * per_byte, dtype=np.uint8)
    padded[: len(codes)] = codes
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    found = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1)
    return found.astype(np.uint8)


def _unpack(packed: Codes, bits: int, n: int) -> Codes:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[:, None] >> shifts) & (2**bits - 1)).ravel()[:n]


class Packed(NamedTuple):
    """The pieces of some rows on their way to somebody else."""

    data: Codes
    bits: int
    n: int

    @classmethod
    def of(cls, codes: Codes) -> Packed:
        bits = _bits(int(np.max(codes, initial=0)) + 1)
        return cls(_pack(codes, bits), bits, len(codes))

    def unpacked(self) -> Codes:
        return _unpack(*self)


class CodeStore:
    """For every part and every problem an array of small numbers.

    Parameters
    ----------
    lengths : mapping of int to int
        How many rows every part has.
    n_problems : int
    n_codes : int
        Numbers are smaller than that.
    budget : int
        What may be held in memory, in bytes.
    """

    def __init__(
        self, lengths: Mapping[int, int], n_problems: int, n_codes: int, budget: int
    ) -> None:
        self._bits = _bits(n_codes)
        self.lengths = dict(lengths)
        self.n_problems = n_problems
        self._sizes = {part: self._packed_size(n) for part, n in self.lengths.items()}
        ends = np.cumsum([n_problems * size for size in self._sizes.values()], dtype=np.int64)
        self._starts = dict(zip(self._sizes, [0, *ends.tolist()[:-1]], strict=True))
        self._scratch = Scratch(int(ends[-1]) if len(ends) else 0, budget)

    def dump(self, file: IO[bytes]) -> None:
        """Write all of it, a piece at a time."""
        self._scratch.dump(file)

    def load(self, file: IO[bytes]) -> None:
        """Read what `dump` has written."""
        self._scratch.load(file)

    @property
    def on_disk(self) -> bool:
        return self._scratch.on_disk

    def _packed_size(self, n_rows: int) -> int:
        return -(-n_rows * self._bits // 8)

    def _place(self, part: int, problem: int) -> tuple[int, int]:
        size = self._sizes[part]
        return self._starts[part] + problem * size, size

    def get(self, part: int, problem: int) -> Codes:
        """The numbers of one part for one problem."""
        packed = self._scratch.read(*self._place(part, problem))
        return _unpack(packed, self._bits, self.lengths[part])

    def put(self, part: int, problem: int, codes: Codes) -> None:
        """Replace the numbers of one part for one problem."""
        start, _ = self._place(part, problem)
        self._scratch.write(start, _pack(codes, self._bits))

    def patch(self, part: int, problem: int, rows: NDArray[np.intp], codes: Codes) -> None:
        """Replace the numbers of some rows."""
        own = self.get(part, problem).copy()
        own[rows] = codes
        self.put(part, problem, own)


class RowMask:
    """A mask over all rows of a source that is read part by part.

    Parameters
    ----------
    codes : CodeStore
    problems : iterable of int
        A row counts where one of them says so.
    true : mask
        For every number whether it stands for True.
    """

    def __init__(self, codes: CodeStore, problems: Iterable[int], true: NDArray[np.bool_]) -> None:
        self._codes, self._problems, self._true = codes, tuple(problems), true

    @classmethod
    def any(cls, masks: Sequence[RowMask]) -> RowMask:
        """Rows that one of several masks on the same rows selects."""
        first = masks[0]
        return cls(first._codes, (k for mask in masks for k in mask._problems), first._true)

    def __len__(self) -> int:
        return sum(self._codes.lengths.values())

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __repr__(self) -> str:
        return f"<RowMask: {self.sum()} of {len(self)} rows>"

    def part(self, part: int) -> NDArray[np.bool_]:
        """Of the rows of one part."""
        own = [self._true[self._codes.get(part, problem)] for problem in self._problems]
        return np.any(own, axis=0)

    def __iter__(self) -> Iterator[NDArray[np.bool_]]:
        """Of one part after the other."""
        return (self.part(part) for part in self._codes.lengths)

    def sum(self) -> int:
        """How many rows it selects."""
        return sum(int(np.count_nonzero(part)) for part in self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray:
        """All of it, a byte per row."""
        return np.concatenate([*self, np.zeros(0, dtype=bool)]).astype(dtype or bool)
