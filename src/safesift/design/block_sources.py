"""Samples larger than memory: re-readable blocks of rows, wherever they come from.

What these functions return goes wherever X and y do: `SafeClassifier.fit`, `SafeRegressor.fit`,
`screen`, `safe_path`. Rows are read in a few passes, and what is held of them, together with all
matrices, fits into `memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from safesift.design.block_source import ArraySource, BlockSource, CallSource
from safesift.design.dask_source import DaskSource
from safesift.design.file_source import FileSource

__all__ = ["BlockSource", "arrays", "arrow", "calls", "csv", "dask", "feather", "parquet"]


def arrays(
    X: Any,
    y: Any,
    weight: Any = None,
    *,
    memory: int | str = "1 GB",
    scale: str | None = None,
    checkpoint: str | Path | None = None,
) -> BlockSource:
    """The rows of one matrix, such as a memory map, which is never copied whole.

    Parameters
    ----------
    X : array, memory map, CSR matrix or frame of shape (n_samples, n_features)
    y : array of shape (n_samples,), or (n_samples, 2) for intervals
    weight : array of shape (n_samples,), optional
    memory : int or str, default="1 GB"
        The budget for rows that are held and for matrices with a row for each column, of all
        problems in flight.
    scale : None or "standard", default=None
        "standard": columns are centred and divided by their deviation, found in the first pass.
        What is certified is then the scaled problem; coefficients are told in the units of X.
    checkpoint : str or Path, optional
        A directory, such as "run/", in which it is written after every pass how far a run has come:
        one that was killed goes on there. It belongs to one run: with other data or arguments it
        is refused. It is read with `pickle`, so name none that others may write to.

    Returns
    -------
    BlockSource

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 4))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=5000) > 0
    >>> model = ss.SafeClassifier(alpha=1e-3).fit(ss.blocks.arrays(X, y))
    >>> bool(np.allclose(model.coef_, ss.SafeClassifier(alpha=1e-3).fit(X, y).coef_, atol=1e-3))
    True
    """
    return ArraySource(X, y, weight, memory, scale, checkpoint)


def calls(
    make_block: Callable[[int], tuple],
    n_blocks: int,
    *,
    memory: int | str = "1 GB",
    scale: str | None = None,
    checkpoint: str | Path | None = None,
) -> BlockSource:
    """Blocks that a function makes again whenever it is asked to.

    Parameters
    ----------
    make_block : callable
        `make_block(k)` returns (X, y) or (X, y, weight) for k = 0 … n_blocks − 1: always the same
        for the same k, on whatever thread it is called. Rows may be an array or a CSR matrix.
    n_blocks : int
    memory, scale, checkpoint
        As for `arrays`.

    Returns
    -------
    BlockSource
    """
    return CallSource(make_block, n_blocks, memory, scale, checkpoint)


def parquet(
    paths: Any,
    *,
    target: str | Sequence[str],
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    memory: int | str = "1 GB",
    scale: str | None = None,
    checkpoint: str | Path | None = None,
) -> BlockSource:
    """Parquet files, a row group at a time, only the columns that are needed.

    Parameters
    ----------
    paths : str, Path, or sequence of them
        Files, directories, or patterns such as ``"clicks/**/*.parquet"``. Directories named like
        ``day=3`` make a column `day`.
    target : str, or pair of str for the ends of intervals
    columns : sequence of str, optional
        The features; by default all columns but target and weight.
    weight : str, optional
    memory, scale, checkpoint
        As for `arrays`.

    Returns
    -------
    BlockSource
    """
    return FileSource(paths, "parquet", target, columns, weight, memory, scale, checkpoint)


def csv(
    paths: Any,
    *,
    target: str | Sequence[str],
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    memory: int | str = "1 GB",
    scale: str | None = None,
    checkpoint: str | Path | None = None,
) -> BlockSource:
    """CSV files with a header, each read from its beginning in every pass.

    Parameters
    ----------
    paths, target, columns, weight, memory, scale, checkpoint
        As for `parquet`.

    Returns
    -------
    BlockSource
    """
    return FileSource(paths, "csv", target, columns, weight, memory, scale, checkpoint)


def arrow(
    paths: Any,
    *,
    target: str | Sequence[str],
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    memory: int | str = "1 GB",
    scale: str | None = None,
    checkpoint: str | Path | None = None,
) -> BlockSource:
    """Arrow IPC files.

    Parameters
    ----------
    paths, target, columns, weight, memory, scale, checkpoint
        As for `parquet`.

    Returns
    -------
    BlockSource
    """
    return FileSource(paths, "arrow", target, columns, weight, memory, scale, checkpoint)


def feather(
    paths: Any,
    *,
    target: str | Sequence[str],
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    memory: int | str = "1 GB",
    scale: str | None = None,
    checkpoint: str | Path | None = None,
) -> BlockSource:
    """Feather files (version 2).

    Parameters
    ----------
    paths, target, columns, weight, memory, scale, checkpoint
        As for `parquet`.

    Returns
    -------
    BlockSource
    """
    return FileSource(paths, "feather", target, columns, weight, memory, scale, checkpoint)


def dask(
    X: Any,
    y: Any = None,
    weight: Any = None,
    *,
    target: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    memory: int | str = "1 GB",
    scale: str | None = None,
) -> BlockSource:
    """A dask array or frame: its partitions stay on the workers of the cluster that has them.

    They are computed anew in every pass unless they are persisted. Without a cluster the threads
    of this process compute them.

    Parameters
    ----------
    X : dask array of shape (n_samples, n_features), or dask frame
        Chunks of an array hold whole rows.
    y : dask array or series of the partitions of X, or array
    weight : the same, optional; or the name of a column
    target : str, or pair of str for the ends of intervals
        The column of targets of a frame, in place of y.
    columns : sequence of str, optional
        The features of a frame; by default all columns but target and weight.
    memory, scale
        As for `arrays`.

    Returns
    -------
    BlockSource
    """
    return DaskSource(X, y, weight, target, columns, memory, scale)
