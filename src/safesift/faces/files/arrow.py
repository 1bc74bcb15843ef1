"""Arrow, which is an extra: imported when a file needs it, so that other formats do without."""

from __future__ import annotations

import importlib
from typing import Any

from safesift.registry import naming_extra

_PARTS = ("compute", "csv", "parquet")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        arrow = importlib.import_module("pyarrow")
        return (
            importlib.import_module(f"pyarrow.{name}") if name in _PARTS else getattr(arrow, name)
        )
    except ImportError as error:
        raise naming_extra(error) from None
