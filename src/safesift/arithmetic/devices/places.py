"""Which arrays live elsewhere, how numbers get there and back, and what must not happen to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

# libraries whose arrays stay where they are; those of any other become NumPy's, as ever
_LIBRARIES = ("torch", "cupy", "array_api_strict")
# what makes a card compute something else than it is asked for, and what that is
_OVERRIDES = {
    "NVIDIA_TF32_OVERRIDE": "products of 10 bits in place of 23",
    "CUBLAS_EMULATE_DOUBLE_PRECISION": "float64 put together from smaller numbers",
    "CUBLAS_EMULATE_SINGLE_PRECISION": "float32 put together from smaller numbers",
    "CUPY_TF32": "products of 10 bits in place of 23",
}
# a number of 13 bits, and rows of a product that shows whether all of them count
_PROBE, _PROBE_ROWS = 1.0 + 2.0**-12, 256


# the names of types: putting one together takes longer than sending an operation to a device
_names: dict[Any, str] = {}
# numbers that were sent to a device, which takes longer than computing with them
_scalars: dict[tuple[str, ...], Any] = {}
_MOST_SCALARS = 512


class DeviceError(RuntimeError):
    """A device that is not there, or that computes something else than it is asked for."""


def lives_elsewhere(values: Any) -> bool:
    """Whether it is an array on a device, which is computed with where it is.

    A tensor of torch on the processor is not: it becomes one of NumPy without a copy.
    """
    return is_array(values) and not (is_tensor(values) and values.device.type == "cpu")


def is_array(values: Any) -> bool:
    """Whether it is an array of a library that has devices, wherever that array is."""
    return type(values).__module__.partition(".")[0] in _LIBRARIES and hasattr(values, "dtype")


def is_tensor(values: Any) -> bool:
    """Whether it is a tensor of torch."""
    return type(values).__module__.partition(".")[0] == "torch" and hasattr(values, "detach")


def name_of(array: Any) -> str:
    """The name of the type of its entries, without that of the library."""
    # types of two libraries are not to be compared
    key = type(array.dtype), array.dtype
    found = _names.get(key)
    if found is None:
        found = _names[key] = str(array.dtype).rpartition(".")[2]
    return found


def namespace_of(array: Any) -> Any:
    """The functions of the array's library, by the names of the array API standard."""
    compat = _compat()
    return compat.array_namespace(array)


def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError:
        raise DeviceError(
            "arrays on a device need the package array-api-compat: install safesift[device]."
        ) from None
    return array_api_compat


@dataclass(frozen=True)
class Place:
    """A library and one of its devices.

    Attributes
    ----------
    xp : module
        The functions of the library.
    device : object
        As the library knows it.
    """

    xp: Any
    device: Any

    @classmethod
    def of(cls, array: Any) -> Place:
        """Where an array is."""
        return cls(namespace_of(array), _compat().device(array))

    def dtype(self, name: Any) -> Any:
        """The library's own type for one of NumPy, or of that name."""
        return getattr(self.xp, name if isinstance(name, str) else np.dtype(name).name)

    def moved(self, values: NDArray) -> Any:
        """A copy of an array of this process there."""
        values = np.ascontiguousarray(values)
        if self.xp.__name__.endswith("torch"):
            import torch

            return torch.from_numpy(values.copy()).to(self.device)
        return self.xp.asarray(values, device=self.device)

    def scalar(self, value: Any, dtype: str) -> Any:
        """A number there, as an array without axes."""
        # as written: 0.0 and −0.0 are equal, and not the same
        key = *self._key, dtype, str(value)
        if key not in _scalars:
            if len(_scalars) >= _MOST_SCALARS:
                _scalars.clear()
            _scalars[key] = self.xp.asarray(value, dtype=self.dtype(dtype), device=self.device)
        return _scalars[key]

    @cached_property
    def own(self) -> Any:
        """The library itself, for functions that are the same with and without the standard.

        What stands between costs as much as sending them to a device.
        """
        name = self.xp.__name__.rpartition(".")[2]
        return sys.modules[name] if name in ("torch", "cupy") else self.xp

    def taken(self, array: Any, indices: Any, axis: int = 0) -> Any:
        """Parts of an array by indices along an axis."""
        if self.own.__name__ == "torch":
            return self.own.index_select(array, axis, indices)
        return self.xp.take(array, indices, axis=axis)

    @cached_property
    def _key(self) -> tuple[str, str]:
        return self.xp.__name__, str(self.device)

    @property
    def name(self) -> str:
        """Library and device, in words."""
        return f"{self.xp.__name__.rpartition('.')[2]} on {self.device}"

    @property
    def is_cuda(self) -> bool:
        return "cuda" in str(self.device).lower()


def brought_here(array: Any) -> NDArray:
    """The numbers of an array of any library, in this process."""
    _note(array)
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    if hasattr(array, "detach"):  # torch
        return array.detach().cpu().numpy()
    here = sys.modules["array_api_strict"].Device("CPU_DEVICE")
    return np.array(array.to_device(here))


# --- who counts what is moved -----------------------------------------------------------------

_listeners: list[Callable[[int], None]] = []


def _note(array: Any) -> None:
    for listener in _listeners:
        listener(int(np.prod(array.shape, dtype=np.int64)))


@contextmanager
def counting_transfers() -> Iterator[list[int]]:
    """How many numbers were brought here by every transfer inside the block."""
    found: list[int] = []
    _listeners.append(found.append)
    try:
        yield found
    finally:
        _listeners.remove(found.append)


# --- devices by their names -------------------------------------------------------------------


def place_named(device: str) -> Place:
    """Where `device="cuda"` is, and the like: torch's, or CuPy's where there is no torch.

    Raises
    ------
    DeviceError
        Where no such device is there; the message names those that are.
    """
    if not isinstance(device, str):
        raise TypeError(f"device must be a string such as 'cuda', got {type(device).__name__}.")
    _compat()
    known: list[str] = []
    for find in (_torch_devices, _cupy_devices, _strict_devices):
        found = find()
        if device in found:
            return found[device]()
        known += found
    raise DeviceError(
        f"device={device!r} is not there: "
        + (f"use one of {', '.join(map(repr, known))}." if known else _NOTHING)
    )


_NOTHING = "neither torch nor CuPy finds any, so install one of them, or leave device at None."


def _torch_devices() -> dict[str, Callable[[], Place]]:
    try:
        import array_api_compat.torch as xp
        import torch
    except ImportError:
        return {}
    cards = [f"cuda:{k}" for k in range(torch.cuda.device_count())]
    names = (["cuda", *cards] if cards else []) + ["cpu"]
    return {name: partial(_of_torch, xp, name) for name in names}


def _of_torch(xp: Any, name: str) -> Place:
    import torch

    return Place(xp, torch.empty(0, device=name).device)


def _cupy_devices() -> dict[str, Callable[[], Place]]:
    try:
        import array_api_compat.cupy as xp
        import cupy

        cards = range(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # the package is there, and no card or driver: it has errors of its own
        return {}
    # by its own name, too, where torch is there
    numbers = {"": 0} | {f":{k}": k for k in cards} if cards else {}
    return {
        kind + number: partial(_of_cupy, xp, k)
        for number, k in numbers.items()
        for kind in ("cuda", "cupy")
    }


def _of_cupy(xp: Any, number: int) -> Place:
    import cupy

    return Place(xp, cupy.cuda.Device(number))


def _strict_devices() -> dict[str, Callable[[], Place]]:
    # for tests: whoever has imported it wants it
    xp = sys.modules.get("array_api_strict")
    return {} if xp is None else {"strict": lambda: Place(xp, xp.Device("device1"))}


# --- what a claim may rest on -----------------------------------------------------------------


def refuse_overrides(place: Place, single: bool = False) -> None:
    """Refuse an environment in which a card computes something else than it is asked for.

    Where products are to be in single precision, one of them is looked at, too.
    """
    if not place.is_cuda:
        return
    for name, what in _OVERRIDES.items():
        if os.environ.get(name, "0") not in ("", "0"):
            raise DeviceError(
                f"the environment variable {name}={os.environ[name]} asks for {what}, of which "
                "nothing can be certified: unset it."
            )
    if single and not _keeps_all_bits(place):
        raise DeviceError(
            f"products of float32 lose digits here ({place.name}), and nothing can be certified "
            "with them: use precision='float64'."
        )


def _keeps_all_bits(place: Place) -> bool:
    xp = place.xp
    square = (_PROBE_ROWS, _PROBE_ROWS)
    probe = xp.full(square, _PROBE, dtype=xp.float32, device=place.device)
    with honest_products(place):
        found = brought_here(xp.matmul(probe, probe))
    return bool(np.all(np.abs(found / (_PROBE_ROWS * _PROBE**2) - 1.0) < 1e-4))


@contextmanager
def honest_products(place: Place) -> Iterator[None]:
    """No product inside the block is shortened to TF32, whatever the settings outside."""
    torch = sys.modules.get("torch")
    if torch is None or not place.is_cuda:
        yield
        return
    matmul = torch.backends.cuda.matmul
    # since 2.9 by another name, and the two are not to be mixed
    exact: dict[str, Any] = {"allow_tf32": False}
    if hasattr(matmul, "fp32_precision"):
        exact = {"fp32_precision": "ieee"}
    ((name, value),) = exact.items()
    before = getattr(matmul, name)
    setattr(matmul, name, value)
    try:
        yield
    finally:
        setattr(matmul, name, before)


@contextmanager
def raising_errors(place: Place) -> Iterator[None]:
    """A matrix without a factor is an error inside the block: CuPy says nothing by itself."""
    if not place.xp.__name__.endswith("cupy"):
        yield
        return
    import cupyx

    with cupyx.errstate(linalg="raise"):
        yield


def queue_of(place: Place) -> Callable[[], AbstractContextManager[Any]]:
    """Has another thread work in the queue (stream) of a card that this thread works in now.

    Every thread begins in one of its own, and none of them waits for what is done in another.
    """
    if not place.is_cuda:
        return nullcontext
    if place.xp.__name__.endswith("torch"):
        import torch

        return partial(torch.cuda.stream, torch.cuda.current_stream(place.device))
    import cupy

    queue = cupy.cuda.get_current_stream()
    return lambda: queue


def free_bytes(place: Place) -> int:
    """What a card has room for, with what its library keeps for itself; 0 where nobody tells."""
    if not place.is_cuda:
        return 0
    if place.xp.__name__.endswith("torch"):
        import torch

        kept = torch.cuda.memory_reserved(place.device) - torch.cuda.memory_allocated(place.device)
        return torch.cuda.mem_get_info(place.device)[0] + kept
    import cupy

    return cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device has no room left: every library has an error of its own for that."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
