"""Laws of mining, and mistakes that break them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from safesift.workflows import mining, pooled
from tests.laws import mining_laws as laws
from tests.laws.mining_laws import FAMILIES, LOSSES, Recipe, setting
from tests.laws.reference import NotSolvedError
from tests.laws.strategies import examples

recipes = st.builds(
    Recipe,
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    penalty=st.sampled_from(["l2", "l2", "l1", "elastic_net"]),
    family=st.sampled_from(FAMILIES),
    intercept=st.booleans(),
    weighted=st.booleans(),
    class_weight=st.sampled_from([None, "balanced"]),
    label=st.sampled_from([0, 1]),
    single=st.booleans(),
    sparse=st.booleans(),
    max_iter=st.sampled_from([1, 3, 1000, 1000]),
    max_passes=st.sampled_from([1, 2, 20, 20]),
).filter(lambda recipe: laws.allowed(recipe.loss, recipe.penalty))


@pytest.fixture(scope="module", autouse=True)
def eager():
    """Small pools, too, are learned from in the middle of a pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mining, "_LEAST_NEW", 3)
        yield


@examples(0.7)
@given(recipe=recipes)
def test_what_is_not_kept_cannot_matter(recipe):
    try:
        laws.law_what_is_not_kept_cannot_matter(recipe)
    except NotSolvedError:
        assume(False)


@examples(0.3)
@given(recipe=recipes)
def test_the_gap_is_that_of_the_rows_read_last(recipe):
    try:
        laws.law_the_gap_is_that_of_the_rows_read_last(replace(recipe, max_passes=2))
    except NotSolvedError:
        assume(False)


@examples(0.3)
@given(recipe=recipes)
def test_kept_rows_alone(recipe):
    try:
        laws.law_kept_rows_alone(replace(recipe, max_passes=20))
    except NotSolvedError:
        assume(False)


@examples(0.3)
@given(recipe=recipes, cuts=st.lists(st.integers(0, 60), max_size=6))
def test_any_cut_of_the_pool_gives_the_same(recipe, cuts):
    drawn = setting(replace(recipe, sparse=False))
    whole = drawn.mined()
    blocks = np.split(drawn.pool, sorted(min(cut, len(drawn.pool)) for cut in cuts))
    for pool in (blocks, lambda: iter(blocks)):
        cut = drawn.mined(pool)
        np.testing.assert_array_equal(cut.indices, whole.indices)
        np.testing.assert_array_equal(cut.model_.coef_, whole.model_.coef_)


@examples(0.2)
@given(recipe=recipes, rows=st.integers(1, 70))
def test_any_size_of_blocks_gives_the_same_model(recipe, rows):
    drawn = setting(replace(recipe, max_iter=1000, max_passes=20))
    one, other = drawn.mined(), drawn.mined(block_size=rows)
    assert one.proved and other.proved
    full = drawn.full
    values = [full.primal(laws._point(full, mined.model_)) for mined in (one, other)]
    assert abs(values[0] - values[1]) <= max(one.dual_gap, other.dual_gap) + 1e-12


# --- the laws can fail --------------------------------------------------------------------------

DRAWN = [
    Recipe(seed, family=FAMILIES[seed % 4], intercept=bool(seed % 3 == 0), weighted=bool(seed % 2))
    for seed in range(20)
]


def broken(drawn, law) -> bool:
    for recipe in drawn:
        try:
            law(recipe)
        except NotSolvedError:
            continue
        except AssertionError:
            return True
    return False


def check_mutation(
    monkeypatch, drawn, owner, name, wrong, law=laws.law_what_is_not_kept_cannot_matter
) -> None:
    assert not broken(drawn, law)
    monkeypatch.setattr(owner, name, wrong)
    assert broken(drawn, law)


def test_mutation_divisor_of_the_rows_at_hand(monkeypatch):
    right = pooled.PooledProblem.on

    def own_divisor(self, held, n_pool):
        problem = right(self, held, n_pool)
        divisor = float(problem.weights.sum())
        return replace(problem, risk=problem.risk.with_divisor(divisor))

    check_mutation(monkeypatch, DRAWN, pooled.PooledProblem, "on", own_divisor)


def test_mutation_the_first_pass_is_believed(monkeypatch):
    """What had no loss at the model of the time is never looked at again."""
    right = pooled.Candidate.in_doubt

    def once(self, start, block, test_set):
        doubtful = right(self, start, block, test_set)
        return doubtful if test_set is self.at_point else np.zeros_like(doubtful)

    check_mutation(monkeypatch, DRAWN, pooled.Candidate, "in_doubt", once)


def test_mutation_a_point_in_place_of_a_region(monkeypatch):
    """Far from the optimum, what has no loss at the point need not have none at the optimum."""
    rough = [replace(recipe, loss="hinge", intercept=False, max_iter=1) for recipe in DRAWN]
    check_mutation(
        monkeypatch, rough, pooled, "region_around",
        lambda fit, settings: replace(
            pooled.Candidate(None, settings, fit.at.point, None, 0).at_point, certified=True
        ),
    )  # fmt: skip


def test_mutation_the_gap_of_the_rows_at_hand(monkeypatch):
    """Where the search ended early, rows outside have a loss that the gap must count."""
    early = [replace(recipe, max_passes=2, family="ordered") for recipe in DRAWN]
    right = pooled.Candidate.unproved

    def own_gap(self, held, n_pool, same_pool):
        fit = right(self, held, n_pool, same_pool)
        return replace(fit, certificate=replace(fit.certificate, gap=self.fit.gap))

    check_mutation(monkeypatch, early, pooled.Candidate, "unproved", own_gap)


def test_mutation_a_region_that_does_not_know_the_point(monkeypatch):
    """Away from the point a row may be flat that has a loss there, which the gap must count."""
    rough = [
        Recipe(10, loss="smoothed_hinge", family="ordered", max_iter=1),
        Recipe(23, loss="squared_hinge", family="duplicates", max_iter=1),
        Recipe(23, loss="safe_logistic", family="duplicates", max_iter=1),
    ]
    check_mutation(monkeypatch, rough, pooled, "_is_around", lambda test_set, point: True)


def test_mutation_the_dual_point_of_another_pool(monkeypatch):
    right = pooled.Candidate.unproved
    check_mutation(
        monkeypatch, [replace(recipe, max_passes=2) for recipe in DRAWN],
        pooled.Candidate, "unproved",
        lambda self, held, n_pool, same_pool: right(self, held, n_pool, same_pool=True),
        law=laws.law_the_gap_is_that_of_the_rows_read_last,
    )  # fmt: skip


def test_mutation_the_wrong_label(monkeypatch):
    check_mutation(
        monkeypatch, DRAWN, pooled.PooledProblem, "_targets",
        lambda self, n_rows: np.full(n_rows, -self.label),
    )  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_proves_what_can_be_proved(loss):
    """Not only safe: most rows that are flat at the optimum are proved to be."""
    shares = []
    for seed in range(10):
        mined = setting(Recipe(seed, loss=loss)).mined()
        assert mined.proved
        shares.append(mined.n_proved / mined.n_pool)
    assert np.mean(shares) > 0.2, np.mean(shares)
