"""Fingerprints of arrays: whether they still hold what they held, for the price of a product."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# numbers that are added up at a time: they stay in the cache
_WORDS = 2**16
# odd, and of the greatest order that there is modulo a power of 2
_FACTOR = 0x9E3779B97F4A7C15


def fingerprint(*parts: Any) -> bytes:
    """Sixteen bytes that tell arrays and CSR matrices of numbers, or anything with a `repr`, apart.

    An array is known by its bits in their logical order, so that a view, a copy and a pickle of it
    have the same.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(repr((part.shape, part.dtype.kind, part.itemsize)).encode())
            digest.update(_folded(part))
        elif sparse.issparse(part):
            digest.update(fingerprint(part.shape, part.data, part.indices, part.indptr))
        else:
            digest.update(repr(part).encode())
    return digest.digest()


def _folded(array: NDArray) -> bytes:
    """Σ_k factor^(K−k)·(block k) modulo a power of 2, for blocks of rows, as integers.

    One number that changes always shows, since the factor is odd. Several do unless they conspire:
    also where rows or columns trade places.
    """
    # in the byte order of the array, which a pickle need not keep
    words = np.asarray(array).view(f"{array.dtype.byteorder}u{array.itemsize}")
    words = words if words.ndim == 2 else words.reshape(-1, 1)
    n_rows = max(_WORDS // max(words.shape[1], 1), 8)
    kind = np.dtype(f"u{max(words.itemsize, 4)}")
    by_columns = words.flags.f_contiguous and not words.flags.c_contiguous
    sums = np.zeros((min(n_rows, len(words)), words.shape[1]), kind, "F" if by_columns else "C")
    factor = kind.type(_FACTOR % 2 ** (8 * kind.itemsize))
    for start in range(0, len(words), n_rows):
        block = words[start : start + n_rows]
        part = sums[: len(block)]
        part *= factor
        part += block
    return sums.tobytes(order="C")
