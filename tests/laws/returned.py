"""A design on a device whose vectors are brought here, for laws that compare them with NumPy's."""

from __future__ import annotations

from typing import Any

import array_api_strict  # noqa: F401  whoever has imported it has its device
import numpy as np

from safesift.arithmetic.devices.arrays import DeviceArray, on_host
from safesift.arithmetic.devices.places import brought_here
from safesift.design import RowDesign
from safesift.design.device import DeviceDesign


def _here(found: Any) -> Any:
    if isinstance(found, DeviceDesign):
        return Returned(found)
    if isinstance(found, tuple | list):
        return type(found)(map(_here, found))
    return on_host(found)


class Returned(RowDesign):
    """All that a design is asked for, answered by the one on the device."""

    def __init__(self, inner: DeviceDesign) -> None:
        self.inner = inner

    @property
    def data(self) -> np.ndarray:
        return brought_here(self.inner.array)

    def pass_through(self, x, dual):
        def there(pred: DeviceArray, rows: slice) -> DeviceArray:
            return self.inner.vector(np.asarray(dual(on_host(pred), rows)))

        return _here(self.inner.pass_through(x, there))


def _asks(name: str) -> Any:
    def method(self, *arguments, **more):
        return _here(getattr(self.inner, name)(*arguments, **more))

    return method


def _tells(name: str) -> property:
    return property(lambda self: _here(getattr(self.inner, name)))


_METHODS = (
    "matvec", "rmatvec", "gram", "gram_product", "columns_sq", "projected_sq", "scaled_norms",
    "weighted_sums", "largest_entries", "take", "hold", "only", "as_held", "columns", "block",
    "gathered", "numbers_of", "fingerprint",
)  # fmt: skip
_FACTS = (
    "n_samples", "n_features", "intercept", "held", "row_norms", "feature_norms_sq", "row_length",
    "block_rows", "gram_rows", "dot_error", "sum_error", "gram_error",
)  # fmt: skip
for name in _METHODS:
    setattr(Returned, name, _asks(name))
for name in _FACTS:
    setattr(Returned, name, _tells(name))
Returned.__abstractmethods__ = frozenset()
