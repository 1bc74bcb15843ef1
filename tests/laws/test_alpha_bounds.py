"""Bounds for all alphas between two: no optimum is outside, and every mistake shows."""

from __future__ import annotations

import numpy as np
import pytest

from safesift.problem.inputs import make_problems
from safesift.solvers.driver import solve
from safesift.workflows import alpha_bounds
from safesift.workflows.leaving_out import gradients
from safesift.workflows.leaving_out.base import base_at
from tests.laws.test_leaving_out_mutations import mistaken

LOSSES = {
    "squared_hinge": "labels", "smoothed_hinge": "labels", "logistic": "labels",
    "huber": "numbers", "squared": "numbers", "squared_epsilon_insensitive": "numbers",
}  # fmt: skip
# ratios of the ends of stretches: as they come in a search, and so long that bounds are long, too
RATIOS = (1.0, 1.0 + 1e-6, 1.05, 1.5, 4.0, 8.0)


def small_problem(seed: int, loss: str):
    """Few samples, some of them twice and of any weight, so that each of them matters."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(4, 14)), int(rng.choice([1, 1, 2, 3]))
    X = np.round(rng.normal(size=(n, p)), int(rng.integers(0, 4)))
    X[-1] = X[0]
    score = X[:, 0] + rng.normal(size=n)
    y = np.where(score > 0, 1, -1) if LOSSES[loss] == "labels" else score
    if LOSSES[loss] == "labels":
        y[:2] = 1, -1
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
    weights[:4] = 1.0
    return make_problems(
        X, y, loss=loss, penalty="l2", alpha=10.0 ** rng.uniform(-3, 0), sample_weight=weights,
        fit_intercept=bool(seed % 2),
    ).problem  # fmt: skip


def check_between(seed: int, loss: str) -> int:
    """How many stretches were bounded: every optimum in between is as near to the line as said."""
    rng = np.random.default_rng(seed + 1000)
    problem = small_problem(seed, loss)
    nearby = alpha_bounds.Nearby.of(problem, solve(problem, tol=1e-3).at.point)
    if nearby is None:
        return 0
    ratios = rng.permutation(RATIOS)
    starts = problem.alpha * 4.0 ** rng.uniform(-1, 0.5, len(ratios))
    stretches = [(float(a), float(a * r)) for a, r in zip(starts, ratios, strict=True)]
    found = nearby.between(stretches)
    bounded = [(k, one) for k, one in enumerate(found.bounds) if one is not None]
    for k, bounds in bounded:
        low, high = stretches[k]
        ends = found.pred[:, np.searchsorted(found.alphas, [low, high])]
        room = np.minimum(bounds.upper - ends.max(axis=1), ends.min(axis=1) - bounds.lower)
        for share in (0.0, 0.5):
            # every optimum is near the straight line between both models
            alpha, middle = low + share * (high - low), ends @ (1.0 - share, share)
            level = problem.at_level(alpha)
            exact = base_at(level, solve(level, tol=1e-10).at.point)
            if exact is None:
                continue
            loose = exact.z_norms * (np.linalg.norm(exact.image) + exact.image_error)
            loose = 2.0 * loose + exact.pred_error
            assert (np.abs(exact.at.pred - middle) <= room + loose).all(), (seed, loss, k, share)
    return len(bounded)


@pytest.mark.parametrize("loss", LOSSES)
def test_optima_of_all_alphas_are_inside(loss):
    assert sum(check_between(seed, loss) for seed in range(12)) > 24


MISTAKES = {
    "gradients at the ends forgotten": (
        alpha_bounds, "plain = gradients[places].max(axis=1) + ridges", "plain = ridges",
    ),
    "the alphas' own chord forgotten": (
        alpha_bounds, "plain = gradients[places].max(axis=1) + ridges",
        "plain = gradients[places].max(axis=1)",
    ),
    "changes of pieces forgotten": (
        alpha_bounds, "sups = (plain + 0.25 * kinks)", "sups = (plain + 0.0 * kinks)",
    ),
    "an eighth in place of a quarter": (
        alpha_bounds, "return 0.25 * (alphas[high] - alphas[low])",
        "return 0.125 * (alphas[high] - alphas[low])",
    ),
    "curvature that is lost forgotten": (
        alpha_bounds, "kept = whole - self._largest(", "kept = whole - 0.0 * self._largest(",
    ),
    "the smaller alpha forgotten": (
        alpha_bounds, "whole = 1.0 - base.looseness - shrunk", "whole = 1.0 - base.looseness - 0.0",
    ),
    "one end in place of both": (
        alpha_bounds, "np.minimum(lowest[:, low], lowest[:, high])", "lowest[:, high]",
    ),
    "no room around the predictions": (
        alpha_bounds, "room = self.base.z_norms * (one.gradient", "room = 0.0 * (one.gradient",
    ),
    "alpha not moved": (
        gradients, "problem.strong_convexity + shifts", "problem.strong_convexity + 0.0 * shifts",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_noticed(name):
    with mistaken(*MISTAKES[name]), pytest.raises(AssertionError):
        for seed in range(60):
            for loss in ("squared_hinge", "huber", "logistic", "squared"):
                check_between(seed, loss)
