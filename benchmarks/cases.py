"""Which data, which task, which alphas, and the ratios that are aimed at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from peers import PEERS
from runs import CV, PATH, SINGLE
from tasks import FREE, NONE, ONES, Task

SINGLE_ALPHA = 1e-4
TOLS = (1e-3, 1e-6)


@dataclass(frozen=True)
class Case:
    """Some lines of the tables: one per stage.

    `targets`, by stage, are for the time of the best peer over ours on a quiet machine. Those of
    paths are for the smallest gap, those of fits and of cross-validation for every one.
    """

    data: str
    task: Task
    largest: float = 1e-3
    smallest: float = 1e-5
    n_alphas: int = 10
    stages: tuple[str, ...] = (SINGLE, PATH)
    targets: dict[str, float] = field(default_factory=dict)
    # whether there are peers beside ours
    is_race: bool = True

    @property
    def name(self) -> str:
        return f"{self.data}/{self.task}{self._length}"

    @property
    def without_intercept(self) -> str:
        """The name of the same case without."""
        return replace(self, task=replace(self.task, intercept=NONE)).name

    def alphas(self, stage: str) -> tuple[float, ...]:
        if stage == SINGLE:
            return (SINGLE_ALPHA,)
        return tuple(map(float, np.geomspace(self.largest, self.smallest, self.n_alphas)))

    def target(self, stage: str, tol: float) -> float | None:
        return None if stage == PATH and tol > min(TOLS) else self.targets.get(stage)

    def peers(self) -> list[str]:
        """Those who solve it, as far as they are installed."""
        if not self.is_race:
            return []
        able = {name: peer for name, peer in PEERS.items() if peer.supports(self.task)}
        return [
            name for name, peer in able.items() if CV not in self.stages or peer.cross_validates
        ]

    @property
    def _length(self) -> str:
        if CV in self.stages:
            return "/cv"
        return f"/{self.n_alphas}" if PATH in self.stages and self.n_alphas != 10 else ""


def _l2(data: str, loss: str, target: float | None = None) -> Case:
    return Case(data, Task(loss, "l2"), targets=_targets(target))


def _l1(data: str, loss: str, target: float = 1.0) -> Case:
    return Case(data, Task(loss, "l1"), 1e-2, 1e-4, targets=_targets(target))


def _classes(data: str, n_classes: int, loss: str, target: float = 1.0) -> Case:
    task = Task(loss, "l2", n_classes=n_classes)
    return Case(data, task, stages=(SINGLE,), targets={SINGLE: target})


def _targets(path: float | None) -> dict[str, float]:
    return {SINGLE: 1.0} | ({} if path is None else {PATH: path})


_OTHERS = ("mnist-fourier", "a9a", "covtype", "news20", "imdb")
_ONES = ("mnist", "mnist-ten-20000", "a9a", "onehot", "covtype-200000", "news20", "news20-twenty")
_SEVERAL = (("mnist-ten-20000", 10, 1.5), ("mnist-ten", 10, 1.5), ("news20-twenty", 20, 1.5),
            ("onehot", 3, 1.0))  # fmt: skip

# made-up data, for trying things out: nothing is aimed at
_TRIALS = tuple(
    replace(case, targets={})
    for case in (
        _l2("synthetic", "squared_hinge"),
        _l2("synthetic", "hinge"),
        _l2("synthetic", "logistic"),
        _l1("synthetic", "squared_hinge"),
        _classes("synthetic-three", 3, "squared_hinge"),
        Case("synthetic-three", Task("squared_hinge", "l2", n_classes=3), 1e-1, 1e-4, 4, (CV,)),
    )
)

_WITHOUT_INTERCEPT = (
    _l2("mnist", "squared_hinge", 4.0),
    Case("mnist", Task("squared_hinge", "l2"), n_alphas=100, stages=(PATH,), targets={PATH: 8.0}),
    _l2("mnist-fourier", "squared_hinge", 10.0),
    _l2("a9a", "squared_hinge", 8.0),
    _l2("covtype", "squared_hinge", 60.0),
    _l2("news20", "squared_hinge", 1.5),
    _l2("imdb", "squared_hinge", 1.5),
    *(_l2(data, "hinge", 1.5)
      for data in ("mnist", "mnist-fourier", "a9a", "covtype-200000", "news20", "imdb")),
    _l1("mnist", "squared_hinge", 8.0),
    *(_l1(data, "squared_hinge") for data in _OTHERS),
    *(_l1(data, "safe_logistic") for data in ("mnist", *_OTHERS)),
    *(_l2(data, "logistic") for data in ("a9a", "news20", "mnist", "covtype")),
    *(_l1(data, "logistic") for data in ("a9a", "news20")),
    _l2("mnist-digits", "squared_epsilon_insensitive"),
    _l2("covtype-elevation", "squared_epsilon_insensitive"),
    *(_classes(data, n, loss, target)
      for loss in ("squared_hinge", "logistic") for data, n, target in _SEVERAL),
    Case("onehot", Task("squared_hinge", "l2", n_classes=3), 1e-1, 1e-5, 8, (CV,), {CV: 1.0}),
    *_TRIALS,
)  # fmt: skip


def _with(case: Case, intercept: str) -> Case:
    changed = replace(case, task=replace(case.task, intercept=intercept))
    return replace(changed, is_race=not _is_dear(case))


def _is_dear(case: Case) -> bool:
    """Whether the peers take so long that they are waited for once only, without an intercept."""
    wide_l1 = case.task.penalty == "l1" and case.data not in ("a9a", "news20")
    return wide_l1 or case.n_alphas > 10 or case.data == "mnist-ten"


def _has_ones(case: Case) -> bool:
    """A column of ones is raced on one data set of each kind, where a peer has one."""
    return (case.data in _ONES or case in _TRIALS) and bool(_with(case, ONES).peers())


CASES = (
    *_WITHOUT_INTERCEPT,
    *(_with(case, FREE) for case in _WITHOUT_INTERCEPT),
    *(_with(case, ONES) for case in filter(_has_ones, _WITHOUT_INTERCEPT)),
)
