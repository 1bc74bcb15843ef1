"""Where the figures go: JSON files that say on what kind of machine they were measured."""

from __future__ import annotations

import json
import math
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "cyanure", "skglm")


def machine() -> dict[str, Any]:
    """The machine in words, and the versions of what ran on it."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), {pages / 2**30:.0f} GiB",
        "versions": versions,
    }


def write(name: str, facts: dict[str, Any]) -> Path:
    """Write one file of results; what is there under that name is replaced."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(_finite({**machine(), **facts}), indent=1) + "\n")
    return path


def _finite(value: Any) -> Any:
    """The same with null for infinity and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read(name: str) -> dict[str, Any]:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}
