"""Linear systems in some coordinates of one matrix, where those change little from one to the next.

With a factor of H on the coordinates A₀, a system on A = (A₀ ∖ R) ∪ E is one on A₀ with a border:
columns H_E for those that entered, and a multiplier for each that left, which holds it at zero. A
handful of changes costs so many triangular solves, where a new factor costs the cube of what is
active.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import cho_solve, cholesky, solve_positive

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

# as many changes as this share of the coordinates there are, beyond which a new factor is made
_CHANGED = 0.1
# the share that is left of a coordinate that depends on those there are: its sign would be noise
_DEPENDENT = 1e-10


class Systems:
    """Solutions of H_AA u_A = right_A for sets A that follow each other.

    Parameters
    ----------
    H : array of shape (d, d)
        Symmetric, positive definite but for rounding.

    Attributes
    ----------
    exact : bool
        Whether the last solution is one by a factor of its own matrix, with no border.
    """

    def __init__(self, H: Array) -> None:
        self.H, self.exact = H, False
        self._factored: Mask | None = None
        self._factor: tuple[Array, bool]

    def solve(self, active: Mask, right: Array) -> Array:
        """u, 0 where coordinates are not active."""
        rows, u = np.flatnonzero(active), np.zeros(len(right))
        found = self._bordered(active, right)
        self.exact = found is None
        # what left is held at zero by its multiplier up to rounding, and here for good
        u[rows] = self._by_a_factor(active, rows, right) if found is None else found[rows]
        return u

    def forget(self) -> None:
        """The next solution is by a factor of its own."""
        self._factored = None

    def factor_into(self, out: Array, order: NDArray[np.int64], active: Mask) -> int:
        """Write the factor for some coordinates, and which those are; how many there are.

        Nothing is written, and 0 returned, where their block is singular.
        """
        if self._factored is None or not np.array_equal(self._factored, active):
            self._factorise(active)
        if self._factored is None:
            return 0
        k = len(self._factor[0])
        out[:k, :k], order[:k] = self._factor[0], np.flatnonzero(active)
        return k

    def _factorise(self, active: Mask) -> None:
        self._factored = None
        try:
            self._factor = cholesky(self._block(np.flatnonzero(active)))
        except np.linalg.LinAlgError:
            return
        self._factored = active.copy()

    def _by_a_factor(self, active: Mask, rows: Rows, right: Array) -> Array:
        self._factorise(active)
        if self._factored is None:
            return solve_positive(self._block(rows), right[rows])
        return cho_solve(self._factor, right[rows])

    def _block(self, rows: Rows) -> Array:
        return self.H.take(rows, axis=0).take(rows, axis=1)

    def _bordered(self, active: Mask, right: Array) -> Array | None:
        """None where no factor is near enough, or the border depends on what it is next to."""
        if self._factored is None:
            return None
        rows = np.flatnonzero(self._factored)
        left = np.flatnonzero(self._factored & ~active)
        entered = np.flatnonzero(active & ~self._factored)
        n_left, n_changed = len(left), len(left) + len(entered)
        if n_changed > _CHANGED * len(rows):
            return None
        u, inside = np.zeros(len(right)), cho_solve(self._factor, right[rows])
        if n_changed:
            border = np.zeros((len(rows), n_changed), order="F")
            border[np.searchsorted(rows, left), np.arange(n_left)] = 1.0
            border[:, n_left:] = self.H[np.ix_(rows, entered)]
            solved = cho_solve(self._factor, border)
            rest = -border.T @ solved
            rest[n_left:, n_left:] += self.H[np.ix_(entered, entered)]
            target = np.concatenate([np.zeros(n_left), right[entered]]) - border.T @ inside
            sizes = np.concatenate([-np.diag(rest)[:n_left], np.diag(self.H)[entered]])
            scales = 1.0 / np.sqrt(np.where(sizes > 0, sizes, 1.0))
            rest *= scales[:, None] * scales
            known = np.isfinite(rest).all()
            if not (known and np.linalg.svd(rest, compute_uv=False)[-1] > _DEPENDENT):
                return None
            around = scales * np.linalg.solve(rest, scales * target)
            inside -= solved @ around
            u[entered] = around[n_left:]
        u[rows] = inside
        return u
