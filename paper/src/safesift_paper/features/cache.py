"""Features that are computed once and kept on disk."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from numbers import Integral

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from sklearn.base import clone

from safesift_paper.datasets.store import cache_folder
from safesift_paper.features.ckn import ConvolutionalKernelNetwork

# to be raised when the same parameters would give other features
_VERSION = 1


def cached_features(
    network: ConvolutionalKernelNetwork,
    X: NDArray,
    *,
    fitted_on: NDArray | None = None,
    name: str = "images",
) -> NDArray:
    """The features of images, read from the cache where they were computed before.

    Parameters
    ----------
    network : ConvolutionalKernelNetwork
        Its `random_state` must be a number, or the features would be others every time.
    X : array of shape (n_samples, n_pixels)
    fitted_on : array, optional
        The images on which the network is fitted, `X` by default.
    name : str, default="images"
        How the file's name begins, for people.

    Returns
    -------
    array of shape (n_samples, n_features)
        A file that is read where it is looked at: more than the memory holds is no problem.

    Examples
    --------
    >>> from safesift_paper import datasets, features
    >>> digits = datasets.load_mnist()  # doctest: +SKIP
    >>> network = features.ConvolutionalKernelNetwork(image_shape=(28, 28), random_state=0)
    >>> features.cached_features(network, digits.X, name="mnist").shape  # doctest: +SKIP
    (60000, 2304)
    """
    if not isinstance(network.random_state, Integral):
        raise ValueError(
            f"random_state of the network must be a whole number, got {network.random_state!r}: "
            "features that cannot be computed again cannot be cached."
        )
    sample = X if fitted_on is None else fitted_on
    path = cache_folder() / "features" / f"{name}-{_key(network, sample, X)}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            fitted = clone(network).fit(sample)
            width = fitted.transform(X[:1]).shape[1]
            features = open_memmap(part, mode="w+", dtype=np.float32, shape=(len(X), width))
            fitted.encode_into(features, X)
            features.flush()
            part.replace(path)
        finally:
            with suppress(FileNotFoundError):
                part.unlink()
    return np.load(path, mmap_mode="r")


def _key(network: ConvolutionalKernelNetwork, *images: NDArray) -> str:
    """Differs whenever features may differ; the library that computes them does not count."""
    parameters = {k: v for k, v in network.get_params().items() if k != "backend"}
    digest = hashlib.sha256(repr((_VERSION, sorted(parameters.items()))).encode())
    for array in images:
        digest.update(repr((array.shape, array.dtype)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]
