"""Blocks of rows on a device: how large they may be, how they get there, and their products."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from safesift.alerts import warn
from safesift.arithmetic.devices.places import Place, queue_of

# entries of a block
_BLOCK = 2**27
# fewer rows than that are not tried in place of more where memory runs out
_FEWEST_ROWS = 64


class Room:
    """How large blocks may be: as large as the device has proved to have room for."""

    def __init__(self) -> None:
        self.entries, self.said = _BLOCK, False

    def rows(self, n_columns: int, multiple: int) -> int:
        """Rows of a block: several times `multiple`, or a power of 2 that goes into it."""
        most = max(self.entries // max(n_columns, 1), _FEWEST_ROWS)
        return 1 << (most.bit_length() - 1) if most < multiple else most // multiple * multiple

    def shrink(self, n_columns: int, error: BaseException) -> None:
        """Smaller blocks from now on; said once. The error itself, where they cannot be smaller."""
        if self.entries // max(n_columns, 1) <= _FEWEST_ROWS:
            raise error
        self.entries //= 4
        if not self.said:
            self.said = True
            warn(
                "the device has no room for blocks of the usual size, and computes with smaller "
                "ones, more slowly: free some of its memory."
            )


def one_ahead(read: Callable[[slice], Any], parts: Sequence[slice], place: Place) -> Iterator[Any]:
    """What is read of every part, the next one while somebody computes with this one."""
    queue = queue_of(place)

    def read_there(part: slice) -> Any:
        with queue():
            return read(part)

    with ThreadPoolExecutor(1) as pool:
        waiting: deque[Any] = deque()
        for part in parts:
            waiting.append(pool.submit(read_there, part))
            if len(waiting) > 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def products(loads: Any, rows: Any, longest: int, xp: Any) -> list[Any]:
    """loadsᵀ rows of at most so many rows each: stacks of such products."""
    n, whole = rows.shape[0], rows.shape[0] // longest
    parts = []
    if whole:
        stop = whole * longest
        left = xp.reshape(loads[:stop, :], (whole, longest, loads.shape[1]))
        right = xp.reshape(rows[:stop, :], (whole, longest, rows.shape[1]))
        parts.append(xp.matmul(xp.matrix_transpose(left), right))
    if n > whole * longest:
        left, right = loads[whole * longest :, :], rows[whole * longest :, :]
        parts.append(xp.expand_dims(xp.matmul(xp.matrix_transpose(left), right), axis=0))
    return parts


def joined(parts: list[Any], xp: Any) -> Any:
    """One stack of several."""
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)
