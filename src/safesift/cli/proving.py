"""Proofs about files: which columns a checker reads, and what was done to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import safesift_check
import safesift_root
from safesift.faces import files
from safesift.faces.files.preparation import Prepared
from safesift.faces.files.streams import check_second_output
from safesift.workflows.proofs import DataColumns
from safesift.workflows.verdicts import ScreeningResult

# what the checker reads, by the end of the name
_READ = (".csv", ".parquet", ".npz")

# what a transformer does to a number, one rounded operation after the other
_OPERATIONS = {
    "SimpleImputer": (("fill", "statistics_"),),
    "StandardScaler": (("subtract", "mean_"), ("divide", "scale_")),
    "MaxAbsScaler": (("divide", "scale_"),),
    "MinMaxScaler": (("multiply", "scale_"), ("add", "min_")),
}
# and what leaves a number as it is
_NEUTRAL = {"fill": 0.0, "subtract": 0.0, "divide": 1.0, "multiply": 1.0, "add": 0.0}


def check_proof_options(options: Mapping[str, Any], source: files.Source) -> None:
    """Refuse before the work what cannot be proved, or written."""
    if Path(options["data"]).suffix not in _READ:
        raise ValueError(
            f"--proof is for files that the checker reads ({', '.join(_READ)}), and "
            f"{options['data']} is none: convert it first."
        )
    if Path(options["proof"]).suffix != ".npz":
        raise ValueError(f"--proof {options['proof']} is no .npz file: give it that name.")
    for name in (options["proof"], f"{options['proof']}.seed"):
        check_second_output(Path(name), options["output"], source, options["overwrite"])


def write_file_proof(
    result: ScreeningResult, table: files.Table, prepared: Prepared, path: Path
) -> None:
    """Write the proof, and have it checked against the file itself."""
    result.write_proof(path, columns=_columns(table, prepared))
    try:
        with np.errstate(all="ignore"):
            safesift_root.check(safesift_root.seed_of(f"{path}.seed"), path, table.source.file)
    except (safesift_check.Unproved, safesift_check.Unreadable, ValueError) as error:
        path.unlink()
        Path(f"{path}.seed").unlink()
        raise ValueError(
            f"--proof: the checker reads other rows from {table.source} than were screened "
            f"({error}): store the features as plain numbers, without --impute or --one-hot."
        ) from None


def _columns(table: files.Table, prepared: Prepared) -> DataColumns:
    columns = table.columns
    target = tuple(filter(None, (columns.target or "y", columns.upper)))
    features, transform = _prepared(prepared.record or [])
    if table.format_name == "npz":
        features = None
    elif not prepared.record:
        features = tuple({"column": name} for name in prepared.names or ())
    return DataColumns(features, target, columns.weights, None, transform)


def _prepared(record: list[dict[str, Any]]) -> tuple[Any, Any]:
    """Features as the checker makes them, and the operations on all of them."""
    features: list[dict[str, Any]] = []
    operations: dict[tuple[int, str], dict[int, float]] = {}
    for part in record:
        places = range(len(features), len(features) + _width(part))
        encoder = part["steps"][-1] if part["steps"] else None
        if encoder is not None and encoder["transformer"] == "OneHotEncoder":
            if len(part["steps"]) > 1:
                raise ValueError("--proof cannot state that categories were filled in.")
            for column, values in zip(
                part["columns"], encoder["learned"]["categories_"], strict=True
            ):
                features += [{"column": column, "equals": "" if v is None else v} for v in values]
            continue
        names = part["columns"] or [str(j) for j in places]
        features += [{"column": name} for name in names]
        for step in part["steps"]:
            for operation, learned in _OPERATIONS[step["transformer"]]:
                order = len(operations)
                numbers = step["learned"][learned]
                operations[order, operation] = dict(zip(places, numbers, strict=True))
    n = len(features)
    transform = tuple(
        (operation, [numbers.get(j, _NEUTRAL[operation]) for j in range(n)])
        for (_, operation), numbers in sorted(operations.items())
    )
    return tuple(features), transform


def _width(part: dict[str, Any]) -> int:
    """How many numbers a part has, for parts without categories."""
    for step in part["steps"]:
        for learned in step["learned"].values():
            return len(learned)
    return len(part["columns"] or ())
