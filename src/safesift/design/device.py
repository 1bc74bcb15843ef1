"""Dense matrices on a device, such as a graphics card: products run where the rows are.

Vectors over the samples are `DeviceArray`s and stay there; points, gradients and all else that has
a number per column are NumPy's. Rows are converted to float64 a block at a time.

Rounding. A prediction is a sum of n_columns products in any order, fused or not; a sum over the
samples is a split one: of at most `_LONGEST` rows in any order, and of those sums at most `GROUP`
at a time (`arithmetic.devices.arrays`). No bound needs more than the number of terms on the way.

In single precision only Gram matrices are: n·p² products, where everything else takes n·p. Columns
of a block are divided by their largest entry, so that whatever underflows is nothing beside them;
sums of at most `_LONGEST` rows are float32, and are added up in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import tally
from safesift.arithmetic.devices import functions as functions  # what NumPy is answered by
from safesift.arithmetic.devices.arrays import (
    GROUP,
    DeviceArray,
    levels_of,
    split_sum,
    sum_error,
)
from safesift.arithmetic.devices.places import (
    DeviceError,
    Place,
    brought_here,
    free_bytes,
    honest_products,
    is_array,
    is_out_of_memory,
    name_of,
    refuse_overrides,
)
from safesift.arithmetic.numerics import EPS, UNDERFLOW
from safesift.design.base import Array
from safesift.design.blocks import slices
from safesift.design.device_blocks import Room, joined, one_ahead, products
from safesift.design.rows import GramPart, RowDesign

# rows of a sum in any order: of a product, and of a Gram matrix
_LONGEST, _LONGEST_GRAM = 1024, 4096
_EPS_SINGLE = float(np.finfo(np.float32).eps)
# the least number that columns are divided by: its inverse is finite
_LEAST_UNIT = 1e-290
# entries of the Gram matrices of the parts of a block
_MATRICES = 2**25
# a copy of the rows as float64 takes one of so many parts of the room that is left; asking how much
# that is takes longer than copying so many bytes
_SPARE, _SMALL = 4, 2**26


@dataclass(frozen=True, eq=False, repr=False)
class DeviceDesign(RowDesign):
    """A dense matrix on a device, referenced and not copied.

    Parameters
    ----------
    array : array of torch, CuPy or array-api-strict, of shape (n_samples, n_features)
        One of NumPy stays where it is, and is sent to the device a block at a time.
    intercept, held : bool
    room : Room, optional
        Shared by all parts of one matrix.
    sent_to : Place, optional
        The device, where the array is one of NumPy.
    single : bool
        Whether Gram matrices are made of products in float32.
    """

    array: Any
    intercept: bool = False
    held: bool = False
    room: Room | None = None
    sent_to: Place | None = None
    single: bool = False
    remote = True

    def __post_init__(self) -> None:
        if self.room is None:
            object.__setattr__(self, "room", Room())
            refuse_overrides(self.place, self.single)

    @cached_property
    def place(self) -> Place:
        """Where products run, and vectors over the samples are."""
        return Place.of(self.array) if self.sent_to is None else self.sent_to

    @property
    def data(self) -> Any:
        return self.array

    @property
    def n_samples(self) -> int:
        return int(self.array.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.array.shape[1])

    @property
    def row_length(self) -> int:
        return self.n_features

    # --- rounding ----------------------------------------------------------------------------

    @property
    def block_rows(self) -> int:
        return _LONGEST

    @property
    def gram_rows(self) -> int:
        return _LONGEST if self.single else _LONGEST_GRAM

    @property
    def sum_error(self) -> float:
        return max(self._split_error(self.block_rows), sum_error(self.n_samples) + 8 * EPS)

    @property
    def gram_error(self) -> float:
        # blocks are added up one by one, those of fewer rows than that as one
        n_blocks = -(-self.n_samples // self.gram_rows)
        error = self._split_error(self.gram_rows) + n_blocks * EPS
        return error + (self.gram_rows + 8) * _EPS_SINGLE if self.single else error

    def _split_error(self, longest: int) -> float:
        """Of sums of so many rows, added up in groups."""
        n_sums = -(-self.n_samples // longest)
        return (min(longest, self.n_samples) + GROUP * levels_of(n_sums) + 8) * EPS

    # --- vectors over the samples ------------------------------------------------------------

    def vector(self, values: Any) -> Any:
        if isinstance(values, DeviceArray):
            return values
        return DeviceArray(self.place.moved(np.asarray(values)), self.place)

    def zeros(self, *shape: int) -> Any:
        return DeviceArray(self._floats(shape), self.place)

    def _floats(self, shape: tuple[int, ...]) -> Any:
        xp = self.place.xp
        return xp.zeros(shape, dtype=xp.float64, device=self.place.device)

    @property
    def sample_blocks(self) -> list[slice]:
        # a device is slow at many small things
        return [slice(0, self.n_samples)]

    # --- blocks of rows ----------------------------------------------------------------------

    def block(self, rows: slice) -> NDArray:
        raise TypeError(
            f"the rows are on a device ({self.place.name}), and here they are needed in this "
            "process: pass a NumPy array."
        )

    def gathered(self, rows: NDArray) -> NDArray:
        return self.block(slice(0, 0))

    def _blocks(self, length: int, rows: Any = None) -> Iterator[tuple[slice, Any]]:
        """Consecutive rows, or consecutive ones of those at some indices, as float64."""
        parts = slices(self.n_samples if rows is None else len(rows), length)
        read = partial(self._converted, rows=rows)
        blocks = map(read, parts) if self.sent_to is None else one_ahead(read, parts, self.place)
        return zip(parts, blocks, strict=True)

    def _converted(self, here: slice, rows: Any) -> Any:
        xp = self.place.xp
        if self.sent_to is not None:
            some = here if rows is None else brought_here(rows.array[here])
            block = self.place.moved(self.array[some])
        elif rows is None:
            block = (self.array if self._doubles is None else self._doubles)[here, :]
        else:
            block = self.place.taken(self.array, rows.array[here])
        return xp.astype(block, xp.float64, copy=False)

    @cached_property
    def _doubles(self) -> Any:
        """All rows as float64, where the device has room to spare; None for a block at a time."""
        if self.sent_to is not None or name_of(self.array) == "float64" or not self.place.is_cuda:
            return None
        n_bytes = 8 * self.n_samples * self.n_features
        if n_bytes > _SMALL and _SPARE * n_bytes > free_bytes(self.place):
            return None
        return self.place.xp.astype(self.array, self.place.xp.float64)

    def _tried(self, work: Callable[[int], Any], multiple: int) -> Any:
        """`work` with blocks of so many rows, or of fewer where the device has no room for them."""
        assert self.room is not None
        while True:
            try:
                with honest_products(self.place):
                    return work(self.room.rows(self.n_columns, multiple))
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                self.room.shrink(self.n_columns, error)

    def _count(self) -> None:
        if not self.held:
            tally.count(self.n_samples)

    def _per_sample(self, function: Callable[[Any], Any], *shape: int) -> DeviceArray:
        """What a function makes of every block, for all samples: numbers, or rows of a shape."""
        xp = self.place.xp
        self._count()

        def work(length: int) -> Any:
            parts = [function(block) for _, block in self._blocks(length)]
            if not parts:
                return self._floats((0, *shape))
            return joined(parts, xp)

        return DeviceArray(self._checked(self._tried(work, 1)), self.place)

    def _summed(self, function: Callable[[slice, Any], tuple[Any, Any]], shape: Any) -> Array:
        """Σ loadsᵀ rows over the samples, of what a function makes of every block: loads and rows.

        In parts of at most `block_rows` rows each.
        """
        xp, longest = self.place.xp, self.block_rows
        self._count()

        def work(length: int) -> Any:
            parts = []
            for here, block in self._blocks(length):
                parts += products(*function(here, block), longest, xp)
            if not parts:
                return self._floats(shape)
            return split_sum(self._checked(joined(parts, xp)), xp)

        return brought_here(self._tried(work, longest))

    def _checked(self, found: Any, kind: str = "float64") -> Any:
        """What a product is, if it is of the type that was asked for."""
        if name_of(found) != kind:
            raise DeviceError(
                f"a product of {kind} came out as {found.dtype} ({self.place.name}), of which "
                "nothing can be certified."
            )
        return found

    # --- products ----------------------------------------------------------------------------

    def matvec(self, x: Array) -> Any:
        p, xp = self.n_features, self.place.xp
        coef = self.place.moved(x[:p])
        pred = self._per_sample(lambda block: xp.matmul(block, coef), *x.shape[1:])
        if not self.intercept:
            return pred
        return pred + (float(x[p]) if x.ndim == 1 else self._like_row(x[p]))

    def _like_row(self, values: Array) -> DeviceArray:
        """A row over a few columns of predictions."""
        return DeviceArray(self.place.moved(values[None, :]), self.place)

    def rmatvec(self, u: Any) -> Array:
        return self._transposed(u, lambda block: block)

    def columns_sq(self, weights: Any) -> Array:
        return self._transposed(weights, lambda block: block * block)

    def _transposed(self, u: Any, entries: Callable[[Any], Any]) -> Array:
        """Σ u_i e(a_ij) for every column; e(1) = 1 for the ones."""
        u, p = self.vector(u), self.n_features
        loads = u if u.ndim == 2 else u.reshape(-1, 1)
        k = loads.shape[1]
        found = self._summed(lambda here, block: (loads.array[here, :], entries(block)), (k, p))
        if self.intercept:
            sums = brought_here(split_sum(loads.array, self.place.xp))
            found = np.concatenate([found, sums[:, None]], axis=1)
        return np.ascontiguousarray(found.T) if u.ndim == 2 else found[0]

    def pass_through(self, x: Array, dual: Callable[[Any, slice], Any]) -> tuple[Any, Array]:
        pred = self.matvec(x)
        return pred, self.rmatvec(dual(pred, slice(0, self.n_samples)))

    def gram_product(self, basis: Array, weights: Any) -> Array:
        p, xp = self.n_features, self.place.xp
        weights = self.vector(weights).reshape(-1, 1).array
        moved, last = self.place.moved(basis[:p]), None
        if self.intercept:
            last = self.place.moved(basis[p:])

        def loads(here: slice, block: Any) -> tuple[Any, Any]:
            pred = xp.matmul(block, moved)
            if last is None:
                return weights[here, :] * pred, block
            ones = xp.ones((block.shape[0], 1), dtype=xp.float64, device=self.place.device)
            return weights[here, :] * (pred + last), xp.concat([block, ones], axis=1)

        return self._summed(loads, (basis.shape[1], self.n_columns)).T

    def weighted_sums(self, quadratic: Any, linear: Any) -> tuple[Array, Array]:
        quadratic = self.vector(quadratic)
        grams = [self.gram(np.maximum(sign * quadratic, 0.0)) for sign in (1.0, -1.0)]
        return brought_here((grams[0] - grams[1]).array), self.rmatvec(linear)

    def projected_sq(self, basis: Array, weights: Array) -> Any:
        p, xp = self.n_features, self.place.xp
        moved, factors = self.place.moved(basis[:p]), self.place.moved(weights)
        last = self.place.moved(basis[p:]) if self.intercept else None

        def squares(block: Any) -> Any:
            projected = xp.matmul(block, moved)
            if last is not None:
                projected = projected + last
            return xp.matmul(projected * projected, factors)

        return self._per_sample(squares)

    def scaled_norms(self, scales: Array) -> Any:
        xp, weights = self.place.xp, np.square(scales)
        moved = self.place.moved(weights[: self.n_features])
        norms_sq = self._per_sample(lambda block: xp.matmul(block * block, moved))
        norms_sq += float(weights[self.n_features :].sum())
        lost = self.n_columns * UNDERFLOW * (1.0 + float(weights.max(initial=0.0)))
        return np.sqrt(norms_sq * (1.0 + 2.0 * self.dot_error) + lost)

    @cached_property
    def row_norms(self) -> Any:
        xp = self.place.xp
        with np.errstate(over="ignore", invalid="ignore"):
            norms_sq = self._per_sample(lambda block: xp.sum(block * block, axis=1))
            norms_sq = (norms_sq + float(self.intercept)) * (1.0 + self.dot_error)
            norms_sq = np.where(norms_sq > 0, norms_sq + self.n_columns * UNDERFLOW, norms_sq)
            return self._repair_underflow(np.sqrt(norms_sq))

    def _repair_underflow(self, norms: Any) -> Any:
        doubtful = norms < 1e-140
        if not doubtful.any():
            return norms
        largest = self.largest_entries(np.flatnonzero(doubtful))
        # not every library has the next number: a few roundings, and the smallest of all, upwards
        bound = largest * (math.sqrt(self.n_columns) * (1.0 + 8 * EPS)) + UNDERFLOW
        norms[doubtful] = np.maximum(norms[doubtful], np.where(largest > 0, bound, 0.0))
        return norms

    def largest_entries(self, rows: Any) -> Any:
        xp = self.place.xp
        part = self.take(rows).as_held()
        if self.n_features == 0:
            return self.zeros(part.n_samples)
        return part._per_sample(lambda block: xp.max(xp.abs(block), axis=1))

    # --- Gram matrices -----------------------------------------------------------------------

    def gram(self, weights: Any) -> Any:
        weights = self.vector(weights)
        used = np.flatnonzero(weights)
        return self.grams([GramPart(used, weights[used])])[0]

    def grams(self, parts: Sequence[GramPart]) -> list[Any]:
        return [self._gram(part) for part in parts]

    def _gram(self, part: GramPart) -> DeviceArray:
        if part.features is not None or part.only is not None:
            raise TypeError("Gram matrices of some columns are not made on a device.")
        xp, d, longest = self.place.xp, self.n_columns, self.gram_rows
        rows = None if len(part.rows) == self.n_samples else part.rows
        if not self.held:
            tally.count(len(part.rows))
        weights: Any = part.weights
        roots = np.sqrt(weights).reshape(-1, 1).array
        # matrices of several parts of a block at a time
        most = max(_MATRICES // max(d, 1) ** 2, 1) * longest

        def work(length: int) -> Any:
            total, short = self._floats((d, d)), self._floats((d, d))
            for here, block in self._blocks(min(length, most), rows):
                root = block * roots[here, :]
                if self.intercept:
                    root = xp.concat([root, roots[here, :]], axis=1)
                short += self._own_products(root)
                # where room is short several blocks are one sum, or there would be more of them
                if here.stop % longest == 0:
                    total += short
                    short = self._floats((d, d))
            return total + short

        total = self._tried(work, longest)
        return DeviceArray(0.5 * (total + xp.matrix_transpose(total)), self.place)

    def _own_products(self, root: Any) -> Any:
        """rootᵀroot, added up of products of at most `gram_rows` rows."""
        xp, longest = self.place.xp, self.gram_rows
        if not self.single:
            return split_sum(self._checked(joined(products(root, root, longest, xp), xp)), xp)
        least = self.place.scalar(_LEAST_UNIT, "float64")
        units = xp.maximum(xp.max(xp.abs(root), axis=0), least)
        short = xp.astype(root / units, xp.float32)
        found = self._checked(joined(products(short, short, longest, xp), xp), "float32")
        return units[:, None] * split_sum(xp.astype(found, xp.float64), xp) * units

    # --- some of the rows or columns ---------------------------------------------------------

    def as_held(self) -> DeviceDesign:
        return self._held(True)

    def _held(self, held: bool) -> DeviceDesign:
        part = replace(self, held=held)
        for name in {"row_norms", "_doubles"} & set(vars(self)):
            vars(part)[name] = vars(self)[name]
        return part

    def moved(self) -> DeviceDesign:
        """The same rows on the device itself, if it has room for them."""
        try:
            return replace(self, array=self.place.moved(self.array), sent_to=None)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return self

    def numbers_of(self, rows: Any) -> Array:
        found = self.take(rows).array
        return (found if isinstance(found, np.ndarray) else brought_here(found)).astype(np.float64)

    def take(self, rows: Any) -> DeviceDesign:
        rows = self.vector(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        if self.sent_to is None:
            taken = self.place.taken(self.array, rows.array)
            part = replace(self, array=taken, held=False)
        else:
            part = replace(self, array=self.array[brought_here(rows.array)], held=False).moved()
        if "row_norms" in vars(self):
            vars(part)["row_norms"] = self.row_norms[rows]
        return part

    def _rows_at(self, indices: Any) -> RowDesign:
        # a copy, on the device: gathering rows for every product would cost more
        return self.take(indices)._held(self.held)

    def columns(self, features: NDArray) -> DeviceDesign:
        if self.sent_to is not None:
            return replace(self, array=self.array[:, features])
        chosen = self.place.moved(np.flatnonzero(features))
        return replace(self, array=self.place.taken(self.array, chosen, axis=1))

    def fingerprint(self) -> bytes:
        # whoever looked at every byte would have to bring it here
        return b""


@dataclass(frozen=True, eq=False)
class Placed:
    """Rows that are computed with on a device, and that are there or sent to it.

    Attributes
    ----------
    array : array
        There; or one of NumPy, or whatever has its rows by the same indices, to be sent.
    place : Place
    single : bool
        Whether Gram matrices are made of products in float32.
    columns : tuple of str, optional
        Their names.
    """

    array: Any
    place: Place
    single: bool = False
    columns: tuple[str, ...] | None = None

    def design(self, intercept: bool) -> DeviceDesign:
        """The matrix."""
        sent_to = None if is_array(self.array) else self.place
        return DeviceDesign(self.array, intercept, sent_to=sent_to, single=self.single)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)
