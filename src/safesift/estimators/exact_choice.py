"""Choosing alpha by leave-one-out, or among all alphas of an interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.estimators.classifier import labels
from safesift.estimators.linear import Samples
from safesift.grids import alpha_max
from safesift.problem.inputs import Inputs
from safesift.problem.problem import Problem
from safesift.problem.training import Training
from safesift.solvers.records import Fit
from safesift.workflows.certified_alpha import CertifiedAlpha, certified_among
from safesift.workflows.leaving_out.groups import Groups
from safesift.workflows.leaving_out.parts import Part
from safesift.workflows.leaving_out.result import scored
from safesift.workflows.leaving_out.running import refuse_last, refuse_uncovered

Array = NDArray[np.float64]

# how long intervals of predictions may be, relative to their spread
_WIDTH = 1e-3
# decades below `alpha_max` among which an alpha is certified, and by how much none is better,
# relative to the error of the best constant
_DECADES, _EPSILON = 6, 1e-3


def check_leaving_out(problem: Problem, samples: Samples) -> None:
    """Refuse, before any heavy work, what cannot be done without one sample each."""
    refuse_uncovered(problem)
    y = None if samples.classes is None else samples.y
    refuse_last(samples.classes, y, samples.weights, Groups.single(len(samples.weights)))


def refuse_on_device(exactly: bool, scoring: Any) -> None:
    """Refuse what reads rows, or scores samples, of this process.

    Parameters
    ----------
    exactly : bool
        Whether alpha is chosen by leaving one out, or certified.
    scoring : object
    """
    if exactly:
        raise ValueError(
            "cv='loo' and alphas='certified' read rows of this process, not of a device: use folds "
            "and alphas, or pass a NumPy array."
        )
    if scoring is not None:
        raise ValueError(
            f"scoring={scoring!r} scores samples of this process, not of a device: leave it at "
            "None, or pass a NumPy array."
        )


def predictions_without(fits: Sequence[Fit], max_iter: int) -> Array:
    """Of every sample by the model without it, a column for each problem."""
    groups = Groups.single(len(fits[0].at.pred))
    parts = [Part(fit.problem, groups, _WIDTH, max_iter, fit.at.point) for fit in fits]
    return np.column_stack([part.found()[1].pred for part in parts])


def score_without(pred: Array, samples: Samples, scoring: Any) -> float:
    """The score of such predictions, by a scorer."""
    decision = pred[:, 0] if pred.shape[1] == 1 else pred
    said = decision if samples.classes is None else labels(decision, samples.classes)
    return scored(scoring, decision, said, samples.classes, samples.y, samples.sample_weight)


def certified_alpha(
    full: Sequence[Problem], samples: Samples, folds: Sequence[Any], training: Training
) -> CertifiedAlpha:
    """The best alpha of six decades below the one at which a path begins."""
    high = max(alpha_max(problem) for problem in full)
    known = None if samples.classes is None else samples.y
    inputs = Inputs(tuple(full), samples.classes, known)
    spread = 1.0 if samples.classes is not None else float(np.var(samples.y)) or 1.0
    pairs = [(fold.train, fold.test) for fold in folds]
    ends = high * 10.0**-_DECADES, high
    return certified_among(inputs, pairs, samples.sample_weight, ends, _EPSILON * spread, training)
