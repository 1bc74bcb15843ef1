"""What a user would pick instead, by name."""

from __future__ import annotations

from dataclasses import dataclass

from peer import CrossValidating, OneAgainstRest, Peer, Task, storages, stored
from peers_others import (
    Adelie,
    Cyanure,
    Rehline,
    SkglmDescent,
    SkglmHinge,
    SkglmLbfgs,
    SkglmNewton,
)
from peers_sklearn import Lbfgs, LiblinearDual, LiblinearPrimal, Libsvm, NewtonCholesky

__all__ = ["PEERS", "Entry", "storages", "stored"]


@dataclass(frozen=True)
class Entry:
    """A kind of peer; `split` where several classes are shared out to it even if it need not be."""

    kind: type[Peer]
    split: bool = False

    def supports(self, task: Task) -> bool:
        known = self.kind.installed() and self.kind.supports(task)
        return known and not (self.split and not self._only_split(task))

    @property
    def cross_validates(self) -> bool:
        return issubclass(self.kind, CrossValidating) and not self.split

    def make(self, task: Task, threads: int) -> Peer:
        several = task.n_classes > 2
        if several and (self.split or not self.kind.separates_several(task)):
            return OneAgainstRest(task, threads, self.kind)
        return self.kind(task, threads)

    def _only_split(self, task: Task) -> bool:
        """Whether being split makes a difference."""
        return task.n_classes > 2 and self.kind.separates_several(task)


# Those first that are likely to be quick: nobody is waited for much longer than for the best one.
PEERS: dict[str, Entry] = {
    "skglm CD": Entry(SkglmDescent),
    "skglm Newton": Entry(SkglmNewton),
    "newton-cholesky": Entry(NewtonCholesky),
    "lbfgs": Entry(Lbfgs),
    "LIBLINEAR dual": Entry(LiblinearDual),
    "LIBLINEAR dual, threads": Entry(LiblinearDual, split=True),
    "ReHLine": Entry(Rehline),
    "LIBLINEAR primal": Entry(LiblinearPrimal),
    "cyanure": Entry(Cyanure),
    "skglm dual": Entry(SkglmHinge),
    "skglm lbfgs": Entry(SkglmLbfgs),
    "adelie": Entry(Adelie),
    "LIBSVM": Entry(Libsvm),
}
