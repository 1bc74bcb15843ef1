"""Every public object prints in a few lines, and every result says which model it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import safesift as ss
from safesift import solvers

MOST_LINES, MOST_CHARACTERS = 10, 1000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(1500, 5))
Y = X[:, 0] + 0.3 * RNG.normal(size=1500)
LABELS = np.where(Y > 0, "ok", "fraud")
THREE = np.digitize(Y, [-0.5, 0.5])


def _repaired() -> Any:
    def solve(problem):
        found = solvers.solve(problem)
        return found.coef, found.intercept

    return ss.solve_and_repair(ss.screen(X, LABELS, alpha=1e-2), solve)


RESULTS = {
    "screen": lambda: ss.screen(X, LABELS, alpha=1e-2),
    "screen of three classes": lambda: ss.screen(X, THREE, alpha=1e-2),
    "screen by an ellipsoid": lambda: ss.screen(X, LABELS, alpha=1e-2, screening="ellipsoid"),
    "screen with l1": lambda: ss.screen(X, LABELS, alpha=1e-2, penalty="l1"),
    "screen that proves little": lambda: ss.screen(X, LABELS, loss="logistic"),
    "screen_range": lambda: ss.screen_range(X, LABELS, alpha_range=(1e-2, 1.1e-2)),
    "safe_path": lambda: ss.safe_path(X, LABELS, n_alphas=5),
    "safe_kernel_path": lambda: ss.safe_kernel_path(X[:200], LABELS[:200], alphas=[0.1, 0.01]),
    "rank_samples": lambda: ss.rank_samples(X, LABELS),
    "compress": lambda: ss.compress(X, LABELS, n_keep=20),
    "compression_curve": lambda: ss.compression_curve(
        X, LABELS, n_repeats=2, fractions=[0.2, 0.5, 0.7, 0.8, 0.9, 0.95]
    ),
    "mine_hard": lambda: ss.mine_hard(
        X, ss.SafeClassifier(alpha=1e-2).fit(X[:100], LABELS[:100]), X[:100], LABELS[:100],
        label="ok",
    ),
    "mu_for_fraction": lambda: ss.mu_for_fraction(X, Y, loss="squared", fraction=0.5),
    "objective_bounds": lambda: ss.objective_bounds(X, Y, loss="squared"),
    "solve_and_repair": _repaired,
}  # fmt: skip
OTHERS = {
    "a classifier": lambda: ss.SafeClassifier(alpha=1e-2).fit(X, LABELS),
    "a cross-validation": lambda: ss.SafeClassifierCV(3, cv=2).fit(X, LABELS),
    "a kernel machine": lambda: ss.SafeKernelClassifier().fit(X[:200], LABELS[:200]),
    "a tracker": lambda: ss.SafeTracker(ss.SafeClassifier()).fit(X, LABELS),
    "a loss with a number per sample": lambda: ss.losses.EpsilonInsensitive(np.ones(1500)),
    "a safe loss": lambda: ss.make_safe("logistic", omega="entropy"),
}


def reachable(value: Any, depth: int, name: str = "") -> Iterator[tuple[str, Any]]:
    """What public attributes lead to, as far as it is ours."""
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        for place, item in enumerate(value[:2]):
            yield from reachable(item, depth, f"{name}[{place}]")
        return
    if not type(value).__module__.startswith("safesift"):
        return
    yield name, value
    for attribute in dir(value) if depth else ():
        # what estimators learn is theirs; bound methods lead nowhere
        if not attribute.startswith("_") and not isinstance(value, BaseEstimator):
            try:
                found = getattr(value, attribute)
            except (AttributeError, NotImplementedError):
                continue
            yield from reachable(found, depth - 1, f"{name}.{attribute}")


@pytest.mark.parametrize("name", [*RESULTS, *OTHERS])
def test_everything_prints_in_a_few_lines(name):
    for path, value in reachable((RESULTS | OTHERS)[name](), 3):
        text = repr(value)
        assert len(text) <= MOST_CHARACTERS, (path, type(value), len(text))
        assert text.count("\n") < MOST_LINES, (path, type(value))


@pytest.mark.parametrize("name", RESULTS)
def test_results_name_their_model(name):
    result = RESULTS[name]()
    lines = result.summary().splitlines()
    text = "\n".join(lines)
    assert len(lines) <= MOST_LINES
    assert any(loss in text.lower() for loss in ("squared", "logistic"))
    assert "intercept" in text
    assert "alpha" in text
