"""What is passed as X, moved to a device that is asked for by its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scipy import sparse

from safesift.alerts import warn
from safesift.arithmetic.devices.places import Place, lives_elsewhere, place_named
from safesift.design.base import Design
from safesift.design.block_source import BlockSource
from safesift.design.device import DeviceDesign, Placed
from safesift.design.factory import as_dense


def placed(X: Any, device: str | None, precision: str = "float64") -> Any:
    """What is passed as X on a device of that name: as a whole if it fits, else block by block.

    Parameters
    ----------
    X : array, frame, torch tensor, CuPy array or Placed
    device : str or None
        None leaves X where it is.
    precision : "float64" or "float32"
        Of the products of which Gram matrices are made there.
    """
    single = _is_single(precision)
    if isinstance(X, Placed):
        return replace(X, single=single)
    if device is None:
        return _left_there(X, single)
    place = place_named(device)
    if sparse.issparse(X) or isinstance(X, Design | BlockSource):
        raise TypeError(
            f"device={device!r} takes dense rows, got {type(X).__name__}: pass an array, or leave "
            "device at None."
        )
    if lives_elsewhere(X) and Place.of(X) == place:
        return _left_there(X, single)
    array = as_dense(X).array
    design = DeviceDesign(array, sent_to=place).moved()
    if design.sent_to is None:
        return Placed(design.array, place, single)
    say_sent(place)
    return Placed(array, place, single)


def say_sent(place: Place) -> None:
    """Say that rows do not fit on a device."""
    warn(
        f"X does not fit on the device ({place.name}) and is sent there block by block, in every "
        "pass: free some of its memory, or use float32."
    )


def _is_single(precision: Any) -> bool:
    if precision not in ("float64", "float32"):
        raise ValueError(f"precision must be 'float64' or 'float32', got {precision!r}.")
    return precision == "float32"


def _left_there(X: Any, single: bool) -> Any:
    if not single:
        return X
    if not lives_elsewhere(X):
        raise ValueError(
            "precision='float32' is for rows on a device: name one (device=), or leave precision "
            "at 'float64'."
        )
    return Placed(X, Place.of(X), single)
