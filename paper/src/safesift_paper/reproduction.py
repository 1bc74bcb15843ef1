"""What `safesift reproduce` does: run what is not finished, then write the page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from safesift import progress
from safesift_paper import experiments
from safesift_paper.experiments import render, runner
from safesift_paper.experiments.spec import Experiment


def run(options: Mapping[str, Any]) -> None:
    """Run experiments; the options are those of the command, by their names.

    Exits with 1 if a data set could not be had, after everything else was done.
    """
    chosen = _chosen(options["names"])
    plan = runner.Plan(
        options["out"], options["quick"], runner.plan_stand_ins(options["stand_ins"])
    )
    console = Console(stderr=True)
    missing = {} if options["page_only"] else _run_all(chosen, plan, console)
    page = options["page"] or plan.folder / "reproduction.md"
    render.write_page(_shown(chosen, plan), plan, page)
    print(f"The page is {page}.")
    for sentence in missing:
        console.print(f"[red]Missing:[/red] {sentence}", highlight=False, soft_wrap=True)
    if missing:
        sys.exit(1)


def _run_all(chosen: list[Experiment], plan: runner.Plan, console: Console) -> dict[str, None]:
    """A sentence for every data set that could not be had, once."""
    missing: dict[str, None] = {}
    with _bar(console):
        for experiment in chosen:
            told = runner.run(experiment, plan, lambda line: console.print(line, highlight=False))
            missing |= dict.fromkeys(told)
    return missing


def _chosen(names: tuple[str, ...]) -> list[Experiment]:
    if "all" in names:
        names = experiments.NAMES
    for name in names:
        if name not in experiments.NAMES:
            raise ValueError(
                f"{name} is no experiment: choose among {', '.join(experiments.NAMES)} and all."
            )
    return [experiments.load(name) for name in dict.fromkeys(names)]


def _shown(chosen: list[Experiment], plan: runner.Plan) -> list[Experiment]:
    """Those that were chosen, and those that have results of earlier runs, in the paper's order."""
    every = [experiments.load(name) for name in experiments.NAMES]
    return [one for one in every if one in chosen or plan.finished(one)]


@contextmanager
def _bar(console: Console) -> Iterator[None]:
    """A bar for what is going on inside a cell, where somebody looks at it."""
    if not console.is_terminal:
        yield
        return
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console,
        transient=True,
    )  # fmt: skip
    task = bar.add_task("", total=None)

    def listen(stage: str, done: int, total: int) -> None:
        bar.update(task, description=stage, total=total, completed=done)

    with bar, progress.listening(listen):
        yield
