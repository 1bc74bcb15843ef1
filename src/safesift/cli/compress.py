"""What `safesift compress` does: read, choose, write, tell."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from safesift.cli import console
from safesift.cli.screen import build_loss_and_penalty, columns_of
from safesift.faces import files
from safesift.faces.files.streams import check_second_output, replacing
from safesift.parameters import check_positive
from safesift.regions import REGIONS, Region
from safesift.registry import resolve
from safesift.workflows.compression import Compressed, compress
from safesift.workflows.compression.methods import method_named


def run(options: Mapping[str, Any]) -> None:
    """Compress a file; the options are those of the command, by their names."""
    source, output, weights = options["data"], options["output"], options["weights_output"]
    loss, penalty = build_loss_and_penalty(options)
    alpha, n_keep = check_positive("alpha", options["alpha"]), amount(options["keep"])
    region = resolve("region", options["region"], REGIONS, Region)
    method_named(options["method"])
    files.check_paths(source, output, options["overwrite"])
    if weights is not None:
        check_second_output(weights, output, source, options["overwrite"])
    columns = columns_of(options, loss)
    with console.stages("compressing") as stage:
        stage(f"reading {source.name}")
        table = files.read(source, columns)
        stage("compressing")
        small = compress(
            table.X, table.y, n_keep=n_keep, loss=loss, penalty=penalty, alpha=alpha,
            method=options["method"], reweight=weights is not None, stratify=options["stratify"],
            fit_intercept=options["intercept"], sample_weight=table.weights, region=region,
            random_state=options["random_state"],
        )  # fmt: skip
        stage(f"writing {output.name}")
        table.write_rows(small.mask, output)
        if weights is not None:
            _write_numbers(small.weights, weights)
    facts = _facts(small, table, output, weights)
    if penalty.is_constraint:
        facts["alpha"] = None
    if options["as_json"]:
        print(json.dumps(facts, indent=2, allow_nan=False))
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


def _write_numbers(numbers: Any, path: Path) -> None:
    with replacing(path) as stream:
        np.savetxt(stream, numbers, fmt="%.17g")


def _facts(
    small: Compressed, table: files.Table, output: Path, weights: Path | None
) -> dict[str, Any]:
    """A machine-readable summary: JSON types only."""
    used = None if weights is None else [float(small.weights.min()), float(small.weights.max())]
    return {
        "samples": small.n_samples,
        "kept": len(small.indices),
        "method": small.method,
        "alpha": small.alpha,
        "certified": small.certified,
        "weight_range": used,
        "input": str(table.path),
        "output": str(output),
        "weights_output": None if weights is None else str(weights),
        "format": table.format_name,
    }
