"""Pieces of HTML: whatever is text is escaped, and only what is made here is markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

# colours that people with any kind of sight tell apart, on white and on black
FATE_COLORS = {
    "dropped": "#4477aa",
    "folded linear": "#228833",
    "folded quadratic": "#66ccee",
    "folded": "#66ccee",
    "undecided": "#dd7733",
    "kept": "#dd7733",
    "weightless": "#999999",
}
_EMPTY = frozenset({"meta", "input", "circle", "line", "path", "rect"})
# so much of a text is shown
_LONGEST = 200


class Markup(str):
    """HTML as it is to be written, made by `element`; never of what a user's data hold."""

    __slots__ = ()


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element with its attributes and children, of which all that is no `Markup` is escaped.

    Parameters
    ----------
    name : str
        Of the element.
    *children : Markup, str or number
        None is left out.
    **attributes : str, number, True or None
        A trailing underscore is for names that Python has for itself, others stand for hyphens;
        True has no value, None is left out.

    Examples
    --------
    >>> element("p", "1 < 2", element("b", "so"), class_="note", data_row=3)
    '<p class="note" data-row="3">1 &lt; 2<b>so</b></p>'
    """
    head = name + "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_text(value)}"')
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY:
        return Markup(f"<{head}>" if name in ("meta", "input") else f"<{head}/>")
    return Markup(f"<{head}>{joined(children)}</{name}>")


def joined(children: Iterable[Any]) -> Markup:
    """One after the other, text escaped."""
    return Markup("".join(_text(child) for child in children if child is not None))


def _text(value: Any) -> str:
    # a control character has no place in a page, and some end it
    if isinstance(value, Markup):
        return value
    text = "".join(" " if ord(c) < 32 and c not in "\n\t" else c for c in str(value))
    # half of a surrogate pair, as in file names that are no UTF-8, cannot be written
    return escape(text.encode("utf-8", "replace").decode())


def brief(text: str) -> str:
    """A text, or its beginning where it is long."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


@dataclass(frozen=True)
class Share:
    """So many samples of one fate."""

    name: str
    count: int


def bar(shares: Sequence[Share]) -> Markup:
    """A bar of shares, and under it what its colours stand for; styled where it stands."""
    total = sum(share.count for share in shares) or 1
    parts = [
        element(
            "span",
            style=f"flex:{share.count} 0 0;background:{FATE_COLORS[share.name]};min-width:1px",
        )
        for share in shares
        if share.count
    ]
    told = [
        element(
            "span",
            element("span", "■ ", style=f"color:{FATE_COLORS[share.name]}", aria_hidden="true"),
            f"{share.name} {share.count:,} ({100 * share.count / total:.1f} %)",
            style="display:inline-block;margin-right:1.2em",
        )
        for share in shares
    ]
    label = ", ".join(f"{share.name} {share.count}" for share in shares)
    strip = element(
        "div", *parts, role="img", aria_label=label,
        style="display:flex;height:.8em;border-radius:3px;overflow:hidden;max-width:40em;"
        "background:#8884",
    )  # fmt: skip
    legend = element("div", *told, style="font-size:.9em;margin:.3em 0;line-height:1.6")
    return joined([strip, legend])


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]], **attributes: Any) -> Markup:
    """A table with a line of headings; cells that are numbers stand on the right."""
    headings = element("tr", *(element("th", name, scope="col") for name in head))
    lines = [element("tr", *map(_cell, row)) for row in rows]
    return element("table", element("thead", headings), element("tbody", *lines), **attributes)


def _cell(value: Any) -> Markup:
    if isinstance(value, int | float):
        return element("td", number(value), style="text-align:right")
    return element("td", value)


def number(value: float) -> str:
    """A number in a few digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
