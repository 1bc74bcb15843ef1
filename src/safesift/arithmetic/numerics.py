"""Floating point with bounds: the few operations whose rounding errors are accounted for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.linalg.lapack import dpotrf

from safesift.arithmetic.devices import algebra
from safesift.arithmetic.devices.arrays import DeviceArray

if TYPE_CHECKING:
    from safesift.design.base import Design
    from safesift.losses import Loss

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
# below this numbers have fewer digits
SMALLEST = float(np.finfo(np.float64).smallest_normal)
# samples that are looked at at a time
_BLOCK = 2**15
# sums of squares between this and its inverse neither overflow nor miss what underflows
_SAFE_SQUARE = 1e-200
# the most a product of two numbers can lose by underflow, and a root of a sum of squares
UNDERFLOW = float(np.finfo(np.float64).smallest_subnormal)
ROOT_UNDERFLOW = 4.0 * UNDERFLOW**0.5


def norm(u: ArrayLike) -> float:
    """‖u‖₂ in float64, without overflow or underflow in between."""
    u = np.asarray(u, dtype=np.float64)
    square = float(np.vdot(u, u))
    if _SAFE_SQUARE < square < 1.0 / _SAFE_SQUARE:
        # squares that underflow are nothing next to it
        return math.sqrt(square)
    largest = np.max(np.abs(u), initial=0.0)
    if largest == 0 or not np.isfinite(largest):
        return float(largest)
    return float(largest * np.linalg.norm(u / largest))


def length_bound(u: Array) -> float:
    """‖u‖₂ rounded up, in one product: for short vectors, of which there are many."""
    return math.sqrt(u @ u) * (1.0 + (len(u) + 4) * EPS) + ROOT_UNDERFLOW


def half_square_over(length: float, divisor: float) -> float:
    """½·length²/divisor, and not less, for a length and a divisor of 0 or more.

    length² underflows from 1e-162 on, whatever the divisor makes of it: the quotient comes first.
    Where that is denormal the length is at most 4, so that its rounding costs twice the smallest
    number, and the last product costs half of it.
    """
    if length == 0:
        return 0.0
    if divisor == 0:
        return math.inf
    return 0.5 * length * (length / divisor) * (1.0 + 4 * EPS) + 4 * UNDERFLOW


def root_over(value: float, divisor: float) -> float:
    """√(value/divisor), and not less, for numbers of 0 or more: also where value/divisor is 0."""
    if value == 0:
        return 0.0
    if divisor == 0:
        return math.inf
    return math.sqrt(value / divisor + UNDERFLOW) * (1.0 + 4 * EPS)


def total(shares: Array, values: Array) -> float:
    """Σ shares_i·values_i by pairwise summation: its error grows with log n, not with n.

    At most (32 + log₂ n)·EPS·Σ|shares_i·values_i|, which `Design.sum_error` covers; a BLAS dot
    product promises only n·EPS.
    """
    result = float((shares * values).sum())
    if math.isfinite(result):
        return result
    counted = shares > 0  # 0·∞: samples without weight do not count, whatever they hold
    return float((shares[counted] * values[counted]).sum())


def row_blocks(n: int) -> list[slice]:
    """The samples in blocks: a few vectors of the length of one fit into the cache."""
    return [slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]


def sum_over_blocks(
    blocks: Collection[slice], sums: Callable[[slice], tuple[float, ...]]
) -> tuple[float, ...]:
    """The sums over all samples of what `sums` returns for a block of them.

    What is computed per sample on the way stays in the cache, and nothing of length n is made.
    """
    parts = [sums(rows) for rows in blocks or [slice(0, 0)]]
    return tuple(exact_sum(column) for column in zip(*parts, strict=True))


def exact_sum(values: Collection[float]) -> float:
    """The sum, rounded once."""
    return math.fsum(values) if all(map(math.isfinite, values)) else float(sum(values))


def target_size(loss: Loss, y: ArrayLike) -> Array:
    """The largest finite number of every target, to which the error of a residual is relative."""
    return np.abs(loss.anchors(y)).max(axis=0)


def prediction_error(
    design: Design, size: float, row_norms: Array, pred: Array, targets: ArrayLike
) -> Array:
    """Bounds on the error of computed predictions, and of their distance to the targets.

    Of some rows of the design, with their norms, predictions and targets, at a point of some
    `Design.size`. Targets are numbers; of intervals, give their `target_size`.
    """
    product = design.dot_error * size * row_norms
    rounding = 4 * EPS * (np.abs(pred) + np.abs(targets) + 1.0)
    return product + rounding + design.n_columns * UNDERFLOW


def add_to_diagonal(H: Array, values: float | Array, stop: int | None = None) -> None:
    """Add numbers to the diagonal of a matrix, to its first ones where there is a stop."""
    stop = len(H) if stop is None else stop
    if isinstance(H, DeviceArray):
        algebra.add_to_diagonal(H, np.broadcast_to(values, stop))
    else:
        H[range(stop), range(stop)] += values


def set_diagonal(H: Array, values: Array) -> None:
    """Replace the diagonal of a matrix."""
    if isinstance(H, DeviceArray):
        algebra.set_diagonal(H, values)
    else:
        H.flat[:: len(H) + 1] = values


def cholesky(H: Array, ridge: float = 0.0) -> tuple[Array, bool]:
    """A Cholesky factor of H + ridge·I, as `cho_solve` takes it, where H is.

    In Fortran order, in which triangular systems are solved several times as fast.
    """
    if isinstance(H, DeviceArray):
        return algebra.cholesky(H, ridge), True
    work = np.array(H, dtype=np.float64, order="C")
    if ridge:
        work[np.diag_indices_from(work)] += ridge
    # its transpose, which is the same matrix, is in Fortran order
    factor, info = dpotrf(work.T, lower=1, clean=1, overwrite_a=1)
    if info != 0:
        raise np.linalg.LinAlgError("the matrix is not positive definite.")
    return factor, True


def cho_solve(factor: tuple[Array, bool], right: Array) -> Array:
    """H⁻¹ right, from the factor of H."""
    if isinstance(factor[0], DeviceArray):
        return algebra.cho_solve(factor[0], right)
    return linalg.cho_solve(factor, right, check_finite=False)


def solve_positive(H: Array, right: Array) -> Array:
    """H⁻¹ right, with as little ridge as makes H positive definite in floating point."""
    if len(H) == 0:
        return right
    ridge, size = 0.0, float(np.max(np.diag(H), initial=0.0)) or 1.0
    while math.isfinite(ridge):
        try:
            return cho_solve(cholesky(H, ridge), right)
        except np.linalg.LinAlgError:
            ridge = max(100.0 * ridge, len(H) * EPS * size)
    return np.full_like(right, math.nan)  # H itself is not finite
