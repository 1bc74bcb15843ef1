"""Which module of the library imports which, lazy imports counted, imports for types not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import safesift

ROOT = Path(safesift.__file__).parent


def graph(root: Path = ROOT) -> dict[str, set[str]]:
    """Module → the modules it imports, as dotted names."""
    files = {_dotted(path, root): path for path in root.rglob("*.py")}
    return {
        name: {target for target in _imports(path, set(files)) if target != name}
        for name, path in files.items()
    }


def cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, by whatever way round."""
    order: list[str] = []
    seen: set[str] = set()
    for module in imports:
        _visit(module, imports, seen, order)
    reverse: dict[str, set[str]] = {module: set() for module in imports}
    for module, targets in imports.items():
        for target in targets:
            reverse[target].add(module)
    seen, groups = set(), []
    for module in reversed(order):
        group: list[str] = []
        _visit(module, reverse, seen, group)
        if len(group) > 1:
            groups.append(sorted(group))
    return groups


def _visit(start: str, edges: dict[str, set[str]], seen: set[str], order: list[str]) -> None:
    """Modules within reach, those first that lead nowhere else."""
    stack = [(start, iter(sorted(edges[start])))] if start not in seen else []
    seen.add(start)
    while stack:
        module, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(sorted(edges[target]))))
                break
        else:
            order.append(module)
            stack.pop()


def _dotted(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path, modules: set[str]) -> Iterator[str]:
    for node in _statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name in modules:
                    yield name
                elif node.module in modules:
                    yield node.module


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements but those for type checkers only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (part for rest in child.orelse for part in _statements(rest))
        else:
            yield child
            yield from _statements(child)
