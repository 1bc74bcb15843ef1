"""`DeviceArray`: a vector over the samples that stays on its device, and that NumPy computes with.

All that is computed per sample is written in NumPy, once. Its functions ask their arguments first
whether they know better (`__array_ufunc__`, `__array_function__`), and a `DeviceArray` does: it
answers with the functions of its own library, by the names of the array API standard. What has no
answer here is an error, and so is a `numpy.asarray` of it: nothing that grows with the number of
samples leaves the device unless somebody says so (`on_host`).

Whole sums are split sums of at most `GROUP` terms at a time, in whatever order the device adds
those up: `sum_error` bounds what they round by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from safesift.arithmetic.devices.places import Place, brought_here, name_of

# terms of a sum that are added up at a time
GROUP = 256
_EPS = float(np.finfo(np.float64).eps)
# what answers for NumPy's functions: (place, *arguments) ↦ result (`arithmetic.devices.functions`)
ELEMENTWISE: dict[Any, Callable[..., Any]] = {}
FUNCTIONS: dict[Any, Callable[..., Any]] = {}


def levels_of(n: int) -> int:
    """How many sums of `GROUP` terms a sum of n terms goes through."""
    levels = 0
    while n > 1:
        n, levels = -(-n // GROUP), levels + 1
    return levels


def sum_error(n: int) -> float:
    """|computed sum − exact| ≤ this·Σ|terms|, for n terms in any order within their groups."""
    return levels_of(n) * GROUP * _EPS


def on_host(values: Any) -> Any:
    """A `DeviceArray` as one of NumPy; anything else as it is."""
    return brought_here(values.array) if isinstance(values, DeviceArray) else values


def unwrapped(values: Any) -> Any:
    """A `DeviceArray` as the array of its library; anything else as it is."""
    return values.array if isinstance(values, DeviceArray) else values


def floats(values: Any) -> NDArray[np.float64]:
    """Numbers as an array of float64, where they are."""
    if isinstance(values, DeviceArray):
        there: Any = values if values.dtype == np.float64 else values.astype(np.float64)
        return there
    return np.asarray(values, dtype=np.float64)


def columns_of(values: Any) -> list[Any]:
    """The columns of a matrix, each in one piece."""
    if isinstance(values, DeviceArray):
        return [values[:, k].copy() for k in range(values.shape[1])]
    return list(np.ascontiguousarray(values.T))


def filled(like: Any, value: Any) -> NDArray[np.float64]:
    """One number for every entry of an array, where that is; not stored, where it need not be."""
    if isinstance(like, DeviceArray):
        return np.full_like(like, value, dtype=np.float64)
    return np.broadcast_to(value, np.shape(like))


class DeviceArray(NDArrayOperatorsMixin):
    """An array of another library that behaves as one of NumPy.

    Parameters
    ----------
    array : array of torch, CuPy or array-api-strict
        Referenced, and changed where it is assigned to.

    Attributes
    ----------
    place : Place
        Where it is.
    kind : str
        The name of its type.
    """

    def __init__(self, array: Any, place: Place | None = None) -> None:
        self.array = array
        self.place = Place.of(array) if place is None else place
        self.kind = name_of(array)

    def _like(self, array: Any) -> DeviceArray:
        return DeviceArray(array, self.place)

    # --- what it is --------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.kind)

    @property
    def T(self) -> DeviceArray:
        return self if self.ndim < 2 else self._like(self.place.xp.matrix_transpose(self.array))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray: {self.dtype} {self.shape}, {self.place.name}>"

    def __iter__(self) -> Iterator[DeviceArray]:
        if self.ndim < 2:
            raise TypeError("the entries of a vector on a device are not gone through one by one.")
        return (self._like(self.array[k, ...]) for k in range(len(self)))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("an array has no truth value: use any() or all().")
        return bool(self.array)

    def __float__(self) -> float:
        return float(self.array)

    def __int__(self) -> int:
        return int(self.array)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray:
        raise TypeError(
            f"an array of shape {self.shape} would have to leave its device ({self.place.name})."
        )

    # --- parts -------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, DeviceArray | np.ndarray):
            key = self._indices(key)
            if key.kind == "bool":
                return self._like(self.array[key.array])
            return self._like(self.place.taken(self.array, key.array))
        if isinstance(key, tuple) and any(isinstance(one, np.ndarray) for one in key):
            # numpy.ix_ of a matrix
            rows, columns = (self._indices(one.ravel()).array for one in key)
            taken = self.place.taken
            return self._like(taken(taken(self.array, rows), columns, axis=1))
        found = self.array[self._completed(key)]
        return self._like(found) if found.shape else _number(found)

    def __setitem__(self, key: Any, values: Any) -> None:
        if isinstance(key, np.ndarray) and key.dtype != bool and (np.diff(key) <= 0).any():
            raise TypeError("the indices that are assigned to on a device must rise.")
        if isinstance(key, DeviceArray | np.ndarray):
            self._scatter(self._indices(key), values)
            return
        self.array[self._completed(key)] = plain(values, self.place, self.kind)

    def _completed(self, key: Any) -> tuple[Any, ...]:
        """With all axes told of, as the standard demands."""
        key = key if isinstance(key, tuple) else (key,)
        return key if any(one is Ellipsis for one in key) else (*key, ...)

    def _indices(self, key: Any) -> DeviceArray:
        return key if isinstance(key, DeviceArray) else self._like(self.place.moved(key))

    def _scatter(self, key: DeviceArray, values: Any) -> None:
        """self[key] = values for a mask, or for rising indices; the standard has neither."""
        if self.ndim != 1:
            raise TypeError("only vectors on a device are assigned to by masks and indices.")
        xp, n = self.place.xp, len(self)
        if key.kind != "bool":
            if not key.size:
                return
            everything = xp.arange(n, dtype=key.array.dtype, device=self.place.device)
            places = xp.searchsorted(key.array, everything)
            places = xp.minimum(places, self.place.scalar(len(key) - 1, name_of(places)))
            mask = self.place.taken(key.array, places) == everything
        else:
            mask, places = key.array, None
        if isinstance(values, DeviceArray) and values.ndim:
            if not values.size:
                return
            if places is None:
                counted = xp.astype(mask, xp.int64)
                places = xp.maximum(xp.cumulative_sum(counted) - 1, self.place.scalar(0, "int64"))
            spread = self.place.taken(values.array, places)
        else:
            spread = as_operand(values, self.place, self.kind)
        self.array[...] = self.place.own.where(mask, spread, self.array)

    def take(self, indices: Any, axis: int = 0) -> DeviceArray:
        return self._like(self.place.taken(self.array, self._indices(indices).array, axis))

    def nonzero(self) -> tuple[DeviceArray, ...]:
        xp = self.place.xp
        found = self.array if self.kind == "bool" else self.array != 0
        return tuple(self._like(one) for one in xp.nonzero(found))

    # --- the same in other forms -------------------------------------------------------------

    def astype(self, dtype: Any, copy: bool = True) -> DeviceArray:
        return self._like(self.place.xp.astype(self.array, self.place.dtype(dtype), copy=copy))

    def copy(self) -> DeviceArray:
        return self._like(self.place.xp.asarray(self.array, copy=True))

    def reshape(self, *shape: Any) -> DeviceArray:
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        return self._like(self.place.xp.reshape(self.array, shape))

    def ravel(self) -> DeviceArray:
        return self.reshape(-1)

    # --- sums, and the like ------------------------------------------------------------------

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Any:
        xp = self.place.xp
        if keepdims:
            return self._like(xp.expand_dims(self.sum(axis=axis).array, axis=axis))
        if self.kind == "bool":
            counted = xp.sum(xp.astype(self.array, xp.int64), axis=axis)
            return self._like(counted) if counted.shape else int(counted)
        if axis is None:
            return np.float64(float(split_sum(xp.reshape(self.array, (-1,)), xp)))
        moved = self.array if axis in (0, -self.ndim) else xp.moveaxis(self.array, axis, 0)
        return self._like(split_sum(moved, xp))

    def mean(self) -> float:
        return self.astype(np.float64).sum() / max(self.size, 1)

    def any(self, axis: int | None = None) -> Any:
        return self._reduced(self.place.xp.any, axis)

    def all(self, axis: int | None = None) -> Any:
        return self._reduced(self.place.xp.all, axis)

    def max(self, axis: int | None = None, initial: Any = None) -> Any:
        return self._extreme(self.place.xp.max, max, axis, initial)

    def min(self, axis: int | None = None, initial: Any = None) -> Any:
        return self._extreme(self.place.xp.min, min, axis, initial)

    def argmax(self, axis: int | None = None) -> Any:
        return self._reduced(self.place.xp.argmax, axis)

    def _extreme(self, function: Any, choose: Any, axis: int | None, initial: Any) -> Any:
        if axis is not None or initial is None:
            return self._reduced(function, axis)
        if not self.size:
            return np.float64(initial)
        found = self._reduced(function, None)
        return found if math.isnan(found) else np.float64(choose(found, initial))

    def _reduced(self, function: Any, axis: int | None) -> Any:
        found = function(self.array, axis=axis)
        return self._like(found) if found.shape else _number(found)

    # --- NumPy's functions -------------------------------------------------------------------

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, where: Any = True,
        **how: Any,
    ) -> Any:  # fmt: skip
        if method != "__call__" or set(how) - {"dtype"}:
            return NotImplemented
        answer = ELEMENTWISE.get(ufunc)
        if answer is None:
            raise TypeError(f"numpy.{ufunc.__name__} is not known for arrays on a device.")
        result = answer(self.place, *inputs)
        if not isinstance(result, DeviceArray):
            return result
        if out is None:
            return result
        (target,) = out
        _assign(target, result, where)
        return target

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        answer = FUNCTIONS.get(function)
        if answer is None:
            raise TypeError(f"numpy.{function.__name__} is not known for arrays on a device.")
        return answer(self.place, *args, **kwargs)


def split_sum(array: Any, xp: Any) -> Any:
    """The sum over the first axis, of at most `GROUP` terms at a time."""
    n, rest = array.shape[0], tuple(array.shape[1:])
    while n > GROUP:
        whole = n // GROUP
        groups = xp.reshape(array[: whole * GROUP, ...], (whole, GROUP, *rest))
        parts = [xp.sum(groups, axis=1)]
        if n % GROUP:
            parts.append(xp.sum(array[whole * GROUP :, ...], axis=0, keepdims=True))
        array = parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)
        n = array.shape[0]
    return xp.sum(array, axis=0)


def _number(found: Any) -> Any:
    """An array without axes as a number of NumPy."""
    kind = name_of(found)
    if kind == "bool":
        return np.bool_(bool(found))
    return np.int64(int(found)) if "int" in kind else np.float64(float(found))


def plain(value: Any, place: Place, dtype: str) -> Any:
    """An operand as the library's operators take it: an array of its own, or a Python number."""
    if isinstance(value, DeviceArray):
        array = value.array
        return array if value.kind == dtype else place.xp.astype(array, place.dtype(dtype))
    if isinstance(value, np.ndarray) and value.size != 1:
        raise TypeError(
            f"an array of shape {value.shape} that is not on the device meets one that is "
            f"({place.name})."
        )
    number = value.item() if isinstance(value, np.ndarray | np.generic) else value
    if dtype == "bool":
        return bool(number)
    return float(number) if dtype.startswith("float") else int(number)


def as_operand(value: Any, place: Place, dtype: str) -> Any:
    """The same for functions, which take arrays only."""
    found = plain(value, place, dtype)
    return found if isinstance(value, DeviceArray) else place.scalar(found, dtype)


def common(values: Sequence[Any]) -> str:
    """The type in which operands meet: the widest there is, and float64 where one is a float."""
    types = tuple(map(_type_of, values))
    found = _meetings.get(types)
    if found is None:
        found = _meetings[types] = _met(types)
    return found


# (types of operands) ↦ the type in which they meet: there are few of them
_meetings: dict[tuple[Any, ...], str] = {}


def _type_of(value: Any) -> Any:
    """The name of a type on a device, NumPy's own, or Python's."""
    if isinstance(value, DeviceArray):
        return value.kind
    return value.dtype if isinstance(value, np.ndarray | np.generic) else type(value)


def _met(types: tuple[Any, ...]) -> str:
    typed = [np.dtype(one) for one in types if isinstance(one, str | np.dtype) or one is float]
    widest = np.result_type(*typed)
    if widest.kind == "b" and int in types:
        widest = np.dtype(np.int64)
    return widest.name


def _assign(target: Any, values: DeviceArray, where: Any = True) -> None:
    """target[where] = values, in the place of the target."""
    array = plain(values, target.place, target.kind)
    if where is not True:
        array = target.place.own.where(where.array, array, target.array)
    target.array[...] = array
