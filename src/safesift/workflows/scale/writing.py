"""The rows that matter, written a block at a time, complete or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from safesift.design.block_source import Block
from safesift.design.file_source import FileSource
from safesift.problem.training import Training
from safesift.workflows.scale.solve import Solution

RECORD = "safesift.json"


def write_kept(solution: Solution, training: Training, directory: Path) -> Path:
    """Write the kept rows of a source below a new directory."""
    directory = directory.resolve()
    if directory.exists():
        raise FileExistsError(f"{directory} exists already: choose another name, or remove it.")
    if not directory.parent.is_dir():
        raise FileNotFoundError(f"{directory.parent}: there is no such directory to write into.")
    with _growing(directory) as beside:
        source = solution.reading.source
        if isinstance(source, FileSource):
            weight = _write_files(solution, source, beside)
        else:
            weight = _write_arrays(solution, beside)
        (beside / RECORD).write_text(json.dumps(_record(solution, training, weight), indent=1))
    return directory


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


def _record(solution: Solution, training: Training, weight: float) -> dict[str, Any]:
    reading, kept = solution.reading, solution.kept
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


# --- files --------------------------------------------------------------------------------------


def _write_files(solution: Solution, source: FileSource, directory: Path) -> float:
    """Every file again, with the rows that are kept; those without any are left out."""
    weight, done = 0.0, 0
    while done < source.n_parts:
        path = source.path(done)
        parts = [k for k in range(done, source.n_parts) if source.path(k) == path]
        done += len(parts)
        target = directory / os.path.relpath(path, source.root or ".").replace("../", "")
        with _Writer(source, target) as writer:
            for part in parts:
                for table, block, kept in _tables(solution, source, part):
                    weight += float(solution.reading.weighted(block)[kept].sum())
                    # what directories say of a file is said by their names again
                    writer.write(table.select(source.own_columns(part)), kept)
    return weight


def _tables(solution: Solution, source: FileSource, part: int) -> Iterator[tuple]:
    """Tables of all columns, the same as blocks, and which of their rows are kept."""
    kept = solution.kept.part(part)
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

    for block in solution.reading.unchanged(part, blocks()):
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

    def write(self, table: Any, kept: Any) -> None:
        import pyarrow as pa

        rows = table.filter(pa.array(kept))
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


def _write_arrays(solution: Solution, directory: Path) -> float:
    """A file of arrays for every part that has rows to keep."""
    reading, weight, first = solution.reading, 0.0, 0
    for part, seals in sorted(reading.seals.items()):
        kept = solution.kept.part(part)
        if kept.any():
            found = []
            for block in reading.unchanged(part, reading.source.blocks(part)):
                mine = kept[block.start : block.start + block.n_rows]
                weight += float(reading.weighted(block)[mine].sum())
                found.append(_rows(block, mine, first))
            columns = {name: [one[name] for one in found] for name in found[0]}
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
