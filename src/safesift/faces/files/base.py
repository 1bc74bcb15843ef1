"""What a file of samples is, whatever its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from safesift.faces.files.streams import replacing

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Columns:
    """Which columns play which part.

    Attributes
    ----------
    target : str or None
        The column to predict, or of lower ends; None where the format implies it.
    upper : str or None
        The column of upper ends.
    features : tuple of str
        The columns to predict from; empty for all that play no other part.
    ignore : tuple of str
        Columns that are not features.
    weights : str or None
        The column of sample weights.
    kind : {"classification", "regression", "interval"}
        What the target must hold: any two labels, numbers, or the ends of intervals.
    """

    target: str | None = None
    upper: str | None = None
    features: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    weights: str | None = None
    kind: Literal["classification", "regression", "interval"] = "classification"


@dataclass(frozen=True, eq=False)
class Table(ABC):
    """A file of samples: what the library needs of it, and a way to write some of its rows.

    Attributes
    ----------
    path : Path
    X : array or CSR matrix of shape (n_rows, n_features)
    y : array of shape (n_rows,) or (n_rows, 2)
    weights : array of shape (n_rows,) or None
    """

    path: Path
    X: Any
    y: NDArray
    weights: NDArray | None = None

    format_name: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]
    # whether files of the format may be compressed as a whole
    compressible: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def read(cls, path: Path, columns: Columns) -> Self:
        """Read a file; ValueError says in one sentence what is wrong with it."""

    @classmethod
    @abstractmethod
    def blocks(
        cls, path: Path, names: tuple[str, ...], n_features: int, n_rows: int
    ) -> Iterator[Any]:
        """The features alone, some rows at a time: never the whole file in memory.

        Parameters
        ----------
        names : tuple of str
            The columns to read, where the format has names; all of them where none is given.
        n_features : int
            How many there are, where the format does not say.
        n_rows : int
            About how many rows at a time.
        """

    @abstractmethod
    def _write(self, keep: Mask, stream: IO[bytes]) -> None:
        """Write the rows where `keep` is True."""

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return len(self.y)

    def write_rows(self, keep: Mask, path: Path) -> None:
        """Write the rows where `keep` is True, in order and unchanged, to a file of this format.

        The rows come from the file itself, with everything in them that is not a feature.
        """
        if len(keep) != self.n_rows:
            raise ValueError(f"keep has {len(keep)} entries but the table has {self.n_rows} rows.")
        with replacing(path) as stream:
            self._write(keep, stream)


def refuse_names(columns: Columns, format_name: str, *options: str) -> None:
    """Refuse the parts that a format without column names cannot have."""
    for option in options:
        if getattr(columns, option):
            raise ValueError(f"--{option} names a column, and {format_name} files have no columns.")
