"""The laws of kernel machines, as plain functions.

The reference is the linear problem on rows whose products are the kernel matrix, solved by an
independent solver; the kernel side never sees those rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

import safesift as ss
from safesift.design import as_design
from safesift.design.kernels import KernelChoice
from safesift.problem.decisions import Bounds
from safesift.problem.evaluation import Evaluation
from safesift.problem.inputs import make_problems, on_kernel
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk, WeightedRows
from safesift.regions.ball import Balls
from safesift.regions.kernel_curvature import curvature_set
from safesift.solvers import Screening, Settings
from safesift.solvers import solve_path as kernel_path
from safesift.solvers.kernel_working_sets import KERNEL_REGIONS
from tests.laws.problems import Recipe, arrays
from tests.laws.reference import Optimum, dense_rows, optimum

KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.3},
    "poly": {"gamma": 0.5, "degree": 2, "coef0": 1.0},
    "laplacian": {"gamma": 0.2},
    "cosine": {},
}


@dataclass(frozen=True, eq=False)
class Setting:
    """A kernel problem, its matrix, and the optimum of its linear twin.

    Attributes
    ----------
    predictions : array
        At the optimum.
    room : array
        How far they may be from those of a true one.
    """

    problem: Problem
    K: np.ndarray
    best: Optimum
    predictions: np.ndarray
    room: np.ndarray


def setting(recipe: Recipe, kernel: str) -> Setting:
    X, y, arguments = arrays(recipe)
    linear = make_problems(X, y, **arguments).problem
    problem = with_kernel(linear, X, kernel)
    exact = X.astype(np.float64)
    K = pairwise_kernels(exact, metric=kernel, **KERNELS[kernel])
    K = np.asarray(K.todense() if hasattr(K, "todense") else K)
    K = 0.5 * (K + K.T)
    rows = as_design(ss.kernel_rows(K, negligible=1e-14), linear.fit_intercept)
    twin = replace(linear, risk=linear.risk.on(rows))
    best = optimum(twin)
    rows = dense_rows(twin)
    norms = np.linalg.norm(rows, axis=1)
    room = (best.accuracy * (1.0 + np.linalg.norm(best.point)) + 1e-10) * (1.0 + norms)
    return Setting(problem, K, best, rows @ best.point, room)


def with_kernel(linear: Problem, X, kernel: str) -> Problem:
    parameters = KERNELS[kernel]
    chosen = KernelChoice(kernel, **parameters).of(X, parameters.get("gamma"))
    return on_kernel([linear], chosen, memory=10_000_000)[0]


def objective(at: Setting, point: np.ndarray) -> float:
    """P of coordinates and intercept, from its definition."""
    problem = at.problem
    beta, intercept = problem.split(point)
    losses = problem.loss.value(at.K @ beta + intercept, problem.y)
    mean = problem.weights @ losses / problem.divisor
    return float(mean + 0.5 * problem.alpha * beta @ at.K @ beta)


def rough(at: Setting, recipe: Recipe) -> Evaluation:
    """An evaluation at a random distance from the optimum."""
    rng = np.random.default_rng([recipe.seed, 77])
    problem = at.problem
    ((fit,),) = kernel_path([[problem]], Settings(tol=1e-10))
    size = float(rng.choice([0.0, 1e-8, 1e-5, 1e-3, 1e-2, 0.1, 1.0]))
    noise = rng.normal(size=len(fit.at.point))
    point = fit.at.point * (1.0 + size * noise)
    return problem.evaluate(point)


def law_gap_is_true(recipe: Recipe, kernel: str) -> None:
    """P at the solution is at most the gap above that of the twin's optimum, and near it."""
    at = setting(recipe, kernel)
    ((fit,),) = kernel_path([[at.problem]], Settings(tol=1e-7))
    value = objective(at, fit.at.point)
    scale = 1.0 + abs(at.best.value)
    room = 1e-7 * scale if at.best.accuracy > 1e-7 else 1e-9 * scale
    assert value <= at.best.value + fit.gap + room
    assert abs(value - fit.at.value) <= 1e-9 * scale
    far = rough(at, recipe)
    assert objective(at, far.point) <= at.best.value + at.problem.certify(far).gap + room


def law_reaches_its_tolerance(recipe: Recipe, kernel: str) -> None:
    """The gap falls below the tolerance, unless the targets are all but constant."""
    X, y, arguments = arrays(recipe)
    problem = with_kernel(make_problems(X, y, **arguments).problem, X, kernel)
    ((fit,),) = kernel_path([[problem]], Settings(tol=1e-6))
    assert fit.converged or fit.certificate.reference < 1e-9, recipe


def law_bounds_contain_the_optimum(recipe: Recipe, kernel: str, curvature: bool) -> None:
    """Bounds from a rough point hold for the predictions at the optimum."""
    at = setting(recipe, kernel)
    here, problem = rough(at, recipe), at.problem
    bounds = Bounds.unknown(len(problem.y))
    if not curvature:
        bounds = Balls().build(problem.certify(here)).own_bounds(problem)
    else:
        every = np.ones(len(problem.y), dtype=bool)
        found = curvature_set(problem.certify(here), bounds, every)
        bounds = bounds if found is None else found.own_bounds(problem)
    assert (at.predictions >= bounds.lower - at.room).all(), recipe
    assert (at.predictions <= bounds.upper + at.room).all(), recipe


def law_decided_on_their_piece(recipe: Recipe, kernel: str, screening: str) -> None:
    """What is decided while solving, to whatever gap, holds at the optimum."""
    at = setting(recipe, kernel)
    for tol in (0.3, 1e-2, 1e-4, 1e-8):
        settings = Settings(tol=tol, screening=Screening.of(screening, KERNEL_REGIONS))
        ((fit,),) = kernel_path([[at.problem]], settings)
        decisions = fit.decisions
        decided = ~decisions.undecided & (at.problem.weights > 0)
        assert (at.predictions >= decisions.lower - at.room)[decided].all(), recipe
        assert (at.predictions <= decisions.upper + at.room)[decided].all(), recipe


def law_dropping_changes_nothing(recipe: Recipe, kernel: str) -> None:
    """Without the dropped samples the model is the same, within what both gaps allow."""
    at = setting(replace(recipe, intercept=False), kernel)
    ((fit,),) = kernel_path([[at.problem]], Settings(tol=1e-9))
    kept = np.flatnonzero(fit.kept)
    if not kept.size:
        return
    X, _, _ = arrays(recipe)
    whole = at.problem
    rows = WeightedRows(as_design(X[kept]), whole.weights[kept], whole.divisor)
    part = replace(whole, risk=Risk(rows, whole.risk.targets.take(kept)))
    ((again,),) = kernel_path([[with_kernel(part, X[kept], kernel)]], Settings(tol=1e-9))
    difference = -fit.coef
    difference[kept] += again.coef
    distance = np.sqrt(max(difference @ at.K @ difference, 0.0))
    reach = sum(np.sqrt(2.0 * f.gap / whole.alpha) for f in (fit, again))
    assert distance <= 1.01 * reach + 1e-6, recipe
