"""Shares, curvatures and sums over folded samples are rounded: by no more than is claimed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.losses import LOSSES
from safesift.problem.decisions import Bounds, decide
from safesift.problem.evaluation import Folded
from safesift.problem.gram import WeightedGram, WorkingGram
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.regions.curvature_models import ExactModel
from safesift.regions.energy import _ellipsoid
from safesift.regions.near import _least_curvature
from tests.laws import exact
from tests.laws.strategies import SMOOTH_NAMES, examples

seeds = st.integers(0, 2**32 - 1)


def drawn_problem(rng, loss: str, n: int, p: int, penalty: str = "l2") -> Problem:
    """Weights, widths and other parameters with all their bits set."""
    parameters = {
        name: float(rng.uniform(0.1, 2.0))
        for name in LOSSES[loss].__dataclass_fields__
        if name in ("width", "delta", "mu", "epsilon")
    }
    chosen = LOSSES[loss](**parameters)
    y = rng.normal(size=n)
    if chosen.task == "classification":
        y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    elif chosen.task == "interval":
        y = np.column_stack([y, y + rng.uniform(0, 1, n)])
    return make_problems(
        rng.normal(size=(n, p)), y, loss=chosen, penalty=penalty, alpha=float(rng.uniform(0.01, 1)),
        sample_weight=rng.uniform(0.1, 3.0, n), fit_intercept=bool(rng.integers(2)),
    ).problem  # fmt: skip


# --- what samples curve -------------------------------------------------------------------------


def law_loads_are_known(seed: int, loss: str) -> None:
    """A share times a curvature floor is at most so much above what it is without rounding."""
    rng = np.random.default_rng(seed)
    problem = drawn_problem(rng, loss, int(rng.integers(2, 30)), 2)
    oracle = exact.ExactProblem(problem)
    pred = rng.normal(size=problem.design.n_samples) * rng.choice([1.0, 30.0])
    floors = problem.loss.curvature_floor(pred, pred, problem.y)
    room = 1 - Fraction(problem.curvature_error)
    for i, load in enumerate(exact.fractions(problem.shares * floors)):
        t = Fraction(float(pred[i]))
        curvature = exact.curvature(problem.loss, i, t, oracle.y[i])
        assert load * room <= oracle.shares[i] * curvature or load < Fraction(1e-290)


@pytest.mark.parametrize("loss", SMOOTH_NAMES)
@examples(0.2)
@given(seed=seeds)
def test_loads_are_known(loss, seed):
    law_loads_are_known(seed, loss)


def fails(law, n: int, *arguments) -> bool:
    for seed in range(n):
        try:
            law(seed, *arguments)
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared", "logistic", "safe_logistic"])
def test_loads_taken_as_they_are(monkeypatch, loss):
    monkeypatch.setattr(Problem, "curvature_error", 0.0)
    assert fails(law_loads_are_known, 200, loss)


def test_a_depth_that_is_rounded_is_an_error_of_the_curvature(monkeypatch):
    """e^z moves by as much as z is off, which is more than a few EPS where z is large."""
    monkeypatch.setattr(LOSSES["safe_logistic"], "curvature_error", 2.0**-52)
    monkeypatch.setattr("safesift.problem.problem.SHARE_ERROR", 2.0**-52)
    assert fails(law_loads_are_known, 200, "safe_logistic")


# --- what is folded -----------------------------------------------------------------------------


class ExactFold:
    """The sums over decided samples without rounding, from pieces of the exact losses."""

    def __init__(self, problem: Problem, decisions, pred):
        oracle, d = exact.ExactProblem(problem), problem.design.n_columns
        self.Q = [[Fraction(0)] * d for _ in range(d)]
        self.q, self.r = [Fraction(0)] * d, Fraction(0)
        for i in np.flatnonzero(decisions.folded | decisions.dropped):
            y, t, row = oracle.y[i], Fraction(float(pred[i])), oracle.rows[i]
            quadratic = exact.curvature(problem.loss, i, t, y)
            linear = exact.slope(problem.loss, i, t, y) - quadratic * t
            constant = exact.value(problem.loss, i, t, y) - t * (linear + quadratic * t / 2)
            share = oracle.shares[i]
            self.r += share * constant
            for j in range(d):
                self.q[j] += share * linear * row[j]
                for k in range(d):
                    self.Q[j][k] += share * quadratic * row[j] * row[k]


def folded_problem(rng, loss: str):
    problem = drawn_problem(rng, loss, int(rng.integers(2, 40)), int(rng.integers(1, 4)))
    pred = 2.0 * rng.normal(size=problem.design.n_samples)
    # twice, so that sums are added to sums
    first = rng.random(len(pred)) < 0.5
    decisions = decide(problem, Bounds(pred, pred), "always")
    return problem, decisions, first, pred


def law_folded_sums_are_known(seed: int, loss: str) -> None:
    rng = np.random.default_rng(seed)
    problem, decisions, first, pred = folded_problem(rng, loss)
    some = decisions.without(~first)
    rest = problem.reduce(some)
    left = some.undecided
    again = decide(rest, Bounds(pred[left], pred[left]), "always")
    for reduced, what in (
        (problem.reduce(decisions), decisions),
        (rest.reduce(again), decisions),
    ):
        check_sums(reduced.folded, ExactFold(problem, what, pred))


def check_sums(folded: Folded, true: ExactFold) -> None:
    q = [a - b for a, b in zip(exact.fractions(folded.q), true.q, strict=True)]
    assert exact.norm(q) <= Fraction(folded.q_error)
    assert abs(Fraction(folded.r) - true.r) <= Fraction(folded.r_error)
    if folded.Q is None:
        assert not any(map(any, true.Q))
        return
    spread = exact.fractions(np.sqrt(np.diag(folded.Q)) * (1 + 1e-15))
    for j, row in enumerate(folded.Q):
        for k, entry in enumerate(exact.fractions(row)):
            assert abs(entry - true.Q[j][k]) <= Fraction(folded.Q_error) * spread[j] * spread[k]


PIECES = [name for name in SMOOTH_NAMES if LOSSES[name].quadratic_rays]


@pytest.mark.parametrize("loss", PIECES)
@examples(0.2)
@given(seed=seeds)
def test_folded_sums_are_known(loss, seed):
    law_folded_sums_are_known(seed, loss)


@pytest.mark.parametrize("name", ["Q_error", "q_error", "r_error"])
def test_folded_sums_taken_as_they_are(monkeypatch, name):
    right = Problem.fold
    monkeypatch.setattr(Problem, "fold", lambda self, d: replace(right(self, d), **{name: 0.0}))
    assert fails(law_folded_sums_are_known, 50, "smoothed_epsilon_insensitive")


# --- what is proved from them -------------------------------------------------------------------


def off_by_what_it_claims(rng, problem: Problem) -> tuple[Problem, np.ndarray]:
    """A problem with a folded Q next to singular, as far off as it says; and the exact Q."""
    d = problem.design.n_columns
    rows = rng.normal(size=(1, d)) + 10.0 ** rng.uniform(-3, 0) * rng.normal(size=(d, d))
    Q = rows.T @ rows
    error = 10.0 ** rng.uniform(-6, -1)
    c = np.sqrt(np.diag(Q))
    # towards more curvature in every direction, or in some
    signs = np.eye(d) if rng.random() < 0.5 else np.sign(rows.T @ rows)
    wrong = Q + 0.9 * error * signs * np.outer(c, c)
    return replace(problem, folded=Folded(np.zeros(d), 0.0, wrong, error)), Q


def law_curvature_is_there(seed: int, loss: str = "huber") -> None:
    """Bounds on H hold for the exact Q: from below, and both ways where it is whitened."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 4))
    problem = replace(drawn_problem(rng, loss, 5, p), alpha=1e-9)
    problem, Q = off_by_what_it_claims(rng, problem)
    design = problem.design
    weights = problem.shares * 1e-6
    A = np.column_stack([design.data, np.ones(5)]) if problem.fit_intercept else design.data
    H = Q + (A.T * weights) @ A
    H[:p, :p] += problem.alpha * np.eye(p)
    gram = WeightedGram(design)
    gram.move(weights)
    theta = _least_curvature(problem, gram, np.ones(len(H), dtype=bool))
    assert theta <= np.linalg.eigvalsh(H)[0] * (1 + 1e-6) + 1e-12
    model = ExactModel(problem)
    model.move(np.full(5, 1e-6))
    white = model.whitening(np.full(p, problem.alpha))
    if white is not None:
        within(white.basis.T @ H @ white.basis, white.looseness)
    certificate = problem.certify(problem.evaluate(np.zeros(len(H))))
    working = WorkingGram(design)
    working.select(np.ones(p, dtype=bool))
    ellipsoid = _ellipsoid(certificate, working, np.full(5, 1e-6), np.ones(p, dtype=bool))
    if ellipsoid is not None:
        B = ellipsoid.shape.factor
        # ½‖u‖²_H ≤ gap lies inside: B⁻ᵀB⁻¹ ⪯ H/(2·gap)
        inside = B.T @ H @ B / (2.0 * certificate.gap)
        assert np.linalg.eigvalsh(inside)[0] >= 1.0 - 1e-6


def within(form: np.ndarray, looseness: float) -> None:
    values = np.linalg.eigvalsh(form)
    assert values[0] >= 1.0 - looseness - 1e-9 and values[-1] <= 1.0 + looseness + 1e-9


@examples(0.5)
@given(seed=seeds)
def test_a_folded_matrix_is_no_better_than_it_claims(seed):
    law_curvature_is_there(seed)


def test_a_folded_matrix_taken_as_it_is(monkeypatch):
    """With the error of the sums over the remaining rows only."""
    assert not fails(law_curvature_is_there, 20)
    monkeypatch.setattr(Problem, "hessian_error", lambda self, gram_error: gram_error)
    assert fails(law_curvature_is_there, 200)


def law_shares_may_be_off(seed: int) -> None:
    """Shares as far off as they say: whitening allows for it."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 3))
    problem = drawn_problem(rng, "huber", 12, p)
    model = ExactModel(problem)
    model.move(np.ones(12))
    white = model.whitening(np.full(p, problem.alpha))
    design = problem.design
    A = np.column_stack([design.data, np.ones(12)]) if problem.fit_intercept else design.data
    H = (A.T * (problem.weights / problem.weights.sum())) @ A
    H[:p, :p] += problem.alpha * np.eye(p)
    within(white.basis.T @ H @ white.basis, white.looseness)


def test_shares_that_are_off(monkeypatch):
    from safesift.problem import problem as problems
    from safesift.problem.risk import WeightedRows

    def off(self):
        signs = np.where(np.arange(len(self.weights)) % 3 == 0, -1.0, 1.0)
        return self.weights / self.divisor * (1.0 + 0.9e-6 * signs)

    monkeypatch.setattr(WeightedRows, "shares", property(off))
    monkeypatch.setattr(problems, "SHARE_ERROR", 1e-6)
    assert not fails(law_shares_may_be_off, 100)
    monkeypatch.setattr(problems, "SHARE_ERROR", 0.0)
    assert fails(law_shares_may_be_off, 100)
