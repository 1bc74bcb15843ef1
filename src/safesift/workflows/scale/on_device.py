"""Rows that come in blocks, on a device: as a whole where they fit, else sent there in every pass.

    source ── once ── targets, weights, sizes, seals
       │
       └── again ─── the rows: into one matrix on the device, or, where that has no room, read again
                     whenever a product needs them (`SourceArray`)

From there on they are rows on a device as any others, of the one driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic.devices.places import Place, free_bytes, is_out_of_memory, place_named
from safesift.design.block_source import Block, BlockSource
from safesift.design.device import Placed
from safesift.design.placing import say_sent
from safesift.workflows.scale.reading import unchanged
from safesift.workflows.scale.results import refuse_given

Array = NDArray[np.float64]

# of the room of a device, what rows may take: vectors over the samples and matrices need some, too
_SHARE = 0.8


class DeviceSamples(NamedTuple):
    """Rows on a device, with targets and weights in this process."""

    X: Placed
    y: NDArray
    weights: Array


def samples_on_device(
    who: str, X: Any, y: Any, sample_weight: Any, device: str | None
) -> tuple[Any, Any, Any]:
    """What is passed as samples; blocks that are asked for on a device are moved there."""
    if not goes_to_device(X, device):
        return X, y, sample_weight
    refuse_given(who, y=(y, None), sample_weight=(sample_weight, None))
    assert device is not None
    return on_device(X, device)


def goes_to_device(X: Any, device: str | None) -> bool:
    """Whether these are blocks, and a device is asked for."""
    return device is not None and isinstance(X, BlockSource)


def on_device(source: BlockSource, device: str) -> DeviceSamples:
    """All samples of a source.

    Raises
    ------
    ValueError
        Where the rows are sparse, are to be scaled, or are on a cluster.
    """
    place = place_named(device)
    for name, given in (("scale", source.scale), ("checkpoint", source.checkpoint)):
        if given is not None:
            raise ValueError(
                f"{name}={str(given)!r} has no meaning for blocks on a device (device={device!r}): "
                "leave one of them out."
            )
    if source.client is not None:
        raise ValueError(
            f"device={device!r} does not take rows of a cluster: leave it at None, or pass blocks "
            "of this machine."
        )
    rows, y, weights = _surveyed(source, device)
    moved = Placed(_moved(rows, place), place, columns=source.feature_names)
    return DeviceSamples(moved, y, weights)


def _surveyed(source: BlockSource, device: str) -> tuple[SourceArray, NDArray, Array]:
    """One pass: what there is."""
    targets, weights, seals, types = [], [], [], set()
    width = None
    for part in range(source.n_parts):
        own = []
        for block in source.blocks(part, checked=True):
            if sparse.issparse(block.X):
                raise TypeError(
                    f"device={device!r} takes dense rows, and {source.place(part)} has sparse ones:"
                    " leave device at None."
                )
            width = block.X.shape[1] if width is None else width
            if block.X.shape[1] != width:
                raise ValueError(
                    f"{source.place(part)} has {block.X.shape[1]} columns, and others have {width}."
                )
            # whoever makes blocks may fill the same memory again
            targets.append(block.y.copy())
            weights.append(block.weights.copy())
            if _kind(block.y) != _kind(targets[0]):
                raise ValueError(
                    f"{source.place(part)} has targets of type {block.y.dtype}, and the first part "
                    f"has {targets[0].dtype}: make all of them strings, or all of them numbers."
                )
            types.add(block.X.dtype)
            own.append((block.n_rows, block.seal()))
        seals.append(tuple(own))
    if width is None:
        raise ValueError("there are no rows.")
    array = SourceArray(source, tuple(seals), width, np.result_type(*types))
    return array, np.concatenate(targets), np.concatenate(weights)


def _kind(y: NDArray) -> str:
    """Numbers are one kind, whatever their type."""
    return "number" if y.dtype.kind in "biuf" else y.dtype.kind


def _moved(rows: SourceArray, place: Place) -> Any:
    """One matrix on the device; the rows as they are, where it has no room for that."""
    n, p = rows.shape
    room = free_bytes(place)
    if room and n * p * rows.dtype.itemsize > _SHARE * room:
        say_sent(place)
        return rows
    try:
        found = place.xp.empty((n, p), dtype=place.dtype(rows.dtype), device=place.device)
        for start, block in rows.blocks():
            found[start : start + len(block), :] = place.moved(block)
        return found
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    say_sent(place)
    return rows


@dataclass(frozen=True, eq=False)
class SourceArray:
    """The rows of a source by their numbers, as an array has them; a part is held at a time.

    Attributes
    ----------
    source : BlockSource
    seals : tuple
        For every part the lengths of its blocks, and by what it is noticed that they changed.
    n_columns : int
    dtype : dtype
    features : array of int, optional
        Some of the columns.
    """

    source: BlockSource
    seals: tuple[tuple[tuple[int, bytes], ...], ...]
    n_columns: int
    dtype: np.dtype
    features: NDArray[np.intp] | None = None
    # the rows of the part that was asked for last
    _held: dict[int, NDArray] = field(default_factory=dict)

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        lengths = [sum(n for n, _ in own) for own in self.seals]
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)

    @property
    def shape(self) -> tuple[int, int]:
        width = self.n_columns if self.features is None else len(self.features)
        return int(self._starts[-1]), width

    @property
    def ndim(self) -> int:
        return 2

    def blocks(self) -> Iterator[tuple[int, NDArray]]:
        """The number of the first row of every block, and its rows."""
        for part, first in enumerate(self._starts[:-1].tolist()):
            for block in self._unchanged(part):
                yield first + block.start, block.X.astype(self.dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            rows, columns = key
            assert rows == slice(None), "rows or columns, not both"
            chosen = np.arange(self.shape[1])[columns]
            chosen = chosen if self.features is None else self.features[chosen]
            return SourceArray(self.source, self.seals, self.n_columns, self.dtype, chosen)
        n = self.shape[0]
        indices = np.arange(*key.indices(n)) if isinstance(key, slice) else np.asarray(key)
        return self._taken(indices)

    def _taken(self, indices: NDArray[np.intp]) -> NDArray:
        """Rows by numbers, in their order."""
        found = np.empty((len(indices), self.shape[1]), dtype=self.dtype)
        starts = self._starts
        parts = np.searchsorted(starts, indices, side="right") - 1
        for part in np.unique(parts).tolist():
            here = parts == part
            found[here] = self._part(part)[indices[here] - starts[part]]
        return found

    def _part(self, part: int) -> NDArray:
        # products ask for rows in their order: the part that was asked for last is asked for next
        rows = self._held.get(part)
        if rows is None:
            self._held.clear()
            rows = np.concatenate([block.X for block in self._unchanged(part)])
            rows = rows if self.features is None else rows[:, self.features]
            self._held[part] = rows
        return rows

    def _unchanged(self, part: int) -> Iterator[Block]:
        return unchanged(self.source.blocks(part), self.seals[part], self.source.place(part))
