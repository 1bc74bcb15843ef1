"""MNIST: 60 000 + 10 000 handwritten digits of 28 × 28 pixels."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from safesift_paper.datasets.base import Dataset, Part, check_part
from safesift_paper.datasets.store import (
    DataUnavailableError,
    RemoteFile,
    cache_folder,
    fetch_all,
    local,
)

_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
_N_SAMPLES = {"train": 60_000, "test": 10_000}


def _remote(name: str, checksum: str) -> RemoteFile:
    return RemoteFile(name, tuple(mirror + name for mirror in _MIRRORS), checksum)


_FILES = {
    "train": (
        _remote("train-images-idx3-ubyte.gz",
                "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        _remote("train-labels-idx1-ubyte.gz",
                "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    ),
    "test": (
        _remote("t10k-images-idx3-ubyte.gz",
                "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        _remote("t10k-labels-idx1-ubyte.gz",
                "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
}  # fmt: skip


def load_mnist(part: Part = "train") -> Dataset:
    """MNIST, the digit 9 against the rest as in the paper.

    Found as `mnist.npz` (`X_train, y_train, X_test, y_test`) or as the four original files in
    SAFESIFT_DATA or in the cache; otherwise the original files are downloaded, or, where their
    mirrors fail, the copy of OpenML (data set 554) by scikit-learn.

    Parameters
    ----------
    part : {"train", "test"}, default="train"
        The first 60 000 digits, which is what the paper uses, or the other 10 000.

    Returns
    -------
    Dataset
        Rows of 784 uint8 pixels.

    Examples
    --------
    >>> from safesift_paper import datasets
    >>> datasets.load_mnist().X.shape  # doctest: +SKIP
    (60000, 784)
    """
    check_part(part)
    images, digits = _read(part)
    return Dataset(
        name="mnist",
        title="MNIST, digit 9 against the rest",
        X=images,
        labels=digits,
        positive=9,
        image_shape=(28, 28),
    )


def _read(part: Part) -> tuple[NDArray, NDArray]:
    together = local("mnist.npz")
    if together is not None:
        with np.load(together) as arrays:
            images, digits = arrays[f"X_{part}"], arrays[f"y_{part}"]
        return images.reshape(len(images), 784), digits
    try:
        images, digits = (_idx(path) for path in fetch_all(_FILES[part]))
    except DataUnavailableError as error:
        return _from_openml(part, error)
    return images.reshape(len(images), 784), digits


def _idx(path: Path) -> NDArray[np.uint8]:
    """An array in the format of the original files: a type, a shape, then the bytes."""
    content = gzip.decompress(path.read_bytes())
    n_axes = content[3]
    shape = np.frombuffer(content, ">i4", count=n_axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def _from_openml(part: Part, error: DataUnavailableError) -> tuple[NDArray, NDArray]:
    from sklearn.datasets import fetch_openml

    try:
        # scikit-learn compares with the checksum that OpenML gives
        bunch = fetch_openml(
            data_id=554,
            as_frame=False,
            parser="liac-arff",
            data_home=cache_folder(),
            n_retries=1,
        )
    except Exception as failure:  # of many kinds: whatever it is, the set is not there
        raise DataUnavailableError(f"{error} OpenML has failed, too: {failure}") from failure
    images, digits = bunch.data.astype(np.uint8), bunch.target.astype(np.uint8)
    first = _N_SAMPLES["train"]
    rows = slice(None, first) if part == "train" else slice(first, None)
    return images[rows], digits[rows]
