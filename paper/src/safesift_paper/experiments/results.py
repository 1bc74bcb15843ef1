"""Results files: a line of JSON per finished cell, so that a run can be taken up again."""

from __future__ import annotations

import json
import math
import os
import platform
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from safesift import __version__
from safesift_paper.experiments.spec import Cell, Record

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


class Results:
    """The results of one experiment by one protocol; those by others may be in the same file."""

    def __init__(self, folder: Path, experiment: str, protocol: str) -> None:
        self.path = folder / f"{experiment}.jsonl"
        self.records = [record for record in _read(self.path) if record.protocol == protocol]
        self._done = {_key(record.cell) for record in self.records}

    def has(self, cell: Cell) -> bool:
        """Whether a cell is finished."""
        return _key(cell) in self._done

    def of(self, cells: list[Cell]) -> list[Record]:
        """The records of some cells, in their order, as far as they are finished."""
        known = {_key(record.cell): record for record in self.records}
        return [known[_key(cell)] for cell in cells if _key(cell) in known]

    def add(self, record: Record) -> None:
        """Write a record down, all of it or nothing."""
        line = json.dumps(finite(asdict(record)), allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as lines:
            lines.write(line + "\n")
            lines.flush()
            os.fsync(lines.fileno())
        self.records.append(Record(**json.loads(line)))
        self._done.add(_key(record.cell))


def _read(path: Path) -> list[Record]:
    if not path.exists():
        return []
    content = path.read_text(encoding="utf-8")
    whole = content[: content.rfind("\n") + 1]
    if whole != content:
        # a run that was killed while it wrote: the cell will be run again
        path.write_text(whole, encoding="utf-8")
    return [Record(**json.loads(line)) for line in whole.splitlines()]


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)


def finite(value: Any) -> Any:
    """The same with null for infinity and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def surroundings() -> dict[str, Any]:
    """The machine, as far as this process may use it, and the versions of what runs on it."""
    from joblib import cpu_count

    versions = {"python": platform.python_version(), "safesift": __version__}
    versions |= {name: metadata.version(name) for name in _PACKAGES}
    return {"machine": f"{cpu_count()} cores ({platform.machine()})", "versions": versions}
