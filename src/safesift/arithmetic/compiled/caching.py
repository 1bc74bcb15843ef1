"""Compiling with a cache on disk, and without one where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def cached_njit(**options: Any) -> Callable[[Callable], Callable]:
    """`numba.njit` with a cache, or without where no folder for one can be written.

    In a container neither the package's own folder nor that of the user may be writable: every
    process then compiles anew. NUMBA_CACHE_DIR names a folder that is.
    """

    def decorate(function: Callable) -> Callable:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            # Numba looks for a folder as soon as it sees the function; nothing else can fail yet
            return njit(**options)(function)

    return decorate
