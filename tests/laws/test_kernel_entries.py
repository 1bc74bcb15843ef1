"""Entries of a kernel matrix are as exact as they are said to be, wherever the rows lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from safesift.design import kernels as module
from safesift.design.kernels import KernelChoice, PairwiseKernel
from tests.laws.strategies import examples

LONG = np.longdouble

# an extended precision that is none can refute nothing
exact_enough = pytest.mark.skipif(
    np.finfo(LONG).eps > 1e-3 * np.finfo(float).eps, reason="no extended precision here"
)


@dataclass(frozen=True)
class Rows:
    """What rows are drawn from: as many, as wide, as far apart, and as far from 0."""

    n: int = 12
    p: int = 3
    spread: float = 1.0
    shift: float = 0.0
    gamma: float = 1.0
    kind: str = "float64"
    uneven: bool = False
    seed: int = 0

    @property
    def X(self):
        rng = np.random.default_rng([self.seed, 5])
        X = self.spread * rng.normal(size=(self.n, self.p))
        X += self.shift * (rng.normal(size=self.p) if self.uneven else 1.0)
        if self.kind == "sparse":
            # a column of zeros and others, and full ones
            X[:, 0] *= rng.random(self.n) < 0.4
            return sparse.csr_array(X)
        return X.astype(self.kind)


rows = st.builds(
    Rows,
    n=st.integers(1, 30),
    p=st.integers(1, 40),
    spread=st.sampled_from([1e-3, 1.0, 30.0]),
    shift=st.sampled_from([0.0, 1.0, 1e3, 1e7, -1e10]),
    gamma=st.sampled_from([1e-3, 0.3, 5.0]),
    kind=st.sampled_from(["float64", "float32", "sparse"]),
    uneven=st.booleans(),
    seed=st.integers(0, 10**6),
)


def exact_kernel(name: str, X: np.ndarray, how: dict) -> np.ndarray:
    """By definition, in extended precision."""
    X, gamma = X.astype(LONG), LONG(how.get("gamma") or 0)
    apart, products = X[:, None] - X[None], X @ X.T
    match name:
        case "rbf":
            return np.exp(-gamma * np.square(apart).sum(axis=2))
        case "laplacian":
            return np.exp(-gamma * np.abs(apart).sum(axis=2))
        case "linear":
            return products
        case "poly":
            return (gamma * products + LONG(how["coef0"])) ** how["degree"]
    lengths = np.sqrt(np.diag(products))
    both = np.outer(lengths, lengths)
    return products / np.where(both > 0, both, 1)


def law_entries_are_exact(name: str, rows: Rows) -> None:
    """|computed − exact| ≤ entry_error·√(K_ii·K_jj), in blocks and for the diagonal."""
    X = rows.X
    kernel = KernelChoice(name, gamma=rows.gamma).of(X, rows.gamma)
    assert isinstance(kernel, PairwiseKernel)
    dense = X.toarray() if sparse.issparse(X) else X
    K = exact_kernel(name, dense, kernel.parameters)
    roots = np.sqrt(np.diag(K))
    room = kernel.entry_error * np.outer(roots, roots)
    every = np.arange(rows.n)
    for columns in (slice(None), every[::2]):
        off = np.abs(kernel.block(every, columns).astype(LONG) - K[:, columns])
        assert (off <= room[:, columns]).all()
    assert (np.abs(kernel.diagonal.astype(LONG) - np.diag(K)) <= np.diag(room)).all()


@exact_enough
@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "poly", "cosine"])
@examples(1.0)
@given(rows=rows)
def test_entries_are_as_exact_as_they_are_said_to_be(name, rows):
    law_entries_are_exact(name, rows)


@examples(1.0)
@given(rows=rows)
def test_what_is_said_does_not_depend_on_the_origin(rows):
    """Far from 0, distances are as exact as near it, up to what the rows themselves have lost."""
    at = [Rows(**{**rows.__dict__, "shift": shift, "kind": "float64"}) for shift in (0.0, 1e7)]
    near, far = (KernelChoice("rbf").of(r.X, rows.gamma).entry_error for r in at)
    # the middle of few rows may be nearer to them than 0 is; where it is not much, 0 stays
    assert far <= 4.1 * near + 1e-12


def test_sparse_rows_stay_sparse():
    X = Rows(n=40, p=30, shift=1e7, kind="sparse").X
    X = sparse.csr_array(sparse.hstack([X, sparse.random(40, 500, 0.01, random_state=0)]))
    kernel = PairwiseKernel(X, "rbf", {"gamma": 1.0})
    assert kernel.origin is not None
    moved = kernel._moved(X)
    assert sparse.issparse(moved) and moved.nnz <= X.nnz
    expected = exact_kernel("rbf", X.toarray(), {"gamma": 1.0})
    np.testing.assert_allclose(kernel.block(np.arange(40), slice(None)), expected, atol=1e-9)


def test_a_row_that_lacks_a_full_column_is_moved_there_too():
    X = Rows(n=20, p=3, shift=1e4, kind="sparse").X
    kernel = PairwiseKernel(X, "rbf", {"gamma": 1e-8})
    new = sparse.csr_array(np.array([[0.0, 0.0, 1e4]]))
    both = np.vstack([new.toarray(), X.toarray()])
    expected = exact_kernel("rbf", both, {"gamma": 1e-8})[:1, 1:]
    np.testing.assert_allclose(kernel.between(new, X), expected, rtol=1e-10)


# --- the law can fail -----------------------------------------------------------------------------


def fails(name: str = "rbf") -> bool:
    for seed in range(12):
        kind = ("float64", "sparse")[seed % 2]
        try:
            law_entries_are_exact(name, Rows(p=5, shift=1e7, kind=kind, seed=seed))
        except AssertionError:
            return True
    return False


@exact_enough
@pytest.mark.parametrize(
    "moved",
    [
        # distances from 0, with the lengths of rows that were moved
        lambda X, origin: X,
        # an origin that is rounded for each row anew
        lambda X, origin: X - origin * (1 + 1e-12 * np.arange(X.shape[0])[:, None]),
    ],
    ids=["not moved", "moved by different points"],
)
def test_mutations(monkeypatch, moved):
    assert not fails()
    lengths = module._lengths_sq
    from_, within = module._from, []

    def measured(X, origin):
        within.append(True)
        try:
            return lengths(X, origin)
        finally:
            within.pop()

    def mutated(X, origin):
        if origin is None or within:
            return from_(X, origin)
        return moved(X.toarray() if sparse.issparse(X) else X, origin)

    monkeypatch.setattr(module, "_lengths_sq", measured)
    monkeypatch.setattr(module, "_from", mutated)
    assert fails()


@exact_enough
def test_mutation_of_the_bound(monkeypatch):
    """A bound that forgets how far apart rows are."""
    wide = Rows(p=30, spread=300.0, gamma=1e-5)
    law_entries_are_exact("rbf", wide)
    monkeypatch.setattr(PairwiseKernel, "entry_error", 1e-17)
    with pytest.raises(AssertionError):
        law_entries_are_exact("rbf", wide)
