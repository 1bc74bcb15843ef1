"""The distance to a closed convex set, the oldest infimum convolution."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safesift.parameters import require_positive

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SetDistance:
    """f_μ(t) = dist(t, C)²/(2μ): the indicator of a closed convex C ⊂ R^d convolved with ½‖·‖².

    The paper calls it the Euclidean distance; it is half the *squared* distance over μ. Its
    gradient (t − P_C(t))/μ is Lipschitz with constant 1/μ, its conjugate is σ_C(u) + ½μ‖u‖² with
    σ_C the support function, and it is flat exactly on C.

    Parameters
    ----------
    projection : callable
        P_C, from an array of shape (..., d) to one of the same shape.
    support : callable, optional
        σ_C(u) = sup_{z ∈ C} uᵀz, from shape (..., d) to (...), infinite where it is.
    mu : float, default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> box = ss.SetDistance(lambda t: np.clip(t, -1.0, 1.0))
    >>> float(box.value([4.0, 5.0])), float(box.distance([4.0, 5.0]))
    (12.5, 5.0)
    """

    projection: Callable[[Array], Array]
    support: Callable[[Array], Array] | None = None
    mu: float = 1.0

    def __post_init__(self) -> None:
        require_positive("mu", self.mu)

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient."""
        return 1.0 / self.mu

    def distance(self, t: ArrayLike) -> Array:
        """dist(t, C)."""
        return np.linalg.norm(self._rest(t), axis=-1)

    def value(self, t: ArrayLike) -> Array:
        """dist(t, C)²/(2μ)."""
        return np.square(self._rest(t)).sum(axis=-1) / (2.0 * self.mu)

    def gradient(self, t: ArrayLike) -> Array:
        """(t − P_C(t))/μ."""
        return self._rest(t) / self.mu

    def conjugate(self, u: ArrayLike) -> Array:
        """σ_C(u) + ½μ‖u‖²; needs the support function."""
        if self.support is None:
            raise ValueError("support is needed for the conjugate: pass the support function of C.")
        u = np.asarray(u, dtype=np.float64)
        inside = np.asarray(self.support(u), dtype=np.float64)
        curved = 0.5 * self.mu * np.square(u).sum(axis=-1)
        return np.where(np.isposinf(inside), math.inf, inside + curved)

    def _rest(self, t: ArrayLike) -> Array:
        t = np.asarray(t, dtype=np.float64)
        return t - self.projection(t)
