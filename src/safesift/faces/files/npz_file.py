"""NumPy archives with a matrix X and a target y."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

import numpy as np
from numpy.lib import format as npy

from safesift.faces.files.base import Columns, Mask, Table, refuse_names
from safesift.faces.files.roles import find_name
from safesift.faces.files.streams import reading


class NpzTable(Table):
    """An .npz file; every array with one entry per sample is cut, the others are copied."""

    format_name = "npz"
    extensions = (".npz",)

    @classmethod
    def read(cls, path: Path, columns: Columns) -> Self:
        refuse_names(columns, cls.format_name, "features", "ignore")
        with reading(path, cls.format_name), zipfile.ZipFile(path):
            pass  # np.load would take a file that is not an archive for a pickle
        with np.load(path) as arrays:
            wanted = ("X", columns.target or "y", columns.upper, columns.weights)
            names = [name for name in wanted if name]
            found = [_load(arrays, find_name(name, arrays.files, "array")) for name in names]
        n_rows = {array.shape[:1] for array in found}
        if len(n_rows) > 1 or n_rows == {()}:
            shapes = ", ".join(
                f"{name} {array.shape}" for name, array in zip(names, found, strict=True)
            )
            raise ValueError(f"{path}: the arrays must have one entry per sample, got {shapes}.")
        X, y, *others = found
        if columns.upper:
            y = np.column_stack([y, others.pop(0)])
        elif columns.kind == "interval" and y.ndim == 1:
            raise ValueError(
                f"--upper is missing: name the array of upper ends, or let {names[1]!r} have two "
                "columns."
            )
        return cls(path, X, y, *others)

    @classmethod
    def blocks(
        cls, path: Path, names: tuple[str, ...], n_features: int, n_rows: int
    ) -> Iterator[np.ndarray]:
        with reading(path, cls.format_name, ValueError), zipfile.ZipFile(path) as archive:
            member = find_name("X.npy", archive.namelist(), "member")
            with archive.open(member) as stream:
                shape, in_columns, dtype = _read_header(stream)
                if in_columns or dtype.hasobject or len(shape) != 2:
                    raise ValueError("X must be a matrix of numbers, stored row by row")
                row_bytes = shape[1] * dtype.itemsize
                for start in range(0, shape[0], n_rows):
                    size = min(n_rows, shape[0] - start) * row_bytes
                    yield np.frombuffer(stream.read(size), dtype).reshape(-1, shape[1])

    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        with (
            np.load(self.path) as arrays,
            zipfile.ZipFile(stream, "w", _compression(self.path)) as archive,
        ):
            for name in arrays.files:
                array = _load(arrays, name)
                if array.shape[:1] == (self.n_rows,):
                    array = array[keep]
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, array, allow_pickle=False)


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether it is stored column by column, and type of an array to come."""
    if npy.read_magic(stream) == (1, 0):
        return npy.read_array_header_1_0(stream)
    return npy.read_array_header_2_0(stream)


def _load(arrays: np.lib.npyio.NpzFile, name: str) -> np.ndarray:
    try:
        array = arrays[name]
    except ValueError as error:
        raise ValueError(f"The array {name!r} cannot be read: {error}") from None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"The member {name!r} of the archive is not an array.")
    return array


def _compression(path: Path) -> int:
    with zipfile.ZipFile(path) as archive:
        return archive.infolist()[0].compress_type
