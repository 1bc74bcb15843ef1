"""Kernel classification, certified, one class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from safesift.estimators.classifier import Classification
from safesift.estimators.kernel import KernelMachine
from safesift.losses import Loss


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
        entry for each pair of their rows. It must be positive semidefinite.
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
        cache_size: float = 1000,
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
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
