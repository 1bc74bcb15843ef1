"""Second definitions of what was added to the library: what the laws hold an addition against.

The library's own losses and penalties are written a second time in `exact`, in `reference` and in
`dual_reference`. Those of an addition go into the tables here. Without one, laws that need it are
skipped, and problems that are drawn at random do without the addition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import cvxpy as cp
import numpy as np
import pytest

from safesift.losses import Loss
from safesift.penalties import Penalty

if TYPE_CHECKING:
    from tests.laws.exact import ExactLoss

Constrained = tuple[cp.Expression, list[cp.Constraint]]


class NotWrittenError(pytest.skip.Exception):
    """Nobody wrote a loss or penalty a second time: the law has nothing to go by; it is skipped."""


@dataclass(frozen=True)
class LossDefinition:
    """A loss of the margin or of the residual, and its conjugate, as functions of one number.

    Attributes
    ----------
    exact : callable
        φ in exact arithmetic.
    conic, conic_conjugate : callables
        φ, and φ* with the constraints of its domain, for a convex solver.
    """

    exact: Callable[[Any], ExactLoss]
    conic: Callable[[Any, cp.Expression], cp.Expression]
    conic_conjugate: Callable[[Any, cp.Expression], Constrained]


@dataclass(frozen=True)
class PenaltyDefinition:
    """A penalty that is no constraint.

    Attributes
    ----------
    exact : callable
        R in exact arithmetic.
    conic : callable
        R for a convex solver.
    conic_support : callable
        alpha·R*(v/alpha), with the constraints of its domain, from v and alpha.
    subgradient : callable
        An element of ∂R at coefficients, any one, chosen by numbers in [-1, 1].
    """

    exact: Callable[[Any, list[Fraction]], Fraction]
    conic: Callable[[Any, cp.Expression], cp.Expression]
    conic_support: Callable[[Any, cp.Expression, float], Constrained]
    subgradient: Callable[[Any, np.ndarray, np.ndarray], np.ndarray]


LOSS_DEFINITIONS: dict[type[Loss], LossDefinition] = {}
PENALTY_DEFINITIONS: dict[type[Penalty], PenaltyDefinition] = {}


def loss_definition(loss: Loss) -> LossDefinition:
    return _definition(loss, LOSS_DEFINITIONS)


def penalty_definition(penalty: Penalty) -> PenaltyDefinition:
    return _definition(penalty, PENALTY_DEFINITIONS)


def _definition(thing: Any, table: Mapping[type, Any]) -> Any:
    if type(thing) not in table:
        raise NotWrittenError(f"write {thing!r} a second time, in tests.laws.definitions")
    return table[type(thing)]


def written(registry: Mapping[str, type]) -> list[str]:
    """The names of what is written a second time, here or next to the library's own."""
    known = {*LOSS_DEFINITIONS, *PENALTY_DEFINITIONS}
    return sorted(
        name
        for name, kind in registry.items()
        if kind in known or kind.__module__.startswith("safesift.")
    )
