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
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "cyanure", "skglm", "rehline", "adelie")


def machine() -> dict[str, Any]:
    """The machine in words, and the versions of what ran on it."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    versions = {"python": platform.python_version(), "blas": _blas()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    words = f"{_processor()}, {_cores()}, {pages / 2**30:.0f} GiB"
    return {"machine": words, "versions": versions}


def _cores() -> str:
    """Those that this process may use, of those there are."""
    there = os.cpu_count()
    try:
        mine = len(os.sched_getaffinity(0))
    except AttributeError:
        return f"{there} cores"
    return f"{there} cores" if mine == there else f"{mine} of {there} cores"


def _processor() -> str:
    """Its model, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _blas() -> str | None:
    """That of NumPy, and for which kind of processor it takes this one."""
    import numpy as np  # noqa: F401  # loads it
    from threadpoolctl import threadpool_info

    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    found.sort(key=lambda library: "numpy" not in library["filepath"])  # SciPy may have its own
    return next((f"{one['internal_api']} {one['version']} ({one.get('architecture')})"
                 for one in found), None)  # fmt: skip


def write(name: str, facts: dict[str, Any], lines: str | None = None) -> Path:
    """Write one file of results; what is there under that name is replaced.

    `lines` names a list that is written with an entry to a line.
    """
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    facts = _finite({**machine(), **facts})
    entries = facts.pop(lines) if lines is not None else None
    text = json.dumps(facts, indent=1)
    if entries is not None:
        written = ",\n".join(json.dumps(entry) for entry in entries)
        text = f'{text[:-2]},\n "{lines}": [\n{written}\n]\n}}'
    beside = path.with_suffix(".new")
    beside.write_text(text + "\n")
    beside.replace(path)  # whole, or not at all
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
