"""Sharper regions from secants bounded on both sides.

Once the predictions at the optimum are known to lie in intervals, the secant slopes of f_i' from
the centre to the optimum lie between a floor w_i and a ceiling c_i, the centre anywhere. With the
same for the penalty (it is quadratic, or no sign changes) the difference u = x* − x₀ solves

    (H + E)u = −g,     H from the floors,   0 ⪯ E ⪯ Δ = (1/W) Σ s_i (c_i − w_i) a_i a_iᵀ + …

so u = −Sg with (H + Δ)⁻¹ ⪯ S ⪯ H⁻¹, and every such Sg lies in the ellipsoid

    aᵀu ∈ −½aᵀ(H⁻¹ + (H+Δ)⁻¹)g ± ½‖a‖_Z‖g‖_Z,     Z = H⁻¹ − (H+Δ)⁻¹.

A sample whose piece is known adds nothing to Δ: when all are, Z = 0 and the optimum is the Newton
step. The bounds so found raise the floors and lower the ceilings again, until nothing moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import on_host
from safesift.arithmetic.numerics import EPS, norm
from safesift.design.rows import RowDesign, rows_of
from safesift.problem.decisions import Bounds
from safesift.regions.base import bounds_of_rows
from safesift.regions.center import Center
from safesift.regions.curvature_models import ExactModel
from safesift.regions.ellipsoidal import EllipsoidalSet, Hull
from safesift.regions.shape import Shape
from safesift.regions.whitening import Whitening, rounding_of_form

Array = NDArray[np.float64]

# up to this share of the columns, uncertain rows are treated one by one
_FEW_ROWS = 0.4
# another round is worth its cost while it takes this share of the uncertainty away
_WORTHWHILE = 0.15


def sharpen(
    center: Center, model: ExactModel, diagonal: Array, start: Hull, bounds: Bounds,
    max_rounds: int,
) -> tuple[Hull, Bounds]:  # fmt: skip
    """The sharper set and bounds, from bounds that hold; `start` and `bounds` if there are none.

    Parameters
    ----------
    diagonal : array of shape (n_features,)
        The curvature of the penalty.
    start : Hull
        A set of which `bounds` are the bounds; it also bounds the coefficients.
    """
    if center.slack > 0:
        return start, bounds
    current, left, secants = start, math.inf, _Secants(center)
    doubtful = center.carrying
    for _ in range(max_rounds):
        ceiling = center.diagonal_ceiling(*current.coordinate_bounds().take(slice(len(diagonal))))
        if not np.isfinite(ceiling).all():
            break
        secants.update(bounds, doubtful)
        doubtful, extra = secants.doubtful, secants.extra
        if float(extra.sum()) >= (1.0 - _WORTHWHILE) * left:
            break
        left = float(extra.sum())
        model.move(secants.floors)
        white = model.whitening(diagonal)
        if white is None:
            break
        stretch = model.stretch(white, diagonal)
        sharper_set = _two_sided_set(center, white, stretch, extra, ceiling - diagonal)
        if sharper_set is None:
            break
        current = sharper_set
        sharper = bounds_of_rows(current, center.problem.design, doubtful)
        bounds = _replaced(bounds, doubtful, sharper.intersect(bounds.take(doubtful)))
    return current, bounds


class _Secants:
    """Floors and ceilings of the secants of all samples; only the doubtful ones ever change."""

    def __init__(self, center: Center) -> None:
        self._center = center
        self.floors, self.ceilings = (np.zeros_like(center.problem.shares) for _ in range(2))

    def update(self, bounds: Bounds, rows: NDArray) -> None:
        floors, ceilings = self._center.secant_bounds(bounds.take(rows), rows)
        self.floors[rows], self.ceilings[rows] = floors, np.maximum(ceilings, floors)

    @property
    def doubtful(self) -> NDArray[np.bool_]:
        return self.ceilings > self.floors

    @property
    def extra(self) -> Array:
        """What the samples may curve beyond their floors; nothing where the two are one.

        Both are rounded, as the shares are: what that makes of the floors is in the error of H.
        """
        problem = self._center.problem
        most = self.ceilings * (1.0 + 2.0 * problem.curvature_error)
        return np.where(self.doubtful, problem.shares * (most - self.floors), 0.0)


def _replaced(bounds: Bounds, rows: NDArray, better: Bounds) -> Bounds:
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    lower[rows], upper[rows] = better
    return Bounds(lower, upper)


def _two_sided_set(
    center: Center, white: Whitening, stretch: float, extra: Array, extra_diagonal: Array
) -> Hull | None:
    """The ellipsoid of all −Sg, for each alpha of the centre; None where arithmetic overflows."""
    T, loose = white.basis, white.looseness
    most = _extra_curvature(center, T, extra, extra_diagonal)
    if most is None:
        return None
    # in the coordinates of T: I/(1 + looseness + Λ) ⪯ S ⪯ I/(1 − looseness)
    smallest = most.map(lambda values: 1.0 / (1.0 + loose + values))
    largest = 1.0 / (1.0 - loose)
    middle = smallest.map(lambda values: 0.5 * (largest + values))
    # the computed eigenvectors are orthonormal, and their products exact, to this only
    rounding = 8.0 * (len(T) + 8) * EPS
    spread = smallest.map(lambda values: np.sqrt(np.maximum(largest - values, 0.0) + rounding))
    shape = Shape(len(T), 1.0, None, spread.product(T.T).T)
    size, stretch = float(np.linalg.norm(T)), min(stretch, Shape(len(T), 1.0, None, T).stretch)
    sets = []
    for g in center.gradients:
        image = T.T @ g
        radius = 0.5 * (norm(spread.product(image)) + rounding * size * norm(g)) * (1.0 + 1e-12)
        moved = center.at.point - T @ middle.product(image)
        lost = largest * (
            stretch * stretch * center.gradient_error + rounding * size * size * norm(g)
        )
        sets.append(
            EllipsoidalSet(
                moved, shape.scaled(radius), lost + 4 * EPS * norm(moved),
                name="two-sided curvature ellipsoid", certified=center.problem.certified,
            )
        )  # fmt: skip
    return Hull(tuple(sets))


class _Spectrum(NamedTuple):
    """V diag(values) Vᵀ + rest·(I − VVᵀ), with orthonormal columns of V."""

    vectors: Array
    values: Array
    rest: float

    def map(self, function: Callable[[Array], Array]) -> _Spectrum:
        """The function of the matrix."""
        rest = float(function(np.asarray(self.rest)))
        return _Spectrum(self.vectors, function(self.values), rest)

    def product(self, u: Array) -> Array:
        """The matrix times u."""
        inside = (self.values - self.rest) * (self.vectors.T @ u).T
        return self.rest * u + self.vectors @ inside.T


def _extra_curvature(
    center: Center, T: Array, extra: Array, extra_diagonal: Array
) -> _Spectrum | None:
    """An upper bound on TᵀΔT for Δ = Σ extra_i a_i a_iᵀ + diag; None if it overflows."""
    design = rows_of(center.problem.design)
    diagonal = np.zeros(len(T))
    diagonal[: len(extra_diagonal)] = np.maximum(extra_diagonal, 0.0)
    rows = extra > 0
    spread = np.sqrt(design.only(rows).columns_sq(extra[rows]) + diagonal)
    error = rounding_of_form(T, spread, design.gram_error + design.dot_error + 8 * EPS)
    if not math.isfinite(error):
        return None
    if np.count_nonzero(extra) <= _FEW_ROWS * len(T) and not diagonal.any():
        vectors, values = _few_rows(design, T, extra)
    else:
        matrix = on_host(design.gram(extra)) + np.diag(diagonal)
        values, vectors = np.linalg.eigh(T.T @ matrix @ T)
    error += 64 * len(T) * EPS * float(np.abs(values).max(initial=0.0))
    return _Spectrum(vectors, np.maximum(values, 0.0) + error, error)


def _few_rows(design: RowDesign, T: Array, extra: Array) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of TᵀΔT from the rows themselves."""
    rows = extra > 0
    projected = on_host(design.only(rows).matvec(T) * np.sqrt(extra[rows])[:, None])
    basis, triangle = np.linalg.qr(projected.T)
    values, vectors = np.linalg.eigh(triangle @ triangle.T)
    return basis @ vectors, values
