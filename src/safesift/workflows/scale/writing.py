"""The rows that matter, written a block at a time, complete or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.design.block_source import Block
from safesift.design.file_source import FileSource
from safesift.problem.training import Training
from safesift.workflows.scale.reading import Reading
from safesift.workflows.scale.solve import Solution

RECORD = "safesift.json"
# the column of new weights where files have none
_WEIGHT = "sample_weight"


def write_kept(solution: Solution, training: Training, directory: Path) -> Path:
    """Write the kept rows of a source below a new directory."""
    reading, kept = solution.reading, solution.kept

    def record(weight: float) -> dict[str, Any]:
        return {
            "training": str(training),
            "alpha": training.alpha,
            "alpha_kept": training.alpha * reading.divisor / weight if weight > 0 else None,
            "rows": len(kept),
            "kept": kept.sum(),
            "undecided": solution.undecided.sum(),
            "relative_gap": max(fit.relative_gap for fits in solution.fits for fit in fits),
            "scaled": reading.scaling is not None,
        }

    return write_rows(reading, kept.part, directory, record)


def write_rows(
    reading: Reading,
    kept: Callable[[int], NDArray[np.bool_]],
    directory: Path,
    record: Callable[[float], dict[str, Any]],
    weights: Callable[[int], NDArray[np.float64] | None] = lambda part: None,
) -> Path:
    """Write some rows of a source below a new directory.

    Parameters
    ----------
    reading : Reading
    kept : callable
        The number of a part ↦ which of its rows are written.
    directory : Path
    record : callable
        The weight of these rows ↦ what is to be said of them.
    weights : callable, optional
        The number of a part ↦ new weights of the rows that are written, or None.
    """
    directory = directory.resolve()
    if directory.exists():
        raise FileExistsError(f"{directory} exists already: choose another name, or remove it.")
    if not directory.parent.is_dir():
        raise FileNotFoundError(f"{directory.parent}: there is no such directory to write into.")
    with _growing(directory) as beside:
        chosen = _Chosen(reading, kept, weights)
        if isinstance(reading.source, FileSource):
            weight = _write_files(chosen, reading.source, beside)
        else:
            weight = _write_arrays(chosen, beside)
        (beside / RECORD).write_text(json.dumps(record(weight), indent=1))
    return directory


class _Chosen(NamedTuple):
    """Which rows are written, and with which weights."""

    reading: Reading
    kept: Callable[[int], NDArray[np.bool_]]
    weights: Callable[[int], NDArray[np.float64] | None]


@contextmanager
def _growing(directory: Path) -> Iterator[Path]:
    """A directory that gets its name when all of it is there, and is gone where that fails."""
    beside = directory.with_name(f".{directory.name}.{os.getpid()}.part")
    beside.mkdir()
    try:
        yield beside
        os.replace(beside, directory)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


# --- files --------------------------------------------------------------------------------------


def _write_files(chosen: _Chosen, source: FileSource, directory: Path) -> float:
    """Every file again, with the rows that are kept; those without any are left out."""
    weight = 0.0
    for name, parts in groupby(range(source.n_parts), source.name):
        with _Writer(source, directory / name) as writer:
            for part in parts:
                weights, n_written = chosen.weights(part), 0
                for table, block, kept in _tables(chosen, source, part):
                    weight += float(chosen.reading.weighted(block)[kept].sum())
                    # what directories say of a file is said by their names again
                    import pyarrow as pa

                    rows = table.select(source.own_columns(part)).filter(pa.array(kept))
                    if weights is not None:
                        mine = weights[n_written : n_written + len(rows)]
                        rows = _with_weights(rows, source.weight_column or _WEIGHT, mine)
                    n_written += len(rows)
                    writer.write(rows)
    return weight


def _with_weights(rows: Any, name: str, weights: NDArray[np.float64]) -> Any:
    """The same rows, with weights in a column of that name."""
    if name in rows.schema.names:
        return rows.set_column(rows.schema.names.index(name), name, [weights])
    return rows.append_column(name, [weights])


def _tables(chosen: _Chosen, source: FileSource, part: int) -> Iterator[tuple]:
    """Tables of all columns, the same as blocks, and which of their rows are kept."""
    kept = chosen.kept(part)
    tables: list[Any] = []

    def blocks() -> Iterator[Block]:
        start = 0
        for table in source.batches(part):
            tables.append(table)
            raw = source.decoded(table)
            weights = np.ones(len(table)) if raw.weights is None else raw.weights.astype(float)
            if len(table):
                yield Block(raw.X, np.asarray(raw.y), weights, part, start)
            start += len(table)

    for block in chosen.reading.unchanged(part, blocks()):
        yield tables.pop(), block, kept[block.start : block.start + block.n_rows]


class _Writer:
    """A file of some format, made when the first row comes."""

    def __init__(self, source: FileSource, path: Path) -> None:
        self._source, self._path = source, path
        self._writer: Any = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, rows: Any) -> None:
        if not len(rows):
            return
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = self._opened(rows.schema)
        self._writer.write_table(rows)

    def _opened(self, schema: Any) -> Any:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet

        if self._source.kind == "parquet":
            return pyarrow.parquet.ParquetWriter(self._path, schema)
        if self._source.kind == "csv":
            return pyarrow.csv.CSVWriter(str(self._path), schema)
        return pa.ipc.new_file(str(self._path), schema)


# --- arrays -------------------------------------------------------------------------------------


def _write_arrays(chosen: _Chosen, directory: Path) -> float:
    """A file of arrays for every part that has rows to keep."""
    reading, weight, first = chosen.reading, 0.0, 0
    for part, seals in sorted(reading.seals.items()):
        kept, weights = chosen.kept(part), chosen.weights(part)
        if kept.any():
            found = []
            for block in reading.unchanged(part, reading.source.blocks(part)):
                mine = kept[block.start : block.start + block.n_rows]
                weight += float(reading.weighted(block)[mine].sum())
                found.append(_rows(block, mine, first))
            columns = {name: [one[name] for one in found] for name in found[0]}
            if weights is not None:
                columns["weight"] = [weights]
            np.savez(directory / f"part-{part:06d}.npz", **_joined(columns))
        first += sum(n_rows for n_rows, _ in seals)
    return weight


def _rows(block: Block, kept: Any, first: int) -> dict[str, Any]:
    rows = np.flatnonzero(kept)
    return {
        "X": block.X[rows],
        "y": block.y[rows],
        "weight": block.weights[rows],
        "row": rows + block.start + first,
    }


def _joined(columns: dict[str, list[Any]]) -> dict[str, Any]:
    X = columns.pop("X")
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    if not sparse.issparse(X[0]):
        return {"X": np.concatenate(X), **joined}
    whole = sparse.vstack(X, format="csr")
    return {
        "data": whole.data, "indices": whole.indices, "indptr": whole.indptr,
        "shape": np.array(whole.shape), **joined,
    }  # fmt: skip
