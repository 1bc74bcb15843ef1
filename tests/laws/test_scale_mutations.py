"""The laws of rows in blocks can fail: each mistake, patched in, makes one of them break."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from safesift.problem.risk import ChangedDataError
from safesift.workflows.scale import (
    certificate,
    driver,
    engine,
    found,
    passes,
    reading,
    remembering,
    sparing,
)
from tests.laws import scale_laws as laws
from tests.laws.problems import FAMILIES, Recipe
from tests.laws.reference import NotSolvedError

pytestmark = pytest.mark.slow

CUTS = (0.2, 0.5, 0.5, 0.7)


def some(n: int = 30, **fields) -> list[laws.Cut]:
    fields = {"loss": "squared_hinge", "penalty": "l2"} | fields
    return [
        laws.Cut(Recipe(family=FAMILIES[seed % len(FAMILIES)], seed=seed, **fields), CUTS)
        for seed in range(n)
    ]


def fails(law, cases) -> bool:
    """Whether the law fails for one of the cases."""
    for case in cases:
        try:
            law(case)
        except NotSolvedError:
            continue
        except (AssertionError, np.linalg.LinAlgError):
            return True
    return False


def mapped(monkeypatch, change):
    """Let the engine return something else than it should, after the first pass."""
    whole = engine.Threads.map

    def map_(self, function, tasks):
        results = list(whole(self, function, tasks))
        return iter(change(results) if isinstance(function, passes.Pass) else results)

    monkeypatch.setattr(engine.Threads, "map", map_)


def test_without_a_mistake_no_law_fails():
    for law in (*laws.LAWS, laws.law_folds_are_problems_of_their_own):
        assert not fails(law, some(6))


def test_a_block_that_is_counted_twice(monkeypatch):
    mapped(monkeypatch, lambda results: [results[0], *results])
    assert fails(laws.law_same_value, some())


def test_a_block_that_is_forgotten(monkeypatch):
    mapped(monkeypatch, lambda results: results[1:] or results)
    assert fails(laws.law_same_value, some())


def test_the_gap_of_forgotten_blocks_is_none(monkeypatch):
    mapped(monkeypatch, lambda results: results[1:] or results)
    assert fails(laws.law_gap_bounds_suboptimality, some())


def test_a_verdict_of_another_block(monkeypatch):
    def swapped(results):
        lengths = [len(one.codes[0]) for one in results]
        order = np.argsort(lengths, kind="stable")
        for one, other in pairwise(order):
            if lengths[one] == lengths[other] > 0:
                mine, theirs = results[one], results[other]
                results[one] = replace(mine, codes=theirs.codes)
                results[other] = replace(theirs, codes=mine.codes)
                break
        return results

    mapped(monkeypatch, swapped)
    assert fails(laws.law_verdicts_are_right, some(60))


def test_a_stale_sum_after_a_retry(monkeypatch):
    """The sums of a part as an earlier pass had them."""
    known: dict[int, passes.PartFound] = {}

    def stale(results):
        first = results[0].part
        return [known.setdefault(first, results[0]), *results[1:]]

    def law(case):
        known.clear()
        laws.law_gap_bounds_suboptimality(case)
        known.clear()
        laws.law_same_value(case)

    mapped(monkeypatch, stale)
    assert fails(law, some())


def test_rows_that_moved_and_are_not_taken_out(monkeypatch):
    """What is folded then has rows twice: it curves too much, and the ball is too small."""
    whole = found.Balance.plus
    monkeypatch.setattr(
        found.Balance, "plus", lambda self, added, removed: whole(self, added, None)
    )
    assert fails(laws.law_converges, some(60)) or fails(laws.law_verdicts_are_right, some(60))


def test_a_clearance_that_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(certificate.Proof, "decides", property(lambda self: self.radius < np.inf))
    monkeypatch.setattr(driver, "NEAR", 0.0)
    monkeypatch.setattr(laws, "TOL", 0.3)
    assert fails(laws.law_verdicts_are_right, some(100))


def test_a_step_beyond_the_clearance_that_is_proved_without_a_pass(monkeypatch):
    """What is folded then is not what rows have there."""
    cases = [*some(60), *some(60, loss="hinge")]
    assert not fails(laws.law_gap_bounds_suboptimality, cases[::6])
    whole = driver.Driver._proved_nearby

    def careless(self, state, held, proposed):
        state.proof = replace(state.proved, clearance=np.inf)
        return whole(self, state, held, proposed)

    monkeypatch.setattr(driver.Driver, "_proved_nearby", careless)
    monkeypatch.setattr(driver, "NEAR", 1e-2)
    assert fails(laws.law_gap_bounds_suboptimality, cases) or fails(laws.law_same_value, cases)


def test_a_part_that_is_not_read_although_rows_may_have_moved(monkeypatch):
    """What is folded of it, and what is held, is not what its rows have there."""
    cases = some(100)
    assert not fails(laws.law_gap_bounds_suboptimality, cases[::10])
    whole = sparing.Known.due
    monkeypatch.setattr(sparing.Known, "due", lambda self, needs: whole(self, needs)[:1])
    monkeypatch.setattr(driver, "NEAR", 1e-2)
    assert fails(laws.law_gap_bounds_suboptimality, cases) or fails(laws.law_same_value, cases)


def test_a_radius_that_is_too_small(monkeypatch):
    whole = certificate.ball_radius
    monkeypatch.setattr(certificate, "ball_radius", lambda *a: 1e-3 * whole(*a))
    monkeypatch.setattr(laws, "TOL", 0.3)
    assert fails(laws.law_verdicts_are_right, some(100))


def test_one_sided_slopes_that_do_not_cancel(monkeypatch):
    """An intercept demands Σ s_i ν_i = 0; ignoring that gives gaps that are none."""
    monkeypatch.setattr(laws, "TOL", 0.5)
    cases = some(100, penalty="l1", intercept=True)
    assert not fails(laws.law_gap_bounds_suboptimality, cases)
    whole = certificate._dual_value

    def careless(problem, at, rays):
        design = replace(problem.design, intercept=False)
        gradients = rays.gradients[:, : problem.design.n_features]
        risk = replace(problem.risk, rows=replace(problem.risk.rows, design=design))
        return whole(replace(problem, risk=risk), at, rays._replace(gradients=gradients))

    monkeypatch.setattr(certificate, "_dual_value", careless)
    assert fails(laws.law_gap_bounds_suboptimality, cases)


def test_a_sum_that_depends_on_the_threads(monkeypatch):
    from safesift.arithmetic.threads import n_threads

    whole = engine.Tree.add

    def add(self, result):
        if n_threads() == 2 and self._waiting:
            _, before = self._waiting.pop()
            self._waiting.append((0, self._plus(result, before)))
        else:
            whole(self, result)

    monkeypatch.setattr(engine.Tree, "add", add)
    assert fails(laws.law_same_bits_for_any_threads, some(40))


def test_held_out_rows_that_count(monkeypatch):
    monkeypatch.setattr(reading.Weighted, "without", lambda self, fold: self.weights)
    assert fails(laws.law_folds_are_problems_of_their_own, some())


def test_folds_that_are_compared_with_other_weights(monkeypatch):
    """What all rows fold of the rows of a fold must be taken out with the weights it came with."""
    whole = passes._changes
    monkeypatch.setattr(passes, "_changes", lambda look, old, whose: whole(look, old, look.problem))
    assert fails(laws.law_folds_are_problems_of_their_own, some())


def test_blocks_that_are_kept_under_another_number(monkeypatch):
    whole = remembering.Remembered._keep
    monkeypatch.setattr(
        remembering.Remembered,
        "_keep",
        lambda self, part, *more: whole(self, max(part - 1, 0), *more),
    )
    with pytest.raises(ChangedDataError):
        laws.law_same_value(some(1)[0])
