"""Leaving samples out needs no second copy of the data."""

from __future__ import annotations

import tracemalloc

import numpy as np

import safesift as ss


def test_no_copy_of_the_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 100))
    y = np.where(X[:, 0] + rng.normal(size=20_000) > 0, 1, -1)
    ss.leave_one_out(X[:200], y[:200], alpha=1e-2)
    tracemalloc.start()
    loo = ss.leave_one_out(X, y, alpha=1e-2, n_jobs=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loo.n_refits == 0
    # a few blocks of whitened rows, matrices of the columns, and some tens of vectors
    assert peak < X.nbytes + 60 * 8 * len(y)
