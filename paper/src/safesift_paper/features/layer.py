"""One layer of a convolutional kernel network (Mairal 2016), fitted without labels.

For a patch z of the map below, with anchors Z on the sphere and κ(u) = exp(β(u − 1)), the layer
puts at its position

    ψ(z) = ‖z‖ κ(ZZᵀ)^(−½) κ(Z z/‖z‖),

the projection of z's image in the reproducing kernel Hilbert space of ‖z‖‖z'‖ κ(zᵀz'/(‖z‖‖z'‖))
onto the span of the anchors' images (Nyström). Gaussian pooling with subsampling follows; as it is
linear, it is done before the product with κ(ZZᵀ)^(−½), which then costs less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift_paper.checks import check_count, check_positive
from safesift_paper.features.arrays import Arrays
from safesift_paper.features.kmeans import spherical_kmeans, unit_rows

# eigenvalues of κ(ZZᵀ) below this share of the largest one are noise
_SMALLEST_EIGENVALUE = 1e-5
# added to the eigenvalues of a covariance, as a share of their mean, before whitening
_WHITENING_RIDGE = 1e-2


@dataclass(frozen=True)
class KernelLayer:
    """What a layer is like.

    Parameters
    ----------
    patch_size : int, default=5
        Height and width of the patches, at most those of the map below.
    n_filters : int, default=64
        How many anchors, and so channels of the map, at most as many as there are patches.
    subsampling : int, default=2
        One position in so many, in both directions, is left after pooling.
    beta : float, default=4.0
        Sharpness of the kernel κ(u) = exp(β(u − 1)); 1/σ² in the literature.

    Examples
    --------
    >>> from safesift_paper.features import KernelLayer
    >>> KernelLayer(patch_size=5, n_filters=64, subsampling=2).shape_above(28, 28)
    (12, 12)
    """

    patch_size: int = 5
    n_filters: int = 64
    subsampling: int = 2
    beta: float = 4.0

    def __post_init__(self) -> None:
        for name in ("patch_size", "n_filters", "subsampling"):
            check_count(name, getattr(self, name))
        check_positive("beta", self.beta)

    def window(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the patches of a map."""
        return min(self.patch_size, height), min(self.patch_size, width)

    def shape_above(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the map that comes out, for one that goes in."""
        window = self.window(height, width)
        left = (height - window[0] + 1, width - window[1] + 1)
        return math.ceil(left[0] / self.subsampling), math.ceil(left[1] / self.subsampling)


@dataclass(frozen=True)
class Preparation:
    """What is done to patches before their norm is taken.

    Attributes
    ----------
    centered : bool
        Subtract the mean of each patch: with the norm, contrast normalisation.
    whitener : array or None
        A symmetric matrix to multiply patches by, so that their entries are uncorrelated.
    """

    centered: bool = False
    whitener: NDArray | None = None

    @classmethod
    def learnt(cls, patches: NDArray, centered: bool, whitening: bool) -> Preparation:
        """The one for these patches."""
        if not whitening:
            return cls(centered)
        rows = cls(centered).apply(patches.astype(np.float64))
        values, vectors = np.linalg.eigh(rows.T @ rows / max(len(rows), 1))
        values = np.maximum(values, 0.0)
        ridge = _WHITENING_RIDGE * values.mean() or 1.0
        whitener = (vectors / np.sqrt(values + ridge)) @ vectors.T
        return cls(centered, whitener.astype(patches.dtype))

    def apply(self, patches: NDArray) -> NDArray:
        if self.centered:
            patches = patches - patches.mean(axis=1, keepdims=True)
        return patches if self.whitener is None else patches @ self.whitener


@dataclass(frozen=True, eq=False)
class FittedLayer:
    """A layer with its anchors.

    Attributes
    ----------
    spec : KernelLayer
    preparation : Preparation
    anchors : array of shape (n_anchors, patch dimension)
        Of norm 1.
    inverse_root : array of shape (n_anchors, n_anchors)
        κ(ZZᵀ)^(−½).
    """

    spec: KernelLayer
    preparation: Preparation
    anchors: NDArray
    inverse_root: NDArray

    @classmethod
    def fit(
        cls,
        spec: KernelLayer,
        patches: NDArray,
        preparation: Preparation,
        rng: np.random.RandomState,
    ) -> FittedLayer:
        """Anchors by spherical k-means on patches."""
        anchors = spherical_kmeans(unit_rows(preparation.apply(patches)), spec.n_filters, rng)
        return cls(spec, preparation, anchors, _inverse_root(spec, anchors))

    def apply(self, maps: Any, arrays: Arrays) -> Any:
        """The maps (n, h, w, n_anchors) for maps (n, H, W, C) of the layer below."""
        n, height, width = maps.shape[:3]
        window = self.spec.window(height, width)
        values = self._kernel(arrays.windows(maps, *window), arrays)
        rows, columns = height - window[0] + 1, width - window[1] + 1
        pooled = _pool(values, (n, rows, columns), self.spec.subsampling, arrays)
        return pooled @ arrays.put(self.inverse_root)

    def _kernel(self, patches: Any, arrays: Arrays) -> Any:
        """‖z‖ κ(Z z/‖z‖), a row per patch; 0 for a patch that is 0."""
        if self.preparation.centered:
            # not in place: the windows may be the user's own images
            patches = patches - arrays.row_means(patches)
        if self.preparation.whitener is not None:
            patches = patches @ arrays.put(self.preparation.whitener)
        beta = self.spec.beta
        norms = arrays.row_norms(patches)
        values = patches @ arrays.put(np.ascontiguousarray((beta * self.anchors).T))
        values /= norms + (norms == 0)
        values -= beta
        values = arrays.exp(values)
        values *= norms
        return values


def _inverse_root(spec: KernelLayer, anchors: NDArray) -> NDArray:
    """κ(ZZᵀ)^(−½), of the part that is not noise."""
    Z = anchors.astype(np.float64)
    values, vectors = np.linalg.eigh(np.exp(spec.beta * (Z @ Z.T - 1.0)))
    kept = np.maximum(values, _SMALLEST_EIGENVALUE * values[-1])
    return ((vectors / np.sqrt(kept)) @ vectors.T).astype(anchors.dtype)


def _pool(values: Any, shape: tuple[int, int, int], subsampling: int, arrays: Arrays) -> Any:
    """Gaussian pooling of values (n·H·W, K) in both directions: maps (n, h, w, K)."""
    n, height, width = shape
    channels = values.shape[1]
    dtype = arrays.get(values[:0]).dtype
    across = arrays.put(pooling_matrix(width, subsampling).astype(dtype))
    down = arrays.put(pooling_matrix(height, subsampling).astype(dtype))
    values = across @ values.reshape(n * height, width, channels)
    values = down @ values.reshape(n, height, -1)
    return values.reshape(n, down.shape[0], across.shape[0], channels)


def pooling_matrix(size: int, subsampling: int) -> NDArray[np.float64]:
    """Weights exp(−d²/s²), d the distance to one of ⌈size/s⌉ evenly spaced centres.

    The centres lie symmetrically, s apart; positions further than 3s/2 from one do not count for
    it, and the weights of each add up to 1.
    """
    n_centers = math.ceil(size / subsampling)
    offsets = np.arange(n_centers) - 0.5 * (n_centers - 1)
    centers = 0.5 * (size - 1) + subsampling * offsets
    distances = np.abs(np.arange(size) - centers[:, None])
    weights = np.exp(-((distances / subsampling) ** 2)) * (distances <= 1.5 * subsampling)
    return weights / weights.sum(axis=1, keepdims=True)
