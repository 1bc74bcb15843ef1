"""k-means on the sphere: the anchors of a layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_N_ROUNDS = 15
# rows whose similarities to all centres are looked at at a time
_BLOCK = 8192


def unit_rows(rows: NDArray) -> NDArray:
    """The rows that are not zero, divided by their norms."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    # what rounding makes of a constant patch whose mean was subtracted is no direction
    kept = norms > 1e-6 * max(norms.max(initial=0.0), np.finfo(rows.dtype).tiny)
    return rows[kept] / norms[kept, None]


def spherical_kmeans(rows: NDArray, n_centers: int, rng: np.random.RandomState) -> NDArray:
    """Centres of norm 1 that maximise Σ max_k x_iᵀz_k, from rows of norm 1.

    Parameters
    ----------
    rows : array of shape (n_rows, dimension)
        Of norm 1.
    n_centers : int
        Fewer are made if there are fewer rows; one, if there is no row at all.
    rng : RandomState
        Draws the rows to start from, and those that replace centres without members.

    Returns
    -------
    array of shape (n_centers, dimension)
    """
    if not len(rows):
        return np.eye(1, rows.shape[1], dtype=rows.dtype)
    centers = rows[rng.permutation(len(rows))[:n_centers]]
    for _ in range(_N_ROUNDS):
        sums, counts = _sums(rows, centers)
        norms = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        lost = (counts == 0) | (norms == 0)
        sums[lost] = rows[rng.randint(len(rows), size=int(lost.sum()))]
        norms[lost] = 1.0
        centers = sums / norms[:, None]
    return centers


def _sums(rows: NDArray, centers: NDArray) -> tuple[NDArray, NDArray]:
    """For every centre the sum of the rows nearest to it, and how many they are."""
    sums, counts = np.zeros_like(centers), np.zeros(len(centers), dtype=np.int64)
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        nearest = np.argmax(part @ centers.T, axis=1)
        order = np.argsort(nearest, kind="stable")
        found, first = np.unique(nearest[order], return_index=True)
        sums[found] += np.add.reduceat(part[order], first, axis=0)
        counts[found] += np.diff(np.append(first, len(part)))
    return sums, counts
