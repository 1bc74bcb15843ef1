"""Modules of compiled loops as plain Python, so that a mistake can be written into them."""

from __future__ import annotations

import re
from typing import Any


def interpreted(source: str, given: dict[str, Any]) -> dict[str, Any]:
    """The names of a module of compiled loops, as plain Python: overloads are called by hand.

    Parameters
    ----------
    source : str
    given : dict
        What it imports from the library.
    """
    source = re.sub(r"^from (numba|safesift).*$", "", source, flags=re.MULTILINE)
    source = source.replace('matrix[0].layout == "F"', "not matrix[0].flags.c_contiguous")
    names: dict[str, Any] = dict.fromkeys(("njit", "inlined", "cached_njit"), _plain)
    names |= {"overload": lambda *_, **__: _plain, "OPTIONS": {}, "__name__": "loops"} | given
    exec(compile(source, "loops", "exec"), names)
    for name in (
        "row", "row_dot", "row_add", "rows_dot", "rows_add", "skips", "slope_and_value",
        "second_order",
    ):  # fmt: skip
        if f"_{name}" in names:
            names[name] = _by_hand(names[f"_{name}"])
    return names


def _plain(*arguments: Any, **options: Any) -> Any:
    """In place of decorators that compile."""
    return arguments[0] if arguments and callable(arguments[0]) else lambda function: function


def _by_hand(chosen: Any) -> Any:
    return lambda *arguments: chosen(*arguments)(*arguments)
