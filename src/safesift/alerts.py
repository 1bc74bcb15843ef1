"""Warnings that point at the line of the user, however many frames of ours lie in between."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

# what users call us by, or through
_ON_THE_WAY = {"safesift", "sklearn", "imblearn"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of what the user can change, at the line that called the library."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _package(frame) in _ON_THE_WAY:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
