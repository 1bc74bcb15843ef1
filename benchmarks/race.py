"""One solver on one data set in a process of its own, so that memory and caches are its own.

    python benchmarks/race.py '{"data": "folder/name", "task": [...], "solver": "cyanure", ...}'

Started by `paths_vs_peers.py`, with a `Run` as JSON; writes one JSON line per event to a file, so
that what was found before a time limit remains. A peer is given the loosest of its own tolerances
that reaches the target, searched for every alpha in steps of √10 and not timed; the time is that
of the calls at that tolerance.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from peers import PEERS, Answer, Peer, storages, stored
from runs import OURS, Run, Stage, load
from tasks import Evaluator, Task

import safesift as ss

_TIGHTER = math.sqrt(10.0)
# after so many steps without progress a tighter tolerance is of no use to a solver
_STUCK_STEPS, _TIGHTEST = 6, 1e-15
# the search itself may take that many times the time a solver has
_SEARCH_SHARE = 4.0
# of the runs that give the lower bounds on the optimal values
_FLOOR_TOL = 1e-8


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
    excess: float
    reached: bool
    seconds_by_excess: float


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


# --- the peers ------------------------------------------------------------------------------------


class Search:
    """The loosest tolerance for every alpha of a stage, and the time it takes at that one."""

    def __init__(self, peer: Peer, evaluator: Evaluator, stage: Stage, tol: float) -> None:
        self._peer, self._evaluator, self._stage, self._tol = peer, evaluator, stage, tol
        self.points: list[Point] = []
        self._stuck, self._spent = False, 0.0

    @property
    def seconds(self) -> float:
        return sum(point.seconds for point in self.points)

    def follow(self, tell: Callable) -> bool:
        """Solve one alpha after another, warm; False where the time is up."""
        warm, tol = None, self._peer.loosest
        for alpha, floor in zip(self._stage.alphas, self._stage.floors, strict=True):
            warm, point = self._climb(alpha, floor, warm, tol)
            self.points.append(point)
            tell("point", **vars(point))
            tol = point.tol if self._stuck else min(self._peer.loosest, 10.0 * point.tol)
            if self._late(0.0):
                return False
        return True

    def _climb(
        self, alpha: float, floor: float, warm: Answer | None, tol: float
    ) -> tuple[Answer, Point]:
        idle, best, by_excess = 0, math.inf, math.nan
        while True:
            with killed_after(self._stage.limit - self.seconds):
                seconds, answer = timed(lambda tol=tol: self._peer.solve(alpha, tol, warm))
            self._spent += seconds
            found = self._evaluator.measure(answer.coef, alpha, floor)
            if math.isnan(by_excess) and found.excess <= self._tol:
                by_excess = seconds
            reached = found.gap <= self._tol
            idle = 0 if found.gap < 0.9 * best else idle + 1
            best = min(best, found.gap)
            hopeless = idle >= _STUCK_STEPS or tol < _TIGHTEST
            if reached or hopeless or self._stuck or self._late(seconds):
                self._stuck |= hopeless and not reached
                point = Point(alpha, tol, seconds, found.gap, found.excess, reached, by_excess)
                return answer, point
            tol /= _TIGHTER

    def _late(self, seconds: float) -> bool:
        limit = self._stage.limit
        return self.seconds + seconds > limit or self._spent > _SEARCH_SHARE * limit


@contextmanager
def killed_after(seconds: float) -> Iterator[None]:
    """End the process after that time: a call into compiled code cannot be stopped otherwise."""
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.0) + 1.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def again(peer: Peer, points: list[Point]) -> float:
    """Seconds of a path at tolerances that are known."""
    warm, total = None, 0.0
    for point in points:
        seconds, warm = timed(lambda p=point, w=warm: peer.solve(p.alpha, p.tol, w))
        total += seconds
    return total


def race_peer(run: Run, tell: Callable) -> None:
    X, y = load(run.data)
    task = Task(*run.task)
    evaluator = Evaluator(X, y, task)
    peer = PEERS[run.solver].make(task, run.threads)
    kind = _fastest_storage(peer, X, y, run)
    peer.prepare(stored(X, kind), y)
    del X
    tell("storage", kind=kind)
    for stage in run.stages:
        _race_stage(peer, evaluator, stage, run, partial(tell, stage=stage.name))


def _race_stage(peer: Peer, evaluator: Evaluator, stage: Stage, run: Run, tell: Callable) -> None:
    tell("begin")
    search = Search(peer, evaluator, stage, run.tol)
    if not search.follow(tell):
        tell("late")
        return
    tell("time", seconds=search.seconds)
    spent = search.seconds
    for _ in range(run.repeats - 1):
        if spent + search.seconds > stage.limit:
            return
        seconds = again(peer, search.points)
        spent += seconds
        tell("time", seconds=seconds)


def _fastest_storage(peer: Peer, X: Any, y: np.ndarray, run: Run) -> str:
    """By one loose fit in each; before that one on a few rows, which compiles what needs it."""
    times = {}
    few = _few_rows(y)
    for kind in storages(X, peer.storages):
        peer.prepare(stored(X[few], kind), y[few])
        answer = peer.solve(run.stages[0].alphas[0], peer.loosest, None)
        peer.solve(run.stages[0].alphas[0], peer.loosest, answer)
        peer.prepare(stored(X, kind), y)
        times[kind], _ = timed(lambda: peer.solve(run.stages[0].alphas[0], peer.loosest, None))
    return min(times, key=times.get)


def _few_rows(y: np.ndarray, most: int = 200) -> np.ndarray:
    """The samples of smallest and of largest target: of both classes."""
    order = np.argsort(y, kind="stable")
    return np.concatenate([order[: most // 2], order[-(most // 2) :]])


# --- the library ----------------------------------------------------------------------------------


class Ours:
    """The library on one data set, as a user calls it."""

    def __init__(self, task: Task, X: Any, y: np.ndarray) -> None:
        self._task, self._X, self._y = task, X, y

    def path(self, alphas: Sequence[float], tol: float) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and certified gaps."""
        found = ss.safe_path(
            self._X, self._y, alphas=np.asarray(alphas), loss=self._task.loss,
            penalty=self._task.penalty, fit_intercept=False, tol=tol,
        )  # fmt: skip
        return found.coefs, found.dual_gaps

    def single(self, alphas: Sequence[float], tol: float) -> tuple[np.ndarray, np.ndarray]:
        """The same of one fit."""
        classifies = self._task.loss in ("squared_hinge", "hinge", "safe_logistic")
        model = (ss.SafeClassifier if classifies else ss.SafeRegressor)(
            loss=self._task.loss, penalty=self._task.penalty, alpha=alphas[0],
            fit_intercept=False, tol=tol,
        ).fit(self._X, self._y)  # fmt: skip
        return np.reshape(model.coef_, (1, -1)), np.reshape(np.max(model.dual_gap_), 1)


def race_ours(run: Run, tell: Callable) -> None:
    """First a run to a smaller gap, for the lower bounds and to compile, then the timed ones."""
    X, y = load(run.data)
    task = Task(*run.task)
    evaluator = Evaluator(X, y, task)
    solvers = {kind: Ours(task, stored(X, kind), y) for kind in storages(X, ("C", "csr"))}
    kind = _fastest_for_us(solvers, run)
    solver = solvers[kind]
    del solvers, X
    tell("storage", kind=kind)
    for stage in run.stages:
        solve = getattr(solver, stage.name)
        tell("begin", stage=stage.name)
        with killed_after(_SEARCH_SHARE * stage.limit):
            coefs, gaps = solve(stage.alphas, min(_FLOOR_TOL, run.tol))
        known = zip(coefs, stage.alphas, gaps, strict=True)
        floors = [evaluator.floor(coef, alpha, gap) for coef, alpha, gap in known]
        tell("floors", stage=stage.name, floors=floors)
        points = _loosest_of_ours(solve, evaluator, stage, floors, run.tol)
        times: list[float] = []
        while len(times) < run.repeats and sum(times) <= stage.limit:
            with killed_after(stage.limit):
                seconds, _ = timed(partial(solve, stage.alphas, points[0]["tol"]))
            times.append(seconds)
            tell("time", stage=stage.name, seconds=seconds)
        for point in points:
            tell("point", stage=stage.name, **point)


def _loosest_of_ours(
    solve: Callable, evaluator: Evaluator, stage: Stage, floors: list[float], target: float
) -> list[dict[str, Any]]:
    """What is measured at the loosest tolerance that reaches the target, as for the peers.

    Our own gap is that of a pair; the evaluator is given the coefficients only, and finds another
    dual point by itself. It may take a smaller tolerance to convince it.
    """
    tol = target
    while True:
        with killed_after(stage.limit):
            coefs, _ = solve(stage.alphas, tol)
        points = []
        for coef, alpha, floor in zip(coefs, stage.alphas, floors, strict=True):
            found = evaluator.measure(coef, alpha, floor)
            points.append({"alpha": alpha, "tol": tol, "gap": found.gap, "excess": found.excess,
                           "reached": bool(found.gap <= target)})  # fmt: skip
        if all(point["reached"] for point in points) or tol < _FLOOR_TOL:
            return points
        tol /= _TIGHTER


def _fastest_for_us(solvers: dict[str, Ours], run: Run) -> str:
    """By the longest stage, after a first run that compiles."""
    alphas = max((stage.alphas for stage in run.stages), key=len)
    if len(solvers) == 1:
        return next(iter(solvers))
    for solver in solvers.values():
        solver.path(alphas, run.tol)
    return min(solvers, key=lambda kind: timed(lambda: solvers[kind].path(alphas, run.tol))[0])


def main() -> None:
    run = Run.parse(sys.argv[1])
    with open(run.output, "w") as file:

        def tell(event: str, **facts: Any) -> None:
            file.write(json.dumps({"event": event, **facts}) + "\n")
            file.flush()

        (race_ours if run.solver == OURS else race_peer)(run, tell)
        tell("done")


if __name__ == "__main__":
    main()
