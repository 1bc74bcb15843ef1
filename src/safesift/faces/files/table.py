"""What a file of samples is, whatever its format, and which of its columns plays which part."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, Self

from numpy.typing import NDArray

from safesift.faces.files.streams import Mask, replacing


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

    @property
    def used(self) -> tuple[str, ...]:
        """The columns to read, once each."""
        return (*self.features, *filter(None, (self.target, self.upper, self.weights)))


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
    def holds_targets(cls, path: Path) -> bool:
        """Whether a file holds targets that need not be named."""
        return False

    @classmethod
    @abstractmethod
    def blocks(
        cls,
        path: Path,
        names: tuple[str, ...],
        n_features: int,
        n_bytes: int,
        target: str | None = None,
    ) -> Iterator[Any]:
        """The features, or pairs of features and targets, some rows at a time.

        The whole file is never in memory. There are targets where they are named, or need not be.

        Parameters
        ----------
        names : tuple of str
            The columns to read, where the format has names; all of them where none is given.
        n_features : int
            How many there are, where the format does not say.
        n_bytes : int
            About how much at a time.
        target : str, optional
            The column, or array, of targets.
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


def find_name(name: str, names: Sequence[str], what: str = "column") -> str:
    """The name if there is exactly one such column, else one sentence with the nearest one."""
    if names.count(name) == 1:
        return name
    if name in names:
        raise ValueError(f"There are {names.count(name)} {what}s named {name!r}: rename them.")
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        raise ValueError(f"There is no {what} {name!r}: did you mean {near[0]!r}?")
    raise ValueError(f"There is no {what} {name!r}: there are {_listed(names)}.")


def find_columns(columns: Columns, names: Sequence[str]) -> Columns:
    """The same with the features spelled out, or one sentence that says what cannot be."""
    if not columns.target:
        raise ValueError(f"--target is missing: name the column to predict, of {_listed(names)}.")
    if columns.features and columns.ignore:
        raise ValueError("Give --features or --ignore, not both.")
    if columns.kind == "interval" and not columns.upper:
        raise ValueError(
            "--upper is missing: name the column of upper ends; --target holds the lower ones."
        )
    given = {part: getattr(columns, part) for part in ("target", "upper", "weights")}
    taken = {part: find_name(name, names) for part, name in given.items() if name}
    _check_one_part_each(taken, columns.features)
    others = {*taken.values(), *(find_name(name, names) for name in columns.ignore)}
    features = columns.features or [name for name in names if name not in others]
    if not features:
        raise ValueError(
            "There is no feature left: every column is --target, --weights or ignored."
        )
    found = tuple(find_name(name, names) for name in dict.fromkeys(features))
    return replace(columns, features=found, ignore=())


def _check_one_part_each(taken: Mapping[str, str], features: Sequence[str]) -> None:
    for part, name in taken.items():
        if name in features:
            raise ValueError(f"The column {name!r} cannot be a feature: it is --{part}.")
    for first, second in combinations(sorted(taken), 2):
        if taken[first] == taken[second]:
            raise ValueError(
                f"The column {taken[first]!r} cannot be both --{first} and --{second}."
            )


def find_features(
    wanted: Sequence[str], names: Sequence[str], n_features: int, target: str | None = None
) -> list[str]:
    """The columns that are wanted; all but the target where no names are known, if as many."""
    others = [name for name in names if name != target]
    if target is not None and find_name(target, names) in wanted:
        raise ValueError(f"The column {target!r} cannot be a feature: it is the target.")
    if not wanted and len(others) != n_features:
        raise ValueError(
            f"The file has {len(others)} columns but there are {n_features} features: fit the "
            "model to a frame, so that it knows which columns to read."
        )
    return [find_name(name, names) for name in wanted or others]


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
