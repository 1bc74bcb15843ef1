"""The peers that are packages of their own: cyanure, skglm, ReHLine, adelie."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from peer import FREE, NONE, ONES, Answer, Model, Peer, Task
from scipy import sparse
from tasks import with_ones


class Cyanure(Peer):
    """cyanure's Classifier with its own choice of solver, warm in the primal and the dual."""

    package = "cyanure"
    kinds = ("squared_hinge-l2", "squared_hinge-l1", "safe_logistic-l1", "logistic-l2",
             "logistic-l1")  # fmt: skip
    intercepts = (NONE, FREE)
    loosest = 1e-3
    _LOSSES: ClassVar = {
        "squared_hinge": "sqhinge", "safe_logistic": "safe-logistic", "logistic": "logistic",
    }  # fmt: skip

    @classmethod
    def separates_several(cls, task: Task) -> bool:
        return True

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from cyanure.estimators import Classifier

        model = Classifier(
            loss=self._LOSSES[self.task.loss], penalty=self.task.penalty, lambda_1=alpha, tol=tol,
            fit_intercept=self.fit_intercept, max_iter=10**6, warm_start=True,
            n_threads=self.threads, multi_class="ovr", verbose=False, safe=False,
        )  # fmt: skip
        if warm is not None:
            coef, intercept, dual = warm.state
            # it works on the dual variable in place
            model.coef_, model.intercept_, model.dual = coef, intercept, np.copy(dual)
        model.fit(self.X, self.y)
        intercept = model.intercept_ if self.fit_intercept else 0.0
        state = (model.coef_, intercept, model.dual)
        return Answer(Model.of(np.transpose(model.coef_), intercept), state)


class _SkglmL1(Peer):
    """skglm with an l1 penalty, warm."""

    package = "skglm"
    kinds = ("squared_hinge-l1", "safe_logistic-l1", "logistic-l1")
    intercepts = (NONE, FREE)
    storages = ("F", "csc")
    solver: ClassVar[str]

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from skglm import solvers
        from skglm.penalties import L1
        from skglm_losses import DATAFITS

        datafit = DATAFITS[self.task.loss]()
        n, p = self.X.shape
        point, pred = np.zeros(p + self.fit_intercept), np.zeros(n)
        if warm is not None:
            point, pred = (known.copy() for known in warm.state)
        solver = getattr(solvers, self.solver)(
            max_iter=10**4, tol=tol * alpha, p0=max(10, np.count_nonzero(point[:p])),
            fit_intercept=self.fit_intercept,
        )  # fmt: skip
        point, _, _ = solver.solve(self.X, self.y, datafit, L1(alpha), point, pred)
        model = Model.with_ones(point) if self.fit_intercept else Model.of(point)
        return Answer(model, (point, pred))


class SkglmNewton(_SkglmL1):
    solver = "ProxNewton"


class SkglmDescent(_SkglmL1):
    solver = "AndersonCD"


class SkglmHinge(Peer):
    """skglm's LinearSVC: the dual of the hinge with l2, by coordinate descent, warm."""

    package = "skglm"
    kinds = ("hinge-l2",)

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
            dual, coef = (known.copy() for known in warm.state)
        solver = AndersonCD(max_iter=10**4, tol=tol, fit_intercept=False)
        box = IndicatorBox(1.0 / (n * alpha))
        dual, _, _ = solver.solve(self.X, self.y, QuadraticSVC(), box, dual, coef)
        return Answer(Model.of(coef), (dual, coef))


class SkglmLbfgs(Peer):
    """skglm's logistic regression with l2, which it leaves to L-BFGS, warm. It has no intercept."""

    package = "skglm"
    kinds = ("logistic-l2",)
    storages = ("F", "csc")

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from skglm.datafits import Logistic
        from skglm.penalties import L2
        from skglm.solvers import LBFGS

        start = None if warm is None else warm.state
        solver = LBFGS(max_iter=10**5, tol=tol)
        coef, _, _ = solver.solve(self.X, self.y, Logistic(), L2(alpha), start, None)
        return Answer(Model.of(coef), coef)


class Rehline(Peer):
    """ReHLine: the dual of piecewise linear-quadratic losses by coordinate descent, warm.

    It minimises Σ ReLU(uᵢt + vᵢ) + Σ ReHU_τ(sᵢt + rᵢ) + ½‖x‖²; a ReHU without an upper end is half
    a squared ReLU. Its estimators append a column of ones for an intercept, as is done here.
    """

    package = "rehline"
    kinds = ("hinge-l2", "squared_hinge-l2", "epsilon_insensitive-l2",
             "squared_epsilon_insensitive-l2")  # fmt: skip
    intercepts = (NONE, ONES)

    def prepare(self, X: Any, y: np.ndarray) -> None:
        super().prepare(with_ones(X) if self.fit_intercept else X, y)

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        from rehline import ReHLine_solver

        C = 1.0 / (self.X.shape[0] * alpha)
        slopes, offsets = self._pieces()
        if self.task.loss.startswith("squared"):
            # ½C[·]₊² = ½[√C ·]₊², so that its multipliers grow with √C
            root, none = np.sqrt(C), np.empty((0, len(self.y)))
            losses = {"U": none, "V": none, "S": root * slopes, "T": root * offsets,
                      "Tau": np.full_like(slopes, np.inf)}  # fmt: skip
        else:
            root = 1.0
            losses = {"U": C * slopes, "V": C * offsets}
        duals = {} if warm is None else {"Lambda": warm.state[0], "Gamma": root * warm.state[1]}
        found = ReHLine_solver(self.X, **losses, **duals, tol=tol, max_iter=10**7, verbose=0)
        model = Model.with_ones(found.beta) if self.fit_intercept else Model.of(found.beta)
        return Answer(model, (found.Lambda, found.Gamma / root))

    def _pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """The losses as sums of ReLU(slope·t + offset), one row per term."""
        if self.task.classifies:
            return -self.y[None, :], np.ones((1, len(self.y)))
        signs = np.array([[1.0], [-1.0]])
        return np.broadcast_to(signs, (2, len(self.y))).copy(), -signs * self.y - 0.1


class Adelie(Peer):
    """adelie's grpnet: proximal Newton steps, coordinate descent and strong rules inside, warm."""

    package = "adelie"
    kinds = ("logistic-l2", "logistic-l1")
    intercepts = (NONE, FREE)
    storages = ("F", "csc")
    loosest = 1e-4
    # what it reads of the state it starts from, in types that it takes with NumPy 2 as well
    _ARRAYS: ClassVar = {
        "screen_set": int, "screen_beta": float, "screen_is_active": bool, "active_set": int,
        "eta": float, "resid": float, "grad": float,
    }  # fmt: skip
    _NUMBERS: ClassVar = ("lmda", "lmda_max", "active_set_size", "beta0", "loss_null", "loss_full")

    def prepare(self, X: Any, y: np.ndarray) -> None:
        import adelie

        matrix = adelie.matrix.sparse if sparse.issparse(X) else adelie.matrix.dense
        self.X = matrix(X, method="naive", n_threads=self.threads)
        self._glm = adelie.glm.binomial((y > 0).astype(np.float64))

    def solve(self, alpha: float, tol: float, warm: Answer | None) -> Answer:
        import adelie

        state = adelie.grpnet(
            self.X, self._glm, alpha=1.0 if self.task.penalty == "l1" else 0.0,
            lmda_path=np.array([alpha]), intercept=self.fit_intercept, tol=tol, irls_tol=tol,
            early_exit=False, progress_bar=False, n_threads=self.threads,
            warm_start=None if warm is None else warm.state,
        )  # fmt: skip
        known = {name: getattr(state, name) for name in self._NUMBERS}
        known |= {name: np.array(getattr(state, name), kind) for name, kind in self._ARRAYS.items()}
        model = Model.of(state.betas[-1].toarray(), state.intercepts[-1])
        return Answer(model, SimpleNamespace(**known))
