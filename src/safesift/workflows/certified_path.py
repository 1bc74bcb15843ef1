"""What paths of linear models and of kernel machines have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.solvers.records import Fit, Settings

Array = NDArray[np.float64]
# what is kept of the fit of one alpha, by the name of the attribute of the path
Facts = Mapping[str, Callable[[Fit], Any]]

_FACTS: Facts = {
    "intercepts": lambda fit: fit.intercept,
    "dual_gaps": lambda fit: fit.gap,
    "relative_gaps": lambda fit: fit.relative_gap,
    "n_kept": lambda fit: fit.history[-1].n_kept,
    "n_undecided": lambda fit: fit.history[-1].n_undecided,
    "n_iter": lambda fit: fit.n_iter,
    "passes": lambda fit: fit.history[-1].passes,
    "seconds": lambda fit: fit.history[-1].seconds,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class CertifiedPath:
    """One certified model per alpha; the attributes are described by the subclasses."""

    alphas: Array
    intercepts: Array
    dual_gaps: Array
    relative_gaps: Array
    n_kept: NDArray[np.int64]
    n_undecided: NDArray[np.int64]
    n_iter: NDArray[np.int64]
    passes: Array
    seconds: Array
    classes: NDArray | None = None


def stacked(fits: Iterable[Fit], facts: Facts) -> dict[str, NDArray]:
    """The facts that every path has and some more, an array for each.

    The fits are gone through once, and nothing else of them is kept.
    """
    wanted = _FACTS | facts
    points = [{name: read(fit) for name, read in wanted.items()} for fit in fits]
    return {name: np.array([point[name] for point in points]) for name in wanted}


def warn_of_misses(path: CertifiedPath, settings: Settings, function: str) -> None:
    """Say at how many alphas the tolerance was not reached, and what to do about it."""
    missed = path.relative_gaps > settings.tol
    if not missed.any():
        return
    from sklearn.exceptions import ConvergenceWarning

    worst = int(np.argmax(path.relative_gaps))
    warnings.warn(
        f"{function} did not converge for {int(missed.sum())} of {len(missed)} alphas: the "
        f"relative duality gap is {path.relative_gaps[worst]:.2g} after {path.n_iter[worst]} "
        f"steps, above tol={settings.tol:g}; increase max_iter, scale the features, or accept a "
        "larger tol.",
        ConvergenceWarning,
        stacklevel=3,
    )
