"""Kernels: entries of a Gram matrix by blocks, their diagonal, and how exact they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.extmath import row_norms

from safesift.arithmetic.numerics import EPS

Array = NDArray[np.float64]

# scikit-learn's names, and which of the parameters each takes
KERNELS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "rbf": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "polynomial": ("gamma", "degree", "coef0"),
    "laplacian": ("gamma",),
    "cosine": (),
}
# rows whose kernel with themselves is taken from one block, where there is no formula for it
_DIAGONAL_BLOCK = 64
# rows that are converted to float64 at a time
_CONVERTED = 4096


class NotPositiveError(ValueError):
    """The kernel has a negative eigenvalue, so the problem has no solution."""

    def __init__(self, how: str) -> None:
        super().__init__(
            f"kernel is not positive semidefinite ({how}): use another kernel or parameter, or add "
            "a multiple of the identity to a precomputed matrix."
        )


class Kernel(ABC):
    """A positive semidefinite matrix of n_samples × n_samples, of which blocks can be computed.

    Attributes
    ----------
    n_samples : int
    diagonal : array of shape (n_samples,)
    entry_error : float
        |computed K_ij − exact| ≤ entry_error·√(K_ii·K_jj).
    """

    n_samples: int
    diagonal: Array
    entry_error: float

    @abstractmethod
    def block(self, rows: NDArray, columns: NDArray | slice) -> Array:
        """K[rows, columns] in float64."""


@dataclass(frozen=True, eq=False)
class PairwiseKernel(Kernel):
    """A kernel of the rows of a matrix, by scikit-learn's name or as a function.

    Parameters
    ----------
    X : array or CSR matrix
        float32 rows are converted block by block.
    metric : str or callable
        A key of `KERNELS`, or a function of two matrices that returns one entry per pair of rows.
    parameters : dict
        Those of `KERNELS` for the name.
    """

    X: Any
    metric: str | Callable
    parameters: dict[str, float]

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    def block(self, rows: NDArray, columns: NDArray | slice) -> Array:
        left, right = self.X[rows], self.X[columns]
        if right.dtype == np.float64:
            return self.between(left, right)
        # what has to be converted is not converted whole
        starts = range(0, right.shape[0], _CONVERTED)
        return np.hstack([self.between(left, right[i : i + _CONVERTED]) for i in starts])

    def between(self, X: Any, Y: Any) -> Array:
        """One entry for each pair of rows of two matrices."""
        X, Y = _double(X), _double(Y)
        if not callable(self.metric):
            with config_context(assume_finite=True):
                return _dense(pairwise_kernels(X, Y, metric=self.metric, **self.parameters))
        values = _dense(self.metric(X, Y))
        if values.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"kernel returned shape {values.shape} for {X.shape[0]} and {Y.shape[0]} rows: it "
                "must take two matrices and return one entry for each pair of their rows."
            )
        return values

    @cached_property
    def diagonal(self) -> Array:
        match self.metric:
            case "rbf" | "laplacian":
                return np.ones(self.n_samples)
            case "cosine":
                return (self._norms_sq > 0).astype(np.float64)
            case "linear":
                return self._norms_sq
            case "poly" | "polynomial":
                inside = self.parameters["gamma"] * self._norms_sq + self.parameters["coef0"]
                return inside ** self.parameters["degree"]
        starts = range(0, self.n_samples, _DIAGONAL_BLOCK)
        parts = (self.X[start : start + _DIAGONAL_BLOCK] for start in starts)
        return np.concatenate([np.diag(self.between(part, part)) for part in parts])

    @property
    def entry_error(self) -> float:
        """A dot product of p terms, and what the function of it makes of its error."""
        product = (self.X.shape[1] + 8) * EPS
        match self.metric:
            case "rbf":
                # from ‖x‖² + ‖y‖² − 2xᵀy, times gamma, in the exponent
                size = 2.0 * self.parameters["gamma"] * float(self._norms_sq.max(initial=0.0))
                return product * max(size, 1.0)
            case "poly" | "polynomial":
                # (gamma·‖x‖‖y‖ + coef0)^degree is at most the root of both diagonal entries
                return product * max(self.parameters["degree"], 1.0)
        return 4.0 * product

    @cached_property
    def _norms_sq(self) -> Array:
        return np.asarray(row_norms(_double(self.X), squared=True), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class PrecomputedKernel(Kernel):
    """A Gram matrix that is given: its entries are the problem, so they have no error."""

    matrix: NDArray
    entry_error: float = 0.0

    @property
    def n_samples(self) -> int:
        return len(self.matrix)

    @cached_property
    def diagonal(self) -> Array:
        return np.diag(self.matrix).astype(np.float64)

    def block(self, rows: NDArray, columns: NDArray | slice) -> Array:
        part = self.matrix[rows]
        return np.asarray(part[:, columns], dtype=np.float64)


def _double(X: Any) -> Any:
    """float64, and indices as all of scikit-learn's kernels take them."""
    X = X.astype(np.float64, copy=False)
    if sparse.issparse(X) and X.indices.dtype == np.int64 and X.nnz < 2**31:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        return type(X)(parts, shape=X.shape)
    return X


def _dense(K: Any) -> Array:
    return np.asarray(K.toarray() if sparse.issparse(K) else K, dtype=np.float64)
