"""Kernel problems of losses with kinks on a block: pairs of coordinates, then whole faces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import solve_positive
from safesift.design.kernels import NotPositiveError
from safesift.losses.dual_form import DualForm
from safesift.solvers.kernel_block import Block

Array = NDArray[np.float64]

# steps on pairs, in multiples of the number of samples: at first, and between steps on faces
_FIRST_SWEEPS, _SWEEPS = 20, 2
_ALTERNATIONS, _FACES = 100, 8
# negative curvature that rounding explains, relative to the diagonal
_ROUNDING = 1e-7


class Inner(NamedTuple):
    """Coordinates and intercept that solve a block, and how far they violate optimality."""

    beta: Array
    intercept: float
    violation: float = 0.0


def solve_by_pairs(block: Block, beta: Array, tol: float) -> Inner:
    """Solve a block to a violation of the optimality conditions, in units of the predictions.

    Steps on pairs find out which coordinates are at an end; a step on a face then moves all others
    to the minimum of the quadratic function that is left, or as far towards it as their ends allow.

    Parameters
    ----------
    block : Block
        Of a loss with a dual form.
    beta : array
        A start; feasible.
    tol : float
    """
    form = block.loss.dual_form(block.y)
    inner = Inner(beta, 0.0, np.inf)
    for k in range(_ALTERNATIONS):
        inner = improve_by_pairs(block, form, inner.beta, tol, _SWEEPS if k else _FIRST_SWEEPS)
        if not inner.violation > tol:
            break
        for _ in range(_FACES):
            if _face_step(block, form, inner.beta):
                break
    return inner


def improve_by_pairs(
    block: Block, form: DualForm, beta: Array, tol: float, sweeps: int = _FIRST_SWEEPS
) -> Inner:
    """Steps on pairs (on single coordinates without an intercept) for a few sweeps' worth."""
    from safesift.arithmetic.compiled.pairs import descend_pairs, descend_singles

    descend = descend_singles if block.wanted is None else descend_pairs
    ends = (form.low, form.high, block.lower, block.upper)
    beta = beta.copy()
    d = form.curvature / block.steps
    pull = block.K @ beta + block.offset + d * beta
    max_steps = sweeps * len(beta)
    violation, middle, least = descend(block.K, d, *ends, beta, pull, tol, max_steps)
    if least < -_ROUNDING * float(np.diag(block.K).max(initial=0.0)):
        raise NotPositiveError("two samples with a negative squared distance")
    return Inner(beta, -middle, violation)


def _face_step(block: Block, form: DualForm, beta: Array) -> bool:
    """Towards the minimum over the coordinates inside their ends; True if it was reached."""
    free = np.flatnonzero((beta != 0) & (beta > block.lower) & (beta < block.upper))
    if not free.size:
        return True
    start, d = beta[free], form.curvature / block.steps[free]
    low, high = form.low[free], form.high[free]
    slope = block.K[free] @ beta + block.offset[free] + d * start
    slope -= np.where(start > 0, low, high)
    H = block.K[np.ix_(free, free)].copy()
    H[np.diag_indices_from(H)] += d
    solved = solve_positive(H, np.column_stack([slope, np.ones(len(free))]))
    step = -solved[:, 0]
    if block.wanted is not None:
        step += solved[:, 1] * (solved[:, 0].sum() / solved[:, 1].sum())
    ends = np.where(
        step > 0,
        np.where(start > 0, block.upper[free], 0.0),
        np.where(start > 0, 0.0, block.lower[free]),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        rooms = np.where(step != 0, (ends - start) / step, np.inf)
    length = min(1.0, float(rooms.min()))
    if not np.isfinite(step).all() or not float(slope @ step) < 0:
        return True
    beta[free] = np.where(rooms <= length, ends, start + length * step)
    return length == 1.0
