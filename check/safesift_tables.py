"""The columns of CSV and Parquet files, for safesift_check: which cells are which numbers.

A cell is a number as Python reads it (decimals are rounded to the nearest double: that double is
the datum). What is no number is missing; integers from 2⁵³ on are infinite, and so refused. Labels
and categories are numbers by their value (1, 1.0 and true are one) or texts; a missing one is the
empty text. Which columns are read is said by the statement.
"""

import csv
import itertools
import math
from pathlib import Path

import numpy as np

from safesift_check import readable


def number(cell):
    """The double that a cell stands for; NaN if it is no number, as where it is empty.

    Infinite are integers that would be rounded; what only Python takes for a number is none.
    """
    if isinstance(cell, int) and abs(cell) >= 2**53:
        return math.inf
    if cell is None or (isinstance(cell, str) and ("_" in cell or not cell.isascii())):
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        return math.nan
    whole = isinstance(cell, str) and cell.strip().lstrip("+-").isdigit()
    return math.inf if whole and abs(value) >= 2**53 else value


def label(cell):
    """A number by its value, a text, or an integer that is too large to be a double."""
    try:
        value = number(cell)
    except TypeError:  # a date, say
        value = math.nan
    if abs(value) < 2**53:
        return value + 0.0
    return "" if cell is None else cell if isinstance(cell, int) else str(cell)


def key(cell):
    """A label as text: numbers in one way of writing, as tables and arrays differ in that."""
    return str(label(cell))


def end(cell, empty):
    """A number, or what an empty cell stands for."""
    return empty if cell in ("", None) else number(cell)


class TableFile:
    """CSV or Parquet, with the columns that the statement names."""

    def __init__(self, path, features):
        self.path, self.features = Path(path), features
        readable(self.path.suffix in (".csv", ".parquet"), "the proof is about a table")
        known = [feature.keys() == {"column", "equals"} for feature in features]
        readable(known, "a feature is a column, or whether it equals something")

    def tables(self, names, n_rows):
        """Blocks of rows as {name: cells}; a name that is there twice means nothing."""
        if self.path.suffix == ".parquet":
            from pyarrow.parquet import ParquetFile

            file = ParquetFile(self.path)
            self.once(names, file.schema_arrow.names)
            yield from (block.to_pydict() for block in file.iter_batches(n_rows, columns=names))
            return
        with open(self.path, newline="", encoding="utf-8-sig") as stream:
            rows = csv.reader(stream, strict=True)
            head = next(rows)
            self.once(names, head)
            while block := list(itertools.islice(rows, n_rows)):
                readable([len(row) == len(head) for row in block], "a row is too long or too short")
                yield dict(zip(head, zip(*block, strict=True), strict=True))

    def once(self, names, head):
        for name in names:
            readable(head.count(name) == 1, f"{name!r} is there {head.count(name)} times")

    def column(self, name, empty=None):
        """Labels; or doubles, where it is said what an empty cell stands for."""
        cells = [cell for block in self.tables([name], 2**14) for cell in block[name]]
        if empty is not None:
            return np.array([end(cell, empty) for cell in cells], dtype=np.float64)
        return np.array([*map(label, cells), None], dtype=object)[:-1]

    def batches(self, n_rows, p):
        """Blocks of rows: the numbers of columns, and the entries in these."""
        names = list(dict.fromkeys(feature["column"] for feature in self.features))
        for table in self.tables(names, n_rows):
            out = np.empty((len(table[names[0]]), p))
            for j, feature in enumerate(self.features):
                cells, wanted = table[feature["column"]], feature["equals"]
                cells = (
                    cells if wanted is None else [label(cell) == label(wanted) for cell in cells]
                )
                out[:, j] = [number(cell) for cell in cells]
            yield np.arange(p), out
