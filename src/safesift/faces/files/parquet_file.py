"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from safesift.faces.files.base import Columns, Mask, Table
from safesift.faces.files.roles import assign, chosen
from safesift.faces.files.samples import collect, features
from safesift.faces.files.streams import reading


class ParquetTable(Table):
    """A Parquet file; schema, metadata, row groups and compression stay as they are."""

    format_name = "Parquet"
    extensions = (".parquet", ".pq")

    @classmethod
    def read(cls, path: Path, columns: Columns) -> Self:
        with reading(path, cls.format_name, pa.ArrowException), parquet.ParquetFile(path) as file:
            roles = assign(file.schema_arrow.names, columns)
            batches = file.iter_batches(columns=list(roles.used))
            return cls(path, *collect(batches, roles, columns.kind))

    @classmethod
    def blocks(
        cls, path: Path, names: tuple[str, ...], n_features: int, n_rows: int
    ) -> Iterator[NDArray]:
        with reading(path, cls.format_name, pa.ArrowException), parquet.ParquetFile(path) as file:
            columns = chosen(file.schema_arrow.names, names, n_features)
            yield from features(file.iter_batches(n_rows, columns=columns), columns)

    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        with (
            parquet.ParquetFile(self.path) as file,
            parquet.ParquetWriter(stream, file.schema_arrow, compression=_codecs(file)) as writer,
        ):
            start = 0
            for index in range(file.num_row_groups):
                group = file.read_row_group(index)
                kept = group.filter(pa.array(keep[start : start + len(group)]))
                start += len(group)
                if len(kept):
                    writer.write_table(kept, row_group_size=len(kept))


def _codecs(file: parquet.ParquetFile) -> dict[str, str] | str:
    """The compression of every column, as the first row group has it."""
    if file.num_row_groups == 0:
        return "snappy"
    group = file.metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    return {
        column.path_in_schema: column.compression.replace("UNCOMPRESSED", "NONE")
        for column in columns
    }
