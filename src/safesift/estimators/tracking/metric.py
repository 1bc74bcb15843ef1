"""How long a step is: in the metric of the rows, so that lengths say how far predictions move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.arithmetic.numerics import EPS, ROOT_UNDERFLOW, cholesky, length_bound, norm

Array = NDArray[np.float64]

# an inverse that is off by more than that is not worth the trouble
_LOOSEST = 1e-3
# what is added to the second moments, relative to their mean: directions without any may get some
_RIDGE = 1e-2


@dataclass(frozen=True, eq=False)
class Metric:
    """|aᵀd| ≤ width(a)·length(d) for every row a and step d.

    From two matrices with T·S ≈ I, aᵀd = (Tᵀa)ᵀ(Sd) + aᵀ(I − TS)d, and with ‖I − TS‖ ≤ η the rest
    is at most η‖a‖‖d‖ ≤ ‖Tᵀa‖·η‖S‖/(1 − η)·‖d‖. That S is a Cholesky factor of the second moments
    of the rows makes the bound good, and is not needed for it to hold.

    Attributes
    ----------
    T, S : arrays of shape (n_columns, n_columns)
    T_size, S_size : float
        Their Frobenius norms.
    looseness : float
        η.
    """

    T: Array
    S: Array
    T_size: float
    S_size: float
    looseness: float

    @classmethod
    def of(cls, moments: Array) -> Metric:
        """From the second moments of the rows, or anything like them."""
        identity = np.eye(len(moments))
        try:
            with np.errstate(all="ignore"):
                ridge = _RIDGE * float(np.trace(moments)) / len(moments)
                S = cholesky(moments, ridge)[0].T
                return cls._checked(np.linalg.inv(S), S)
        except np.linalg.LinAlgError:
            return cls._checked(identity, identity)

    @classmethod
    def _checked(cls, T: Array, S: Array) -> Metric:
        T_size, S_size = norm(T), norm(S)
        rest = norm(np.eye(len(S)) - T @ S) + (len(S) + 4) * EPS * T_size * S_size
        if not rest < _LOOSEST:
            raise np.linalg.LinAlgError("an inverse that is not one")
        return cls(T, S, T_size, S_size, rest)

    def widths(self, block: Any, norms: Array) -> Array:
        """‖Tᵀa‖ of the rows of a block, rounded up; never 0, since rooms are divided by it."""
        image = block @ self.T
        lost = (len(self.T) + 8) * EPS * self.T_size
        return norms_of(image) + lost * norms

    def length(self, step: Array) -> float:
        """The length of a step, rounded up."""
        image = self.S @ step
        rest = self.looseness / (1.0 - self.looseness) + (len(step) + 8) * EPS
        length = length_bound(image) + rest * self.S_size * length_bound(step)
        return length * (1.0 + 16 * EPS)

    def radius(self, euclidean: float) -> float:
        """The largest length of steps of a Euclidean length."""
        return euclidean * self.S_size * (1.0 + 2.0 * self.looseness + 1e-10)


def norms_of(block: Any) -> Array:
    """The norms of rows, rounded up, and never 0: squares may underflow."""
    if sparse.issparse(block):
        squares = block.multiply(block).sum(axis=1)
    else:
        squares = np.einsum("ij,ij->i", block, block)
    lost = (block.shape[1] + 8) * EPS
    return np.sqrt(squares) * (1.0 + lost) + block.shape[1] * ROOT_UNDERFLOW
