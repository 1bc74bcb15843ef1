"""The library and a peer behind the same two questions: which tolerance is enough, and solve.

A contestant is told of a `Stage`, tells events as it goes, and answers with models. Limits on its
time are kept by signals: a call into compiled code cannot be stopped otherwise.
"""

from __future__ import annotations

import math
import signal
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from peer import Answer, Peer
from runs import CV, SINGLE, Floors, Stage
from tasks import FREE, ONES, Evaluator, Model, Task, with_ones

import safesift as ss

Tell = Callable[..., None]

# from one of a solver's own tolerances to the next
TIGHTER = math.sqrt(10.0)
# after so many steps without progress a tighter tolerance is of no use to a solver
_STUCK_STEPS, _TIGHTEST = 6, 1e-15
# all that a search tries may take that many times the time a solver has
_SEARCH_SHARE = 3.0
# where few rows are no harder than many: some peers take a minute for 200 rows at a small alpha
_EASY_ALPHA = 0.1
# ours is given no tolerance that is smaller, relative to the gap that is asked for
_LEAST_SHARE = 1e-6
# how much nearer the lower bounds are than what is asked for, and how long they may take
_FLOOR_SHARE, _FLOOR_TIME = 1e-2, 4.0


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model of one alpha, with the certified gaps of its problems where the solver knows them."""

    alpha: float
    model: Model
    gaps: np.ndarray | None = None


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


@contextmanager
def killed_after(seconds: float) -> Iterator[None]:
    """End the process after that time."""
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.0) + 1.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after that time, in code that comes back to Python now and then."""

    def interrupt(number: int, frame: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.0) + 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


class Contestant(ABC):
    """Somebody who solves stages."""

    # memory orders: of a dense and of a sparse matrix
    storages: tuple[str, str] = ("C", "csr")
    # its own tolerance of a model that is hardly one
    loosest: float = 0.1

    @abstractmethod
    def prepare(self, X: Any, y: np.ndarray) -> None:
        """Take the data in their final storage; not timed."""

    @abstractmethod
    def compile(self, stages: Sequence[Stage]) -> None:
        """Something short, on few rows, that compiles what needs it."""

    @abstractmethod
    def trial(self, stages: Sequence[Stage]) -> None:
        """Something short that tells one storage from another."""

    @abstractmethod
    def search(self, stage: Stage, evaluator: Evaluator, tell: Tell) -> Found | None:
        """Its loosest tolerances that reach the gap; None where the time is up."""

    @abstractmethod
    def perform(self, stage: Stage) -> list[Fitted]:
        """What is timed: the whole stage at tolerances that are known."""


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes
    ----------
    stage : Stage
        With its tolerances, and with the lower bounds that were found on the way.
    seconds : float or None
        Of one performance, where the search amounts to one.
    reached : bool
        Whether every alpha came within the gap; if not, no tolerance is of any use.
    """

    stage: Stage
    seconds: float | None
    reached: bool


# --- the peers ------------------------------------------------------------------------------------


class Other(Contestant):
    """A peer: one alpha after the other, warm, each at a tolerance of its own."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.storages, self.loosest = peer.storages, peer.loosest
        self._looser: dict[str, tuple[float, ...]] = {}

    def prepare(self, X: Any, y: np.ndarray) -> None:
        self._peer.prepare(X, y)

    def compile(self, stages: Sequence[Stage]) -> None:
        self._twice(_EASY_ALPHA)

    def trial(self, stages: Sequence[Stage]) -> None:
        self._twice(stages[0].alphas[0])

    def _twice(self, alpha: float) -> None:
        """One loose fit, and one that starts from it."""
        self._peer.solve(alpha, self.loosest, self._peer.solve(alpha, self.loosest, None))

    def search(self, stage: Stage, evaluator: Evaluator, tell: Tell) -> Found | None:
        begin = self._looser.get(stage.name, ())
        search = _Search(self._peer, evaluator, stage, begin)
        if not search.follow(tell):
            return None
        tols = tuple(point.tol for point in search.points)
        self._looser[stage.name] = tols
        seconds = None if stage.name == CV else search.seconds
        reached = all(point.reached for point in search.points)
        return Found(replace(stage, tols=tols), seconds, reached)

    def perform(self, stage: Stage) -> list[Fitted]:
        with killed_after(stage.limit):
            if stage.name == CV:
                alpha, answer = self._peer.cross_validate(stage.alphas, stage.tols)
                return [Fitted(alpha, answer.model)]
            return list(self._path(stage))

    def _path(self, stage: Stage) -> Iterator[Fitted]:
        warm = None
        for alpha, tol in zip(stage.alphas, stage.tols, strict=True):
            warm = self._peer.solve(alpha, tol, warm)
            yield Fitted(alpha, warm.model)


@dataclass(frozen=True)
class Point:
    """One alpha, solved: at which tolerance of the solver, in what time, how well.

    `seconds_by_excess` is the time of the loosest setting at which the value, though not the
    gap, is as near to the optimal one as asked for.
    """

    alpha: float
    tol: float
    seconds: float
    gap: float
    reached: bool
    seconds_by_excess: float


class _Search:
    """The loosest tolerance for every alpha of a stage, and the time it takes at that one."""

    def __init__(
        self, peer: Peer, evaluator: Evaluator, stage: Stage, begin: Sequence[float]
    ) -> None:
        self._peer, self._evaluator, self._stage, self._begin = peer, evaluator, stage, begin
        self.points: list[Point] = []
        self._stuck, self._spent = False, 0.0

    @property
    def seconds(self) -> float:
        return sum(point.seconds for point in self.points)

    def follow(self, tell: Tell) -> bool:
        """Solve one alpha after another, warm; False where the time is up."""
        warm = None
        for alpha in self._stage.alphas:
            warm, point = self._climb(alpha, warm, self._first_tol())
            self.points.append(point)
            tell("alpha", **vars(point))
            if self._late(0.0):
                return False
        return True

    def _first_tol(self) -> float:
        """That of the last alpha and a bit looser, or that of a looser search."""
        last = self.points[-1].tol if self.points else math.inf
        if self._stuck:
            return last
        if self._begin:
            return self._begin[len(self.points)]
        return min(self._peer.loosest, 10.0 * last)

    def _climb(self, alpha: float, warm: Answer | None, tol: float) -> tuple[Answer, Point]:
        idle, best, last, by_excess = 0, math.inf, None, math.nan
        while True:
            with killed_after(self._stage.limit - self.seconds):
                seconds, answer = timed(lambda tol=tol: self._peer.solve(alpha, tol, warm))
            self._spent += seconds
            floors = self._stage.floors_at(alpha)
            found = self._evaluator.measure(answer.model, alpha, floors)
            if math.isnan(by_excess) and found.excess <= self._stage.tol:
                by_excess = seconds
            reached = found.gap <= self._stage.tol
            # a model that did not change tells nothing: it was good enough from the start
            idle += not np.array_equal(answer.model.coef, last)
            idle = 0 if found.gap < 0.9 * best else idle
            best, last = min(best, found.gap), answer.model.coef
            hopeless = idle >= _STUCK_STEPS or tol < _TIGHTEST
            if reached or hopeless or self._stuck or self._late(seconds):
                self._stuck |= hopeless and not reached
                return answer, Point(alpha, tol, seconds, found.gap, bool(reached), by_excess)
            tol /= TIGHTER

    def _late(self, seconds: float) -> bool:
        limit = self._stage.limit
        return self.seconds + seconds > limit or self._spent > _SEARCH_SHARE * limit


# --- the library ----------------------------------------------------------------------------------


class Ours(Contestant):
    """The library, as a user calls it, with one tolerance for all alphas."""

    def __init__(self, task: Task, threads: int) -> None:
        self._task = task
        self._options = {
            "loss": task.loss, "penalty": task.penalty, "fit_intercept": task.intercept == FREE,
            "n_jobs": threads, "random_state": 0,
        }  # fmt: skip
        self._floors: dict[str, Floors | None] = {}

    def prepare(self, X: Any, y: np.ndarray) -> None:
        self._X, self._y = with_ones(X) if self._task.intercept == ONES else X, y

    def compile(self, stages: Sequence[Stage]) -> None:
        self.trial(stages)

    def trial(self, stages: Sequence[Stage]) -> None:
        """The longest stage."""
        longest = max(stages, key=lambda stage: len(stage.alphas))
        self._solved(longest, longest.tol)

    def search(self, stage: Stage, evaluator: Evaluator, tell: Tell) -> Found | None:
        """At first the gap itself is the tolerance.

        Our own gap is that of a pair; the evaluator is given the model only, and finds another
        dual point by itself. It may take a smaller tolerance to convince it.
        """
        stage = replace(stage, floors=self._lower_bounds(stage, evaluator))
        if stage.floors is not None:
            tell("floors", floors=stage.floors)
        tol, by_value = stage.tol, False
        while True:
            stage = replace(stage, tols=(tol,) * len(stage.alphas))
            try:
                seconds, fitted = timed(lambda stage=stage: self.perform(stage))
            except TimeoutError:
                return None
            found = [evaluator.measure(one.model, one.alpha, stage.floors_at(one.alpha))
                     for one in fitted]  # fmt: skip
            if not by_value and all(one.excess <= stage.tol for one in found):
                tell("by_value", seconds=seconds)
                by_value = True
            reached = all(one.gap <= stage.tol for one in found)
            if reached or tol < _LEAST_SHARE * stage.tol:
                return Found(stage, None, reached)
            tol /= TIGHTER

    def _lower_bounds(self, stage: Stage, evaluator: Evaluator) -> Floors | None:
        """On the optimal values, from a run to a smaller gap; None where there are none."""
        if stage.name == CV or stage.floors is not None:
            return stage.floors
        if stage.name not in self._floors:
            self._floors[stage.name] = self._solved_bounds(stage, evaluator)
        return self._floors[stage.name]

    def _solved_bounds(self, stage: Stage, evaluator: Evaluator) -> Floors | None:
        try:
            with interrupted_after(_FLOOR_TIME * stage.limit):
                fitted = self._solved(stage, _FLOOR_SHARE * min(stage.tol, 1e-6))
        except TimeoutError:
            return None
        return tuple(tuple(evaluator.floors(one.model, one.alpha, one.gaps)) for one in fitted)

    def perform(self, stage: Stage) -> list[Fitted]:
        with interrupted_after(stage.limit):
            return self._solved(stage, stage.tols[0])

    def _solved(self, stage: Stage, tol: float) -> list[Fitted]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of gaps that are measured, and of grids that end
            if stage.name == SINGLE:
                return self._single(stage.alphas[0], tol)
            return (self._cv if stage.name == CV else self._path)(stage.alphas, tol)

    def _single(self, alpha: float, tol: float) -> list[Fitted]:
        kind = ss.SafeClassifier if self._task.classifies else ss.SafeRegressor
        model = kind(alpha=alpha, tol=tol, **self._options).fit(self._X, self._y)
        return [self._fitted(alpha, model.coef_, model.intercept_, model.dual_gap_)]

    def _path(self, alphas: Sequence[float], tol: float) -> list[Fitted]:
        found = ss.safe_path(self._X, self._y, alphas=np.asarray(alphas), tol=tol, **self._options)
        facts = zip(alphas, found.coefs, found.intercepts, found.dual_gaps, strict=True)
        return [self._fitted(*fact) for fact in facts]

    def _cv(self, alphas: Sequence[float], tol: float) -> list[Fitted]:
        model = ss.SafeClassifierCV(alphas=np.asarray(alphas), cv=5, tol=tol, **self._options)
        model.fit(self._X, self._y)
        return [self._fitted(model.alpha_, model.coef_, model.intercept_, model.dual_gap_)]

    def _fitted(self, alpha: float, coef: Any, intercept: Any, gap: Any) -> Fitted:
        ones = self._task.intercept == ONES
        model = Model.with_ones(coef) if ones else Model.of(coef, intercept)
        return Fitted(alpha, model, np.atleast_1d(gap))
