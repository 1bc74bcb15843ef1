"""Kernel machines are optimal to what their gap says, and their regions contain every optimum."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.design.kernel import GramColumns, KernelDesign
from safesift.losses import LOSSES
from safesift.problem.duality import Dual
from safesift.problem.risk import WeightedRows
from safesift.regions import intercept
from safesift.regions import kernel_curvature as curvature
from safesift.regions.ball import GapBall
from safesift.solvers import kernel_rounds
from safesift.solvers.kernel_block import Block
from tests.laws import kernel_laws as laws
from tests.laws.problems import FAMILIES, Recipe, recipes
from tests.laws.reference import NotSolvedError
from tests.laws.strategies import KINKED_NAMES, SMOOTH_NAMES, examples

kernels = st.sampled_from(sorted(laws.KERNELS))


def drawn(**fixed) -> st.SearchStrategy[Recipe]:
    return recipes(penalty=["l2"], **fixed)


@examples(0.8)
@given(recipe=drawn(), kernel=kernels)
def test_the_gap_is_the_truth(recipe, kernel):
    with contextlib.suppress(NotSolvedError):
        laws.law_gap_is_true(recipe, kernel)


@examples(0.5)
@given(recipe=drawn(), kernel=kernels)
def test_the_tolerance_is_reached(recipe, kernel):
    laws.law_reaches_its_tolerance(recipe, kernel)


@pytest.mark.parametrize("most", [6, 10**6])
@examples(0.5)
@given(recipe=drawn(), kernel=kernels)
def test_working_sets_of_a_few_samples_are_enough(most, recipe, kernel):
    """Even where not all samples that carry the model fit into one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_rounds, "_FIRST", 3)
        patch.setattr(kernel_rounds, "_JOINING", 2)
        patch.setattr(kernel_rounds, "SMALL", 0)
        patch.setattr(GramColumns, "largest_block", most)
        with contextlib.suppress(NotSolvedError):
            laws.law_gap_is_true(recipe, kernel)


@examples(0.8)
@given(recipe=drawn(), kernel=kernels)
def test_the_ball_contains_the_optimum(recipe, kernel):
    with contextlib.suppress(NotSolvedError):
        laws.law_bounds_contain_the_optimum(recipe, kernel, curvature=False)


@examples(1.0)
@given(recipe=drawn(loss=SMOOTH_NAMES), kernel=kernels)
def test_the_curvature_region_contains_the_optimum(recipe, kernel):
    with contextlib.suppress(NotSolvedError):
        laws.law_bounds_contain_the_optimum(recipe, kernel, curvature=True)


@examples(0.5)
@given(recipe=drawn(), kernel=kernels, screening=st.sampled_from(["auto", "curvature"]))
def test_decided_samples_are_on_their_piece(recipe, kernel, screening):
    with contextlib.suppress(NotSolvedError):
        laws.law_decided_on_their_piece(recipe, kernel, screening)


@examples(0.5)
@given(recipe=drawn(), kernel=kernels)
def test_dropping_changes_nothing(recipe, kernel):
    with contextlib.suppress(NotSolvedError):
        laws.law_dropping_changes_nothing(recipe, kernel)


def test_every_loss_is_solved():
    assert set(SMOOTH_NAMES) | set(KINKED_NAMES) == set(LOSSES)
    for name in LOSSES:
        laws.law_gap_is_true(Recipe(name, "l2", intercept=True, seed=3), "rbf")


# --- the laws can fail ----------------------------------------------------------------------------


def as_it_is(dual, ray):
    """In place of `Dual._cancel`."""
    yield from ()
    return ray


def fails(law, *arguments, n=36, **fields) -> bool:
    for seed in range(n):
        recipe = Recipe(penalty="l2", family=FAMILIES[seed % len(FAMILIES)], seed=seed, **fields)
        try:
            law(recipe, ("rbf", "poly", "linear")[seed % 3], *arguments)
        except NotSolvedError:
            continue
        except AssertionError:
            return True
    return False


def check_mutation(mutate, law, *arguments, **fields) -> None:
    assert not fails(law, *arguments, **fields)
    mutate()
    assert fails(law, *arguments, **fields)


def test_mutation_smaller_ball(monkeypatch):
    whole = GapBall.ball

    def smaller(self, certificate):
        return whole(self, replace(certificate, gap=0.01 * certificate.gap))

    check_mutation(
        lambda: monkeypatch.setattr(GapBall, "ball", smaller),
        laws.law_bounds_contain_the_optimum,
        False,
        loss="hinge",
    )


def test_mutation_intercept_taken_for_known(monkeypatch):
    check_mutation(
        lambda: monkeypatch.setattr(intercept._Slopes, "farthest", lambda *known: 0.0),
        laws.law_bounds_contain_the_optimum,
        False,
        loss="squared_hinge",
        intercept=True,
    )


@pytest.mark.parametrize("intercept", [False, True])
def test_mutation_shorter_gradient(monkeypatch, intercept):
    whole = curvature._Metric._gradient_length
    check_mutation(
        lambda: monkeypatch.setattr(
            curvature._Metric, "_gradient_length", lambda self: 0.1 * whole(self)
        ),
        laws.law_bounds_contain_the_optimum,
        True,
        loss="squared_hinge",
        intercept=intercept,
        n=90,
    )


def test_mutation_curvature_taken_for_granted(monkeypatch):
    """Samples that may leave their piece carry curvature all the same."""
    whole = curvature._Metric.reach
    calls = []

    def blind(self, rows):
        # the first look is the one that confirms
        calls.append(rows)
        return np.zeros(len(rows)) if len(calls) % 2 else whole(self, rows)

    check_mutation(
        lambda: monkeypatch.setattr(curvature._Metric, "reach", blind),
        laws.law_bounds_contain_the_optimum,
        True,
        loss="squared_hinge",
        n=120,
    )


def test_mutation_n_in_place_of_total_weight(monkeypatch):
    wrong = cached_property(lambda self: self.weights / len(self.weights))
    wrong.__set_name__(WeightedRows, "shares")
    check_mutation(
        lambda: monkeypatch.setattr(WeightedRows, "shares", wrong),
        laws.law_gap_is_true,
        loss="hinge",
        weighted=True,
    )


def test_mutation_missing_intercept_constraint(monkeypatch):
    """Coordinates that do not add up to 0 are no dual point."""
    monkeypatch.setattr(Block, "feasible", lambda self, beta: beta.copy())

    def mutate():
        monkeypatch.setattr(Dual, "_cancel", as_it_is)
        monkeypatch.setattr(Dual, "_rest", lambda self, *arguments: (0.0, 0.0))

    check_mutation(mutate, laws.law_gap_is_true, loss="squared_hinge", intercept=True)


def test_mutation_half_the_norm(monkeypatch):
    """A dual value with too small a norm is too large."""
    whole = KernelDesign.norm_sq
    check_mutation(
        lambda: monkeypatch.setattr(
            KernelDesign, "norm_sq", lambda self, beta: (0.5 * whole(self, beta)[0], 0.0)
        ),
        laws.law_gap_is_true,
        loss="squared_hinge",
    )
