"""Starts a process per solver, and makes sense of what it wrote before it ended or was ended."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from runs import CV, PATH, SINGLE, Floors, Run, Stage
from tasks import Task

_RACE = Path(__file__).with_name("race.py")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
                     "NUMBA_NUM_THREADS")  # fmt: skip
# what is freed stays with the process (glibc): a page that is touched for the first time, which is
# not to be timed, takes as long as the machine underneath pleases, and more for short fits
_KEPT_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
# for loading, compiling, converting, measuring; and what limits are multiplied with
_OVERHEAD, _PATIENCE = 240.0, 10.0
# it ends by itself where whoever started it has gone without a word
_SPIN = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(10**6):
        pass
"""

QUIET, BUSY = "quiet", "busy"


@dataclass(frozen=True)
class StageOutcome:
    """What became of a stage.

    Attributes
    ----------
    seconds : float
        The median of the times; where `reached` is False, it would need more than that.
    reached : bool
        Whether every alpha came within the tolerance in the time there was.
    gap : float
        The largest relative gap of those alphas that were solved.
    stuck : bool
        Whether the gap no longer fell with the solver's own tolerance: more time is of no use.
    seconds_by_excess : float
        The time if nearness of the values were enough: see `Measure`.
    times, tols : lists
        Of the repeats; of the alphas.
    chosen : float or None
        The alpha of the model that was measured last.
    storage : str or None
        Of the matrix.
    """

    seconds: float
    reached: bool
    gap: float
    stuck: bool = False
    seconds_by_excess: float = math.nan
    times: Sequence[float] = ()
    tols: Sequence[float] = ()
    chosen: float | None = None
    storage: str | None = None


@dataclass
class Outcome:
    """What a solver did: the storages it ran on, its stages, the lower bounds it gave.

    `storages` by the names of the stages, `stages` and `floors` by their keys; `others` is how many
    cores other processes kept busy meanwhile, those that the race itself started not counted;
    `constant` is what gaps are relative to.
    """

    storages: dict[str, str] = field(default_factory=dict)
    constant: float | None = None
    stages: dict[str, StageOutcome] = field(default_factory=dict)
    floors: dict[str, Floors] = field(default_factory=dict)
    failure: str | None = None
    others: float | None = None


@dataclass(frozen=True)
class Runner:
    """Runs solvers in processes of their own, all with the same number of threads.

    With `load` "busy" as many processes spin beside each of them.
    """

    folder: Path
    repeats: int
    threads: int
    load: str = QUIET

    def run(
        self, data: str, task: Task, solver: str, stages: Sequence[Stage],
        storages: dict[str, str] | None = None,
    ) -> Outcome:  # fmt: skip
        """All stages; where one of them had to be killed, the others in a new process.

        A stage to a smaller gap is not tried where the same to a larger one took too long, nor a
        path where a fit did, which has harder ones: its outcome is the same bound.
        """
        outcome, waiting, others = Outcome(dict(storages or {})), list(stages), []
        while waiting:
            with _foreign_load() as foreign:
                events, failure = self._process(data, task, solver, waiting, outcome.storages)
            others += foreign
            for event in events:
                if event["event"] == "storage":
                    outcome.storages[event["name"]] = event["kind"]
                    outcome.constant = event["constant"]
            outcome.failure = failure or outcome.failure
            begun = {e["stage"] for e in events if e["event"] == "begin"}
            if not begun:
                # nor would it the next time
                outcome.failure = outcome.failure or "its first trials took too long"
                break
            _take_in(outcome, events, [stage for stage in waiting if stage.key in begun])
            waiting = _not_yet(outcome, [stage for stage in waiting if stage.key not in begun])
        outcome.others = max(others, default=None)
        return outcome

    def _process(
        self, data: str, task: Task, solver: str, stages: Sequence[Stage], storages: dict[str, str]
    ) -> tuple[list[dict], str | None]:
        output = self.folder / "events.jsonl"
        output.write_text("")
        run = Run(data, task, solver, tuple(stages), self.repeats, self.threads, str(output),
                  storages)  # fmt: skip
        variables = dict.fromkeys(_THREAD_VARIABLES, str(self.threads)) | _KEPT_MEMORY
        patience = _OVERHEAD + _PATIENCE * sum(stage.limit for stage in stages)
        with ExitStack() as stack:
            if self.load == BUSY:
                stack.enter_context(spinning(os.cpu_count() or 1))
            try:
                ended = subprocess.run(
                    [sys.executable, str(_RACE), run.text()], env=os.environ | variables,
                    timeout=patience, capture_output=True, text=True, check=False,
                )  # fmt: skip
                failure = _failure(ended)
            except subprocess.TimeoutExpired:
                failure = f"killed after {patience:.0f} s"
        events = [json.loads(line) for line in output.read_text().splitlines()]
        unsuited = (event["why"] for event in events if event["event"] == "unsuited")
        return events, next(unsuited, failure)


@contextmanager
def spinning(n_processes: int) -> Iterator[list[subprocess.Popen]]:
    """So many processes that do nothing, as fast as they can, pinned to no core."""
    started: list[subprocess.Popen] = []
    try:
        for _ in range(n_processes):
            started.append(subprocess.Popen([sys.executable, "-S", "-c", _SPIN]))
        yield started
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


@contextmanager
def _foreign_load() -> Iterator[list[float]]:
    """Filled at the end: the cores that processes not started here kept busy, where it is known."""
    found: list[float] = []
    start, before = time.perf_counter(), _busy_seconds()
    yield found
    if before is not None:
        spent = _busy_seconds() - before
        found.append(max(0.0, round(spent / (time.perf_counter() - start), 2)))


def _busy_seconds() -> float | None:
    """Of all processors, less those of this process and the children it has waited for."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()
    except OSError:
        return None
    # user, nice and system
    busy = sum(map(int, fields[1:4])) / os.sysconf("SC_CLK_TCK")
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        busy -= usage.ru_utime + usage.ru_stime
    return busy


def _failure(ended: subprocess.CompletedProcess) -> str | None:
    """The last line of a traceback; None where it ended well, or was ended by its own alarm."""
    if ended.returncode <= 0:
        return None
    lines = ended.stderr.strip().splitlines()
    return lines[-1] if lines else "ended without a word"


def _take_in(outcome: Outcome, events: list[dict], stages: Sequence[Stage]) -> None:
    for stage in stages:
        own = [event for event in events if event.get("stage") == stage.key]
        storage = outcome.storages.get(stage.name)
        outcome.stages[stage.key] = replace(stage_outcome(own, stage), storage=storage)
        for event in own:
            if event["event"] == "floors":
                outcome.floors[stage.key] = event["floors"]


def _not_yet(outcome: Outcome, stages: Sequence[Stage]) -> list[Stage]:
    """Those that are worth a try; of the others the bound is that of the larger gap."""
    waiting = []
    for stage in stages:
        late = [
            one for key, one in outcome.stages.items()
            if not one.reached and not one.stuck and _is_easier(key, one, stage)
        ]  # fmt: skip
        if late:
            outcome.stages[stage.key] = late[-1]
        else:
            waiting.append(stage)
    return waiting


def _is_easier(key: str, one: StageOutcome, stage: Stage) -> bool:
    """The same to a larger gap; or a fit that took the time of the whole path."""
    name = key.partition("@")[0]
    return name == stage.name or (
        name == SINGLE and stage.name == PATH and one.seconds >= stage.limit
    )


def stage_outcome(events: list[dict], stage: Stage) -> StageOutcome:
    """What the events of one stage amount to, complete or not."""
    kinds: dict[str, list[dict]] = {}
    for event in events:
        kinds.setdefault(event["event"], []).append(event)
    alphas, times = kinds.get("alpha", []), [e["seconds"] for e in kinds.get("time", [])]
    points = kinds.get("point", alphas)
    complete = len(times) > 0 and "late" not in kinds and len(points) > 0
    spent = sum(point["seconds"] for point in alphas)
    bound = spent if "late" in kinds and alphas else max(spent, stage.limit)
    seconds = float(np.median(times)) if complete else bound
    return StageOutcome(
        seconds=seconds,
        reached=complete and all(point["reached"] for point in points),
        gap=max((point["gap"] for point in points), default=math.inf),
        stuck="stuck" in kinds,
        seconds_by_excess=_by_excess(kinds, stage, seconds) if complete else seconds,
        times=times,
        tols=kinds["tols"][0]["tols"] if "tols" in kinds else stage.tols or (),
        chosen=points[-1]["alpha"] if complete else None,
    )


def _by_excess(kinds: dict[str, list[dict]], stage: Stage, seconds: float) -> float:
    """Of a search, alpha by alpha (nan in it where no setting came that near), or of the whole."""
    found = kinds.get("by_value") or ([] if stage.name == CV else kinds.get("alpha", []))
    known = sum([one.get("seconds_by_excess", one["seconds"]) for one in found] or [math.nan])
    return seconds if math.isnan(known) else min(seconds, known)
