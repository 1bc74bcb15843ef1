"""Weights with which the kept rows pull at the solution as all rows do.

At a solution x* with dual solution ν the loss pulls with g = Σ s_i ν_i a_i. If weights v of the
kept rows give Σ v_i ν_i a_i = g and Σ v_i = W, then x* is optimal for the kept rows with the same
alpha: ν_i is a slope of f_i at a_iᵀx*, and the penalty's subgradient is the same. (Calibration of
survey weights to known totals; by Carathéodory's theorem some n_columns + 1 rows suffice.)

The design weights d = s/π fulfil that on average. They are moved as little as needed:

    minimise  ‖Σ v_i ν_i a_i − g‖²_{H⁻¹} + c²(Σ v_i − W)² + ρ Σ (v_i − d_i)²/d_i,   d/10 ≤ v ≤ 5d

with a small ρ, which decides where there are fewer rows than dimensions. One total for every class
against the rest, and one weight for each stratum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, lsqr

from safesift.design import Design
from safesift.workflows.compression.hybrid import UNIFORM
from safesift.workflows.compression.metric import LeverageMetric
from safesift.workflows.compression.samples import Rows, Samples
from safesift.workflows.compression.strata import Strata, masses_of

Array = NDArray[np.float64]

# how far weights may move, as multiples of the design weights
_LEAST, _MOST = 0.1, 5.0
# ρ relative to the mean eigenvalue of what is to be inverted; rounds bring the rest
_DAMPING = 1e-2
_ROUNDS, _STEPS, _PRECISION = 6, 30, 1e-3


@dataclass(frozen=True, eq=False)
class Totals:
    """The kept rows, as a map from weights to what must add up."""

    design: Design
    slopes: Array
    metric: LeverageMetric
    strata: NDArray[np.intp]
    n_strata: int
    unit: float

    def of(self, weights: Array) -> Array:
        pull = self.metric.whiten(self.design.rmatvec(weights[:, None] * self.slopes))
        masses = masses_of(self.strata, weights, self.n_strata)
        return np.concatenate([pull.ravel(), self.unit * masses])

    def transpose(self, totals: Array) -> Array:
        shape = (self.design.n_columns, self.slopes.shape[1])
        pull = self.metric.whiten_transpose(totals[: -self.n_strata].reshape(shape))
        by_row = np.einsum("ik,ik->i", self.slopes, self.design.matvec(pull))
        return by_row + self.unit * totals[-self.n_strata :][self.strata]


def design_weights(weights: Array, inclusion: Array) -> Array:
    """s/π, none more than 5 times as large as the mean one."""
    given = weights / np.maximum(inclusion, 1e-12)
    return np.minimum(given, given.mean() / UNIFORM)


def calibrated(samples: Samples, kept: NDArray[np.intp], weights: Array, strata: Strata) -> Array:
    """Weights near the given ones, with which the kept rows pull as all rows do.

    Parameters
    ----------
    samples : Samples
    kept : array of int
        Indices of the kept rows, rising.
    weights : array of shape (n_kept,)
        Design weights.
    strata : Strata
        Each keeps its total weight, exactly.
    """
    unit = float(np.sqrt(samples.sum(_pull_sq) / samples.n_rows)) or 1.0
    masses = strata.masses(samples, lambda rows: rows.weights)
    wanted = np.concatenate([samples.metric.whiten(samples.pull).ravel(), unit * masses])
    design, slopes = samples.taken(kept)
    mine = samples.at(kept, strata.codes)
    part = Totals(design, slopes, samples.metric, mine, strata.n, unit)
    pulls_sq = samples.at(kept, _pull_sq)
    damping = _DAMPING * float(weights @ (pulls_sq + unit**2)) / len(wanted)
    return rescaled(_moved(part, weights, wanted, np.sqrt(damping)), mine, masses)


def _pull_sq(rows: Rows) -> Array:
    return np.where(rows.counted, rows.slope_sizes**2 * rows.leverage, 0.0)


def _moved(part: Totals, weights: Array, wanted: Array, damping: float) -> Array:
    """Damped least squares on the weights that are not at an end of their interval."""
    low, high = _LEAST * weights, _MOST * weights
    found, free = weights.copy(), np.ones(len(weights), dtype=bool)
    for _ in range(_ROUNDS):
        roots = np.where(free, np.sqrt(weights), 0.0)
        operator = LinearOperator(
            (len(wanted), len(weights)),
            matvec=lambda u, roots=roots: part.of(roots * u.ravel()),
            rmatvec=lambda r, roots=roots: roots * part.transpose(r.ravel()),
            dtype=np.float64,
        )
        missing = wanted - part.of(found)
        step = lsqr(
            operator, missing, damp=damping, iter_lim=_STEPS, atol=_PRECISION, btol=_PRECISION
        )[0]
        found = np.clip(found + roots * step, low, high)
        free = (found > low) & (found < high)
        if not free.any():
            break
    return found


def rescaled(weights: Array, strata: NDArray[np.intp], masses: Array) -> Array:
    """The same weights times a factor per stratum, so that each has its total."""
    found = masses_of(strata, weights, len(masses))
    factors = np.divide(masses, found, out=np.ones_like(masses), where=found > 0)
    scaled = weights * factors[strata]
    # strata of which nothing is kept: the others carry their weight
    return scaled * (masses.sum() / scaled.sum())
