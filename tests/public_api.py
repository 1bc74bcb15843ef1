"""The names and signatures that users see; `python -m tests.public_api` writes them down anew."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import safesift as ss

SNAPSHOT = Path(__file__).parent / "snapshots" / "public_api.json"


def described() -> dict[str, Any]:
    """Every public name: the signature of a function, the members of a class or module."""
    return {name: _described(getattr(ss, name)) for name in sorted(ss.__all__)}


def _described(thing: Any) -> Any:
    if inspect.ismodule(thing):
        return {name: _described(getattr(thing, name)) for name in sorted(_exported(thing))}
    if inspect.isclass(thing):
        return {name: _member(value) for name, value in sorted(_members(thing).items())}
    if callable(thing):
        return _signature(thing)
    return type(thing).__name__


def _exported(module: Any) -> list[str]:
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return getattr(module, "__all__", own)


def _members(kind: type) -> dict[str, Any]:
    """What the library itself adds to a class: its own members and those of its own bases."""
    members = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("safesift"):
            members |= vars(base)
            members |= dict.fromkeys(getattr(base, "__annotations__", {}), "field")
    public = {name: value for name, value in members.items() if not name.startswith("_")}
    return {**public, "__init__": kind}


def _member(value: Any) -> str:
    if isinstance(value, type):
        return _signature(value)
    if isinstance(value, staticmethod | classmethod):
        return _signature(value.__func__)
    return _signature(value) if inspect.isfunction(value) else "attribute"


def _signature(thing: Any) -> str:
    """Names, kinds and defaults of the parameters; what they are annotated with may move."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return "callable"
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


if __name__ == "__main__":
    SNAPSHOT.parent.mkdir(exist_ok=True)
    SNAPSHOT.write_text(json.dumps(described(), indent=1) + "\n")
