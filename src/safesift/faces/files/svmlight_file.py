"""The text format of svmlight and libsvm: a target and index:value pairs on every line."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

from safesift.faces.files.base import Columns, Mask, Table, refuse_names
from safesift.faces.files.streams import copy_rows, open_read, reading

# an entry of the column 0, before any comment
_FIRST_COLUMN = re.compile(rb"^[^#]*\s0+:")


class SvmlightTable(Table):
    """An svmlight file; lines are copied byte by byte, comments between samples stay."""

    format_name = "svmlight"
    extensions = (".svm", ".svmlight", ".libsvm", ".txt")
    compressible = True

    @classmethod
    def read(cls, path: Path, columns: Columns) -> Self:
        # slow to import, and no other format needs it
        from sklearn.datasets import load_svmlight_file

        if columns.kind == "interval":
            raise ValueError(
                "An interval has two ends, and svmlight files hold one target per row: use CSV, "
                "Parquet or npz."
            )
        refuse_names(columns, cls.format_name, "target", "upper", "features", "ignore", "weights")
        with reading(path, cls.format_name, ValueError), open_read(path) as stream:
            X, y = load_svmlight_file(stream)
        return cls(path, X, y)

    @classmethod
    def blocks(
        cls, path: Path, names: tuple[str, ...], n_features: int, n_rows: int
    ) -> Iterator[Any]:
        from sklearn.datasets import load_svmlight_file

        with reading(path, cls.format_name, ValueError):
            # whether columns are counted from 0 is a question to the whole file
            with open_read(path) as lines:
                from_zero = any(_FIRST_COLUMN.search(line) for line in lines)
            with open_read(path) as lines:
                while part := list(itertools.islice(lines, n_rows)):
                    X, _ = load_svmlight_file(
                        io.BytesIO(b"".join(part)), n_features=n_features, zero_based=from_zero
                    )
                    yield X

    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        with open_read(self.path) as lines:
            copy_rows(((_is_sample(line), line) for line in lines), keep, stream)


def _is_sample(line: bytes) -> bool:
    return bool(line.partition(b"#")[0].strip())
