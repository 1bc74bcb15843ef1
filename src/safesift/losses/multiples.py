"""Multiples of a loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safesift.arithmetic.numerics import EPS
from safesift.losses.base import Array, Loss, Piece
from safesift.parameters import require_positive


@dataclass(frozen=True, eq=False)
class Scaled(Loss):
    """factor·f for another loss f, with conjugate factor·f*(ν/factor).

    Parameters
    ----------
    loss : Loss
    factor : float
        Positive.
    """

    loss: Loss
    factor: float

    def __post_init__(self) -> None:
        require_positive("factor", self.factor)

    @property
    def task(self) -> Literal["classification", "regression", "interval"]:
        return self.loss.task

    @property
    def quadratic_rays(self) -> bool:
        return self.loss.quadratic_rays

    @property
    def unimodal_curvature(self) -> bool:
        return self.loss.unimodal_curvature

    @property
    def precision(self) -> float:
        return self.loss.precision

    @property
    def curvature_error(self) -> float:
        return self.loss.curvature_error + EPS

    @property
    def smoothness(self) -> float:
        return self.factor * self.loss.smoothness

    @property
    def proved_smoothness(self) -> float:
        return self.factor * self.loss.proved_smoothness

    @property
    def lipschitz(self) -> float:
        return self.factor * self.loss.lipschitz

    def value(self, pred: ArrayLike, y: ArrayLike) -> Array:
        return self.factor * self.loss.value(pred, y)

    def value_size(self, pred: ArrayLike, y: ArrayLike) -> Array:
        return self.factor * self.loss.value_size(pred, y)

    def slope(self, pred: ArrayLike, y: ArrayLike) -> Array:
        return self.factor * self.loss.slope(pred, y)

    def curvature(self, pred: ArrayLike, y: ArrayLike) -> Array:
        return self.factor * self.loss.curvature(pred, y)

    def curvature_floor(self, lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Array:
        return self.factor * self.loss.curvature_floor(lower, upper, y)

    def _curvature_ceiling(self, lower: Array, upper: Array, y: Array) -> Array:
        return self.factor * self.loss._curvature_ceiling(lower, upper, y)

    def conjugate(self, nu: ArrayLike, y: ArrayLike) -> Array:
        return self.factor * self.loss.conjugate(self._unscaled(nu, y), y)

    def conjugate_size(self, nu: ArrayLike, y: ArrayLike) -> Array:
        return self.factor * self.loss.conjugate_size(self._unscaled(nu, y), y)

    def dual_interval(self, y: ArrayLike) -> tuple[Array, Array]:
        lower, upper = self.loss.dual_interval(y)
        return self.factor * lower, self.factor * upper

    def _dual_kink(self, y: ArrayLike) -> tuple[Array, Array] | None:
        return self.loss._dual_kink(y)

    def pieces(self, y: ArrayLike) -> list[Piece]:
        return [
            replace(
                piece,
                quadratic=self.factor * np.asarray(piece.quadratic),
                linear=self.factor * np.asarray(piece.linear),
                constant=self.factor * np.asarray(piece.constant),
            )
            for piece in self.loss.pieces(y)
        ]

    def smoothed(self, width: float) -> Loss:
        return replace(self, loss=self.loss.smoothed(width / self.factor))

    def anchors(self, y: ArrayLike) -> Array:
        return self.loss.anchors(y)

    @property
    def n_parameters(self) -> int | None:
        return self.loss.n_parameters

    def take(self, rows: slice | NDArray) -> Loss:
        return replace(self, loss=self.loss.take(rows))

    def _unscaled(self, nu: ArrayLike, y: ArrayLike) -> Array:
        """ν/factor; a ν in the scaled domain must not leave the domain of f* by rounding."""
        nu = np.asarray(nu, dtype=np.float64)
        lower, upper = self.loss.dual_interval(y)
        inside = (nu >= self.factor * lower) & (nu <= self.factor * upper)
        plain = nu / self.factor
        return np.where(inside, np.clip(plain, lower, upper), plain)
