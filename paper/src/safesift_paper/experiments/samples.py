"""The data of the experiments, as the paper has them: features, labels, 80/20 splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift_paper import datasets
from safesift_paper.datasets import Dataset
from safesift_paper.features import ConvolutionalKernelNetwork, KernelLayer, cached_features

Array = NDArray[np.float64]

# 3 · 3 · 16 features for the digits of 8 × 8 pixels
_SMALL_LAYERS = (KernelLayer(3, 16, 1, 2.0), KernelLayer(2, 16, 2, 4.0))
_SEED = 0
# how many of the digits are trained on where there are two parts
_N_DIGITS = 1000
# of SVHN's 604 388: LIBLINEAR takes 16 bytes per number, and would need more than 24 GB for all
_MOST_IMAGES = 100_000


class Split(NamedTuple):
    """80 % of the samples to train on, 20 % to test on."""

    X_train: Any
    X_test: Any
    y_train: Array
    y_test: Array


@dataclass(frozen=True, eq=False)
class Samples:
    """Features and labels, with their origin in words.

    Attributes
    ----------
    name, title : str
    X : array or CSR matrix
    y : array
    stands_in_for : str or None
    """

    name: str
    title: str
    X: Any
    y: Array
    stands_in_for: str | None

    def split(self, seed: int) -> Split:
        """As in the paper's reproducibility paragraph."""
        from sklearn.model_selection import train_test_split

        return Split(*train_test_split(self.X, self.y, test_size=0.2, random_state=seed))

    def about(self) -> dict[str, Any]:
        """For the record."""
        return {
            "data": self.title,
            "stands_in_for": self.stands_in_for,
            "n_samples": int(self.X.shape[0]),
            "n_features": int(self.X.shape[1]),
        }


@lru_cache(maxsize=1)
def samples(name: str) -> Samples:
    """The samples of that name; the last ones asked for are kept in memory."""
    data = _digits() if name == "digits" else datasets.DATASETS[name]()
    if data.image_shape is not None:
        data = data.drawn(_MOST_IMAGES)
    X = data.X if data.image_shape is None else _encoded(data)
    return Samples(data.name, data.title, X, data.y, data.stands_in_for)


class Parts(NamedTuple):
    """Features and digits of the training and of the test part of a set of images."""

    X_train: NDArray
    labels_train: NDArray
    X_test: NDArray
    labels_test: NDArray


def parts(name: str) -> Parts:
    """The two parts of MNIST, or of the digits in place of it, with all ten classes."""
    if name == "digits":
        data, X = _digits(), samples(name).X
        return Parts(X[:_N_DIGITS], data.labels[:_N_DIGITS], X[_N_DIGITS:], data.labels[_N_DIGITS:])
    train, test = datasets.load_mnist("train"), datasets.load_mnist("test")
    X_test = cached_features(_network(test), test.X, fitted_on=train.X, name="mnist-test")
    return Parts(samples(name).X, train.labels, X_test, test.labels)


def _encoded(data: Dataset) -> NDArray:
    """The features of images: rows of a convolutional kernel network, from the cache."""
    if data.name == "digits":
        return _network(data).set_params(layers=_SMALL_LAYERS).fit_transform(data.X)
    return cached_features(_network(data), data.X, name=data.name)


def _network(data: Dataset) -> ConvolutionalKernelNetwork:
    """Whitening is for colours."""
    return ConvolutionalKernelNetwork(
        image_shape=data.image_shape, whitening=len(data.image_shape) == 3, random_state=_SEED
    )


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    X, digits = load_digits(return_X_y=True)
    return Dataset(
        name="digits",
        title="scikit-learn's digits, 9 against the rest",
        X=X.astype(np.uint8),
        labels=digits,
        positive=9,
        image_shape=(8, 8),
        stands_in_for="the paper's data",
    )
