"""What a file of samples is, whatever its format, and which of its columns plays which part."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift.faces.files.streams import Mask, Source, writing

# in place of the names of columns: all that hold text
TEXT: Literal["text"] = "text"
# columns that often hold what is to be predicted
_USUAL_TARGETS = ("target", "label", "class", "y", "outcome", "species", "survived", "diagnosis")


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
    id : str or None
        The column by which rows are named.
    one_hot : tuple of str, or "text"
        The features that are categories; "text" for all that hold text.
    may_miss : bool
        Whether values of features may be missing.
    kind : {"classification", "regression", "interval"}
        What the target must hold: labels, numbers, or the ends of intervals.
    """

    target: str | None = None
    upper: str | None = None
    features: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    weights: str | None = None
    id: str | None = None
    one_hot: tuple[str, ...] | Literal["text"] = ()
    may_miss: bool = False
    kind: Literal["classification", "regression", "interval"] = "classification"

    @property
    def used(self) -> tuple[str, ...]:
        """The columns to read, once each."""
        return (*self.features, *filter(None, (self.target, self.upper, self.weights, self.id)))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The features that are not categories."""
        return tuple(name for name in self.features if name not in self.one_hot)


@dataclass(frozen=True, eq=False)
class Samples:
    """What was read of a file.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_rows, n_numbers)
        The features that are numbers; NaN where one is missing.
    y : array of shape (n_rows,) or (n_rows, 2)
    weights : array of shape (n_rows,) or None
    names : tuple of str, or None
        Of the columns of X, where they have names.
    categories : array of objects of shape (n_rows, n_categories) or None
        The features that are categories: text or numbers, NaN where one is missing.
    category_names : tuple of str
    ids : sequence or None
        By which rows are named.
    """

    X: Any
    y: NDArray
    weights: NDArray | None = None
    names: tuple[str, ...] | None = None
    categories: NDArray | None = None
    category_names: tuple[str, ...] = ()
    ids: Sequence[Any] | None = None


@dataclass(frozen=True, eq=False)
class Table(ABC):
    """A file of samples: what the library needs of it, and a way to write some of its rows.

    Attributes
    ----------
    source : Source
    columns : Columns
        As found: with the features spelled out, and the target that the format implies.
    samples : Samples
    """

    source: Source
    columns: Columns
    samples: Samples

    format_name: ClassVar[str]
    extensions: ClassVar[tuple[str, ...]]
    # whether files of the format may be compressed as a whole, and come through a pipe
    is_text: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def read(cls, source: Source, columns: Columns) -> Self:
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
    def _write(self, keep: Mask, stream: IO[bytes], record: str | None) -> None:
        """Write the rows where `keep` is True, and the record where the format has a place."""

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return len(self.samples.y)

    def cells(self, rows: NDArray[np.intp]) -> tuple[tuple[str, ...], list[list[Any]]]:
        """The names of all columns, and what they hold in some rows, at increasing numbers.

        Of formats without columns the features and the target.
        """
        X, y = self.samples.X[rows], self.samples.y[rows]
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        numbered = tuple(f"x{column}" for column in range(dense.shape[1]))
        targets = y[:, None] if y.ndim == 1 else y
        held = [
            [*row, *target] for row, target in zip(dense.tolist(), targets.tolist(), strict=True)
        ]
        names = ("target",) if targets.shape[1] == 1 else ("lower", "upper")
        return (*(self.samples.names or numbered), *names), held

    def write_rows(self, keep: Mask, output: str | Path, record: str | None = None) -> None:
        """Write the rows where `keep` is True, in order and unchanged, to a file of this format.

        The rows come from the file itself, with everything in them that is not a feature.

        Parameters
        ----------
        output : str or Path
            The file, or `-` for standard output.
        record : str, optional
            What else to say about them: goes into files that are not text, under the name
            safesift.
        """
        if len(keep) != self.n_rows:
            raise ValueError(f"keep has {len(keep)} entries but the table has {self.n_rows} rows.")
        with writing(str(output)) as stream:
            self._write(keep, stream, record)


def refuse_names(columns: Columns, format_name: str, *options: str) -> None:
    """Refuse the parts that a format without column names cannot have."""
    for option in options:
        if getattr(columns, option):
            flag = option.replace("_", "-")
            raise ValueError(f"--{flag} names a column, and {format_name} files have no columns.")


def find_name(name: str, names: Sequence[str], what: str = "column") -> str:
    """The name if there is exactly one such column, else one sentence with the nearest one."""
    if names.count(name) == 1:
        return name
    if name in names:
        raise ValueError(f"There are {names.count(name)} {what}s named {name!r}: rename them.")
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        raise ValueError(f"There is no {what} {name!r}: did you mean {near[0]!r}?")
    raise ValueError(f"There is no {what} {name!r}: there are {listed(names)}.")


def find_columns(columns: Columns, names: Sequence[str]) -> Columns:
    """The same with the features spelled out, or one sentence that says what cannot be."""
    if not columns.target:
        raise ValueError(_no_target(names))
    if columns.features and columns.ignore:
        raise ValueError("Give --features or --ignore, not both.")
    if columns.kind == "interval" and not columns.upper:
        raise ValueError(
            "--upper is missing: name the column of upper ends; --target holds the lower ones."
        )
    given = {part: getattr(columns, part) for part in ("target", "upper", "weights", "id")}
    taken = {part: find_name(name, names) for part, name in given.items() if name}
    _check_one_part_each(taken, columns.features)
    # a column without a name holds row numbers, as pandas writes them
    others = {"", *taken.values(), *(find_name(name, names) for name in columns.ignore)}
    features = columns.features or [name for name in names if name not in others]
    if not features:
        raise ValueError(
            "There is no feature left: every column is --target, --weights or ignored."
        )
    found = tuple(find_name(name, names) for name in dict.fromkeys(features))
    nameless = ("",) if "" in names and "" not in found else ()
    one_hot = _one_hot(columns, found, names)
    return replace(columns, features=found, ignore=nameless, one_hot=one_hot)


def _no_target(names: Sequence[str]) -> str:
    usual = [name for name in names if name.lower() in _USUAL_TARGETS]
    example = f", for instance --target {(usual or names)[-1]}" if names else ""
    return f"--target is missing: name the column to predict{example}; there are {listed(names)}."


def _one_hot(
    columns: Columns, features: tuple[str, ...], names: Sequence[str]
) -> tuple[str, ...] | Literal["text"]:
    """The categories in the order of the features, each of which must be one."""
    if columns.one_hot == TEXT:
        return TEXT
    for name in columns.one_hot:
        if find_name(name, names) not in features:
            raise ValueError(f"--one-hot {name}: the column is not a feature.")
    return tuple(name for name in features if name in columns.one_hot)


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


def listed(names: Sequence[str], most: int = 8) -> str:
    """Some names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
