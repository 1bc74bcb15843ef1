"""Film reviews as sparse tf-idf vectors, a stand-in for RCV-1: about as many words."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np

from safesift_paper.datasets.base import Dataset
from safesift_paper.datasets.store import RemoteFile, fetch, local

_ARCHIVE = RemoteFile(
    "aclImdb_v1.tar.gz",
    ("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",),
    "md5:7c2ac02c03563afcf9b574c7e56c153a",
)
_TABLE = "imdb.parquet"
# the least number of reviews with a word: about as many words are left as RCV-1 has
_MIN_REVIEWS = 3


def load_imdb() -> Dataset:
    """50 000 film reviews, positive against negative: stands in for RCV-1 where that is missing.

    Found as `imdb.parquet` (columns text and label) or as the original
    `aclImdb_v1.tar.gz` in SAFESIFT_DATA or in the cache; otherwise the latter is downloaded.

    Returns
    -------
    Dataset
        `X` is a CSR matrix of tf-idf of the words that at least three reviews have.

    Examples
    --------
    >>> from safesift_paper import datasets
    >>> datasets.load_imdb().X.shape  # doctest: +SKIP
    (50000, 47933)
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = local(_TABLE)
    texts, labels = _from_table(table) if table is not None else _from_archive(fetch(_ARCHIVE))
    return Dataset(
        name="imdb",
        title="IMDB reviews, positive against negative",
        X=TfidfVectorizer(min_df=_MIN_REVIEWS).fit_transform(texts),
        labels=np.array(labels),
        positive="pos",
        stands_in_for="rcv1",
    )


def _from_table(path: Path) -> tuple[list[str], list[str]]:
    from pyarrow import parquet

    table = parquet.read_table(path, columns=["text", "label"])
    return table["text"].to_pylist(), table["label"].to_pylist()


def _from_archive(path: Path) -> tuple[list[str], list[str]]:
    reviews = []
    with tarfile.open(path) as archive:
        for member in archive:
            # aclImdb/train/pos/0_9.txt
            parts = member.name.split("/")
            if len(parts) == 4 and parts[2] in ("pos", "neg") and parts[3].endswith(".txt"):
                text = archive.extractfile(member).read().decode("utf-8")
                reviews.append((member.name, text, parts[2]))
    reviews.sort()
    return [text for _, text, _ in reviews], [label for _, _, label in reviews]
