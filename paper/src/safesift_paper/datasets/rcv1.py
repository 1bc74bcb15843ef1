"""RCV-1: 781 265 newswire stories as sparse tf-idf vectors of 47 236 words."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift import progress
from safesift_paper.datasets.base import Dataset
from safesift_paper.datasets.store import RemoteFile, cache_folder, fetch, fetch_all, local

_CATEGORY = "C11"
_N_FEATURES = 47_236
_PARSED = "rcv1-test-c11.npz"


def _remote(name: str, number: int, checksum: str) -> RemoteFile:
    # the addresses and checksums of scikit-learn's fetch_rcv1
    url = f"https://ndownloader.figshare.com/files/{number}"
    return RemoteFile(name, (url,), f"sha256:{checksum}")


_VECTORS = (
    _remote("lyrl2004_vectors_test_pt0.dat.gz", 5976069,
            "ed40f7e418d10484091b059703eeb95ae3199fe042891dcec4be6696b9968374"),
    _remote("lyrl2004_vectors_test_pt1.dat.gz", 5976066,
            "87700668ae45d45d5ca1ef6ae9bd81ab0f5ec88cc95dcef9ae7838f727a13aa6"),
    _remote("lyrl2004_vectors_test_pt2.dat.gz", 5976063,
            "48143ac703cbe33299f7ae9f4995db49a258690f60e5debbff8995c34841c7f5"),
    _remote("lyrl2004_vectors_test_pt3.dat.gz", 5976060,
            "dfcb0d658311481523c6e6ca0c3f5a3e1d3d12cde5d7a8ce629a9006ec7dbb39"),
)  # fmt: skip
_TOPICS = _remote(
    "rcv1v2.topics.qrels.gz",
    5976048,
    "2a98e5e5d8b770bded93afc8930d88299474317fe14181aee1466cc754d0d1c1",
)


class _Stories(NamedTuple):
    """Vectors, and whether each is of the category."""

    X: sparse.csr_matrix
    of_category: NDArray[np.bool_]


def load_rcv1() -> Dataset:
    """RCV-1, the first category against the rest as in the paper.

    The first of the 103 categories, in the order of their names, which is scikit-learn's, is C11
    (strategy and plans). The 781 265 stories of the paper are those that the split of Lewis et
    al. (2004) calls the test part.

    Found as the five original files `lyrl2004_vectors_test_pt0.dat.gz` … `pt3` and
    `rcv1v2.topics.qrels.gz` in SAFESIFT_DATA or in the cache; otherwise downloaded from where
    scikit-learn gets them, 630 MB. Where they cannot be had, `load_imdb` stands in for them, if
    asked for by name.

    Returns
    -------
    Dataset
        `X` is a CSR matrix.

    Examples
    --------
    >>> from safesift_paper import datasets
    >>> datasets.load_rcv1().X.shape  # doctest: +SKIP
    (781265, 47236)
    """
    stories = _read_parsed() or _parse()
    return Dataset(
        name="rcv1",
        title="RCV-1, category C11 against the rest",
        X=stories.X,
        labels=stories.of_category.astype(np.int8),
        positive=1,
    )


def _read_parsed() -> _Stories | None:
    """What an earlier call left in the cache: parsing takes minutes."""
    path = local(_PARSED)
    if path is None:
        return None
    with np.load(path) as part:
        shape = (len(part["indptr"]) - 1, _N_FEATURES)
        X = sparse.csr_matrix((part["data"], part["indices"], part["indptr"]), shape=shape)
        return _Stories(X, part["of_category"])


def _parse() -> _Stories:
    # all files before any of them is read
    vectors, topics = fetch_all(_VECTORS), fetch(_TOPICS)
    blocks, numbers = [], []
    for k, path in enumerate(vectors, start=1):
        block, of_block = _read_vectors(path)
        blocks.append(block)
        numbers.append(of_block)
        progress.report("reading RCV-1", k, len(vectors))
    X = sparse.vstack(blocks, format="csr")
    stories = _Stories(X, np.isin(np.concatenate(numbers), _members(topics)))
    path = cache_folder() / _PARSED
    part = path.with_name(f"part-{path.name}")
    np.savez(part, data=X.data, indices=X.indices, indptr=X.indptr, of_category=stories.of_category)
    part.replace(path)
    return stories


def _read_vectors(path: Path) -> tuple[sparse.csr_matrix, NDArray[np.int64]]:
    """The vectors of a file and the numbers of their stories, which stand where labels would."""
    from sklearn.datasets import load_svmlight_file

    with gzip.open(path) as lines:
        X, numbers = load_svmlight_file(lines, n_features=_N_FEATURES)
    return X, numbers.astype(np.int64)


def _members(path: Path) -> NDArray[np.int64]:
    """The numbers of the stories of the category; a line is `category number 1`."""
    wanted = f"{_CATEGORY} ".encode()
    with gzip.open(path) as lines:
        return np.array([int(line.split()[1]) for line in lines if line.startswith(wanted)])
