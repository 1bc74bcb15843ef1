"""Why little is proved, and what would help: one sentence, from what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import on_host
from safesift.problem.problem import Problem
from safesift.problem.scales import column_scales

if TYPE_CHECKING:
    from safesift.workflows.verdicts import Screened, ScreeningResult

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# with so many samples kept, people ask why
_MANY = 0.9
# a relative gap from which on a point says little about the optimum
_FAR = 1e-2
# columns in such different units make the ball of a gap long in the wrong directions
_UNEVEN = 1e2
# a share of the samples worth a sentence
_SOME = 0.05


def why_little(result: ScreeningResult) -> str:
    """Why little is proved, and what would help; empty where much is."""
    counted = result.weights > 0
    if result.kept[counted].mean() <= _MANY:
        return ""
    worst = max(result.parts, key=lambda part: int(part.kept.sum()))
    return next(_explanations(result, worst), "")


def _explanations(result: ScreeningResult, part: Screened) -> Iterator[str]:
    """From what no other setting can change to what is a matter of degree."""
    problem = part.problem
    if not any(piece.is_flat for piece in problem.pieces):
        yield (
            f"{problem.loss!r} is flat nowhere, so that every sample has its influence: use "
            "'squared_hinge', 'hinge', 'safe_logistic' or an insensitive loss, or make the loss "
            "safe by safesift.make_safe."
        )
    flat, gap = _flat_at_centre(part), part.certificate.relative_gap
    unproved = float((flat & part.kept).mean())
    if problem.penalty.is_constraint and gap <= _FAR and unproved > _SOME:
        yield (
            f"{unproved:.0%} of the samples have no loss at the centre, but a constraint adds no "
            "curvature to prove that of the optimum by: use the penalty 'l2', 'l1' or "
            "'elastic_net' in its place, with the alpha that has the same model."
        )
    if gap > _FAR:
        yield (
            f"The centre is far from the optimum, its relative duality gap is {gap:.2g}: "
            f"{_how_to_get_closer(result, part)}."
        )
    if np.isinf(part.bounds.lower).all() and np.isinf(part.bounds.upper).all():
        yield (
            f"Nothing bounds the predictions ({part.region.describe()}): set fit_intercept=False, "
            "or take a loss and a penalty with curvature, as 'squared_hinge' and 'l2'."
        )
    if unproved > _SOME:
        yield (
            f"{unproved:.0%} of the samples have no loss at the centre, but a relative duality gap "
            f"of {gap:.2g} there is too large to prove that of the optimum: "
            f"{_how_to_get_closer(result, part)}."
        )
    yield _why_needed(problem, part.at.pred, flat)


def _flat_at_centre(part: Screened) -> Mask:
    problem, pred = part.problem, part.at.pred
    flat = problem.weights == 0
    for piece in problem.pieces:
        if piece.is_flat:
            flat |= (pred > piece.lower) & (pred < piece.upper)
    return on_host(flat)


def _how_to_get_closer(result: ScreeningResult, part: Screened) -> str:
    scales, given = column_scales(part.problem), part.fit.region is None and part.fit.n_iter == 0
    uneven = ""
    if scales is not None and scales.ratio > _UNEVEN:
        named = scales.described(result.feature_names)
        uneven = f"{named}, so scale the columns (StandardScaler)"
        if scales.far_apart:
            return uneven
    if given and part.problem.fit_intercept and part.problem.split(part.at.point)[1] == 0.0:
        return "pass the intercept that goes with coef, or neither, and it is solved to tol"
    if given:
        return "pass a better coef, or none, and the problem is solved to tol"
    closer = "ask for a smaller tol, or allow more steps by max_iter"
    return f"{uneven}, {closer}" if uneven else closer


def _why_needed(problem: Problem, pred: Array, flat: Mask) -> str:
    """They have a loss at the optimum itself: no proof can drop them."""
    share = float((~flat).mean())
    start = f"{share:.0%} of the samples have a loss at the optimum itself, and so their influence"
    if problem.loss.task != "classification":
        return f"{start}: a wider tube (epsilon, or wider intervals) would leave more of them out."
    wrong = float((problem.y * pred <= 0).mean())
    if wrong > 0.25:
        return f"{start}: the classes overlap, {wrong:.0%} of the samples are on the wrong side."
    if problem.penalty.is_constraint:
        return f"{start}: within a larger radius more of them would leave the margin."
    return (
        f"{start}: at alpha={problem.alpha:g} most of them are inside the margin; a smaller alpha "
        "narrows it, as long as there are fewer features than samples."
    )
