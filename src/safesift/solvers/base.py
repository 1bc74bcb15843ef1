"""What a solver is: it proposes. The driver measures, decides, records and stops.

A solver belongs to one problem and goes with it from level to level of a path. `Solver.steps` is a
generator. It may yield

* a `Request` for anything that takes a pass over the data, and is sent the answer;
* a `Proposal`, a point to go to, and is sent whether that was any better.

It ends where it has no further idea; otherwise the driver ends it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from safesift.problem.duality import Ray
from safesift.problem.evaluation import Evaluation
from safesift.problem.passes import Request
from safesift.problem.problem import Problem
from safesift.regions import Region
from safesift.registry import unknown_name
from safesift.solvers.records import Settings

if TYPE_CHECKING:
    from safesift.solvers.driver import Level

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Proposal:
    """Where a solver wants to go, and what it promises.

    Attributes
    ----------
    point : array, optional
        The driver evaluates it, in one pass for all problems.
    at : Evaluation, optional
        In place of a point: one that was evaluated already.
    steps : float
        How many steps led there.
    promised : float
        About how much there is still to be gained; the gap is more than that, so that it is not
        measured where this is clearly above what is asked for.
    slopes : Evaluation, optional
        Whose slopes make the dual point, by default those at the point.
    ray : Ray, optional
        A dual point that the solver knows, in place of slopes.
    searches : bool
        Whether to stop on the way, where the point itself is worse than where one comes from.
    """

    point: Array | None = None
    at: Evaluation | None = None
    steps: float = 1.0
    promised: float = 0.0
    slopes: Evaluation | None = None
    ray: Ray | None = None
    searches: bool = False


Steps = Generator[Request | Proposal, Any, None]


class Solver(ABC):
    """A way to solve one problem along a path.

    Parameters
    ----------
    problem : Problem
        At the first level.
    settings : Settings
    start : array, optional
        A point to start from.

    Attributes
    ----------
    name : str
    looks : bool
        Whether rows are decided at every look at the gap, or only at the end.
    thorough : bool
        Whether rows that its own region leaves undecided are worth a region that takes passes.
    remote : bool
        Whether rows may live on a device: it computes per sample with NumPy's functions only.
    threaded : bool
        Whether it works on one thread between proposals, so that problems may share out threads.
    """

    name: ClassVar[str]
    looks: ClassVar[bool] = True
    thorough: bool = False
    threaded: bool = False
    remote: ClassVar[bool] = False

    def __init__(self, problem: Problem, settings: Settings, start: Array | None = None) -> None:
        self.settings, self._start = settings, start

    @classmethod
    @abstractmethod
    def refusal(cls, problem: Problem) -> str:
        """Why it cannot solve such a problem, in a few words; empty where it can."""

    @classmethod
    @abstractmethod
    def cost(cls, problem: Problem, n_levels: int) -> float:
        """About how many passes over the data a level of a path takes; infinite to be left out."""

    @abstractmethod
    def steps(self, level: Level) -> Steps:
        """Requests and proposals, from where the last level ended."""

    def region(self, level: Level) -> Region | None:
        """By what rows are decided at the level's certificate; None for not at all."""
        return level.screening.region

    @property
    def sharpens(self) -> bool:
        """Whether a step more makes a small gap a tiny one, for little."""
        return False

    def goes_on(self, level: Level) -> bool:
        """Whether steps go on although the gap is small enough."""
        return False

    def arrive(self, level: Level, promised: float = 0.0) -> Steps:
        """Begin where the last level ended, at the start that was given, or at a constant model."""
        problem, past = level.problem, level.past
        if level.begun:
            return  # another solver came as far as that
        if past is None:
            start = self._start
            point = problem.constant_point if start is None else problem.feasible(start)
            yield Proposal(point=point, steps=0.0)
        elif problem.penalty.contains(problem.split(past.at.point)[0]):
            yield Proposal(at=problem.reevaluate(past.at), steps=0.0, promised=promised)
        else:
            yield Proposal(point=problem.feasible(past.at.point), steps=0.0)


SOLVERS: dict[str, type[Solver]] = {}


def register(solver: type[Solver]) -> type[Solver]:
    """Make a solver known by its name."""
    SOLVERS[solver.name] = solver
    return solver


def choose(problem: Problem, n_levels: int, name: str = "auto") -> type[Solver]:
    """The solver of a name, or the one with the least estimated cost.

    Raises
    ------
    ValueError
        Where the name is not known, or the solver does not suit the problem.
    """
    if name == "auto":
        suited = [solver for solver in SOLVERS.values() if not _refusal(solver, problem)]
        costs = {solver: solver.cost(problem, n_levels) for solver in suited}
        best = min(costs, key=costs.__getitem__, default=None)
        if best is not None and math.isfinite(costs[best]):
            return best
        reasons = "; ".join(f"{key}: {_refusal(SOLVERS[key], problem)}" for key in sorted(SOLVERS))
        raise ValueError(f"no solver suits this problem ({reasons}).")
    if name not in SOLVERS:
        raise unknown_name("solver", name, {"auto": None, **SOLVERS})
    reason = _refusal(SOLVERS[name], problem)
    if reason:
        raise ValueError(f"solver={name!r} does not suit this problem ({reason}): use 'auto'.")
    return SOLVERS[name]


def _refusal(solver: type[Solver], problem: Problem) -> str:
    """Why a solver does not suit a problem; empty where it does."""
    if problem.design.remote and not solver.remote:
        return "it reads rows of this process, not of a device"
    return solver.refusal(problem)
