"""The same numbers, held in every way: what the laws of matrices are checked on.

A kind of matrix from outside the library goes into `DESIGNS`, by a function that makes one from an
array and is told of the intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from safesift.arithmetic.devices.places import place_named
from safesift.design import Design, as_design
from safesift.design.device import Placed
from safesift.design.slots import as_slots
from tests.laws.returned import Returned


def _with_duplicates(X):
    """COO in which every entry is stored as two halves, in no order."""
    rows, columns = np.nonzero(X)
    order = np.random.default_rng(0).permutation(2 * len(rows))
    values = X[rows, columns]
    # the smallest of all numbers has no half: the other part is what is left
    halves = np.concatenate([values / 2, values - values / 2])[order]
    places = np.tile(rows, 2)[order], np.tile(columns, 2)[order]
    return sparse.coo_array((halves, places), shape=X.shape)


def _unsorted(X):
    """CSR with the entries of every row in reverse order."""
    matrix = sparse.csr_array(X)
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        matrix.indices[start:stop] = matrix.indices[start:stop][::-1].copy()
        matrix.data[start:stop] = matrix.data[start:stop][::-1].copy()
    matrix.has_sorted_indices = matrix.has_canonical_format = False
    return matrix


def _long_indices(X):
    matrix = sparse.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype("int64"), matrix.indptr.astype("int64")
    return matrix


def _explicit_zeros(X):
    """CSR in which zeros are stored too."""
    n, p = X.shape
    indices = np.tile(np.arange(p), n)
    return sparse.csr_array((X.ravel().copy(), indices, np.arange(0, n * p + 1, p)), shape=X.shape)


def _read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


STORAGES: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[::-1][::-1],
    "read-only": _read_only,
    "csr array": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "csr, 64 bit": _long_indices,
    "csr, unsorted": _unsorted,
    "csr, zeros": _explicit_zeros,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "coo, duplicates": _with_duplicates,
    "lil": sparse.lil_array,
}


def in_slots(as_stored: Callable[[np.ndarray], Any], X: np.ndarray, intercept: bool) -> Design:
    """Rows that were written one by one, in no order, in place of others and beyond them."""
    n = len(X)
    design = as_slots(as_stored(np.ones_like(X[: n // 2 + 1])), intercept)
    slots = np.random.default_rng(n).permutation(n + 40)[:n]
    for i in range(n):
        design = design.written(slots[i : i + 1], as_stored(X[i : i + 1]), slots[:i])
    return design.at(slots)


def there(X: np.ndarray, intercept: bool) -> Design:
    """Rows on the device of array-api-strict, and what comes of them here."""
    place = place_named("strict")
    return Returned(Placed(place.moved(X), place).design(intercept))


SLOTS: dict[str, Callable[[np.ndarray], Any]] = {
    "slots": np.asarray,
    "slots, csr": sparse.csr_array,
}
DESIGNS: dict[str, Callable[[np.ndarray, bool], Design]] = {
    name: partial(in_slots, as_stored) for name, as_stored in SLOTS.items()
}
DESIGNS["device"] = there


def storages(*names: str) -> pytest.MarkDecorator:
    """Some of the storages, by default all, and every design that was added."""
    return pytest.mark.parametrize("storage", [*(names or STORAGES), *DESIGNS])


def held(storage: str, X: np.ndarray, intercept: bool = False) -> Any:
    """What a user holds and passes as X."""
    return DESIGNS[storage](X, intercept) if storage in DESIGNS else STORAGES[storage](X)


def design_of(storage: str, X: np.ndarray, intercept: bool = False) -> Design:
    """What the library makes of it."""
    return as_design(held(storage, X, intercept), intercept)
