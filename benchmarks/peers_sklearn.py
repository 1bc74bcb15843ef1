"""The peers of scikit-learn: LIBLINEAR, LIBSVM, and LogisticRegression.

LIBLINEAR's C is 1/(2 n alpha) for squared losses (it has no ½) and 1/(n alpha) for the others.
It penalises its intercept, the coefficient of a column of `intercept_scaling`, here of ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from peer import FREE, NONE, ONES, Answer, CrossValidating, Model, Peer, Task, Unsuited

_FOLDS = 5
# the most columns of which newton-cholesky is given the Hessian: 2 GB
_MOST_COLUMNS = 16_000


@contextmanager
def _without_checks() -> Iterator[None]:
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning

    with config_context(assume_finite=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class Liblinear(CrossValidating):
    """LinearSVC, LinearSVR and LogisticRegression(solver="liblinear"). No warm start."""

    package = "sklearn"
    intercepts = (NONE, ONES)
    loosest = 1.0
    dual: ClassVar[bool]

    @classmethod
    def separates_several(cls, task: Task) -> bool:
        return task.loss != "logistic"

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        model = self._estimator(alpha, tol, self.X.shape[0])
        with _without_checks():
            return _answer(model.fit(self.X, self.y))

    def cross_validate(
        self, alphas: Sequence[float], tols: Sequence[float]
    ) -> tuple[float, Answer]:
        """By GridSearchCV, whose folds are smaller than the data on which the last model is fit."""
        from joblib import parallel_config
        from sklearn.model_selection import GridSearchCV

        n = self.X.shape[0]
        n_train = n - n // _FOLDS
        settings = zip(alphas, tols, strict=True)
        known = {self._C(alpha, n_train): (alpha, tol) for alpha, tol in settings}
        grid = [{"C": [C], "tol": [tol]} for C, (_, tol) in known.items()]
        search = GridSearchCV(
            self._estimator(alphas[0], tols[0], n), grid, cv=_FOLDS, refit=False,
            n_jobs=self.threads,
        )  # fmt: skip
        # LIBLINEAR lets other threads run meanwhile: no copies of the data for processes
        with _without_checks(), parallel_config("threading"):
            search.fit(self.X, self.y)
        alpha, tol = known[search.best_params_["C"]]
        return alpha, self.solve(alpha, tol, None)

    def _estimator(self, alpha: float, tol: float, n: int) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC, LinearSVR

        task = self.task
        options = {
            "C": self._C(alpha, n), "tol": tol, "dual": self.dual, "max_iter": 10**8,
            "fit_intercept": self.fit_intercept, "intercept_scaling": 1.0, "random_state": 0,
        }  # fmt: skip
        if task.loss == "logistic":
            l1_ratio = 1.0 if task.penalty == "l1" else 0.0
            return LogisticRegression(solver="liblinear", l1_ratio=l1_ratio, **options)
        if task.loss.endswith("hinge"):
            return LinearSVC(loss=task.loss, penalty=task.penalty, **options)
        return LinearSVR(loss=task.loss, epsilon=0.1, **options)

    def _C(self, alpha: float, n: int) -> float:
        return 1.0 / ((2 if self.task.loss.startswith("squared") else 1) * n * alpha)


class LiblinearDual(Liblinear):
    dual = True
    kinds = ("squared_hinge-l2", "hinge-l2", "logistic-l2", "squared_epsilon_insensitive-l2",
             "epsilon_insensitive-l2")  # fmt: skip


class LiblinearPrimal(Liblinear):
    dual = False
    kinds = ("squared_hinge-l2", "squared_hinge-l1", "logistic-l2", "logistic-l1",
             "squared_epsilon_insensitive-l2")  # fmt: skip


class Libsvm(Peer):
    """SVC with a linear kernel: the one peer with a hinge and an intercept without penalty."""

    package = "sklearn"
    kinds = ("hinge-l2",)
    intercepts = (FREE,)
    # a trial of both would take longer than the race
    storages = ("csr", "csr")
    loosest = 1.0

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from sklearn.svm import SVC

        model = SVC(kernel="linear", C=1.0 / (self.X.shape[0] * alpha), tol=tol, cache_size=2000)
        with _without_checks():
            return _answer(model.fit(self.X, self.y))


class _Logistic(Peer):
    """LogisticRegression, warm."""

    package = "sklearn"
    kinds = ("logistic-l2",)
    intercepts = (NONE, FREE)
    solver: ClassVar[str]

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            solver=self.solver, C=1.0 / (self.X.shape[0] * alpha), tol=tol, max_iter=10**5,
            fit_intercept=self.fit_intercept, warm_start=True,
        )  # fmt: skip
        if warm is not None:
            model.coef_, model.intercept_ = warm.model.coef, warm.model.intercept
        with _without_checks():
            return _answer(model.fit(self.X, self.y))


class Lbfgs(_Logistic):
    solver = "lbfgs"
    loosest = 0.1


class NewtonCholesky(_Logistic):
    solver = "newton-cholesky"
    loosest = 1.0

    def prepare(self, X: Any, y: np.ndarray) -> None:
        if X.shape[1] > _MOST_COLUMNS:
            size = 8 * X.shape[1] ** 2 / 1e9
            raise Unsuited(f"the Hessian of {X.shape[1]} columns has {size:.0f} GB")
        super().prepare(X, y)


def _answer(model: Any) -> Answer:
    coef = model.coef_
    return Answer(Model.of(coef.toarray() if hasattr(coef, "toarray") else coef, model.intercept_))
