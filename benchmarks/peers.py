"""What a user would pick instead, each behind the same three questions.

`supports(task)`, `prepare(X, y)` (conversion to the storage it likes best, not timed) and
`solve(alpha, tol, warm)`. The objective is always that of the library,

    (1/n) Σ f(a_iᵀx; b_i) + alpha·R(x),

so that LIBLINEAR's C is 1/(2 n alpha) for squared losses (it has no ½) and 1/(n alpha) for the
hinge; cyanure's and skglm's objectives are ours as they stand. `tests/test_benchmarks.py` checks
that by the evaluator.
"""

from __future__ import annotations

import importlib.util
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from tasks import Task  # the file beside this one

# the share of non-zeros up to which only sparse, and from which only dense storage is tried
SPARSE_ONLY, DENSE_ONLY = 0.02, 0.5


@dataclass(frozen=True, eq=False)
class Answer:
    """Coefficients, and what a warm start of the next problem needs."""

    coef: np.ndarray
    state: Any = None


class Peer(ABC):
    """A solver of somebody else, on one data set."""

    package: ClassVar[str]
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
    @abstractmethod
    def supports(cls, task: Task, **options: Any) -> bool:
        """Whether it solves this task at all."""

    def prepare(self, X: Any, y: np.ndarray) -> None:
        """Take the data in their final storage; not timed."""
        self.X, self.y = X, y

    @abstractmethod
    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        """One problem, at its own tolerance; `warm` is the answer to the previous one."""


def storages(X: Any, kinds: tuple[str, str]) -> list[str]:
    """The storages worth trying: by the share of non-zeros, both where it is not clear."""
    size = X.shape[0] * X.shape[1]
    share = (X.nnz if sparse.issparse(X) else np.count_nonzero(X)) / size
    if share <= SPARSE_ONLY:
        return [kinds[1]]
    return [kinds[0]] if share >= DENSE_ONLY else list(kinds)


def stored(X: Any, kind: str) -> Any:
    """The matrix in C or Fortran order, CSR or CSC, in float64."""
    if kind in ("csr", "csc"):
        matrix = sparse.csr_matrix(X) if kind == "csr" else sparse.csc_matrix(X)
        matrix.sort_indices()
        return matrix
    array = X.toarray() if sparse.issparse(X) else X
    return np.require(array, dtype=np.float64, requirements=kind)


class Liblinear(Peer):
    """scikit-learn's LinearSVC and LinearSVR, by their dual or their primal solver. No warm start.

    The l1 penalty has a primal solver only, the losses with kinks have a dual one only.
    """

    package = "sklearn"
    loosest = 1.0
    _TASKS: ClassVar = {
        True: ["squared_hinge-l2", "hinge-l2", "squared_epsilon_insensitive-l2",
               "epsilon_insensitive-l2"],
        False: ["squared_hinge-l2", "squared_hinge-l1", "squared_epsilon_insensitive-l2"],
    }  # fmt: skip

    def __init__(self, task: Task, threads: int, *, dual: bool) -> None:
        super().__init__(task, threads)
        self._dual = dual

    @classmethod
    def supports(cls, task: Task, *, dual: bool) -> bool:
        return str(task) in cls._TASKS[dual]

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from sklearn import config_context
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC, LinearSVR

        task, n = self.task, self.X.shape[0]
        squared = task.loss.startswith("squared")
        options = {
            "C": 1.0 / ((2 if squared else 1) * n * alpha), "loss": task.loss, "tol": tol,
            "dual": self._dual, "fit_intercept": False, "max_iter": 10**8, "random_state": 0,
        }  # fmt: skip
        if task.loss.endswith("hinge"):
            model = LinearSVC(penalty=task.penalty, **options)
        else:
            model = LinearSVR(epsilon=0.1, **options)
        with config_context(assume_finite=True), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return Answer(np.ravel(model.fit(self.X, self.y).coef_))


class Cyanure(Peer):
    """cyanure's Classifier with its own choice of solver, warm in the primal and the dual."""

    package = "cyanure"
    loosest = 1e-3
    _LOSSES: ClassVar = {"squared_hinge": "sqhinge", "safe_logistic": "safe-logistic"}

    @classmethod
    def supports(cls, task: Task) -> bool:
        return task.loss in cls._LOSSES and task.penalty in ("l1", "l2")

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from cyanure.estimators import Classifier

        model = Classifier(
            loss=self._LOSSES[self.task.loss], penalty=self.task.penalty, lambda_1=alpha, tol=tol,
            fit_intercept=False, max_iter=10**6, warm_start=True, n_threads=self.threads,
            verbose=False, safe=False,
        )  # fmt: skip
        if warm is not None:
            # it works on the dual variable in place
            model.coef_, model.dual = warm.coef, np.copy(warm.state)
        model.fit(self.X, self.y)
        return Answer(np.ravel(model.coef_), model.dual)


class SkglmL1(Peer):
    """skglm with an l1 penalty, by coordinate descent or proximal Newton steps, warm."""

    package = "skglm"
    storages = ("F", "csc")

    def __init__(self, task: Task, threads: int, *, newton: bool) -> None:
        super().__init__(task, threads)
        self._newton = newton

    @classmethod
    def supports(cls, task: Task, *, newton: bool) -> bool:
        return str(task) in ("squared_hinge-l1", "safe_logistic-l1")

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from skglm.penalties import L1
        from skglm.solvers import AndersonCD, ProxNewton
        from skglm_losses import SafeLogistic, SquaredHinge

        datafit = {"squared_hinge": SquaredHinge, "safe_logistic": SafeLogistic}[self.task.loss]()
        coef, pred = np.zeros(self.X.shape[1]), np.zeros(self.X.shape[0])
        if warm is not None:
            coef, pred = warm.coef.copy(), warm.state.copy()
        options = {
            "max_iter": 10**4, "tol": tol * alpha, "p0": max(10, np.count_nonzero(coef)),
            "fit_intercept": False,
        }  # fmt: skip
        solver = (ProxNewton if self._newton else AndersonCD)(**options)
        coef, _, _ = solver.solve(self.X, self.y, datafit, L1(alpha), coef, pred)
        return Answer(coef, pred)


class SkglmHinge(Peer):
    """skglm's LinearSVC: the dual of the hinge with l2, by coordinate descent, warm."""

    package = "skglm"

    @classmethod
    def supports(cls, task: Task) -> bool:
        return str(task) == "hinge-l2"

    def prepare(self, X: Any, y: np.ndarray) -> None:
        self.y = y
        if sparse.issparse(X):
            self.X = sparse.csc_matrix(X.multiply(y[:, None]).tocsr().T)
        else:
            self.X = (X * y[:, None]).T

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from skglm.datafits import QuadraticSVC
        from skglm.penalties import IndicatorBox
        from skglm.solvers import AndersonCD

        p, n = self.X.shape
        dual, coef = np.zeros(n), np.zeros(p)
        if warm is not None:
            dual, coef = warm.state.copy(), warm.coef.copy()
        solver = AndersonCD(max_iter=10**4, tol=tol, fit_intercept=False)
        box = IndicatorBox(1.0 / (n * alpha))
        dual, _, _ = solver.solve(self.X, self.y, QuadraticSVC(), box, dual, coef)
        return Answer(coef, dual)


@dataclass(frozen=True)
class Entry:
    """A peer and its options."""

    kind: type[Peer]
    options: dict[str, Any]

    def supports(self, task: Task) -> bool:
        return self.kind.installed() and self.kind.supports(task, **self.options)

    def make(self, task: Task, threads: int) -> Peer:
        return self.kind(task, threads, **self.options)


PEERS: dict[str, Entry] = {
    "LIBLINEAR dual": Entry(Liblinear, {"dual": True}),
    "LIBLINEAR primal": Entry(Liblinear, {"dual": False}),
    "cyanure": Entry(Cyanure, {}),
    "skglm Newton": Entry(SkglmL1, {"newton": True}),
    "skglm CD": Entry(SkglmL1, {"newton": False}),
    "skglm dual": Entry(SkglmHinge, {}),
}
