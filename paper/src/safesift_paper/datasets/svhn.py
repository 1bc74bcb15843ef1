"""SVHN: 604 388 + 26 032 house numbers of 32 × 32 pixels in colour."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from safesift_paper.datasets.base import Dataset, Part, check_part
from safesift_paper.datasets.store import RemoteFile, fetch

_SITE = "http://ufldl.stanford.edu/housenumbers/"


def _remote(name: str, checksum: str) -> RemoteFile:
    return RemoteFile(name, (_SITE + name,), checksum)


_FILES = {
    "train": (
        _remote("train_32x32.mat",
                "sha256:435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"),
        _remote("extra_32x32.mat",
                "sha256:a133a4beb38a00fcdda90c9489e0c04f900b660ce8a316a5e854838379a71eb3"),
    ),
    "test": (
        _remote("test_32x32.mat",
                "sha256:cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"),
    ),
}  # fmt: skip


def load_svhn(part: Part = "train") -> Dataset:
    """SVHN, the digit 1 against the rest as in the paper.

    Found as `train_32x32.mat`, `extra_32x32.mat` and `test_32x32.mat` in SAFESIFT_DATA or in the
    cache; otherwise downloaded from its site, 1.5 GB for the training part. Where it cannot be
    had, `load_cifar10` stands in for it, if asked for by name.

    Parameters
    ----------
    part : {"train", "test"}, default="train"
        The files "train" and "extra" together, which is what the paper uses, or the test file.

    Returns
    -------
    Dataset
        Rows of 3072 uint8 pixels, 5 GB of memory for the training part while it is read.

    Examples
    --------
    >>> from safesift_paper import datasets
    >>> datasets.load_svhn().X.shape  # doctest: +SKIP
    (604388, 3072)
    """
    check_part(part)
    # all files before any of them is read
    paths = [fetch(file) for file in _FILES[part]]
    images, digits = zip(*map(_read, paths), strict=True)
    return Dataset(
        name="svhn",
        title="SVHN, digit 1 against the rest",
        X=np.concatenate(images),
        labels=np.concatenate(digits),
        positive=1,
        image_shape=(32, 32, 3),
    )


def _read(path: object) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    from scipy.io import loadmat

    content = loadmat(str(path))
    images = np.moveaxis(content["X"], -1, 0)
    # the site writes the digit 0 as 10
    digits = (content["y"].ravel() % 10).astype(np.uint8)
    return np.ascontiguousarray(images).reshape(len(images), -1), digits
