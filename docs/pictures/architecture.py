"""Draws architecture.png: the layers, and the way of a sample through them."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

LAYERS = (
    {"cli": "the command"},
    {"faces": "plots, reports, files"},
    {"estimators": "scikit-learn classes"},
    {"workflows": "screen, path, compress, mine, track, …"},
    {"solvers": "driver · proposals · screening"},
    {"regions": "sets that contain every optimum"},
    {"problem": "risk · evaluation · dual · certificate · decisions"},
    {"losses": "f and its pieces", "penalties": "R", "design": "whatever has rows"},
    {"arithmetic": "floats that know their error, threads, compiled loops"},
)
STEPS = {
    "rows and targets": "design, losses",
    "problem": "samples + alpha·R",
    "evaluation": "one pass, shared by all classes and folds",
    "certificate": "point, dual point, gap, rounding",
    "region → set": "contains every optimum",
    "bounds": "lower ≤ aᵢᵀx* ≤ upper",
    "decisions": "strictly inside a piece: dropped or folded",
    "result": "screen: here · solver: next proposal ↺",
}
COLORS = {"problem": "#dd7733", "regions": "#4477aa", "solvers": "#228833"}
GREY, INK, TOP = "#777777", "#333333", 7.2


def main() -> None:
    figure = Figure(figsize=(11, 6.4), dpi=150, layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.axis("off")
    axes.set(xlim=(0, 11), ylim=(0, TOP + 0.2))
    for i, layer in enumerate(LAYERS):
        width, y = 5.6 / len(layer), TOP - 0.8 * (i + 1) + 0.12
        for j, (name, words) in enumerate(layer.items()):
            color = COLORS.get(name, GREY)
            _box(axes, (0.15 + j * width, y, width - 0.12, 0.6), name, words, color)
    _arrow(axes, 5.95, TOP - 0.05, 0.2)
    axes.text(6.02, TOP - 0.25, "imports", fontsize=8, color=GREY, rotation=-90, va="top")
    height = TOP / len(STEPS)
    for k, (name, words) in enumerate(STEPS.items()):
        y = TOP - height * (k + 1) + 0.12
        _box(axes, (6.7, y, 4.0, height - 0.3), name, words, INK)
        if k + 1 < len(STEPS):
            _arrow(axes, 8.7, y - 0.02, y - 0.16)
    figure.savefig(Path(__file__).with_suffix(".png"))


def _box(
    axes: Axes, place: tuple[float, float, float, float], name: str, words: str, color: str
) -> None:
    x, y, width, height = place
    style = "round,pad=0.02,rounding_size=0.06"
    box = FancyBboxPatch((x, y), width, height, boxstyle=style, fc="white", ec=color, lw=1.6)
    axes.add_patch(box)
    middle = {"x": x + width / 2, "ha": "center", "va": "center"}
    axes.text(**middle, y=y + 0.66 * height, s=name, fontsize=11, fontweight="bold", color=color)
    axes.text(**middle, y=y + 0.26 * height, s=words, fontsize=8, color=INK)


def _arrow(axes: Axes, x: float, start: float, end: float) -> None:
    arrow = {"arrowstyle": "->", "color": GREY, "lw": 1.4}
    axes.annotate("", xy=(x, end), xytext=(x, start), arrowprops=arrow)


if __name__ == "__main__":
    main()
