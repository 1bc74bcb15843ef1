"""Paths of kernel machines, and kernel matrices as rows for everything that is linear."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.threads import computes
from safesift.design.arrays import plain_array
from safesift.design.factory import check_finite
from safesift.design.kernels import KernelChoice
from safesift.design.rows import rows_of
from safesift.grids import Grid, check_levels
from safesift.losses import Loss
from safesift.parameters import check_memory
from safesift.problem.inputs import make_problems, on_kernel
from safesift.problem.scales import column_names
from safesift.problem.training import Training
from safesift.solvers import Screening, Settings
from safesift.solvers.kernel_working_sets import KERNEL_REGIONS
from safesift.workflows.path import CertifiedPath, Facts, path_facts

Array = NDArray[np.float64]

_KERNEL_FACTS: Facts = {
    "dual_coefs": lambda fit: fit.coef,
    "values": lambda fit: fit.at.value,
    "kept": lambda fit: fit.kept,
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KernelPathResult(CertifiedPath):
    """One certified kernel machine per alpha, in the order in which they were asked for.

    Attributes
    ----------
    parameter : str
        What `alphas` are: "alpha".
    alphas : array of shape (n_alphas,)
        As given.
    dual_coefs : array of shape (n_alphas, n_samples)
        The function is Σ dual_coef_j·K(x_j, ·) + intercept.
    intercepts : array of shape (n_alphas,)
    values : array of shape (n_alphas,)
        The objective.
    dual_gaps, relative_gaps : arrays of shape (n_alphas,)
        Certified on all samples; the latter relative to P of the best constant model.
    kept : mask of shape (n_alphas, n_samples)
        False where the sample is proved to have no influence.
    n_kept, n_undecided : arrays of shape (n_alphas,)
    n_iter : array of shape (n_alphas,)
        Rounds.
    passes, seconds : arrays of shape (n_alphas,)
        What each alpha cost; a pass is as many kernel rows as there are samples.
    gamma : float or None
        What gamma stands for.
    kernel_shift : float or None
        δ: all that is certified holds for the kernel matrix plus δ times the identity; None where
        that it is positive semidefinite is taken on your word. See `SafeKernelClassifier`.
    classes : array or None
        The two labels that stand for -1 and 1.
    training : Training
        Loss, kernel and intercept of the machines.
    """

    dual_coefs: Array
    values: Array
    kept: NDArray[np.bool_]
    gamma: float | None
    kernel_shift: float | None


@computes
def safe_kernel_path(
    X: Any,
    y: Any,
    *,
    alphas: Any,
    loss: str | Loss = "squared_hinge",
    kernel: str | Callable = "rbf",
    gamma: float | str | None = "scale",
    degree: int = 3,
    coef0: float = 1.0,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    screening: str | None = "auto",
    memory: int | str = "1 GB",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> KernelPathResult:
    """Solve a kernel problem for many alphas, each certified on all samples.

    (1/W) Σ s_i f(h(x_i) + c; y_i) + ½·alpha·‖h‖² with W = Σ s_i. Each model starts from the one
    before, and kernel rows that were computed are kept as far as `memory` allows.

    Parameters
    ----------
    X : array, CSR matrix or frame of shape (n_samples, n_features)
        The kernel matrix for kernel="precomputed".
    y : array of shape (n_samples,), or (n_samples, 2) for intervals
        Any two labels for a classification loss, numbers for a regression loss, lower and upper
        ends for an interval loss.
    alphas : array
        In any order, which is that of the result; solved from the largest one on.
    loss : str or Loss, default="squared_hinge"
        A name of `safesift.losses.LOSSES` or an object with its parameters.
    kernel, gamma, degree, coef0
        As for `SafeKernelClassifier`.
    fit_intercept : bool, default=True
        Add an intercept that is not penalised.
    sample_weight : array of shape (n_samples,), optional
        Weight 0 is exactly removal, weight 2 exactly repetition.
    tol : float, default=1e-6
        The duality gap to reach, relative to the objective of the best constant model.
    max_iter : int, default=1000
        The largest number of rounds per alpha.
    screening : "auto", "curvature", "gap_ball" or None, default="auto"
        Which region proves samples to be on one piece of their loss.
    memory : str or int, default="1 GB"
        For kernel rows that are kept: a size, or a number of bytes.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
        For the sample that the first working set is.
    verbose : int, default=0
        Print how every model came about.

    Returns
    -------
    KernelPathResult

    Examples
    --------
    >>> import safesift as ss
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> path = ss.safe_kernel_path(X, y, alphas=[1e-2, 1e-3], loss="hinge", fit_intercept=True)
    >>> path.dual_coefs.shape, bool((path.relative_gaps <= 1e-6).all())
    ((2, 300), True)
    """
    choice = KernelChoice(kernel, gamma, degree, coef0)
    settings = Settings.of(
        tol=tol,
        max_iter=max_iter,
        screening=Screening.of(screening, KERNEL_REGIONS),
        random_state=random_state,
    )
    budget = check_memory(memory)
    inputs = make_problems(
        X, y, loss=loss, penalty="l2", alpha=1.0, fit_intercept=fit_intercept,
        sample_weight=sample_weight,
    )  # fmt: skip
    linear = inputs.problem
    levels = check_levels(alphas)
    check_finite(linear.design, columns=column_names(X))
    rows = rows_of(linear.design).data
    gamma = choice.gamma_of(rows, linear.weights)
    of_rows = choice.of(rows, gamma)
    (problem,) = on_kernel([linear], of_rows, budget)
    grid, names = Grid.given(levels, problem), column_names(X)
    found = path_facts("safe_kernel_path", problem, grid, settings, _KERNEL_FACTS, verbose, names)
    name = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "a")
    described = f"{name} kernel" + ("" if gamma is None else f" (gamma={gamma:.3g})")
    return KernelPathResult(
        training=Training(loss, described, math.nan, None, bool(fit_intercept)),
        gamma=gamma,
        kernel_shift=of_rows.shift,
        classes=inputs.classes,
        **found,
    )


@computes
def kernel_rows(K: Any, *, negligible: float = 1e-12, n_jobs: int | None = None) -> Array:
    """Rows whose products are the entries of a kernel matrix: K = A Aᵀ.

    With them everything linear applies to a kernel, as `screen(kernel_rows(K), y,
    screening="ellipsoid")`: the ellipsoid method of the paper on the coefficients of a kernel
    machine, in the metric of the kernel's space. For small n, to compare: n × rank numbers.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
        Symmetric and positive semidefinite.
    negligible : float, default=1e-12
        Eigenvalues below `negligible` times the largest are left out.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    array of shape (n_samples, rank)

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> K = np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    >>> A = ss.kernel_rows(K)
    >>> bool(np.allclose(A @ A.T, K))
    True
    """
    K = plain_array("K", K).astype(np.float64)
    if K.ndim != 2:
        raise ValueError(f"K must have 2 dimensions, got {K.ndim}: pass a kernel matrix.")
    KernelChoice("precomputed").of(K, None)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (K + K.T))
    used = eigenvalues > negligible * eigenvalues[-1]
    return vectors[:, used] * np.sqrt(eigenvalues[used])
