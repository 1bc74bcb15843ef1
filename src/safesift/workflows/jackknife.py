"""Prediction intervals, and sets of labels, from models without a sample each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.printing import Brief
from safesift.arithmetic.threads import computes, using
from safesift.workflows.leaving_out import LeaveOneOut

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class PredictionIntervals(Brief):
    """Where new targets are, for rows that are exchangeable with those of the training.

    Attributes
    ----------
    lower, upper : arrays of shape (n,)
    level : float
        As asked for.
    guaranteed : float
        The share of targets in their intervals is at least that, on average over training samples
        and new rows: 1 − 2(1 − level) for the jackknife+, `level` for minmax.
    method : str
    """

    lower: Array
    upper: Array
    level: float
    guaranteed: float
    method: str

    def coverage(self, y: Any) -> float:
        """The share of targets that lie in their intervals."""
        y = np.asarray(y, dtype=np.float64)
        return float(np.mean((self.lower <= y) & (y <= self.upper)))


@dataclass(frozen=True, eq=False, repr=False)
class LabelSets(Brief):
    """Which labels new rows may have, for rows that are exchangeable with those of the training.

    Attributes
    ----------
    contains : mask of shape (n, n_classes)
    classes : array of shape (n_classes,)
    level, guaranteed, method
        As of `PredictionIntervals`.
    """

    contains: NDArray[np.bool_]
    classes: NDArray
    level: float
    guaranteed: float
    method: str

    def coverage(self, y: Any) -> float:
        """The share of rows whose label is in their set."""
        own = np.searchsorted(self.classes, y).clip(0, len(self.classes) - 1)
        known = self.classes[own] == np.asarray(y)
        return float(np.mean(known & self.contains[np.arange(len(own)), own]))


Method = Literal["plus", "minmax"]


@computes
def jackknife_plus(
    loo: LeaveOneOut,
    X: Any,
    level: float = 0.9,
    method: Method = "plus",
    *,
    n_jobs: int | None = None,
) -> PredictionIntervals | LabelSets:
    """Prediction intervals for new rows from a `leave_one_out`, or sets of labels.

    With R_i = |y_i − prediction of sample i without it| and μ_i the model without it (or without
    its group), the jackknife+ interval of a row x reaches from the ⌊(1 − level)(n + 1)⌋-th smallest
    of μ_i(x) − R_i to the ⌈level·(n + 1)⌉-th smallest of μ_i(x) + R_i; minmax from min μ_i(x) less
    the ⌈level·(n + 1)⌉-th smallest R_i to max μ_i(x) plus it. Of labels, a set has those y with
    fewer than level·(n + 1) samples i whose score R_i is below that of y under μ_i at x.
    Intervals: Barber, Candès, Ramdas and Tibshirani, "Predictive inference with the jackknife+",
    Annals of Statistics 2021, theorems 1 and 3, and for groups theorem 4 (CV+). Sets: Romano, Sesia
    and Candès, "Classification with valid and adaptive coverage", NeurIPS 2020, theorem 2.

    Parameters
    ----------
    loo : LeaveOneOut
        Of a regression or a classification, without weights other than 0 and 1; alpha and the
        scaling of X must have been fixed without looking at these samples.
    X : array, CSR matrix or frame of shape (n, n_features)
        New rows.
    level : float in (0.5, 1), default=0.9
    method : {"plus", "minmax"}, default="plus"
        "plus" covers about `level` in practice, and at least 1 − 2(1 − level) for certain, for K
        groups of n/K samples each less min(2(1 − 1/K)/(n/K + 1), (1 − K/n)/(K + 1)); "minmax" at
        least `level`, and is longer; not for groups.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
        Those of `loo` where it has a number of its own.

    Returns
    -------
    PredictionIntervals or LabelSets
        Where intervals of `loo` are not points, R_i is the largest residual they allow.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = X[:, 0] + rng.normal(size=400)
    >>> loo = ss.leave_one_out(X[:300], y[:300], loss="squared", alpha=1e-3)
    >>> new = ss.jackknife_plus(loo, X[300:], level=0.9)
    >>> new.guaranteed, 0.8 < new.coverage(y[300:]) <= 1.0
    (0.8, True)
    """
    if not isinstance(loo, LeaveOneOut):
        raise TypeError(f"loo must be a result of leave_one_out, got {type(loo).__name__}.")
    level = _checked_level(level)
    if method not in ("plus", "minmax"):
        raise ValueError(f"method must be 'plus' or 'minmax', got {method!r}.")
    weights = loo.sample_weight
    if not np.isin(weights, (0.0, 1.0)).all():
        raise ValueError(
            "loo has sample weights, and samples of different weight are not exchangeable: repeat "
            "samples instead, or use weights of 0 and 1."
        )
    if loo.y.ndim == 2:
        raise ValueError("loo is of interval targets, which are no numbers to cover.")
    guaranteed = level if method == "minmax" else 1.0 - 2.0 * (1.0 - level)
    guaranteed -= _price_of_groups(loo, method)
    with using(loo.n_jobs if n_jobs is None else n_jobs):
        if loo.classes is None:
            lower, upper = _intervals(loo, X, level, method)
            return PredictionIntervals(lower, upper, level, round(guaranteed, 12), method)
        contains = _label_sets(loo, X, level, method)
    return LabelSets(contains, loo.classes, level, round(guaranteed, 12), method)


def _price_of_groups(loo: LeaveOneOut, method: Method) -> float:
    """What leaving out several samples at a time costs of the guarantee."""
    counts = np.bincount(loo.groups[loo.sample_weight > 0])
    counts = counts[counts > 0]
    n, k = int(counts.sum()), len(counts)
    if n == k:
        return 0.0
    if method == "minmax" or (counts != counts[0]).any():
        raise ValueError(
            "loo has groups: of these there are intervals with method='plus' and groups of one "
            "size only."
        )
    return min(2.0 * (1.0 - 1.0 / k) / (n / k + 1.0), (1.0 - k / n) / (k + 1.0))


def _checked_level(level: Any) -> float:
    if not (isinstance(level, int | float | np.floating) and 0.5 < level < 1.0):
        raise ValueError(f"level must be a number between 0.5 and 1, got {level!r}.")
    return float(level)


def _ranks(n: int, level: float) -> tuple[int, int]:
    """⌊(1 − level)(n + 1)⌋ and ⌈level(n + 1)⌉, a hair aside for rounding."""
    low = math.floor((1.0 - level) * (n + 1) * (1.0 + 1e-12))
    return low, math.ceil(level * (n + 1) * (1.0 - 1e-12))


def _intervals(loo: LeaveOneOut, X: Any, level: float, method: Method) -> tuple[Array, Array]:
    counted = loo.sample_weight > 0
    residuals = np.maximum(np.abs(loo.y - loo.lower), np.abs(loo.upper - loo.y))
    n = int(counted.sum())
    low, high = _ranks(n, level)
    if method == "plus":
        ends = _Ends(low, n - high + 1)
        for pred, rows in _predictions(loo, X, 0, counted):
            ends.add(pred, residuals[rows])
        return ends.lower, ends.upper
    least = most = None
    for pred, _ in _predictions(loo, X, 0, counted):
        least = pred.min(axis=1) if least is None else np.minimum(least, pred.min(axis=1))
        most = pred.max(axis=1) if most is None else np.maximum(most, pred.max(axis=1))
    assert least is not None and most is not None
    width = np.sort(residuals[counted])[high - 1] if high <= n else math.inf
    return least - width, most + width


class _Ends:
    """The k-th smallest of μ_i − R_i and the k-th largest of μ_i + R_i, a block at a time."""

    def __init__(self, below: int, above: int) -> None:
        self._below, self._above = below, above
        self._low: Array | None = None
        self._high: Array | None = None

    def add(self, pred: Array, residuals: Array) -> None:
        low, high = pred - residuals, pred + residuals
        if self._low is not None and self._high is not None:
            low, high = np.hstack([self._low, low]), np.hstack([self._high, high])
        self._low = _smallest(low, self._below)
        self._high = -_smallest(-high, self._above)

    @property
    def lower(self) -> Array:
        assert self._low is not None
        return self._low.max(axis=1) if self._below else np.full(len(self._low), -math.inf)

    @property
    def upper(self) -> Array:
        assert self._high is not None
        return self._high.min(axis=1) if self._above > 0 else np.full(len(self._high), math.inf)


def _smallest(values: Array, k: int) -> Array:
    """The k smallest of every row, one where k is 0."""
    k = max(k, 1)
    return values if values.shape[1] <= k else np.partition(values, k - 1, axis=1)[:, :k]


def _predictions(loo: LeaveOneOut, X: Any, part: int, counted: NDArray[np.bool_]) -> Any:
    """Of X by the models without each counted sample, and which samples these are."""
    design = loo.design_of(X)
    before = design.matvec(loo.points[part])[:, None]
    for groups, effects in loo.effects(part, design):
        places = np.full(int(loo.groups.max()) + 1, -1)
        places[groups] = np.arange(len(groups))
        rows = np.flatnonzero(counted & (places[loo.groups] >= 0))
        # samples without weight have a level, and blocks, of their own
        if len(rows):
            yield before + effects[:, places[loo.groups[rows]]], rows


def _label_sets(loo: LeaveOneOut, X: Any, level: float, method: Method) -> NDArray[np.bool_]:
    """Labels whose score is not among the largest; the score is minus the decision value of y."""
    assert loo.classes is not None
    counted, binary = loo.sample_weight > 0, loo.decision.ndim == 1
    own = np.searchsorted(loo.classes, loo.y).clip(0, len(loo.classes) - 1)
    scores = _own_scores(loo, own)
    _, high = _ranks(int(counted.sum()), level)
    found = []
    for k in range(len(loo.classes)):
        part, sign = (0, 1.0 if k == 1 else -1.0) if binary else (k, 1.0)
        below: Array | None = None
        best: Array | None = None
        for pred, rows in _predictions(loo, X, part, counted):
            score = -sign * pred
            more = (scores[rows] < score).sum(axis=1)
            below = more if below is None else below + more
            least = score.min(axis=1)
            best = least if best is None else np.minimum(best, least)
        assert below is not None and best is not None
        if method == "minmax":
            below = (scores[counted] < best[:, None]).sum(axis=1)
        found.append(below < high)
    return np.stack(found, axis=1)


def _own_scores(loo: LeaveOneOut, own: NDArray[np.intp]) -> Array:
    """Minus the decision value of every sample's own label, the largest that bounds allow."""
    if loo.decision.ndim == 1:
        return np.where(own == 1, -loo.lower, loo.upper)
    return -np.take_along_axis(loo.lower, own[:, None], axis=1)[:, 0]
