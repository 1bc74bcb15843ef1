"""Which features matter, at one alpha and along all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.faces.markup import Markup, element, joined, table
from safesift.faces.reports.cells import shown
from safesift.faces.reports.pictures import Picture, across, curve, upright, upwards
from safesift.faces.reports.subject import Subject
from safesift.workflows.path import PathResult

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

# so many features are listed, and drawn along a path
_LISTED, _CURVES = 20, 6
# of more classes only the largest effect is shown
_CLASSES = 6


def effects(subject: Subject) -> Array | None:
    """Of every feature, how much a step of one standard deviation does, for each problem."""
    spread, coefs = subject.spreads, subject.coefs
    return None if spread is None or coefs is None else coefs * spread


def most_important(effect: Array, most: int) -> Columns:
    """The features that do something, the largest effects first."""
    size = np.abs(effect).max(axis=0)
    first = np.argsort(-size, kind="stable")[:most]
    return first[size[first] > 0]


def important(subject: Subject) -> Markup | None:
    """A table of the features with the largest effects."""
    effect = effects(subject)
    if effect is None or subject.coefs is None:
        return None
    chosen = most_important(effect, _LISTED)
    if not len(chosen):
        return element("p", "All coefficients are 0: the model is the same for every sample.")
    largest = np.abs(effect).max()
    rows = [
        (subject.feature(int(column)), *_columns(subject, effect, int(column)),
         _bar(np.abs(effect[:, column]).max() / largest))
        for column in chosen
    ]  # fmt: skip
    text = (
        "What a step of one standard deviation in a feature does to what the model says; so "
        "features in different units can be compared."
    )
    n_used = int((np.abs(subject.coefs).max(axis=0) > 0).sum())
    more = f" {len(chosen)} of {n_used} features that are used are listed."
    listed = element("div", table(_head(subject, effect), rows), class_="wide")
    return joined([element("p", text + more), listed])


def _head(subject: Subject, effect: Array) -> list[str]:
    if len(effect) == 1:
        return ["feature", "coefficient", "effect", ""]
    if len(effect) > _CLASSES or subject.classes is None:
        return ["feature", "largest effect", ""]
    return ["feature", *(f"effect for {shown(label)}" for label in subject.classes), ""]


def _columns(subject: Subject, effect: Array, column: int) -> list[float]:
    assert subject.coefs is not None
    own = effect[:, column]
    if len(own) == 1:
        return [float(subject.coefs[0, column]), float(own[0])]
    if len(own) > _CLASSES:
        return [float(own[np.abs(own).argmax()])]
    return own.tolist()


def _bar(share: float) -> Markup:
    return element("span", style=f"width:{6 * share:.3f}em", class_="bar", aria_hidden="true")


# --- along alpha ------------------------------------------------------------------------------


def along(subject: Subject) -> tuple[Markup, dict[str, Any]] | None:
    """Coefficients along a path, with a slider; and what the script shows at every level."""
    path = subject.path
    if path is None or len(path.alphas) < 2:
        return None
    spread = subject.spreads
    scale = np.ones(path.coefs.shape[1]) if spread is None else spread
    # a large alpha, and a small radius, hold the coefficients back most
    order = np.argsort(path.alphas if path.parameter == "radius" else -path.alphas, kind="stable")
    chosen = most_important(path.coefs * scale, _CURVES)
    lines = (path.coefs * scale)[order][:, chosen]
    x = across(path.alphas[order[0]], path.alphas[order[-1]], logarithmic=True)
    low, high = float(min(lines.min(initial=0.0), 0.0)), float(max(lines.max(initial=0.0), 0.0))
    y = upwards(low, high if high > low else low + 1.0)
    places = x(path.alphas[order])
    curves = [curve(places, y(line), f"c{k}") for k, line in enumerate(lines.T)]
    label = "effects" if spread is not None else "coefficients"
    drawn = Picture(
        "path", f"The largest {label} along {path.parameter}", x, y, path.parameter, label,
        [*curves, upright(places[0])],
    )  # fmt: skip
    names = [subject.feature(int(column)) for column in chosen]
    data = {"x": np.round(places, 1).tolist(), "levels": _levels(path, order), "names": names,
            "values": [[float(f"{v:.4g}") for v in line] for line in lines]}  # fmt: skip
    return joined([_slider(path), drawn.markup, _legend(names)]), data


def _levels(path: PathResult, order: NDArray) -> list[str]:
    """What there is to say of every level."""
    return [
        f"{path.parameter} = {path.alphas[k]:.4g}: {path.n_kept[k]:,} samples kept, "
        f"{path.n_undecided[k]:,} undecided, {int((path.coefs[k] != 0).sum()):,} features used, "
        f"relative duality gap {path.relative_gaps[k]:.2g}"
        for k in order
    ]


def _slider(path: PathResult) -> Markup:
    return element(
        "p",
        element("label", f"{path.parameter}, from the most to the least regularised model ",
                for_="level"),
        element("input", type="range", id="level", min=0, max=len(path.alphas) - 1, value=0,
                step=1),
        element("output", id="level-told", for_="level", aria_live="polite"),
    )  # fmt: skip


def _legend(names: list[str]) -> Markup:
    return element("ul", *(
        element("li", element("span", "▬ ", class_=f"c{k}", aria_hidden="true"), name, " ",
                element("b", class_="value"))
        for k, name in enumerate(names)
    ), class_="legend", id="path-values")  # fmt: skip
