"""Comma-separated values with a header."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from safesift.faces.files.base import Columns, Mask, Table
from safesift.faces.files.roles import assign, chosen
from safesift.faces.files.samples import collect, features
from safesift.faces.files.streams import copy_rows, open_read, reading

_BLOCK_BYTES = 2**23


class CsvTable(Table):
    """A CSV file; its records are copied byte by byte, with their quotes and line ends."""

    format_name = "CSV"
    extensions = (".csv",)
    compressible = True

    @classmethod
    def read(cls, path: Path, columns: Columns) -> Self:
        with reading(path, cls.format_name, pa.ArrowException):
            roles = assign(_header(path), columns)
            with _batches(path, roles.used) as batches:
                return cls(path, *collect(batches, roles, columns.kind))

    @classmethod
    def blocks(
        cls, path: Path, names: tuple[str, ...], n_features: int, n_rows: int
    ) -> Iterator[NDArray]:
        with reading(path, cls.format_name, pa.ArrowException):
            columns = chosen(_header(path), names, n_features)
            with _batches(path, columns) as batches:
                yield from features(batches, columns)

    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        with reading(self.path, self.format_name, csv.Error):
            copy_rows(_records(self.path), keep, stream)


@contextmanager
def _batches(path: Path, columns: Sequence[str]) -> Iterator[arrow_csv.CSVStreamingReader]:
    """The columns as text, block by block; all columns where none is named."""
    with (
        open_read(path) as stream,
        arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=columns, column_types=dict.fromkeys(columns, pa.string())
            ),
        ) as reader,
    ):
        yield reader


def _header(path: Path) -> list[str]:
    with _batches(path, ()) as batches:
        return batches.schema.names


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
