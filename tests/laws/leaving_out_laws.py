"""What is true of every model without a sample: it is the one that is trained without it.

The reference knows nothing of whitening, levels or pieces that change: Newton's method with a line
search on the samples that are left, divided by their own weight, in extended precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import safesift as ss
from safesift.problem.inputs import make_problems

Long = np.longdouble


@dataclass(frozen=True)
class Case:
    """Samples and a model."""

    X: np.ndarray
    y: np.ndarray
    loss: Any
    alpha: float
    penalty: Any = "l2"
    fit_intercept: bool = True
    sample_weight: np.ndarray | None = None
    groups: np.ndarray | None = None

    def leave_one_out(self, X: Any = None, **more: Any) -> ss.LeaveOneOut:
        return ss.leave_one_out(self.X if X is None else X, self.y, **self.options, **more)

    @property
    def options(self) -> dict[str, Any]:
        names = "loss", "alpha", "penalty", "fit_intercept", "sample_weight", "groups"
        return {name: getattr(self, name) for name in names}

    @property
    def weights(self) -> np.ndarray:
        return np.ones(len(self.X)) if self.sample_weight is None else self.sample_weight

    def left_out_with(self, i: int) -> np.ndarray:
        """The samples that are left out together with one."""
        if self.groups is None:
            return np.arange(len(self.X)) == i
        return self.groups == self.groups[i]


def prediction_without(case: Case, i: int) -> float:
    """Of sample i, by a model of the samples that are not left out with it; for l2."""
    return solution_without(case, i)[0]


def solution_without(case: Case, i: int) -> tuple[float, bool]:
    """The same, and whether there is no other: an intercept is free where no sample curves."""
    kept = ~case.left_out_with(i) & (case.weights > 0)
    ones = np.ones((len(case.X), 1))
    A = np.hstack([case.X, ones]) if case.fit_intercept else case.X
    problem = make_problems(
        case.X, case.y, loss=case.loss, penalty="l2", alpha=case.alpha,
        fit_intercept=case.fit_intercept,
    ).problem  # fmt: skip
    y = problem.y[kept]
    loss = problem.loss.take(kept)
    point = newton(A[kept], y, loss, case)(case.weights[kept])
    pred = (A[kept].astype(Long) @ point).astype(float)
    # on both sides: at the end of a piece an intercept may be free to go to the other
    curved = all(loss.curvature(pred + move, y).any() for move in (-1e-6, 1e-6))
    return float(A[i].astype(Long) @ point), curved or not case.fit_intercept


def newton(A: np.ndarray, y: np.ndarray, loss: Any, case: Case) -> Any:
    """Minimise Σ s f(aᵀx)/Σs + ½·alpha·‖x‖² from 0, as far as extended precision goes."""
    d = A.shape[1]
    ridge = np.full(d, case.alpha)
    if case.fit_intercept:
        ridge[-1] = 0.0

    def solve(weights: np.ndarray) -> np.ndarray:
        shares, x = weights / weights.sum(), np.zeros(d, dtype=Long)
        long = A.astype(Long)

        def gradient(x: np.ndarray) -> np.ndarray:
            slopes = _slopes(loss, long @ x, y)
            return long.T @ (shares * slopes) + ridge * x

        best = np.inf
        for _ in range(60):
            g = gradient(x)
            size = float(np.linalg.norm(g.astype(float)))
            if size < 1e-18 or (size < 1e-14 and not size < 0.5 * best):
                break
            best = min(best, size)
            curvature = loss.curvature((long @ x).astype(float), y)
            H = A.T @ (A * (shares * curvature)[:, None]) + np.diag(ridge)
            damping = 1e-9 if case.fit_intercept and not curvature.any() else 0.0
            step = -np.linalg.solve(H + damping * np.eye(d), g.astype(float))
            x = x + _share(gradient, x, step) * step
        return x

    return solve


def _slopes(loss: Any, pred: np.ndarray, y: np.ndarray) -> np.ndarray:
    """f' in extended precision, where the loss is computed in that; the slope is Lipschitz."""
    rounded = pred.astype(float)
    rest = (pred - rounded).astype(float)
    return loss.slope(rounded, y) + loss.curvature(rounded, y) * rest


def _share(gradient: Any, x: np.ndarray, step: np.ndarray) -> float:
    """How far to go: where the slope along the step is 0, by bisection."""
    if gradient(x + step) @ step <= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if gradient(x + middle * step) @ step > 0:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def check_exact(case: Case, rows: Any = None, X: Any = None, tol: float = 1e-8) -> None:
    """Every prediction is that of a refit, where that is unique, and in its interval."""
    loo = case.leave_one_out(X)
    scale = 1.0 + float(np.abs(loo.decision).max())
    for i in range(len(case.X)) if rows is None else rows:
        exact, unique = solution_without(case, i)
        if unique:
            assert abs(loo.decision[i] - exact) <= tol * scale, (i, loo.decision[i], exact)
        assert loo.lower[i] - 1e-13 * scale <= exact <= loo.upper[i] + 1e-13 * scale, i
    assert np.isfinite(loo.upper - loo.lower).all()


def check_inside(case: Case, width: float) -> None:
    """What refits say lies in the intervals; l1 by the conditions of optimality."""
    loo = case.leave_one_out(width=width)
    for i in range(len(case.X)):
        without = lasso_without if case.penalty == "l1" else prediction_without
        exact = without(case, i)
        room = 1e-10 * (1.0 + abs(exact))
        assert loo.lower[i] - room <= exact <= loo.upper[i] + room, (i, exact)


def lasso_without(case: Case, i: int) -> float:
    """Of sample i by the lasso of the others, by coordinate descent to the end; no intercept."""
    kept = np.arange(len(case.X)) != i
    A, b = case.X[kept], case.y[kept]
    n, x = len(b), np.zeros(A.shape[1])
    squares = (A**2).sum(axis=0) / n
    rest = b.copy()
    for _ in range(20_000):
        largest = 0.0
        for j in range(len(x)):
            old = x[j]
            pull = A[:, j] @ rest / n + squares[j] * old
            x[j] = np.sign(pull) * max(abs(pull) - case.alpha, 0.0) / squares[j]
            if x[j] != old:
                rest += A[:, j] * (old - x[j])
                largest = max(largest, abs(x[j] - old))
        if largest < 1e-15:
            break
    return float(case.X[i] @ x)
