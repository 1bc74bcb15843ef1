"""The text format of svmlight and libsvm: a target and index:value pairs on every line."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Self

from safesift.files.base import Columns, Mask, Table, refuse_names
from safesift.files.streams import copy_rows, open_read, reading


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

    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        with open_read(self.path) as lines:
            copy_rows(((_is_sample(line), line) for line in lines), keep, stream)


def _is_sample(line: bytes) -> bool:
    return bool(line.partition(b"#")[0].strip())
