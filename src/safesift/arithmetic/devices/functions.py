"""What answers for NumPy's functions where an argument is a `DeviceArray`.

Each is one line by a function of the array API standard, or a few by others of this table.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from safesift.arithmetic.devices.arrays import (
    ELEMENTWISE,
    FUNCTIONS,
    DeviceArray,
    as_operand,
    common,
    plain,
)
from safesift.arithmetic.devices.places import Place, brought_here

# what libraries have otherwise than the standard, by themselves: a sign of NaN is 0 there, and not
# every one has powers by that name
_OTHERWISE = ("sign", "pow")

# --- elementwise -----------------------------------------------------------------------------


def _operation(apply: Callable[..., Any]) -> Callable[..., DeviceArray]:
    """By an operator of Python, which takes numbers as they are."""

    def answer(place: Place, *values: Any) -> DeviceArray:
        dtype = common(values)
        return DeviceArray(apply(*[plain(value, place, dtype) for value in values]), place)

    return answer


def _function(name: str, dtype: str | None = None) -> Callable[..., DeviceArray]:
    """By a function of the library."""

    def answer(place: Place, *values: Any) -> DeviceArray:
        kind = dtype or common(values)
        found = (as_operand(value, place, kind) for value in values)
        library = place.xp if name in _OTHERWISE else place.own
        return DeviceArray(getattr(library, name)(*found), place)

    return answer


def _power(place: Place, base: Any, exponent: Any) -> Any:
    if np.ndim(exponent) == 0 and float(exponent) == 2.0:
        return base * base
    return _function("pow", "float64")(place, base, exponent)


def _matmul(place: Place, left: Any, right: Any) -> Any:
    """Of two vectors over the samples a number; of a matrix over the columns, where that is asked.

    Vectors over the columns are NumPy's, and so is the product of a matrix with one.
    """
    if np.ndim(left) == np.ndim(right) == 1:
        return (left * right).sum()
    parts = [
        value.array if isinstance(value, DeviceArray) else place.moved(value)
        for value in (left, right)
    ]
    found = place.xp.matmul(*parts)
    here = not (isinstance(left, DeviceArray) and isinstance(right, DeviceArray))
    return brought_here(found) if here else DeviceArray(found, place)


def _number_of(choose: Any) -> Callable[..., Any]:
    """numpy.fmin and fmax: the number, where the other one is none."""

    def answer(place: Place, one: Any, other: Any) -> Any:
        chosen = choose(one, other)
        return np.where(np.isnan(one), other, np.where(np.isnan(other), one, chosen))

    return answer


ELEMENTWISE.update(
    {
        np.add: _operation(operator.add),
        np.subtract: _operation(operator.sub),
        np.multiply: _operation(operator.mul),
        np.divide: _operation(operator.truediv),
        np.negative: _operation(operator.neg),
        np.greater: _operation(operator.gt),
        np.greater_equal: _operation(operator.ge),
        np.less: _operation(operator.lt),
        np.less_equal: _operation(operator.le),
        np.equal: _operation(operator.eq),
        np.not_equal: _operation(operator.ne),
        np.bitwise_and: _operation(operator.and_),
        np.bitwise_or: _operation(operator.or_),
        np.bitwise_xor: _operation(operator.xor),
        np.logical_and: _function("logical_and", "bool"),
        np.logical_or: _function("logical_or", "bool"),
        np.logical_not: _function("logical_not", "bool"),
        np.invert: _operation(operator.invert),
        np.absolute: _function("abs"),
        np.maximum: _function("maximum"),
        np.minimum: _function("minimum"),
        np.fmin: _number_of(np.minimum),
        np.fmax: _number_of(np.maximum),
        np.sign: _function("sign"),
        np.square: lambda place, x: x * x,
        np.power: _power,
        np.sqrt: _function("sqrt", "float64"),
        np.exp: _function("exp", "float64"),
        np.expm1: _function("expm1", "float64"),
        np.log: _function("log", "float64"),
        np.log1p: _function("log1p", "float64"),
        np.logaddexp: _function("logaddexp", "float64"),
        np.hypot: _function("hypot", "float64"),
        np.copysign: _function("copysign", "float64"),
        np.isnan: _function("isnan", "float64"),
        np.isinf: _function("isinf", "float64"),
        np.isfinite: _function("isfinite", "float64"),
        np.matmul: _matmul,
    }
)


# --- other functions ------------------------------------------------------------------------


def _where(place: Place, condition: Any, one: Any, other: Any) -> DeviceArray:
    dtype = common([one, other]) if _has_type(one, other) else "float64"
    found = (as_operand(value, place, dtype) for value in (one, other))
    mask = as_operand(condition, place, "bool")
    return DeviceArray(place.own.where(mask, *found), place)


def _has_type(*values: Any) -> bool:
    return any(hasattr(value, "dtype") or isinstance(value, float) for value in values)


def _full_like(place: Place, like: Any, value: Any = 0.0, dtype: Any = None) -> Any:
    if not isinstance(like, DeviceArray):
        raise TypeError("only arrays like one on a device are made there.")
    name = like.kind if dtype is None else dtype
    full = place.xp.full(like.shape, value, dtype=place.dtype(name), device=place.device)
    return DeviceArray(full, place)


def _clip(place: Place, values: Any, lower: Any = None, upper: Any = None) -> Any:
    if lower is not None:
        values = np.maximum(values, lower)
    return values if upper is None else np.minimum(values, upper)


def _copyto(place: Place, target: Any, values: Any, where: Any = True) -> None:
    if where is True:
        where = None
    array = as_operand(values, target.place, target.kind)
    if where is not None:
        array = place.own.where(where.array, array, target.array)
    target.array[...] = array


def _diag(place: Place, matrix: Any, k: int = 0) -> NDArray:
    """The diagonal of a matrix over the columns: a vector over them, and so one of NumPy."""
    return brought_here(place.xp.linalg.diagonal(matrix.array, offset=k))


def _polyval(place: Place, coefficients: Any, x: Any) -> Any:
    value = np.full_like(x, float(coefficients[0]))
    for coefficient in coefficients[1:]:
        value = value * x + float(coefficient)
    return value


def _joined(name: str, default: int = 0) -> Callable[..., DeviceArray]:
    def answer(place: Place, arrays: Sequence[Any], axis: int = default) -> DeviceArray:
        return DeviceArray(getattr(place.xp, name)([one.array for one in arrays], axis=axis), place)

    return answer


def _array_equal(place: Place, one: Any, other: Any) -> bool:
    if np.shape(one) != np.shape(other):
        return False
    return bool(np.all(np.equal(one, other)))


def _named(name: str) -> Callable[..., Any]:
    """By the method of that name."""

    def answer(place: Place, values: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(values, name)(*args, **kwargs)

    return answer


FUNCTIONS.update(
    {
        np.where: _where,
        np.clip: _clip,
        np.copyto: _copyto,
        np.full_like: _full_like,
        np.zeros_like: lambda place, like, **how: _full_like(place, like, 0, **how),
        np.empty_like: lambda place, like, **how: _full_like(place, like, 0, **how),
        np.ones_like: lambda place, like, **how: _full_like(place, like, 1, **how),
        np.shape: lambda place, values: values.shape,
        np.ndim: lambda place, values: values.ndim,
        np.diag: _diag,
        np.trace: lambda place, matrix: np.float64(_diag(place, matrix).sum()),
        np.polyval: _polyval,
        np.stack: _joined("stack"),
        np.hstack: lambda place, arrays: _joined("concat")(place, arrays, axis=1),
        np.concatenate: _joined("concat"),
        np.column_stack: lambda place, arrays: np.concatenate(
            [one if one.ndim == 2 else one.reshape(-1, 1) for one in arrays], axis=1
        ),
        np.flatnonzero: lambda place, values: values.nonzero()[0],
        np.count_nonzero: lambda place, values: int((values != 0).sum()),
        np.array_equal: _array_equal,
        np.sum: _named("sum"),
        np.any: _named("any"),
        np.all: _named("all"),
        np.max: _named("max"),
        np.min: _named("min"),
        np.mean: _named("mean"),
    }
)


# --- special functions: SciPy's take no array but those it knows ----------------------------


def expit(x: Any) -> Any:
    """1/(1 + e^{−x}), with all digits on either side."""
    if not isinstance(x, DeviceArray):
        return special.expit(x)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def xlogy(x: Any, y: Any) -> Any:
    """x·log y, 0 for x = 0."""
    if not isinstance(x, DeviceArray):
        return special.xlogy(x, y)
    return np.where(x == 0, 0.0, x * np.log(np.where(x == 0, 1.0, y)))


def xlog1py(x: Any, y: Any) -> Any:
    """x·log(1 + y), 0 for x = 0."""
    if not isinstance(x, DeviceArray):
        return special.xlog1py(x, y)
    return np.where(x == 0, 0.0, x * np.log1p(np.where(x == 0, 0.0, y)))
