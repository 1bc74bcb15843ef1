"""The tables of `paths_vs_peers.py`."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def wide_console() -> Console:
    """The terminal, or room enough for the tables where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


def paths_table(records: list[dict[str, Any]]) -> Table:
    return _ratios("Paths: total seconds, best peer over ours", "path", records)


def singles_table(records: list[dict[str, Any]]) -> Table:
    return _ratios("Single fits at alpha = 1e-4", "single", records)


def peers_table(record: dict[str, Any]) -> Table:
    """Every solver of one case; > where it did not reach the gap in the time it was given."""
    table = Table(title=f"{record['case']}, {record['n_alphas']} alphas", title_justify="left")
    for column in ("solver", "storage"):
        table.add_column(column)
    for column in ("path s", "gap", "by value s", "single s", "gap"):
        table.add_column(column, justify="right")
    for name, solver in record["solvers"].items():
        path, single = solver["path"], solver["single"]
        table.add_row(
            name, solver["storage"] or "", _seconds(path), _gap(path),
            f"{path['seconds_by_excess']:.3g}", _seconds(single), _gap(single),
        )  # fmt: skip
        if solver["failure"]:
            table.add_row("", solver["failure"])
    return table


def _ratios(title: str, stage: str, records: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("data / task", "best peer"):
        table.add_column(column)
    for column in ("peer s", "ours s", "ratio", "by value", "target", "met"):
        table.add_column(column, justify="right")
    for record in records:
        found = record[stage]
        table.add_row(record["case"], *_cells(found))
    return table


def _cells(found: dict[str, Any]) -> list[str]:
    ours = f"{found['ours']:.3g}" + ("" if found["ours_reached"] else " (gap missed)")
    target = "" if found["target"] is None else f"{found['target']:.3g}"
    if found["ratio"] is None:
        return ["none", "", ours, "", "", target, ""]
    bound = "≥ " if found["at_least"] else ""
    met = {None: "", True: "[green]yes[/green]", False: "[red]no[/red]"}[found["met"]]
    return [
        found["peer"], f"{found['seconds']:.3g}", ours, f"{bound}{found['ratio']:.3g}",
        f"{found['ratio_by_excess']:.3g}", target, met,
    ]  # fmt: skip


def _seconds(stage: dict[str, Any]) -> str:
    return f"{'' if stage['reached'] else '> '}{stage['seconds']:.3g}"


def _gap(stage: dict[str, Any]) -> str:
    return f"{stage['gap']:.0e}"
