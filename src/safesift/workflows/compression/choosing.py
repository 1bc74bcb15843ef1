"""How many rows, and which ones, of which strata."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.workflows.compression.examined import Examined

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# numbers have no classes: strata are as many quantiles of the targets
_N_QUANTILES = 10


def count_to_keep(n_keep: Any, samples: Examined) -> int:
    """A number of rows from a number, or from a share of the rows of positive weight."""
    available = int(samples.counted.sum())
    if isinstance(n_keep, bool) or not isinstance(n_keep, Real):
        raise TypeError(
            f"n_keep must be a number of samples or a share of them, got {type(n_keep).__name__}."
        )
    if isinstance(n_keep, Integral):
        if not 1 <= n_keep <= available:
            raise ValueError(
                f"n_keep={n_keep} must be at least 1 and at most {available}, the number of "
                "samples of positive weight; a float is a share of them."
            )
        count = int(n_keep)
    else:
        if not 0.0 < n_keep <= 1.0:
            raise ValueError(
                f"n_keep={n_keep!r} must be in (0, 1] as a share of the samples; a whole number of "
                "samples is an int."
            )
        count = max(1, round(n_keep * available))
    least = 1 if samples.classes is None else len(samples.classes)
    if count < least:
        raise ValueError(
            f"n_keep={n_keep!r} keeps {count} of {available} samples, fewer than the {least} "
            "classes: keep at least one of each."
        )
    return count


def strata_of(samples: Examined, stratify: bool) -> Indices:
    """The classes, or quantiles of the targets; one stratum for all if not asked for."""
    if not stratify:
        return np.zeros(len(samples.weights), dtype=np.intp)
    if samples.classes is not None:
        return samples.class_codes
    problem, counted = samples.problems[0], samples.counted
    centers = problem.risk.targets.centers
    edges = np.quantile(centers[counted], np.linspace(0, 1, _N_QUANTILES + 1)[1:-1])
    codes = np.searchsorted(np.unique(edges), centers, side="right")
    # those that no sample of positive weight is in do not count
    present = np.unique(codes[counted])
    return np.minimum(np.searchsorted(present, codes), len(present) - 1)


def ordered(samples: Examined, scores: Array) -> Indices:
    """Rows by falling score; samples of weight 0 last. Equal ones as they come.

    Where a region bounds nothing all scores are infinite: then those are ranked by their margin.
    """
    infinite = np.isinf(scores) & samples.counted
    ties = np.where(infinite, samples.margins, 0.0) if infinite.any() else np.zeros(len(scores))
    return np.lexsort((-ties, -scores, ~samples.counted))


def first_of(samples: Examined, order: Indices, count: int, strata: Indices) -> Indices:
    """The first rows of an order: of every stratum its share, and of every class one at least."""
    ranks = np.empty(len(order), dtype=np.intp)
    ranks[order] = np.arange(len(order))
    chosen = []
    for stratum, n in enumerate(_allotted(samples, count, strata)):
        rows = np.flatnonzero((strata == stratum) & samples.counted)
        chosen.append(rows[np.argsort(ranks[rows])[:n]])
    return np.sort(_with_every_class(samples, np.concatenate(chosen), ranks))


def _allotted(samples: Examined, count: int, strata: Indices) -> Indices:
    """How many of each stratum: by weight, at least one where the count allows it."""
    counted = samples.counted
    sizes = np.bincount(strata[counted])
    masses = np.bincount(strata[counted], samples.weights[counted])
    allotted = np.minimum(np.floor(count * masses / masses.sum()).astype(np.intp), sizes)
    if count >= len(sizes):
        allotted = np.maximum(allotted, 1)
    while allotted.sum() != count:
        # one at a time, to or from the stratum that is furthest from its share
        lacking = count * masses / masses.sum() - allotted
        if allotted.sum() < count:
            allotted[np.argmax(np.where(allotted < sizes, lacking, -np.inf))] += 1
        else:
            allotted[np.argmin(np.where(allotted > 1, lacking, np.inf))] -= 1
    return allotted


def _with_every_class(samples: Examined, chosen: Indices, ranks: Indices) -> Indices:
    """The best of every class that is missing takes the place of the worst of the others."""
    if samples.classes is None:
        return chosen
    codes, chosen = samples.class_codes, chosen[np.argsort(ranks[chosen])]
    for missing in np.setdiff1d(np.arange(len(samples.classes)), codes[chosen]):
        rows = np.flatnonzero((codes == missing) & samples.counted)
        spare = np.bincount(codes[chosen], minlength=len(samples.classes))[codes[chosen]] > 1
        chosen[np.flatnonzero(spare)[-1]] = rows[np.argmin(ranks[rows])]
    return chosen
