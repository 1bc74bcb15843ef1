"""The skeleton of a page: sections, style and script in one file that asks for nothing else."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from safesift.faces.markup import Markup, element, joined


@dataclass(frozen=True)
class Section:
    """A part of a page, with the anchor by which it is found."""

    anchor: str
    title: str
    body: Markup

    @property
    def markup(self) -> Markup:
        title = element("h2", self.title, id=f"{self.anchor}-title")
        named = f"{self.anchor}-title"
        return element("section", title, self.body, id=self.anchor, aria_labelledby=named)


def page(title: str, sub: str, sections: Sequence[Section], data: Mapping[str, Any]) -> str:
    """The whole page; `data` are for the script."""
    style, script = (files(__package__).joinpath(name).read_text("utf-8") for name in _ASSETS)
    links = [element("li", element("a", one.title, href=f"#{one.anchor}")) for one in sections]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(style)),
    )
    body = element(
        "body",
        element("header", element("h1", title), element("p", sub, class_="sub")),
        element("nav", element("ul", *links), aria_label="sections"),
        element("main", joined(one.markup for one in sections)),
        element("script", _as_json(data), type="application/json", id="data"),
        element("script", Markup(script)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


_ASSETS = ("page.css", "page.js")


def _as_json(data: Mapping[str, Any]) -> Markup:
    # within a script only "<" could end it
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c"))


def _policy(script: str) -> str:
    """Nothing is fetched, and no script runs but the page's own, whatever cells may hold."""
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{allowed}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
