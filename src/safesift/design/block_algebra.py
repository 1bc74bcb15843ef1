"""What is computed of a block of rows, float64, whether it is an array or a CSR matrix."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic.threads import run

Array = NDArray[np.float64]

# columns of a tile of a Gram matrix: fewer make products of matrices slow
TILE = 256


def norms_sq(block: Any) -> Array:
    """‖a_i‖² of every row."""
    if not sparse.issparse(block):
        return np.einsum("ij,ij->i", block, block)
    from safesift.arithmetic.compiled import csr

    out, rows = np.empty(block.shape[0]), np.arange(block.shape[0])
    csr.norms_sq(block.data, block.indices, block.indptr, 0, rows, out)
    return out


def weighted_norms_sq(block: Any, weights: Array) -> Array:
    """Σ_j weights_j a_ij² of every row."""
    return squared(block) @ weights


def add_gram(total: Array, block: Any, weights: Array) -> None:
    """total += Σ weights_i a_i a_iᵀ for weights ≥ 0: one symmetric product, in half the work.

    Large ones in tiles, which threads share out; `total` is symmetric.
    """
    root = scaled(block, np.sqrt(weights))
    p = root.shape[1]
    if sparse.issparse(root) or p <= TILE:
        total += dense(root.T @ root)
        return
    ends = np.linspace(0, p, -(-p // TILE) + 1).astype(int)
    parts = [slice(start, stop) for start, stop in pairwise(ends)]

    def fill(tile: tuple[slice, slice]) -> None:
        product = root[:, tile[0]].T @ root[:, tile[1]]
        total[tile] += product
        if tile[0] != tile[1]:
            total[tile[::-1]] += product.T

    run(fill, combinations_with_replacement(parts, 2))


def signed_gram(block: Any, weights: Array) -> Array:
    """Σ weights_i a_i a_iᵀ for weights of any sign, exactly symmetric."""
    product = dense(block.T @ scaled(block, weights))
    return 0.5 * (product + product.T)


def with_ones(block: Any) -> Any:
    """The rows with a one at the end of each."""
    n, p = block.shape
    if not sparse.issparse(block):
        return np.concatenate([block, np.ones((n, 1))], axis=1)
    ends = block.indptr[1:]
    entries = np.insert(block.data, ends, 1.0), np.insert(block.indices, ends, p)
    return sparse.csr_array((*entries, block.indptr + np.arange(n + 1)), shape=(n, p + 1))


def scaled(block: Any, weights: Array) -> Any:
    """The rows times their weights."""
    if sparse.issparse(block):
        return sparse.diags_array(weights) @ block
    return weights[:, None] * block


def taken(block: Any, indices: NDArray[np.intp], axis: int) -> Any:
    """Some rows or columns; NumPy's `take` is faster than its indexing."""
    if sparse.issparse(block):
        return block[indices] if axis == 0 else block[:, indices]
    return block.take(indices, axis=axis)


def squared(block: Any) -> Any:
    """a_ij² of every entry."""
    return block.power(2) if sparse.issparse(block) else np.square(block)


def largest(data: Any) -> Array:
    """max_j |a_ij| of every row, in any type."""
    if sparse.issparse(data):
        return np.ravel(abs(data.astype(np.float64)).max(axis=1).toarray())
    return np.abs(data.astype(np.float64)).max(axis=1, initial=0.0)


def dense(product: Any) -> Array:
    """An array, whatever a product is."""
    return product.toarray() if sparse.issparse(product) else product
