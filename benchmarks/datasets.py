"""The real data of the benchmarks, from the folder named by SAFESIFT_DATA."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file


class Dataset(NamedTuple):
    X: Any
    y: np.ndarray


def folder() -> Path:
    """Where the data are; a sentence on how to get them where they are not."""
    path = Path(os.environ.get("SAFESIFT_DATA", "data"))
    if not path.is_dir():
        raise SystemExit(
            f"no folder {path}: set SAFESIFT_DATA to one that holds mnist.npz (X_train, y_train), "
            "covtype.npz (X, y), a9a and news20 as svmlight.bz2 (LIBSVM's data page) and "
            "imdb.parquet (text, and label pos or neg)."
        )
    return path


def mnist() -> Dataset:
    """Pixels, rows of norm 1, digit 9 against the rest."""
    with np.load(folder() / "mnist.npz") as file:
        X = file["X_train"].reshape(len(file["X_train"]), -1).astype(np.float64)
        y = file["y_train"]
    return Dataset(X / np.linalg.norm(X, axis=1, keepdims=True), np.where(y == 9, 1.0, -1.0))


def mnist_ten(rows: int | None = None) -> Dataset:
    """The same pixels of so many rows; ten classes."""
    with np.load(folder() / "mnist.npz") as file:
        digits = file["y_train"].astype(np.float64)
    return Dataset(mnist().X[:rows], digits[:rows])


def mnist_fourier() -> Dataset:
    """512 random Fourier features of the pixels: dense, rows of norm about 1."""
    from sklearn.kernel_approximation import RBFSampler

    X, y = mnist()
    return Dataset(RBFSampler(gamma=1.0, n_components=512, random_state=0).fit_transform(X), y)


def mnist_digits() -> Dataset:
    """The same pixels; the target is the digit itself, standardised."""
    with np.load(folder() / "mnist.npz") as file:
        digits = file["y_train"].astype(np.float64)
    return Dataset(mnist().X, (digits - digits.mean()) / digits.std())


def covtype() -> Dataset:
    """Standardised and divided by the rms row norm, class 2 against the rest."""
    X, y = _standardised_covtype()
    return Dataset(_unit_rms(X), np.where(y == 2, 1.0, -1.0))


def covtype_rows(rows: int) -> Dataset:
    """So many of its rows, drawn at random: the file is sorted."""
    X, y = covtype()
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    return Dataset(X[chosen], y[chosen])


def covtype_elevation() -> Dataset:
    """The elevation, standardised, from the other 53 columns."""
    X, _ = _standardised_covtype()
    return Dataset(_unit_rms(X[:, 1:]), X[:, 0].copy())


def _standardised_covtype() -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder() / "covtype.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"]
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    return X, y


def _unit_rms(X: np.ndarray) -> np.ndarray:
    return X / np.sqrt(np.mean(np.sum(X**2, axis=1)))


def a9a() -> Dataset:
    X, y = load_svmlight_file(str(folder() / "a9a.svmlight.bz2"), n_features=123)
    return Dataset(X.toarray(), np.where(y > 0, 1.0, -1.0))


def news20() -> Dataset:
    """Sparse, class 1 against the rest, rows of norm 1."""
    X, y = news20_twenty()
    return Dataset(X, np.where(y == 1, 1.0, -1.0))


def news20_twenty() -> Dataset:
    """The same of twenty classes."""
    X, y = load_svmlight_file(str(folder() / "news20.svmlight.bz2"))
    return Dataset(_unit_rows(X), y)


def imdb() -> Dataset:
    """Sparse tf-idf of film reviews, positive against negative."""
    import pandas as pd
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = pd.read_parquet(folder() / "imdb.parquet", columns=["text", "label"])
    X = TfidfVectorizer(min_df=3).fit_transform(table["text"])
    return Dataset(X, np.where(table["label"].to_numpy() == "pos", 1.0, -1.0))


def electricity() -> Dataset:
    """In time order, drifting (OpenML's `electricity`); features in [-1, 1], labels 0 and 1."""
    with np.load(folder() / "electricity.npz") as file:
        return Dataset(2.0 * file["X"] - 1.0, file["y"])


def synthetic(rows: int = 3000, columns: int = 20, seed: int = 0) -> Dataset:
    """Made up, for trying things out without any file: noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) / np.sqrt(columns)
    signal = X @ rng.standard_normal(columns) + 0.3 * rng.standard_normal(rows)
    return Dataset(X, np.where(signal > 0, 1.0, -1.0))


def synthetic_three() -> Dataset:
    """The same rows, three classes."""
    X, _ = synthetic()
    rng = np.random.default_rng(1)
    scores = X @ rng.standard_normal((20, 3)) + 0.3 * rng.standard_normal((3000, 3))
    return Dataset(X, scores.argmax(axis=1).astype(np.float64))


def onehot() -> Dataset:
    """Made up: twelve categories in 311 columns, 50 000 rows, sparse; three noisy classes.

    Few values of a category are frequent and many are rare, as in tables of real life.
    """
    from scipy import sparse

    rng, n = np.random.default_rng(0), 50_000
    columns, scores, first = [], np.zeros((n, 3)), 0
    for size in (2, 3, 4, 5, 7, 10, 15, 25, 40, 60, 70, 70):
        frequency = 1.0 / np.arange(1, size + 1)
        values = rng.choice(size, n, p=frequency / frequency.sum())
        columns.append(first + values)
        scores += rng.standard_normal((size, 3))[values]
        first += size
    indices = np.stack(columns, axis=1)
    indptr = np.arange(0, indices.size + 1, indices.shape[1])
    X = sparse.csr_matrix((np.ones(indices.size), indices.ravel(), indptr), shape=(n, first))
    noisy = scores + 2.0 * rng.gumbel(size=scores.shape)
    return Dataset(X, noisy.argmax(axis=1).astype(np.float64))


def _unit_rows(X: Any) -> Any:
    from sklearn.preprocessing import normalize

    return normalize(X)


DATASETS: dict[str, Callable[[], Dataset]] = {
    "mnist": mnist,
    "a9a": a9a,
    "covtype": covtype,
    "news20": news20,
    "imdb": imdb,
}

# what only some benchmarks use
MORE_DATASETS: dict[str, Callable[[], Dataset]] = DATASETS | {
    "mnist-fourier": mnist_fourier,
    "mnist-digits": mnist_digits,
    "mnist-ten": mnist_ten,
    "mnist-ten-20000": partial(mnist_ten, 20_000),
    "news20-twenty": news20_twenty,
    "onehot": onehot,
    "covtype-200000": partial(covtype_rows, 200_000),
    "covtype-elevation": covtype_elevation,
    "synthetic": synthetic,
    "synthetic-three": synthetic_three,
}
