"""What is passed as X, moved to a device that is asked for by its name."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from safesift.alerts import warn
from safesift.arithmetic.devices.places import Place, lives_elsewhere, place_named
from safesift.design.base import Design
from safesift.design.block_source import BlockSource
from safesift.design.device import DeviceDesign, Placed
from safesift.design.factory import as_dense


def placed(X: Any, device: str | None) -> Any:
    """What is passed as X on a device of that name: as a whole if it fits, else block by block.

    Parameters
    ----------
    X : array, frame, torch tensor or CuPy array
    device : str or None
        None leaves X where it is.
    """
    if device is None:
        return X
    place = place_named(device)
    if sparse.issparse(X) or isinstance(X, Design | BlockSource):
        raise TypeError(
            f"device={device!r} takes dense rows, got {type(X).__name__}: pass an array, or leave "
            "device at None."
        )
    if lives_elsewhere(X) and Place.of(X) == place:
        return X
    array = as_dense(X).array
    design = DeviceDesign(array, sent_to=place).moved()
    if design.sent_to is None:
        return Placed(design.array, place)
    warn(
        f"X does not fit on the device ({place.name}) and is sent there block by block, in every "
        "pass: free some of its memory, or use float32."
    )
    return Placed(array, place)
