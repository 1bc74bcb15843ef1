"""The samples of a problem, whatever its penalty: rows, targets, weights.

    (1/W) Σ s_i f(a_iᵀx + c; b_i),    W = Σ s_i

What is known of them is found once and serves all levels of a path: of `WeightedRows` for all
classes, of `Targets` for all folds of a cross-validation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import on_host
from safesift.arithmetic.fingerprints import fingerprint
from safesift.arithmetic.numerics import EPS, UNDERFLOW, norm, target_size, total
from safesift.arithmetic.printing import Brief
from safesift.design.base import Design
from safesift.design.rows import rows_of
from safesift.losses import Loss
from safesift.problem.evaluation import Quadratic
from safesift.problem.pieces import SamplePieces

Array = NDArray[np.float64]

# targets that spread by less than this share of their size differ by the rounding of their mean
_SAME = 64 * EPS
# |computed s_i/W − exact| ≤ this·s_i/W: W is a pairwise sum, of which the first 128 terms lose
# 19·EPS/2 at most and every doubling of their number one more; there are fewer than 2⁵³
SHARE_ERROR = 40 * EPS
# so many steps are made towards a root, and one of so many is a bisection in any case
_MOST_TRIED, _BISECTED = 1000, 8
# a smaller share of all weights is denormal, or next to it: nothing bounds its rounding
_LEAST_SHARE = 1e-300


class ChangedDataError(RuntimeError):
    """What is proved of some samples is asked for after they have changed."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} changed after this result was made, and nothing is proved of what is there "
            "now: make the result anew, or give it a copy that stays as it is."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Targets(Brief):
    """What the samples ask of their predictions.

    Parameters
    ----------
    loss : Loss
    y : array of shape (n_samples,) or (n_samples, 2)
        Labels -1 and 1, numbers, or lower and upper ends.
    """

    loss: Loss
    y: Array

    @cached_property
    def pieces(self) -> SamplePieces:
        """The pieces of every sample's loss."""
        return SamplePieces.made(self.loss, self.y)

    @cached_property
    def centers(self) -> Array:
        """A number per sample where its loss is small: the target, the middle of an interval."""
        anchors = self.loss.anchors(self.y)
        return (anchors / len(anchors)).sum(axis=0)

    @cached_property
    def loops(self) -> tuple[Any, ...] | None:
        """What compiled loops know the loss by; None where there is none for it."""
        return self.loss.loops(self.y) if isinstance(self.y, np.ndarray) else None

    @cached_property
    def sizes(self) -> Array:
        """The largest finite number of every target, one for all where they are labels."""
        if self.loss.task == "classification":
            return np.ones(1)
        return target_size(self.loss, self.y)

    def take(self, rows: NDArray) -> Targets:
        """Those of some samples."""
        return Targets(self.loss.take(rows), self.y[rows])

    @cached_property
    def seal(self) -> bytes:
        """The fingerprint of the targets when it is first asked for."""
        return fingerprint(self.y)


@dataclass(frozen=True, eq=False)
class Middle:
    """The mean of weighted rows, features only, and where it leaves each of them.

    Attributes
    ----------
    row : array of shape (n_features,)
        μ, to rounding.
    along : array of shape (n_samples,)
        a_iᵀμ.
    row_sq : float
        ‖μ‖².
    """

    row: Array
    along: Array
    row_sq: float


@dataclass(frozen=True, eq=False, repr=False)
class WeightedRows(Brief):
    """The rows, and what each of them counts.

    Parameters
    ----------
    design : Design
        With a column of ones where there is an intercept.
    weights : array of shape (n_samples,)
        Sample weights s_i.
    divisor : float
        W, the total weight of the *full* problem. It stays when rows are dropped.
    """

    design: Design
    weights: Array
    divisor: float

    @cached_property
    def shares(self) -> Array:
        """s_i / W, to SHARE_ERROR."""
        return self.weights / self.divisor

    @cached_property
    def middle(self) -> Middle:
        """Their mean, found once for all classes; of rows with a one for an intercept."""
        assert rows_of(self.design).intercept, "the last entry of the mean is that of the ones"
        weight = float(self.shares.sum()) or 1.0
        mean = self.design.rmatvec(self.shares / weight)
        mean[-1] = 0.0
        # a power of a float would raise where a product is infinite
        length = norm(mean)
        return Middle(mean[:-1], self.design.matvec(mean), length * length)

    @cached_property
    def underflow(self) -> float:
        """What products of shares, slopes and entries lose by underflow, in Aᵀ(s∘ν)/W.

        In each of n sums the product of a share and a slope loses half the smallest number, times a
        row, and its product with an entry as much again. The same for alpha times the coefficients.
        """
        design = self.design
        spread = math.sqrt(design.n_columns) if design.has_rows else 1.0
        counted = float(design.row_norms[self.weights > 0].sum())
        return UNDERFLOW * (counted + (design.n_samples + 8) * spread)

    @cached_property
    def columns_sq(self) -> Array:
        """(1/W) Σ s_i a_ij² for every column: one pass."""
        return rows_of(self.design).columns_sq(self.shares)

    def take(self, rows: NDArray) -> WeightedRows:
        """Some of them; W does not change."""
        return WeightedRows(rows_of(self.design).take(rows), self.weights[rows], self.divisor)

    @cached_property
    def seal(self) -> bytes:
        """The fingerprint of rows and weights when it is first asked for."""
        return self._fingerprint()

    def _fingerprint(self) -> bytes:
        return fingerprint(self.design.fingerprint(), self.weights)


class Constant(NamedTuple):
    """The best constant model, 0 without an intercept, and P there."""

    intercept: float
    value: float


@dataclass(frozen=True, eq=False, repr=False)
class Risk(Brief):
    """The mean loss of weighted samples.

    Parameters
    ----------
    rows : WeightedRows
    targets : Targets
    """

    rows: WeightedRows
    targets: Targets

    @classmethod
    def of(cls, design: Design, loss: Loss, y: Array, weights: Array) -> Risk:
        """Samples as they come: divided by their total weight."""
        return cls(_weighted(design, weights), Targets(loss, design.vector(y)))

    @property
    def design(self) -> Design:
        return self.rows.design

    @property
    def shares(self) -> Array:
        """s_i / W."""
        return self.rows.shares

    @cached_property
    def unit(self) -> float:
        """The scale of predictions: 1 for labels, the spread of the targets for regression.

        Of targets that are all the same, up to rounding, their size.
        """
        if self.targets.loss.task == "classification":
            return 1.0
        weight = float(self.shares.sum())
        if weight == 0:
            return 1.0
        centers = self.targets.centers
        mean = total(self.shares, centers) / weight
        spread = total(self.shares, np.abs(centers - mean))
        size = total(self.shares, np.abs(centers))
        return spread if spread > _SAME * size else size or 1.0

    @cached_property
    def best_constant(self) -> Constant:
        """The best constant model, by whose objective gaps are made relative."""
        return best_constant(self, None)

    def seal(self) -> None:
        """Remember what the samples are, for `check_unchanged`: in about the time of a product.

        Rows are looked at once for all targets, and for all levels of a path.
        """
        _ = self.rows.seal, self.targets.seal

    def check_unchanged(self) -> None:
        """Raise `ChangedDataError` where samples are no longer what they were when sealed.

        Samples that were not sealed are sealed now, and cannot tell.
        """
        if self.rows.seal != self.rows._fingerprint():
            raise ChangedDataError("X or sample_weight")
        if self.targets.seal != fingerprint(self.targets.y):
            raise ChangedDataError("y")

    def reweighted(self, weights: Array) -> Risk:
        """The same samples with other weights, and their sum as the divisor."""
        return replace(self, rows=_weighted(self.design, weights))

    def with_divisor(self, divisor: float) -> Risk:
        """The same samples divided by another W."""
        return replace(self, rows=replace(self.rows, divisor=divisor))

    def on(self, design: Design) -> Risk:
        """The same targets and weights for other rows, such as some of their columns."""
        return replace(self, rows=replace(self.rows, design=design))

    def restrict(self, rows: NDArray) -> Risk:
        """Only some of the samples in the sum; W does not change."""
        return Risk(self.rows.take(rows), self.targets.take(rows))


def _weighted(design: Design, weights: Array) -> WeightedRows:
    # pairwise, as SHARE_ERROR has it: no device promises as much
    weights = on_host(weights)
    total = float(weights.sum())
    check_shares(weights, total)
    return WeightedRows(design, design.vector(weights), total)


def check_shares(weights: Array, total: float) -> None:
    """Refuse weights that are next to nothing beside all of them together, and yet not 0."""
    lost = np.flatnonzero((weights > 0) & (weights < _LEAST_SHARE * total))
    if lost.size:
        raise ValueError(
            f"sample_weight is {weights[lost[0]]:.2g} for row {lost[0]}, next to a total of "
            f"{total:.2g}, which is too little to compute with: set it to 0."
        )


def best_constant(risk: Risk, folded: Quadratic | None) -> Constant:
    """The constant for which the mean loss, and what is folded away, is least."""
    if not risk.design.intercept:
        return Constant(0.0, _Constants(risk, folded, 0.0).objective(0.0))
    origin, reach = _range(risk)
    if not math.isfinite(reach):
        # so far from each other that arithmetic has no constant for them
        return Constant(0.0, _Constants(risk, folded, 0.0).objective(0.0))
    model, enough = _Constants(risk, folded, origin), EPS * risk.unit
    with np.errstate(over="ignore", invalid="ignore"):
        offset = _least(model.slope, 0.0, reach, enough)
        left = 16 * EPS * abs(origin) + 16 * EPS * reach
        if left > _SAME * risk.unit:
            # far from zero, or from each other: what is left of the offset is found next to it
            model = _Constants(risk, folded, origin + offset)
            offset = _least(model.slope, -left, left, enough) if model.slope(0.0) else 0.0
        return Constant(model.origin + offset, model.objective(offset))


def _range(risk: Risk) -> tuple[float, float]:
    """Where the best constant lies: the lower end, and how far the upper one is (not 0).

    Labels have their best log-odds within ±64, targets their best constant among themselves,
    intervals among their finite ends.
    """
    loss, counted = risk.targets.loss, risk.shares > 0
    if loss.task == "classification" or not counted.any():
        return -64.0, 128.0
    anchors = [own[counted] for own in loss.anchors(risk.targets.y)]
    low = min(float(own.min()) for own in anchors)
    high = max(float(own.max()) for own in anchors)
    return low, (high - low) or 1.0


def _least(slope: Callable[[float], float], low: float, high: float, enough: float) -> float:
    """Where between two points a convex function of that slope is least, to rounding or `enough`.

    Regula falsi with Illinois' halving, and bisection where slopes are the same on a stretch.
    """
    below, above = slope(low), slope(high)
    if not below < 0:
        return low
    if not above > 0:
        return high
    last, bisects = 0.0, False
    for n_tried in range(1, _MOST_TRIED):
        width, step = high - low, max(2 * EPS * max(abs(low), abs(high)), enough, UNDERFLOW)
        if not width > 2 * step:
            break
        at = low + width * (0.5 if bisects else below / (below - above))
        # a step beyond an end that is nearly the root makes it both ends
        at = min(max(at, low + step), high - step)
        found = slope(at)
        if found == 0:
            return at
        bisects = found == last or n_tried % _BISECTED == 0
        if found > 0:
            high, above, below = at, found, 0.5 * below if last > 0 else below
        else:
            low, below, above = at, found, 0.5 * above if last < 0 else above
        last = found
    return low + 0.5 * (high - low)


@dataclass(frozen=True, eq=False)
class _Constants:
    """P of constant models, by how far they are from an origin."""

    risk: Risk
    folded: Quadratic | None
    origin: float

    @cached_property
    def _targets(self) -> tuple[Array, Array, float]:
        """Targets, their shares, and what an offset is a prediction from.

        Equal labels are put together; other targets are measured from the origin, exactly.
        """
        y, shares = self.risk.targets.y, self.risk.shares
        if self.risk.targets.loss.task != "classification":
            return y - self.origin, shares, 0.0
        positive = float(shares[y > 0].sum())
        return np.array([-1.0, 1.0]), np.array([shares.sum() - positive, positive]), self.origin

    def objective(self, offset: float) -> float:
        y, shares, zero = self._targets
        value = total(shares, self.risk.targets.loss.value(np.full_like(shares, zero + offset), y))
        return value if self.folded is None else value + self.folded.value(self._point(offset))

    def slope(self, offset: float) -> float:
        """The derivative; at a kink one of the slopes there."""
        y, shares, zero = self._targets
        slope = total(shares, self.risk.targets.loss.slope(np.full_like(shares, zero + offset), y))
        if self.folded is not None:
            slope += float(self.folded.gradient(self._point(offset))[-1])
        return slope

    def _point(self, offset: float) -> Array:
        design = self.risk.design
        point = np.zeros(design.n_columns)
        point[design.n_features :] = self.origin + offset
        return point
