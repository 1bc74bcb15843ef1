"""The best constant model, to whose objective gaps are relative."""

from __future__ import annotations

import numpy as np
import pytest

from safesift.design import as_design
from safesift.losses import LOSSES
from safesift.problem.evaluation import Quadratic
from safesift.problem.risk import Risk, best_constant

# of the targets: how far from zero, how much they spread, and outliers
KINDS = [(0.0, 1.0, False), (1e8, 1.0, False), (-3.0, 1e-6, False), (5.0, 100.0, True)]


def risk_of(loss: str, kind: int, n: int = 60) -> Risk:
    offset, spread, outliers = KINDS[kind]
    rng = np.random.default_rng(kind)
    y = offset + spread * rng.normal(size=n)
    if outliers:
        y[:3] *= 1e9
    if LOSSES[loss].task == "classification":
        y = np.where(rng.random(n) < (0.5, 0.1, 0.9, 0.3)[kind], 1.0, -1.0)
    if LOSSES[loss].task == "interval":
        y = np.stack([y, y + spread * rng.random(n)], axis=1)
    return Risk.of(as_design(np.ones((n, 1)), True), LOSSES[loss](), y, rng.random(n) + 0.1)


def objective(risk: Risk, at: float) -> float:
    losses = risk.targets.loss.value(np.full(len(risk.shares), at), risk.targets.y)
    return float(risk.shares @ losses)


@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize("loss", LOSSES)
def test_no_other_constant_is_better(loss, kind):
    """Near it, as far away as targets spread, and at every target, where kinks are."""
    risk = risk_of(loss, kind)
    found = risk.best_constant
    assert found.value == pytest.approx(objective(risk, found.intercept), rel=1e-6, abs=1e-12)
    spread = KINDS[kind][1]
    steps = spread * np.concatenate([-np.geomspace(1e-6, 10, 30), np.geomspace(1e-6, 10, 30)])
    ends = np.ravel(risk.targets.y) if risk.targets.loss.task != "classification" else [-1.0, 1.0]
    for at in (*(found.intercept + steps), *ends):
        assert found.value <= objective(risk, at) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "huber"])
def test_what_is_folded_away_counts(loss):
    """½·Q·c² + q·c pulls the constant to where the sum of all slopes is zero."""
    risk = risk_of(loss, 0)
    folded = Quadratic(np.array([0.0, 0.7]), 0.25, np.diag([0.0, 2.0]))
    found = best_constant(risk, folded)
    nu = risk.targets.loss.slope(np.full(len(risk.shares), found.intercept), risk.targets.y)
    assert float(risk.shares @ nu) + 2.0 * found.intercept + 0.7 == pytest.approx(0.0, abs=1e-12)
    point = np.array([0.0, found.intercept])
    assert found.value == pytest.approx(objective(risk, found.intercept) + folded.value(point))


@pytest.mark.parametrize("loss", [name for name in LOSSES if LOSSES[name].task == "regression"])
@pytest.mark.parametrize(
    "y",
    [[-1.049e-320, 1.1467e-320, 1.068e-320], [1e-310, 3e-310, -2e-310], [8e307, -8e307, 1e307],
     [-9e307, 9e307, 9e307], [1.5e308, -1.5e308, 0.0]],
)  # fmt: skip
def test_it_ends_where_arithmetic_does(loss, y):
    """Denormal steps, infinite differences, slopes that overflow: a number all the same."""
    y = np.array(y)
    risk = Risk.of(as_design(np.ones((3, 1)), True), LOSSES[loss](), y, np.ones(3))
    found = risk.best_constant
    assert y.min() <= found.intercept <= y.max()


def test_it_looks_at_the_targets_a_few_times_only(monkeypatch):
    calls = []
    loss = type(LOSSES["squared_epsilon_insensitive"]())
    slope = loss.slope
    monkeypatch.setattr(loss, "slope", lambda self, *args: calls.append(1) or slope(self, *args))
    y = np.random.default_rng(0).normal(size=2000)
    _ = Risk.of(as_design(np.ones((2000, 1)), True), loss(), y, np.ones(2000)).best_constant
    assert len(calls) <= 20
