"""What the commands do with a file: read, choose rows, write them, tell."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from safesift.cli import console
from safesift.faces import files, report
from safesift.faces.files.streams import check_second_output, replacing
from safesift.losses import LOSSES, Loss
from safesift.parameters import check_positive
from safesift.penalties import PENALTIES, Penalty
from safesift.regions import REGIONS, Region
from safesift.registry import resolve, unknown_name
from safesift.workflows.compression import Compressed, compress
from safesift.workflows.compression.ranking import method_named
from safesift.workflows.screening import screen

# the options of a command, by their names
Options = Mapping[str, Any]
T = TypeVar("T")


def screen_file(options: Options) -> None:
    """Write the rows of a file that can change the model."""
    source, output = options["data"], options["output"]
    training = _training(options)
    columns = _columns(options, training["loss"])
    files.check_paths(source, output, options["overwrite"])
    with console.stages("screening") as stage:
        stage(f"reading {source.name}")
        table = files.read(source, columns)
        stage("screening")
        result = screen(table.X, table.y, sample_weight=table.weights, **training)
        stage(f"writing {output.name}")
        table.write_rows(result.kept, output)
    facts = {**report.as_dict(result), **_files(options, table)}
    if options["as_json"]:
        _print_json(facts)
    else:
        console.show_screened(facts, result)


def compress_file(options: Options) -> None:
    """Write as many rows of a file as asked for, and their weights where those are wanted."""
    source, output, weights = options["data"], options["output"], options["weights_output"]
    training, n_keep = _training(options), amount(options["keep"])
    columns = _columns(options, training["loss"])
    method_named(options["method"])
    files.check_paths(source, output, options["overwrite"])
    if weights is not None:
        check_second_output(weights, output, source, options["overwrite"])
    with console.stages("compressing") as stage:
        stage(f"reading {source.name}")
        table = files.read(source, columns)
        stage("compressing")
        small = compress(
            table.X, table.y, n_keep=n_keep, method=options["method"], sample_weight=table.weights,
            reweight=weights is not None, stratify=options["stratify"],
            random_state=options["random_state"], **training,
        )  # fmt: skip
        stage(f"writing {output.name}")
        table.write_rows(small.kept, output)
        if weights is not None and small.weights is not None:
            with replacing(weights) as stream:
                np.savetxt(stream, small.weights, fmt="%.17g")
    facts = {**_compressed_facts(small, options, training["penalty"]), **_files(options, table)}
    if options["as_json"]:
        _print_json(facts)
    else:
        console.show_compressed(facts)


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


def _training(options: Options) -> dict[str, Any]:
    """The training that rows are chosen for: the arguments that `screen` and `compress` share."""
    return {
        "loss": _build("loss", options, LOSSES),
        "penalty": _build("penalty", options, PENALTIES),
        "alpha": check_positive("alpha", options["alpha"]),
        "fit_intercept": options["intercept"],
        "screening": resolve("screening", options["screening"], REGIONS, Region),
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
            f"only of {' and '.join(owners)}."
        )
    return kind(**given)


def _columns(options: Options, loss: Loss) -> files.Columns:
    """Which columns play which part."""
    if options["upper"] and loss.task != "interval":
        raise ValueError(
            f"--upper is for intervals, and --loss {options['loss']} is not: leave --upper out, or "
            "use --loss squared_interval."
        )
    names = ("target", "upper", "features", "ignore", "weights")
    return files.Columns(kind=loss.task, **{name: options[name] for name in names})


def _compressed_facts(small: Compressed, options: Options, penalty: Penalty) -> dict[str, Any]:
    """A machine-readable summary: JSON types only."""
    weights, used = options["weights_output"], None
    if weights is not None and small.weights is not None:
        used = [float(small.weights.min()), float(small.weights.max())]
    return {
        "samples": small.n_samples,
        "kept": len(small.indices),
        "method": small.method,
        "alpha": None if penalty.is_constraint else small.alpha,
        "certified": small.certified,
        "weight_range": used,
        "weights_output": None if weights is None else str(weights),
    }


def _files(options: Options, table: files.Table) -> dict[str, str]:
    return {
        "input": str(table.path),
        "output": str(options["output"]),
        "format": table.format_name,
    }


def _print_json(facts: Mapping[str, Any]) -> None:
    print(json.dumps(facts, indent=2, allow_nan=False))
