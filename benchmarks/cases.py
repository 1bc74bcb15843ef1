"""Which data, which task, which alphas, and the ratio that is aimed at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from runner import Outcome
from tasks import Task

SINGLE = 1e-4
# a single fit may be slower than the best peer by a fifth
SINGLE_TARGET = 1.0 / 1.2


@dataclass(frozen=True)
class Case:
    """One line of the tables: `target` is for the time of the best peer over ours, on the path."""

    data: str
    task: Task
    largest: float
    smallest: float
    target: float | None = None
    n_alphas: int = 10

    @property
    def name(self) -> str:
        longer = "" if self.n_alphas == 10 else f"/{self.n_alphas}"
        return f"{self.data}/{self.task}{longer}"

    @property
    def alphas(self) -> np.ndarray:
        return np.geomspace(self.largest, self.smallest, self.n_alphas)

    def summary(self, outcomes: dict[str, Outcome]) -> dict[str, Any]:
        """Everything measured, and the two ratios."""
        return {
            "case": self.name, "data": self.data, "task": str(self.task),
            "n_alphas": self.n_alphas,
            "path": _ratio(outcomes, "path", self.target),
            "single": _ratio(outcomes, "single", SINGLE_TARGET),
            "solvers": {name: outcome.as_dict() for name, outcome in outcomes.items()},
        }  # fmt: skip


def _ratio(outcomes: dict[str, Outcome], stage: str, target: float | None) -> dict[str, Any]:
    """Best peer over ours; where none got there it would need more: the ratio is a bound."""
    (_, ours), *peers = ((name, found.stages[stage]) for name, found in outcomes.items())
    record: dict[str, Any] = {
        "ours": ours.seconds, "ours_reached": ours.reached, "target": target, "ratio": None,
    }  # fmt: skip
    if not peers:
        return record
    arrived = [peer for peer in peers if peer[1].reached] or peers
    name, best = min(arrived, key=lambda peer: peer[1].seconds)
    ratio = best.seconds / ours.seconds
    known = target is not None and math.isfinite(ratio)
    return record | {
        "peer": name, "seconds": best.seconds, "at_least": not best.reached, "ratio": ratio,
        "met": bool(ours.reached and ratio >= target) if known else None,
        "ratio_by_excess": min(p.seconds_by_excess for _, p in arrived) / ours.seconds,
    }  # fmt: skip


def _l2(data: str, loss: str, target: float | None = None, n_alphas: int = 10) -> Case:
    return Case(data, Task(loss, "l2"), 1e-3, 1e-5, target, n_alphas)


def _l1(data: str, loss: str, target: float) -> Case:
    return Case(data, Task(loss, "l1"), 1e-2, 1e-4, target)


_OTHERS = ("mnist-fourier", "a9a", "covtype", "news20", "imdb")

CASES = (
    _l2("mnist", "squared_hinge", 5.0),
    _l2("mnist", "squared_hinge", 10.0, n_alphas=100),
    _l2("mnist-fourier", "squared_hinge", 10.0),
    _l2("a9a", "squared_hinge", 5.0),
    _l2("covtype", "squared_hinge", 100.0),
    _l2("news20", "squared_hinge", 1.5),
    _l2("imdb", "squared_hinge", 1.5),
    *(_l2(data, "hinge") for data in ("mnist", *_OTHERS)),
    _l1("mnist", "squared_hinge", 5.0),
    *(_l1(data, "squared_hinge", 2.0) for data in _OTHERS),
    *(_l1(data, "safe_logistic", 2.0) for data in ("mnist", *_OTHERS)),
    _l2("mnist-digits", "squared_epsilon_insensitive"),
    _l2("covtype-elevation", "squared_epsilon_insensitive"),
    _l2("synthetic", "squared_hinge"),
    _l2("synthetic", "hinge"),
    _l1("synthetic", "squared_hinge", 2.0),
)  # fmt: skip
