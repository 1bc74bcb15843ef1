"""One solver on one data set in a process of its own, so that memory and caches are its own.

    python benchmarks/race.py '{"data": "folder/name", "task": {...}, "solver": "cyanure", ...}'

Started by `runner.py`, with a `Run` as JSON; writes one JSON line per event to a file, so that
what was found before a time limit remains. Everybody is given the loosest of their own tolerances
that reaches the target, searched for in steps of √10 and not timed; the time is that of the calls
at that tolerance.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
from contestants import Contestant, Fitted, Other, Ours, Tell, killed_after, timed
from peer import Unsuited, storages, stored
from peers import PEERS
from runs import OURS, Run, Stage, load
from tasks import Evaluator, Task

# what takes no longer than so many seconds in all is repeated that many times as often
_SHORT, _MORE = 1.0, 3
# the storages are tried out in that many times the time a solver has, at least in so many seconds
_TRIAL_TIME, _LEAST_TRIAL = 4.0, 60.0


def race(run: Run, tell: Tell) -> None:
    """All stages; a stage is left out, without a word, whose looser one took too long.

    What is best stored in one way for a fit may be in another for a path.
    """
    X, y = load(run.data)
    contestant, evaluator = make_contestant(run.solver, run.task, run.threads), None
    kinds: list[str] = []
    for name, group in groupby(run.stages, attrgetter("name")):
        stages, before, known = list(group), kinds, run.storages.get(name)
        kinds = storages(X, contestant.storages) if known is None else [known]
        try:
            if len(kinds) > 1 or kinds != before:
                kind = prepare(contestant, X, y, stages, kinds)
        except Unsuited as reason:
            tell("unsuited", why=str(reason))
            return
        evaluator = evaluator or Evaluator(X, y, run.task)
        tell("storage", name=name, kind=kind, constant=evaluator.constant)
        for stage in stages:
            if not _race_stage(contestant, evaluator, stage, run, partial(tell, stage=stage.key)):
                break


def make_contestant(solver: str, task: Task, threads: int) -> Contestant:
    """Ours, or one of `PEERS`, by name."""
    if solver == OURS:
        return Ours(task, threads)
    return Other(PEERS[solver].make(task, threads))


def _race_stage(
    contestant: Contestant, evaluator: Evaluator, stage: Stage, run: Run, tell: Tell
) -> bool:
    """Search where nothing is known, perform and measure; False where the time was up."""
    tell("begin")
    times: list[float] = []
    cold = stage.tols is not None
    if not cold:
        found = contestant.search(stage, evaluator, tell)
        if found is None:
            tell("late")
            return False
        stage, times = found.stage, [] if found.seconds is None else [found.seconds]
        tell("tols", tols=stage.tols)
        if not found.reached:
            tell("stuck")
            run = replace(run, repeats=1)
    return _perform(contestant, evaluator, stage, run, times, tell, cold=cold)


def _perform(
    contestant: Contestant, evaluator: Evaluator, stage: Stage, run: Run, times: list[float],
    tell: Tell, *, cold: bool,
) -> bool:  # fmt: skip
    """The clock runs here, and the models of the last time are measured."""
    fitted: list[Fitted] = []
    for seconds in times:
        tell("time", seconds=seconds)
    try:
        if cold:
            contestant.perform(stage)  # what is compiled, and pages touched for the first time
        while _again(times, run.repeats, stage.limit):
            seconds, fitted = timed(partial(contestant.perform, stage))
            times.append(seconds)
            tell("time", seconds=seconds)
    except TimeoutError:
        tell("late")
        return False
    for one in fitted:
        gap = evaluator.measure(one.model, one.alpha, stage.floors_at(one.alpha)).gap
        tell("point", alpha=one.alpha, gap=gap, reached=bool(gap <= stage.tol))
    return True


def _again(times: Sequence[float], repeats: int, limit: float) -> bool:
    if not times:
        return True
    most = _MORE * repeats if repeats > 1 and sum(times) < _SHORT else repeats
    return len(times) < most and sum(times) + times[-1] <= limit


def prepare(
    contestant: Contestant, X: Any, y: np.ndarray, stages: Sequence[Stage], kinds: Sequence[str],
) -> str:  # fmt: skip
    """Hand over the data in the storage of the fastest trial, after one that compiles."""
    few, seconds = _few_rows(y), {}
    with killed_after(max(_TRIAL_TIME * stages[0].limit, _LEAST_TRIAL)):
        for kind in kinds:
            contestant.prepare(stored(X[few], kind), y[few])
            contestant.compile(stages)
            contestant.prepare(stored(X, kind), y)
            if len(kinds) > 1:
                seconds[kind] = _trial_seconds(partial(contestant.trial, stages))
    best = min(kinds, key=lambda kind: seconds.get(kind, 0.0))
    if best != kinds[-1]:
        contestant.prepare(stored(X, best), y)
    return best


def _trial_seconds(trial: Callable[[], None]) -> float:
    """Of the better of two, where one is over soon."""
    seconds, _ = timed(trial)
    return seconds if seconds > _SHORT else min(seconds, timed(trial)[0])


def _few_rows(y: np.ndarray, most: int = 200) -> np.ndarray:
    """From the smallest target to the largest: of every class."""
    return np.argsort(y, kind="stable")[np.linspace(0, len(y) - 1, min(most, len(y))).astype(int)]


def main() -> None:
    run = Run.parse(sys.argv[1])
    with open(run.output, "w") as file:

        def tell(event: str, **facts: Any) -> None:
            file.write(json.dumps({"event": event, **facts}) + "\n")
            file.flush()

        race(run, tell)
        tell("done")


if __name__ == "__main__":
    main()
