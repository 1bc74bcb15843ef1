"""Dask arrays and frames as sources of blocks: a partition is a part, and stays where it is."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.design.block_source import BlockSource, Raw, rows_in_a_block
from safesift.registry import naming_extra


def is_dask(X: Any) -> bool:
    """Whether something is a dask array or frame, without an import of dask."""
    of_dask = type(X).__module__.partition(".")[0] in ("dask", "dask_expr")
    return of_dask and hasattr(X, "to_delayed") and hasattr(X, "ndim")


class DaskSource(BlockSource):
    """The partitions of a dask frame, or the chunks of a dask array.

    Whoever carries a pass out has the partitions handed to him (`holding`), where they are. They
    are computed anew in every pass unless they were persisted.

    Parameters
    ----------
    X : dask array of shape (n_samples, n_features), or dask frame
        Chunks of an array hold whole rows.
    y : dask array or series, or array, optional
        Of as many partitions as X; of an array with chunks of known lengths also an array.
    weight : the same, optional; or str
        Or the column of weights.
    target : str, or pair of str for the ends of intervals, optional
        The column of targets of a frame, in place of y.
    columns : sequence of str, optional
        The features of a frame; by default all columns but target and weight.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        weight: Any,
        target: str | Sequence[str] | None,
        columns: Sequence[str] | None,
        memory: int | str,
        scale: str | None,
    ) -> None:
        super().__init__(memory, scale)
        if not is_dask(X):
            raise TypeError(f"X must be a dask array or frame, got {type(X).__name__}.")
        if (y is None) == (target is None):
            raise ValueError("give y, or target, the name of its column: one of them.")
        if X.ndim != 2:
            raise ValueError(f"X must have rows and columns, got {X.ndim} dimension(s).")
        self._kind = "partition" if _is_frame(X) else "chunk"
        self._home = _home(X)
        self._features: list[str] | None = None
        self._targets = [target] if isinstance(target, str) else list(target or ())
        self._weight = weight if isinstance(weight, str) else None
        if _is_frame(X):
            used = self._used_columns(X, columns)
            # what is in memory is taken as it is, what is read is read for these columns only
            X = X if _futures(X) is not None else X[used]
        else:
            _refuse_names(target, columns, self._weight)
        X_parts, lengths = _parts(X, None), _lengths(X)
        self.n_rows = None if lengths is None else sum(lengths)
        given = {"y": y, "sample_weight": None if self._weight is not None else weight}
        others = [
            [None] * len(X_parts) if one is None else _split(name, one, len(X_parts), lengths)
            for name, one in given.items()
        ]
        self._n_parts = len(X_parts)
        self._pieces: list[tuple] | None = list(zip(X_parts, *others, strict=True))
        self._at_hand: dict[int, tuple] = {}

    def _used_columns(self, X: Any, columns: Sequence[str] | None) -> list[str]:
        """Those that are needed, refused where there are none, or they hold no numbers."""
        names = list(X.columns)
        others = [*self._targets, *filter(None, [self._weight])]
        self._features = [n for n in names if n not in others] if columns is None else list(columns)
        for name in (*others, *self._features):
            if name not in names:
                raise ValueError(
                    f"the frame has no column {name!r}: it has {', '.join(map(str, names[:8]))}"
                    f"{', …' if len(names) > 8 else ''}."
                )
        if not self._features:
            raise ValueError("the frame has no columns beside the target: name some.")
        for name in self._features:
            if getattr(X.dtypes[name], "kind", "O") not in "fiub":
                raise ValueError(
                    f"the column {name!r} of type {X.dtypes[name]} holds no numbers: encode it, or "
                    "leave it out."
                )
        if all(isinstance(name, str) for name in self._features):
            self.feature_names = tuple(self._features)
        types = [np.dtype(X.dtypes[name].kind + "8") if not isinstance(X.dtypes[name], np.dtype)
                 else X.dtypes[name] for name in self._features]  # fmt: skip
        small = all(np.can_cast(kind, np.float32) for kind in types)
        self._dtype = np.float32 if small else np.float64
        return [*self._features, *others]

    # --- where partitions are -----------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Partitions do not travel with it: they are handed to whoever needs one."""
        return {**vars(self), "_pieces": None, "_home": None}

    @property
    def n_parts(self) -> int:
        return self._n_parts

    @property
    def client(self) -> Any:
        """That which has the partitions, if they were persisted; else that of the process."""
        distributed = sys.modules.get("distributed")
        if self._home is not None:
            return self._home
        try:
            return None if distributed is None else distributed.default_client()
        except ValueError:
            return None

    def pieces(self, part: int) -> Sequence[Any]:
        assert self._pieces is not None  # asked for where they are known
        return self._pieces[part]

    def holding(self, part: int, pieces: Sequence[Any]) -> BlockSource:
        held = copy.copy(self)
        held._at_hand = {part: tuple(pieces)}
        return held

    # --- their rows ---------------------------------------------------------------------------

    def raw(self, part: int) -> Iterator[Raw]:
        pieces = self._at_hand.get(part)
        if pieces is None:
            computed = _dask("base").compute(*self.pieces(part))
            pieces = tuple(one.result() if hasattr(one, "result") else one for one in computed)
        try:
            X, y, weights = self._arrays(*pieces)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.place(part)}: {error}") from None
        length = rows_in_a_block(X, self.memory) if X.shape[0] else 1
        for start in range(0, X.shape[0], length):
            rows = slice(start, start + length)
            yield Raw(X[rows], y[rows], None if weights is None else weights[rows])

    def _arrays(self, X: Any, y: Any, weights: Any) -> tuple[Any, NDArray, NDArray | None]:
        """Of a partition; rows in one order in memory, whichever way they came."""
        if self._features is None:
            matrix = X.tocsr() if hasattr(X, "tocsr") else np.ascontiguousarray(X)
        else:
            others = [*self._targets, *filter(None, [self._weight])]
            lost = [name for name in (*self._features, *others) if name not in X.columns]
            if lost:
                raise ValueError(
                    f"there is no column {lost[0]!r}, which the frame has: give all partitions the "
                    "same columns."
                )
            matrix = np.ascontiguousarray(X[self._features].to_numpy(dtype=self._dtype))
        if self._targets:
            y = X[self._targets[0] if len(self._targets) == 1 else self._targets]
        if self._weight is not None:
            weights = X[self._weight]
        return matrix, _plain(y), None if weights is None else _plain(weights)

    def place(self, part: int) -> str:
        return f"{self._kind} {part}"


def _plain(values: Any) -> NDArray:
    return values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)


def _refuse_names(target: Any, columns: Any, weight: Any) -> None:
    for name, value in (("target", target), ("columns", columns), ("sample_weight", weight)):
        if value is not None:
            raise ValueError(
                f"{name}={value!r} names columns, which an array does not have: give y and "
                "sample_weight as arrays."
            )


def _lengths(X: Any) -> list[int] | None:
    """Of the chunks of an array, where they are known."""
    if _is_frame(X) or any(math.isnan(n) for n in X.chunks[0]):
        return None
    return list(X.chunks[0])


def _is_frame(X: Any) -> bool:
    """Whether it is a frame or series, and no array."""
    return hasattr(X, "divisions")


def _home(X: Any) -> Any:
    """Who persisted it, if anybody did."""
    distributed = sys.modules.get("distributed")
    futures = [] if distributed is None else distributed.futures_of(X)
    return futures[0].client if futures else None


def _futures(X: Any) -> list[Any] | None:
    """The partitions, where they were persisted: what is there is not computed."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    known = {future.key: future for future in distributed.futures_of(X)}
    keys = list(_dask("core").flatten(X.__dask_keys__()))
    return [known[key] for key in keys] if all(key in known for key in keys) else None


def _parts(X: Any, lengths: list[int] | None) -> list[Any]:
    """The partitions, or chunks of rows, or what they are computed by."""
    if _is_frame(X):
        return _futures(X) or list(X.to_delayed())
    if X.ndim == 2 and len(X.chunks[1]) > 1:
        raise ValueError(
            f"the chunks of X hold parts of rows ({len(X.chunks[1])} chunks across the columns): "
            "use X.rechunk({1: -1}), and persist that."
        )
    if lengths is not None and lengths != _lengths(X):
        X = X.rechunk((tuple(lengths), *X.chunks[1:]))
    return _futures(X) or list(np.ravel(X.to_delayed()))


def _split(name: str, values: Any, n_parts: int, lengths: list[int] | None) -> list[Any]:
    """Targets or weights of every part."""
    if is_dask(values):
        known = lengths is not None and _lengths(values) is not None
        parts = _parts(values, lengths if known and sum(lengths or ()) == len(values) else None)
        if len(parts) != n_parts:
            raise ValueError(
                f"{name} has {len(parts)} partitions but X has {n_parts}: take both from one "
                "frame, or repartition one of them."
            )
        return parts
    if lengths is None:
        raise ValueError(
            f"{name} is no dask array or series, and how long the partitions of X are is not "
            "known: make it one, with the partitions of X."
        )
    array = _plain(values)
    if len(array) != sum(lengths):
        raise ValueError(f"{name} has {len(array)} entries but X has {sum(lengths)} rows.")
    return [array[slice(*ends)] for ends in pairwise(accumulate(lengths, initial=0))]


def _dask(part: str) -> Any:
    try:
        return import_module(f"dask.{part}")
    except ImportError as error:
        raise naming_extra(error) from None
