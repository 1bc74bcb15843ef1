"""Validation errors of held-out samples whose predictions are known to lie in intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.design.rows import rows_of
from safesift.problem.decisions import Bounds
from safesift.problem.inputs import Inputs

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Metric = Literal["zero_one", "absolute", "squared", "pinball"]

# of an error, of its product with a weight and of a pairwise sum of them, relatively
_ROUNDING = 64 * EPS


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The held-out samples of a fold: least and largest errors.

    Parameters
    ----------
    rows : array of integers
        Those of positive weight, rising.
    y : array
        Their targets; for labels, the numbers of their classes.
    weights : array
    metric : str
    quantile : float
        Of the pinball error.
    twins : array of integers
        A number for every sample, the same for those whose rows are the same: whatever these are
        predicted to be, all are, so that of two labels one is wrong.
    n_classes : int
        0 where targets are numbers.
    """

    rows: Rows
    y: NDArray
    weights: Array
    metric: Metric
    quantile: float
    twins: Rows
    n_classes: int

    @classmethod
    def of(
        cls, inputs: Inputs, test: Rows, weights: Array, metric: Metric, quantile: float
    ) -> HeldOut:
        problem, labels = inputs.problems[0], inputs.labels
        rows = np.sort(test[weights[test] > 0])
        y: NDArray = problem.y[rows]
        n_classes = 0
        if labels is not None and inputs.classes is not None:
            y = np.searchsorted(inputs.classes, labels[rows])
            n_classes = len(inputs.classes)
        same = _same_rows(rows_of(problem.design).gathered(rows))
        return cls(rows, y, weights[rows], metric, quantile, same, n_classes)

    def between(self, bounds: Sequence[Bounds]) -> tuple[Array, Array]:
        """The least and the largest errors, times weights, for predictions in these bounds.

        Each may be what these samples contribute at some prediction, none in between is beyond
        the sums of both.
        """
        own = [one.take(self.rows) for one in bounds]
        return self._of_labels(own) if self.metric == "zero_one" else self._of_numbers(own[0])

    def _of_labels(self, bounds: Sequence[Bounds]) -> tuple[Array, Array]:
        """Of the labels that rows may be given, the ones with least and with most wrong samples."""
        possible, wrong = self._possible(bounds), self._wrong
        fewest = np.where(possible, wrong, math.inf).argmin(axis=1)
        most = np.where(possible, wrong, -math.inf).argmax(axis=1)
        least, largest = (
            np.where(self.y != label[self.twins], self.weights, 0.0) for label in (fewest, most)
        )
        return least, largest

    def _possible(self, bounds: Sequence[Bounds]) -> NDArray[np.bool_]:
        """Which labels the distinct rows may be given."""
        lower = np.stack([one.lower[self._first] for one in bounds], axis=1)
        upper = np.stack([one.upper[self._first] for one in bounds], axis=1)
        if len(bounds) == 1:
            return np.hstack([~(lower > 0), ~(upper <= 0)])
        return ~(upper < lower.max(axis=1, keepdims=True))

    @cached_property
    def _first(self) -> Rows:
        """A sample of every distinct row."""
        return np.unique(self.twins, return_index=True)[1]

    @cached_property
    def _wrong(self) -> Array:
        """What the samples of the distinct rows weigh that do not have a label, for every label."""
        right = np.zeros((len(self._first), self.n_classes))
        np.add.at(right, (self.twins, self.y), self.weights)
        return right @ (1.0 - np.eye(self.n_classes))

    def _of_numbers(self, bounds: Bounds) -> tuple[Array, Array]:
        """Errors are quasi-convex in the prediction: largest at an end, least at y or at an end."""
        nearest = np.clip(self.y, bounds.lower, bounds.upper)
        most = np.maximum(self._error(bounds.lower), self._error(bounds.upper))
        return self.weights * self._error(nearest), self.weights * most

    def _error(self, pred: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            residual = self.y - pred
            if self.metric == "squared":
                return residual**2
            if self.metric == "absolute":
                return np.abs(residual)
            return np.maximum(self.quantile * residual, (self.quantile - 1.0) * residual)


def mean_between(
    folds: Sequence[HeldOut], errors: Sequence[tuple[Array, Array]]
) -> tuple[float, float]:
    """The least and the largest mean error over all folds, from what each has between."""
    whole = math.fsum(math.fsum(fold.weights) for fold in folds)
    least, most = (np.concatenate([one[k] for one in errors]) for k in (0, 1))
    if folds[0].metric == "zero_one":
        # rounded once: of two sets of samples the heavier one never seems to be the lighter one
        return math.fsum(least) / whole, math.fsum(most) / whole
    low, high = float(least.sum()) / whole, float(most.sum()) / whole
    return low * (1.0 - _ROUNDING), high * (1.0 + _ROUNDING)


def _same_rows(block: Any) -> Rows:
    """A number for every row, the same for rows that are the same."""
    from scipy import sparse

    if sparse.issparse(block):
        block = block.tocsr()
        block.sort_indices()
        parts = zip(
            np.split(block.indices, block.indptr[1:-1]), np.split(block.data, block.indptr[1:-1]),
            strict=True,
        )  # fmt: skip
        keys = [(one.tobytes(), two.tobytes()) for one, two in parts]
    else:
        # 0.0 and -0.0 are the same number
        keys = [(row.tobytes(), b"") for row in np.ascontiguousarray(block) + 0.0]
    seen: dict[tuple[bytes, bytes], int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)
