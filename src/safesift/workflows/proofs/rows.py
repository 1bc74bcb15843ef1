"""The rows of a problem as `safesift_check` reads them from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import safesift_check as checker
from safesift.design.kernel import KernelDesign
from safesift.design.kernels import PrecomputedKernel
from safesift.design.rows import rows_of
from safesift.problem.problem import Problem
from safesift.workflows.proofs.statements import epsilon_of


@dataclass(frozen=True)
class DataColumns:
    """Where a checker finds the rows: the arrays of an .npz file, or the columns of a table.

    Attributes
    ----------
    features : tuple of dict, or None
        For a table, of each feature its `column`, and the category it `equals` where it is one of
        zeros and ones; None for the array X (or data, indices, indptr) of an .npz file.
    target : tuple of str
        One name, or those of lower and upper ends.
    weight, epsilon : str or None
    transform : tuple of (operation, numbers)
        What was done to the features since they were read: "fill", "subtract", "divide",
        "multiply" or "add", with a number for each.
    """

    features: tuple[dict[str, Any], ...] | None = None
    target: tuple[str, ...] = ("y",)
    weight: str | None = "sample_weight"
    epsilon: str | None = "epsilon"
    transform: tuple[tuple[str, Sequence[float]], ...] = ()

    def record(self, weighted: bool, own_epsilon: bool) -> dict[str, Any]:
        """In the words of a statement."""
        features = [
            {"column": one["column"], "equals": one.get("equals")} for one in self.features or ()
        ]
        return {
            "features": features or None,
            "weight": self.weight if weighted else None,
            "epsilons": self.epsilon if own_epsilon else None,
        }

    def steps(self) -> list[Any]:
        """What was done to the features, in the words of a statement."""
        return [[name, [float(one) for one in given]] for name, given in self.transform]


class ProblemRows(checker.Data):
    """The rows of problems that share them, in memory; what is prepared is prepared already."""

    def __init__(self, problem: Problem, target: NDArray) -> None:
        n, p = problem.design.n_samples, problem.design.n_features
        self.file, self.transform, self.kept = _Matrix(_plain(matrix_of(problem))), (), None
        self.n, self.p, self.complete = n, p, False
        self.target, self.weights = np.reshape(target, (n, -1)), problem.weights
        self.epsilon = np.broadcast_to(epsilon_of(problem.loss), n)


def matrix_of(problem: Problem) -> Any:
    """The matrix of a problem: rows as they came, or a precomputed kernel with what is added to it.

    A kernel matrix is certified with `kernel_shift_` times the identity added, where rounding may
    have left it a negative eigenvalue: that sum is the data of the proof.
    """
    design = problem.design
    if not isinstance(design, KernelDesign):
        return rows_of(design).data
    kernel = design.gram.kernel
    if not isinstance(kernel, PrecomputedKernel):
        raise ValueError(
            "a proof about a kernel machine is one about its kernel matrix: fit with "
            "kernel='precomputed'."
        )
    return kernel.block(np.arange(kernel.n_samples), slice(None))


def _plain(matrix: Any) -> Any:
    """Rows of sparse data without an entry that is there twice."""
    if not sparse.issparse(matrix):
        return matrix
    rows = sparse.csr_array(matrix, copy=True)
    rows.sum_duplicates()
    return rows


@dataclass(frozen=True, eq=False)
class _Matrix:
    """Blocks of a matrix, dense or sparse, as of a file."""

    matrix: Any

    def batches(self, n_rows: int, p: int) -> Iterator[tuple[NDArray, NDArray]]:
        for start in range(0, self.matrix.shape[0], n_rows):
            part = self.matrix[start : start + n_rows]
            if not sparse.issparse(part):
                yield np.arange(p), np.asarray(part)
                continue
            used, places = np.unique(part.indices, return_inverse=True)
            block = np.zeros((part.shape[0], len(used)))
            block[np.repeat(np.arange(len(block)), np.diff(part.indptr)), places] = part.data
            yield used, block
