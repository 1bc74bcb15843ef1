"""Formats that hold the matrix as it is, without names of columns: NumPy archives and svmlight."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from safesift.faces.files.streams import Mask, copy_rows, open_read, reading
from safesift.faces.files.table import Columns, Table, find_name, refuse_names


class NpzTable(Table):
    """An .npz file; every array with one entry per sample is cut, the others are copied."""

    format_name = "npz"
    extensions = (".npz",)

    @classmethod
    def read(cls, path: Path, columns: Columns) -> Self:
        refuse_names(columns, cls.format_name, "features", "ignore")
        names = ["X", columns.target or "y", *filter(None, (columns.upper, columns.weights))]
        X, y, *others = _load_all(path, names)
        if columns.upper:
            y = np.column_stack([y, others.pop(0)])
        elif columns.kind == "interval" and y.ndim == 1:
            raise ValueError(
                f"--upper is missing: name the array of upper ends, or let {names[1]!r} have two "
                "columns."
            )
        return cls(path, X, y, *others)

    @classmethod
    def holds_targets(cls, path: Path) -> bool:
        with reading(path, cls.format_name), zipfile.ZipFile(path) as archive:
            return "y.npy" in archive.namelist()

    @classmethod
    def blocks(
        cls,
        path: Path,
        names: tuple[str, ...],
        n_features: int,
        n_bytes: int,
        target: str | None = None,
    ) -> Iterator[Any]:
        target = target or ("y" if cls.holds_targets(path) else None)
        with reading(path, cls.format_name, ValueError), zipfile.ZipFile(path) as archive:
            X = _Member(archive, "X", "a matrix of numbers", 2)
            n_rows = max(n_bytes // max(X.row_bytes, 1), 1)
            if target is None:
                yield from X.parts(n_rows)
                return
            y = _Member(archive, target, "one target per row", 1)
            if len(y) != len(X):
                raise ValueError(f"X has {len(X)} rows but {target} has {len(y)} entries")
            yield from zip(X.parts(n_rows), y.parts(n_rows), strict=True)

    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        with zipfile.ZipFile(self.path) as archive:
            compression = archive.infolist()[0].compress_type
        with (
            np.load(self.path) as arrays,
            zipfile.ZipFile(stream, "w", compression) as archive,
        ):
            for name in arrays.files:
                array = _load(arrays, name)
                if array.shape[:1] == (self.n_rows,):
                    array = array[keep]
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, array, allow_pickle=False)


def _load_all(path: Path, names: list[str]) -> list[NDArray]:
    """These arrays of an archive, which must have one entry per sample."""
    with reading(path, NpzTable.format_name), zipfile.ZipFile(path):
        pass  # np.load would take a file that is not an archive for a pickle
    with np.load(path) as arrays:
        found = [_load(arrays, find_name(name, arrays.files, "array")) for name in names]
    n_rows = {array.shape[:1] for array in found}
    if len(n_rows) > 1 or n_rows == {()}:
        shapes = ", ".join(
            f"{name} {array.shape}" for name, array in zip(names, found, strict=True)
        )
        raise ValueError(f"{path}: the arrays must have one entry per sample, got {shapes}.")
    return found


def _load(arrays: np.lib.npyio.NpzFile, name: str) -> NDArray:
    try:
        array = arrays[name]
    except ValueError as error:
        raise ValueError(f"The array {name!r} cannot be read: {error}") from None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"The member {name!r} of the archive is not an array.")
    return array


class _Member:
    """An array of an archive, of which some rows are read at a time."""

    def __init__(self, archive: zipfile.ZipFile, name: str, what: str, n_dimensions: int) -> None:
        self._stream = archive.open(find_name(f"{name}.npy", archive.namelist(), "member"))
        self._shape, in_columns, self._dtype = _read_header(self._stream)
        if in_columns or self._dtype.hasobject or len(self._shape) != n_dimensions:
            raise ValueError(f"{name} must be {what}, stored row by row")

    def __len__(self) -> int:
        return self._shape[0]

    @property
    def row_bytes(self) -> int:
        return self._dtype.itemsize * math.prod(self._shape[1:])

    def parts(self, n_rows: int) -> Iterator[NDArray]:
        """So many rows after each other."""
        with self._stream:
            for start in range(0, len(self), n_rows):
                raw = self._stream.read(min(n_rows, len(self) - start) * self.row_bytes)
                yield np.frombuffer(raw, self._dtype).reshape(-1, *self._shape[1:])


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether it is stored column by column, and type of an array to come."""
    if npy.read_magic(stream) == (1, 0):
        return npy.read_array_header_1_0(stream)
    return npy.read_array_header_2_0(stream)


# an entry of the column 0, before any comment
_FIRST_COLUMN = re.compile(rb"^[^#]*\s0+:")


class SvmlightTable(Table):
    """An svmlight or libsvm file: a target and index:value pairs on every line.

    Lines are copied byte by byte, comments between samples stay.
    """

    format_name = "svmlight"
    extensions = (".svm", ".svmlight", ".libsvm", ".txt")
    compressible = True

    @classmethod
    def read(cls, path: Path, columns: Columns) -> Self:
        if columns.kind == "interval":
            raise ValueError(
                "An interval has two ends, and svmlight files hold one target per row: use CSV, "
                "Parquet or npz."
            )
        refuse_names(columns, cls.format_name, "target", "upper", "features", "ignore", "weights")
        with reading(path, cls.format_name, ValueError), open_read(path) as stream:
            return cls(path, *_parse(stream))

    @classmethod
    def holds_targets(cls, path: Path) -> bool:
        return True

    @classmethod
    def blocks(
        cls,
        path: Path,
        names: tuple[str, ...],
        n_features: int,
        n_bytes: int,
        target: str | None = None,
    ) -> Iterator[Any]:
        if target is not None:
            raise ValueError(f"There is no column {target!r}: {cls.format_name} files name none.")
        with reading(path, cls.format_name, ValueError):
            # whether columns are counted from 0 is a question to the whole file
            with open_read(path) as lines:
                from_zero = any(_FIRST_COLUMN.search(line) for line in lines)
            with open_read(path) as lines:
                while part := lines.readlines(n_bytes):
                    text = io.BytesIO(b"".join(part))
                    yield _parse(text, n_features=n_features, zero_based=from_zero)

    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        with open_read(self.path) as lines:
            copy_rows(((_is_sample(line), line) for line in lines), keep, stream)


def _parse(stream: IO[bytes], **options: Any) -> tuple[Any, NDArray]:
    """The matrix and the target of lines of text."""
    # slow to import, and no other format needs it
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(stream, **options)


def _is_sample(line: bytes) -> bool:
    return bool(line.partition(b"#")[0].strip())
