"""What was kept and why, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import on_host
from safesift.faces.markup import brief
from safesift.workflows.ranges import RangeResult
from safesift.workflows.verdicts import ScreeningResult, Verdicts

# what may become of a sample, and why
REASONS = {
    "dropped": "on a flat piece of the loss at every optimum: cannot change the model",
    "weightless": "weight 0: not part of the problem",
    "folded_linear": "on a linear piece at every optimum: kept, or folded into q",
    "folded_quadratic": "on a quadratic piece at every optimum: kept, or folded into Q and q",
    "undecided": "on either side of a kink, or on a piece not worth folding: kept",
}


def fates(result: Verdicts) -> dict[str, NDArray[np.bool_]]:
    """The samples of which each of `REASONS` is true, for all classes together."""
    weightless, kept, undecided = result.weights == 0, result.kept, result.undecided
    folded = kept & ~undecided
    curved = np.any([on_host(part.decisions.quadratic) != 0 for part in result.parts], axis=0)
    return {
        "dropped": ~kept & ~weightless,
        "weightless": weightless,
        "folded_linear": folded & ~curved,
        "folded_quadratic": folded & curved,
        "undecided": undecided & ~weightless,
    }


def fates_of(result: Verdicts, rows: NDArray[np.intp]) -> list[str]:
    """What became of some samples, in words."""
    names = np.full(len(rows), "", dtype=object)
    for name, mask in fates(result).items():
        names[mask[rows]] = name.replace("_", " ")
    return names.tolist()


def counts(result: Verdicts) -> dict[str, int]:
    """How many samples were dropped, folded and left undecided, for all classes together."""
    found = {name: int(mask.sum()) for name, mask in fates(result).items()}
    return {"samples": len(result.kept), **found, "kept": int(result.kept.sum())}


def rows(result: Verdicts) -> list[tuple[str, int, float, str]]:
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
    problem = result.parts[0].problem
    return {
        **counts(result),
        "n_features": problem.design.n_features,
        "zero_features": int(result.zero_coef.sum()),
        "loss": repr(problem.loss),
        "penalty": repr(problem.penalty),
        "alpha": problem.alpha,
        "alpha_kept": _finite(result.alpha_kept),
        "fit_intercept": problem.fit_intercept,
        "certified": result.certified,
        "gap": _finite(np.max(result.gap)),
        "relative_gap": _finite(result.relative_gap),
        "region": describe_regions(result),
        "reason": result.reason,
    }


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def describe_gap(result: ScreeningResult) -> str:
    """The duality gap at the centre in words, the largest of all classes."""
    largest, relative = float(np.max(result.gap)), result.relative_gap
    if not np.isfinite(largest):
        return "unbounded"
    return f"{largest:.3g}" + (f" ({relative:.2g} relative)" if np.isfinite(relative) else "")


def describe_regions(result: Verdicts) -> str:
    """The set that was used, of several the one that leaves most samples."""
    worst = max(result.parts, key=lambda part: int(part.kept.sum()))
    return worst.region.describe()


def describe_labels(classes: Sequence[Any] | NDArray) -> str:
    """Which label of a classification stands for which sign."""
    # numbers in a file of text are read as floats: 1.0 was written as 1, most likely
    names = [
        brief(str(label).removesuffix(".0") if isinstance(label, float) else str(label))
        for label in classes
    ]
    if len(names) == 2:
        return f"{names[0]} is -1, {names[1]} is +1"
    shown = [*names[:5], "…"] if len(names) > 6 else names
    return f"{len(names)} classes, each against the rest: {', '.join(shown)}"


def summary(result: Verdicts) -> str:
    """A small table in plain text: what was kept, of what, for which model, and why."""
    table = [f"{name:<16} {n:>9} {share:6.1f} %  {why}" for name, n, share, why in rows(result)]
    model, *others = notes(result)
    return "\n  ".join([headline(result), model, *table, *others])


def headline(result: Verdicts) -> str:
    """How many samples were kept, and whether that is proved."""
    n, n_kept = len(result.kept), int(result.kept.sum())
    proof = "proved" if result.certified else "NOT certified: a guess entered, check afterwards"
    return f"{n_kept} of {n} samples kept, {n - n_kept} dropped ({proof})"


def notes(result: Verdicts) -> Iterator[str]:
    """What else there is to say, a line each: for which model, by which region, how exactly."""
    yield f"model: {result.training}"
    yield f"region: {describe_regions(result)}"
    if result.classes is not None:
        yield f"labels: {describe_labels(result.classes)}"
    if isinstance(result, RangeResult):
        low, high = result.alpha_range
        yield f"for every alpha from {low:g} to {high:g}"
    if isinstance(result, ScreeningResult):
        yield f"duality gap at the centre: {describe_gap(result)}"
        zero = int(result.zero_coef.sum())
        if zero:
            yield f"{zero} of {len(result.zero_coef)} features are zero"
        if result.reason:
            yield result.reason
