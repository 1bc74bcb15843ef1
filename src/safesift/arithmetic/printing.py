"""Records that print in a line or two, however large what they hold is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy import sparse

# what is longer is told by its type
_LONG = 60


class Brief:
    """Prints its fields: numbers and short texts as they are, arrays by their shape.

    For dataclasses with ``repr=False``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, repr=False)
    ... class Point(Brief):
    ...     weight: float
    ...     place: np.ndarray
    >>> Point(0.5, np.zeros((2, 3)))
    Point(weight=0.5, place=<2 × 3 float64>)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return record_in_brief(self)


def record_in_brief(record: Any) -> str:
    """The fields of a dataclass or of a named tuple."""
    shown = ", ".join(f"{name}={brief(value)}" for name, value in _fields(record))
    return f"{type(record).__name__}({shown})"


def brief(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        size = " × ".join(map(str, value.shape)) or "1"
        return f"<{size} {value.dtype}>"
    if isinstance(value, tuple | list) and value and not _is_plain(value):
        return f"<{len(value)} {type(value[0]).__name__}>"
    if isinstance(value, Brief):
        return f"<{type(value).__name__}>"
    text = repr(value)
    return text if len(text) <= _LONG else f"<{type(value).__name__}>"


def _is_plain(values: Any) -> bool:
    return all(isinstance(value, int | float | str | np.number) for value in values)


def _fields(record: Any) -> Iterator[tuple[str, Any]]:
    names = [one.name for one in fields(record)] if is_dataclass(record) else record._fields
    for name in names:
        yield name, getattr(record, name)
