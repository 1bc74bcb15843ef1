"""What the command line shows: a bar while it works, and what was kept and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from safesift import progress
from safesift.faces import report
from safesift.regions.base import Everything
from safesift.workflows.verdicts import ScreeningResult

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


@contextmanager
def stages(work: str) -> Iterator[Callable[[str], None]]:
    """A bar on stderr, where that is a terminal; call what it yields at every new stage."""
    console = Console(stderr=True)
    bar = _PatientProgress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    task = bar.add_task("", total=None)

    def stage(description: str) -> None:
        bar.update(task, description=escape(description), total=None, completed=0, refresh=True)

    def listen(name: str, done: int, total: int) -> None:
        bar.update(task, description=f"{work}: {name}", total=total, completed=done)

    with bar if console.is_terminal else nullcontext(), progress.listening(listen):
        yield stage


def show_screened(facts: Mapping[str, Any], result: ScreeningResult) -> None:
    """Print what was kept and why, how far it is proved, and how to train on it."""
    _show(
        facts,
        f", {facts['samples'] - facts['kept']} dropped",
        _reasons(result),
        _grid(_screened_rows(facts, result)),
        sentences=(*_hints(result), _advice(result)),
    )


def show_compressed(facts: Mapping[str, Any]) -> None:
    """Print what was kept and how to train on it."""
    sentences = [_compressed_advice(facts)]
    if facts["weights_output"] is None:
        sentences.append(
            "With --weights-output FILE the rows are chosen together with weights, and the model "
            "comes closer to that of all rows."
        )
    share = 100 * facts["kept"] / facts["samples"]
    _show(facts, f" ({share:.3g} %)", _grid(_compressed_rows(facts)), sentences=sentences)


def _show(
    facts: Mapping[str, Any], how_many: str, *tables: Table, sentences: Iterable[str]
) -> None:
    console = Console()
    console.print(
        f"[bold]{facts['kept']} of {facts['samples']} rows kept[/bold]{how_many}: "
        + escape(f"{facts['input']} → {facts['output']}")
    )
    for table in tables:
        console.print(table)
    for sentence in sentences:
        console.print(f"\n{escape(sentence)}", highlight=False)


def _grid(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and what they stand for, in markup."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(overflow="fold")  # a long path must stay whole
    for row in rows:
        table.add_row(*row)
    return table


def _reasons(result: ScreeningResult) -> Table:
    table = Table()
    table.add_column("rows")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")
    table.add_column("why")
    for name, number, share, why in report.rows(result):
        table.add_row(name, str(number), f"{share:.1f} %", why)
    return table


def _screened_rows(facts: Mapping[str, Any], result: ScreeningResult) -> Iterator[tuple[str, str]]:
    if facts["certified"]:
        yield "proof", "[green]certified[/green]: the dropped rows cannot change the model"
    else:
        yield "proof", "[red]not certified[/red]: a guess entered, check the model on all rows"
    yield "gap", report.describe_gap(result)
    yield "region", escape(facts["region"])
    with_intercept = "with intercept" if facts["fit_intercept"] else "no intercept"
    model = f"{facts['loss']}, {facts['penalty']}, alpha {facts['alpha']:g}, {with_intercept}"
    yield "model", escape(model)
    if result.classes is not None:
        yield "labels", escape(report.describe_labels(result.classes))


def _compressed_rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "method", facts["method"]
    if facts["certified"]:
        same = "the model of the kept rows is the model of all rows"
        yield "proof", f"[green]certified[/green]: {same}"
    else:
        yield "proof", "none: the model changes, as little as so few rows allow"
    if facts["weights_output"] is not None:
        low, high = facts["weight_range"]
        yield "weights", escape(f"{facts['weights_output']} ({low:.3g} to {high:.3g})")


def _advice(result: ScreeningResult) -> str:
    """How to train on the kept rows so that the model stays the same."""
    problem = result.problem
    if not result.kept.any():
        return "No row is left: the penalty alone decides the model."
    if result.kept.all():
        return "Train as before: all rows are there."
    if problem.penalty.is_constraint:
        return "Train on the kept rows with the same radius."
    return (
        f"Train on the kept rows with alpha_kept = {float(result.alpha_kept)!r}, in place of "
        f"alpha = {problem.alpha!r}, if your solver averages the loss over its rows: they are "
        "fewer now. A solver that sums the losses, as scikit-learn's SVMs with their C, needs no "
        "change."
    )


def _compressed_advice(facts: Mapping[str, Any]) -> str:
    weights = "" if facts["weights_output"] is None else "these sample weights and "
    if facts["alpha"] is None:
        return f"Train on the kept rows with {weights}the same radius."
    return (
        f"Train on the kept rows with {weights}alpha = {facts['alpha']!r}, if your solver averages "
        "the loss over its rows."
    )


def _hints(result: ScreeningResult) -> Iterator[str]:
    """Why nothing was dropped, if nothing was."""
    if not result.kept.all():
        return
    problem = result.problem
    if not any(piece.is_flat for piece in problem.pieces):
        yield (
            "Nothing was dropped: this loss is flat nowhere, so every row has its influence. "
            "squared_hinge, hinge, safe_logistic and the insensitive losses have a flat piece."
        )
    elif isinstance(result.region, Everything):
        yield (
            "Nothing was dropped: the data do not bound the intercept, so no region applies; "
            "leave --intercept out."
        )
    else:
        change = "a smaller radius" if problem.penalty.is_constraint else "a larger alpha"
        yield f"Nothing was dropped: {change}, or --screening ellipsoid, may prove more."
