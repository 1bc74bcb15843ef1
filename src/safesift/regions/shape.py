"""The shape of an ellipsoid, stored so that it can never lose positive definiteness.

The paper stores E = σI − L D Lᵀ. We store a factor B with E = B Bᵀ,

    B = scale · (V C Vᵀ + I − V Vᵀ),    V orthonormal (d × k), C (k × k),

which is the same form, with L = V U, D = scale²(1 − Λ) from the eigenvalues C Cᵀ = U Λ Uᵀ, and
`low_rank` returns it. But gᵀEg is a sum of squares here and cannot become negative, k never
exceeds d, and the dense form is the case V = I.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, UNDERFLOW, norm
from safesift.design.base import Design
from safesift.design.rows import rows_of

Array = NDArray[np.float64]


class LowRank(NamedTuple):
    """E = σI − L diag(D) Lᵀ with orthonormal columns of L."""

    sigma: float
    L: Array
    D: Array

    def dense(self) -> Array:
        return self.sigma * np.eye(len(self.L)) - (self.L * self.D) @ self.L.T


@dataclass(frozen=True, eq=False)
class Shape:
    """A factor B of E = B Bᵀ, for the set { z + Bu : ‖u‖ ≤ 1 }.

    Attributes
    ----------
    dimension : int
        d, the number of coordinates.
    scale : float
        Radius in the directions outside the basis.
    basis : array of shape (d, k) or None
        V; None stands for the identity (the dense form, where `scale` is 1).
    factor : array of shape (k, k)
        C. In the dense form it may have fewer columns than rows: an ellipsoid in a subspace.
    """

    dimension: int
    scale: float
    basis: Array | None
    factor: Array = field(repr=False)

    @classmethod
    def ball(cls, dimension: int, radius: float, dense: bool) -> Shape:
        """E = radius²·I."""
        if dense:
            return cls(dimension, 1.0, None, np.diag(np.full(dimension, radius)))
        return cls(dimension, radius, np.empty((dimension, 0)), np.empty((0, 0)))

    @classmethod
    def ball_and_segment(cls, dimension: int, radius: float, half: float, dense: bool) -> Shape:
        """Radius `radius` in all coordinates but the last, `half` in that one."""
        if dense:
            return cls(dimension, 1.0, None, np.diag([radius] * (dimension - 1) + [half]))
        last = np.zeros((dimension, 1))
        last[-1] = 1.0
        return cls(dimension, radius, last, np.array([[half / radius]]))

    def scaled(self, radius: float) -> Shape:
        """radius·B."""
        if self.is_dense:
            return replace(self, factor=radius * self.factor)
        return replace(self, scale=radius * self.scale)

    def embedded(self, columns: NDArray) -> Shape:
        """The same shape among more coordinates, of no width in those outside the mask."""
        factor = self.factor if self.is_dense else self.product(np.eye(self.dimension))
        embedded = np.zeros((len(columns), factor.shape[1]))
        embedded[columns] = factor
        return Shape(len(columns), self.scale if self.is_dense else 1.0, None, embedded)

    @property
    def is_dense(self) -> bool:
        return self.basis is None

    @property
    def size(self) -> float:
        """‖B‖_F = √(trace E), which bounds ‖B‖₂; the same in both forms."""
        inside = norm(self.factor)
        outside = 0.0 if self.is_dense else np.sqrt(self.dimension - len(self.factor))
        return float(self.scale * np.hypot(inside, outside))

    @property
    def stretch(self) -> float:
        """A bound on ‖B‖₂, sharper than `size`."""
        sizes = np.abs(self.factor)
        sums = [float(sizes.sum(axis=axis).max(initial=0.0)) for axis in (0, 1)]
        inside = min(math.sqrt(sums[0]) * math.sqrt(sums[1]), norm(self.factor))
        return self.scale * (inside if self.is_dense else max(inside, 1.0)) * (1.0 + 1e-12)

    def low_rank(self) -> LowRank:
        """The paper's form σI − L D Lᵀ."""
        L, shrinkage = self._principal()
        sigma = self.scale * self.scale
        return LowRank(sigma, L, sigma * shrinkage)

    def _principal(self) -> tuple[Array, Array]:
        """Orthonormal directions L and s with E = scale²·(I − L diag(s) Lᵀ)."""
        basis = np.eye(self.dimension) if self.basis is None else self.basis
        eigenvalues, U = np.linalg.eigh(self.factor @ self.factor.T)
        return basis @ U, 1.0 - eigenvalues

    def matrix(self) -> Array:
        """E, densely."""
        if self.is_dense:
            B = self.scale * self.factor
            return B @ B.T
        return self.low_rank().dense()

    def extended(self, g: Array) -> tuple[Shape, Array, float]:
        """A shape whose basis spans g, the coordinates of g in it, and what is left of g.

        The rest, ‖g − V·coordinates‖, is rounding: a direction is added whenever there is one.
        """
        if self.basis is None:
            return self, g, 0.0
        coordinates = self.basis.T @ g
        rest = g - self.basis @ coordinates
        correction = self.basis.T @ rest  # a second round of Gram–Schmidt: orthogonal to rounding
        rest -= self.basis @ correction
        coordinates = coordinates + correction
        left = norm(rest)
        k = self.factor.shape[0]
        if k == self.dimension or left <= 1e-12 * norm(g):
            return self, coordinates, left
        factor = np.zeros((k + 1, k + 1))
        factor[:k, :k] = self.factor
        factor[k, k] = 1.0
        basis = np.column_stack([self.basis, rest / left])
        return replace(self, basis=basis, factor=factor), np.append(coordinates, left), 0.0

    def expand(self, coordinates: Array) -> Array:
        """V @ coordinates."""
        return coordinates if self.basis is None else self.basis @ coordinates

    def squeezed(self, direction: Array, along: float, across: float) -> Shape:
        """Multiply the radius by `along` in a unit direction of u-space, by `across` elsewhere."""
        complete = self.factor.shape[0] == self.dimension
        ratio = along / across
        factor = self.factor + np.outer((ratio - 1.0) * (self.factor @ direction), direction)
        if complete:
            # nothing lies outside the basis: keep the scale where it is, so it cannot overflow
            return replace(self, factor=across * factor)
        return replace(self, scale=across * self.scale, factor=factor)

    def transpose_product(self, g: Array) -> Array:
        """Bᵀg."""
        if self.basis is None:
            return self.scale * (self.factor.T @ g)
        inside = self.basis.T @ g
        return self.scale * (g + self.basis @ (self.factor.T @ inside - inside))

    def product(self, u: Array) -> Array:
        """Bu."""
        if self.basis is None:
            return self.scale * (self.factor @ u)
        inside = self.basis.T @ u
        return self.scale * (u + self.basis @ (self.factor @ inside - inside))

    def coordinate_widths(self) -> Array:
        """Upper bounds on √E_jj for every coordinate."""
        if self.is_dense:
            room = 1.0 + 8 * (self.dimension + 1) * EPS
            return self.scale * np.linalg.norm(self.factor, axis=1) * room
        L, shrinkage = self._principal()
        variances = 1.0 - np.square(L) @ shrinkage
        error = 16 * (len(shrinkage) + 1) * EPS * (1.0 + _largest(shrinkage))
        return self.scale * np.sqrt(np.maximum(variances, 0.0) + error) + UNDERFLOW

    def half_widths(self, design: Design) -> Array:
        """Upper bounds on √(aᵢᵀ E aᵢ) for every row: one product with the k columns of L."""
        norms = design.row_norms
        if self.is_dense:
            B = self.scale * self.factor
            squares = rows_of(design).projected_sq(B, np.ones(B.shape[1]))
            error = (design.dot_error + self.dimension * EPS) * norm(B) * norms
            return np.sqrt(squares) + error
        if self.factor.shape[0] == 0:
            return self.scale * norms
        L, shrinkage = self._principal()
        inside = rows_of(design).projected_sq(L, shrinkage)
        # the difference may cancel: its rounding error is relative to the norm of the row
        k = len(shrinkage)
        stretch = 1.0 + _largest(shrinkage)
        error = 4.0 * stretch * (np.sqrt(k) * design.dot_error + (k + 8) * EPS) * norms**2
        # and the squares of a tiny row underflow before they are scaled
        error += np.where(norms > 0, 4.0 * (1.0 + k * stretch) * UNDERFLOW, 0.0)
        return self.scale * np.sqrt(np.maximum(norms**2 - inside, 0.0) + error)


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0.0))
