"""A plug-in of pytest that adds the toys before the law tests are collected.

python -m pytest -p tests.additions.plugin tests/laws -k lopsided
python -m pytest -p tests.additions.plugin --broken loss tests/laws -k lopsided
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from safesift.design import RowDesign
from safesift.losses import LOSSES, Loss
from safesift.penalties import PENALTIES, Penalty
from safesift.regions import REGIONS, Region
from safesift.solvers import Solver, register
from tests.additions import broken
from tests.additions.euclidean import Euclidean
from tests.additions.lipschitz_ball import LipschitzBall
from tests.additions.lookup import Lookup
from tests.additions.lopsided import Lopsided
from tests.additions.proximal_gradient import ProximalGradient


class Additions(NamedTuple):
    """One of each kind."""

    loss: type[Loss]
    penalty: type[Penalty]
    region: type[Region]
    matrix: type[RowDesign]
    solver: type[Solver]


# by these the law tests are selected
NAMES = {
    "loss": "lopsided",
    "penalty": "euclidean",
    "region": "lipschitz_ball",
    "matrix": "lookup",
    "solver": "proximal_gradient",
}
TOYS = Additions(Lopsided, Euclidean, LipschitzBall, Lookup, ProximalGradient)
BROKEN = Additions(
    broken.SteepLopsided,
    broken.GenerousEuclidean,
    broken.TightLipschitzBall,
    broken.ConfidentLookup,
    broken.Nonsense,
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broken", choices=Additions._fields, help="the kind with a mistake in it")


def pytest_configure(config: pytest.Config) -> None:
    kind = config.getoption("--broken")
    additions = TOYS if kind is None else TOYS._replace(**{kind: getattr(BROKEN, kind)})
    _add(additions)
    _tell_the_laws(additions)


def _add(additions: Additions) -> None:
    """All that a user of the library has to do."""
    LOSSES[NAMES["loss"]] = additions.loss
    PENALTIES[NAMES["penalty"]] = additions.penalty
    REGIONS[NAMES["region"]] = additions.region
    register(additions.solver)


def _tell_the_laws(additions: Additions) -> None:
    """What the laws compare with, and what they cannot know: matrices, and ranges of parameters."""
    # these look at the registries when they are imported
    from tests.additions.definitions import EUCLIDEAN, LOPSIDED
    from tests.laws.definitions import LOSS_DEFINITIONS, PENALTY_DEFINITIONS
    from tests.laws.storages import DESIGNS
    from tests.laws.strategies import PARAMETERS

    LOSS_DEFINITIONS[additions.loss] = LOPSIDED
    PENALTY_DEFINITIONS[additions.penalty] = EUCLIDEAN
    PARAMETERS["below"] = PARAMETERS["above"] = PARAMETERS["epsilon"]

    def looked_up(X: np.ndarray, intercept: bool) -> RowDesign:
        table, codes = np.unique(X, axis=0, return_inverse=True)
        return additions.matrix(table, codes.ravel(), intercept)

    DESIGNS[NAMES["matrix"]] = looked_up
