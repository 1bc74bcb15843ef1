"""The tables and figures of the paper, each run by one command: see docs/reproduction.md."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safesift_paper.experiments.spec import Experiment

NAMES = (
    "table1", "table2", "table3", "table4", "figure1", "figure2", "figure3", "figure4", "figure5",
    "figure6", "figure7", "figure8", "features",
)  # fmt: skip


def load(name: str) -> Experiment:
    """The experiment of that name."""
    return import_module(f"safesift_paper.experiments.{name}").EXPERIMENT
