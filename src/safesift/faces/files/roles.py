"""Which column of a table plays which part, and which name was meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from safesift.faces.files.base import Columns


@dataclass(frozen=True)
class Roles:
    """The columns that are read."""

    target: str
    features: tuple[str, ...]
    weights: str | None
    upper: str | None = None

    @property
    def used(self) -> tuple[str, ...]:
        """All of them, once each."""
        return (*self.features, self.target, *filter(None, [self.upper, self.weights]))


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


def assign(names: Sequence[str], columns: Columns) -> Roles:
    """The part of every column, or one sentence that says why there is none."""
    if columns.target is None:
        raise ValueError(f"--target is missing: name the column to predict, of {_listed(names)}.")
    if columns.features and columns.ignore:
        raise ValueError("Give --features or --ignore, not both.")
    if columns.kind == "interval" and columns.upper is None:
        raise ValueError(
            "--upper is missing: name the column of upper ends; --target holds the lower ones."
        )
    given = {part: getattr(columns, part) for part in ("target", "upper", "weights")}
    taken = {part: find_name(name, names) for part, name in given.items() if name}
    for part, name in taken.items():
        if name in columns.features:
            raise ValueError(f"The column {name!r} cannot be a feature: it is --{part}.")
        for other in taken.keys() - {part}:
            if taken[other] == name:
                first, second = sorted((part, other))
                raise ValueError(f"The column {name!r} cannot be both --{first} and --{second}.")
    others = {*taken.values(), *(find_name(name, names) for name in columns.ignore)}
    chosen = columns.features or [name for name in names if name not in others]
    features = tuple(find_name(name, names) for name in dict.fromkeys(chosen))
    if not features:
        raise ValueError(
            "There is no feature left: every column is --target, --weights or ignored."
        )
    return Roles(taken["target"], features, taken.get("weights"), taken.get("upper"))


def chosen(names: Sequence[str], wanted: Sequence[str], n_features: int) -> list[str]:
    """The columns that are wanted; all of them where no names are known, if they are as many."""
    if not wanted and len(names) != n_features:
        raise ValueError(
            f"The file has {len(names)} columns but there are {n_features} features: fit the model "
            "to a frame, so that it knows which columns to read."
        )
    return [find_name(name, names) for name in wanted or names]


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
