"""Σ over rows of what they contribute to the objective, with bounds on the rounding of the sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic.numerics import EPS, length_bound

Array = NDArray[np.float64]

# rows whose products are summed at a time, so that errors do not grow with their number
_BLOCK = 256


class Terms(NamedTuple):
    """½·quadratic·t² + linear·t + constant of some rows, times their weights; any sign."""

    quadratic: Array
    linear: Array
    constant: Array


@dataclass(frozen=True, eq=False)
class Sums:
    """½xᵀQx + qᵀx + r, not divided by the total weight.

    Attributes
    ----------
    Q, q, r : array, array, float
    Q_error, q_error, r_error : float
        ‖computed − exact‖, in the Frobenius norm, the 2-norm and absolutely, for all that was ever
        added or taken away. What a removed row leaves behind is no more than that.
    Q_size, q_size : float
        Bounds on the norms of Q and q.
    """

    Q: Array
    q: Array
    r: float
    Q_error: float = 0.0
    q_error: float = 0.0
    r_error: float = 0.0
    Q_size: float = 0.0
    q_size: float = 0.0

    @classmethod
    def zero(cls, n_columns: int) -> Sums:
        return cls(np.zeros((n_columns, n_columns)), np.zeros(n_columns), 0.0)

    def plus(self, block: Any, norms: Array, terms: Terms) -> Sums:
        """With the terms of some rows; taken away, if they have the other sign.

        A sum of m products is off by (m + 2)·EPS times the sum of their sizes, and adding it to
        what is there by EPS times the result.
        """
        lost = (block.shape[0] + 8) * EPS
        Q = self.Q + weighted_gram(block, terms.quadratic)
        q = self.q + block.T @ terms.linear
        r = self.r + float(terms.constant.sum())
        Q_size, q_size = length_bound(Q.ravel()), length_bound(q)
        quadratic, linear, constant = np.abs(terms)
        return Sums(
            Q, q, r,
            self.Q_error + lost * float((quadratic * norms) @ norms) + EPS * Q_size,
            self.q_error + lost * float(linear @ norms) + EPS * q_size,
            self.r_error + lost * float(constant.sum()) + EPS * abs(r),
            Q_size, q_size,
        )  # fmt: skip

    def value(self, point: Array) -> float:
        """½xᵀQx + qᵀx + r."""
        return float(point @ (0.5 * (self.Q @ point) + self.q)) + self.r

    def rounding(self, length: float) -> float:
        """What computing the value at points of some length may lose."""
        size = length * (length * self.Q_size + self.q_size) + abs(self.r)
        return (len(self.q) + 8) * EPS * size

    def residue(self, length: float) -> float:
        """By how much the value at points of some length is off at most, on account of errors."""
        return self.r_error + length * (self.q_error + 0.5 * length * self.Q_error)

    def gradient_error(self, length: float) -> float:
        """By how much Q @ point + q is off at points of some length, this product included."""
        lost = (len(self.q) + 4) * EPS
        size = self.Q_size * length + self.q_size
        return self.Q_error * length + self.q_error + lost * size


def parts(n_rows: int) -> list[slice]:
    """The rows, few at a time."""
    return [slice(start, start + _BLOCK) for start in range(0, n_rows, _BLOCK)]


def weighted_gram(block: Any, weights: Array) -> Array:
    """Σ weights_i a_i a_iᵀ for weights of any sign, exactly symmetric."""
    if sparse.issparse(block):
        product = (block.T @ (sparse.diags_array(weights) @ block)).toarray()
    else:
        product = block.T @ (weights[:, None] * block)
    return 0.5 * (product + product.T)
