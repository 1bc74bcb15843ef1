"""A tracker after any sequence of edits is a fresh fit; each known mistake breaks a law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import safesift as ss
from safesift.design.rows import RowDesign
from safesift.problem import running
from safesift.workflows.tracking import follower
from safesift.workflows.tracking.data import Data, RowMetric
from tests.laws import tracking_laws as laws
from tests.laws.strategies import examples

seeds = st.integers(0, 2**32 - 1)
STORAGES = ("dense", "csr", "float32")
problems_drawn = st.tuples(seeds, st.sampled_from(laws.LOSS_NAMES), st.booleans())


@examples(1.5)
@given(setting=problems_drawn)
def test_certificates_hold_anywhere(setting):
    laws.law_certificate_holds(*setting)


@examples(0.5)
@given(setting=problems_drawn)
def test_rounding_errors_of_the_sums_are_bounded(setting):
    laws.law_sums_are_known(*setting)


@examples(0.3)
@given(setting=problems_drawn, storage=st.sampled_from(STORAGES))
def test_copies_go_their_own_way(setting, storage):
    laws.law_copies_go_their_own_way(*setting, storage)


class Tracked(RuleBasedStateMachine):
    """Edits of all kinds, in any order."""

    edits = None

    @initialize(
        seed=seeds,
        loss=st.sampled_from(laws.LOSS_NAMES),
        intercept=st.booleans(),
        storage=st.sampled_from(STORAGES),
        n_classes=st.sampled_from([2, 2, 3]),
    )
    def begin(self, seed, loss, intercept, storage, n_classes):
        self.edits = laws.Edits(seed, loss, intercept, storage, n_classes)

    @rule(n=st.integers(1, 6))
    def add(self, n):
        self.edits.edit(n, 0, 0)

    @precondition(lambda self: self.edits is not None and len(self.edits.y) > 2)
    @rule(n=st.integers(1, 6))
    def remove(self, n):
        self.edits.edit(0, n, 0)

    @rule(n=st.integers(1, 4))
    def relabel(self, n):
        self.edits.edit(0, 0, n)

    @rule(n_add=st.integers(0, 4), n_remove=st.integers(0, 4), n_relabel=st.integers(0, 3))
    def edit(self, n_add, n_remove, n_relabel):
        self.edits.edit(n_add, n_remove, n_relabel)

    @invariant()
    def is_a_fresh_fit(self):
        if self.edits is not None:
            self.edits.check()


Tracked.TestCase.settings = settings(
    max_examples=max(10, settings.default.max_examples // 3), stateful_step_count=8
)
test_any_sequence_of_edits = Tracked.TestCase


# --- the laws can fail ------------------------------------------------------------------------


def fails(law, n) -> bool:
    """Whether the law fails for one of n fixed settings."""
    for seed in range(n):
        which, loss = divmod(seed, len(laws.LOSS_NAMES))
        try:
            law(seed, laws.LOSS_NAMES[loss], which % 2 == 1)
        except AssertionError:
            return True
    return False


def after_edits(seed, loss, intercept):
    laws.law_after_edits(seed, loss, intercept, "dense")


def old_total(monkeypatch):
    """The divisor of before the edit."""
    right = Data.edited

    def edited(self, change):
        after = right(self, change)
        return after._replace(data=replace(after.data, total=self.total))

    monkeypatch.setattr(Data, "edited", edited)


def rows_stay(monkeypatch):
    """Rows that are removed go on pulling."""
    right = follower.Follower.swap
    monkeypatch.setattr(
        follower.Follower,
        "swap",
        lambda self, leaving, entering: right(self, leaving.take(slice(0, 0)), entering),
    )


def edit_without_pull(monkeypatch):
    """Rows are placed, and the gradient is that of before the edit."""
    right = follower.Follower.swap

    def swap(self, leaving, entering):
        before = self.sums
        right(self, leaving, entering)
        if len(leaving.slots):
            self.sums = before

    monkeypatch.setattr(follower.Follower, "swap", swap)


def never_read_again(monkeypatch):
    """Rows stay on their piece for ever."""
    monkeypatch.setattr(
        follower.Follower, "overdue", lambda self, reach=0.0: np.empty(0, dtype=np.intp)
    )


def short_steps(monkeypatch):
    """Steps are a tenth as long as they are."""
    right = RowMetric.length
    monkeypatch.setattr(RowMetric, "length", lambda self, step: 0.1 * right(self, step))


@pytest.mark.parametrize(
    "mistake", [old_total, rows_stay, edit_without_pull, never_read_again, short_steps]
)
def test_mistakes_in_updates(monkeypatch, mistake):
    assert not fails(after_edits, 10)
    mistake(monkeypatch)
    assert fails(after_edits, 60)


@pytest.mark.parametrize("storage", STORAGES)
def test_copies_that_write_to_the_same_slots(monkeypatch, storage):
    def family(seed, loss, intercept):
        laws.law_copies_go_their_own_way(seed, loss, intercept, storage)

    assert not fails(family, 6)
    monkeypatch.setattr(Data, "_own", lambda self: self)
    assert fails(family, 40)


def free_intercept(monkeypatch):
    """The dual point need not be feasible for the intercept."""
    right = follower.stationary_gap
    monkeypatch.setattr(
        follower,
        "stationary_gap",
        lambda g, error, alpha, *ones: right(g[:-1] if ones else g, error, alpha),
    )


def half_the_gradient(monkeypatch):
    right = follower.stationary_gap
    monkeypatch.setattr(follower, "stationary_gap", lambda g, *others: right(0.7 * g, *others))


def small_ball(monkeypatch):
    """A radius a hundredth of what it must be."""
    right = RowMetric.radius
    monkeypatch.setattr(RowMetric, "radius", lambda self, r: 0.01 * right(self, r))


def no_room_is_all_room(monkeypatch):
    """In a new metric, rows at the end of their piece are forgotten."""
    right = follower.Follower.remeasure

    def remeasure(self, before, data):
        right(self, before, data)
        self.deadline[self.deadline < 0.2] = np.inf

    monkeypatch.setattr(follower.Follower, "remeasure", remeasure)


@pytest.mark.parametrize(
    "mistake",
    [free_intercept, half_the_gradient, small_ball, short_steps, no_room_is_all_room],
)
def test_mistakes_in_certificates(monkeypatch, mistake):
    assert not fails(laws.law_certificate_holds, 20)
    mistake(monkeypatch)
    assert fails(laws.law_certificate_holds, 400)


def test_mistake_in_the_errors_of_sums(monkeypatch):
    """What a large row leaves behind when it goes is not counted."""
    assert not fails(laws.law_sums_are_known, 12)
    monkeypatch.setattr(running, "EPS", 1e-20)
    monkeypatch.setattr(RowDesign, "gram_error", 1e-18)
    assert fails(laws.law_sums_are_known, 12)


def test_edits_of_unknown_problems_are_refitted():
    edits = laws.Edits(0, "squared_hinge", True, "dense")
    edits.tracker = ss.SafeTracker(ss.SafeClassifier("logistic", alpha=0.1))
    edits.tracker.fit(edits.X, edits.y, edits.weights)
    edits.edit(3, 2, 1)
    assert "logistic" in edits.tracker.history_[-1]["why"]
    assert not edits.tracker.history_[-1]["local"]
