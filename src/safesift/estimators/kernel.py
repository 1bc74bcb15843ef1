"""Kernel machines, certified: what the classifier and the regressor share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from safesift.arithmetic.threads import run
from safesift.design.blocks import slices
from safesift.design.kernels import KernelChoice, PairwiseKernel
from safesift.estimators.classifier import Classification
from safesift.estimators.linear import LinearModel, Samples
from safesift.estimators.regressor import Regression
from safesift.losses import Loss
from safesift.parameters import check_memory
from safesift.penalties import L2, Penalty
from safesift.problem.inputs import on_kernel
from safesift.problem.problem import Problem
from safesift.regions.kernel_curvature import kernel_of
from safesift.solvers import Fit, Screening, Settings, solve_path
from safesift.solvers.kernel_working_sets import KERNEL_REGIONS

Array = NDArray[np.float64]


# entries of a block of kernels between new samples and the support
_BLOCK = 2**20


class KernelMachine(LinearModel):
    """Functions of a kernel space in place of linear ones; put before a linear estimator's base.

    A subclass has the parameters kernel, gamma, degree, coef0 and memory in place of penalty.
    """

    if TYPE_CHECKING:
        # parameters of the subclasses, and what a fit learns
        kernel: str | Callable
        gamma: float | str | None
        degree: int
        coef0: float
        memory: int | str

        dual_coef_: Array
        support_: NDArray[np.intp]
        support_vectors_: Any
        gamma_: float | None
        kernel_shift_: float | None

    def _blocks(self, X: Any, y: Any, sample_weight: Any, target: Any) -> None:
        """A kernel needs all pairs of rows: they are never read a block at a time."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    # --- fitting ----------------------------------------------------------------------------

    def _choice(self) -> KernelChoice:
        return KernelChoice(self.kernel, self.gamma, self.degree, self.coef0)

    def _checked_penalty(self) -> Penalty:
        # before the samples are read
        self._choice()
        check_memory(self.memory)
        return L2()

    # the only one for kernels
    solver = "auto"

    def _checked_screening(self) -> Screening:
        return Screening.of(self.screening, KERNEL_REGIONS)

    def _problems(
        self, samples: Samples, loss: Loss, penalty: Penalty, alpha: float
    ) -> list[Problem]:
        linear = super()._problems(samples, loss, penalty, alpha)
        gamma = self._choice().gamma_of(samples.X, samples.sample_weight)
        return on_kernel(linear, self._choice().of(samples.X, gamma), check_memory(self.memory))

    def _solve(
        self,
        levels: Sequence[Sequence[Problem]],
        settings: Settings,
        starts: Sequence[Array | None] | None = None,
    ) -> Iterator[Sequence[Fit]]:
        return solve_path(levels, settings, starts)

    def _starts(self, problems: Sequence[Problem]) -> list[Array] | None:
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        design, n_before = problems[0].design, len(self.kept_)
        if n_before != design.n_samples or len(self.dual_coef_) != len(problems):
            raise ValueError(
                f"warm_start=True, but the last model had {n_before} samples and "
                f"{len(self.dual_coef_)} functions, and this one has {design.n_samples} and "
                f"{len(problems)}: set warm_start=False."
            )
        betas = np.zeros((len(problems), n_before))
        betas[:, self.support_] = self.dual_coef_
        intercepts = np.atleast_1d(self.intercept_)
        return [
            one.join(beta, float(c))
            for one, beta, c in zip(problems, betas, intercepts, strict=True)
        ]

    @property
    def _points(self) -> Array:
        """The last solution, a row for each problem, with a coefficient for each sample."""
        betas = np.zeros((len(self.dual_coef_), len(self.kept_)))
        betas[:, self.support_] = self.dual_coef_
        intercepts = np.atleast_1d(self.intercept_)[:, None]
        return np.hstack([betas, intercepts]) if self.fit_intercept else betas

    # --- fitted attributes ------------------------------------------------------------------

    def _attributes(self, samples: Samples, fits: Sequence[Fit]) -> dict[str, Any]:
        attributes = super()._attributes(samples, fits)
        betas = np.atleast_2d(attributes.pop("coef_"))
        support = np.flatnonzero(betas.any(axis=0))
        given = self.kernel == "precomputed"
        return attributes | {
            "dual_coef_": betas[:, support],
            "support_": support,
            "support_vectors_": np.empty((0, 0)) if given else samples.X[support],
            "gamma_": self._choice().gamma_of(samples.X, samples.sample_weight),
            "kernel_shift_": kernel_of(fits[0].problem.design).gram.kernel.shift,
        }

    # --- using ------------------------------------------------------------------------------

    def _predictions(self, X: Any) -> Array:
        """One column per function, block by block."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        out = np.empty((X.shape[0], len(self.dual_coef_)))

        def fill(rows: slice) -> None:
            out[rows] = self._kernels(X[rows]) @ self.dual_coef_.T

        run(fill, slices(X.shape[0], max(_BLOCK // max(len(self.support_), 1), 16)))
        return out + self.intercept_

    def _kernels(self, X: Any) -> Array:
        """Kernels between some samples and the support."""
        if not len(self.support_):
            return np.zeros((X.shape[0], 0))
        given = self.kernel == "precomputed"
        kernel = None if given else self._choice().of(self.support_vectors_, self.gamma_)
        if isinstance(kernel, PairwiseKernel):
            return kernel.between(X, self.support_vectors_)
        return X[:, self.support_].astype(np.float64)


# --- kernel classification, certified, one class against the rest -------------------------


class SafeKernelClassifier(KernelMachine, Classification):
    """Kernel classification with a certified duality gap: support vector machines and relatives.

    Minimises (1/W) Σ s_i f(y_i(h(x_i) + c)) + ½·alpha·‖h‖², W = Σ s_i, over the functions h of the
    kernel's space, with y_i = ±1; more than two classes are separated one against the rest, with
    the same kernel rows. Solved by working sets: kernel rows of samples that carry the model only.
    The gap is measured on all samples.

    Parameters
    ----------
    loss : str or Loss, default="squared_hinge"
        "squared_hinge" (½[1 − m]₊²), "hinge" ([1 − m]₊), "smoothed_hinge", "logistic",
        "safe_logistic", or an object of `safesift.losses` with its parameters.
    kernel : str or callable, default="rbf"
        "linear", "rbf", "poly" or "polynomial", "laplacian", "cosine" (scikit-learn's pairwise
        kernels), "precomputed" (X is then the kernel matrix of the samples, for predictions that
        between new samples and those of the fit), or a function of two matrices that returns one
        entry for each pair of their rows, called by several threads at a time. It must be positive
        semidefinite.
    gamma : float, "scale", "auto" or None, default="scale"
        Of "rbf", "poly" and "laplacian". "scale": 1/(n_features·variance of all entries of X, rows
        weighted); "auto" and None: 1/n_features.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=1.0
        Of "poly", 0 or more.
    alpha : float, default=1e-3
        Weight of the squared norm, next to the mean loss. SVC's C is 1/(W·alpha) for the hinge.
    fit_intercept : bool, default=True
        Add an intercept, which is not penalised.
    tol : float, default=1e-6
        Relative duality gap to reach: relative to the objective of the best constant model.
    max_iter : int, default=1000
        The largest number of rounds (working sets).
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the samples of a class, in the problems of all classes.
        "balanced" gives all classes the same total.
    screening : "auto", "curvature", "gap_ball" or None, default="auto"
        Which region proves samples to be on one piece of their loss. "auto": the ball of the gap
        as the solver goes, and at its end the curvature region for what is left. The solution is
        the same.
    memory : str or int, default="1 GB"
        For kernel rows that are kept, a size or a number of bytes; a square block of at most as
        much comes with it. There is never an n × n matrix.
    warm_start : bool, default=False
        Start from the last solution. For a path of alphas `safesift.safe_kernel_path` does more:
        it keeps the kernel rows too.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
        For the sample that the first working set is.
    verbose : int, default=0
        1 prints a line per round, 2 one per step as well.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Those with a sample of positive weight.
    support_ : array of shape (n_support,)
        Indices of the samples that carry the model.
    dual_coef_ : array of shape (1 or n_classes, n_support)
        The function is Σ dual_coef_j·K(x_j, ·) + intercept.
    support_vectors_ : array or CSR matrix of shape (n_support, n_features)
        Empty for a precomputed kernel.
    intercept_ : array of shape (1,) or (n_classes,)
    gamma_ : float or None
        What gamma stands for.
    kernel_shift_ : float or None
        δ: all that is certified holds for the kernel matrix plus δ times the identity, which is
        proved to be positive semidefinite. 0 for named kernels; for a precomputed one as little as
        its rounding takes. None where that is taken on your word: for a function, and for a
        precomputed matrix of more than 3 000 samples.
    dual_gap_ : float, or array of shape (n_classes,)
        Certified: the objective is at most that far above its minimum, measured on all samples.
    n_iter_ : int
        Rounds, the most of any class.
    kept_ : array of shape (n_samples,)
        False where the sample is proved to have no influence: without it the model is the same.
    kept_per_class_ : array of shape (n_samples, 1) or (n_samples, n_classes)
        The same for each function.
    undecided_ : array of shape (n_samples,)
        True where it is not proved, for some class, on which piece of its loss the sample lies.
    history_ : list of dict, or a list of such lists, one per class
        How things stood after each round: `passes` (kernel rows computed, over n_samples),
        `seconds`, `gap`, `relative_gap`, `n_kept`, `n_undecided`, and `n_features`, how many dual
        coefficients are not proved to be zero.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only where X has feature names that are strings.

    Examples
    --------
    >>> import safesift as ss
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> model = ss.SafeKernelClassifier("hinge", gamma=2.0, alpha=1e-3).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.dual_gap_ < 1e-6)
    (True, True)
    >>> bool(model.kept_.sum() < 150)
    True
    """

    def __init__(
        self,
        loss: str | Loss = "squared_hinge",
        *,
        kernel: str | Callable = "rbf",
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        alpha: float = 1e-3,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Mapping | str | None = None,
        screening: str | None = "auto",
        memory: int | str = "1 GB",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.screening = screening
        self.memory = memory
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


# --- kernel regression, certified ---------------------------------------------------------


class SafeKernelRegressor(KernelMachine, Regression):
    """Kernel regression, robust or insensitive, with a certified duality gap.

    Minimises (1/W) Σ s_i f(h(x_i) + c − y_i) + ½·alpha·‖h‖², W = Σ s_i, over the functions h of the
    kernel's space. Solved by working sets: kernel rows of samples that carry the model only. The
    gap is measured on all samples.

    Parameters
    ----------
    loss : str or Loss, default="squared_epsilon_insensitive"
        "squared_epsilon_insensitive" (½[|r| − ε]₊²), "epsilon_insensitive" ([|r| − ε]₊),
        "smoothed_epsilon_insensitive", "squared" (½r²), "huber", or an object of
        `safesift.losses` with its parameters.
    epsilon : float or array of shape (n_samples,), default=0.1
        Half-width of the tube without loss, of a loss given by its name that has one.
    kernel : str or callable, default="rbf"
        "linear", "rbf", "poly" or "polynomial", "laplacian", "cosine" (scikit-learn's pairwise
        kernels), "precomputed" (X is then the kernel matrix of the samples, for predictions that
        between new samples and those of the fit), or a function of two matrices that returns one
        entry for each pair of their rows, called by several threads at a time. It must be positive
        semidefinite.
    gamma : float, "scale", "auto" or None, default="scale"
        Of "rbf", "poly" and "laplacian". "scale": 1/(n_features·variance of all entries of X, rows
        weighted); "auto" and None: 1/n_features.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=1.0
        Of "poly", 0 or more.
    alpha : float, default=1e-3
        Weight of the squared norm, next to the mean loss. SVR's C is 1/(W·alpha) for the
        ε-insensitive loss, KernelRidge's alpha is W·alpha for the squared one.
    fit_intercept : bool, default=True
        Add an intercept, which is not penalised.
    tol : float, default=1e-6
        Relative duality gap to reach: relative to the objective of the best constant model.
    max_iter : int, default=1000
        The largest number of rounds (working sets).
    screening : "auto", "curvature", "gap_ball" or None, default="auto"
        Which region proves samples to be on one piece of their loss. "auto": the ball of the gap
        as the solver goes, and at its end the curvature region for what is left. The solution is
        the same.
    memory : str or int, default="1 GB"
        For kernel rows that are kept, a size or a number of bytes; a square block of at most as
        much comes with it. There is never an n × n matrix.
    warm_start : bool, default=False
        Start from the last solution. For a path of alphas `safesift.safe_kernel_path` does more:
        it keeps the kernel rows too.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
        For the sample that the first working set is.
    verbose : int, default=0
        1 prints a line per round, 2 one per step as well.

    Attributes
    ----------
    support_ : array of shape (n_support,)
        Indices of the samples that carry the model.
    dual_coef_ : array of shape (1, n_support)
        The function is Σ dual_coef_j·K(x_j, ·) + intercept.
    support_vectors_ : array or CSR matrix of shape (n_support, n_features)
        Empty for a precomputed kernel.
    intercept_ : float
    gamma_ : float or None
        What gamma stands for.
    kernel_shift_ : float or None
        δ: all that is certified holds for the kernel matrix plus δ times the identity, which is
        proved to be positive semidefinite. 0 for named kernels; for a precomputed one as little as
        its rounding takes. None where that is taken on your word: for a function, and for a
        precomputed matrix of more than 3 000 samples.
    dual_gap_ : float
        Certified: the objective is at most that far above its minimum, measured on all samples.
    n_iter_ : int
        Rounds.
    kept_ : array of shape (n_samples,)
        False where the sample is proved to have no influence: without it the model is the same.
    undecided_ : array of shape (n_samples,)
        True where it is not proved on which piece of its loss the sample lies.
    history_ : list of dict
        How things stood after each round: `passes` (kernel rows computed, over n_samples),
        `seconds`, `gap`, `relative_gap`, `n_kept`, `n_undecided`, and `n_features`, how many dual
        coefficients are not proved to be zero.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only where X has feature names that are strings.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> model = ss.SafeKernelRegressor(epsilon=0.2, gamma=1.0, alpha=1e-4).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), bool(model.kept_.sum() < 50)
    (True, True)
    """

    def __init__(
        self,
        loss: str | Loss = "squared_epsilon_insensitive",
        *,
        epsilon: ArrayLike = 0.1,
        kernel: str | Callable = "rbf",
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        alpha: float = 1e-3,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        screening: str | None = "auto",
        memory: int | str = "1 GB",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.screening = screening
        self.memory = memory
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _predictions(self, X: Any) -> Array:
        return super()._predictions(X)[:, 0]
