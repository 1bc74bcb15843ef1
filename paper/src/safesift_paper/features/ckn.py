"""The unsupervised convolutional kernel network as a scikit-learn transformer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from joblib import cpu_count
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_info, threadpool_limits

from safesift import progress
from safesift_paper.features.arrays import Arrays, arrays_for
from safesift_paper.features.layer import FittedLayer, KernelLayer, Preparation

# numbers that the patches of a batch of images may have: 16 MB in float32
_BATCH_NUMBERS = 4_000_000
# images that patches are drawn from, and patches per layer
_SAMPLE_IMAGES = 2_000
_SAMPLE_PATCHES = 100_000
_STAGE = "convolutional kernel network"


class ConvolutionalKernelNetwork(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features of images by an unsupervised convolutional kernel network (Mairal 2016).

    Each layer compares the patches of the map below with anchors found by spherical k-means,
    through the Nyström approximation of a dot-product kernel, and pools with Gaussian weights; see
    `features.layer`. A row of the result is the last map, its mean subtracted, divided by
    its norm. With the default layers it has 3 · 3 · 256 = 2304 entries for images of 28 × 28 and
    of 32 × 32 pixels.

    The work is done in batches, in float32 for integer pixels and float32, otherwise in float64.

    Parameters
    ----------
    layers : tuple of KernelLayer, default=(KernelLayer(5, 64, 2, 2.0), KernelLayer(3, 256, 4, 4.0))
    image_shape : tuple of int, optional
        (height, width) or (height, width, channels) of the images in the rows of X. By default
        they are square and grey where the number of pixels is a square number, otherwise single
        lines.
    contrast : bool, default=True
        Whether the mean of each patch of the image is subtracted: contrast normalisation.
    whitening : bool, default=False
        Whether the patches of the image are whitened: for photographs in colour.
    backend : {"auto", "numpy", "torch"}, default="auto"
        "auto" is PyTorch where it is installed, on a GPU where there is one.
    random_state : int, RandomState or None, default=None
        Draws patches and starts of k-means.

    Attributes
    ----------
    layers_ : list of FittedLayer
    image_shape_ : tuple of int
        (height, width, channels).
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X has names.

    References
    ----------
    J. Mairal, *End-to-End Kernel Learning with Supervised Convolutional Kernel Networks*, 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from safesift_paper.features import ConvolutionalKernelNetwork, KernelLayer
    >>> X, y = load_digits(return_X_y=True)
    >>> layers = (KernelLayer(3, 16, 2), KernelLayer(2, 32, 2))
    >>> network = ConvolutionalKernelNetwork(layers, random_state=0)
    >>> network.fit_transform(X).shape
    (1797, 32)
    """

    def __init__(
        self,
        layers: tuple[KernelLayer, ...] = (
            KernelLayer(5, 64, 2, 2.0),
            KernelLayer(3, 256, 4, 4.0),
        ),
        *,
        image_shape: tuple[int, ...] | None = None,
        contrast: bool = True,
        whitening: bool = False,
        backend: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.layers = layers
        self.image_shape = image_shape
        self.contrast = contrast
        self.whitening = whitening
        self.backend = backend
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the anchors of all layers on patches of a sample of the images.

        Parameters
        ----------
        X : array of shape (n_samples, n_pixels)
        y : ignored

        Returns
        -------
        self
        """
        layers = _check_layers(self.layers)
        arrays = arrays_for(self.backend)
        X = self._validated(X, reset=True)
        self.image_shape_ = _check_shape(self.image_shape, X.shape[1])
        rng = check_random_state(self.random_state)
        rows = np.sort(rng.permutation(len(X))[:_SAMPLE_IMAGES])
        maps = self._images(X[rows])
        self.layers_: list[FittedLayer] = []
        for number, spec in enumerate(layers):
            patches = _sample_patches(spec, maps, rng)
            preparation = Preparation()
            if number == 0:
                preparation = Preparation.learnt(patches, self.contrast, self.whitening)
            layer = FittedLayer.fit(spec, patches, preparation, rng)
            self.layers_.append(layer)
            if spec is not layers[-1]:
                maps = _apply(layer, maps, arrays)
        self._n_features_out = self._n_outputs()
        return self

    def transform(self, X: Any) -> NDArray:
        """The features of images.

        Parameters
        ----------
        X : array of shape (n_samples, n_pixels)

        Returns
        -------
        array of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        features = np.empty((len(X), self._n_features_out), dtype=_working_type(X))
        self.encode_into(features, X)
        return features

    def encode_into(self, features: NDArray, X: NDArray) -> None:
        """Write the features of images into an array, which may be one on disk.

        Parameters
        ----------
        features : array of shape (n_samples, n_features_out)
        X : array of shape (n_samples, n_pixels)
            As `transform` takes them, not validated.
        """
        arrays = arrays_for(self.backend)
        done = 0

        def encode(rows: slice) -> int:
            maps = arrays.put(self._images(X[rows]))
            for layer in self.layers_:
                maps = layer.apply(maps, arrays)
            features[rows] = _normalised(arrays.get(maps).reshape(maps.shape[0], -1))
            return rows.stop - rows.start

        # one thread per batch: also what is no matrix product is then done in parallel
        n_threads = 1 if arrays.is_parallel else _n_threads()
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
            for n in pool.map(encode, self._batches(len(X))):
                done += n
                progress.report(_STAGE, done, len(X))

    def _batches(self, n_samples: int) -> Iterator[slice]:
        height, width, _ = self.image_shape_
        largest = 1
        for layer in self.layers_:
            window = layer.spec.window(height, width)
            positions = (height - window[0] + 1) * (width - window[1] + 1)
            largest = max(largest, positions * max(layer.anchors.shape))
            height, width = layer.spec.shape_above(height, width)
        size = max(_BATCH_NUMBERS // largest, 1)
        for start in range(0, n_samples, size):
            yield slice(start, min(start + size, n_samples))

    def _validated(self, X: Any, reset: bool) -> NDArray:
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32, np.uint8])

    def _images(self, X: NDArray) -> NDArray:
        return X.reshape(len(X), *self.image_shape_).astype(_working_type(X), copy=False)

    def _n_outputs(self) -> int:
        height, width, _ = self.image_shape_
        for layer in self.layers_:
            height, width = layer.spec.shape_above(height, width)
        return height * width * len(self.layers_[-1].anchors)


def _n_threads() -> int:
    """As many as BLAS would use by itself, which minds OMP_NUM_THREADS, on the cores there are."""
    pools = (pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
    return min(max(pools, default=1), cpu_count())


def _working_type(X: NDArray) -> type[np.floating]:
    return np.float64 if X.dtype == np.float64 else np.float32


def _check_layers(layers: Any) -> tuple[KernelLayer, ...]:
    if not isinstance(layers, tuple | list) or not layers:
        raise ValueError(f"layers must be a tuple of one or more KernelLayer, got {layers!r}.")
    for layer in layers:
        if not isinstance(layer, KernelLayer):
            raise TypeError(f"layers must hold KernelLayer objects, got {type(layer).__name__}.")
    return tuple(layers)


def _check_shape(image_shape: tuple[int, ...] | None, n_pixels: int) -> tuple[int, int, int]:
    """(height, width, channels) of the images."""
    if image_shape is None:
        side = math.isqrt(n_pixels)
        return (side, side, 1) if side * side == n_pixels else (1, n_pixels, 1)
    shape = tuple(image_shape)
    if len(shape) == 2:
        shape = (*shape, 1)
    if len(shape) != 3 or min(shape) < 1 or math.prod(shape) != n_pixels:
        raise ValueError(
            f"image_shape must be (height, width) or (height, width, channels) of images of "
            f"{n_pixels} numbers, got {image_shape!r}."
        )
    return shape


def _sample_patches(spec: KernelLayer, maps: NDArray, rng: np.random.RandomState) -> NDArray:
    """Patches at random positions, the same number of every map."""
    n, height, width, _ = maps.shape
    window = spec.window(height, width)
    rows, columns = height - window[0] + 1, width - window[1] + 1
    each = min(max(_SAMPLE_PATCHES // n, 1), rows * columns)
    # a permutation of the positions for every map
    positions = rng.random_sample((n, rows * columns)).argsort(axis=1)[:, :each].ravel()
    views = sliding_window_view(maps, window, axis=(1, 2))
    chosen = views[np.repeat(np.arange(n), each), positions // columns, positions % columns]
    return chosen.transpose(0, 2, 3, 1).reshape(n * each, -1)


def _apply(layer: FittedLayer, maps: NDArray, arrays: Arrays) -> NDArray:
    """A layer on the maps of the sample, some of them at a time."""
    parts = (maps[start : start + 100] for start in range(0, len(maps), 100))
    return np.concatenate([arrays.get(layer.apply(arrays.put(part), arrays)) for part in parts])


def _normalised(rows: NDArray) -> NDArray:
    """Rows of mean 0 and norm 1; a row of equal numbers becomes 0."""
    rows = rows - rows.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows / (norms + (norms == 0))
