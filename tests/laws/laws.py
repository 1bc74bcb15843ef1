"""The laws of screening, as plain functions: Hypothesis calls them, and so do the mutation tests.

Each takes a recipe, builds the problem, and asserts. A reference solver that gives up makes a law
say nothing (`NotSolvedError`).
"""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np

import safesift as ss
from safesift import regions
from safesift.design import DenseDesign
from safesift.penalties import PENALTIES
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk
from safesift.regions.base import Region, TestSet
from safesift.regions.curvature import Tested
from safesift.regions.ellipsoidal import EllipsoidalSet, HalfSpace, Hull
from safesift.regions.shape import Shape
from tests.laws.definitions import written
from tests.laws.problems import Recipe, arrays, build, rough_point
from tests.laws.reference import (
    Optimum,
    dense_rows,
    least_value_within,
    objective,
    optimum,
    solve,
    some_optima,
)
from tests.laws.strategies import as_targets

STRONG = tuple(name for name in written(PENALTIES) if PENALTIES[name]().strong_convexity > 0)


def setting(recipe: Recipe) -> tuple[Problem, Optimum, Evaluation]:
    """A problem, its optimum, and an evaluation at a rough centre."""
    problem = build(recipe)
    best = optimum(problem)
    return problem, best, problem.evaluate(rough_point(problem, recipe, best.point))


def assert_contains(test_set: TestSet, point: np.ndarray, accuracy: float, why: str = "") -> None:
    """No direction separates point and set: random ones, axes, and the one to the centre."""
    rng = np.random.default_rng(0)
    d = len(point)
    towards = [point - member.center for member in members(test_set)]
    directions = np.vstack([np.eye(d), rng.normal(size=(20, d)), *towards, *[-t for t in towards]])
    lengths = np.linalg.norm(directions, axis=1)
    directions = directions[lengths > 0] / lengths[lengths > 0, None]
    lower, upper = test_set.bounds(DenseDesign(directions))
    values = directions @ point
    room = accuracy * (1.0 + np.linalg.norm(point)) + 1e-14 * np.linalg.norm(point)
    assert (values >= lower - room).all() and (values <= upper + room).all(), (
        f"{test_set.describe()} misses the optimum by "
        f"{max((lower - values).max(), (values - upper).max()):.3g} {why}"
    )


def members(test_set: TestSet) -> list[regions.EllipsoidalSet]:
    if isinstance(test_set, regions.Intersection | Hull):
        return [part for member in test_set.members for part in members(member)]
    if isinstance(test_set, Tested):
        return members(test_set.hull)
    return [test_set] if isinstance(test_set, regions.EllipsoidalSet) else []


# --- regions ------------------------------------------------------------------------------------


def law_region_contains_optimum(recipe: Recipe, region: Region) -> None:
    """A certified region contains the optimum, and its bounds the optimum's predictions."""
    problem, best, at = setting(recipe)
    region.validate(problem)
    test_set = region.build(problem.certify(at))
    if not test_set.certified:
        return
    if best.accuracy > 1e-7 and recipe.family in ("collinear", "duplicates"):
        # along a flat direction a conic solver's point says little: compare values instead
        least = least_value_within(problem, members(test_set))
        assert least <= best.value + 1e-8 * (1.0 + abs(best.value))
        return
    assert_contains(test_set, best.point, best.accuracy, repr(recipe))
    lower, upper = test_set.own_bounds(problem)
    pred = dense_rows(problem) @ best.point
    room = best.accuracy * (1.0 + np.linalg.norm(best.point)) * problem.design.row_norms + 1e-13
    assert (pred >= lower - room).all()
    assert (pred <= upper + room).all()


def law_region_contains_all_optima(recipe: Recipe, region: Region) -> None:
    """With several optima the region contains them all."""
    problem, best, at = setting(recipe)
    test_set = region.build(problem.certify(at))
    directions = np.random.default_rng(recipe.seed).normal(size=(3, len(best.point)))
    for point in some_optima(problem, best, directions):
        assert_contains(test_set, point, 1e-3, repr(recipe))


def law_gap_bounds_suboptimality(recipe: Recipe) -> None:
    """P(x) − P* ≤ gap, at any point."""
    problem, best, at = setting(recipe)
    gap = problem.certify(at).gap
    room = 1e-7 * (1 + abs(best.value)) if best.accuracy > 1e-7 else 1e-12 * (1 + abs(best.value))
    value = objective(problem, at.point)
    assert gap >= value - best.value - room, (gap, value - best.value)


def law_previous_alpha(recipe: Recipe, ratio: float) -> None:
    """The ball from the solution for another alpha contains the optimum."""
    problem, best, at = setting(recipe)
    other = replace(problem, alpha=problem.alpha * ratio)
    solved = optimum(other)
    gap = max(other.certify(other.evaluate(solved.point)).gap, 1e-14)
    region = regions.AlphaBall(solved.point, gap, alpha=other.alpha)
    region.validate(problem)
    assert_contains(region.build(problem.certify(at)), best.point, best.accuracy)


def law_edited_data(recipe: Recipe) -> None:
    """The ball from the solution for other data contains the optimum of the edited data."""
    problem, best, at = setting(recipe)
    n = problem.design.n_samples
    rng = np.random.default_rng(recipe.seed)
    added = rng.random(n) < 0.3
    added &= np.cumsum(~added) > 0
    rows = dense_rows(problem)
    extra = rng.normal(size=(2, rows.shape[1]))
    extra_y = as_targets(problem.loss, np.array([1.0, -1.0]))
    old_rows, old_y = np.vstack([rows[~added], extra]), np.concatenate([problem.y[~added], extra_y])
    old_weights = np.append(problem.weights[~added], [1.0, 1.0])
    old = replace(problem, risk=Risk.of(DenseDesign(old_rows), problem.loss, old_y, old_weights))
    solved = optimum(old)
    gap = max(old.certify(old.evaluate(solved.point)).gap, 1e-14)
    region = regions.EditBall(
        solved.point, gap,
        added=regions.Edit(rows[added], problem.y[added], problem.weights[added])
        if added.any() else None,
        removed=regions.Edit(extra, extra_y),
    )  # fmt: skip
    region.validate(problem)
    assert_contains(region.build(problem.certify(at)), best.point, best.accuracy)


def law_bounds_are_extrema(seed: int, depth: float | None) -> None:
    """Against a convex solver: bounds never tighter than the extrema, and not looser either."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    test_set = random_set(rng, d, depth)
    rows = rng.normal(size=(4, d))
    lower, upper = test_set.bounds(DenseDesign(rows))
    for row, low, high in zip(rows, lower, upper, strict=True):
        least, most = extremum(test_set, -row), extremum(test_set, row)
        assert high >= most - 1e-7
        assert low <= -least + 1e-7
        assert high <= most + 1e-5
        assert low >= -least - 1e-5


def random_set(rng, d, depth):
    """An ellipsoid in either form, maybe cut; `depth` relative to its width along the normal."""
    dense = bool(rng.integers(2))
    shape = Shape.ball(d, float(rng.uniform(0.2, 3)), dense)
    for _ in range(int(rng.integers(0, 4))):
        shape, coordinates, _ = shape.extended(rng.normal(size=d))
        image = shape.factor.T @ coordinates
        if np.linalg.norm(image) > 0:
            shape = shape.squeezed(image / np.linalg.norm(image), *rng.uniform(0.3, 1.2, 2))
    cut = None
    if depth is not None:
        normal = rng.normal(size=d)
        width = np.linalg.norm(shape.transpose_product(normal))
        cut = HalfSpace(normal, depth * width)
    return EllipsoidalSet(rng.normal(size=d), shape, slack=0.0, cut=cut)


def extremum(test_set, row):
    """max rowᵀx over the set, by a conic solver, from E and the cut alone."""
    eigenvalues, vectors = np.linalg.eigh(test_set.shape.matrix())
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    u = cp.Variable(len(row))
    constraints = [cp.norm2(u) <= 1]
    if test_set.cut is not None:
        constraints.append((test_set.cut.normal @ root) @ u <= -test_set.cut.depth + 1e-12)
    program = cp.Problem(cp.Maximize((row @ root) @ u), constraints)
    solve(program)
    return float(row @ test_set.center + program.value)


# --- decisions ----------------------------------------------------------------------------------


def screened(recipe: Recipe, best: Optimum, region: Region | str = "auto", **more):
    X, y, arguments = arrays(recipe)
    problem = build(recipe)
    coef, intercept = problem.split(rough_point(problem, recipe, best.point))
    return ss.screen(
        X, y, **arguments, coef=coef, intercept=intercept, screening=region, fold="always", **more
    )


def law_decided_rows_are_on_their_piece(recipe: Recipe, region: Region | str = "auto") -> None:
    """At the optimum every decided sample lies on the piece it was decided for."""
    best = optimum(build(recipe))
    result = screened(recipe, best, region)
    if not result.certified:
        return
    decisions = result.decisions
    pred = dense_rows(result.problem) @ best.point
    room = best.accuracy * (1.0 + np.linalg.norm(best.point)) * result.problem.design.row_norms
    decided = ~result.undecided
    assert (pred[decided] >= decisions.lower[decided] - room[decided] - 1e-13).all()
    assert (pred[decided] <= decisions.upper[decided] + room[decided] + 1e-13).all()


def law_reduced_solution_is_optimal(recipe: Recipe, region: Region | str = "auto") -> None:
    """Any solution of the reduced problem is optimal for the full one."""
    best = optimum(build(recipe))
    result = screened(recipe, best, region)
    reduced = result.reduced
    assert reduced.divisor == result.problem.weights.sum()
    solution = optimum(reduced)
    room = 1e-7 * (1.0 + abs(best.value)) if max(best.accuracy, solution.accuracy) > 1e-7 else 1e-11
    assert objective(result.problem, solution.point) <= best.value + room
    assert abs(solution.value - best.value) <= room


def law_every_reduced_solution_is_optimal(recipe: Recipe, region: Region | str = "auto") -> None:
    """Where the reduced problem has several solutions, each is optimal for the full one."""
    best = optimum(build(recipe))
    reduced = screened(recipe, best, region).reduced
    problem = build(recipe)
    directions = np.random.default_rng(recipe.seed).normal(size=(3, len(best.point)))
    for point in some_optima(reduced, optimum(reduced), directions):
        assert objective(problem, point) <= best.value + 1e-5 * (1.0 + abs(best.value))


def steady_region(recipe: Recipe) -> Region:
    """A region whose bounds depend continuously on rounding: few steps, no chaos."""
    if recipe.penalty in STRONG and not recipe.intercept:
        return regions.HalfSpaceCut(regions.GapBall())
    return regions.Ellipsoid(n_steps=2)


def law_weights_are_repetitions(recipe: Recipe) -> None:
    """Weight 0 is removal, weight 2 is repetition: same bounds, same decisions for the rows."""
    X, y, arguments = arrays(replace(recipe, sparse=False, weighted=False))
    rng = np.random.default_rng(recipe.seed)
    counts = rng.integers(0, 3, len(y))
    counts[np.unique(y, axis=0, return_index=True)[1]] = 2
    rows = np.repeat(np.arange(len(y)), counts)
    loss = arguments.pop("loss")
    arguments["screening"] = steady_region(recipe)
    arguments.pop("sample_weight")
    coef = rng.normal(size=X.shape[1])
    weighted = ss.screen(
        X, y, loss=loss, **arguments, coef=coef, sample_weight=counts.astype(float)
    )
    repeated = ss.screen(X[rows], y[rows], loss=loss.take(rows), **arguments, coef=coef)
    assert not weighted.kept[counts == 0].any()
    scale = 1.0 + np.abs(repeated.lower)
    np.testing.assert_allclose(weighted.lower[rows] / scale, repeated.lower / scale, atol=1e-5)
    np.testing.assert_allclose(weighted.upper[rows] / scale, repeated.upper / scale, atol=1e-5)
    np.testing.assert_allclose(weighted.gap, repeated.gap, rtol=1e-6, atol=1e-10)


def law_permutation_and_storage(recipe: Recipe) -> None:
    """Permuting rows permutes the result; dense and sparse, C and Fortran order agree."""
    dense = replace(recipe, sparse=False)
    X, y, arguments = arrays(dense)
    rng = np.random.default_rng(recipe.seed)
    coef = rng.normal(size=X.shape[1])
    order = rng.permutation(len(y))
    arguments["screening"] = steady_region(recipe)
    loss, weight = arguments.pop("loss"), arguments.pop("sample_weight")
    plain = ss.screen(X, y, loss=loss, sample_weight=weight, **arguments, coef=coef)
    moved = ss.screen(
        X[order], y[order], loss=loss.take(order), **arguments, coef=coef,
        sample_weight=None if weight is None else weight[order],
    )  # fmt: skip
    X_sparse, _, _ = arrays(replace(recipe, sparse=True))
    others = [
        ss.screen(Z, y, loss=loss, sample_weight=weight, **arguments, coef=coef)
        for Z in (X_sparse, X_sparse.tocsc(), X_sparse.tocoo(), np.asfortranarray(X))
    ]
    for other, rows in [(moved, order), *[(other, slice(None)) for other in others]]:
        scale = 1.0 + np.abs(plain.lower[rows])
        np.testing.assert_allclose(other.lower / scale, plain.lower[rows] / scale, atol=1e-5)
        np.testing.assert_allclose(other.upper / scale, plain.upper[rows] / scale, atol=1e-5)
