"""A path of alphas: who is asked to solve it, how it is solved, how well. Without benchopt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from peer import FREE, storages
from peers import PEERS
from race import make_contestant, prepare
from runs import OURS, PATH, SINGLE, Stage
from tasks import Evaluator, Model, Task

# benchopt stops a solver between two runs: a run has no end of its own
_NO_LIMIT = 1e8
# the gap to which our own trial goes, by which a storage is chosen
_TRIAL_GAP = 1e-6


def squared_hinge(penalty: str, intercept: str) -> Task:
    return Task("squared_hinge", penalty, intercept)


def geometric(alpha: float, n_alphas: int, decades: float) -> np.ndarray:
    """So many alphas from the largest down over so many decades; one is the largest itself."""
    return np.geomspace(alpha, alpha / 10.0**decades, n_alphas)


def why_not(solver: str, task: Task) -> str | None:
    """Why a solver is not asked to solve a task; None where it solves it."""
    if solver == OURS:
        return None
    kind = PEERS[solver].kind
    if task.kind not in kind.kinds:
        return f"{solver} does not solve the squared hinge with {task.penalty}"
    if task.intercept in kind.intercepts:
        return None
    if task.intercept == FREE:
        return f"{solver} penalises its intercept: what it solves is intercept=ones"
    return f"{solver} does not penalise its intercept: what it solves is intercept=free"


@dataclass(frozen=True, eq=False)
class Models:
    """One row of coefficients and one intercept per alpha."""

    coefs: np.ndarray
    intercepts: np.ndarray


class PathSolver:
    """Somebody who takes part in the race, on one path: all alphas at one tolerance of their own.

    Peers go from one alpha to the next, warm where they can.
    """

    def __init__(self, solver: str, task: Task, alphas: Sequence[float]) -> None:
        self._contestant = make_contestant(solver, task, joblib.cpu_count())
        name = SINGLE if len(alphas) == 1 else PATH
        self._stage = Stage(name, _TRIAL_GAP, tuple(map(float, alphas)), _NO_LIMIT)

    @property
    def loosest(self) -> float:
        """The tolerance where a curve begins."""
        return self._contestant.loosest

    def prepare(self, X: Any, y: np.ndarray) -> None:
        """Compile, and take the data in the storage that suits best; not timed."""
        kinds = storages(X, self._contestant.storages)
        prepare(self._contestant, X, y, [self._stage], kinds)

    def solve(self, tol: float) -> Models:
        stage = replace(self._stage, tols=(tol,) * len(self._stage.alphas))
        models = [one.model for one in self._contestant.perform(stage)]
        return Models(
            np.vstack([model.coef for model in models]),
            np.concatenate([model.intercept for model in models]),
        )


@dataclass(frozen=True)
class Quality:
    """How good the models of a path are.

    Attributes
    ----------
    relative_gap : float
        The largest of the path: the duality gap, certified by the evaluator of the race from the
        model alone, over the objective of the best constant model. What is less than the spacing
        of floats is that: it has no meaning, and a place on a logarithmic axis.
    value : float
        The mean of the objectives; the largest would always be that of the largest alpha.
    """

    relative_gap: float
    value: float


def measured(evaluator: Evaluator, models: Models, alphas: Sequence[float]) -> Quality:
    pairs = zip(models.coefs, models.intercepts, alphas, strict=True)
    known = [(Model.of(coef, intercept), alpha) for coef, intercept, alpha in pairs]
    gaps = [evaluator.measure(model, alpha).gap for model, alpha in known]
    return Quality(
        float(max(*gaps, np.finfo(np.float64).eps)),
        float(np.mean([evaluator.values(model, alpha) for model, alpha in known])),
    )
