"""What numpydoc has to say against the docstrings of the public names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import safesift as ss
from tests.public_api import _exported

# a summary; parameters that are those of the signature, in its order; what is returned or yielded.
# Its checks of style (capitals, full stops, blank lines) are not ours.
CHECKS = frozenset({"GL08", "SS01", "SS06", "PR01", "PR02", "PR03", "RT01", "RT02", "YD01"})
# of a method one sentence is often all there is to say; if its parameters are listed, then all
METHOD_CHECKS = frozenset({"SS01", "PR01", "PR02", "PR03"})


def public_names() -> dict[str, Any]:
    """Every function and class that users may call, by the name under which they find it."""
    found = {}
    for name in ss.__all__:
        thing = getattr(ss, name)
        inside = _exported(thing) if inspect.ismodule(thing) else ()
        found |= {f"{name}.{one}": getattr(thing, one) for one in inside} or {name: thing}
    return {name: thing for name, thing in found.items() if callable(thing)}


def complaints(name: str, thing: Any) -> Iterator[str]:
    """Of a public name and, if it is a class, of the methods that the library gave it."""
    yield from _complaints(name, thing, CHECKS)
    for member, method in _methods(thing):
        where = f"{name}.{member}"
        if not inspect.getdoc(getattr(thing, member)) and member not in _attributes(thing):
            yield f"{where}: has no docstring"
        elif inspect.isfunction(method) and method.__doc__:
            yield from _complaints(where, method, METHOD_CHECKS)


def _complaints(name: str, thing: Any, checks: frozenset[str]) -> Iterator[str]:
    from numpydoc.docscrape import get_doc_object
    from numpydoc.validate import validate

    doc = get_doc_object(thing)
    excused = set()
    if _all_are_attributes(thing) or (checks is METHOD_CHECKS and not doc["Parameters"]):
        excused.add("PR01")
    if _is_in_order(thing, doc):
        excused.add("PR03")
    for code, words in validate(doc)["errors"]:
        if code in checks - excused:
            yield f"{name}: {code} {words}"


def _methods(thing: Any) -> Iterator[tuple[str, Any]]:
    if not inspect.isclass(thing):
        return
    for member in dir(thing):
        method = inspect.getattr_static(thing, member)
        method = getattr(method, "__func__", getattr(method, "fget", method))
        ours = getattr(method, "__module__", None) or ""
        if not member.startswith("_") and inspect.isroutine(method) and ours.startswith("safesift"):
            yield member, method


def _is_in_order(thing: Any, doc: Any) -> bool:
    """But for groups, "X, y, loss: as for `screen`", which come first whatever is in them."""
    order = _parameters(thing)
    alone = [order.index(one.name) for one in doc["Parameters"] if one.name in order]
    return alone == sorted(alone)


def _all_are_attributes(thing: Any) -> bool:
    """Whether a class that only holds things documents them as its attributes."""
    if not inspect.isclass(thing):
        return False
    return set(_parameters(thing)) <= _attributes(thing)


def _parameters(thing: Any) -> list[str]:
    """Of the signature; an exception has none."""
    try:
        return list(inspect.signature(thing).parameters)
    except ValueError:
        return []


def _attributes(kind: type) -> set[str]:
    """What a class, or a class that it is made from, documents of itself."""
    from numpydoc.docscrape import ClassDoc

    documented = [ClassDoc(base) for base in kind.__mro__ if base.__module__.startswith("safesift")]
    entries = [
        entry for doc in documented for part in ("Attributes", "Parameters") for entry in doc[part]
    ]
    return {name.strip() for entry in entries for name in entry.name.split(",")}
