"""This package is a user of safesift like any other: it needs only what users may rely on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import safesift
import safesift_paper

# documented for programs that show how far long work is, but not among safesift's names
DOCUMENTED = {("safesift", "progress")}
PUBLIC_MODULES = ("safesift", "safesift.cli", *(f"safesift.{name}" for name in safesift.__all__))


def test_only_public_names_of_safesift_are_imported():
    folder = Path(safesift_paper.__file__).parent
    hidden = {
        (str(path.relative_to(folder)), f"{module}.{name}")
        for path in folder.rglob("*.py")
        for module, name in _imports(path)
        if not _is_public(module, name)
    }
    assert hidden == set()


def test_a_hidden_name_would_be_found():
    assert _is_public("safesift", "screen") and _is_public("safesift.regions", "GapBall")
    assert not _is_public("safesift.workflows.screening", "screen")
    assert not _is_public("safesift", "parameters")
    assert not _is_public("safesift.regions", "center")


def _imports(path: Path) -> Iterator[tuple[str, str]]:
    """What a file imports from safesift: modules and names, lazy imports counted."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "safesift":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            modules = (alias.name for alias in node.names)
            yield from ((name, "") for name in modules if name.startswith("safesift."))


def _is_public(module: str, name: str) -> bool:
    if (module, name) in DOCUMENTED:
        return True
    return module in PUBLIC_MODULES and name in getattr(import_module(module), "__all__", ())
