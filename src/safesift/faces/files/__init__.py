"""Files of samples: read a matrix and a target, write some of the rows again, unchanged.

To add a format, subclass `Table` and put it into `_TABLES`.
"""

from __future__ import annotations

from pathlib import Path

from safesift.faces.files.arrow_files import CsvTable, ParquetTable, TsvTable
from safesift.faces.files.matrix_files import NpzTable, SvmlightTable
from safesift.faces.files.sniffing import find_separator, is_svmlight
from safesift.faces.files.streams import COMPRESSIONS, PIPE, Source, check_output, reading
from safesift.faces.files.table import TEXT, Columns, Samples, Table

__all__ = [
    "FORMATS", "PIPE", "TEXT", "Columns", "Samples", "Source", "Table", "check_paths", "format_of",
    "read",
]  # fmt: skip

_TABLES: tuple[type[Table], ...] = (CsvTable, TsvTable, ParquetTable, NpzTable, SvmlightTable)

FORMATS: dict[str, type[Table]] = {
    extension + compression: table
    for table in _TABLES
    for extension in table.extensions
    for compression in ("", *(COMPRESSIONS if table.is_text else ()))
}
# text of some kind: its content says which
_ANY_TEXT = (".txt", ".data", ".dat")
# how files begin that are no text
_BEGINNINGS: dict[bytes, type[Table]] = {b"PAR1": ParquetTable, b"PK\x03\x04": NpzTable}


def format_of(source: Source | Path) -> type[Table]:
    """The format that the extension of a file stands for; that of text is in its content."""
    source = Source(source) if isinstance(source, Path) else source
    if source.path is not None and _base(source.path) not in _ANY_TEXT:
        return _by_extension(source.path)
    with reading(source, "text"):
        return _found_out(source)


def _by_extension(path: Path) -> type[Table]:
    for extension, table in FORMATS.items():
        if path.name.lower().endswith(extension):
            return table
    known = ", ".join([*FORMATS, *_ANY_TEXT])
    raise ValueError(f"{path}: unknown kind of file, use one of {known}.")


def _found_out(source: Source) -> type[Table]:
    """The format of what is text, or should be."""
    head, is_all = source.head()
    for sign, table in _BEGINNINGS.items():
        if head.startswith(sign):
            raise ValueError(_not_text(source, table))
    if source.separator is None and is_svmlight(head, is_all):
        return SvmlightTable
    return TsvTable if (source.separator or find_separator(head, is_all)) == "\t" else CsvTable


def _not_text(source: Source, table: type[Table]) -> str:
    if source.path is None:
        return (
            f"A pipe cannot hold {table.format_name}, which is not read from its beginning to its "
            "end: give the name of a file."
        )
    return f"{source} is a {table.format_name} file: give it the extension {table.extensions[0]}."


def _base(path: Path) -> str:
    """The extension, without that of a compression."""
    path = Path(path.name.lower())
    return path.with_suffix("").suffix if path.suffix in COMPRESSIONS else path.suffix


def read(source: Source | Path, columns: Columns) -> Table:
    """Read a file of samples in its format: see `format_of`."""
    source = Source(source) if isinstance(source, Path) else source
    table = format_of(source).read(source, columns)
    if table.n_rows == 0:
        raise ValueError(f"{source} holds no rows.")
    return table


def check_paths(source: Source, output: str | None, overwrite: bool) -> None:
    """Refuse, in one sentence, what would fail later or would destroy something.

    Parameters
    ----------
    source : Source
        What to read. A file is never overwritten, by whatever name it goes.
    output : str or None
        The file to write, in the format of `source`; `-` is standard output.
    overwrite : bool
        Whether the output may exist already.
    """
    if source.path is not None:
        _check_file(source.path)
    table = format_of(source)
    if source.separator is not None and not issubclass(table, CsvTable):
        raise ValueError(f"--sep is for separated text, and {source} is {table.format_name}.")
    if output == PIPE:
        if not table.is_text:
            raise ValueError(
                f"{table.format_name} cannot be written to a pipe: name a file with --output."
            )
    elif output is not None:
        _check_extension(source, Path(output), table)
        check_output(Path(output), source, overwrite)


def _check_file(path: Path) -> None:
    if not path.exists():
        raise ValueError(f"{path}: there is no such file.")
    if not path.is_file():
        raise ValueError(f"{path} is not a file.")


def _check_extension(source: Source, output: Path, table: type[Table]) -> None:
    """Refuse a name that stands for another format than the rows will have."""
    allowed = [*table.extensions, *(_ANY_TEXT if table.is_text else ())]
    if source.path is not None:
        allowed.append(_base(source.path))
    if _base(output) not in (*FORMATS, *_ANY_TEXT):
        known = ", ".join(dict.fromkeys(allowed))
        raise ValueError(f"{output}: unknown kind of file, use one of {known}.")
    if _base(output) not in allowed:
        raise ValueError(
            f"The output is written in the format of the input, {table.format_name}: "
            f"give {output.name} one of the extensions {', '.join(table.extensions)}."
        )
