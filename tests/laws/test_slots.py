"""Rows that come and go: whoever holds other slots never notices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safesift.design.slots import SparseSlots, as_slots
from tests.laws.storages import SLOTS


@pytest.mark.parametrize("storage", SLOTS)
@given(seed=st.integers(0, 2**32 - 1))
def test_writing_leaves_what_others_hold(storage, seed):
    assert_others_notice_nothing(storage, np.random.default_rng(seed))


def assert_others_notice_nothing(storage, rng):
    """Also where a write is given up, rows come in wider types, and holes are packed."""

    def new(n, kind="float64"):
        return (rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7)).astype(kind)

    rows, slots = new(4, "float32"), np.arange(4)
    design = as_slots(SLOTS[storage](rows), intercept=True)
    for _ in range(rng.integers(1, 12)):
        added = new(rng.integers(0, 6), rng.choice(["float32", "float64"]))
        free = np.setdiff1d(np.arange(design.n_samples + 5), slots)
        chosen = rng.permutation(free)[: len(added)]
        later = design.written(chosen, SLOTS[storage](added), slots)
        both, order = np.concatenate([rows, added]), np.append(slots, chosen)
        for matrix, where, there in ((design, slots, rows), (later, order, both)):
            expected = np.column_stack([there, np.ones(len(there))]).astype(np.float64)
            np.testing.assert_array_equal(matrix.at(where).matvec(np.eye(4)), expected)
            norms = np.linalg.norm(expected, axis=1)
            np.testing.assert_allclose(matrix.at(where).row_norms, norms, rtol=1e-14)
        if rng.random() < 0.8:
            stay = rng.random(len(both)) < 0.7
            design, slots, rows = later, order[stay], both[stay]


def test_rows_that_are_packed_away_are_noticed(monkeypatch):
    right = SparseSlots._packed
    monkeypatch.setattr(SparseSlots, "_packed", lambda self, held, n: right(self, held[1:], n))
    with pytest.raises(AssertionError):
        for seed in range(10):
            assert_others_notice_nothing("slots, csr", np.random.default_rng(seed))
