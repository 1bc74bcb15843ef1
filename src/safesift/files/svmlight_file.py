"""The text format of svmlight and libsvm: a target and index:value pairs on every line."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, Self

from sklearn.datasets import load_svmlight_file

from safesift.files.base import Columns, Mask, Table, refuse_names
from safesift.files.streams import open_read, reading


class SvmlightTable(Table):
    """An svmlight file; lines are copied byte by byte, comments between samples stay."""

    format_name = "svmlight"
    extensions = (".svm", ".svmlight", ".libsvm", ".txt")
    compressible = True

    @classmethod
    def read(cls, path: Path, columns: Columns) -> Self:
        refuse_names(columns, cls.format_name, "target", "features", "ignore", "weights")
        with reading(path, cls.format_name, ValueError), open_read(path) as stream:
            X, y = load_svmlight_file(stream)
        return cls(path, X, y)

    def _write(self, keep: Mask, stream: BinaryIO) -> None:
        copied = iter(keep.tolist())
        with open_read(self.path) as lines:
            for line in lines:
                is_sample = bool(line.partition(b"#")[0].strip())
                if not is_sample or next(copied):
                    stream.write(line)
