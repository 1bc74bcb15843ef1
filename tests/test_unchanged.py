"""Results refer to the data they were made from: if those change, that is noticed."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import safesift as ss
from safesift.arithmetic import fingerprints
from safesift.arithmetic.fingerprints import fingerprint
from safesift.design import as_design
from safesift.design.kernels import KernelChoice
from safesift.design.rows import RowSubset
from safesift.design.slots import as_slots
from safesift.problem.decisions import Decisions
from safesift.problem.inputs import make_problems, on_kernel
from safesift.problem.risk import ChangedDataError

seeds = st.integers(0, 2**32 - 1)
KINDS = ("f8", "f4", "f2", "i4", "i1", "?", ">f8")


# --- fingerprints -----------------------------------------------------------------------------


def drawn(rng) -> np.ndarray:
    n, p = int(rng.integers(1, 400)), int(rng.integers(1, 30))
    return (4 * rng.normal(size=(n, p))).astype(rng.choice(KINDS))


def law_a_change_shows(seed: int) -> None:
    """One entry, two rows or two columns that trade places, all signs: whatever changes a value."""
    rng = np.random.default_rng(seed)
    array = drawn(rng)
    known = fingerprint(array)
    i, k = rng.integers(len(array), size=2)
    j, m = rng.integers(array.shape[1], size=2)
    one, rows, columns, signs = (array.copy() for _ in range(4))
    one[i, j] = ~one[i, j] if one.dtype == bool else one[i, j] + 1
    rows[[i, k]] = rows[[k, i]]
    columns[:, [j, m]] = columns[:, [m, j]]
    if signs.dtype != bool:
        signs *= -1
    for changed in (one, rows, columns, signs):
        assert (fingerprint(changed) == known) == np.array_equal(changed, array)


def law_only_values_matter(seed: int) -> None:
    """Not how they lie in memory."""
    rng = np.random.default_rng(seed)
    array = drawn(rng)
    known = fingerprint(array)
    wide = np.zeros((2 * array.shape[0], 3 * array.shape[1]), dtype=array.dtype)
    wide[::2, 1::3] = array
    for same in (array.copy(), np.asfortranarray(array), wide[::2, 1::3], array[::-1][::-1],
                 pickle.loads(pickle.dumps(wide[::2, 1::3]))):  # fmt: skip
        assert fingerprint(same) == known


@pytest.mark.parametrize("law", [law_a_change_shows, law_only_values_matter])
@given(seed=seeds)
def test_fingerprints(law, seed):
    law(seed)


@pytest.mark.parametrize("factor", [1, 2**63])
def test_factors_that_forget_the_order(monkeypatch, factor):
    """1 adds up all blocks alike, an even one forgets the first of them."""
    monkeypatch.setattr(fingerprints, "_FACTOR", factor)
    monkeypatch.setattr(fingerprints, "_WORDS", 64)
    with pytest.raises(AssertionError):
        for seed in range(300):
            law_a_change_shows(seed)


# --- problems ---------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * (RNG.random((60, 4)) < 0.8)
Y = X @ [1.0, -1.0, 0.5, 0.0] + 0.1 * RNG.normal(size=60)


def stored(how):
    """X in some type, and what of it can be changed in place."""
    match how:
        case "csr":
            matrix = sparse.csr_array(X)
            return matrix, matrix.data
        case "Fortran":
            array = np.asfortranarray(X)
        case "float32":
            array = X.astype(np.float32)
        case "strided":
            array = np.repeat(X, 2, axis=1)[:, ::2]
        case _:
            array = X.copy()
    return array, array


STORAGES = ("dense", "Fortran", "float32", "strided", "csr")


def problem_on(matrix, y=Y, **arguments):
    arguments = {"loss": "huber", "penalty": "l2", "alpha": 0.1} | arguments
    return make_problems(matrix, y, **arguments).problem


@pytest.mark.parametrize("storage", STORAGES)
def test_a_matrix_that_changes_is_noticed(storage):
    matrix, entries = stored(storage)
    problem = problem_on(matrix)
    problem.check_unchanged()  # nothing was sealed
    problem.seal()
    problem.check_unchanged()
    before = entries.flat[5]
    entries.flat[5] += 1
    for other in (problem, problem.at_level(0.3), pickle.loads(pickle.dumps(problem))):
        with pytest.raises(ChangedDataError, match=r"X or sample_weight changed after this result"):
            other.check_unchanged()
    entries.flat[5] = before
    problem.check_unchanged()
    entries[...] = -entries
    with pytest.raises(ChangedDataError, match="make the result anew, or give it a copy"):
        problem.check_unchanged()


def test_rows_that_are_shuffled_in_place_are_noticed():
    matrix, _ = stored("dense")
    problem = problem_on(matrix)
    problem.seal()
    np.random.default_rng(1).shuffle(matrix)
    with pytest.raises(ChangedDataError, match="X or sample_weight"):
        problem.check_unchanged()


def test_one_look_at_the_rows_is_enough_for_all_classes(monkeypatch):
    looks = []
    monkeypatch.setattr(
        "safesift.design.dense.fingerprint", lambda *parts: looks.append(1) or fingerprint(*parts)
    )
    labels = np.arange(60) % 3
    problems = make_problems(X, labels, loss="hinge", penalty="l2", alpha=0.1).problems
    for problem in problems:
        problem.seal()
        problem.at_level(0.2).seal()
    assert len(problems) == 3 and len(looks) == 1


def test_what_was_copied_need_not_be_looked_at():
    """Targets and weights are copies from the start, and so are the rows of a reduced problem."""
    matrix, y, weights = X.copy(), Y.copy(), np.ones(60)
    problem = problem_on(matrix, y, sample_weight=weights)
    problem.seal()
    reduced = problem.reduce(Decisions.nothing(problem))
    y[:], weights[:] = 0.0, 2.0
    problem.check_unchanged()
    expected = reduced.primal(np.ones(5))
    matrix[:] = 0.0
    reduced.check_unchanged()
    assert reduced.primal(np.ones(5)) == expected
    problem.y[0] += 1.0
    with pytest.raises(ChangedDataError, match="X or"):
        problem.check_unchanged()
    matrix[:] = X
    with pytest.raises(ChangedDataError, match="y changed"):
        problem.check_unchanged()


@pytest.mark.parametrize("loss", ["EpsilonInsensitive", "SquaredEpsilonInsensitive"])
def test_a_loss_has_parameters_of_its_own(loss):
    epsilon = np.full(60, 0.1)
    mine = getattr(ss.losses, loss)(epsilon)
    problem = problem_on(X, loss=mine)
    before = problem.primal(np.zeros(5))
    epsilon[:] = 10.0
    assert problem.primal(np.zeros(5)) == before
    with pytest.raises(ValueError, match="read-only"):
        mine.epsilon[0] = 1.0
    # parts of it are not copied again, and copies work
    assert np.shares_memory(mine.take(slice(3, 9)).epsilon, mine.epsilon)
    for other in (copy.copy(mine), copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
        np.testing.assert_array_equal(other.epsilon, mine.epsilon)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_kernels_notice_too(kernel):
    matrix = X @ X.T if kernel == "precomputed" else X.copy()
    chosen = KernelChoice(kernel, 0.5).of(matrix, 0.5)
    (problem,) = on_kernel([problem_on(X)], chosen, 10**6)
    problem.seal()
    matrix[3, 3] += 1e-9
    with pytest.raises(ChangedDataError):
        problem.check_unchanged()


def test_designs_of_every_kind_can_tell():
    for design in (
        as_design(X), as_design(sparse.csr_array(X)), as_design(X).only(np.arange(9)),
        RowSubset(as_design(X), np.arange(9)), as_slots(X, True),
        as_slots(sparse.csr_array(X), True),
    ):  # fmt: skip
        assert len(design.fingerprint()) == 16
        assert design.fingerprint() == copy.deepcopy(design).fingerprint()


# --- results and estimators ---------------------------------------------------------------------


def test_results_and_estimators_can_be_copied_and_pickled():
    result = ss.screen(X, Y, loss=ss.losses.SquaredEpsilonInsensitive(np.full(60, 0.2)), alpha=0.1)
    result.problem.seal()
    model = ss.SafeRegressor(alpha=0.1).fit(X, Y)
    kernel = ss.SafeKernelRegressor(kernel="precomputed", alpha=0.1).fit(X @ X.T + np.eye(60), Y)
    for how in (copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))):
        other = how(result)
        other.problem.check_unchanged()
        np.testing.assert_array_equal(other.kept, result.kept)
        np.testing.assert_array_equal(other.reduced.q, result.reduced.q)
        np.testing.assert_array_equal(how(model).predict(X), model.predict(X))
        np.testing.assert_array_equal(how(kernel).dual_coef_, kernel.dual_coef_)
