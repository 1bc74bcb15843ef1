"""The few array operations of a network, by NumPy or by PyTorch: only the arrays are exotic."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray


class Arrays(Protocol):
    """What a network needs of a library, besides operators, slices and `reshape`.

    Attributes
    ----------
    is_parallel : bool
        Whether it uses all cores, or a GPU, by itself: one batch at a time then.
    """

    is_parallel: bool

    def put(self, values: NDArray) -> Any:
        """Their array of a NumPy array."""

    def get(self, values: Any) -> NDArray:
        """The NumPy array of one of theirs."""

    def windows(self, maps: Any, height: int, width: int) -> Any:
        """All windows of maps (n, H, W, C), as rows (n·H'·W', height·width·C)."""

    def exp(self, values: Any) -> Any:
        """exp, in place where possible."""

    def row_norms(self, rows: Any) -> Any:
        """The Euclidean norms of the rows, as a column."""

    def row_means(self, rows: Any) -> Any:
        """The means of the rows, as a column."""


class NumpyArrays:
    """NumPy and its BLAS, of which a thread per batch makes more than BLAS does by itself."""

    is_parallel = False

    def put(self, values: NDArray) -> NDArray:
        return values

    def get(self, values: NDArray) -> NDArray:
        return values

    def windows(self, maps: NDArray, height: int, width: int) -> NDArray:
        views = sliding_window_view(maps, (height, width), axis=(1, 2))
        # channels last: runs of width·C numbers lie together, so that the copy is fast
        return views.transpose(0, 1, 2, 4, 5, 3).reshape(-1, height * width * maps.shape[3])

    def exp(self, values: NDArray) -> NDArray:
        return np.exp(values, out=values)

    def row_norms(self, rows: NDArray) -> NDArray:
        return np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]

    def row_means(self, rows: NDArray) -> NDArray:
        return rows.mean(axis=1, keepdims=True)


class TorchArrays:
    """PyTorch, on a GPU where there is one."""

    is_parallel = True

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._device = "cuda" if torch.cuda.is_available() else "cpu"

    def put(self, values: NDArray) -> Any:
        # a copy: what scikit-learn hands over may be read-only
        return self._torch.from_numpy(np.array(values)).to(self._device)

    def get(self, values: Any) -> NDArray:
        return values.cpu().numpy()

    def windows(self, maps: Any, height: int, width: int) -> Any:
        views = maps.unfold(1, height, 1).unfold(2, width, 1)
        return views.permute(0, 1, 2, 4, 5, 3).reshape(-1, height * width * maps.shape[3])

    def exp(self, values: Any) -> Any:
        return values.exp_()

    def row_norms(self, rows: Any) -> Any:
        return self._torch.linalg.vector_norm(rows, dim=1, keepdim=True)

    def row_means(self, rows: Any) -> Any:
        return rows.mean(dim=1, keepdim=True)


def arrays_for(backend: str) -> Arrays:
    """The library of that name; "auto" is PyTorch where it is installed."""
    if backend == "auto":
        backend = "numpy" if find_spec("torch") is None else "torch"
    if backend == "numpy":
        return NumpyArrays()
    if backend == "torch":
        if find_spec("torch") is None:
            raise ImportError(
                "backend='torch' needs PyTorch: pip install 'safesift-paper[torch]', or use "
                "backend='numpy'."
            )
        return TorchArrays()
    raise ValueError(f"backend must be 'auto', 'numpy' or 'torch', got {backend!r}.")
