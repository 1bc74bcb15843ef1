"""Formats of named columns, read through Arrow: comma-separated values with a header, Parquet."""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, Self

from safesift.faces.files import arrow as pa
from safesift.faces.files.columns import collect, labelled, matrices
from safesift.faces.files.streams import Mask, copy_rows, open_read, reading
from safesift.faces.files.table import Columns, Table, find_columns, find_features

_BLOCK_BYTES = 2**23
_BLOCK_ROWS = 2**16
_CELL_BYTES = 8


class _ArrowTable(Table):
    """A file of which Arrow reads named columns, some rows at a time."""

    @staticmethod
    @abstractmethod
    def _names(path: Path) -> list[str]:
        """The names of all columns."""

    @staticmethod
    @abstractmethod
    def _batches(
        path: Path, columns: Sequence[str], n_rows: int
    ) -> AbstractContextManager[Iterable[pa.RecordBatch]]:
        """These columns, about so many rows at a time."""

    @classmethod
    def read(cls, path: Path, columns: Columns) -> Self:
        with reading(path, cls.format_name, pa.ArrowException):
            found = find_columns(columns, cls._names(path))
            with cls._batches(path, found.used, _BLOCK_ROWS) as batches:
                return cls(path, *collect(batches, found))

    @classmethod
    def blocks(
        cls,
        path: Path,
        names: tuple[str, ...],
        n_features: int,
        n_bytes: int,
        target: str | None = None,
    ) -> Iterator[Any]:
        with reading(path, cls.format_name, pa.ArrowException):
            features = find_features(names, cls._names(path), n_features, target)
            wanted = [*features, *filter(None, [target])]
            n_rows = max(n_bytes // (_CELL_BYTES * len(wanted)), 1)
            with cls._batches(path, wanted, n_rows) as batches:
                if target is None:
                    yield from matrices(batches, features)
                else:
                    yield from labelled(batches, features, target)


class CsvTable(_ArrowTable):
    """A CSV file; its records are copied byte by byte, with their quotes and line ends."""

    format_name = "CSV"
    extensions = (".csv",)
    compressible = True

    @staticmethod
    def _names(path: Path) -> list[str]:
        with CsvTable._batches(path, (), _BLOCK_ROWS) as batches:
            return batches.schema.names

    @staticmethod
    @contextmanager
    def _batches(
        path: Path, columns: Sequence[str], n_rows: int
    ) -> Iterator[pa.csv.CSVStreamingReader]:
        """The columns as text, in blocks of bytes; all columns where none is named."""
        with (
            open_read(path) as stream,
            pa.csv.open_csv(
                stream,
                read_options=pa.csv.ReadOptions(block_size=_BLOCK_BYTES),
                parse_options=pa.csv.ParseOptions(newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=columns, column_types=dict.fromkeys(columns, pa.string())
                ),
            ) as reader,
        ):
            yield reader

    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        with reading(self.path, self.format_name, csv.Error):
            copy_rows(_records(self.path), keep, stream)


def _records(path: Path) -> Iterator[tuple[bool, bytes]]:
    """The raw bytes of every record, and whether it is a row: not the header, nor an empty line.

    The csv module takes from its source exactly the lines of the record it returns, so these are
    the bytes of the record, however its cells are quoted. Latin-1 gives every byte a character.
    """
    taken: list[str] = []

    def lines(text: io.TextIOWrapper) -> Iterator[str]:
        for line in text:
            taken.append(line)
            yield line

    in_header = True
    with io.TextIOWrapper(open_read(path), encoding="latin-1", newline="") as text:
        for cells in csv.reader(lines(text)):
            yield bool(cells) and not in_header, "".join(taken).encode("latin-1")
            in_header &= not cells
            taken.clear()


class ParquetTable(_ArrowTable):
    """A Parquet file; schema, metadata, row groups and compression stay as they are."""

    format_name = "Parquet"
    extensions = (".parquet", ".pq")

    @staticmethod
    def _names(path: Path) -> list[str]:
        return pa.parquet.read_schema(path).names

    @staticmethod
    @contextmanager
    def _batches(
        path: Path, columns: Sequence[str], n_rows: int
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        with pa.parquet.ParquetFile(path) as file:
            yield file.iter_batches(n_rows, columns=list(columns))

    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        with (
            pa.parquet.ParquetFile(self.path) as file,
            pa.parquet.ParquetWriter(
                stream, file.schema_arrow, compression=_codecs(file)
            ) as writer,
        ):
            start = 0
            for index in range(file.num_row_groups):
                group = file.read_row_group(index)
                kept = group.filter(pa.array(keep[start : start + len(group)]))
                start += len(group)
                if len(kept):
                    writer.write_table(kept, row_group_size=len(kept))


def _codecs(file: pa.parquet.ParquetFile) -> dict[str, str] | str:
    """The compression of every column, as the first row group has it."""
    if file.num_row_groups == 0:
        return "snappy"
    group = file.metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    return {
        column.path_in_schema: column.compression.replace("UNCOMPRESSED", "NONE")
        for column in columns
    }
