"""The folds of a cross-validation, and the way along a path that scores them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.alerts import warn
from safesift.arithmetic.devices.arrays import on_host
from safesift.design.base import Array, Design
from safesift.grids import Walk
from safesift.problem.inputs import row_numbers
from safesift.problem.problem import Problem, reweighted
from safesift.problem.scales import column_scales
from safesift.solvers.records import Fit, Missed, missed


@dataclass(frozen=True, eq=False)
class Fold:
    """Row numbers to train on and to score on, and the weight of the latter."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    weight: float


def checked_folds(splits: Iterable[Sequence], weights: Array, scored_by: Array) -> list[Fold]:
    """Row numbers or masks to train and to test on as folds, all of which can be trained on.

    `weights` are those of the problems, `scored_by` those of the scores.
    """
    folds = [
        Fold(train, test, float(scored_by[test].sum()))
        for train, test in (map(row_numbers, split) for split in splits)
    ]
    if not all(weights[fold.train].sum() > 0 for fold in folds):
        raise ValueError(
            "cv: the training samples of a fold have no weight at all: use fewer folds."
        )
    if not any(fold.weight > 0 for fold in folds):
        raise ValueError("cv: no held-out sample has a positive weight: use other folds.")
    return folds


class HeldOut(NamedTuple):
    """What the samples that a fold is scored on ask for, and what they weigh, where rows are."""

    rows: Array
    targets: Array
    weights: Array

    @classmethod
    def of(cls, design: Design, rows: NDArray[np.intp], *facts: Array) -> HeldOut:
        return cls(*(design.vector(one) for one in (rows, *facts)))


class Found(NamedTuple):
    """The scores of the folds at every level, the fits at the best one, and what was missed."""

    scores: list[list[float]]
    best: Sequence[Fit]
    missed: list[Missed]


def searched(
    path: Iterator[Sequence[Fit]],
    walk: Walk,
    n_full: int,
    scored: Callable[[Sequence[Fit]], list[float]],
    folds: Sequence[Fold],
) -> Found:
    """Go along a path as far as it is worth it; the first fits of a level are of all samples."""
    scores: list[list[float]] = []
    short: list[Missed] = []
    best: Sequence[Fit] = ()
    for fits in path:
        if not walk.enters(all(fit.converged for fit in fits)):
            break
        short += missed(fits)
        scores.append(scored(fits))
        walk.note([fit.at.value for fit in fits[:n_full]], mean_score(scores[-1], folds))
        # of equal scores the first one counts, that of the strongest regularisation
        if walk.best == walk.n_seen - 1:
            best = fits[:n_full]
        if walk.ended:
            break
    return Found(scores, best, short)


def on_fold(problems: Sequence[Problem], fold: Fold) -> list[Problem]:
    """All classes of the same samples, with those weights only that a fold trains on."""
    weights = on_host(problems[0].weights)
    return reweighted(problems, weights * np.bincount(fold.train, minlength=len(weights)))


def in_groups(fits: Sequence[Fit], size: int) -> Iterator[Sequence[Fit]]:
    return (fits[start : start + size] for start in range(0, len(fits), size))


def mean_score(scores: Sequence[float], folds: Sequence[Fold]) -> float:
    """The mean over the folds, each weighing what its held-out rows do."""
    mean = np.average(scores, weights=[fold.weight for fold in folds])
    return -np.inf if np.isnan(mean) else float(mean)


def way_on(walk: Walk, problem: Problem, names: Sequence[str] | None) -> str:
    """What would make a grid longer that ended by itself."""
    scales = column_scales(problem)
    if scales is not None and scales.far_apart:
        return f"{scales.described(names)}, so scale the columns"
    if walk.blocked:
        return "beyond it tol is not reached, so scale the columns, or increase max_iter or tol"
    return "scale the columns"


def warn_of_edge(chosen: Any, walk: Walk, problem: Problem) -> None:
    """Say that a better alpha may lie beyond the grid of an estimator, where it may be had."""
    edge = walk.edge
    if edge is None:
        return
    if not isinstance(chosen.alphas, Integral):
        remedy = f"add {edge.beyond} ones"
    elif chosen.eps is not None:
        remedy = "set a smaller eps, or eps=None"
    else:
        remedy = way_on(walk, problem, getattr(chosen, "feature_names_in_", None))
    warn(
        f"{type(chosen).__name__} found its best score at the {edge.end} of {walk.n_seen} "
        f"alphas, {chosen.alpha_:.3g}: {remedy}."
    )
