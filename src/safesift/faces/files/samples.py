"""Batches of Arrow columns to a matrix, a target and weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from safesift.faces.files.columns import labels, numbers, open_ends
from safesift.faces.files.roles import Roles


class Samples(NamedTuple):
    """What the library needs of a table."""

    X: NDArray
    y: NDArray
    weights: NDArray | None


def collect(batches: Iterable[pa.RecordBatch], roles: Roles, kind: str) -> Samples:
    """Turn a stream of batches into arrays; the Arrow data are let go batch by batch."""
    blocks, targets, weights, done = [], [], [], 0
    for batch in batches:
        columns = [numbers(batch.column(name), name, done) for name in roles.features]
        blocks.append(np.column_stack(columns))
        targets.append(_target(batch, roles, kind, done))
        if roles.weights:
            weights.append(numbers(batch.column(roles.weights), roles.weights, done))
        done += len(batch)
    if not blocks:
        return Samples(np.empty((0, len(roles.features))), np.empty(0), None)
    if kind == "classification":
        y = labels(pa.chunked_array(targets), roles.target)
    else:
        y = np.concatenate(targets)
    return Samples(_stacked(blocks), y, np.concatenate(weights) if weights else None)


def features(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[NDArray]:
    """The features of a stream of batches, one matrix after another."""
    done = 0
    for batch in batches:
        yield np.column_stack([numbers(batch.column(name), name, done) for name in names])
        done += len(batch)


def _target(batch: pa.RecordBatch, roles: Roles, kind: str, first_row: int) -> NDArray | pa.Array:
    """The target of a batch; labels stay as they are until all of them are known."""
    target = batch.column(roles.target)
    if kind == "classification":
        return target
    if kind == "regression":
        return numbers(target, roles.target, first_row)
    lower = open_ends(target, roles.target, first_row, -np.inf)
    upper = open_ends(batch.column(roles.upper), roles.upper, first_row, np.inf)
    return np.column_stack([lower, upper])


def _stacked(blocks: list[NDArray]) -> NDArray:
    """The blocks on top of each other; each is let go once copied, so there is one copy of all."""
    n_rows = sum(map(len, blocks))
    out = np.empty((n_rows, blocks[0].shape[1]), dtype=np.result_type(*blocks))
    while blocks:
        block = blocks.pop()
        out[n_rows - len(block) : n_rows] = block
        n_rows -= len(block)
    return out
