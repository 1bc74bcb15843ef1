"""Axes and colours of the pictures; matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY, BLUE, ORANGE, GREEN, RED = (
    "#333333", "#999999", "#4477aa", "#dd7733", "#228833", "#aa3377",
)  # fmt: skip


def axes_in_a_row(n: int, height: float = 4.0) -> tuple[Figure, list[Axes]]:
    """A new figure with some axes beside each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * n, height), layout="constrained", facecolor="white")
    axes = list(figure.subplots(1, n, squeeze=False)[0])
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes
