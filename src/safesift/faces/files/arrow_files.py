"""Formats of named columns, read through Arrow: separated text with a header, and Parquet."""

from __future__ import annotations

import codecs
import csv
import io
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from safesift.faces.files import arrow as pa
from safesift.faces.files.cells import Unusable
from safesift.faces.files.columns import Survey, collect, labelled, matrices, survey
from safesift.faces.files.sniffing import find_separator
from safesift.faces.files.streams import Mask, Source, copy_rows, reading
from safesift.faces.files.table import TEXT, Columns, Table, find_columns, find_features

_BLOCK_BYTES = 2**23
_BLOCK_ROWS = 2**16
_CELL_BYTES = 8


class _ArrowTable(Table):
    """A file of which Arrow reads named columns, some rows at a time."""

    @staticmethod
    @abstractmethod
    def _names(source: Source) -> list[str]:
        """The names of all columns."""

    @staticmethod
    @abstractmethod
    def _batches(
        source: Source, columns: Sequence[str], n_rows: int
    ) -> AbstractContextManager[Iterable[pa.RecordBatch]]:
        """These columns, about so many rows at a time."""

    @classmethod
    def _resolved(cls, source: Source) -> Source:
        """The same, with all that is to be found out about it."""
        return source

    @classmethod
    def read(cls, source: Source, columns: Columns) -> Self:
        with reading(source, cls.format_name, pa.ArrowException):
            source = cls._resolved(source)
            found = find_columns(columns, cls._names(source))
            text = cls._text(source, found)
            if found.one_hot == TEXT:
                found = replace(found, one_hot=text)
            try:
                with cls._batches(source, found.used, _BLOCK_ROWS) as batches:
                    return cls(source, found, collect(batches, found, text))
            except Unusable:
                # the whole truth about the features, where they are to blame
                complaint = cls._complaint(source, found)
                if not complaint:
                    raise
                raise ValueError(complaint) from None

    @classmethod
    def _text(cls, source: Source, found: Columns) -> tuple[str, ...]:
        """The features that hold text, of those that may."""
        asked = found.features if found.one_hot == TEXT else found.one_hot
        return tuple(cls._survey(source, asked).text) if asked else ()

    @classmethod
    def _complaint(cls, source: Source, found: Columns) -> str:
        """What is wrong with the features that should be numbers."""
        seen = cls._survey(source, found.numbers)
        return (replace(seen, missing={}) if found.may_miss else seen).complaint

    @classmethod
    def _survey(cls, source: Source, names: Sequence[str]) -> Survey:
        with cls._batches(source, names, _BLOCK_ROWS) as batches:
            return survey(batches, names)

    @classmethod
    def blocks(
        cls,
        path: Path,
        names: tuple[str, ...],
        n_features: int,
        n_bytes: int,
        target: str | None = None,
    ) -> Iterator[Any]:
        source = Source(path)
        with reading(source, cls.format_name, pa.ArrowException):
            source = cls._resolved(source)
            features = find_features(names, cls._names(source), n_features, target)
            wanted = [*features, *filter(None, [target])]
            n_rows = max(n_bytes // (_CELL_BYTES * len(wanted)), 1)
            with cls._batches(source, wanted, n_rows) as batches:
                if target is None:
                    yield from matrices(batches, features)
                else:
                    yield from labelled(batches, features, target)

    def cells(self, rows: NDArray[np.intp]) -> tuple[tuple[str, ...], list[list[Any]]]:
        wanted, start = np.asarray(rows), 0
        held: list[list[Any]] = []
        with reading(self.source, self.format_name, pa.ArrowException):
            names = self._names(self.source)
            with self._batches(self.source, names, _BLOCK_ROWS) as batches:
                for batch in batches:
                    own = wanted[(wanted >= start) & (wanted < start + len(batch))] - start
                    columns = [column.take(pa.array(own)).to_pylist() for column in batch.columns]
                    held += map(list, zip(*columns, strict=True))
                    start += len(batch)
        return tuple(names), held


class CsvTable(_ArrowTable):
    """Separated text; its records are copied byte by byte, with their quotes and line ends."""

    format_name = "CSV"
    extensions: ClassVar[tuple[str, ...]] = (".csv",)
    is_text = True
    # what the extension says is between cells, if anything
    separator: ClassVar[str | None] = None

    @classmethod
    def _resolved(cls, source: Source) -> Source:
        head, is_all = source.head()
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UnicodeError("UTF-16")
        separator = source.separator or cls.separator or find_separator(head, is_all)
        return replace(source, separator=separator)

    @staticmethod
    def _names(source: Source) -> list[str]:
        with CsvTable._batches(source, (), _BLOCK_ROWS) as batches:
            names = batches.schema.names
        _check_header(names)
        return names

    @staticmethod
    @contextmanager
    def _batches(
        source: Source, columns: Sequence[str], n_rows: int
    ) -> Iterator[pa.csv.CSVStreamingReader]:
        """The columns as text, in blocks of bytes; all columns where none is named."""
        with (
            source.open() as stream,
            pa.csv.open_csv(
                stream,
                read_options=pa.csv.ReadOptions(block_size=_BLOCK_BYTES),
                parse_options=pa.csv.ParseOptions(
                    delimiter=source.separator, newlines_in_values=True
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=columns, column_types=dict.fromkeys(columns, pa.string())
                ),
            ) as reader,
        ):
            yield reader

    def _write(self, keep: Mask, stream: IO[bytes], record: str | None) -> None:
        with reading(self.source, self.format_name, csv.Error):
            copy_rows(_records(self.source), keep, stream)


class TsvTable(CsvTable):
    """Text separated by tabs."""

    format_name = "TSV"
    extensions = (".tsv", ".tab")
    separator = "\t"


def _check_header(names: Sequence[str]) -> None:
    """Refuse a first line of numbers, unless it counts the columns as pandas does.

    The first sample would be taken for names, and be lost.
    """
    if list(names) == [str(index) for index in range(len(names))]:
        return
    if all(map(_is_number, names)):
        raise ValueError(
            f"The first line holds numbers ({', '.join(names[:3])}, …) where the names of the "
            "columns should be: put a line with names before it."
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _records(source: Source) -> Iterator[tuple[bool, bytes]]:
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
    separator = source.separator or ","
    with io.TextIOWrapper(source.open(), encoding="latin-1", newline="") as text:
        for cells in csv.reader(lines(text), delimiter=separator):
            yield bool(cells) and not in_header, "".join(taken).encode("latin-1")
            in_header &= not cells
            taken.clear()


class ParquetTable(_ArrowTable):
    """A Parquet file; schema, metadata, row groups and compression stay as they are."""

    format_name = "Parquet"
    extensions = (".parquet", ".pq")

    @staticmethod
    def _names(source: Source) -> list[str]:
        return pa.parquet.read_schema(source.file).names

    @staticmethod
    @contextmanager
    def _batches(
        source: Source, columns: Sequence[str], n_rows: int
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        with pa.parquet.ParquetFile(source.file) as file:
            yield file.iter_batches(n_rows, columns=list(columns))

    def _write(self, keep: Mask, stream: IO[bytes], record: str | None) -> None:
        with (
            pa.parquet.ParquetFile(self.source.file) as file,
            pa.parquet.ParquetWriter(
                stream, _schema(file, record), compression=_codecs(file)
            ) as writer,
        ):
            start = 0
            for index in range(file.num_row_groups):
                group = file.read_row_group(index)
                kept = group.filter(pa.array(keep[start : start + len(group)]))
                start += len(group)
                if len(kept):
                    kept = kept.replace_schema_metadata(writer.schema.metadata)
                    writer.write_table(kept, row_group_size=len(kept))


def _schema(file: pa.parquet.ParquetFile, record: str | None) -> pa.Schema:
    """The schema of the file, with the record among its metadata."""
    schema = file.schema_arrow
    if record is None:
        return schema
    return schema.with_metadata({**(schema.metadata or {}), b"safesift": record.encode()})


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
