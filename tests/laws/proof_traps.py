"""Small problems that a careless checker gets wrong: found by review, and kept."""

from __future__ import annotations

import numpy as np

import safesift_check as own_checker
from tests.laws.proof_problems import Rows, stated


def _problem(checker, X, y, loss="squared_interval", intercept=True, weights=None, **more):
    X = np.asarray(X, dtype=float)
    y = np.asarray(y, dtype=float)
    n, p = X.shape
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    penalty = more.pop("penalty", {"name": "l2"})
    statement = stated(loss, penalty, more.pop("alpha", 1.0), intercept, n, p, **more)
    rows = Rows(X, y, weights)
    rows.epsilon, rows.checker = more.get("epsilon", 0.0), checker
    return checker.Problem(statement, rows, y)


def _region(**more):
    return {"form": "square", "eta": 0.0, "multiplier": 0.0, "beta": 0.0, **more}


def trap_closed_intervals(seed, checker=own_checker):
    """Optima [1, 1.5] of an intercept: nothing may be proved of the second row, [−∞, 1.5].

    With x₀ = 0, w = (1, 0) and g = −½ the region reaches just to 1, where the first row turns flat:
    at weight ½ the bound is 1, no more, and the secants are those of the quadratic piece up to it.
    """
    y = [[1.0, np.inf], [-np.inf, 1.5]]
    for scale in (1.0, 1.0 + 2.0**-40, 1.0 + 2.0**-30, 1.001):
        problem = _problem(checker, [[0.0], [0.0]], y)
        T = np.diag([1.0, np.sqrt(2.0) * scale])
        zero = np.zeros(1)
        try:
            with np.errstate(all="ignore"):
                problem.rule_gap(zero, np.float64(0.0), None)
        except checker.Unproved:
            problem.reach = np.full(1, 10.0)
        try:
            problem.rule_region(zero, np.float64(0.0), _region(T=T, eta=2.0**-30))
        except checker.Unproved:
            continue
        assert not problem.proved.any(), "the optima are [1, 1.5]: no row is strictly on a piece"


def trap_exactly_at_the_end(seed, checker=own_checker):
    """A model whose optimum is exactly at the end of a flat piece of a row."""
    # squared loss of the first row pulls to 1, where the second one, [1, ∞), begins to be flat
    problem = _problem(checker, [[1.0], [1.0]], [[1.0, 1.0], [1.0, np.inf]], intercept=False, alpha=2.0**-60)
    with np.errstate(all="ignore"):
        for centre in (1.0, 1.0 - 2.0**-52, 1.0 + 2.0**-52):
            x = np.array([centre])
            problem.rule_gap(x, np.float64(0.0), None)
            T = np.array([[2.0**0.5 * (1 + 2.0**-20)]])
            try:
                problem.rule_region(x, np.float64(0.0), _region(T=T, eta=0.5))
            except checker.Unproved:
                continue
            assert problem.proved[1] == 0, "the optimum is below 1 by a hair"


TRAPS = (trap_closed_intervals, trap_exactly_at_the_end)
