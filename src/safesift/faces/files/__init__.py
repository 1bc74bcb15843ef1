"""Files of samples: read a matrix and a target, write some of the rows again, unchanged.

To add a format, subclass `Table` and put it into `_TABLES`.
"""

from __future__ import annotations

from pathlib import Path

from safesift.faces.files.base import Columns, Table
from safesift.faces.files.csv_file import CsvTable
from safesift.faces.files.npz_file import NpzTable
from safesift.faces.files.parquet_file import ParquetTable
from safesift.faces.files.streams import COMPRESSIONS
from safesift.faces.files.svmlight_file import SvmlightTable

__all__ = ["FORMATS", "Columns", "Table", "format_of", "read"]

_TABLES: tuple[type[Table], ...] = (CsvTable, ParquetTable, NpzTable, SvmlightTable)

FORMATS: dict[str, type[Table]] = {
    extension + compression: table
    for table in _TABLES
    for extension in table.extensions
    for compression in ("", *(COMPRESSIONS if table.compressible else ()))
}


def format_of(path: Path) -> type[Table]:
    """The format that the extension of a file stands for."""
    name = path.name.lower()
    for extension, table in FORMATS.items():
        if name.endswith(extension):
            return table
    raise ValueError(f"{path}: unknown kind of file, use one of {', '.join(FORMATS)}.")


def read(path: Path, columns: Columns) -> Table:
    """Read a file of samples in the format of its extension."""
    table = format_of(path).read(path, columns)
    if table.n_rows == 0:
        raise ValueError(f"{path} holds no rows.")
    return table
