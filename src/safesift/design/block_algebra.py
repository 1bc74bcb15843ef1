"""What is computed of a block of rows, float64, whether it is an array or a CSR matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]


def norms_sq(block: Any) -> Array:
    """‖a_i‖² of every row."""
    if not sparse.issparse(block):
        return np.einsum("ij,ij->i", block, block)
    from safesift.arithmetic.compiled import csr

    out = np.empty(block.shape[0])
    csr.norms_sq(block.data, block.indptr, out)
    return out


def gram(block: Any, weights: Array) -> Array:
    """Σ weights_i a_i a_iᵀ, exactly symmetric: for weights ≥ 0 one product, in half the work."""
    if weights.min(initial=0.0) < 0:
        product = dense(block.T @ scaled(block, weights))
        return 0.5 * (product + product.T)
    root = scaled(block, np.sqrt(weights))
    return dense(root.T @ root)


def scaled(block: Any, weights: Array) -> Any:
    """The rows times their weights."""
    if sparse.issparse(block):
        return sparse.diags_array(weights) @ block
    return weights[:, None] * block


def columns_sq(block: Any, weights: Array) -> Array:
    """Σ weights_i a_ij² of every column."""
    if sparse.issparse(block):
        return block.power(2).T @ weights
    return weights @ np.square(block)


def largest(data: Any) -> Array:
    """max_j |a_ij| of every row, in any type."""
    if sparse.issparse(data):
        return np.ravel(abs(data.astype(np.float64)).max(axis=1).toarray())
    return np.abs(data.astype(np.float64)).max(axis=1, initial=0.0)


def dense(product: Any) -> Array:
    """An array, whatever a product is."""
    return product.toarray() if sparse.issparse(product) else product
