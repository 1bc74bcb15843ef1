"""Formats that hold the matrix as it is, without names of columns: NumPy archives and svmlight."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from safesift.faces.files.streams import Mask, Source, copy_rows, reading
from safesift.faces.files.table import Columns, Samples, Table, find_name, refuse_names

# under this name an archive says what the columns of X are called
_NAMES = "feature_names"
# and under this one what was done to its rows
_RECORD = "safesift"


class NpzTable(Table):
    """An .npz file; every array with one entry per sample is cut, the others are copied."""

    format_name = "npz"
    extensions = (".npz",)

    @classmethod
    def read(cls, source: Source, columns: Columns) -> Self:
        refuse_names(columns, cls.format_name, "features", "ignore", "one_hot")
        columns = replace(columns, target=columns.target or "y")
        arrays = _load_all(source, [*filter(None, ("X", *columns.used))])
        X, y = _matrix(arrays["X"]), arrays[str(columns.target)]
        if columns.upper:
            y = np.column_stack([y, arrays[columns.upper]])
        elif columns.kind == "interval" and y.ndim == 1:
            raise ValueError(
                f"--upper is missing: name the array of upper ends, or let {columns.target!r} have "
                "two columns."
            )
        samples = Samples(
            X,
            y,
            weights=arrays[columns.weights] if columns.weights else None,
            names=_feature_names(source, X),
            ids=arrays[columns.id].tolist() if columns.id else None,
        )
        return cls(source, columns, samples)

    @classmethod
    def holds_targets(cls, path: Path) -> bool:
        with reading(Source(path), cls.format_name), zipfile.ZipFile(path) as archive:
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
        source = Source(path)
        target = target or ("y" if cls.holds_targets(path) else None)
        with reading(source, cls.format_name, ValueError), zipfile.ZipFile(path) as archive:
            X = _Member(archive, "X", "a matrix of numbers", 2)
            n_rows = max(n_bytes // max(X.row_bytes, 1), 1)
            if target is None:
                yield from X.parts(n_rows)
                return
            y = _Member(archive, target, "one target per row", 1)
            if len(y) != len(X):
                raise ValueError(f"X has {len(X)} rows but {target} has {len(y)} entries")
            yield from zip(X.parts(n_rows), y.parts(n_rows), strict=True)

    def _write(self, keep: Mask, stream: IO[bytes], record: str | None) -> None:
        with zipfile.ZipFile(self.source.file) as archive:
            compression = archive.infolist()[0].compress_type
        with (
            np.load(self.source.file) as arrays,
            zipfile.ZipFile(stream, "w", compression) as archive,
        ):
            for name in arrays.files:
                array = _load(arrays, name)
                if array.shape[:1] == (self.n_rows,):
                    array = array[keep]
                if name != _RECORD:
                    _store(archive, name, array)
            if record is not None:
                _store(archive, _RECORD, np.array(record))


def _store(archive: zipfile.ZipFile, name: str, array: NDArray) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        npy.write_array(member, array, allow_pickle=False)


def _load_all(source: Source, names: list[str]) -> dict[str, NDArray]:
    """These arrays of an archive, which must have one entry per sample."""
    with reading(source, NpzTable.format_name), zipfile.ZipFile(source.file):
        pass  # np.load would take a file that is not an archive for a pickle
    with np.load(source.file) as arrays:
        found = {name: _load(arrays, find_name(name, arrays.files, "array")) for name in names}
    n_rows = {array.shape[:1] for array in found.values()}
    if len(n_rows) > 1 or n_rows == {()}:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in found.items())
        raise ValueError(f"{source}: the arrays must have one entry per sample, got {shapes}.")
    return found


def _matrix(X: NDArray) -> NDArray:
    if X.ndim != 2:
        raise ValueError(
            f"The array X must be a matrix with a row for each sample, got shape {X.shape}."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"The array X holds {X.dtype}, not numbers.")
    return X


def _feature_names(source: Source, X: NDArray) -> tuple[str, ...] | None:
    """What the archive calls the columns of X, where it says so."""
    with np.load(source.file) as arrays:
        names = _load(arrays, _NAMES) if _NAMES in arrays.files else None
    if names is None or names.shape != X.shape[1:]:
        return None
    return tuple(map(str, names.tolist()))


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
    extensions = (".svm", ".svmlight", ".libsvm")
    is_text = True

    @classmethod
    def read(cls, source: Source, columns: Columns) -> Self:
        if columns.kind == "interval":
            raise ValueError(
                "An interval has two ends, and svmlight files hold one target per row: use CSV, "
                "Parquet or npz."
            )
        refuse_names(
            columns, cls.format_name,
            "target", "upper", "features", "ignore", "weights", "id", "one_hot",
        )  # fmt: skip
        with reading(source, cls.format_name, ValueError), source.open() as stream:
            return cls(source, columns, Samples(*_parse(stream)))

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
        source = Source(path)
        with reading(source, cls.format_name, ValueError):
            # whether columns are counted from 0 is a question to the whole file
            with source.open() as lines:
                from_zero = any(_FIRST_COLUMN.search(line) for line in lines)
            with source.open() as lines:
                while part := lines.readlines(n_bytes):
                    text = io.BytesIO(b"".join(part))
                    yield _parse(text, n_features=n_features, zero_based=from_zero)

    def _write(self, keep: Mask, stream: IO[bytes], record: str | None) -> None:
        with self.source.open() as lines:
            copy_rows(((_is_sample(line), line) for line in lines), keep, stream)


def _parse(stream: IO[bytes], **options: Any) -> tuple[Any, NDArray]:
    """The matrix and the target of lines of text."""
    # slow to import, and no other format needs it
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(stream, **options)


def _is_sample(line: bytes) -> bool:
    return bool(line.partition(b"#")[0].strip())
