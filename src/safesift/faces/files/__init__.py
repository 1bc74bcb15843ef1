"""Files of samples: read a matrix and a target, write some of the rows again, unchanged.

To add a format, subclass `Table` and put it into `_TABLES`.
"""

from __future__ import annotations

from pathlib import Path

from safesift.faces.files.arrow_files import CsvTable, ParquetTable
from safesift.faces.files.matrix_files import NpzTable, SvmlightTable
from safesift.faces.files.streams import COMPRESSIONS, check_output
from safesift.faces.files.table import Columns, Table

__all__ = ["FORMATS", "Columns", "Table", "check_paths", "format_of", "read"]

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


def check_paths(source: Path, output: Path, overwrite: bool) -> None:
    """Refuse, in one sentence, what would fail later or would destroy something.

    Parameters
    ----------
    source : Path
        The file to read. It is never overwritten, by whatever name it goes.
    output : Path
        The file to write, in the format of `source`.
    overwrite : bool
        Whether the output may exist already.
    """
    if not source.exists():
        raise ValueError(f"{source}: there is no such file.")
    if not source.is_file():
        raise ValueError(f"{source} is not a file.")
    table = format_of(source)
    if format_of(output) is not table:
        raise ValueError(
            f"The output is written in the format of the input, {table.format_name}: "
            f"give {output.name} one of the extensions {', '.join(table.extensions)}."
        )
    check_output(output, source, overwrite)
