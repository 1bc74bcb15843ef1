"""The laws of the checker: what it proves is true at an optimum that is known exactly.

Witnesses are chosen by an adversary: points at any distance, dual points at random, any T.
"""

from __future__ import annotations

import copy
import io
from fractions import Fraction as Q

import numpy as np

import safesift_check as own_checker
from tests.laws.proof_problems import (
    Known,
    Rows,
    library_problem,
    objective,
    parameters,
    piece,
    plant,
    prediction,
    rough,
    solve,
    solved_by_the_library,
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
    assert _exactly(gap) >= value_at - least, (float(gap), float(value_at - least))
    for i, code in enumerate(problem.proved):
        if code and known.rows.weights[i] > 0:
            t = prediction(known, i, known.optimum)
            assert piece(known.statement, t, known.y[i]) == code, (i, int(code), float(t))
    zero = ~problem.alive
    for j, value in enumerate(known.optimum[: known.p]):
        assert not (zero[j] and value != 0), j
    assert _exactly(problem.floor) <= least
    reach = problem.reach
    for j, value in enumerate(known.optimum[: known.p]):
        assert abs(value) <= reach[j], (j, float(value), float(reach[j]))


def _exactly(number):
    """A fraction as it is, a finite float as one."""
    return number if isinstance(number, Q) or not np.isfinite(number) else Q(float(number))


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
    _, m, _ = parameters(known.statement)
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
    H = (rows.T * (used / float(k))) @ rows + known.statement["alpha"] * np.eye(d) * rng.choice(
        [0.0, 0.5, 1.0]
    )
    H += 1e-9 * np.eye(d)
    T = np.linalg.inv(np.linalg.cholesky(H)).T
    return T * rng.choice([0.1, 0.5, 1.0, 1.0, 1.0, 1.2, 3.0])


def a_multiplier(rng, known: Known) -> float:
    """Of a ball: 0.25 is that of the planted ones."""
    ball = "radius" in known.statement["penalty"]
    return float(rng.choice([0.0, 0.25, 0.25, 10.0 ** rng.uniform(-6, 1)])) if ball else 0.0


def attack(known: Known, rng, checker=own_checker):
    """Run rules with witnesses of an adversary; what is proved, the gap, and P at the model."""
    s, known.rows.checker = known.statement, checker
    kinked = parameters(s)[0] == 0
    nu = checker.ar.array(a_dual_point(rng, known)) if kinked else None
    point = a_point(rng, known)
    try:
        problem = checker.Problem(s, known.rows, known.y, a_multiplier(rng, known))
        problem.rule_gap(checker.ar.array(known.full(point)), nu)
    except checker.Unproved:
        return None
    gap, done = problem.gap, []
    for _ in range(int(rng.integers(1, 4))):
        rule = rng.choice(["features", "ball", "region", "gap"])
        try:
            if rule == "features":
                # all that can be ruled out; then one that perhaps cannot
                problem.rule_features(np.zeros(known.p, dtype=bool))
                problem.rule_features(np.array(problem.vanish, dtype=bool))
                done.append("features")
                problem.rule_features(np.arange(known.p) == rng.integers(known.p))
            elif rule == "gap":
                problem.rule_gap(checker.ar.array(known.full(a_point(rng, known))), nu)
            elif rule == "ball":
                bounds = [-(10.0 ** rng.uniform(-6, 1)), 10.0 ** rng.uniform(-6, 1)]
                if rng.random() < 0.2 or not s["intercept"]:
                    bounds = [0.0, 0.0]
                problem.rule_ball(*bounds)
            else:
                centre = known.full(a_point(rng, known))
                centre[~problem.alive] = 0.0
                T = a_whitening(rng, known, problem.alive[: known.p], centre)
                eta = float(rng.choice([1e-6, 1e-3, 0.5, 0.9, rng.random()]))
                epsilon = float(rng.choice([0.0, 0.0, 10.0 ** rng.uniform(-9, 0)]))
                problem.rule_region(checker.ar.array(centre), eta, epsilon, checker.ar.array(T))
            done.append(str(rule))
        except (checker.Unproved, ZeroDivisionError):
            continue
    return problem, gap, objective(known, [Q(float(v)) for v in point]), done


def law_the_checker_is_right(
    seed: int, checker=own_checker, exact: bool = False, make=known_problem
) -> list[str]:
    """Whatever an adversary has the checker prove is true; the rules that were passed."""
    rng = np.random.default_rng([seed, 2026])
    known = make(rng)
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


# --- false certificates -------------------------------------------------------------------------


def certificate(known: Known):
    """What the library proves of a problem: the part of a statement, the model and numbers."""
    from safesift.workflows.proofs.witnesses import find_witness

    known.rows.checker = own_checker
    problem, point = library_problem(known), np.array([float(v) for v in known.optimum])
    found = find_witness(problem, problem.feasible(point), None, known.statement, known.rows)
    part = {"gap": found.gap, "rules": found.rules}
    multiplier, model, *rest = found.numbers
    numbers = known.split(model)[0] + ([model[-1]] if known.statement["intercept"] else [])
    numbers = (np.array(numbers), np.concatenate(rest), multiplier)
    return part, numbers, found.verdicts.copy(), found.zero.copy()


def accepted(known: Known, part, numbers, verdicts, zero) -> bool:
    """Whether the checker accepts it; features are claimed to be 0 once more, by a last step."""
    from safesift.workflows.proofs.witnesses import packed

    known.rows.checker = own_checker
    own_checker.ar = own_checker.Floats()
    model, rest, multiplier = numbers
    tape = [multiplier, known.full(model), rest]
    if zero.any():
        part, tape = part | {"rules": [*part["rules"], "features"]}, [*tape, zero.astype(float)]
    tape = io.BytesIO(np.concatenate(tape).tobytes())
    try:
        with np.errstate(all="ignore"):
            stated = known.statement | {
                "gaps": [part["gap"]],
                "rules": [part["rules"]],
                "positives": [None],
            }
            own_checker.check_part(stated, known.rows, 0, tape, packed(verdicts))
    except own_checker.Unproved:
        return False
    return not tape.read(1)


def is_false(known: Known, part, numbers, verdicts, zero) -> bool:
    """Whether a claim is wrong at the exact optimum."""
    value = objective(known, [Q(float(v)) for v in numbers[0]])
    if value - objective(known, known.optimum) > Q(part["gap"]):
        return True
    if any(zero[j] and known.optimum[j] != 0 for j in range(known.p)):
        return True
    return any(
        code and known.rows.weights[i] > 0
        and piece(known.statement, prediction(known, i, known.optimum), known.y[i]) != code
        for i, code in enumerate(verdicts)
    )  # fmt: skip


def tampered(rng, known: Known, part, numbers, verdicts, zero):
    """A certificate, or its problem, with something changed; None where that cannot be solved."""
    rows, part = known.rows, copy.deepcopy(part)
    rows = Rows(rows.X.copy(), rows.y.copy(), rows.weights.copy())
    rows.one_epsilon = known.rows.one_epsilon
    known = Known(copy.deepcopy(known.statement), rows, rows.y, known.optimum)
    verdicts, zero, s = verdicts.copy(), zero.copy(), known.statement
    kind = rng.choice(
        ["verdict", "gap", "zero", "model", "X", "y", "weight", "alpha", "loss", "many"]
    )
    if kind in ("verdict", "many"):
        for _ in range(1 if kind == "verdict" else 3):
            verdicts[rng.integers(len(verdicts))] = rng.integers(1, 4)
    elif kind == "gap":
        part["gap"] *= 10.0 ** -rng.uniform(0.5, 8)
    elif kind == "zero":
        zero[rng.integers(len(zero))] = True
    elif kind == "model":
        moved = 10.0 ** rng.uniform(-6, 0) * rng.normal(size=len(numbers[0]))
        return known, part, (numbers[0] + moved, *numbers[1:]), verdicts, zero
    elif kind == "X":
        rows.X[rng.integers(rows.n), rng.integers(rows.p)] += rng.integers(-8, 9) / 8.0
    elif kind == "y":
        i = rng.integers(rows.n)
        labels = s["loss"]["name"].endswith("hinge")
        known.y[i] = -known.y[i] if labels else known.y[i] + rng.integers(-8, 9) / 8.0
    elif kind == "weight":
        rows.weights[rng.integers(rows.n)] = float(rng.integers(0, 9))
    elif kind == "alpha":
        s["alpha"] *= float(2.0 ** rng.integers(-3, 4))
    else:
        names = [name for name in s["loss"] if name not in ("name", "factor")]
        if not names:
            return None
        s["loss"][str(rng.choice(names))] *= float(rng.choice([0.5, 2.0, 3.0]))
        rows.one_epsilon = s["loss"].get("epsilon", 0.0)
    if kind in ("X", "y", "weight", "alpha", "loss"):
        if not rows.weights.sum() > 0:
            return None
        known.optimum = solved_by_the_library(known)
        if not solve(known):
            return None
    return known, part, numbers, verdicts, zero


def law_false_certificates(seed: int, tries: int = 12) -> tuple[int, int]:
    """The certificates of the library are accepted, and whatever false is made of them is not.

    How many were false, and how many were tried.
    """
    rng, n_false, n_tried = np.random.default_rng([seed, 77]), 0, 0
    known = rough(rng)
    while not solve(known):
        known = rough(rng)
    made = certificate(known)
    assert not is_false(known, *made) and accepted(known, *made)
    for _ in range(tries):
        changed = tampered(rng, known, *made)
        if changed is None:
            continue
        n_tried += 1
        if is_false(*changed):
            n_false += 1
            assert not accepted(*changed), "a false certificate was accepted"
    return n_false, n_tried
