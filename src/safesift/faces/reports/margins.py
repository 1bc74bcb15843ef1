"""How near every sample is to where it would not count, as a picture to walk along."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.faces import summaries
from safesift.faces.margins import Excess
from safesift.faces.markup import Markup, element, joined, number
from safesift.faces.reports.cells import shown
from safesift.faces.reports.pictures import Dots, Picture, across, level_line, upwards
from safesift.faces.reports.subject import Subject

# so many samples are drawn at most, evenly along their order
_DRAWN = 2500

Rows = NDArray[np.intp]


def _evenly(order: Rows) -> Rows:
    """Places in an order, the first and the last among them."""
    return np.unique(np.linspace(0, len(order) - 1, min(_DRAWN, len(order))).round().astype(int))


def margins(subject: Subject) -> tuple[Markup, dict[str, Any]] | None:
    """The picture, and what the script says of its points; None where nothing was screened."""
    result = subject.screening
    if result is None:
        return None
    excess = Excess.of(result)
    order = excess.order(result.kept)
    places = _evenly(order)
    rows, (low, high) = order[places], excess.limits
    x, y = across(0, max(len(order) - 1, 1)), upwards(low, high)
    at, kept = excess.at_centre[rows], result.kept[rows]
    dots = [
        Dots(kind, x(places[mask]), y(at[mask])).markup
        for kind, mask in (("dropped", ~kept), ("kept", kept))
    ]
    title = f"{int(kept.sum())} kept and {int((~kept).sum())} dropped samples of those drawn"
    drawn = Picture(
        "margins", title, x, y, "samples, dropped ones first", excess.axis,
        [level_line(y, 0.0), *dots],
    )  # fmt: skip
    data = {"x": _rounded(x(places)), "y": _rounded(y(at)), "told": _told(subject, rows)}
    return joined([_explained(len(rows), len(order), excess), drawn.markup]), data


def _explained(n_drawn: int, n: int, excess: Excess) -> Markup:
    some = "" if n_drawn == n else f" {n_drawn:,} of {n:,} samples are drawn."
    zero = (
        "Below the line a sample does not pull at the model that was found. "
        if "flat" in excess.axis
        else "This loss is flat nowhere: every sample pulls at the model. "
    )
    how = "Point at the picture, or walk along it with the arrow keys."
    return element("p", zero + how + some)


def _told(subject: Subject, rows: Rows) -> list[str]:
    """A line for each sample."""
    result = subject.screening
    assert result is not None
    fates = summaries.fates_of(result, rows)
    says = [""] * len(rows)
    if subject.decision.ndim == 1:
        ends = zip(result.lower[rows].tolist(), result.upper[rows].tolist(), strict=True)
        sure = "at every optimum" if result.certified else "if the guess holds"
        says = [f", between {number(a)} and {number(b)} {sure}" for a, b in ends]
    known = zip(rows.tolist(), subject.targets[rows], fates, says, strict=True)
    return [f"row {row} ({_target(target)}): {fate}{said}" for row, target, fate, said in known]


def _target(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value[0]:.4g} to {value[1]:.4g}"
    return shown(value)


def left_out(subject: Subject) -> tuple[Markup, dict[str, Any]] | None:
    """What models say with a sample and without it; None where no models are without."""
    loo = subject.loo
    if loo is None or loo.decision.ndim > 1:
        return None
    order = np.argsort(loo.fitted, kind="stable")
    rows = order[_evenly(order)]
    with_it, without = loo.fitted[rows], loo.decision[rows]
    suspect = np.isin(rows, loo.suspects(20))
    low, high = (float(end(np.append(with_it, without))) for end in (np.min, np.max))
    x, y = across(low, high), upwards(low, high)
    dots = [
        Dots(kind, x(with_it[mask]), y(without[mask])).markup
        for kind, mask in (("dropped", ~suspect), ("kept", suspect))
    ]
    drawn = Picture(
        "left-out", "What the model says of each sample with it and without it", x, y,
        "with the sample", "without it", dots,
    )  # fmt: skip
    told = [
        f"row {row} ({_target(loo.y[row])}): {number(float(a))} with it, {number(float(b))} without"
        for row, a, b in zip(rows.tolist(), with_it, without, strict=True)
    ]
    text = (
        "How far a sample pulls what the model says of it: on the diagonal not at all. The twenty "
        "most doubtful ones stand out."
    )
    data = {"x": _rounded(x(with_it)), "y": _rounded(y(without)), "told": told}
    return joined([element("p", text), drawn.markup]), data


def _rounded(values: NDArray) -> list[float]:
    return np.round(values, 1).tolist()
