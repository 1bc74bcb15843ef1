"""Laws of mining, and mistakes that break them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

from safesift.design import as_design, pool
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
    class_weight=st.sampled_from([None, "balanced", "dict"]),
    label=st.sampled_from([0, 1]),
    mixed=st.booleans(),
    single=st.booleans(),
    sparse=st.booleans(),
    max_iter=st.sampled_from([1, 3, 1000, 1000]),
    max_passes=st.sampled_from([1, 2, 20, 20]),
).filter(lambda recipe: laws.allowed(recipe.loss, recipe.penalty))


@pytest.fixture(scope="module", autouse=True)
def eager():
    """Small pools, too, are read in several blocks and learned from in the middle of a pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mining, "_LEAST_NEW", 3)
        patch.setattr(pool, "_BLOCK_SHARE", 1 / 256)
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
def test_rows_that_change_sides(recipe):
    try:
        laws.law_of_rows_that_change_sides(recipe)
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
    whole, n = drawn.mined(), len(drawn.pool)
    ends = sorted(min(cut, n) for cut in cuts)
    blocks, labels = np.split(drawn.pool, ends), np.split(drawn.labels, ends)
    pairs = list(zip(blocks, labels, strict=True))
    untold = dict.fromkeys(drawn.told)
    for cut in (drawn.mined(blocks), drawn.mined(lambda: iter(pairs), **untold)):
        np.testing.assert_array_equal(cut.indices, whole.indices)
        np.testing.assert_array_equal(cut.y_kept, whole.y_kept)
        np.testing.assert_array_equal(cut.model.coef_, whole.model.coef_)


@examples(0.2)
@given(recipe=recipes, memory=st.integers(40_000, 3_000_000))
def test_any_size_of_blocks_gives_the_same_model(recipe, memory):
    """The least budget holds the largest pool, in blocks of one row."""
    drawn = setting(replace(recipe, max_iter=1000, max_passes=20))
    one, other = drawn.mined(), drawn.mined(memory=memory)
    assert one.proved and other.proved
    full = drawn.full
    values = [full.primal(laws._point(full, mined.model)) for mined in (one, other)]
    assert abs(values[0] - values[1]) <= max(one.dual_gap, other.dual_gap) + 1e-12


@examples(0.2)
@given(recipe=recipes)
def test_one_label_for_all_is_the_same_as_one_for_each(recipe):
    drawn = setting(replace(recipe, mixed=False))
    one, other = drawn.mined(), drawn.mined(label=None, y_pool=drawn.labels)
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.model.coef_, other.model.coef_)


class _Ones:
    """All rows are of one class."""

    described = "label"

    def signs(self, start, n_rows, given):
        return np.ones(n_rows)


@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=8),
    most=st.integers(1, 1000),
    is_sparse=st.booleans(),
)
def test_blocks_are_cut_by_what_they_take(lengths, cuts, most, is_sparse):
    """A block ends before the first row that does not fit, however the rows came."""
    rows = np.arange(12) < np.array(lengths)[:, None]
    store = sparse.csr_array if is_sparse else np.asarray
    pieces = [store(part.astype(np.float64)) for part in np.split(rows, sorted(cuts))]
    budget = pool.Budget(round(most / pool._BLOCK_SHARE))
    drawn = pool.Pool(lambda: pieces, as_design(rows.astype(np.float64)), _Ones(), budget)
    found = [block.start for block in drawn.blocks()]
    sizes = [128 + (12 * length if is_sparse else 96) for length in lengths]
    expected, taken = [], budget.block + 1
    for row, size in enumerate(sizes):
        if taken + size > budget.block:
            expected, taken = [*expected, row], 0
        taken += size
    assert found == expected


# --- the laws can fail --------------------------------------------------------------------------

DRAWN = [
    Recipe(seed, family=FAMILIES[seed % 4], intercept=bool(seed % 3 == 0), weighted=bool(seed % 2))
    for seed in range(20)
]
MIXED = [replace(recipe, mixed=True) for recipe in DRAWN]


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

    def own_divisor(self, rows, indices, signs, read):
        problem = right(self, rows, indices, signs, read)
        divisor = float(problem.weights.sum())
        return replace(problem, risk=problem.risk.with_divisor(divisor))

    check_mutation(monkeypatch, DRAWN, pooled.PooledProblem, "on", own_divisor)


def test_mutation_the_first_pass_is_believed(monkeypatch):
    """What had no loss at the model of the time is never looked at again."""
    right = pooled.Candidate.in_doubt

    def once(self, block, test_set):
        doubtful = right(self, block, test_set)
        return doubtful if test_set is self.at_point else np.zeros_like(doubtful)

    check_mutation(monkeypatch, DRAWN, pooled.Candidate, "in_doubt", once)


def test_mutation_a_point_in_place_of_a_region(monkeypatch):
    """Far from the optimum, what has no loss at the point need not have none at the optimum."""
    rough = [replace(recipe, loss="hinge", intercept=False, max_iter=1) for recipe in DRAWN]
    check_mutation(
        monkeypatch, rough, pooled, "region_around",
        lambda fit, settings: replace(
            pooled.Candidate(*[None] * 2, fit.at.point, *[None] * 4).at_point, certified=True
        ),
    )  # fmt: skip


def test_mutation_the_gap_of_the_rows_at_hand(monkeypatch):
    """Where the search ended early, rows outside have a loss that the gap must count."""
    early = [replace(recipe, max_passes=2, family="ordered") for recipe in DRAWN]
    right = pooled.Candidate.unproved

    def own_gap(self, before):
        fit = right(self, before)
        return replace(fit, certificate=replace(fit.certificate, gap=before.gap))

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
    right = pooled.Candidate.without
    check_mutation(
        monkeypatch, [replace(recipe, max_passes=2) for recipe in DRAWN],
        pooled.Candidate, "without",
        lambda self, stale: replace(right(self, stale), dual=self.dual),
        law=laws.law_the_gap_is_that_of_the_rows_read_last,
    )  # fmt: skip


def test_mutation_the_wrong_label(monkeypatch):
    right = pool.Pool._labelled
    check_mutation(
        monkeypatch, DRAWN, pool.Pool, "_labelled",
        lambda self: ((rows, -signs) for rows, signs in right(self)),
    )  # fmt: skip


def test_mutation_the_label_of_the_first_row_for_all(monkeypatch):
    right = pool.Pool._labelled
    check_mutation(
        monkeypatch, MIXED, pool.Pool, "_labelled",
        lambda self: ((rows, np.full_like(signs, signs[0])) for rows, signs in right(self)),
    )  # fmt: skip


def test_mutation_held_rows_with_the_labels_of_others(monkeypatch):
    """A label belongs to its row wherever the row is held."""
    right = pool.Block.held

    def turned(self, which, like):
        held = right(self, which, like)
        return replace(held, signs=np.roll(held.signs, 1))

    check_mutation(monkeypatch, MIXED, pool.Block, "held", turned)


@pytest.mark.parametrize("class_weight", ["balanced", "dict"])
def test_mutation_all_rows_counted_with_one_class(class_weight, monkeypatch):
    right = pooled.PooledProblem.weighed
    drawn = [replace(recipe, class_weight=class_weight) for recipe in MIXED]

    def of_one_class(self, block):
        read = right(self, block)
        return read._replace(negative=read.negative + read.positive, positive=0.0)

    check_mutation(monkeypatch, drawn, pooled.PooledProblem, "weighed", of_one_class)


def test_mutation_labels_that_change_are_not_noticed(monkeypatch):
    """Rows that are not held count all the same, in the divisor and for their class."""
    check_mutation(
        monkeypatch, [replace(recipe, class_weight="balanced") for recipe in MIXED],
        pooled.PoolRead, "__ne__", lambda self, other: self.n_rows != other.n_rows,
        law=laws.law_of_rows_that_change_sides,
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
