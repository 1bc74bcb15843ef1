"""Dense rows less a number for every column, computed as they are read.

A column far from zero, such as a year or a temperature in kelvin, is nearly a multiple of the ones:
Gram matrices lose (mean/deviation)² of their digits. Where an intercept is not penalised, columns
less any numbers have the same models, a − m for a, with the intercept mᵀx larger. A difference of
two floats is off by half an EPS of *itself*, however near they are to each other, so that nothing
is lost but one more rounding of every entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.design.base import Array, Design
from safesift.design.dense import DenseDesign
from safesift.design.rows import DerivedRows

# columns whose mean is so many times their deviation are far from zero; rows that are looked at
_FAR, _ROWS = 100.0, 256


@dataclass(frozen=True, eq=False, repr=False)
class CenteredDesign(DerivedRows):
    """The rows of a dense matrix, less `means`, and the ones."""

    means: Array

    @property
    def dot_error(self) -> float:
        return super().dot_error + EPS

    def _error_of_sums(self, n_rows: int) -> float:
        return super()._error_of_sums(n_rows) + 2 * EPS

    @property
    def data(self) -> NDArray:
        return self.base.data.astype(np.float64) - self.means

    def block(self, rows: slice) -> NDArray:
        return self.base.block(rows) - self.means

    def gathered(self, rows: NDArray) -> NDArray:
        return self.base.gathered(rows) - self.means

    def take(self, rows: NDArray) -> CenteredDesign:
        return replace(self, base=self.base.take(rows))

    def columns(self, features: NDArray) -> CenteredDesign:
        return CenteredDesign(self.base.columns(features), self.means[features])


def centered(design: Design) -> CenteredDesign | None:
    """The same rows, centred, where columns are far from zero; None where there is no need to.

    Some rows tell whether it is worth looking at all of them: a column that is nearly always the
    same number is not far from zero for that.
    """
    if not (isinstance(design, DenseDesign) and design.intercept and design.n_samples):
        return None
    n, p = design.shape
    rows = design.gathered(np.unique(np.linspace(0, n - 1, _ROWS).astype(np.intp)))
    if not (np.abs(rows.mean(axis=0)) > _FAR * rows.std(axis=0)).any():
        return None
    shares = np.full(n, 1.0 / n)
    means, squares = design.rmatvec(shares)[:p], design.columns_sq(shares)[:p]
    far = means**2 * (1.0 + _FAR**-2) > squares
    return CenteredDesign(design, np.where(far, means, 0.0)) if far.any() else None
