"""Kernel regression, certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safesift.estimators.kernel import KernelMachine
from safesift.estimators.regressor import Regression
from safesift.losses import Loss

Array = NDArray[np.float64]


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
        entry for each pair of their rows. It must be positive semidefinite.
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
    cache_size : float, default=1000
        Megabytes for kernel rows that are kept; a square block of at most as much comes with it.
        There is never an n × n matrix.
    warm_start : bool, default=False
        Start from the last solution. For a path of alphas `safesift.safe_kernel_path` does more:
        it keeps the kernel rows too.
    n_jobs : int, optional
        The largest number of threads, all cores by default.
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
        cache_size: float = 1000,
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
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _predictions(self, X: Any) -> Array:
        return super()._predictions(X)[:, 0]
