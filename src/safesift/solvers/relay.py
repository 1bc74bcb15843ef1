"""Dual coordinate descent as long as that is cheap, Newton's method on the Gram matrix from there.

Epochs cost little, and with many columns they are done before a Gram matrix would be; for small
alphas they may need a thousand. So they get the time that a Gram matrix costs. At the first level
where they need more, Newton's method takes over at the point where they got to, and goes on along
the path by itself: its matrix is there by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from safesift.problem.problem import Problem
from safesift.solvers.costs import passes_of_a_gram
from safesift.solvers.dual_descent import dual_descent
from safesift.solvers.gram_path import newton_path
from safesift.solvers.records import Check, Fit, Settings

Array = NDArray[np.float64]

# how many times the matrix of a cold Newton method is factored
_FACTORS = 10


def relay(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> Iterator[list[Fit]]:
    """`solve_path` for smooth losses with closed-form dual steps and at most 5 000 columns.

    The arguments and what is yielded are those of `solve_path`; steps are epochs and Newton steps,
    together at most `settings.max_iter`.
    """
    # where the steps are few, half of them are Newton's
    epochs = passes_of_a_gram(levels[0][0].design, _FACTORS)
    affordable = max(min(settings.max_iter // 2, epochs), 1)
    short = replace(settings, max_iter=affordable)
    for k, fits in enumerate(dual_descent(levels, short, starts)):
        ended = all(fit.solution.converged for fit in fits) or affordable == settings.max_iter
        if not ended:
            yield from _taken_over(levels[k:], settings, fits)
            return
        yield fits


def _taken_over(
    levels: Sequence[Sequence[Problem]], settings: Settings, fits: Sequence[Fit]
) -> Iterator[list[Fit]]:
    """Newton's method from where epochs got to at the first of these levels."""
    left = replace(settings, max_iter=settings.max_iter - max(f.solution.n_iter for f in fits))
    path = newton_path(levels, left, [fit.solution.at.point for fit in fits])
    yield [_after(first, then) for first, then in zip(fits, next(path), strict=True)]
    yield from path


def _after(first: Fit, then: Fit) -> Fit:
    """The better of two fits, one begun by the other; what both cost is counted."""
    spent = first.history[-1]
    best, history = then, [_later(check, spent) for check in then.history]
    if first.solution.gap < then.solution.gap:
        cost = history[-1]
        best = first
        history.append(replace(spent, passes=cost.passes, seconds=cost.seconds))
    n_iter = first.solution.n_iter + then.solution.n_iter
    return replace(
        best,
        solution=replace(best.solution, n_iter=n_iter),
        history=(*first.history, *history),
    )


def _later(check: Check, spent: Check) -> Check:
    return replace(check, passes=check.passes + spent.passes, seconds=check.seconds + spent.seconds)
