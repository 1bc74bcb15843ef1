"""Small problems that a careless checker gets wrong: found by review, and kept.

Each has a row of hardly any weight that tells where the optimum is, and a witness that a checker
without one of its tests would take for a proof that it is elsewhere.
"""

from __future__ import annotations

from fractions import Fraction as Q

import numpy as np

import safesift_check as own_checker
from tests.laws.proof_laws import a_point, assert_true
from tests.laws.proof_problems import (
    Known,
    Rows,
    objective,
    parameters,
    plant,
    solve,
    solved_by_the_library,
    stated,
)

HARDLY = 2.0**-12
INF = np.inf


def _known(rows, loss="squared_interval", intercept=False, optimum=None, **more) -> Known:
    """Rows are (a, lower, upper, weight)."""
    rows = np.array(rows, dtype=float)
    X, y, weights = rows[:, :1], rows[:, 1:3], rows[:, 3]
    penalty, alpha = more.pop("penalty", {"name": "l2"}), more.pop("alpha", 1.0)
    statement = stated(loss, penalty, alpha, intercept, len(X), 1, **more)
    known = Known(statement, Rows(X, y, weights), y, optimum or [])
    if optimum is None:
        known.optimum = solved_by_the_library(known)
        assert solve(known)
    return known


def _spring(checker, known: Known, model, *steps, nu=None, exact=False) -> None:
    """Run steps, some of which may be refused, and see whether what is proved is true."""
    known.rows.checker = checker
    before, checker.ar = checker.ar, checker.Rationals() if exact else checker.Floats()

    def numbers(values):
        return checker.ar.array(np.array(values, dtype=float))

    try:
        multiplier = max([0.0, *(step[2].pop("multiplier", 0.0) for step in steps if step[2:])])
        problem = checker.Problem(known.statement, known.rows, known.y, multiplier)
        gap, value = np.inf, Q(0)
        with np.errstate(all="ignore"):
            for rule, *witness in (("gap", model), *steps):
                try:
                    if rule == "gap":
                        point = numbers(known.full(witness[0]))
                        problem.rule_gap(point, None if nu is None else numbers(nu))
                        gap = problem.gap
                        value = objective(known, [Q(float(v)) for v in witness[0]])
                    elif rule == "ball":
                        problem.rule_ball(*witness[0])
                    elif rule == "features":
                        problem.rule_features(np.ones(1, dtype=bool))
                    else:
                        given = {"eta": 0.01, "epsilon": 0.0} | witness[1]
                        T = numbers(given.pop("T"))
                        problem.rule_region(numbers(known.full(witness[0])), **given, T=T)
                except checker.Unproved:
                    continue
        if np.isfinite(float(gap)):
            assert_true(known, problem, gap, value)
    finally:
        checker.ar = before


def trap_closed_intervals(seed, checker=own_checker):
    """Optima [1, 1.5] of an intercept: nothing may be proved of the row (−∞, 1.5].

    With x₀ = 0 and w = (1, 0) the region reaches just to 1, where the first row turns flat.
    """
    T = np.diag([1.0, np.nextafter(np.sqrt(2.0), 2.0)])
    for upper in (Q(1), Q(3, 2)):
        known = _known([(0, 1, INF, 1), (0, -INF, 1.5, 1)], intercept=True, optimum=[Q(0), upper])
        for eta in (0.0, 2.0**-30, 2.0**-19, 2.0**-10, 0.5):
            _spring(
                checker, known, [0.0, 0.0], ("region", [0.0, 0.0], {"T": T, "eta": eta}), exact=True
            )


def trap_at_the_end_of_a_piece(seed, checker=own_checker):
    """The optimum 1 is exactly where the second row, [1, ∞), begins to be flat."""
    known = _known([(1, 3, 3, 1), (1, 1, INF, 1)], optimum=[Q(1)])
    for exact in (False, True):
        _spring(checker, known, [1.0], ("region", [1.0], {"T": [[0.8]]}), exact=exact)


def trap_wrong_subgradient(seed, checker=own_checker):
    """With the penalty pulling the wrong way 1.25 would be stationary; the optimum is near 0.75."""
    known = _known([(1, 1, 1, 1), (1, 1, INF, HARDLY)], penalty={"name": "l1"}, alpha=0.25)
    _spring(checker, known, [0.75], ("region", [1.25], {"T": [[1.0]]}))


def trap_too_large_a_subgradient(seed, checker=own_checker):
    """At 0 no subgradient of 0.25·|x| makes up for a slope of −1."""
    known = _known([(1, 1, 1, 1), (1, 0.5, INF, HARDLY)], penalty={"name": "l1"}, alpha=0.25)
    _spring(checker, known, [0.75], ("region", [0.0], {"T": [[1.0]]}))


def trap_slack_of_a_ball(seed, checker=own_checker):
    """Inside of a ball a multiplier makes any point stationary, at a price."""
    rows = [(1, 2, 2, 1), (1, 0.75, INF, HARDLY)]
    known = _known(rows, penalty={"name": "l2_ball", "radius": 1.0}, optimum=[Q(1)])
    _spring(checker, known, [1.0 - 1e-9], ("region", [0.5], {"T": [[0.64]], "multiplier": 3.0}))
    known = _known(rows, penalty={"name": "l1_ball", "radius": 1.0}, optimum=[Q(1)])
    _spring(checker, known, [1.0 - 1e-9], ("region", [0.5], {"T": [[1.0]], "multiplier": 1.5}))


def trap_curvature_of_a_ball(seed, checker=own_checker):
    """Slopes are −1 up to the end of the ball, and a multiplier curves half as it pulls."""
    rows = [(1, 100, INF, 1), (1, 0.95, INF, HARDLY)]
    known = _known(
        rows, "smoothed_interval", penalty={"name": "l2_ball", "radius": 1.0}, optimum=[Q(1)],
        width=2.0,
    )  # fmt: skip
    _spring(checker, known, [0.2], ("region", [0.2], {"T": [[0.4475]], "multiplier": 5.0}))


def trap_slack_of_epsilon(seed, checker=own_checker):
    """A large ε curves any problem, at a price; the optimum is near 0.75, and not near 0.5."""
    known = _known([(1, 1, 1, 1), (1, 0.625, INF, HARDLY)], penalty={"name": "l1"}, alpha=0.25)
    witness = {"T": [[1.0 / np.sqrt(1001.0)]], "epsilon": 1000.0}
    _spring(checker, known, [0.75], ("region", [0.5], witness))


def trap_features(seed, checker=own_checker):
    """The loss alone is stationary at 1, and the gap there says how far its slope may move."""
    known = _known([(1, 1, 1, 1)], penalty={"name": "l1"}, alpha=0.25)
    _spring(checker, known, [1.0], ("features",))


def trap_tangents(seed, checker=own_checker):
    """At x = 0 an intercept of 1.5 is best; with the best x it is near 0."""
    for sign in (1.0, -1.0):
        ends = (1.0, INF) if sign > 0 else (-INF, -1.0)
        rows = [(1, sign, sign, 1), (2, 2 * sign, 2 * sign, 1), (0, *ends, HARDLY)]
        known = _known(rows, intercept=True, alpha=2.0**-6)
        for size in (1e-3, 1e-2, 0.1):
            _spring(checker, known, [0.0, 1.5 * sign], ("ball", [-size, size]))


def trap_rest_of_slopes(seed, checker=own_checker):
    """At (0, 0) only the intercept's slope is not 0: the coefficient moves with it, to −0.2."""
    known = _known([(1, 0, 0, 1), (0, 1, 1, 1), (10, 0, INF, HARDLY)], intercept=True)
    _spring(checker, known, [0.0, 0.0], ("ball", [-5.0, 5.0]), ("ball", [0.4, 0.6]))


def trap_forgotten_weight(seed, checker=own_checker):
    """The row that curves has little weight, next to one that is flat."""
    rows = [(1, 0, 0, 1), (1, -INF, 9, 63), (1, 0.5, INF, HARDLY)]
    known = _known(rows, alpha=2.0**-10)
    for curvature in (1 / 3, 1 / 64, 0.5):
        T = [[1.0 / np.sqrt(curvature + 2.0**-10)]]
        _spring(checker, known, [0.0], ("region", [1.0], {"T": T, "eta": 0.05}))


def trap_curvature_of_a_kink(seed, checker=own_checker):
    """|x| does not curve away from 0."""
    for edge in np.linspace(0.8, 0.88, 9):
        rows = [(1, 1, 1, 1), (1, -INF, 9, 63), (1, edge, INF, 2.0**-30)]
        known = _known(rows, penalty={"name": "l1"}, alpha=2.0**-9)
        for curvature in (1 / 64, 0.0169, 0.018):
            T = [[1.0 / np.sqrt(curvature)]]
            _spring(checker, known, [0.5], ("region", [0.5], {"T": T, "eta": 1e-4}))


def trap_radius_of_the_gap_ball(seed, checker=own_checker):
    """Only the penalty curves, so that the gap ball reaches just to the optimum."""
    total = 1 + Q(HARDLY)
    known = _known(
        [(1, 100, 100, 1), (1, 0.5, INF, HARDLY)], "absolute_interval", optimum=[1 / total]
    )
    _spring(checker, known, [0.0], ("ball", [0.0, 0.0]), nu=[-1.0, 0.0])


def trap_dual_points_outside(seed, checker=own_checker):
    """Slopes that f* does not allow would give a larger lower bound than the minimum."""
    total = 1 + Q(HARDLY)
    rows = [(1, 100, 100, 1), (1, 0.5, INF, HARDLY)]
    known = _known(rows, "absolute_interval", optimum=[1 / total])
    for nu in ([-2.0, 0.0], [-1.0, 50.0], [-1.5, 1.0]):
        _spring(checker, known, [0.5], nu=nu)


def trap_rows_that_gain_from_others(seed, checker=own_checker):
    """Only slopes of one sign are shrunk for the intercept: the others gain nothing by it."""
    before, checker.ar = checker.ar, checker.Floats()
    try:
        for number in range(40, 46):
            rng = np.random.default_rng([number, 99])
            known = plant(rng)
            if parameters(known.statement)[0] == 0 and known.statement["intercept"]:
                _wrong_slopes(checker, known, rng)
    finally:
        checker.ar = before


def _wrong_slopes(checker, known, rng):
    known.rows.checker = checker
    for _ in range(5):
        point = a_point(rng, known)
        noise = rng.choice([1e-3, 0.3, 1]) * rng.normal(size=len(known.slopes))
        nu = np.clip(rng.choice([0.0, 0.5, 1.0]) * known.slopes + noise, -1, 1)
        if known.y.ndim == 2:
            nu = np.where(
                (nu > 0) & np.isinf(known.y[:, 1]) | (nu < 0) & np.isinf(known.y[:, 0]), 0, nu
            )
        try:
            with np.errstate(all="ignore"):
                problem = checker.Problem(known.statement, known.rows, known.y, 0.25)
                problem.rule_gap(known.full(point), nu)
        except checker.Unproved:
            continue
        truth = objective(known, [Q(float(v)) for v in point]) - objective(known, known.optimum)
        assert Q(float(problem.gap)) >= truth


TRAPS = tuple(value for name, value in sorted(globals().items()) if name.startswith("trap_"))
