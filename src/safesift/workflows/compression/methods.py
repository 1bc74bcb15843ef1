"""Ways to rank samples: a score each, the largest kept first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.registry import unknown_name
from safesift.workflows.compression.examined import Examined
from safesift.workflows.compression.hybrid import Hybrid

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Method:
    """A way to rank samples.

    Attributes
    ----------
    scores : function of Examined and Generator
    represents : bool
        Whether the kept rows stand for the dropped ones, so that their weights should add up to
        those of all; otherwise the dropped rows are taken to be of no influence.
    needed : function of Examined
        The rows without which nothing is proved: the others may go, or have any weight.
    ranks_needed_first : bool
        Whether those come first in the ranking.
    adapts : bool
        Whether the choice depends on the budget by more than a cut through the ranking.
    """

    scores: Callable[[Examined, np.random.Generator], Array]
    represents: bool
    needed: Callable[[Examined], Mask]
    ranks_needed_first: bool = False
    adapts: bool = False


def _screening(samples: Examined, rng: np.random.Generator) -> Array:
    return samples.test_values


def _margin(samples: Examined, rng: np.random.Generator) -> Array:
    return samples.margins


def _leverage(samples: Examined, rng: np.random.Generator) -> Array:
    return samples.weights * samples.metric.leverage


def _random(samples: Examined, rng: np.random.Generator) -> Array:
    # whatever their weights, which those that are drawn keep
    return rng.random(len(samples.weights))


def _hybrid(samples: Examined, rng: np.random.Generator) -> Array:
    return -Hybrid(samples, rng.random()).first_budgets()


def _undecided(samples: Examined) -> Mask:
    if not samples.certified:
        return samples.counted
    return samples.counted & (samples.test_values >= 0)


def _active(samples: Examined) -> Mask:
    return samples.active


def _all(samples: Examined) -> Mask:
    return samples.counted


METHODS: dict[str, Method] = {
    "hybrid": Method(_hybrid, represents=True, needed=_active, adapts=True),
    "screening": Method(_screening, represents=False, needed=_undecided, ranks_needed_first=True),
    "margin": Method(_margin, represents=False, needed=_undecided),
    "leverage": Method(_leverage, represents=True, needed=_all),
    "random": Method(_random, represents=True, needed=_all),
}


def method_named(name: str) -> Method:
    """The method of that name, or one sentence."""
    if not isinstance(name, str) or name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]
