"""The picture of the demo: the margins of all samples, and what easy and hard ones look like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray

if TYPE_CHECKING:
    from safesift.faces.demo import Outcome

_DROPPED, _KEPT, _INK = "#4477aa", "#dd7733", "#333333"
_GRID_COLUMNS = 6


def draw(outcome: Outcome, path: Path) -> None:
    """Draw it to a file, in the format of its extension."""
    figure = Figure(figsize=(13, 6.2), dpi=150, layout="constrained", facecolor="white")
    left, right = figure.subfigures(1, 2, width_ratios=[1.1, 1])
    _draw_margins(left.subplots(), outcome)
    keep, margins = outcome.result.keep, outcome.margins
    top, bottom = right.subfigures(2, 1)
    _draw_digits(top, outcome, _first_of_each(outcome, np.where(keep, np.inf, -margins)), _DROPPED)
    _draw_digits(bottom, outcome, _first(outcome, np.where(keep, margins, np.inf)), _KEPT)
    top.suptitle("Dropped: easy ones", color=_DROPPED, fontweight="bold")
    bottom.suptitle("Kept: the hardest ones", color=_KEPT, fontweight="bold")
    figure.savefig(path)


def _draw_margins(axes: Axes, outcome: Outcome) -> None:
    order = np.argsort(outcome.margins)
    margins, kept = outcome.margins[order], outcome.result.keep[order]
    rank = np.arange(len(order))
    for rows, color in ((kept, _KEPT), (~kept, _DROPPED)):
        axes.fill_between(rank, 1.0, margins, where=rows, color=color, alpha=0.18, lw=0)
        axes.scatter(rank[rows], margins[rows], s=7, color=color, lw=0)
    axes.axhline(1.0, color=_INK, lw=1.2, ls="--")
    axes.set_xlim(-0.01 * len(order), 1.01 * len(order))
    _label(axes, kept, margins)


def _label(axes: Axes, kept: NDArray[np.bool_], margins: NDArray[np.float64]) -> None:
    n, n_kept = len(kept), int(kept.sum())
    axes.set_title(
        f"{n - n_kept} of {n} samples cannot change the model", fontweight="bold", loc="left"
    )
    axes.set_xlabel("samples, from the hardest to the easiest")
    axes.set_ylabel("margin: how clearly the model is right")
    axes.text(
        0.99 * n, 0.93, "above 1 the loss is flat: no influence", ha="right", va="top", color=_INK
    )
    axes.text(
        n_kept * 1.15, margins.min(), f"{n_kept} kept", color=_KEPT, fontweight="bold", fontsize=13
    )
    axes.text(
        0.55 * n, np.quantile(margins, 0.97), f"{n - n_kept} dropped", color=_DROPPED,
        fontweight="bold", fontsize=13, ha="center",
    )  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)


def _first(outcome: Outcome, order: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """The first samples in an order: a row of the digit, and a row of the others."""
    return [
        np.argsort(np.where(rows, order, np.inf))[:_GRID_COLUMNS]
        for rows in (outcome.y > 0, outcome.y < 0)
    ]


def _first_of_each(outcome: Outcome, order: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """The same, with different digits among the others."""
    first = np.full_like(order, np.inf)
    for digit in np.unique(outcome.digits):
        best = np.argmin(np.where(outcome.digits == digit, order, np.inf))
        first[best] = digit
    return [_first(outcome, order)[0], _first(outcome, first)[1]]


def _draw_digits(
    figure: SubFigure, outcome: Outcome, rows: list[NDArray[np.intp]], color: str
) -> None:
    grid = figure.subplots(2, _GRID_COLUMNS)
    for axes, sample in zip(grid.flat, np.concatenate(rows), strict=True):
        axes.imshow(outcome.images[sample], cmap="gray_r", interpolation="bicubic")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(color=color, lw=1.5)
    for axes, name in zip(grid[:, 0], (f"{outcome.digit}s", "others"), strict=True):
        axes.set_ylabel(name, color=_INK)
