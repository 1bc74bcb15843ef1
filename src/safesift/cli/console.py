"""What the command line shows: a bar while it works, and what was kept and why."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from safesift import progress
from safesift.faces import summaries
from safesift.faces.files import PIPE
from safesift.faces.files.table import listed

# a summary in JSON types, as --json prints it
Facts = Mapping[str, Any]
# call it with a few words when something new begins
Stage = Callable[[str], None]

# work that is done sooner needs no bar
PATIENCE_SECONDS = 1.0


class _PatientProgress(Progress):
    """A bar that appears only when the work has taken a while."""

    def __init__(self, *columns: Any, **options: Any) -> None:
        self._shown_from = time.monotonic() + PATIENCE_SECONDS
        super().__init__(*columns, **options)

    def get_renderables(self) -> Iterable[RenderableType]:
        if time.monotonic() >= self._shown_from:
            yield from super().get_renderables()


def _is_terminal() -> bool:
    """Of stderr itself: logs in which colours are forced are no terminal."""
    return sys.stderr.isatty()


@contextmanager
def stages(work: str) -> Iterator[Stage]:
    """A bar on stderr, where that is a terminal; call what it yields at every new stage."""
    is_terminal = _is_terminal()
    console = Console(stderr=True, force_terminal=is_terminal)
    bar = _PatientProgress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    task = bar.add_task("", total=None)

    def stage(description: str) -> None:
        bar.update(task, description=escape(description), total=None, completed=0, refresh=True)

    def listen(name: str, done: int, total: int) -> None:
        bar.update(task, description=f"{work}: {name}", total=total, completed=done)

    with bar if is_terminal else nullcontext(), progress.listening(listen):
        yield stage


class _Passes:
    """Passes over rows in blocks: a bar on a terminal, a line for each elsewhere."""

    def __init__(self, work: str, bar: Progress | None) -> None:
        self._work, self._bar, self._began = work, bar, time.monotonic()
        self._rows, self._news = 0, ""
        self._task = None if bar is None else bar.add_task(f"{work}", total=None, news="")

    def within(self, stage: str, done: int, total: int) -> None:
        """So many of all rows are seen in this pass."""
        self._rows = done
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=f"{self._work}: {stage}",
                             completed=done, total=total or None, news=self._news)  # fmt: skip

    def finished(self, stage: str, done: int, total: int) -> None:
        """A pass is made; other work that is reported on the way has no rows of its own."""
        if not stage.startswith("pass "):
            return
        seconds, self._began = time.monotonic() - self._began, time.monotonic()
        self._news = stage.partition(": ")[2]
        if self._bar is not None and self._task is not None:
            self._bar.reset(self._task, description=f"{self._work}: {stage}", news=self._news)
        else:
            rate = f"{self._rows} rows in {seconds:.1f} s, {self._rows / max(seconds, 1e-9):.3g}"
            print(f"{self._work}: {stage}; {rate} rows/s", file=sys.stderr, flush=True)


class _Speed(ProgressColumn):
    """Rows in a second."""

    def render(self, task: Any) -> Text:
        return Text("" if task.speed is None else f"{task.speed:.3g} rows/s")


@contextmanager
def passes(work: str) -> Iterator[Callable[[int, int], None]]:
    """Show passes over rows; call what it yields with the rows that are seen, and all of them."""
    if not _is_terminal():
        shown = _Passes(work, None)
        with progress.listening(shown.finished, shown.within):
            yield lambda done, total: None
        return
    bar = _PatientProgress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), _Speed(),
        TimeRemainingColumn(), TextColumn("{task.fields[news]}"),
        console=Console(stderr=True, force_terminal=True), transient=True,
    )  # fmt: skip
    shown = _Passes(work, bar)
    with bar, progress.listening(shown.finished, shown.within):
        yield lambda done, total: shown.within("rows", done, total)


def show_streamed(facts: Facts) -> None:
    """Print what was kept of many files."""
    _show(
        facts,
        f", {facts['samples'] - facts['kept']} dropped, {facts['passes']} passes",
        [_reasons(facts), _grid(_screened_rows(facts))],
        [_streamed_advice(facts)],
    )


def _streamed_advice(facts: Facts) -> str:
    if facts["alpha_kept"] is None and facts["alpha"] is not None and facts["kept"]:
        return "What the kept rows weigh, and their alpha, is told when they are written."
    return _advice(facts)


def show_fitted(facts: Facts) -> None:
    """Print what was trained, and how far it is proved."""
    console = Console()
    console.print(f"[bold]trained on {facts['samples']} rows[/bold] in {facts['passes']} passes",
                  highlight=False)  # fmt: skip
    scaled = ", of the scaled problem" if facts["scaled"] else ""
    rows = [*_file_rows(facts), _model_row(facts), ("gap", _describe_gap(facts) + scaled)]
    console.print(_grid(rows))
    for sentence in facts["notes"]:
        console.print(f"\n{escape(sentence)}", highlight=False)


def show_predicted(n_rows: int, output: str, share: float | None) -> None:
    """Print how many rows were scored, and how many of them as they are labelled."""
    right = "" if share is None else f", {100.0 * share:.2f} % as they are labelled"
    console = Console(stderr=output == PIPE)
    console.print(f"{n_rows} rows scored{right}", highlight=False)


def show_screened(facts: Facts) -> None:
    """Print what was kept and why, how far it is proved, and how to train on it."""
    _show(
        facts,
        f", {facts['samples'] - facts['kept']} dropped",
        [_reasons(facts), _grid(_screened_rows(facts))],
        [*filter(None, [facts["reason"]]), _advice(facts)],
    )


def show_reported(facts: Facts) -> None:
    """Print where the page is, and what it says first."""
    console = Console()
    console.print(
        f"[bold]{escape(place(facts['page'], 'output'))}[/bold]: "
        # those of weight 0 among them, as on the page
        f"{facts['samples'] - facts['kept']} of "
        f"{facts['samples']} rows "
        + ("cannot change the model" if facts["certified"] else "are dropped, by a guess"),
        highlight=False,
    )
    for sentence in facts["notes"]:
        console.print(f"\n{escape(sentence)}", highlight=False)


def show_compressed(facts: Facts) -> None:
    """Print what was kept and how to train on it."""
    more = []
    if facts["weights_output"] is None and not facts["certified"]:
        more.append(
            "With --weights-output FILE the rows are chosen together with weights, and the model "
            "comes closer to that of all rows."
        )
    share = 100 * facts["kept"] / facts["samples"]
    _show(
        facts,
        f" ({share:.3g} %)",
        [_grid(_compressed_rows(facts))],
        [_compressed_advice(facts), *more],
    )


def _show(facts: Facts, how_many: str, tables: Iterable[Table], sentences: Iterable[str]) -> None:
    # rows that go to standard output are not mixed with words
    console = Console(stderr=facts["output"] == PIPE)
    console.print(
        f"[bold]{facts['kept']} of {facts['samples']} rows kept[/bold]{how_many}", highlight=False
    )
    for table in tables:
        console.print(table)
    more = (*facts["notes"], *_about_features(facts), *_about_output(facts))
    for sentence in (*sentences, *more):
        console.print(f"\n{escape(sentence)}", highlight=False)


def _grid(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and what they stand for, in markup."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")  # a long path must stay whole
    for row in rows:
        table.add_row(*row)
    return table


# which rows there are, and why they are written or not
_REASONS = {
    "dropped": summaries.REASONS["dropped"],
    "weightless": summaries.REASONS["weightless"],
    "kept": "not proved to be without influence, or proved to have one",
}


def _reasons(facts: Facts) -> Table:
    table = Table()
    table.add_column("rows")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")
    table.add_column("why")
    for name, why in _REASONS.items():
        number = facts[name]
        if number or name != "weightless":
            table.add_row(name, str(number), f"{100.0 * number / facts['samples']:.1f} %", why)
    return table


def _file_rows(facts: Facts) -> Iterator[tuple[str, str]]:
    """Where rows come from and go to, and what is in them."""
    yield "input", escape(f"{place(facts['input'], 'input')} ({facts['format']})")
    if facts["output"] is not None:
        yield "output", escape(place(facts["output"], "output"))
    target = facts["target"] or "the first number of a line"
    classes = "" if facts["classes"] is None else f": {summaries.describe_labels(facts['classes'])}"
    yield "target", escape(f"{target}{classes}")
    yield "features", escape(_describe_features(facts))


def _model_row(facts: Facts) -> tuple[str, str]:
    parameters = {**facts["parameters"], "alpha": facts["alpha"]}
    given = [f"{name} {value:g}" for name, value in parameters.items() if value]
    intercept = "with intercept" if facts["fit_intercept"] else "no intercept"
    return "model", escape(", ".join([facts["loss"], facts["penalty"], *given, intercept]))


def _screened_rows(facts: Facts) -> Iterator[tuple[str, str]]:
    yield from _file_rows(facts)
    yield _model_row(facts)
    if facts["certified"] and facts["kept"] < facts["samples"]:
        yield "proof", "[green]certified[/green]: the dropped rows cannot change the model"
    elif not facts["certified"]:
        yield "proof", "[red]not certified[/red]: a guess entered, check the model on all rows"
    yield "gap", _describe_gap(facts)
    yield "region", escape(facts["region"])


def _compressed_rows(facts: Facts) -> Iterator[tuple[str, str]]:
    yield from _file_rows(facts)
    yield _model_row(facts)
    yield "method", facts["method"]
    if facts["certified"]:
        same = "the model of the kept rows is the model of all rows"
        yield "proof", f"[green]certified[/green]: {same}"
    else:
        yield "proof", "none: the model changes, as little as so few rows allow"
    if facts["weights_output"] is not None:
        low, high = facts["weight_range"]
        yield "weights", escape(f"{facts['weights_output']} ({low:.3g} to {high:.3g})")


def _describe_gap(facts: Facts) -> str:
    relative = facts["relative_gap"]
    return "unbounded" if relative is None else f"{relative:.2g}, relative to a constant model"


def place(name: str, which: str) -> str:
    """A file by its name, and what `-` stands for."""
    return f"standard {which}" if name == PIPE else name


def _describe_features(facts: Facts) -> str:
    """How many there are, what was done to make them, and which ones are zero."""
    words = str(facts["n_features"])
    if facts["preprocessing"]:
        done = [step["transformer"] for part in facts["preprocessing"] for step in part["steps"]]
        words += f", after {', '.join(dict.fromkeys(done))}"
    zero = facts.get("zero_features")
    if zero:
        names = listed(list(map(str, zero)))
        words += f"; {len(zero)} of them are zero at every optimum: {names}"
    return words


def _advice(facts: Facts) -> str:
    """How to train on the kept rows so that the model stays the same."""
    if not facts["kept"]:
        return "No row is left: the penalty alone decides the model."
    if facts["kept"] == facts["samples"]:
        return "Train as before: all rows are there."
    if facts["alpha"] is None:
        return "Train on the kept rows with the same radius."
    return (
        f"Train on the kept rows with alpha_kept = {facts['alpha_kept']!r}, in place of "
        f"alpha = {facts['alpha']!r}, if your solver averages the loss over its rows: they are "
        "fewer now. A solver that sums the losses, as scikit-learn's SVMs with their C, needs no "
        "change."
    )


def _compressed_advice(facts: Facts) -> str:
    weights = "" if facts["weights_output"] is None else "these sample weights and "
    if facts["alpha_kept"] is None:
        return f"Train on the kept rows with {weights}the same radius."
    return (
        f"Train on the kept rows with {weights}alpha = {facts['alpha_kept']!r}, if your solver "
        "averages the loss over its rows."
    )


def _about_features(facts: Facts) -> Iterator[str]:
    if not facts["preprocessing"]:
        return
    if facts["output"] in (None, PIPE):
        where = "printed by --json"
    else:
        where = f"in {facts['preprocessing_output'] or 'the metadata of the output'}"
    yield (
        f"The transformers were fitted to all rows (what they learned is {where}), and rows are "
        "written as they are: train with these transformers, and do not fit them again to the kept "
        "rows."
    )


def _about_output(facts: Facts) -> Iterator[str]:
    if facts["output"] is None:
        yield "Nothing was written: add --output FILE for the kept rows."
