"""Coordinate descent on the columns of a CSC matrix."""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit

# a sum may be reordered: nothing here is certified
_reordered = cached_njit(nogil=True, fastmath={"reassoc", "contract"})

# an index that is known not to be negative need not be tested for counting from the end
_index = np.uint64


@_reordered
def curvatures(data, indices, indptr, features, weights, out):
    """out_k = Σ_i weights_i a_ij² for j = features_k."""
    for k in range(len(features)):
        j = features[k]
        value = 0.0
        for entry in range(_index(indptr[j]), _index(indptr[j + 1])):
            value += weights[_index(indices[entry])] * data[entry] * data[entry]
        out[k] = value


@_reordered
def lasso_epoch(
    data, indices, indptr, features, which, weights, bends, gradient, threshold, ridge, coef, moved
):  # fmt: skip
    """A step on each x_k for k in `which`; by how much the worst slope was off.

    The model is gradientᵀd + ½Σ weights_i (a_iᵀd)² + ½ridge‖x‖² + threshold‖x‖₁, where x has moved
    by d, and its predictions by `moved`. `bends` are its second derivatives; x_k is the coefficient
    of column features_k.
    """
    worst = 0.0
    for n in range(len(which)):
        k = which[n]
        j, bend = features[k], bends[k]
        if bend <= 0.0:
            continue
        slope = gradient[k] + ridge * coef[k]
        for entry in range(_index(indptr[j]), _index(indptr[j + 1])):
            i = _index(indices[entry])
            slope += data[entry] * (weights[i] * moved[i])
        target = coef[k] - slope / bend
        size = abs(target) - threshold / bend
        change = (np.sign(target) * size if size > 0.0 else 0.0) - coef[k]
        if change != 0.0:
            coef[k] += change
            worst = max(worst, bend * abs(change))
            for entry in range(_index(indptr[j]), _index(indptr[j + 1])):
                moved[_index(indices[entry])] += change * data[entry]
    return worst
