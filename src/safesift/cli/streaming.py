"""Commands on files that are read a block at a time: rows in and out at constant memory."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from safesift.arithmetic.threads import using
from safesift.cli import console
from safesift.cli.options import Options, amount, labels_as_written, model_facts, training_of
from safesift.cli.words import heard, own_words
from safesift.design.factory import as_design, check_finite
from safesift.design.file_source import FileSource, column_names, found_files
from safesift.design.rows import rows_of
from safesift.faces.files import PIPE
from safesift.faces.files.streams import Source, check_output, replacing, writing
from safesift.faces.model_files import ModelFile, read_model
from safesift.losses import Loss
from safesift.problem.risk import ChangedDataError
from safesift.workflows.compression import compress
from safesift.workflows.compression.ranking import method_named
from safesift.workflows.scale.codes import RowMask
from safesift.workflows.scale.results import BlockScreening
from safesift.workflows.scale.writing import RECORD
from safesift.workflows.screening import screen

# extension -> the format, as `pyarrow.dataset` calls it
KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".arrow": "arrow",
    ".feather": "feather",
}  # fmt: skip

# options that mean something for one file in memory only: their values where they are not given
_IN_MEMORY = {
    "one_hot": (), "impute": None, "id": None, "sep": None, "rows": False, "effort": "full",
    "proof": None, "screening": "auto", "max_iter": 1000, "overwrite": False,
    "weights_output": None,
}  # fmt: skip


def streams(options: Options) -> bool:
    """Whether files are read a block at a time: a pattern, a directory, or a budget of memory."""
    data = options["data"]
    pattern = glob.has_magic(data) and not Path(data).is_file()
    return pattern or (data != PIPE and Path(data).is_dir()) or options.get("memory") is not None


# --- screen -----------------------------------------------------------------------------------


def screen_files(options: Options) -> None:
    """Write the rows of many files that can change the model, file by file."""
    with _own_words():
        _refuse_in_memory(options)
        training = training_of(options)
        source = _source(options, training["loss"])
        _check_directory(options["output"])
    with console.passes("screening"), heard() as warned, _own_words():
        result = screen(source, **training, tol=options["tol"])
        if options["output"] is not None:
            result.write(options["output"])
    facts = {**_facts(options, source, result), **model_facts(options, training)}
    facts["alpha_kept"] = _alpha_kept(options, facts)
    facts["notes"] = list(warned)
    if options["as_json"]:
        click.echo(json.dumps(facts, indent=2, allow_nan=False, default=str))
    else:
        console.show_streamed(facts)


def _facts(options: Options, source: FileSource, result: BlockScreening) -> dict[str, Any]:
    """A machine-readable summary, with the keys that a file in memory has."""
    solution = result.solution
    n, kept = len(result.kept), result.kept.sum()
    everyone = range(len(result.fits))
    # 1 is the piece of rows without weight, whatever the problem
    weightless = RowMask(result.kept._codes, everyone[:1], np.arange(256) == 1).sum()
    return {
        **_file_facts(options, source),
        "samples": n, "kept": kept, "weightless": weightless, "dropped": n - kept - weightless,
        "undecided": result.undecided.sum(), "passes": result.passes,
        "classes": labels_as_written(result.classes),
        "scaled": solution.reading.scaling is not None,
        "certified": result.certified, "gap": float(np.max(result.gap)),
        "relative_gap": float(result.relative_gap), "reason": "",
        "region": "a ball around every optimum, from sums over all rows",
        "zero_features": [], "proof": None,
    }  # fmt: skip


def _file_facts(options: Options, source: FileSource) -> dict[str, Any]:
    """What was read and written."""
    names = list(source.feature_names or ())
    return {
        "input": options["data"], "output": options["output"], "format": source.kind,
        "files": source.n_files, "target": options["target"], "upper": options["upper"],
        "weights": options["weights"], "n_features": len(names), "features": names,
        "preprocessing": None, "preprocessing_output": None,
    }  # fmt: skip


def _alpha_kept(options: Options, facts: Mapping[str, Any]) -> float | None:
    """That for a solver that averages over the kept rows; what they weigh is known when written."""
    if facts["alpha"] is None:
        return None
    if options["output"] is not None:
        record = json.loads((Path(options["output"]) / RECORD).read_text())
        return record["alpha_kept"]
    if options["weights"] is not None or not facts["kept"]:
        return None
    return facts["alpha"] * facts["samples"] / facts["kept"]


# --- compress ---------------------------------------------------------------------------------


def compress_files(options: Options) -> None:
    """Write as many rows of many files as asked for, file by file."""
    with _own_words():
        _refuse_in_memory(options)
        training, n_keep = training_of(options), amount(options["keep"])
        method_named(options["method"])
        source = _source(options, training["loss"])
        _check_directory(options["output"])
    with console.passes("compressing"), heard() as warned, _own_words():
        small: Any = compress(
            source, n_keep=n_keep, method=options["method"], stratify=options["stratify"],
            **training,
        )  # fmt: skip
        if options["output"] is not None:
            small.write(options["output"])
    facts = {**_file_facts(options, source), **model_facts(options, training)}
    facts |= {
        "samples": small.n_samples, "kept": len(small.indices), "method": small.method,
        "certified": small.certified, "weight_range": None, "weights_output": None,
        "classes": labels_as_written(small.reading.classes),
        "alpha_kept": None if facts["alpha"] is None else float(small.alpha),
        "notes": list(warned),
    }  # fmt: skip
    if options["as_json"]:
        click.echo(json.dumps(facts, indent=2, allow_nan=False, default=str))
    else:
        console.show_compressed(facts)


# --- fit and predict --------------------------------------------------------------------------


def fit_files(options: Options) -> None:
    """Train on files, and write the model."""
    with _own_words():
        training = training_of({**options, "screening": "auto"})
        source = _source(options, training["loss"])
        output = Path(options["output"])
        _check_file(output, source, options["overwrite"])
        if training["loss"].task == "classification":
            source.refuse_labels("a model file")
    with console.passes("training"), heard() as warned, _own_words():
        result = screen(source, **training, tol=options["tol"])
    model = _model_file(options, source, result, training)
    with replacing(output) as stream:
        model.write(stream)
    facts = {**_facts(options, source, result), **model_facts(options, training)}
    facts["notes"] = list(warned)
    if options["as_json"]:
        click.echo(json.dumps(facts, indent=2, allow_nan=False, default=str))
    else:
        console.show_fitted(facts)


def _model_file(
    options: Options, source: FileSource, result: BlockScreening, training: Mapping[str, Any]
) -> ModelFile:
    scaling = result.solution.reading.scaling
    parts = {
        key: {
            "name": options[key],
            "parameters": {name: float(value) for name, value in vars(training[key]).items()},
        }
        for key in ("loss", "penalty")
    }
    return ModelFile(
        columns=list(source.feature_names or ()),
        target=[name for name in (options["target"], options["upper"]) if name],
        labels=None if result.classes is None else result.classes.tolist(),
        coefficients=np.atleast_2d(result.coef).tolist(),
        intercept=np.atleast_1d(result.intercept).tolist(),
        alpha=model_facts(options, training)["alpha"],
        gap=np.atleast_1d(result.gap).tolist(),
        relative_gap=float(result.relative_gap),
        scaling=None if scaling is None else {
            "mean": scaling.mean.tolist(), "deviation": scaling.deviation.tolist(),
        },
        **parts,
    )  # fmt: skip


def predict_files(options: Options) -> None:
    """Score files with a model, a block at a time."""
    with _own_words():
        model = read_model(Path(options["model"]))
        paths = options["data"]
        source = FileSource(
            paths, _kind(paths), (), model.columns, None, options["memory"] or "1 GB", None
        )
        output = options["output"]
        if output != PIPE:
            _check_predictions(Path(output), source, options["overwrite"])
    # labels that are there, too, are compared with
    known = model.target if model.labels and model.target[0] in source.schema.names else []
    right, n_rows = 0, 0
    with (
        console.passes("predicting") as seen,
        _own_words(),
        using(None),
        writing(output) as stream,
        _Predictions(stream, output) as written,
    ):
        for part in range(source.n_parts):
            start = 0
            for table in source.batches(part, [*model.columns, *known]):
                X = source.features(table)
                check_finite(
                    rows_of(as_design(X)), f"{source.place(part)}: X", start, model.columns
                )
                decisions = model.decisions(X)
                start += len(table)
                found = model.predictions(decisions)
                written.write(_columns(model, decisions, found))
                n_rows += len(table)
                if known:
                    right += int((table.column(known[0]).to_numpy() == found).sum())
                seen(n_rows, source.n_rows or 0)
    console.show_predicted(n_rows, output, right / n_rows if known and n_rows else None)


def _columns(model: ModelFile, decisions: Any, found: Any) -> dict[str, Any]:
    if model.labels is None:
        return {"prediction": found}
    if len(model.labels) == 2:
        return {"prediction": found, "decision": decisions[:, 0]}
    named = {f"decision_{label}": decisions[:, k] for k, label in enumerate(model.labels)}
    return {"prediction": found, **named}


class _Predictions:
    """A table that is written as it comes, in the format that its name stands for."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream, self._parquet = stream, Path(name).suffix in (".parquet", ".pq")
        self._writer: Any = None

    def __enter__(self) -> _Predictions:
        return self

    def write(self, columns: dict[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet

        table = pa.table(columns)
        if self._writer is None:
            kind: Any = pyarrow.parquet.ParquetWriter if self._parquet else pyarrow.csv.CSVWriter
            self._writer = kind(self._stream, table.schema)
        self._writer.write_table(table)

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()


def _check_predictions(output: Path, source: FileSource, overwrite: bool) -> None:
    if output.suffix not in (".csv", ".parquet", ".pq"):
        raise ValueError(f"{output}: predictions are written as .csv or .parquet, choose one.")
    _check_file(output, source, overwrite)


def _check_file(output: Path, source: FileSource, overwrite: bool) -> None:
    """As `check_output`, for all the files that are read."""
    there = source.files if output.exists() else []
    same = [Path(file) for file in there if os.path.samefile(file, output)]
    check_output(output, Source(same[0] if same else None), overwrite)


# --- what is read -----------------------------------------------------------------------------


def _source(options: Options, loss: Loss) -> FileSource:
    """The files, with the columns that play a part."""
    target, upper, kind = options["target"], options["upper"], _kind(options["data"])
    if target is None:
        raise ValueError("--target is missing: name the column to predict.")
    if upper and loss.task != "interval":
        raise ValueError(
            f"--upper is for intervals, and --loss {options['loss']} is not: leave --upper out, or "
            "use --loss squared_interval."
        )
    if options["features"] and options["ignore"]:
        raise ValueError("Give --features or --ignore, not both.")
    if options["scale"] not in ("none", "standard"):
        raise ValueError(
            f"--scale {options['scale']} is for one file in memory: use --scale standard."
        )
    columns, weight = options["features"], options["weights"]
    if not columns:
        others = {target, upper, weight, *options["ignore"]}
        names = column_names(options["data"], kind)
        lost = [name for name in options["ignore"] if name not in names]
        if lost:
            raise ValueError(f"--ignore names {lost[0]!r}, and there is no such column.")
        columns = [name for name in names if name not in others]
    return FileSource(
        options["data"], kind, (target, upper) if upper else target, list(columns), weight,
        options["memory"] or "1 GB", None if options["scale"] == "none" else "standard",
    )  # fmt: skip


def _kind(paths: str) -> str:
    """The format of all files, by their extension."""
    try:
        _, found = found_files(paths)
    except FileNotFoundError as error:
        raise ValueError(str(error)) from None
    extensions = {Path(file).suffix.lower() for file in found}
    unknown = sorted(extensions - set(KINDS))
    if unknown:
        raise ValueError(
            f"{paths}: files that are read a block at a time are {', '.join(KINDS)}, and there "
            f"are some that end with {unknown[0] or 'nothing'}."
        )
    kinds = {KINDS[extension] for extension in extensions}
    if len(kinds) > 1:
        raise ValueError(
            f"{paths}: there are files of several formats ({', '.join(sorted(kinds))}): give a "
            "pattern for those of one, such as '**/*.parquet'."
        )
    return kinds.pop()


def _check_directory(output: str | None) -> None:
    if output == PIPE:
        raise ValueError(
            "Files that are read a block at a time are written one by one: name a directory with "
            "--output."
        )
    if output is None:
        return
    directory = Path(output).resolve()
    if directory.exists():
        raise ValueError(f"{output} exists already: choose another name, or remove it.")
    if not directory.parent.is_dir():
        raise ValueError(f"{directory.parent}: there is no such directory for the output.")
    if not os.access(directory.parent, os.W_OK):
        raise ValueError(f"{directory.parent}: no permission to write the output there.")


def _refuse_in_memory(options: Options) -> None:
    for name, default in _IN_MEMORY.items():
        if options.get(name, default) != default:
            raise ValueError(
                f"--{name.replace('_', '-')} is for one file in memory, and files are read a block "
                "at a time here: leave it out, or give one file and no --memory."
            )


@contextmanager
def _own_words() -> Iterator[None]:
    """As `own_words`; nothing is filled in on the way, and files may change meanwhile."""
    try:
        with own_words():
            yield
    except ChangedDataError as error:
        raise ValueError(str(error)) from error
    except ValueError as error:
        said = str(error).replace("fill missing values in with --impute mean, or remove those rows",
                                  "fill them in, or remove those rows, before")  # fmt: skip
        raise ValueError(said) from error
