"""What `safesift screen` does: read, screen, write, tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from safesift.cli import console
from safesift.faces import files, report
from safesift.losses import LOSSES, Loss
from safesift.parameters import check_positive
from safesift.penalties import PENALTIES, Penalty
from safesift.regions import REGIONS, Region
from safesift.registry import resolve
from safesift.workflows.screening import ScreeningResult, screen

T = TypeVar("T")


@dataclass(frozen=True)
class _Model:
    """The training whose result must not change."""

    loss: Loss
    penalty: Penalty
    alpha: float
    fit_intercept: bool
    region: Region


def run(options: Mapping[str, Any]) -> None:
    """Screen a file; the options are those of the command, by their names."""
    source, output = options["data"], options["output"]
    model = _model(options)
    files.check_paths(source, output, options["overwrite"])
    columns = columns_of(options, model.loss)
    with console.stages() as stage:
        stage(f"reading {source.name}")
        table = files.read(source, columns)
        stage("screening")
        result = screen(table.X, table.y, sample_weight=table.weights, **vars(model))
        stage(f"writing {output.name}")
        table.write_rows(result.keep, output)
    if options["as_json"]:
        print(_as_json(result, table, output))
    else:
        console.show(result, source, output)


def columns_of(options: Mapping[str, Any], loss: Loss) -> files.Columns:
    """Which columns play which part, by the options of a command."""
    if options["upper"] and loss.task != "interval":
        raise ValueError(
            f"--upper is for intervals, and --loss {options['loss']} is not: leave --upper out, or "
            "use --loss squared_interval."
        )
    names = ("target", "upper", "features", "ignore", "weights")
    return files.Columns(kind=loss.task, **{name: options[name] for name in names})


def build_loss_and_penalty(options: Mapping[str, Any]) -> tuple[Loss, Penalty]:
    """Those named by the options of a command, with the parameters that were given."""
    loss = _build("loss", options, LOSSES, Loss)
    return loss, _build("penalty", options, PENALTIES, Penalty)


def _model(options: Mapping[str, Any]) -> _Model:
    loss, penalty = build_loss_and_penalty(options)
    return _Model(
        loss=loss,
        penalty=penalty,
        alpha=check_positive("alpha", options["alpha"]),
        fit_intercept=options["intercept"],
        region=resolve("region", options["region"], REGIONS, Region),
    )


def _build(option: str, options: Mapping[str, Any], table: dict[str, type[T]], base: type[T]) -> T:
    """The loss or the penalty of that name, with the parameters that were given."""
    name = options[option]
    kind = type(resolve(option, name, table, base))
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


def _as_json(result: ScreeningResult, table: files.Table, output: Path) -> str:
    summary = {
        **report.as_dict(result),
        "input": str(table.path),
        "output": str(output),
        "format": table.format_name,
    }
    return json.dumps(summary, indent=2, allow_nan=False)
