"""Laws of every kind of matrix: the products are NumPy's, within the errors that are claimed.

The claimed bounds are checked against exact arithmetic, on plain and on cancelling data.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from safesift.arithmetic import threads
from safesift.arithmetic.numerics import EPS, UNDERFLOW
from safesift.arithmetic.tally import counting
from safesift.design import DenseDesign, Design, RowDesign, as_design, device_blocks
from safesift.design import dense as dense_module
from safesift.design import sparse as csr_module
from safesift.design import sparse as sparse_module
from safesift.problem.inputs import make_problems
from tests.laws import exact
from tests.laws.storages import design_of, held, storages
from tests.laws.strategies import entries, examples, extremes, numbers

every_storage = storages()
DTYPES = ["float64", "float32", "float16", "int8", "int32", "int64", "uint8", "bool"]


@st.composite
def designs(draw, storage, elements=entries, min_rows=1, max_rows=8, dtype=None):
    """A design, the numbers in it (ones included), and a number of rows per block."""
    n, p = draw(st.integers(min_rows, max_rows)), draw(st.integers(1, 4))
    X = draw(hnp.arrays(np.float64, (n, p), elements=elements))
    X[:, draw(hnp.arrays(bool, p))] = 0.0
    if draw(st.booleans()):
        X[draw(st.integers(0, n - 1))] = 0.0
    X = X.astype(dtype or draw(st.sampled_from(["float64", "float32"])))
    intercept = draw(st.booleans())
    rows = np.column_stack([X, np.ones(n)]) if intercept else X
    return design_of(storage, X, intercept), rows.astype(np.float64)


every_blocking = pytest.mark.parametrize("block_rows", [2, 1000], ids=["small blocks", "one block"])


@contextmanager
def blocks_of(block_rows):
    """Blocks of so many rows, whatever the matrix."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in _kinds(RowDesign):
            for name in {"block_rows", "gram_rows"} & set(vars(kind)):
                patch.setattr(kind, name, property(lambda self: block_rows))
        yield


def _kinds(kind: type) -> Iterator[type]:
    """A class and all that derive from it."""
    yield kind
    for derived in kind.__subclasses__():
        yield from _kinds(derived)


# --- products against NumPy ---------------------------------------------------------------------


@every_blocking
@every_storage
@examples(0.25)
@given(data=st.data())
def test_operations_are_numpy(storage, block_rows, data):
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage))
        n, d = rows.shape
        assert (design.n_samples, design.n_columns) == (n, d)
        x = data.draw(hnp.arrays(np.float64, d, elements=numbers))
        u = data.draw(hnp.arrays(np.float64, n, elements=numbers))
        np.testing.assert_allclose(design.matvec(x), rows @ x, **room(rows, x))
        np.testing.assert_allclose(design.rmatvec(u), rows.T @ u, **room(rows.T, u))
        x2, u2 = np.column_stack([x, x[::-1], x * 0]), np.column_stack([u, u[::-1]])
        np.testing.assert_allclose(design.matvec(x2), rows @ x2, **room(rows, x2))
        np.testing.assert_allclose(design.rmatvec(u2), rows.T @ u2, **room(rows.T, u2))
        weights = np.abs(u)
        np.testing.assert_allclose(
            design.gram(weights), (rows.T * weights) @ rows, **room(rows.T * weights, rows)
        )
        for some in (weights, u2**2):
            np.testing.assert_allclose(
                design.columns_sq(some), (rows**2).T @ some, **room((rows**2).T, some)
            )
        scale = np.array([0.5, -1.0, 2.0])
        # also rows that begin with zeros, which are not read
        for basis in (x2, x2 * (np.arange(d)[:, None] % 3 <= np.arange(3))):
            np.testing.assert_allclose(
                design.projected_sq(basis, scale),
                (rows @ basis) ** 2 @ scale,
                **room((np.abs(rows) @ np.abs(basis)) ** 2, scale),
            )
        np.testing.assert_allclose(design.row_norms, np.linalg.norm(rows, axis=1), rtol=1e-13)


@storages("C", "csr array")
@pytest.mark.parametrize("n_rows", [3, 30])
def test_projections_on_triangles_and_on_nothing(storage, n_rows):
    """What is skipped of a basis changes nothing, and weights are one for each of its columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 5))
    design, basis = design_of(storage, X, intercept=True), np.triu(rng.normal(size=(6, 6)))
    expected = ((np.column_stack([X, np.ones(n_rows)]) @ basis) ** 2).sum(axis=1)
    np.testing.assert_allclose(design.projected_sq(basis, np.ones(6)), expected, rtol=1e-12)
    np.testing.assert_array_equal(design.projected_sq(basis[:, :0], np.ones(0)), np.zeros(n_rows))
    with pytest.raises(ValueError, match=r"shape|mismatch|broadcast"):
        design.projected_sq(basis, np.ones(4))


@every_blocking
@every_storage
@examples(0.25)
@given(data=st.data())
def test_rows_read_where_they_lie_are_the_rows_taken(storage, block_rows, data):
    """`only` copies nothing, `take` does; also rows of rows."""
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage))
        for _ in range(2):
            mask = data.draw(hnp.arrays(bool, len(rows)))
            design, rows = design.only(mask), rows[mask]
            n, d = rows.shape
            x = data.draw(hnp.arrays(np.float64, (d, 2), elements=numbers))
            u = data.draw(hnp.arrays(np.float64, n, elements=numbers))
            eye = np.eye(d)
            np.testing.assert_array_equal(design.matvec(eye), rows)
            np.testing.assert_allclose(design.rmatvec(u), rows.T @ u, **room(rows.T, u))
            weighted = rows.T * np.abs(u)
            size = room(weighted, rows)
            np.testing.assert_allclose(design.gram(np.abs(u)), weighted @ rows, **size)
            np.testing.assert_allclose(design.gram_product(eye, np.abs(u)), weighted @ rows, **size)
            pred, gradient = design.pass_through(x, lambda pred, where: 2.0 * pred)
            np.testing.assert_allclose(pred, rows @ x, **room(rows, x))
            np.testing.assert_allclose(gradient, rows.T @ (2 * pred), **room(rows.T, 2 * pred))


@storages("C", "csr array", "csr, 64 bit")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_results_do_not_depend_on_the_number_of_threads(storage, dtype, monkeypatch):
    """To the last bit."""
    monkeypatch.setattr(csr_module, "_MANY_PAIRS", 0)
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(301, 40)) * 10 * (rng.random((301, 40)) < 0.6)).astype(dtype)
    x, u = rng.normal(size=(41, 3)), rng.random(301)

    def results():
        design = design_of(storage, X, intercept=True)
        part = design.only(u < 0.7)
        for matrix, load in ((design, u), (part, u[u < 0.7])):
            yield from matrix.pass_through(x, lambda pred, rows: np.cos(pred))
            yield from (matrix.matvec(x[:, 0]), matrix.rmatvec(load), matrix.gram(load))
            yield from (matrix.gram_product(x, load), matrix.projected_sq(x, np.ones(3)))

    with blocks_of(7):
        with threads.limited(1):
            alone = list(results())
        with threads.limited(3):
            for one, other in zip(alone, results(), strict=True):
                np.testing.assert_array_equal(one, other)


def test_threads_see_the_error_state_of_the_caller():
    design = as_design(sparse.csr_array(np.eye(4)))
    with blocks_of(1), threads.limited(2), np.errstate(over="ignore"):
        pred, _ = design.pass_through(np.full(4, 1e200), lambda pred, rows: pred * 1e200)
    assert (pred == 1e200).all()


def room(left, right):
    """Tolerances that cover cancellation."""
    size = np.abs(left) @ np.abs(right)
    return {"rtol": 1e-13, "atol": 1e-14 * max(float(np.max(size, initial=0.0)), 1e-290)}


@every_blocking
@every_storage
@examples(0.25)
@given(data=st.data())
def test_pass_through_is_both_products(storage, block_rows, data):
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage))
        x = data.draw(hnp.arrays(np.float64, rows.shape[1], elements=numbers))
        seen = np.zeros(len(rows), dtype=int)

        def dual(pred, where):
            seen[where] += 1
            return np.cos(pred) + np.arange(len(rows))[where]

        pred, gradient = design.pass_through(x, dual)
        # in blocks of another size, sums may be made in another order
        size = design.row_norms * np.linalg.norm(x)
        assert (np.abs(pred - design.matvec(x)) <= 2.0 * design.dot_error * size).all()
        expected = np.cos(pred) + np.arange(len(rows))
        np.testing.assert_allclose(gradient, rows.T @ expected, **room(rows.T, expected))
        assert (seen == 1).all()


@every_blocking
@every_storage
@examples(0.25)
@given(data=st.data())
def test_gram_is_symmetric_and_positive(storage, block_rows, data):
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage))
        weights = data.draw(hnp.arrays(np.float64, len(rows), elements=st.floats(0, 5)))
        gram = design.gram(weights)
        np.testing.assert_array_equal(gram, gram.T)
        assert np.linalg.eigvalsh(gram).min() >= -1e-13 * max(np.trace(gram), 1e-290)
        assert not design.gram(np.zeros(len(rows))).any()


@every_blocking
@every_storage
@examples(0.25)
@given(data=st.data())
def test_take_selects_rows(storage, block_rows, data):
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage))
        mask = data.draw(hnp.arrays(bool, len(rows)))
        order = np.array(data.draw(st.permutations(range(len(rows)))))
        eye = np.eye(design.n_columns)
        for chosen in (mask, order, order[:1], np.flatnonzero(mask)):
            part = design.take(chosen)
            assert part.data.dtype == design.data.dtype
            np.testing.assert_array_equal(part.matvec(eye), rows[chosen])
            np.testing.assert_allclose(part.row_norms, design.row_norms[chosen], rtol=1e-14)


@every_blocking
@every_storage
def test_no_rows_at_all(storage, block_rows):
    with blocks_of(block_rows):
        design = design_of(storage, np.eye(3), True).take(np.zeros(3, dtype=bool))
        assert design.matvec(np.ones(4)).shape == (0,)
        assert not design.rmatvec(np.zeros(0)).any() and not design.gram(np.zeros(0)).any()
        assert design.row_norms.shape == (0,)
        assert design.sum_error < 1e-10 and design.dot_error < 1e-10


@every_blocking
@pytest.mark.parametrize("dtype", DTYPES)
@storages("C", "Fortran", "csr array", "csc", "coo")
def test_every_real_type_is_exact(storage, dtype, block_rows):
    """The products are those of the converted matrix: nothing wraps around or is rounded."""
    with blocks_of(block_rows):
        if dtype == "float16" and storage not in ("C", "Fortran"):
            pytest.skip("SciPy has no sparse float16")
        values = np.array([[100, 0, 27], [0, 0, 0], [127, 1, 0]]).astype(dtype)
        design = design_of(storage, values, True)
        rows = np.column_stack([values.astype(np.float64), np.ones(3)])
        np.testing.assert_array_equal(design.matvec(np.eye(4)), rows)
        np.testing.assert_array_equal(design.rmatvec(np.full(3, 4.0)), rows.T @ np.full(3, 4.0))
        np.testing.assert_allclose(design.gram(np.full(3, 4.0)), 4.0 * rows.T @ rows, rtol=1e-15)
        np.testing.assert_allclose(design.row_norms, np.linalg.norm(rows, axis=1), rtol=1e-14)
        assert design.data.dtype == values.dtype


# --- claimed errors against exact arithmetic ----------------------------------------------------

cancelling = st.builds(
    lambda sign, power, bits: sign * 2.0**power * (1 + bits * 2.0**-52),
    st.sampled_from([-1.0, 1.0]),
    st.integers(-30, 30),
    st.sampled_from([0, 1, 3, 2**51 + 1]),
)
hard = st.one_of(cancelling, entries)


@every_blocking
@storages("C", "Fortran", "csr array")
@examples(2)
@given(data=st.data())
def test_dot_error_holds(storage, block_rows, data):
    """|computed aᵢᵀx − exact| ≤ dot_error·‖aᵢ‖·‖x‖ + n_columns·UNDERFLOW."""
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage, hard))
        x = data.draw(hnp.arrays(np.float64, design.n_columns, elements=hard))
        assert_dot_error(design, rows, x)


@every_blocking
@storages("C", "csr array")
@given(data=st.data())
def test_dot_error_holds_for_denormals(storage, block_rows, data):
    with blocks_of(block_rows):
        tiny = st.one_of(st.sampled_from([5e-324, -1e-310, 1e-160, 1e-200, -1e-162]), st.just(0.0))
        design, rows = data.draw(designs(storage, tiny, dtype="float64"))
        x = data.draw(hnp.arrays(np.float64, design.n_columns, elements=tiny))
        assert_dot_error(design, rows, x)


def assert_dot_error(design, rows, x):
    computed, point = design.matvec(x), exact.fractions(x)
    size = exact.norm(point)
    for i, row in enumerate(rows):
        a = exact.fractions(row)
        error = abs(Fraction(computed[i]) - exact.dot(a, point))
        allowed = Fraction(design.dot_error) * exact.norm(a) * size
        assert error <= allowed + design.n_columns * Fraction(UNDERFLOW)


@every_blocking
@storages("C", "Fortran", "csr array")
@examples(2)
@given(data=st.data())
def test_sum_error_holds(storage, block_rows, data):
    """‖computed Aᵀu − exact‖ ≤ sum_error·Σ|uᵢ|·‖aᵢ‖."""
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage, hard, max_rows=12))
        u = data.draw(hnp.arrays(np.float64, len(rows), elements=hard))
        assert_sum_error(design, rows, u)
        for k, product in enumerate(design.rmatvec(np.column_stack([u, -2.0 * u, u])).T):
            assert_sum_error(design, rows, (u, -2.0 * u, u)[k], product)


def assert_sum_error(design, rows, u, computed=None):
    computed, load = design.rmatvec(u) if computed is None else computed, exact.fractions(u)
    error = [
        Fraction(entry) - exact.dot(exact.fractions(column), load)
        for entry, column in zip(computed, rows.T, strict=True)
    ]
    norms = [exact.norm(exact.fractions(row)) for row in rows]
    size = exact.dot([abs(v) for v in load], norms)
    # a sum of denormals is exact, but products may underflow, each by half the smallest number
    underflow = len(rows) * design.n_columns * Fraction(UNDERFLOW)
    assert exact.norm(error) <= Fraction(design.sum_error) * size + underflow


@every_blocking
@storages("C", "Fortran", "csr array")
@examples(1)
@given(data=st.data())
def test_gram_error_holds(storage, block_rows, data):
    """|computed Σ wᵢaᵢaᵢᵀ − exact| ≤ gram_error·ccᵀ for c_j² = Σ wᵢaᵢⱼ²."""
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage, hard, max_rows=12))
        w = data.draw(hnp.arrays(np.float64, len(rows), elements=st.floats(1e-3, 1e3)))
        assert_gram_error(design, rows, w)


@every_blocking
@storages("C", "Fortran", "csr array")
@examples(1)
@given(data=st.data())
def test_sum_error_holds_for_squares(storage, block_rows, data):
    """|computed Σ wᵢaᵢⱼ² − exact| ≤ (sum_error + EPS)·exact: the squares are rounded, too."""
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage, hard, max_rows=12))
        w = data.draw(hnp.arrays(np.float64, len(rows), elements=st.floats(1e-3, 1e3)))
        loads, allowed = exact.fractions(w), Fraction(design.sum_error) + Fraction(EPS)
        underflow = sum(loads, Fraction(len(rows))) * Fraction(UNDERFLOW)
        for computed, column in zip(design.columns_sq(w), rows.T, strict=True):
            squares = exact.dot(loads, [entry**2 for entry in exact.fractions(column)])
            assert abs(Fraction(computed) - squares) <= allowed * squares + underflow


@every_blocking
@storages("C", "csr array")
@examples(1)
@given(data=st.data())
def test_gram_error_holds_for_weights_of_any_sign(storage, block_rows, data):
    """Of `weighted_sums`, with |wᵢ| in the bounds."""
    with blocks_of(block_rows):
        design, rows = data.draw(designs(storage, hard, max_rows=12))
        sizes = st.floats(1e-3, 1e3)
        w = data.draw(hnp.arrays(np.float64, len(rows), elements=sizes | sizes.map(lambda x: -x)))
        gram, column = design.weighted_sums(w, w)
        np.testing.assert_array_equal(gram, gram.T)
        assert_gram_error(design, rows, w, gram)
        assert_sum_error(design, rows, w, column)


@pytest.mark.parametrize("storage", ["C", "rows"])
def test_sum_error_counts_the_blocks_of_compiled_loops(storage, monkeypatch):
    """Very wide rows come a few to a block: each sum of a block is lost next to a large one."""
    monkeypatch.setattr(dense_module, "_BLOCK", 1)
    n = 9000
    X, u = np.full((n, 1), 2.0**-29), np.zeros(n)
    X[0], u[0] = 1.0, 1.0
    u[16:] = 2.0**29 * 2.0**-53 / 16 * (1 - 2.0**-20)
    design = as_design(X) if storage == "C" else as_design(np.vstack([X, X])).only(np.arange(n))
    assert_sum_error(design, X, u)
    lost = Fraction(float(design.rmatvec(u)[0])) - exact.dot(
        exact.fractions(X[:, 0]), exact.fractions(u)
    )
    assert abs(lost) > 200 * Fraction(EPS)


@every_blocking
@examples(0.5)
@given(data=st.data())
def test_some_columns_are_those_columns(block_rows, data):
    """Found in the rows, or sorted by rows where a copy by columns is at hand."""
    with blocks_of(block_rows):
        design, _ = data.draw(designs("csr array", hard))
        p = design.n_features
        chosen = data.draw(hnp.arrays(bool, p))
        expected = design.matrix[:, np.flatnonzero(chosen)].toarray()
        found = [design.columns(chosen)]
        copied = design.by_columns
        found += [design.columns(chosen), design.columns(chosen & (np.cumsum(chosen) == 1))]
        for one, columns in zip(found, (expected, expected, expected[:, :1]), strict=True):
            assert one.intercept == design.intercept and one.data.dtype == design.data.dtype
            np.testing.assert_array_equal(one.data.toarray(), columns)
            assert one.data.has_sorted_indices
        assert copied is design.by_columns


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gram_error_holds_for_wide_rows(dtype):
    """Blocks of a Gram matrix are larger than those of products, where rows are converted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 600)).astype(dtype)
    design = as_design(X)
    assert dtype == "float64" or design.gram_rows > design.block_rows
    few = design.columns(np.arange(600) % 200 == 0)
    assert_gram_error(few, X[:, ::200].astype(float), rng.uniform(size=900))
    whole = design.gram(np.ones(900))
    np.testing.assert_allclose(whole, X.astype(float).T @ X.astype(float), atol=1e-11)


def assert_gram_error(design, rows, w, computed=None):
    computed, weights = design.gram(w) if computed is None else computed, exact.fractions(w)
    columns = [exact.fractions(column) for column in rows.T]

    def entry(j, k, weights=weights):
        terms = zip(weights, columns[j], columns[k], strict=True)
        return sum(v * a * b for v, a, b in terms)

    def size(j):
        return entry(j, j, [abs(v) for v in weights])

    # a product of two numbers may underflow before it is multiplied with a third
    largest = max(float(np.abs(rows).max(initial=0.0)), float(np.abs(w).max(initial=0.0)), 1.0)
    underflow = 4 * len(rows) * Fraction(UNDERFLOW) * Fraction(largest)
    for j in range(design.n_columns):
        for k in range(design.n_columns):
            error = abs(Fraction(computed[j, k]) - entry(j, k))
            beyond = max(error - underflow, Fraction(0))
            assert beyond**2 <= Fraction(design.gram_error) ** 2 * size(j) * size(k)


@storages("C", "csr array")
@pytest.mark.parametrize("n", [257, 4096])
def test_errors_hold_for_long_sums(storage, n):
    """Many rows and many columns, with terms of both signs that nearly cancel."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-6, 6, size=(n, 3))
    for matrix in (X, X.T):
        design = design_of(storage, np.ascontiguousarray(matrix))
        x, u = rng.normal(size=matrix.shape[1]), rng.normal(size=matrix.shape[0])
        assert_dot_error(design, matrix, x)
        assert_sum_error(design, matrix, u)


@pytest.mark.parametrize(
    "law, bound",
    [
        (assert_dot_error, "dot_error"),
        (assert_sum_error, "sum_error"),
        (assert_gram_error, "gram_error"),
    ],
)
def test_a_bound_below_the_rounding_of_one_product_is_noticed(law, bound, monkeypatch):
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(5, 5)), rng.uniform(size=5)
    law(as_design(X), X, v)
    monkeypatch.setattr(DenseDesign, bound, 2.0**-60)
    with pytest.raises(AssertionError):
        law(as_design(X), X, v)


# --- row norms ----------------------------------------------------------------------------------


@every_storage
@examples(2)
@given(data=st.data())
def test_row_norms_are_upper_bounds(storage, data):
    """Exactly: the square of the bound is at least the exact sum of squares."""
    elements = st.one_of(hard, extremes, st.sampled_from([1e-150, 1e150, 1e-170, 3e-163, 1e200]))
    design, rows = data.draw(designs(storage, elements, dtype="float64"))
    assert_upper_bounds(design, rows)


@pytest.mark.parametrize("scale", [1e-323, 1e-300, 1e-170, 1e-162, 1e-150, 1.0, 1e150])
def test_row_norms_of_equal_entries(scale):
    """Where ‖a‖ = |entry|·√p there is nothing to spare but the margin."""
    for p in range(1, 12):
        rows = scale * np.array([[1.0] * p, [-1.0] * p, [3.0] * p, [0.7] * p])
        for storage in ("C", "csr array"):
            assert_upper_bounds(design_of(storage, rows), rows)


def law_scaled_norms_are_upper_bounds(design, rows, scales) -> None:
    """Exactly; and no more than rounding, and what underflows, beyond that."""
    for bound, row in zip(design.scaled_norms(scales), rows, strict=True):
        true = sum(
            (Fraction(float(a)) * Fraction(float(s))) ** 2 for a, s in zip(row, scales, strict=True)
        )
        assert Fraction(float(bound)) ** 2 >= true
        assert bound**2 <= float(true) * (1 + 1e-12) + 1e-290


def scaled_rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 6, 2)
    rows = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-170, 3, (n, p))
    return rows, 10.0 ** rng.uniform(-5, 5, p)


@storages("C", "csr array")
def test_scaled_norms_are_upper_bounds(storage):
    for seed in range(100):
        rows, scales = scaled_rows(seed)
        law_scaled_norms_are_upper_bounds(design_of(storage, rows), rows, scales)


def test_scaled_norms_without_their_margin_are_noticed(monkeypatch):
    right = RowDesign.scaled_norms
    monkeypatch.setattr(RowDesign, "scaled_norms", lambda self, s: right(self, s) * (1 - 1e-13))
    with pytest.raises(AssertionError):
        test_scaled_norms_are_upper_bounds("C")


@storages("C", "csr array")
def test_row_norms_where_squares_overflow(storage):
    norms = design_of(storage, np.array([[1e200, 1.0], [0.0, 0.0]])).row_norms
    assert norms[0] >= 1e200 and norms[1] == 0


def assert_upper_bounds(design, rows):
    for bound, row in zip(design.row_norms, rows, strict=True):
        size_sq = exact.dot(exact.fractions(row), exact.fractions(row))
        if np.isinf(bound):
            assert size_sq > Fraction(1e150) ** 2
            continue
        assert Fraction(bound) ** 2 >= size_sq
        # and not much more, but for rows whose squares underflow
        loose = 4 * len(row) if bound < 1e-139 else 1
        assert Fraction(bound) ** 2 <= size_sq * loose * (1 + Fraction(1, 10**12))


# --- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_not_copied(dtype, order):
    X = np.ones((5, 3), dtype=dtype, order=order)
    assert np.shares_memory(as_design(X).data, X)
    assert as_design(X).data.dtype == X.dtype


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_canonical_csr_is_not_copied(kind):
    X = kind(np.eye(4))
    design = as_design(X)
    assert design.data.data is X.data or np.shares_memory(design.data.data, X.data)
    assert np.shares_memory(design.data.indices, X.indices)


@every_storage
def test_the_matrix_of_the_caller_stays_as_it_is(storage):
    values = np.array([[1.0, 0.0, -2.0], [0.0, 0.0, 0.0], [3.0, 4.0, 0.5]])
    X = held(storage, values, intercept=True)
    before = _contents(X)
    problem = make_problems(
        X, [1, -1, 1], loss="squared_hinge", penalty="l2", alpha=0.1, fit_intercept=True
    ).problem
    at = problem.evaluate(np.ones(4))
    problem.certify(at)
    problem.design.gram(np.ones(3))
    problem.restrict(np.array([True, False, True])).evaluate(np.ones(4))
    for old, new in zip(before, _contents(X), strict=True):
        np.testing.assert_array_equal(new, old)


def _contents(X):
    """Copies of all arrays that hold a matrix, in their order."""
    if isinstance(X, Design):
        return _contents(X.data)
    if not sparse.issparse(X):
        return [X.copy()]
    names = ("data", "indices", "indptr", "row", "col", "rows")
    return [np.array(getattr(X, name)) for name in names if hasattr(X, name)]


@storages("C", "Fortran", "csr array")
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_data_are_never_converted_whole(storage, dtype, monkeypatch):
    n, p = 6000, 300
    monkeypatch.setattr(dense_module, "_BLOCK", 2**15)
    monkeypatch.setattr(device_blocks, "_BLOCK", 2**15)
    monkeypatch.setattr(sparse_module, "_BLOCK_ENTRIES", 2**15)
    X = held(storage, np.ones((n, p), dtype=dtype))
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    problem = make_problems(
        X, y, loss="squared_hinge", penalty="l2", alpha=0.1, fit_intercept=False
    ).problem
    whole = n * p * 8
    assert peak(lambda: problem.design.row_norms) < whole / 5
    problem.evaluate(np.ones(p))  # loops are compiled
    assert peak(lambda: problem.evaluate(np.ones(p))) < whole / 4


@pytest.mark.parametrize("order", ["C", "F"])
def test_default_blocks_stay_small(order):
    """With the block sizes as they are: a 24 MB matrix is never held in float64."""
    X = np.ones((20000, 300), dtype=np.float32, order=order)
    design = as_design(X)
    assert peak(lambda: design.row_norms) < 8e6
    assert peak(lambda: design.matvec(np.ones(300))) < 8e6


def peak(call):
    """The most memory that was held at once during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("storage", ["C", "Fortran", "csr array", "slots"])
def test_rows_that_are_held_are_counted_once(storage):
    design, rows = design_of(storage, np.ones((6, 2)), intercept=True), np.array([1, 4])
    with counting() as tally:
        held_rows = design.hold(rows)
        for _ in range(3):
            held_rows.matvec(np.ones(3))
            held_rows.gram(np.ones(2))
    assert tally.rows == 2
    with counting() as tally:
        design.take(rows).matvec(np.ones(3))
    assert tally.rows == 2
