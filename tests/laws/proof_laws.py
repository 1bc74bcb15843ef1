"""The laws of the checker: what it proves is true at an optimum that is known exactly.

Witnesses are chosen by an adversary: points at any distance, dual points at random, T from anywhere.
"""

from __future__ import annotations

from fractions import Fraction as Q

import numpy as np

import safesift_check as own_checker
from tests.laws.proof_problems import (
    Known,
    objective,
    parameters,
    piece,
    plant,
    prediction,
    rough,
    solve,
)


def known_problem(rng) -> Known:
    """One that was planted, or one that was solved."""
    while True:
        if rng.random() < 0.5:
            return plant(rng)
        known = rough(rng)
        if solve(known):
            return known


def assert_true(known: Known, problem, gap, value_at) -> None:
    """What a problem of the checker has proved is true."""
    least = objective(known, known.optimum)
    assert Q(float(gap)) >= value_at - least, (float(gap), float(value_at - least))
    for i, code in enumerate(problem.proved):
        if code and known.rows.weights[i] > 0:
            t = prediction(known, i, known.optimum)
            assert piece(known.statement, t, known.y[i]) == code, (i, int(code), float(t))
    zero = ~problem.alive
    for j, value in enumerate(known.optimum[: known.p]):
        assert not (zero[j] and value != 0), j
    assert Q(float(problem.floor)) <= least if np.isfinite(float(problem.floor)) else True
    reach = problem.reach
    for j, value in enumerate(known.optimum[: known.p]):
        assert abs(value) <= reach[j], (j, float(value), float(reach[j]))


def a_point(rng, known: Known):
    """Near the optimum, at it, or far from it; inside of a ball."""
    exact = np.array([float(v) for v in known.optimum])
    size = rng.choice([0.0, 10.0 ** rng.uniform(-9, 1)])
    point = exact + size * rng.normal(size=len(exact))
    zeros = (exact == 0) & (rng.random(len(exact)) < 0.7)
    point[zeros] = 0.0
    x = point[: known.p]
    radius = known.statement["penalty"].get("radius")
    if radius is not None and np.abs(x).sum() > radius:
        x *= radius / np.abs(x).sum() * (1 - 1e-12)
    return point


def a_dual_point(rng, known: Known):
    """Slopes that nobody asked for, in the domain of f* or not."""
    k, m, _ = parameters(known.statement)
    limit = 1.0 if m == float("inf") else float(m)
    nu = rng.uniform(-1, 1, known.rows.n) * limit * rng.choice([0.01, 1.0, 2.0])
    if known.slopes is not None and rng.random() < 0.7:
        # those of the optimum, or next to them, or with a wrong one
        nu = known.slopes * rng.choice([0.5, 1.0, 1.0, 1.5, 3.0])
        if rng.random() < 0.5:
            nu = nu + rng.choice([1e-9, 1e-2]) * rng.normal(size=len(nu))
        return nu
    return np.where(rng.random(known.rows.n) < 0.3, 0.0, nu)


def a_whitening(rng, known: Known, alive, point):
    """T from the Hessian at a point, or another, and scaled."""
    d = int(alive.sum()) + known.statement["intercept"]
    X = known.rows.X[:, alive]
    rows = np.hstack([X, np.ones((len(X), 1))]) if known.statement["intercept"] else X
    shares = known.rows.weights / known.rows.weights.sum()
    used = shares * (rng.random(len(shares)) < 0.8)
    k, _, _ = parameters(known.statement)
    H = (rows.T * (used / float(k))) @ rows + known.statement["alpha"] * np.eye(d) * rng.choice([0.0, 0.5, 1.0])
    H += 1e-9 * np.eye(d)
    T = np.linalg.inv(np.linalg.cholesky(H)).T
    return T * rng.choice([0.1, 0.5, 1.0, 1.0, 1.0, 1.2, 3.0])


def attack(known: Known, rng, checker=own_checker):
    """Run rules with witnesses of an adversary; what is proved, the gap, and P at the model."""
    s, known.rows.checker = known.statement, checker
    problem = checker.Problem(s, known.rows, known.y)

    def split(point):
        values = checker.ar.array(point)
        return (values[:-1], values[-1]) if s["intercept"] else (values, checker.ar.array(0.0)[()])

    kinked = parameters(s)[0] == 0
    nu = checker.ar.array(a_dual_point(rng, known)) if kinked else None
    point = a_point(rng, known)
    try:
        problem.rule_gap(*split(point), nu)
    except checker.Unproved:
        return None
    gap, done = problem.gap, []
    for _ in range(int(rng.integers(1, 4))):
        rule = rng.choice(["features", "ball", "region", "gap"])
        try:
            if rule == "features":
                problem.rule_features()
            elif rule == "gap":
                problem.rule_gap(*split(a_point(rng, known)), nu)
            elif rule == "ball":
                shifts = [-(10.0 ** rng.uniform(-6, 1)), 10.0 ** rng.uniform(-6, 1)]
                problem.rule_ball([checker.ar.array(one)[()] for one in shifts])
            else:
                centre, alive = a_point(rng, known), problem.alive
                centre[: known.p][~alive] = 0.0
                witness = a_region(rng, known, alive, centre, checker)
                problem.rule_region(*split(centre), witness)
            done.append(str(rule))
        except (checker.Unproved, ZeroDivisionError):
            continue
    return problem, gap, objective(known, [Q(float(v)) for v in point]), done


def a_region(rng, known: Known, alive, centre, checker):
    ball = "radius" in known.statement["penalty"]
    witness = {
        "form": str(rng.choice(["square", "mean"])),
        "eta": float(rng.choice([1e-6, 1e-3, 0.5, 0.9, rng.random()])),
        "multiplier": float(rng.choice([0.0, 0.25, 10.0 ** rng.uniform(-6, 1)])) if ball else 0.0,
        "beta": float(10.0 ** rng.uniform(-1, 2)),
    }
    if witness["form"] == "square":
        return witness | {"T": checker.ar.array(a_whitening(rng, known, alive, centre))}
    shares = known.rows.weights / known.rows.weights.sum()
    used = shares * (rng.random(len(shares)) < 0.8)
    mean = used @ known.rows.X / max(used.sum(), 1e-9) + rng.choice([0.0, 0.1]) * rng.normal(size=known.p)
    if rng.random() < 0.7:
        witness["beta"] = float(rng.choice([0.7, 1.0, 1.1]) / np.sqrt(max(used.sum(), 1e-9)))
    return witness | {"mean": checker.ar.array(mean[alive])}


def law_the_checker_is_right(seed: int, checker=own_checker, exact: bool = False) -> list[str]:
    """Whatever an adversary has the checker prove is true; the rules that were passed."""
    rng = np.random.default_rng([seed, 2026])
    known = known_problem(rng)
    before, checker.ar = checker.ar, checker.Rationals() if exact else checker.Floats()
    try:
        with np.errstate(all="ignore"):
            found = attack(known, rng, checker)
        if found is None:
            return []
        problem, gap, value, done = found
        assert_true(known, problem, gap, value)
        return done
    finally:
        checker.ar = before
