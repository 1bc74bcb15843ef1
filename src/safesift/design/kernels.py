"""Kernels: entries of a Gram matrix by blocks, their diagonal, and how exact they are.

A kernel of distances does not change when all rows move, the rounding of ‖x‖² + ‖y‖² − 2xᵀy does:
it is measured from the middle of the rows where they are far from 0 (`PairwiseKernel.origin`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.extmath import row_norms

from safesift.arithmetic.fingerprints import fingerprint
from safesift.arithmetic.numerics import EPS
from safesift.parameters import check_positive
from safesift.registry import unknown_name

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


# rows that are converted to float64, or moved, at a time
_CONVERTED = 4096


# distances are measured from the middle of the rows where squared lengths are so much smaller there
_WORTH_MOVING = 4.0


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
    shift : float or None
        What was added to the diagonal of what the user gave, for a matrix that is proved to be
        positive semidefinite. None where that is taken on the user's word.
    """

    if TYPE_CHECKING:
        # fields of some kernels, computed by others

        @property
        def shift(self) -> float | None: ...

        @property
        def n_samples(self) -> int: ...

        @property
        def diagonal(self) -> Array: ...

        @property
        def entry_error(self) -> float: ...

    @abstractmethod
    def block(self, rows: NDArray, columns: NDArray | slice) -> Array:
        """K[rows, columns] in float64."""

    @abstractmethod
    def fingerprint(self) -> bytes:
        """Tells what the entries are computed from, or are, from anything else."""


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

    @property
    def shift(self) -> float | None:
        """Those of `KERNELS` are Mercer kernels; a function may be one."""
        return None if callable(self.metric) else 0.0

    def block(self, rows: NDArray, columns: NDArray | slice) -> Array:
        left, right = self.X[rows], self.X[columns]
        if right.dtype == np.float64 and self.origin is None:
            return self.between(left, right)
        # what has to be converted, or moved, is not copied whole
        parts = (right[i : i + _CONVERTED] for i in range(0, right.shape[0], _CONVERTED))
        return np.hstack([self.between(left, part) for part in parts])

    def fingerprint(self) -> bytes:
        return fingerprint(self.X)

    def between(self, X: Any, Y: Any) -> Array:
        """One entry for each pair of rows of two matrices."""
        X, Y = self._moved(X), self._moved(Y)
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
                # with M the largest length, the three sums of ‖x‖² + ‖y‖² − 2xᵀy are off by at
                # most 2p·EPS·M², adding them up by 4·EPS·M², and rows that were moved to the origin
                # by 4·EPS·M², as x and y are off by ½EPS·M each; all that times gamma in the
                # exponent, and 3·EPS for the exponential
                size = 2.0 * self.parameters["gamma"] * float(self._norms_sq.max(initial=0.0))
                return product * max(size, 1.0)
            case "poly" | "polynomial":
                # (gamma·‖x‖‖y‖ + coef0)^degree is at most the root of both diagonal entries
                return product * max(self.parameters["degree"], 1.0)
        return 4.0 * product

    # --- where rows are measured from -------------------------------------------------------

    @cached_property
    def origin(self) -> Array | None:
        """The point from which distances are measured; None for 0.

        Any point is right: (x − o) − (y − o) = x − y, and x − o is rounded relative to itself. Of
        sparse rows only columns without zeros are moved, so that they stay sparse.
        """
        if self.metric != "rbf":
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            middle = _middle(self.X)
            if not (np.isfinite(middle).all() and middle.any()):
                return None
            here, there = _largest_sq(self.X, None), _largest_sq(self.X, middle)
        return middle if here > _WORTH_MOVING * there else None

    def _moved(self, X: Any) -> Any:
        return _from(_double(X), self.origin)

    @cached_property
    def _norms_sq(self) -> Array:
        return _lengths_sq(self.X, self.origin)


@dataclass(frozen=True, eq=False)
class PrecomputedKernel(Kernel):
    """A Gram matrix that is given, and a multiple of the identity.

    Its entries, as they are computed here, are the problem: they have no error.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
    shift : float or None
        See `Kernel`.
    symmetric : bool
        Whether it is, to the last bit; if not, it is the mean of the matrix and its transpose.
    indefinite : bool
        Whether the matrix has negative eigenvalues that rounding in double precision does not
        explain.
    """

    matrix: NDArray
    shift: float | None = None
    symmetric: bool = True
    indefinite: bool = False
    entry_error: ClassVar[float] = 0.0

    @property
    def n_samples(self) -> int:
        return len(self.matrix)

    @cached_property
    def diagonal(self) -> Array:
        return np.diag(self.matrix).astype(np.float64) + (self.shift or 0.0)

    def fingerprint(self) -> bytes:
        return fingerprint(self.matrix)

    def block(self, rows: NDArray, columns: NDArray | slice) -> Array:
        part = np.asarray(self.matrix[rows][:, columns], dtype=np.float64)
        if not self.symmetric:
            across = np.asarray(self.matrix[columns][:, rows], dtype=np.float64)
            part = 0.5 * (part + across.T)
        if self.shift:
            part[np.equal.outer(rows, np.arange(self.n_samples)[columns])] += self.shift
        return part


def _middle(X: Any) -> Array:
    """The mean of the rows; of sparse ones, 0 in columns that are not full."""
    n = X.shape[0]
    mean = np.zeros(X.shape[1])
    for start in range(0, n, _CONVERTED):
        mean += np.ravel(_double(X[start : start + _CONVERTED]).sum(axis=0)) / n
    if not sparse.issparse(X):
        return mean
    stored = np.bincount(X.indices, minlength=X.shape[1])
    return np.where(stored == n, mean, 0.0)


def _lengths_sq(X: Any, origin: Array | None) -> Array:
    """Squared lengths of rows, measured from a point."""
    parts = (X[start : start + _CONVERTED] for start in range(0, X.shape[0], _CONVERTED))
    return np.concatenate([row_norms(_from(_double(part), origin), squared=True) for part in parts])


def _largest_sq(X: Any, origin: Array | None) -> float:
    return float(_lengths_sq(X, origin).max(initial=0.0))


def _from(X: Any, origin: Array | None) -> Any:
    """Rows measured from a point; of sparse ones, only where it is not 0."""
    if origin is None:
        return X
    if not sparse.issparse(X):
        return X - origin
    columns, n = np.flatnonzero(origin), X.shape[0]
    indptr = len(columns) * np.arange(n + 1)
    shift = (np.tile(origin[columns], n), np.tile(columns, n), indptr)
    return _double((X - type(X)(shift, shape=X.shape)).tocsr())


def _double(X: Any) -> Any:
    """float64, and indices as all of scikit-learn's kernels take them."""
    X = X.astype(np.float64, copy=False)
    if sparse.issparse(X) and X.indices.dtype == np.int64 and X.nnz < 2**31:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        return type(X)(parts, shape=X.shape)
    return X


def _dense(K: Any) -> Array:
    return np.asarray(K.toarray() if sparse.issparse(K) else K, dtype=np.float64)


# --- from what a user names as a kernel to a `Kernel`, or one sentence on what is wrong with it ---


# rows of a given matrix, or of a function's, of which the eigenvalues are checked beforehand
_CHECKED, _CHECKED_OF_FUNCTION = 3000, 300


# how far from symmetric a matrix may be, relative to its diagonal, in units of its precision
_ASYMMETRY = 100.0


_SINGLE = float(np.finfo(np.float32).eps)


# by how much more is added to the diagonal where less was not enough
_FARTHER = 8.0


@dataclass(frozen=True)
class KernelChoice:
    """A kernel by its name and parameters, as estimators have them.

    Attributes
    ----------
    kernel : str or callable
        A key of `safesift.design.kernels.KERNELS`, "precomputed", or a function of two matrices.
    gamma : float, "scale", "auto" or None
    degree : int
    coef0 : float
    """

    kernel: str | Callable
    gamma: float | str | None = "scale"
    degree: int = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        names = {**KERNELS, "precomputed": ()}
        if not callable(self.kernel) and self.kernel not in names:
            refused = str(unknown_name("kernel", self.kernel, names))
            raise ValueError(f"{refused.removesuffix('.')}, or a function of two matrices.")
        if self.takes("degree") and not (isinstance(self.degree, Integral) and self.degree >= 1):
            raise ValueError(f"degree must be a positive integer, got {self.degree!r}.")
        if self.takes("coef0") and not (
            isinstance(self.coef0, Real) and math.isfinite(self.coef0) and self.coef0 >= 0
        ):
            raise ValueError(
                f"coef0 must be 0 or more, got {self.coef0!r}: below, the kernel is not positive "
                "semidefinite."
            )
        if self.takes("gamma") and self.gamma not in ("scale", "auto", None):
            if isinstance(self.gamma, str):
                raise ValueError(f"gamma must be 'scale', 'auto' or a number, got {self.gamma!r}.")
            check_positive("gamma", self.gamma)

    def takes(self, parameter: str) -> bool:
        """Whether the kernel has a parameter."""
        return isinstance(self.kernel, str) and parameter in KERNELS.get(self.kernel, ())

    def gamma_of(self, X: Any, weights: Array) -> float | None:
        """The number that gamma stands for: scikit-learn's, with the weights of the samples."""
        if not self.takes("gamma"):
            return None
        if self.gamma not in ("scale", "auto", None):
            return float(self.gamma)
        variance = _variance(X, weights) if self.gamma == "scale" else 1.0
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0

    def of(self, X: Any, gamma: float | None) -> Kernel:
        """The kernel of the rows of a matrix (or the matrix itself, if it is precomputed)."""
        if self.kernel == "precomputed":
            return _precomputed(X)
        values: dict[str, Any] = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        parameters = {name: values[name] for name in values if self.takes(name)}
        kernel = PairwiseKernel(X, self.kernel, parameters)
        _check_diagonal(kernel.diagonal)
        if callable(self.kernel):
            _check_function(kernel)
        return kernel


def _variance(X: Any, weights: Array) -> float:
    """Of all entries, rows counted as often as their weights say."""
    shares = weights / weights.sum()
    p = X.shape[1]
    rows = X.astype(np.float64, copy=False)
    mean = float(shares @ np.ravel(rows.sum(axis=1))) / p
    if not sparse.issparse(rows):
        return float(shares @ np.square(rows - mean).sum(axis=1)) / p
    # of squares, the variance of numbers far from 0 would be nothing but rounding
    apart = rows.copy()
    apart.sum_duplicates()
    apart.data = np.square(apart.data - mean)
    zeros = (p - np.diff(apart.indptr)) * mean**2
    return float(shares @ (np.ravel(apart.sum(axis=1)) + zeros)) / p


def _precomputed(K: Any) -> PrecomputedKernel:
    """The kernel of a matrix: what it has to be for every proof in its space, or an error."""
    if sparse.issparse(K):
        raise ValueError("X is sparse, but kernel='precomputed' takes a dense matrix: X.toarray().")
    n, m = K.shape
    if n != m:
        raise ValueError(
            f"X has shape {n} × {m}, but kernel='precomputed' takes the square matrix of kernels "
            "between the training samples."
        )
    precision = float(np.finfo(K.dtype).eps) if K.dtype.kind == "f" else EPS
    kernel = PrecomputedKernel(K)
    _check_diagonal(kernel.diagonal)
    largest = float(kernel.diagonal.max(initial=0.0))
    off = _asymmetry(K)
    if off > _ASYMMETRY * precision * largest + 1e-300:
        raise ValueError(
            f"X is not symmetric (entries differ by {off:.2g} from those across the diagonal): "
            "kernel='precomputed' takes a kernel matrix; pass (X + X.T) / 2 if it should be one."
        )
    kernel = replace(kernel, symmetric=off == 0)
    # rounding every entry moves eigenvalues by about the root of n times its size; a matrix in
    # double precision often comes from single precision
    allowed = 8.0 * math.sqrt(n) * _SINGLE * largest
    if n <= _CHECKED:
        whole = kernel.block(np.arange(n), slice(None))
        shift = _proved_shift(whole, allowed)
        return replace(kernel, shift=shift, indefinite=shift > 4.0 * _lost_by_factors(whole))
    rows = np.sort(np.random.default_rng(0).permutation(n)[:_CHECKED])
    _check_eigenvalues(kernel.block(rows, rows), allowed)
    return kernel


def _proved_shift(K: Array, allowed: float) -> float:
    """The least δ tried for which K + δI is proved to be positive semidefinite.

    Where a Cholesky factorisation of A ends, the computed factor is the exact one of a matrix that
    is within (n + 2)·EPS·trace of A, and so A + (n + 2)·EPS·trace·I is positive semidefinite
    (Rump, "Verification of positive definiteness", 2006). Adding to the diagonal is rounded, too,
    by less than EPS·trace. So δ = 0 where K − lost·I has a factor, and otherwise s + lost for an s
    for which K + sI has one. A kernel matrix is singular to rounding as often as not: then it is
    the s of its own rounding.
    """
    lost = _lost_by_factors(K)
    added, most = -lost, max(allowed, 2.0 * lost)
    while not _has_factor(K, added):
        if added == most:
            raise NotPositiveError(f"least eigenvalue {np.linalg.eigvalsh(K)[0]:.2g}")
        added = min(max(_FARTHER * added, 2.0 * lost), most)
    return max(added + lost, 0.0)


def _lost_by_factors(K: Array) -> float:
    """How far from a matrix of that trace the one is that a computed factor belongs to."""
    return (len(K) + 16) * EPS * float(np.trace(K)) * (1.0 + 1e-6) + 1e-300


def _has_factor(K: Array, added: float) -> bool:
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += added
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True


def _asymmetry(K: NDArray) -> float:
    blocks = range(0, len(K), 512)
    return max(float(np.abs(K[i : i + 512] - K[:, i : i + 512].T).max()) for i in blocks)


def _check_diagonal(diagonal: Array) -> None:
    if not np.isfinite(diagonal).all():
        raise ValueError(
            f"kernel is not finite (first for row {np.flatnonzero(~np.isfinite(diagonal))[0]} with "
            "itself): rescale the features first."
        )
    if (diagonal < 0).any():
        row = int(np.flatnonzero(diagonal < 0)[0])
        raise NotPositiveError(f"row {row} has {diagonal[row]:.2g} with itself")


def _check_function(kernel: PairwiseKernel) -> None:
    n = kernel.n_samples
    rows = np.sort(np.random.default_rng(0).permutation(n)[:_CHECKED_OF_FUNCTION])
    K = kernel.block(rows, rows)
    largest = float(kernel.diagonal.max(initial=0.0))
    if float(np.abs(K - K.T).max()) > 1e-8 * largest + 1e-300:
        raise ValueError("kernel is not symmetric: K(x, y) must be K(y, x).")
    _check_eigenvalues(0.5 * (K + K.T), 1e-8 * largest)


def _check_eigenvalues(K: Array, allowed: float) -> None:
    """Refuse eigenvalues below −allowed, by a Cholesky factor."""
    if not _has_factor(K, allowed + 1e-300):
        raise NotPositiveError(f"least eigenvalue {np.linalg.eigvalsh(K)[0]:.2g}")
