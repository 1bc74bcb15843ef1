"""What the commands do with a file: read, make features, choose rows, write them, tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from safesift.cli import console
from safesift.cli.options import (
    Options,
    amount,
    columns_of,
    labels_as_written,
    model_facts,
    preparation_of,
    separator_of,
    training_of,
)
from safesift.cli.proving import check_proof_options, write_file_proof
from safesift.cli.words import heard, in_options, own_words
from safesift.faces import files, summaries
from safesift.faces.files.preparation import Prepared, lonely_categories
from safesift.faces.files.streams import check_second_output, replacing
from safesift.losses import Loss
from safesift.workflows.compression import Compressed, compress
from safesift.workflows.compression.ranking import method_named
from safesift.workflows.screening import screen
from safesift.workflows.verdicts import ScreeningResult

Mask = NDArray[np.bool_]

# more numbers than this, with fewer rows each, are not labels
_MANY_LABELS, _FEW_ROWS = 20, 5


def screen_file(options: Options) -> None:
    """Write the rows of a file that can change the model."""
    with own_words():
        training = training_of(options)
    with console.stages("screening") as stage, heard() as warned:
        work = Work.begun(options, training["loss"], stage)
        result = work.screened(training, stage)
        work.write(result.kept, stage)
    facts = {**summaries.as_dict(result), **work.facts(result.kept)}
    facts |= model_facts(options, training)
    facts["alpha_kept"] = _or_none(result.alpha_kept, facts)
    facts["classes"] = labels_as_written(result.classes)
    facts["reason"] = in_options(result.reason)
    facts["notes"] = [*work.notes, *warned]
    facts["zero_features"] = work.names_of(result.zero_coef)
    facts["proof"] = options["proof"]
    if options["as_json"]:
        work.print_json(facts)
    else:
        console.show_screened(facts)


def compress_file(options: Options) -> None:
    """Write as many rows of a file as asked for, and their weights where those are wanted."""
    weights, n_keep = options["weights_output"], amount(options["keep"])
    with own_words():
        training = training_of(options)
        method_named(options["method"])
    with console.stages("compressing") as stage, heard() as warned:
        work = Work.begun(options, training["loss"], stage)
        stage("compressing")
        with own_words():
            small = compress(
                work.X, work.y, sample_weight=work.weights, n_keep=n_keep, method=options["method"],
                reweight=weights is not None, stratify=options["stratify"], **training,
            )  # fmt: skip
        work.write(small.kept, stage)
        if weights is not None and small.weights is not None:
            with replacing(Path(weights)) as stream:
                np.savetxt(stream, small.weights, fmt="%.17g")
    facts = {**work.facts(small.kept), **model_facts(options, training)}
    facts |= _choice_facts(small, weights)
    facts["alpha_kept"] = _or_none(small.alpha, facts)
    facts["notes"] = [*work.notes, *warned]
    facts["classes"] = labels_as_written(np.unique(work.y)) if work.has_labels else None
    if options["as_json"]:
        work.print_json(facts)
    else:
        console.show_compressed(facts)


@dataclass(frozen=True, eq=False)
class Work:
    """A file that was read, and where its rows go.

    Attributes
    ----------
    options : mapping
    table : Table
    prepared : Prepared
        Its features.
    beside : Path or None
        Where to record what was done to the features, where the output has no place for it.
    """

    options: Options
    table: files.Table
    prepared: Prepared
    beside: Path | None

    @classmethod
    def begun(cls, options: Options, loss: Loss, stage: console.Stage) -> Work:
        """Refuse all that can be refused before the work, then read the file."""
        columns, preparation = columns_of(options, loss), preparation_of(options)
        separator = separator_of(options["sep"])
        stage(f"reading {console.place(Path(options['data']).name, 'input')}")
        source = files.Source.named(options["data"], separator)
        _check_outputs(options, source)
        table = files.read(source, columns)
        _check_labels(table)
        return cls(options, table, preparation.of(table.samples), _beside(options, source))

    @property
    def X(self) -> Any:
        return self.prepared.X

    @property
    def y(self) -> NDArray:
        return self.table.samples.y

    @property
    def weights(self) -> NDArray | None:
        return self.table.samples.weights

    @property
    def has_labels(self) -> bool:
        return self.table.columns.kind == "classification"

    def screened(self, training: Mapping[str, Any], stage: console.Stage) -> ScreeningResult:
        """What is proved of the rows, on file as well where that is asked for."""
        stage("screening")
        options = self.options
        with own_words():
            result = screen(
                self.X, self.y, sample_weight=self.weights, **training,
                effort=options["effort"], tol=options["tol"], max_iter=options["max_iter"],
            )  # fmt: skip
        if options["proof"] is not None:
            stage("proving")
            write_file_proof(result, self.table, self.prepared, Path(options["proof"]))
        return replace(result, feature_names=self.prepared.names)

    def write(self, keep: Mask, stage: console.Stage) -> None:
        """Write the rows, and what was done to their features."""
        output, record = self.options["output"], self.prepared.record
        if output is None:
            return
        stage(f"writing {console.place(Path(output).name, 'output')}")
        text = None if record is None else json.dumps({"preprocessing": record}, indent=2)
        self.table.write_rows(keep, output, text)
        if self.beside is None:
            return
        if text is None:
            # that of an earlier output of this name would not be true of this one
            self.beside.unlink(missing_ok=True)
        else:
            with replacing(self.beside) as stream:
                stream.write(text.encode() + b"\n")

    def facts(self, keep: Mask) -> dict[str, Any]:
        """A machine-readable summary of what was read and written: JSON types only."""
        columns, names, ids = self.table.columns, self.prepared.names, self.table.samples.ids
        recorded = self.beside is not None and self.prepared.record is not None
        facts = {
            "samples": len(keep),
            "kept": int(keep.sum()),
            "input": self.options["data"],
            "output": self.options["output"],
            "format": self.table.format_name,
            "target": columns.target,
            "upper": columns.upper,
            "weights": columns.weights,
            "n_features": int(self.X.shape[1]),
            "features": None if names is None else list(names),
            "preprocessing": self.prepared.record,
            "preprocessing_output": str(self.beside) if recorded else None,
        }
        if self.options["rows"]:
            facts["kept_rows"] = np.flatnonzero(keep).tolist()
        if ids is not None:
            facts["kept_ids"] = [one for one, kept in zip(ids, keep, strict=True) if kept]
        return facts

    def names_of(self, mask: Mask) -> list[Any]:
        """Some features by their names, or by their numbers where they have none."""
        numbers, names = np.flatnonzero(mask).tolist(), self.prepared.names
        return numbers if names is None else [names[number] for number in numbers]

    @property
    def notes(self) -> list[str]:
        """What a reader should know about the file."""
        notes = [
            f"Most rows have a category of {name!r} for themselves, which says nothing about the "
            "others: leave the column out with --ignore."
            for name in lonely_categories(self.table.samples)
        ]
        if "" in self.table.columns.ignore:
            notes.append("The column without a name was taken for row numbers: it is no feature.")
        return notes

    def print_json(self, facts: Mapping[str, Any]) -> None:
        """Print facts where no rows go."""
        text = json.dumps(facts, indent=2, allow_nan=False, default=str)
        click.echo(text, err=self.options["output"] == files.PIPE)


def _check_outputs(options: Options, source: files.Source) -> None:
    """Refuse names under which nothing can be written, or that are taken."""
    output, overwrite = options["output"], options["overwrite"]
    files.check_paths(source, output, overwrite)
    if options.get("proof") is not None:
        check_proof_options(options, source)
    second = options.get("weights_output")
    if second == files.PIPE:
        raise ValueError("--weights-output needs the name of a file: rows go to standard output.")
    for other in filter(None, (second, options.get("page"))):
        check_second_output(Path(other), output, source, overwrite)
    beside = _beside(options, source)
    if beside is not None:
        check_second_output(beside, output, source, overwrite)


def _check_labels(table: files.Table) -> None:
    """Refuse numbers that are hardly labels: there would be a model for each of them."""
    y, columns = table.samples.y, table.columns
    if columns.kind != "classification" or y.dtype.kind not in "fiu" or y.ndim != 1:
        return
    n_labels = len(np.unique(y))
    if n_labels > _MANY_LABELS and len(y) < _FEW_ROWS * n_labels:
        raise ValueError(
            f"The target holds {n_labels} different numbers in {len(y)} rows, too many for labels: "
            "choose a --loss for numbers, such as squared_epsilon_insensitive."
        )


def _beside(options: Options, source: files.Source) -> Path | None:
    """Where to record what was done to the features: text has no place for it."""
    output = options["output"]
    if output in (None, files.PIPE) or not files.format_of(source).is_text:
        return None
    return Path(f"{output}.preprocessing.json")


def _or_none(alpha_kept: float, facts: Mapping[str, Any]) -> float | None:
    """The alpha to train with; there is none under a constraint, or where no row is kept."""
    return None if facts["alpha"] is None or not np.isfinite(alpha_kept) else float(alpha_kept)


def _choice_facts(small: Compressed, weights: str | None) -> dict[str, Any]:
    """How rows were chosen, and how to train on them."""
    used = None
    if weights is not None and small.weights is not None:
        used = [float(small.weights.min()), float(small.weights.max())]
    return {
        "method": small.method,
        "certified": small.certified,
        "weight_range": used,
        "weights_output": weights,
    }
