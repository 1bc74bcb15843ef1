"""Tables, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


def wide_console() -> Console:
    """The terminal, or room enough for the tables where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=140)


@dataclass
class Sheet:
    """A title, columns and rows of text; the first `n_names` columns name what is in the others."""

    title: str
    columns: Sequence[str]
    n_names: int = 1
    rows: list[Sequence[str]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        self.rows.append(cells)

    def table(self) -> Table:
        table = Table(title=self.title, title_justify="left")
        for k, column in enumerate(self.columns):
            table.add_column(column, justify="left" if k < self.n_names else "right")
        for row in self.rows:
            table.add_row(*row)
        return table

    def markdown(self) -> str:
        rule = ["---"] * self.n_names + ["---:"] * (len(self.columns) - self.n_names)
        lines = [self.columns, rule, *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"## {self.title}\n\n{body}\n"


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
