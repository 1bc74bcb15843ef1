"""The data sets of the paper, for anyone: SAFESIFT_DATA, then the cache, then the public source.

Data flow: *remote file → verified copy in a folder → arrays → `Dataset`*. A `Dataset` knows its
name, its labels, which label is told from the others, the shape of its images, and whether it
stands in for another one. What computes features or experiments from it sees nothing else.

>>> from safesift_paper import datasets
>>> sorted(datasets.DATASETS), datasets.STAND_INS
(['cifar10', 'imdb', 'mnist', 'rcv1', 'svhn'], {'svhn': 'cifar10', 'rcv1': 'imdb'})
"""

from collections.abc import Callable

from safesift_paper.datasets.base import Dataset
from safesift_paper.datasets.cifar10 import load_cifar10
from safesift_paper.datasets.imdb import load_imdb
from safesift_paper.datasets.mnist import load_mnist
from safesift_paper.datasets.rcv1 import load_rcv1
from safesift_paper.datasets.store import DataUnavailableError
from safesift_paper.datasets.svhn import load_svhn
from safesift_paper.datasets.synthetic import make_sparse_regression

__all__ = [
    "DATASETS",
    "STAND_INS",
    "DataUnavailableError",
    "Dataset",
    "load_cifar10",
    "load_imdb",
    "load_mnist",
    "load_rcv1",
    "load_svhn",
    "make_sparse_regression",
]

DATASETS: dict[str, Callable[[], Dataset]] = {
    "mnist": load_mnist,
    "svhn": load_svhn,
    "rcv1": load_rcv1,
    "cifar10": load_cifar10,
    "imdb": load_imdb,
}

# what may be used in place of a set that cannot be had, when asked for by name
STAND_INS = {"svhn": "cifar10", "rcv1": "imdb"}
