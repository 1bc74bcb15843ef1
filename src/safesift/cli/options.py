"""What the options of the commands stand for, or one sentence that says what cannot be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from inspect import signature
from typing import Any, TypeVar

from numpy.typing import NDArray

from safesift.faces.files import Columns
from safesift.faces.files.preparation import Preparation
from safesift.losses import LOSSES, Loss
from safesift.parameters import check_jobs, check_positive
from safesift.penalties import PENALTIES
from safesift.regions import REGIONS, Region
from safesift.registry import resolve, unknown_name

# the options of a command, by their names
Options = Mapping[str, Any]
T = TypeVar("T")


def amount(text: str) -> int | float:
    """What --keep means: 10% is a share, 0.1 the same, 6000 a number of rows."""
    trimmed = text.strip()
    if trimmed.isdigit() and int(trimmed) > 0:
        return int(trimmed)
    try:
        share = float(trimmed.removesuffix("%")) / (100.0 if trimmed.endswith("%") else 1.0)
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise ValueError(
            f"--keep {text} is neither a share of the rows, above 0 and up to 1 (10%, 0.1), nor a "
            "number of rows (6000)."
        )
    return share


def training_of(options: Options) -> dict[str, Any]:
    """The training that rows are chosen for: the arguments that `screen` and `compress` share."""
    resolve("screening", options["screening"], REGIONS, Region)  # refused before the file is read
    return {
        "loss": _build("loss", options, LOSSES),
        "penalty": _build("penalty", options, PENALTIES),
        "alpha": check_positive("alpha", options["alpha"]),
        "fit_intercept": options["intercept"],
        "screening": options["screening"],
        "n_jobs": check_jobs(options["n_jobs"]),
        "random_state": options["random_state"],
    }


def _build(option: str, options: Options, table: Mapping[str, type[T]]) -> T:
    """The loss or the penalty of that name, with the parameters that were given."""
    name = options[option]
    if name not in table:
        raise unknown_name(option, name, table)
    kind = table[name]
    own = signature(kind).parameters
    possible = {parameter for other in table.values() for parameter in signature(other).parameters}
    given = {key: options[key] for key in possible if options.get(key) is not None}
    for parameter in given.keys() - own.keys():
        owners = [key for key in table if parameter in signature(table[key]).parameters]
        raise ValueError(
            f"--{parameter.replace('_', '-')} is no parameter of --{option} {name}, "
            f"only of {' and '.join(filter(None, [', '.join(owners[:-1]), owners[-1]]))}."
        )
    return kind(**given)


def columns_of(options: Options, loss: Loss) -> Columns:
    """Which columns play which part."""
    if options["upper"] and loss.task != "interval":
        raise ValueError(
            f"--upper is for intervals, and --loss {options['loss']} is not: leave --upper out, or "
            "use --loss squared_interval."
        )
    names = ("target", "upper", "features", "ignore", "weights", "id", "one_hot")
    may_miss = options["impute"] is not None
    given = {name: options[name] for name in names}
    return Columns(kind=loss.task, may_miss=may_miss, **given)


def preparation_of(options: Options) -> Preparation:
    """What is done to the features first."""
    return Preparation(scale=options["scale"], impute=options["impute"])


def separator_of(text: str | None) -> str | None:
    """What --sep means: one character, of which some have names."""
    if text is None:
        return None
    separator = {"\\t": "\t", "tab": "\t", "space": " "}.get(text, text)
    if len(separator) != 1 or separator in '"\r\n':
        raise ValueError(f"--sep {text!r} is not one character, nor tab or space.")
    return separator


def model_facts(options: Options, training: Mapping[str, Any]) -> dict[str, Any]:
    """The model that the rows are for."""
    loss, penalty = training["loss"], training["penalty"]
    return {
        "loss": options["loss"],
        "penalty": options["penalty"],
        "parameters": {**vars(loss), **vars(penalty)},
        "alpha": None if penalty.is_constraint else training["alpha"],
        "fit_intercept": training["fit_intercept"],
    }


def labels_as_written(classes: NDArray | None) -> list[Any] | None:
    """Labels as they were written, most likely: numbers in text are read as floats."""
    if classes is None:
        return None
    return [
        int(label) if isinstance(label, float) and label.is_integer() else label
        for label in classes.tolist()
    ]
