"""Starts a process per solver, and makes sense of what it wrote before it ended or was ended."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from runs import Run, Stage
from tasks import Task

_RACE = Path(__file__).with_name("race.py")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                     "NUMBA_NUM_THREADS")  # fmt: skip
# for loading, compiling, converting, measuring
_OVERHEAD = 240.0


@dataclass(frozen=True)
class StageOutcome:
    """A path or a single fit of one solver.

    Attributes
    ----------
    seconds : float
        The median of the times; where `reached` is False, it would need more than that.
    reached : bool
        Whether every alpha came within the tolerance in the time there was.
    gap : float
        The largest relative gap of those alphas that were solved.
    seconds_by_excess : float
        The time if nearness of the values were enough: see `Measure`.
    times, tols : lists
        Of the repeats; of the alphas.
    """

    seconds: float
    reached: bool
    gap: float
    seconds_by_excess: float
    times: list[float]
    tols: list[float]


@dataclass
class Outcome:
    """What a solver did: the storage it ran on, its stages, the lower bounds it gave."""

    storage: str | None = None
    stages: dict[str, StageOutcome] = field(default_factory=dict)
    floors: dict[str, list[float]] = field(default_factory=dict)
    failure: str | None = None

    def as_dict(self) -> dict[str, Any]:
        stages = {name: asdict(stage) for name, stage in self.stages.items()}
        return {"storage": self.storage, "failure": self.failure, **stages}


@dataclass(frozen=True)
class Runner:
    """Runs solvers in processes of their own, all with the same number of threads."""

    folder: Path
    tol: float
    repeats: int
    threads: int

    def run(self, data: str, task: Task, solver: str, stages: list[Stage]) -> Outcome:
        """All stages; where one of them had to be killed, the others in a new process."""
        outcome, waiting = Outcome(), list(stages)
        while waiting:
            events, failure = self._process(data, task, solver, waiting)
            outcome.storage = _storage(events) or outcome.storage
            outcome.failure = failure or outcome.failure
            begun = {e["stage"] for e in events if e["event"] == "begin"}
            # a process that did not even begin will not the next time
            ended = [s for s in waiting if s.name in begun] or waiting
            for stage in ended:
                own = [event for event in events if event.get("stage") == stage.name]
                outcome.stages[stage.name] = stage_outcome(own, stage)
                for event in own:
                    if event["event"] == "floors":
                        outcome.floors[stage.name] = event["floors"]
            waiting = [stage for stage in waiting if stage not in ended]
        return outcome

    def _process(
        self, data: str, task: Task, solver: str, stages: list[Stage]
    ) -> tuple[list[dict], str | None]:
        output = self.folder / "events.jsonl"
        output.write_text("")
        run = Run(data, (task.loss, task.penalty), solver, tuple(stages), self.tol, self.repeats,
                  self.threads, str(output))  # fmt: skip
        threads = dict.fromkeys(_THREAD_VARIABLES, str(self.threads))
        patience = _OVERHEAD + 10.0 * sum(stage.limit for stage in stages)
        try:
            ended = subprocess.run(
                [sys.executable, str(_RACE), json.dumps(asdict(run))], env=os.environ | threads,
                timeout=patience, capture_output=True, text=True, check=False,
            )  # fmt: skip
            failure = _last_line(ended.stderr) if ended.returncode > 0 else None
        except subprocess.TimeoutExpired:
            failure = f"killed after {patience:.0f} s"
        return [json.loads(line) for line in output.read_text().splitlines()], failure


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "ended without a word"


def _storage(events: list[dict]) -> str | None:
    return next((e["kind"] for e in events if e["event"] == "storage"), None)


def stage_outcome(events: list[dict], stage: Stage) -> StageOutcome:
    """What the events of one stage amount to, complete or not."""
    points = [e for e in events if e["event"] == "point"]
    times = [e["seconds"] for e in events if e["event"] == "time"]
    complete = len(points) == len(stage.alphas) and len(times) > 0
    reached = complete and all(point["reached"] for point in points)
    spent = sum(point.get("seconds", 0.0) for point in points)
    late = any(e["event"] == "late" for e in events)
    lower_bound = spent if late else max(spent, stage.limit)
    seconds = float(np.median(times)) if complete else lower_bound
    by_excess = seconds
    if complete:
        # nan where no setting came that near; ours has one time for all alphas
        known = sum(point.get("seconds_by_excess", math.nan) for point in points)
        by_excess = seconds if math.isnan(known) else min(seconds, known)
    return StageOutcome(
        seconds=seconds,
        reached=reached,
        gap=max((point["gap"] for point in points), default=math.inf),
        seconds_by_excess=by_excess,
        times=times,
        tols=[point["tol"] for point in points if "tol" in point],
    )
