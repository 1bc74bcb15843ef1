"""The dual problem as a conic program, from the conjugates of losses and penalties."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from safesift import losses, penalties
from safesift.problem.problem import Problem
from tests.laws.definitions import loss_definition, penalty_definition
from tests.laws.reference import dense_rows, solve


@dataclass(frozen=True)
class DualOptimum:
    """An optimal dual point and the value of the dual program."""

    nu: np.ndarray
    value: float


def dual_optimum(problem: Problem) -> DualOptimum:
    """Maximise −Σ shares·f*(ν) − alpha·R*(−Aᵀ(shares∘ν)/alpha); with an intercept Σ s ν = 0."""
    nu = cp.Variable(problem.design.n_samples)
    shares = problem.weights / problem.divisor
    v = dense_rows(problem).T @ cp.multiply(shares, nu)
    p = problem.design.n_features
    conjugates, constraints = _conjugates(problem, nu)
    support, more = _support(problem, v[:p])
    constraints += more
    if problem.fit_intercept:
        constraints.append(v[p] == 0)
    program = cp.Problem(cp.Maximize(-shares @ conjugates - support), constraints)
    solve(program)
    return DualOptimum(np.array(nu.value), float(program.value))


def _conjugates(problem: Problem, nu: cp.Expression):
    loss, y = problem.loss, problem.y
    if loss.task == "interval":
        return _interval_conjugates(problem, nu)
    u = cp.multiply(y, nu)  # y·ν for labels, and the linear part ν·y of the others
    unit, half_square = [u >= -1, u <= 0], 0.5 * cp.square(nu)
    match loss:
        case losses.Hinge():
            return (1 - loss.mu) * u, unit
        case losses.SquaredHinge():
            return half_square + (1 - loss.mu) * u, [u <= 0]
        case losses.SmoothedHinge():
            return loss.width * half_square + (1 - loss.mu) * u, unit
        case losses.Logistic():
            return -cp.entr(-u) - cp.entr(1 + u), unit
        case losses.SafeLogistic():
            return -cp.entr(1 + u) - loss.mu * u, unit
        case losses.Squared():
            return half_square + u, []
        case losses.Huber():
            return half_square + u, [cp.abs(nu) <= loss.delta]
        case losses.EpsilonInsensitive():
            return cp.multiply(loss.epsilon, cp.abs(nu)) + u, [cp.abs(nu) <= 1]
        case losses.SmoothedEpsilonInsensitive():
            tube = cp.multiply(loss.epsilon, cp.abs(nu))
            return loss.width * half_square + tube + u, [cp.abs(nu) <= 1]
        case losses.SquaredEpsilonInsensitive():
            return half_square + cp.multiply(loss.epsilon, cp.abs(nu)) + u, []
    conjugate = loss_definition(loss).conic_conjugate
    if loss.task == "classification":
        return conjugate(loss, u)
    value, constraints = conjugate(loss, nu)
    return value + u, constraints


def _interval_conjugates(problem: Problem, nu: cp.Expression):
    """ψ*(ν) + max(l·ν, u·ν), with ν of one sign where an end is infinite."""
    loss, (low, high) = problem.loss, problem.y.T
    constraints = [] if np.isinf(loss.lipschitz) else [cp.abs(nu) <= 1]
    for end, sign in ((low, -1.0), (high, 1.0)):
        rows = np.flatnonzero(np.isinf(end))
        if rows.size:
            constraints.append(sign * nu[rows] <= 0)
    # where an end is infinite ν has the sign of the other one
    low, high = loss.anchors(problem.y)
    support = cp.maximum(cp.multiply(low, nu), cp.multiply(high, nu))
    match loss:
        case losses.SquaredInterval():
            return 0.5 * cp.square(nu) + support, constraints
        case losses.AbsoluteInterval():
            return support, constraints
        case losses.SmoothedInterval():
            return 0.5 * loss.width * cp.square(nu) + support, constraints
    raise NotImplementedError(f"write the conjugate of {loss!r} for the reference solver")


def _support(problem: Problem, v: cp.Expression):
    penalty, alpha = problem.penalty, problem.alpha
    match penalty:
        case penalties.L2():
            return cp.sum_squares(v) / (2 * alpha), []
        case penalties.L1():
            return cp.Constant(0.0), [cp.abs(v) <= alpha]
        case penalties.ElasticNet():
            beyond = cp.pos(cp.abs(v) - alpha * penalty.l1_ratio)
            return cp.sum_squares(beyond) / (2 * alpha * (1 - penalty.l1_ratio)), []
        case penalties.L2Ball():
            return penalty.radius * cp.norm2(v), []
        case penalties.L1Ball():
            return penalty.radius * cp.norm_inf(v), []
    return penalty_definition(penalty).conic_support(penalty, v, alpha)
