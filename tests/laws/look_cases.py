"""What the laws of looks are checked on: samples with predictions, passes, rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse as scipy_sparse

from safesift.arithmetic import numerics
from safesift.arithmetic.compiled import samples as loops
from safesift.arithmetic.numerics import EPS
from safesift.design import as_design, blocks, dense
from safesift.design import sparse as csr
from safesift.losses import LOSSES, Huber, Loss, SmoothedEpsilonInsensitive, SmoothedInterval
from safesift.losses.multiples import Scaled
from safesift.penalties import L2
from safesift.problem import looks
from safesift.problem.looks import SampleSums
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk
from tests.laws import exact
from tests.laws.definitions import written
from tests.laws.strategies import (
    EXTREMES,
    LOSS_NAMES,
    as_targets,
    eighths,
    entries,
    kinks,
    losses,
    numbers,
    predictions,
    targets,
)

# additions to the library may have no second definition, and need no loop
NAMES = [name for name in LOSS_NAMES if name in written(LOSSES)]
PIECEWISE = [name for name in NAMES if LOSSES[name].quadratic_rays]
# slopes that stay the same from 1 on
SATURATED: dict[str, Loss] = {
    "huber": Huber(delta=1.0),
    "smoothed_epsilon_insensitive": SmoothedEpsilonInsensitive(epsilon=0.0, width=1.0),
    "smoothed_interval": SmoothedInterval(width=1.0),
}
FIELDS = SampleSums._fields
# a few roundings
FEW = 16 * EPS

Terms = dict[str, np.ndarray]


class Case(NamedTuple):
    """Samples, what is predicted of them, and the size of the point that predicts it."""

    problem: Problem
    size: float
    pred: np.ndarray

    @property
    def n(self) -> int:
        return len(self.pred)

    def terms(self) -> tuple[np.ndarray, Terms]:
        """Slopes, and of every sum the term of each sample, by the loop: of one sample at a time.

        There its share is 1.
        """
        look, nu, rows = looks.Look(self.problem, self.size), np.empty(self.n), []
        _, *others = look._of_samples
        for i in range(self.n):
            here = slice(i, i + 1)
            found = loops.look_at(
                look._loops, i, self.pred[here], np.ones(self.n), *others, nu[here], np.empty(1)
            )
            rows.append([*found, found[0]])
        return nu, dict(zip(FIELDS, np.array(rows).T, strict=True))

    def in_numpy(self) -> tuple[np.ndarray, Terms]:
        """The same by the NumPy form."""
        risk = self.problem.risk.reweighted(np.ones(self.n)).with_divisor(1.0)
        problem, rows, nu = Problem(risk, self.problem.penalty, 1.0), [], np.empty(self.n)
        for here in (slice(i, i + 1) for i in range(self.n)):
            nu[here], _, sums = looks._in_numpy(problem, self.size, self.pred[here], here)
            rows.append(sums)
        return nu, dict(zip(FIELDS, np.array(rows).T, strict=True))

    @property
    def near(self) -> np.ndarray:
        """How far from a prediction its loss may be looked at: a few roundings of its terms."""
        sizes = np.broadcast_to(self.problem.risk.targets.sizes, self.n)
        return FEW * (np.abs(self.pred) + sizes + 1.0)

    def exact(self, i: int) -> ExactSample:
        design = self.problem.design
        wide = Fraction(design.dot_error * self.size * design.row_norms[i])
        y = exact.target(self.problem.y[i])
        return ExactSample(self.problem.loss, i, y, Fraction(float(self.pred[i])), wide)


class ExactSample(NamedTuple):
    """A sample in exact arithmetic; its exact prediction is at most `wide` away."""

    loss: Loss
    i: int
    y: exact.Target
    t: Fraction
    wide: Fraction

    @property
    def possible(self) -> list[Fraction]:
        """Predictions; of convex functions those at the ends differ most."""
        return [self.t - self.wide, self.t, self.t + self.wide]

    def value(self, t: Fraction) -> Fraction:
        loss, factor = _unscaled(self.loss)
        return factor * exact.value(loss, self.i, t, self.y)

    def slope(self, t: Fraction) -> Fraction:
        loss, factor = _unscaled(self.loss)
        return factor * exact.slope(loss, self.i, t, self.y)

    def cost(self, t: Fraction, shrink: Fraction) -> Fraction:
        """f*((1 − η)ν) − f*(ν) + ηtν at the slope ν of t."""
        loss, factor = _unscaled(self.loss)
        nu = exact.slope(loss, self.i, t, self.y)
        before, after = (
            exact.conjugate(loss, self.i, one, self.y) for one in (nu, (1 - shrink) * nu)
        )
        return factor * (after - before + shrink * t * nu)


def _unscaled(loss: Loss) -> tuple[Loss, Fraction]:
    return (
        (loss.loss, Fraction(float(loss.factor))) if isinstance(loss, Scaled) else (loss, exact.ONE)
    )


def problem_of(design, loss: Loss, y: np.ndarray, weights: np.ndarray) -> Problem:
    return Problem(Risk.of(design, loss, y, weights), L2(), 1.0)


# --- how they are generated -----------------------------------------------------------------------


@st.composite
def chosen_losses(draw, name: str, n: int):
    """A registered loss with its parameters, maybe one per sample; or a multiple with a loop."""
    loss = draw(losses(name, n))
    if not loss.quadratic_rays or draw(st.booleans()):
        return loss
    return Scaled(loss, draw(st.sampled_from([0.25, 1 / 3, 7.0])))


extreme = st.sampled_from([x for x in EXTREMES if abs(x) < 1e150] + [1e-30, -1e12, 1e100])
beyond = st.sampled_from([math.inf, -math.inf, math.nan, 1e160, -1e200, 1e300])
# none, and next to none: smaller shares are refused
some_weights = st.sampled_from([0.0, 1e-280, 1e-8, 0.3, 1.0, 2.0, 1e12])


@st.composite
def cases(draw, name: str, wild: bool = False):
    """Predictions at kinks, next to them, tiny and large; `wild`: infinite and none as well."""
    n = draw(st.integers(1, 7))
    loss = draw(chosen_losses(name, n))
    y = draw(targets(loss, n, st.one_of(numbers, extreme) if draw(st.booleans()) else numbers))
    pred = draw(predictions(loss, y, st.one_of(numbers, extreme)))
    if wild:
        odd = draw(hnp.arrays(np.bool_, n))
        pred = np.where(odd, draw(hnp.arrays(np.float64, n, elements=beyond)), pred)
    weights = draw(hnp.arrays(np.float64, n, elements=some_weights))
    weights[0] = 1.0
    X = draw(hnp.arrays(np.float64, (n, 2), elements=entries))
    # from exact predictions to some of which hardly a digit is right
    size = draw(st.sampled_from([0.0, 1.0, 3e4, 3e12]))
    return Case(problem_of(as_design(X, True), loss, y, weights), size, pred)


# parameters and factors with which nothing is rounded
DYADIC = {"mu": [0.0, 0.5, 1.0], "delta": [0.5, 2.0], "width": [0.25, 1.0], "epsilon": [0.0, 0.25]}


@st.composite
def dyadic_cases(draw, name: str):
    """Eighths, of which sums and products are floats."""
    n, kind = draw(st.integers(1, 5)), LOSSES[name]
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    loss = kind(**{one: draw(st.sampled_from(DYADIC[one])) for one in known})
    if draw(st.booleans()):
        loss = Scaled(loss, draw(st.sampled_from([0.25, 4.0])))
    y = draw(targets(loss, n, eighths))
    pred = draw(hnp.arrays(np.float64, n, elements=eighths))
    ends = kinks(loss, y)
    if len(ends) and draw(st.booleans()):
        pred = np.where(np.isfinite(ends[0]), ends[0], pred)
    return Case(problem_of(as_design(np.ones((n, 1)), False), loss, y, np.ones(n)), 1.0, pred)


STORAGES = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "Fortran, float32": lambda X: np.asfortranarray(X.astype(np.float32)),
    "csr": scipy_sparse.csr_array,
    "csr, float32": lambda X: scipy_sparse.csr_array(X.astype(np.float32)),
    "csr, 64 bit": lambda X: _long(scipy_sparse.csr_array(X)),
}


def _long(matrix: Any) -> Any:
    matrix.indices, matrix.indptr = matrix.indices.astype("int64"), matrix.indptr.astype("int64")
    return matrix


class Pass(NamedTuple):
    """Samples, and a point to go to."""

    problem: Problem
    point: np.ndarray


@st.composite
def passes(draw, name: str, storage: str):
    """More rows than a block has, and more blocks than a task; points whose losses overflow."""
    n, p = draw(st.integers(1, 70)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    loss = draw(chosen_losses(name, n))
    X = _some_eighths(rng, n, p)
    weights = rng.choice([0.0, 1.0, 2.0, 0.3], size=n)
    weights[0] = 1.0
    y = rng.integers(-16, 17, size=n) / 8.0
    if loss.task == "classification":
        y = np.where(y > 0, 1.0, -1.0)
    if loss.task == "interval":
        ends = np.stack([y, y + rng.integers(0, 8, size=n) / 8.0], axis=1)
        y = np.where(rng.random((n, 2)) < [[0.2, 0.0]], [[-np.inf, np.inf]], ends)
    design = as_design(STORAGES[storage](X), draw(st.booleans()))
    far = numbers if draw(st.booleans()) else st.sampled_from([0.5, 1e160, -1e200])
    point = draw(hnp.arrays(np.float64, design.n_columns, elements=far))
    return Pass(problem_of(design, loss, y, weights), point)


def _some_eighths(rng, n: int, p: int) -> np.ndarray:
    return rng.integers(-24, 25, size=(n, p)) / 8.0 * (rng.random((n, p)) < 0.7)


class Rows(NamedTuple):
    """A matrix, some of its rows, and numbers for its columns and for those rows."""

    X: np.ndarray
    storage: str
    rows: np.ndarray
    x: np.ndarray
    scales: np.ndarray


@st.composite
def some_rows(draw, storage: str):
    n, p, k = draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(0, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    rows = rng.integers(0, n, size=k)
    order = draw(st.sampled_from(["any", "increasing", "next to each other"]))
    if order != "any":
        rows = np.unique(rows)
    if order == "next to each other" and k:
        rows = np.arange(rows[0], rows[-1] + 1)
    x, scales = rng.integers(-9, 10, size=p) / 4.0, rng.integers(-9, 10, size=len(rows)) / 4.0
    return Rows(_some_eighths(rng, n, p), storage, rows, x, scales)


@st.composite
def balanced(draw, name: str):
    """Slopes that cancel up to rounding: to shrink those of one sign costs a lot, the others none.

    The one half is where the slope is just saturated, the other half far beyond. There is no
    feature, so that the gap is what an intercept is worth.
    """
    n = draw(st.integers(3, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    up, down = rng.random(n) + 0.5, rng.random(n) + 0.5
    weights = np.r_[up, down * (up.sum() / down.sum())]
    side = draw(st.sampled_from([-1.0, 1.0]))
    loss, y = SATURATED[name], side * np.repeat([-1.0, 100.0], n)
    design = as_design(np.zeros((2 * n, 1)), True)
    return Pass(problem_of(design, loss, as_targets(loss, y), weights), np.zeros(2))


@contextmanager
def small_blocks() -> Iterator[None]:
    """So that few rows make several blocks, and several tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numerics, "_BLOCK", 3)
        patch.setattr(dense, "_BLOCK", 1)
        patch.setattr(csr, "_BLOCK_ENTRIES", 1)
        patch.setattr(csr, "_ENTRIES_PER_COLUMN", 0)
        patch.setattr(blocks, "_TASK_ENTRIES", 100)
        yield
