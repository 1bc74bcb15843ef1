"""The command line. What is slow to import is imported when a command runs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from safesift import __version__
from safesift.cli.plugins import PluggableGroup, in_one_sentence

_PATH = click.Path(path_type=Path)


class _Name(click.ParamType):
    """A name of a registry, which is loaded only to show it in the help."""

    name = "name"

    def __init__(self, module: str, registry: str) -> None:
        self._module, self._registry = module, registry

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(getattr(import_module(self._module), self._registry))}]"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        return value  # the library says which name it does not know, and which one is near


class _NameList(click.ParamType):
    """Column names between commas; a name with a comma in it goes in double quotes."""

    name = "A,B,C"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return self.name

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...] | str:
        if isinstance(value, tuple):
            return value
        return tuple(next(csv.reader([value], skipinitialspace=True), ()))


class _Categories(_NameList):
    """The same; no name stands for all columns of text."""

    name = "[A,B,C]"
    ALL_TEXT = ","

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...] | str:
        names = super().convert(value, param, ctx)
        return names if not names or any(names) else "text"  # faces.files.TEXT, slow to import


_OVERWRITE_OPTION = click.option(
    "--overwrite", is_flag=True, help="Allow files that are written to exist already."
)
_JSON_OPTION = click.option(
    "--json", "as_json", is_flag=True, help="Print a summary for machines, only that."
)

_SEPARATOR_OPTION = click.option(
    "--sep",
    metavar="CHARACTER",
    help="What separates the cells of text: a character, tab or space.  "
    "[default: found out from the content]",
)

# what is read and written, and how it is told: of every command that writes rows of a file
_FILE_OPTIONS = (
    click.argument("data"),
    click.option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write the kept rows, in the format of DATA; - is standard output, and "
        "messages then go to standard error.  [default: nothing is written]",
    ),
    _OVERWRITE_OPTION,
    _JSON_OPTION,
    click.option(
        "--rows", is_flag=True, help="With --json: the numbers of the kept rows, counted from 0."
    ),
    click.option(
        "--id",
        metavar="COLUMN",
        help="A column (npz: an array) by which --json names the kept rows; it is no feature.",
    ),
    _SEPARATOR_OPTION,
)

_MEMORY_OPTION = click.option(
    "--memory",
    metavar="SIZE",
    help="Read files a block at a time, and hold no more than that, such as 500MB; a pattern or a "
    "directory is read so by itself, with 1 GB.",
)

# which columns play which part: of every command that has a model
_NAME_OPTIONS = (
    click.option(
        "--target",
        metavar="COLUMN",
        help="The column to predict: for tables; npz and svmlight imply it. A loss for labels "
        "takes any number of them.",
    ),
    click.option(
        "--upper",
        metavar="COLUMN",
        help="For interval losses: the column (npz: the array) of upper ends; --target holds the "
        "lower ones. An empty or infinite cell is an open end.",
    ),
    click.option(
        "--features",
        type=_NameList(),
        default=(),
        help="The columns to predict from.  [default: all others]",
    ),
    click.option("--ignore", type=_NameList(), default=(), help="Columns that are not features."),
    click.option(
        "--weights", metavar="COLUMN", help="The column (npz: the array) of sample weights."
    ),
)

# what is done to them first
_PREPARATION_OPTIONS = (
    click.option(
        "--one-hot",
        type=_Categories(),
        is_flag=False,
        flag_value=_Categories.ALL_TEXT,
        default=(),
        help="Features that are categories: OneHotEncoder makes a column of zeros and ones for "
        "each of their values. Without names all columns of text.",
    ),
    click.option(
        "--impute",
        type=click.Choice(["mean", "median", "most_frequent", "constant"]),
        help="What SimpleImputer fills in where a number is missing; constant is 0. Missing "
        "categories are a category of their own, but with most_frequent.",
    ),
    click.option(
        "--scale",
        type=click.Choice(["none", "standard", "maxabs", "minmax"]),
        default="none",
        show_default=True,
        help="StandardScaler, MaxAbsScaler or MinMaxScaler for the features that are numbers.",
    ),
)

# what the training is
_MODEL_OPTIONS = (
    click.option(
        "--loss",
        type=_Name("safesift.losses", "LOSSES"),
        default="squared_hinge",
        show_default=True,
    ),
    click.option(
        "--penalty", type=_Name("safesift.penalties", "PENALTIES"), default="l2", show_default=True
    ),
    click.option(
        "--alpha",
        type=float,
        default=1e-4,
        show_default=True,
        help="Weight of the penalty, next to the mean loss.",
    ),
    click.option("--mu", type=float, help="Moves the flat piece of a hinge or of safe_logistic."),
    click.option("--epsilon", type=float, help="Half-width of the tube of an insensitive loss."),
    click.option("--width", type=float, help="Width of the quadratic piece of a smoothed loss."),
    click.option("--delta", type=float, help="Where the loss huber becomes linear."),
    click.option("--l1-ratio", type=float, help="Share of the l1 norm in the penalty elastic_net."),
    click.option("--radius", type=float, help="Radius of the penalties l1_ball and l2_ball."),
    click.option(
        "--intercept/--no-intercept",
        default=True,
        show_default=True,
        help="Whether the model has an intercept, not penalised.",
    ),
    click.option(
        "--n-jobs",
        "-j",
        type=int,
        help="Threads; -1 for all processors. By default as many as the process may use.",
    ),
    click.option(
        "--random-state",
        type=int,
        default=0,
        show_default=True,
        help="The same number, the same rows.",
    ),
)


_SCREENING_OPTION = click.option(
    "--screening",
    type=_Name("safesift.regions", "REGIONS"),
    default="auto",
    show_default=True,
    help="The set that is proved to contain every optimum.",
)
_TOL_OPTION = click.option(
    "--tol",
    type=float,
    default=1e-6,
    show_default=True,
    help="The relative duality gap to solve to; what is dropped is proved at any gap.",
)


_STEPS_OPTION = click.option(
    "--max-iter", type=int, default=1000, show_default=True, help="The largest number of steps."
)
_PROOF_OPTION = click.option(
    "--proof",
    metavar="FILE",
    help="Where to write the proof, an .npz file for `safesift check`; keep FILE.seed beside it. "
    "For comma-separated text, Parquet and npz.",
)


def _with_options(options: Sequence[Callable]) -> Callable[[Callable], Callable]:
    """Give a command all of these options, in their order."""

    def decorate(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group(cls=PluggableGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="safesift")
def cli() -> None:
    """Throw away the training samples that cannot change a model, and prove it."""


@cli.command(short_help="Write the rows of a file that can change the model.")
@_with_options(_FILE_OPTIONS)
@_with_options(_NAME_OPTIONS)
@_with_options(_PREPARATION_OPTIONS)
@_with_options(_MODEL_OPTIONS)
@_SCREENING_OPTION
@click.option(
    "--effort",
    type=click.Choice(["full", "quick"]),
    default="full",
    show_default=True,
    help="Whether to solve the problem, which proves most, or to make a short run.",
)
@_TOL_OPTION
@_STEPS_OPTION
@_PROOF_OPTION
@_MEMORY_OPTION
def screen(**options: Any) -> None:
    """Write the rows of DATA that can change the model, in order and unchanged.

    DATA is a table (CSV, TSV or other separated text with a header; Parquet), an npz file (arrays X
    and y) or an svmlight file; text may be compressed (.gz, .bz2, .xz), and - is text from standard
    input. The model is the one that minimises the mean loss plus alpha times the penalty: choose
    these as in your training. The model of the kept rows is the model of all rows, and that is
    proved.

    A pattern ('clicks/**/*.parquet', in quotes) or a directory stands for many files, Parquet, CSV,
    Arrow or Feather, of any size: they are read a block at a time, a few times, and the output is a
    directory with a file for each.

    \b
    To look first:  safesift screen DATA --target COLUMN
    """
    with in_one_sentence():
        from safesift.cli import streaming, work

        (streaming.screen_files if streaming.streams(options) else work.screen_file)(options)


@cli.command(short_help="Write a page about the rows, for somebody else.")
@click.argument("data")
@click.option(
    "--output", "-o", "page", required=True, metavar="PAGE", help="Where to write it, .html."
)
@_OVERWRITE_OPTION
@_JSON_OPTION
@_SEPARATOR_OPTION
@_with_options(_NAME_OPTIONS)
@_with_options(_PREPARATION_OPTIONS)
@_with_options(_MODEL_OPTIONS)
@_SCREENING_OPTION
@_TOL_OPTION
@_STEPS_OPTION
@_PROOF_OPTION
def report(**options: Any) -> None:
    """Write a page about the rows of DATA: which of them matter, and which are doubtful.

    DATA is what `safesift screen` reads. The page is one HTML file for somebody who did not run
    this: what was asked and what is proved, the margins of all rows, the hardest rows and the most
    suspicious labels with all columns of the table, the features that matter, and how all that
    changes with alpha. It needs no network.

    \b
    safesift report data.parquet --target label --scale standard -o report.html
    """
    with in_one_sentence():
        from safesift.cli.reporting import report_file

        report_file(options)


@cli.command(short_help="Write a given number of rows, the best to train on.")
@_with_options(_FILE_OPTIONS)
@click.option(
    "--keep",
    required=True,
    metavar="AMOUNT",
    help="How much to keep: a share (10% or 0.1) or a number of rows (6000).",
)
@click.option(
    "--weights-output",
    metavar="FILE",
    help="Choose rows that are trained on with weights, and write those, one per line.",
)
@click.option(
    "--method",
    type=_Name("safesift.workflows.compression.ranking", "METHODS"),
    default="hybrid",
    show_default=True,
    help="How rows are chosen.",
)
@click.option("--stratify", is_flag=True, help="Keep of every class its share.")
@_MEMORY_OPTION
@_with_options(_NAME_OPTIONS)
@_with_options(_PREPARATION_OPTIONS)
@_with_options(_MODEL_OPTIONS)
@_SCREENING_OPTION
def compress(**options: Any) -> None:
    """Write AMOUNT of the rows of DATA, in order and unchanged.

    DATA is a table (CSV, TSV or other separated text with a header; Parquet), an npz file (arrays X
    and y) or an svmlight file; text may be compressed (.gz, .bz2, .xz), and - is text from standard
    input. The rows are those from which the model is best trained that minimises the mean loss plus
    alpha times the penalty: choose these as in your training.
    """
    with in_one_sentence():
        from safesift.cli import streaming, work

        (streaming.compress_files if streaming.streams(options) else work.compress_file)(options)


@cli.command(short_help="Train a certified model on files of any size.")
@click.argument("data")
@click.option(
    "--output", "-o", required=True, metavar="MODEL", help="Where to write the model, as JSON."
)
@_OVERWRITE_OPTION
@_JSON_OPTION
@_with_options(_NAME_OPTIONS)
@click.option(
    "--scale",
    type=click.Choice(["none", "standard"]),
    default="none",
    show_default=True,
    help="Centre the features and divide them by their deviation; coefficients are told in the "
    "units of the data.",
)
@_with_options(_MODEL_OPTIONS)
@_TOL_OPTION
@_MEMORY_OPTION
def fit(**options: Any) -> None:
    """Train on DATA, and write the model.

    DATA is a file (Parquet, CSV, Arrow or Feather), a directory, or a pattern in quotes. It is read
    a block at a time, a few times. The duality gap of the model is measured on all rows.

    \b
    safesift fit 'clicks/**/*.parquet' --target label -o model.json
    safesift predict model.json new.parquet -o scores.parquet
    """
    with in_one_sentence():
        from safesift.cli.streaming import fit_files

        fit_files(options)


@cli.command(short_help="Score files with a model that fit has written.")
@click.argument("model")
@click.argument("data")
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    default="-",
    help="Where to write the predictions, .csv or .parquet.  [default: CSV to standard output]",
)
@_OVERWRITE_OPTION
@_MEMORY_OPTION
def predict(**options: Any) -> None:
    """Score the rows of DATA with MODEL, in order.

    DATA is a file (Parquet, CSV, Arrow or Feather), a directory, or a pattern in quotes, with the
    columns of the model. Where its target is among them, too, it is said how many labels are right.
    """
    with in_one_sentence():
        from safesift.cli.streaming import predict_files

        predict_files(options)


@cli.command(short_help="Verify a proof that screen has written.")
@click.argument("proof")
@click.argument("data")
@click.option("--seed", metavar="FILE", help="The seed, to compare the data with their root.")
@click.option("--exact", is_flag=True, help="In rational numbers, for small data.")
@click.option("--expect", default="", metavar="NAME=VALUE,…", help="What the statement has to say.")
def check(proof: str, data: str, seed: str | None, exact: bool, expect: str) -> None:
    """Verify what PROOF claims of DATA, and print it.

    This runs `safesift_check`, one file without any of this library, which can be read and run on
    its own. Exit status: 0 proved, 1 not proved, 2 not readable.
    """
    import safesift_check
    import safesift_root

    given = [proof, data, "--expect", expect, *["--exact"] * exact]
    if seed is None:
        sys.exit(safesift_check.main(given))
    sys.exit(safesift_root.main([*given, "--seed", seed]))


@cli.command(short_help="See it work on handwritten digits.")
@click.option(
    "--output",
    "-o",
    type=_PATH,
    default="safesift-demo.png",
    show_default=True,
    metavar="PICTURE",
    help="Where to draw the picture.",
)
def demo(output: Path) -> None:
    """Train on handwritten digits with and without the samples that do not matter."""
    with in_one_sentence():
        from safesift.faces.demo import run

        run(output)
