"""Every region contains every optimum, and its bounds are the true extrema over it."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from safesift import regions
from safesift.design import DenseDesign
from safesift.regions.ellipsoidal import EllipsoidalSet, HalfSpace
from safesift.regions.shape import Shape
from tests.laws import laws
from tests.laws.problems import recipes
from tests.laws.reference import NotSolvedError

Ellipsoid, Cut = regions.Ellipsoid, regions.HalfSpaceCut

# regions that need strong convexity in all coordinates
BALLS = [
    regions.GapBall(),
    regions.GradientBall(),
    Cut(regions.GapBall(), "central"),
    Cut(regions.GapBall(), "deep"),
    Cut(regions.GradientBall(), "deep"),
]
# regions for every problem
GENERAL = [
    regions.NormBall(),
    Cut(regions.NormBall(), "deep"),
    Ellipsoid(n_steps=1),
    Ellipsoid(n_steps=7, depth="central", form="dense"),
    Ellipsoid(n_steps=30, form="low_rank"),
    Ellipsoid(n_steps=30, start="norm_ball"),
    Cut(Ellipsoid(n_steps=12), "central"),
    regions.Auto(),
]


def decided(law, *arguments):
    """Run a law; where the reference solver gave up there is no verdict."""
    try:
        law(*arguments)
    except NotSolvedError:
        assume(False)


@pytest.mark.parametrize("region", BALLS, ids=repr)
@given(recipe=recipes(penalty=laws.STRONG, intercept=False))
def test_balls_contain_the_optimum(region, recipe):
    decided(laws.law_region_contains_optimum, recipe, region)


@pytest.mark.parametrize("region", [regions.ObjectiveBall()], ids=repr)
@given(recipe=recipes(penalty=laws.STRONG))
def test_objective_ball_contains_the_optimum(region, recipe):
    decided(laws.law_region_contains_optimum, recipe, region)


@pytest.mark.parametrize("region", GENERAL, ids=repr)
@given(recipe=recipes())
def test_general_regions_contain_the_optimum(region, recipe):
    decided(laws.law_region_contains_optimum, recipe, region)


@pytest.mark.parametrize("region", [regions.NormBall(), Ellipsoid(n_steps=25)], ids=repr)
@given(recipe=recipes(penalty=("l1", "l1_ball", "l2_ball"), family="duplicates", intercept=False))
def test_regions_contain_all_optima(region, recipe):
    decided(laws.law_region_contains_all_optima, recipe, region)


@given(recipe=recipes())
def test_gap_bounds_suboptimality(recipe):
    decided(laws.law_gap_bounds_suboptimality, recipe)


@given(recipe=recipes(penalty=("l2",), intercept=False), ratio=st.floats(0.3, 3))
def test_solution_for_another_alpha(recipe, ratio):
    decided(laws.law_previous_alpha, recipe, ratio)


@given(
    recipe=recipes(
        loss=("squared_hinge", "hinge", "logistic", "safe_logistic", "squared", "huber"),
        penalty=("l2",),
        intercept=False,
    )
)
def test_solution_for_edited_data(recipe):
    decided(laws.law_edited_data, recipe)


@given(seed=st.integers(0, 2**32 - 1), depth=st.sampled_from([None, -0.5, 0.0, 0.3, 0.9, 1.0]))
def test_bounds_are_the_extrema_over_the_set(seed, depth):
    """Against a convex solver: never tighter than the true extremum, and not looser either."""
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
    program.solve(solver=cp.CLARABEL)
    assume(program.status == cp.OPTIMAL)
    return float(row @ test_set.center + program.value)
