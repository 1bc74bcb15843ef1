"""No hidden copy of the data: what a fit allocates, beside the size of a float64 copy."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

from safesift import safe_path
from safesift.problem.inputs import make_problems
from safesift.solvers import Screening, Settings, solve_path

pytestmark = pytest.mark.slow

# far more than a block that is converted at a time
ROWS, COLUMNS = 40_000, 400


def rows_and_labels() -> tuple[np.ndarray, np.ndarray]:
    """Mostly easy rows, so that few are kept, in float32."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    X /= np.sqrt(np.float32(COLUMNS))
    signal = X @ rng.standard_normal(COLUMNS).astype(np.float32)
    return X, np.where(signal + 0.1 * rng.standard_normal(ROWS) > 0, 1.0, -1.0)


@pytest.mark.parametrize(("order", "screening"), [("C", "auto"), ("F", None)])
def test_single_precision_is_never_copied_whole(order, screening):
    """At most the kept rows as they are, and numbers per row: a float64 copy is twice the data."""
    X, y = rows_and_labels()
    X = np.asarray(X, order=order)
    problem = make_problems(
        X, y, loss="squared_hinge", penalty="l2", alpha=1e-2, fit_intercept=False
    ).problem
    levels = [[problem.at_level(alpha)] for alpha in (1e-2, 3e-3, 1e-3)]
    tracemalloc.start()
    try:
        fits = [
            fit
            for (fit,) in solve_path(levels, Settings(tol=1e-4, screening=Screening.of(screening)))
        ]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert all(fit.converged for fit in fits)
    kept_rows = max(int(fit.kept.sum()) for fit in fits) * COLUMNS * X.itemsize
    assert peak < kept_rows + 0.75 * X.nbytes


@pytest.mark.parametrize(
    ("loss", "most"), [("squared_hinge", 17), ("squared_epsilon_insensitive", 23)]
)
def test_of_narrow_rows_some_vectors_are_held(loss, most):
    """Targets, weights, norms, two points, how far predictions moved; no pieces of the losses."""
    rng, n = np.random.default_rng(0), 400_000
    X = rng.standard_normal((n, 8), dtype=np.float32)
    signal = X @ rng.standard_normal(8).astype(np.float32) + rng.standard_normal(n)
    y = np.sign(signal) if loss == "squared_hinge" else signal

    def path(rows):
        return safe_path(
            X[rows], y[rows], loss=loss, penalty="l2", fit_intercept=False,
            alphas=np.geomspace(1e-3, 1e-5, 4),
        )  # fmt: skip

    path(slice(5000))  # modules, and what is compiled
    tracemalloc.start()
    try:
        path(slice(None))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most * 8 * n


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("squared_hinge", "l2"), ("squared_hinge", "l1"), ("hinge", "l2"), ("logistic", "l2"),
     ("safe_logistic", "l1")],
)  # fmt: skip
def test_nothing_waits_for_the_collector(loss, penalty, intercept):
    """Who holds himself holds his rows and matrices until it comes: on a path, all of them."""
    X, y = rows_and_labels()

    def path():
        return safe_path(
            X[:3000], y[:3000], loss=loss, penalty=penalty, fit_intercept=intercept,
            alphas=np.geomspace(1e-2, 1e-4, 4),
        )  # fmt: skip

    path()  # modules, and what is compiled
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        result = path()
        gc.collect()
        found = {type(one).__qualname__ for one in gc.garbage if _is_ours(one)}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert len(result.alphas) == 4 and not found


def _is_ours(one: object) -> bool:
    return type(one).__module__.startswith("safesift")
