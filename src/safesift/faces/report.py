"""What was kept and why, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from safesift.workflows.screening import ScreeningResult


def counts(result: ScreeningResult) -> dict[str, int]:
    """How many samples were dropped, folded and left undecided."""
    decisions = result.decisions
    curved = decisions.folded & (decisions.quadratic != 0)
    weightless = result.problem.weights == 0
    return {
        "samples": len(result.kept),
        "dropped": int((decisions.dropped & ~weightless).sum()),
        "weightless": int(weightless.sum()),
        "folded_linear": int((decisions.folded & ~curved).sum()),
        "folded_quadratic": int(curved.sum()),
        "undecided": int(decisions.undecided.sum()),
        "kept": int(result.kept.sum()),
    }


REASONS = {
    "dropped": "on a flat piece of the loss at every optimum: cannot change the model",
    "weightless": "weight 0: not part of the problem",
    "folded_linear": "on a linear piece at every optimum: kept, or folded into q",
    "folded_quadratic": "on a quadratic piece at every optimum: kept, or folded into Q and q",
    "undecided": "may be on either side of a kink: kept",
}


def rows(result: ScreeningResult) -> list[tuple[str, int, float, str]]:
    """Name, count, percentage and reason of every kind of sample there is."""
    count = counts(result)
    total = count["samples"]
    return [
        (name.replace("_", " "), count[name], 100.0 * count[name] / total, reason)
        for name, reason in REASONS.items()
        if count[name] or name in ("dropped", "undecided")
    ]


def as_dict(result: ScreeningResult) -> dict:
    """A machine-readable summary: JSON types only."""
    problem = result.problem
    return {
        **counts(result),
        "n_features": problem.design.n_features,
        "zero_features": int(result.zero_coef.sum()),
        "loss": repr(problem.loss),
        "penalty": repr(problem.penalty),
        "alpha": problem.alpha,
        "alpha_kept": result.alpha_kept if np.isfinite(result.alpha_kept) else None,
        "fit_intercept": problem.fit_intercept,
        "certified": result.certified,
        "gap": result.gap if np.isfinite(result.gap) else None,
        "relative_gap": _relative(result),
        "region": result.region.describe(),
    }


def _relative(result: ScreeningResult) -> float | None:
    reference = result.problem.constant_value
    relative = result.gap / reference if reference > 0 else np.inf
    return relative if np.isfinite(relative) else None


def describe_gap(result: ScreeningResult) -> str:
    """The duality gap at the centre in words."""
    if not np.isfinite(result.gap):
        return "unbounded"
    relative = _relative(result)
    return f"{result.gap:.3g}" + ("" if relative is None else f" ({relative:.2g} relative)")


def describe_labels(classes: NDArray) -> str:
    """Which label of a classification stands for which sign."""
    # numbers in a file of text are read as floats: 1.0 was written as 1, most likely
    low, high = (
        str(label).removesuffix(".0") if isinstance(label, float) else label for label in classes
    )
    return f"{low} is -1, {high} is +1"


def summary(result: ScreeningResult) -> str:
    """A small table in plain text."""
    count = counts(result)
    proof = "proved" if result.certified else "NOT certified: a guess entered, check afterwards"
    head = (
        f"{count['kept']} of {count['samples']} samples kept, "
        f"{count['samples'] - count['kept']} dropped ({proof})"
    )
    zero = int(result.zero_coef.sum())
    if zero:
        head += f"; {zero} of {len(result.zero_coef)} features are zero"
    lines = [f"  {name:<16} {n:>9} {share:6.1f} %  {why}" for name, n, share, why in rows(result)]
    lines.append(f"  region: {result.region.describe()}")
    lines.append(f"  duality gap at the centre: {describe_gap(result)}")
    if result.classes is not None:
        lines.append(f"  labels: {describe_labels(result.classes)}")
    return "\n".join([head, *lines])
