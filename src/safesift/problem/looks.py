"""What a pass finds at the predictions: slopes, and every sum over the samples that is ever needed.

    predictions → `Look` → slopes ν, loads s_i ν_i/W, `SampleSums`

A look goes through a pass (`Design.pass_through`) block by block. Losses with closed forms have one
compiled loop that reads predictions, targets and weights once (`arithmetic.compiled.samples`); the
others are looked at in NumPy, which is also what the laws compare the loops with.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import numerics
from safesift.arithmetic.numerics import EPS, UNDERFLOW, exact_sum, total
from safesift.arithmetic.threads import run
from safesift.losses import Loss

if TYPE_CHECKING:
    from safesift.problem.problem import Problem

Array = NDArray[np.float64]


class SideSums(NamedTuple):
    """Of the slopes of one sign: see `SampleSums`."""

    load: float
    mass: float
    first: float
    second: float


class SampleSums(NamedTuple):
    """(1/W) Σ s_i times something, over the samples. All but `loss` need only be about right.

    Attributes
    ----------
    loss : float
        The loss.
    load_up, load_down : float
        |ν_i|·‖a_i‖, of positive and of negative slopes.
    mass_up, mass_down : float
        |ν_i|.
    first_up, first_down, second_up, second_down : float
        What it costs the dual value, beside the penalty's part, to shrink those slopes by a factor
        1 − η: at most η·first + η²·second.
    change : float
        How much the error of the prediction may change the loss.
    drift : float
        ‖a_i‖ times how much it may change the slope; 0 for losses with kinks.
    size : float
        The size of the terms of the loss, to which its rounding is relative.
    """

    loss: float
    load_up: float
    load_down: float
    mass_up: float
    mass_down: float
    first_up: float
    first_down: float
    second_up: float
    second_down: float
    change: float
    drift: float
    size: float

    @property
    def up(self) -> SideSums:
        """Of the positive slopes."""
        return SideSums(self.load_up, self.mass_up, self.first_up, self.second_up)

    @property
    def down(self) -> SideSums:
        """Of the negative slopes."""
        return SideSums(self.load_down, self.mass_down, self.first_down, self.second_down)

    @property
    def load(self) -> float:
        """(1/W) Σ s_i |ν_i|·‖a_i‖."""
        return self.load_up + self.load_down


class Look:
    """What is found of one problem at the predictions of one point.

    Parameters
    ----------
    problem : Problem
    size : float
        The size of the point, to which the rounding of its predictions is relative.

    Attributes
    ----------
    nu : array of shape (n_samples,)
    """

    def __init__(self, problem: Problem, size: float) -> None:
        self._problem, self._size = problem, size
        self._loops = problem.risk.targets.loops
        self.nu = problem.design.zeros(problem.design.n_samples)
        self._sums: list[tuple[float, ...]] = []

    def __call__(self, pred: Array, rows: slice) -> Array:
        """The loads of some samples."""
        if self._loops is None:
            self.nu[rows], loads, sums = _in_numpy(self._problem, self._size, pred, rows)
            self._sums.append(sums)
            return loads
        from safesift.arithmetic.compiled import samples

        loads = np.empty(len(pred))
        pred = np.ascontiguousarray(pred)
        found = samples.look_at(
            self._loops, rows.start, pred, *self._of_samples, self.nu[rows], loads
        )
        self._note(found)
        return loads

    def of_all(self, pred: Array) -> Array:
        """The loads of all samples."""
        loads = np.empty_like(pred)

        def look(rows: slice) -> None:
            loads[rows] = self(pred[rows], rows)

        run(look, self._problem.design.sample_blocks)
        return loads

    @property
    def fused(self) -> Any:
        """The same together with both products, for designs whose rows compiled loops can read.

        `fused(matrix, rows, block, x, ones, pred, gradient)` fills predictions and gradient; None
        for losses without such a loop.
        """
        return None if self._loops is None else self._pass

    def _pass(
        self,
        matrix: tuple[Any, ...],
        rows: slice,
        block: int,
        x: Array,
        ones: bool,
        pred: Array,
        gradient: Array,
    ) -> None:
        from safesift.arithmetic.compiled import samples

        found = samples.pass_through(
            matrix, rows.start, rows.stop, block, x, ones, self._loops, *self._of_samples, pred,
            self.nu, gradient,
        )  # fmt: skip
        self._note(found)

    @property
    def _of_samples(self) -> tuple[Any, ...]:
        """Shares, norms, sizes of targets, and errors, as the loops take them."""
        problem, design = self._problem, self._problem.design
        loss = problem.loss
        errors = (
            design.dot_error * self._size,
            design.n_columns * UNDERFLOW,
            float(loss.proved_smoothness),
            float(loss.lipschitz),
        )
        return problem.shares, design.row_norms, problem.risk.targets.sizes, errors

    def _note(self, found: Array) -> None:
        self._sums.append((*found.tolist(), float(found[0])))

    @property
    def sums(self) -> SampleSums:
        """Over all samples that were looked at."""
        if not self._sums:
            return SampleSums(*[0.0] * len(SampleSums._fields))
        return SampleSums(*map(exact_sum, zip(*self._sums, strict=True)))


def prediction_error(problem: Problem, size: float, pred: Array, rows: slice) -> Array:
    """Bounds on the error of some predictions and of their distance to the targets."""
    norms, sizes = problem.design.row_norms[rows], problem.risk.targets.sizes
    sizes = sizes[rows] if len(sizes) > 1 else sizes
    rounding = numerics.prediction_error(problem.design, size, norms, pred, sizes)
    return rounding + problem.loss.precision * (np.abs(pred) + sizes + 1.0)


def _in_numpy(
    problem: Problem, size: float, pred: Array, rows: slice
) -> tuple[Array, Array, tuple[float, ...]]:
    """Slopes, loads and sums of some samples, for any loss."""
    loss, y, shares = problem.loss.take(rows), problem.y[rows], problem.shares[rows]
    nu, value = loss.slope(pred, y), loss.value(pred, y)
    loads = np.multiply(shares, nu, out=np.zeros_like(pred), where=shares > 0)
    error, norms = prediction_error(problem, size, pred, rows), problem.design.row_norms[rows]
    if math.isinf(loss.proved_smoothness):
        change = _rise(loss, pred, error, y)
    else:
        change = error * (np.abs(nu) + 0.5 * loss.proved_smoothness * error)
    # beyond a kink slopes are others: there a subgradient is taken as it is (`Rounding.cut`)
    kinked = math.isinf(loss.smoothness)
    drift = np.zeros_like(nu) if kinked else loss.slope_error(pred, error, y)
    mass, nothing = np.abs(nu), np.zeros_like(nu)
    # by convexity and f*(0) = 0, f*((1 − η)ν) ≤ (1 − η)·f*(ν): that costs at most η·f(t)
    split = [
        total(np.where(side, shares, 0.0), values)
        for values in (mass * norms, mass, value, nothing)
        for side in (nu > 0, nu < 0)
    ]
    sums = (
        total(shares, value),
        *split,
        total(shares, np.minimum(change, loss.lipschitz * error)),
        total(shares, norms * drift),
        total(shares, loss.value_size(pred, y)),
    )
    return nu, loads, sums


def _rise(loss: Loss, pred: Array, error: Array, y: Array) -> Array:
    """The most by which a convex loss changes within some distance: how far it rises to the ends.

    Far from a kink on a flat piece that is nothing, whatever the Lipschitz constant.
    """
    ends = np.maximum(loss.value(pred - error, y), loss.value(pred + error, y))
    rounding = (32 * EPS + 4.0 * loss.precision) * loss.value_size(pred, y)
    return (ends - loss.value(pred, y)) + rounding
