"""What a peer is, whoever's: the same three questions, and the storages it is offered.

`supports(task)`, `prepare(X, y)` (conversion to the storage it likes best, not timed) and
`solve(alpha, tol, warm)`. The objective is always that of the library,

    (1/n) Σ f(a_iᵀx; b_i) + alpha·R(x).
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from tasks import FREE, NONE, ONES, Model, Task  # the file beside this one

# the share of non-zeros up to which only sparse, and from which only dense storage is tried
SPARSE_ONLY, DENSE_ONLY = 0.02, 0.5


class Unsuited(Exception):
    """Data that a peer cannot take at all, with the reason."""


@dataclass(frozen=True, eq=False)
class Answer:
    """A model, and what a warm start of the next problem needs."""

    model: Model
    state: Any = None


class Peer(ABC):
    """A solver of somebody else, on one data set."""

    package: ClassVar[str]
    # losses and penalties (`Task.kind`), and which intercepts it has
    kinds: ClassVar[Sequence[str]]
    intercepts: ClassVar[Sequence[str]] = (NONE,)
    # its own tolerance where the search begins
    loosest: ClassVar[float] = 1e-2
    # memory orders: of a dense and of a sparse matrix
    storages: ClassVar[tuple[str, str]] = ("C", "csr")

    def __init__(self, task: Task, threads: int) -> None:
        self.task, self.threads = task, threads

    @classmethod
    def installed(cls) -> bool:
        return importlib.util.find_spec(cls.package) is not None

    @classmethod
    def supports(cls, task: Task) -> bool:
        """Whether it solves this task at all, for two classes or real targets."""
        return task.kind in cls.kinds and task.intercept in cls.intercepts

    @classmethod
    def separates_several(cls, task: Task) -> bool:
        """Whether it solves one class against the rest for several classes by itself."""
        return False

    @property
    def fit_intercept(self) -> bool:
        return self.task.intercept != NONE

    def prepare(self, X: Any, y: np.ndarray) -> None:
        """Take the data in their final storage; not timed."""
        self.X, self.y = X, y

    @abstractmethod
    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        """One problem, at its own tolerance; `warm` is the answer to the previous one."""


class CrossValidating(Peer):
    """A peer whom scikit-learn can cross-validate."""

    @abstractmethod
    def cross_validate(
        self, alphas: Sequence[float], tols: Sequence[float]
    ) -> tuple[float, Answer]:
        """The alpha of the best accuracy in five folds, and the model on all rows with it."""


class OneAgainstRest(Peer):
    """A peer for two classes, on several: as many of them, on so many threads.

    What scikit-learn's OneVsRestClassifier does, without a copy of the data per process.
    """

    def __init__(self, task: Task, threads: int, kind: type[Peer]) -> None:
        super().__init__(task, threads)
        two = replace(task, n_classes=2)
        self._peers = [kind(two, threads=1) for _ in range(task.n_classes)]
        self.loosest, self.storages = kind.loosest, kind.storages

    def prepare(self, X: Any, y: np.ndarray) -> None:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)  # of BLAS: the threads are for the classes
        for label, peer in zip(np.unique(y), self._peers, strict=True):
            peer.prepare(X, np.where(y == label, 1.0, -1.0))

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        states = [None] * len(self._peers) if warm is None else warm.state

        def one(k: int) -> Answer:
            return self._peers[k].solve(alpha, tol, states[k])

        with ThreadPoolExecutor(self.threads) as pool:
            answers = list(pool.map(one, range(len(self._peers))))
        coef = np.vstack([answer.model.coef for answer in answers])
        intercept = np.concatenate([answer.model.intercept for answer in answers])
        return Answer(Model.of(coef, intercept), answers)


def storages(X: Any, kinds: tuple[str, str]) -> list[str]:
    """The storages worth trying: by the share of non-zeros, both where it is not clear."""
    size = X.shape[0] * X.shape[1]
    share = (X.nnz if sparse.issparse(X) else np.count_nonzero(X)) / size
    if share <= SPARSE_ONLY:
        return [kinds[1]]
    return [kinds[0]] if share >= DENSE_ONLY else list(dict.fromkeys(kinds))


def stored(X: Any, kind: str) -> Any:
    """The matrix in C or Fortran order, CSR or CSC, in float64."""
    if kind in ("csr", "csc"):
        matrix = sparse.csr_matrix(X) if kind == "csr" else sparse.csc_matrix(X)
        matrix.sort_indices()
        return matrix
    array = X.toarray() if sparse.issparse(X) else X
    return np.require(array, dtype=np.float64, requirements=kind)


__all__ = ["FREE", "NONE", "ONES", "Answer", "CrossValidating", "Model", "OneAgainstRest", "Peer",
           "Task", "Unsuited", "storages", "stored"]  # fmt: skip
