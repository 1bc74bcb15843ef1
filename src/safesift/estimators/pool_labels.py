"""Which class the rows of a pool are of: one label for all, one for each, or as the rows came."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.problem.inputs import vector

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PoolLabels:
    """The labels of a pool, one source of them.

    Attributes
    ----------
    classes : array of shape (2,)
        Those of the model, which stand for -1 and 1.
    label : object or None
        That of all rows.
    y_pool : array or None
        Signs of all rows.
    """

    classes: NDArray
    label: Any = None
    y_pool: NDArray[np.int8] | None = None

    @classmethod
    def of(cls, classes: NDArray, label: Any, y_pool: Any) -> PoolLabels:
        """From the arguments of a user; y_pool is None where the rows come with their labels."""
        if label is not None and label not in list(classes):
            raise ValueError(
                f"label={shown(label)} is none of the model's classes, {_listed(classes)}."
            )
        if y_pool is None:
            return cls(classes, label)
        return cls(classes, None, signs_of("y_pool", vector("y_pool", y_pool), classes))

    @property
    def described(self) -> str:
        """Where the labels come from, for error messages."""
        if self.label is not None:
            return f"label={shown(self.label)}"
        return "y_pool" if self.y_pool is not None else "the targets of X_pool"

    def check_source(self, has_targets: bool) -> None:
        """Refuse a pool whose labels come from two sides, or from none."""
        is_told = self.label is not None or self.y_pool is not None
        if has_targets and is_told:
            raise TypeError(
                "X_pool comes with targets, which are used, so "
                f"{self.described.partition('=')[0]} must not be given: leave it out, or pass the "
                "rows without their targets."
            )
        if not has_targets and not is_told:
            raise ValueError(
                "X_pool comes without targets: pass the label of all its rows, "
                f"{' or '.join(f'label={shown(one)}' for one in self.classes)}, or y_pool with the "
                "label of each."
            )

    def signs(self, start: int, n_rows: int, given: Any) -> Array:
        """-1 or 1 for so many rows from a number on, with the labels they came with or None."""
        self.check_source(given is not None)
        if given is not None:
            return self._signs_given(start, n_rows, given)
        if self.y_pool is not None:
            return self.y_pool[start : start + n_rows].astype(np.float64)
        return np.full(n_rows, 1.0 if self.label == self.classes[1] else -1.0)

    def _signs_given(self, start: int, n_rows: int, given: Any) -> Array:
        labels = vector("X_pool: its targets", given)
        if len(labels) != n_rows:
            raise ValueError(
                f"X_pool has {n_rows} rows but {len(labels)} targets, from row {start} on: pass "
                "one per row."
            )
        return signs_of("X_pool", labels, self.classes, start).astype(np.float64)


def signs_of(name: str, labels: NDArray, classes: NDArray, start: int = 0) -> NDArray[np.int8]:
    """Labels as -1 and 1; the first that is no class of the model is named."""
    labels, spelled = _comparable(labels, classes)
    try:
        negative, positive = (labels == label for label in spelled)
    except TypeError:
        raise ValueError(f"{name} contains missing labels: remove those rows first.") from None
    known = negative | positive
    if not np.all(known):
        row = int(np.argmin(known))
        raise ValueError(
            f"{name} has the label {shown(labels[row])} (first in row {start + row}), which is "
            f"none of the model's classes, {_listed(classes)}."
        )
    return np.where(positive, 1, -1).astype(np.int8)


def _comparable(labels: NDArray, classes: NDArray) -> tuple[NDArray, NDArray]:
    """Labels and classes of one kind: the text of a file may stand for numbers or truth values."""
    if _are_numbers(labels) == _are_numbers(classes):
        return labels, classes
    if _are_numbers(classes) and isinstance(next(iter(labels), None), str):
        if classes.dtype == bool:
            return labels.astype(str), classes.astype(str)
        with suppress(TypeError, ValueError):
            return labels.astype(np.float64), classes
    # NumPy compares numbers with text one by one only as objects
    return labels.astype(object), classes


def _are_numbers(values: NDArray) -> bool:
    return values.dtype.kind in "iufb"


def shown(label: Any) -> str:
    """A label as it is written in Python."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def _listed(classes: NDArray) -> str:
    return " and ".join(map(shown, classes))
