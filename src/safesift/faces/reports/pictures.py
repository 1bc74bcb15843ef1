"""Pictures that a page holds in itself: inline SVG, and the numbers behind it for the script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.faces.markup import Markup, element

Array = NDArray[np.float64]

WIDTH, HEIGHT = 760, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 14, 42


@dataclass(frozen=True)
class Scale:
    """From numbers to places along an edge of a picture."""

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool = False

    def __call__(self, values: Any) -> Array:
        values = np.asarray(values, dtype=float)
        low, high = self.low, self.high
        if self.logarithmic:
            values, low, high = np.log(values), np.log(low), np.log(high)
        share = (np.clip(values, min(low, high), max(low, high)) - low) / ((high - low) or 1.0)
        return self.begin + share * (self.end - self.begin)

    @property
    def ticks(self) -> Array:
        """About five round numbers."""
        if self.logarithmic:
            low, high = sorted(np.log10([self.low, self.high]))
            step = max(1, int(np.ceil((high - low) / 6)))
            whole = 10.0 ** np.arange(np.ceil(low - 1e-9), np.floor(high + 1e-9) + 1, step)
            return whole if len(whole) > 1 else np.array([self.low, self.high])
        rough = (self.high - self.low) / 5 or 1.0
        size = 10.0 ** np.floor(np.log10(rough))
        step = next(size * k for k in (1, 2, 5, 10) if size * k >= rough * (1 - 1e-9))
        first = np.ceil(self.low / step - 1e-9)
        return step * np.arange(first, np.floor(self.high / step + 1e-9) + 1)


def across(low: float, high: float, **how: Any) -> Scale:
    """A scale from left to right."""
    return Scale(low, high, _LEFT, WIDTH - _RIGHT, **how)


def upwards(low: float, high: float) -> Scale:
    """A scale from the bottom to the top."""
    return Scale(low, high, HEIGHT - _BOTTOM, _TOP)


@dataclass(frozen=True, eq=False)
class Dots:
    """Points of one kind: a class of the style sheet, and a place for each."""

    kind: str
    x: Array
    y: Array

    @property
    def markup(self) -> Markup:
        places = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in zip(self.x, self.y, strict=True))
        return element("path", d=places or "M0 0", class_=f"dots {self.kind}")


@dataclass(frozen=True, eq=False)
class Picture:
    """Axes, and what is drawn between them.

    Attributes
    ----------
    name : str
        By which the script knows it.
    title, x_label, y_label : str
    x, y : Scale
    marks : sequence of Markup
    """

    name: str
    title: str
    x: Scale
    y: Scale
    x_label: str
    y_label: str
    marks: Sequence[Markup] = field(default_factory=tuple)

    @property
    def markup(self) -> Markup:
        """A picture that can be walked along with the arrow keys, where the script runs."""
        drawn = element(
            "svg",
            element("title", self.title),
            *self._grid(),
            *self.marks,
            element("circle", r=6, cx=-99, cy=-99, class_="here"),
            viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", tabindex=0, id=self.name,
        )  # fmt: skip
        told = element("output", class_="told", id=f"{self.name}-told", aria_live="polite")
        return element("figure", drawn, told)

    def _grid(self) -> list[Markup]:
        bottom, top = HEIGHT - _BOTTOM, _TOP
        marks: list[Markup] = []
        for value in self.x.ticks:
            (place,) = self.x([value])
            marks.append(_label(place, bottom + 16, _tick(value), "middle"))
        for value in self.y.ticks:
            (place,) = self.y([value])
            marks.append(
                element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=place, y2=place, class_="grid")
            )
            marks.append(_label(_LEFT - 8, place + 4, _tick(value), "end"))
        middle = (top + bottom) / 2
        marks.append(_label((_LEFT + WIDTH) / 2, HEIGHT - 6, self.x_label, "middle", "name"))
        turned = f"rotate(-90 14 {middle})"
        marks.append(_label(14, middle, self.y_label, "middle", "name", transform=turned))
        return marks


def _tick(value: float) -> str:
    return f"{value + 0.0:g}"  # 0 has no sign


def _label(x: float, y: float, text: str, anchor: str, kind: str = "tick", **more: Any) -> Markup:
    return element(
        "text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind, **more
    )


def level_line(y: Scale, value: float) -> Markup:
    """A line across the picture."""
    (place,) = y([value])
    return element("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=place, y2=place, class_="level")


def curve(x: Array, y: Array, kind: str) -> Markup:
    """A line through points."""
    places = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    return element("path", d=f"M{places}", class_=f"curve {kind}")


def upright(x: float) -> Markup:
    """A line from the bottom to the top, which the script moves."""
    return element(
        "line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=_TOP, y2=HEIGHT - _BOTTOM, class_="upright"
    )
