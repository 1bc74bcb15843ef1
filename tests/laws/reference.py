"""Optima computed independently of the library's solvers, regions and duals.

Smooth losses with an l2 penalty are solved by a damped Newton method to machine precision. All
other problems go to cvxpy and Clarabel, written from the definitions of loss and penalty.
"""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from safesift import losses, penalties
from safesift.problem.problem import Problem
from safesift.regions import EllipsoidalSet
from tests.laws.definitions import loss_definition, penalty_definition
from tests.laws.safe_losses import CONIC


class NotSolvedError(Exception):
    """The reference solver gave up: no verdict, not a failure of the library."""


@dataclass(frozen=True)
class Optimum:
    """An optimum, its value, and how far the point may be from a true optimum."""

    point: np.ndarray
    value: float
    accuracy: float


def dense_rows(problem: Problem) -> np.ndarray:
    """The design as a float64 matrix, the column of ones included."""
    data = problem.design.data
    rows = np.asarray(data.todense() if hasattr(data, "todense") else data, dtype=np.float64)
    return np.column_stack([rows, np.ones(len(rows))]) if problem.fit_intercept else rows


def objective(problem: Problem, point: np.ndarray) -> float:
    """P, from its definition."""
    rows = dense_rows(problem)
    p = problem.design.n_features
    losses_ = problem.loss.value(rows @ point, problem.y)
    value = problem.weights @ losses_ / problem.divisor
    if problem.Q is not None:
        value += 0.5 * point @ problem.Q @ point
    value += problem.q @ point
    penalty = problem.penalty.value(point[:p])
    return float(value + problem.r + (problem.alpha * penalty if penalty else 0.0))


def optimum(problem: Problem) -> Optimum:
    smooth = math.isfinite(problem.loss.smoothness)
    if smooth and isinstance(problem.penalty, penalties.L2):
        return newton(problem)
    return conic(problem)


def newton(problem: Problem) -> Optimum:
    rows, alpha = dense_rows(problem), problem.alpha
    p, d = problem.design.n_features, rows.shape[1]
    shares = problem.weights / problem.divisor
    ridge = alpha * np.diag([1.0] * p + [0.0] * (d - p))
    Q = np.zeros((d, d)) if problem.Q is None else problem.Q

    def gradient(x):
        slopes = shares * problem.loss.slope(rows @ x, problem.y)
        return rows.T @ slopes + ridge @ x + Q @ x + problem.q

    x = np.zeros(d)
    for _ in range(300):
        g = gradient(x)
        curvature = shares * problem.loss.curvature(rows @ x, problem.y)
        H = (rows.T * curvature) @ rows + ridge + Q
        if d > p and H[-1, -1] <= 1e-14:
            H[-1, -1] += float(shares.sum())  # a flat direction of the intercept
        step = np.linalg.lstsq(H, g, rcond=None)[0]
        size, here = 1.0, objective(problem, x)
        while size > 1e-10 and objective(problem, x - size * step) > here - 1e-4 * size * (
            g @ step
        ):
            size *= 0.5
        if size <= 1e-10:
            size = 1.0 if np.linalg.norm(gradient(x - step)) < np.linalg.norm(g) else 0.0
        if size == 0.0:
            break
        x = x - size * step
        if size * np.linalg.norm(step) <= 1e-16 * np.linalg.norm(x):
            break
    residual = np.linalg.norm(gradient(x))
    if residual > 1e-9 * max(1.0, alpha * np.linalg.norm(x)):
        raise NotSolvedError
    return Optimum(x, objective(problem, x), max(residual / alpha, 1e-13))


def conic(problem: Problem) -> Optimum:
    program = Program(problem)
    program.minimise(program.value)
    point = program.point
    return Optimum(point, objective(problem, point), 1e-5)


def some_optima(problem: Problem, best: Optimum, directions: np.ndarray) -> list[np.ndarray]:
    """Points of the set of optima that lie furthest in the given directions."""
    program = Program(problem)
    room = 1e-9 * max(1.0, abs(best.value))
    return [
        program.minimise(-direction @ program.x, program.value <= best.value + room).point
        for direction in directions
    ]


def least_value_within(problem: Problem, sets: list[EllipsoidalSet]) -> float:
    """The least value of the objective over an intersection of ellipsoids."""
    program, constraints = Program(problem), []
    for member in sets:
        eigenvalues, vectors = np.linalg.eigh(member.shape.matrix())
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        u = cp.Variable(len(root))
        # a hair of room: a cone of radius 0 has no interior, and conic solvers stumble over it
        e = cp.Variable(len(root))
        constraints += [cp.norm2(u) <= 1, cp.norm2(e) <= member.slack + 1e-9]
        constraints += [program.x == member.center + root @ u + e]
    program.minimise(program.value, *constraints)
    return objective(problem, program.point)


def solve(program: cp.Problem) -> None:
    """Solve tightly, or less tightly, or raise NotSolvedError."""
    for tolerance in (1e-11, 1e-9):
        options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
        with suppress(cp.SolverError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": the status says so too
            program.solve(solver=cp.CLARABEL, **options)
        if program.status == cp.OPTIMAL:
            return
    raise NotSolvedError


class Program:
    """A problem as a conic program, from the definitions of loss and penalty."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._constraints = problem, []
        rows = dense_rows(problem)
        self.x = cp.Variable(rows.shape[1])
        coef = self.x[: problem.design.n_features]
        value = (problem.weights / problem.divisor) @ self._losses(rows @ self.x)
        value = value + self._penalty(coef) + problem.q @ self.x + problem.r
        if problem.Q is not None:
            value = value + 0.5 * cp.quad_form(self.x, cp.psd_wrap(problem.Q))
        self.value = value

    def minimise(self, target: cp.Expression, *constraints: cp.Constraint) -> Program:
        solve(cp.Problem(cp.Minimize(target), [*self._constraints, *constraints]))
        return self

    @property
    def point(self) -> np.ndarray:
        """The solution; a hair outside a ball is pulled back into it."""
        point, p = np.array(self.x.value), self._problem.design.n_features
        if self._problem.penalty.is_constraint:
            point[:p] = self._problem.penalty.prox(point[:p], 1.0)
        return point

    def _losses(self, pred: cp.Expression, loss: losses.Loss | None = None) -> cp.Expression:
        loss, y = self._problem.loss if loss is None else loss, self._problem.y
        if loss.task == "interval":
            return self._interval_losses(pred)
        margin, residual = cp.multiply(y, pred), pred - y
        if loss in CONIC:
            value, constraints = CONIC[loss](margin if loss.task == "classification" else residual)
            self._constraints += constraints
            return value
        match loss:
            case losses.Scaled():
                return loss.factor * self._losses(pred, loss.loss)
            case losses.AbsoluteMargin():
                return cp.abs(1 - margin)
            case losses.SquaredMargin():
                return 0.5 * cp.square(1 - margin)
            case losses.Hinge():
                return cp.pos(1 - loss.mu - margin)
            case losses.SquaredHinge():
                return 0.5 * cp.square(cp.pos(1 - loss.mu - margin))
            case losses.SmoothedHinge():
                return cp.huber(cp.pos(1 - loss.mu - margin), loss.width) / (2 * loss.width)
            case losses.SmoothedEpsilonInsensitive():
                excess = cp.pos(cp.abs(residual) - loss.epsilon)
                return cp.huber(excess, loss.width) / (2 * loss.width)
            case losses.Logistic():
                return cp.logistic(-margin)
            case losses.SafeLogistic():
                # the least e^w − w − 1 over w ≤ min(z, 0), where it falls
                w = cp.Variable(pred.shape)
                self._constraints += [w <= margin + loss.mu - 1, w <= 0]
                return cp.exp(w) - w - 1
            case losses.Squared():
                return 0.5 * cp.square(residual)
            case losses.Huber():
                return 0.5 * cp.huber(residual, loss.delta)
            case losses.EpsilonInsensitive():
                return cp.pos(cp.abs(residual) - loss.epsilon)
            case losses.SquaredEpsilonInsensitive():
                return 0.5 * cp.square(cp.pos(cp.abs(residual) - loss.epsilon))
        argument = margin if loss.task == "classification" else residual
        return loss_definition(loss).conic(loss, argument)

    def _interval_losses(self, pred: cp.Expression) -> cp.Expression:
        """The least ψ(d) over distances d ≥ 0 to the interval: ψ grows."""
        loss, (low, high) = self._problem.loss, self._problem.y.T
        distance = cp.Variable(pred.shape, nonneg=True)
        for end, sign in ((low, -1.0), (high, 1.0)):
            rows = np.flatnonzero(np.isfinite(end))
            if rows.size:
                self._constraints.append(distance[rows] >= sign * (pred[rows] - end[rows]))
        match loss:
            case losses.SquaredInterval():
                return 0.5 * cp.square(distance)
            case losses.AbsoluteInterval():
                return distance
            case losses.SmoothedInterval():
                return cp.huber(distance, loss.width) / (2 * loss.width)
        raise NotImplementedError(f"write {loss!r} for the reference solver")

    def _penalty(self, coef: cp.Expression) -> cp.Expression:
        penalty, alpha = self._problem.penalty, self._problem.alpha
        l1, l2 = cp.norm1(coef), 0.5 * cp.sum_squares(coef)
        match penalty:
            case penalties.L2():
                return alpha * l2
            case penalties.L1():
                return alpha * l1
            case penalties.ElasticNet():
                return alpha * (penalty.l1_ratio * l1 + (1 - penalty.l1_ratio) * l2)
            case penalties.L2Ball():
                self._constraints.append(cp.norm2(coef) <= penalty.radius)
            case penalties.L1Ball():
                self._constraints.append(l1 <= penalty.radius)
            case _:
                return alpha * penalty_definition(penalty).conic(penalty, coef)
        return cp.Constant(0.0)
