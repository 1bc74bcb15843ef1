"""`screen` with the power of the solver: its verdicts are the estimators', and all of them true."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import safesift as ss
from safesift.estimators.models import MODELS
from safesift.problem.decisions import Bounds
from safesift.workflows import screening, verdicts
from tests.laws.laws import arrays, optimum
from tests.laws.problems import Recipe, recipes
from tests.laws.reference import dense_rows, objective
from tests.laws.test_regions import decided

HINGES = ["hinge", "squared_hinge", "smoothed_hinge", "safe_logistic"]


def law_full_screening_is_true(recipe: Recipe) -> None:
    """Bounds hold at the optimum, decided rows are on their piece, the reduced optimum is one."""
    X, y, arguments = arrays(recipe)
    result = ss.screen(X, y, **arguments, max_iter=50, fold="always", random_state=0)
    assert result.certified
    problem, best = result.problem, optimum(result.problem)
    pred = dense_rows(problem) @ best.point
    # the reference's own word on its accuracy is for objectives; an intercept may be further off
    room = (
        1e-13 + 10 * best.accuracy * (1.0 + np.linalg.norm(best.point)) * problem.design.row_norms
    )
    assert (result.lower - room <= pred).all() and (pred <= result.upper + room).all()
    decisions, known = result.decisions, ~result.undecided
    assert (pred[known] >= (decisions.lower - room)[known]).all()
    assert (pred[known] <= (decisions.upper + room)[known]).all()
    assert ((result.score < 0) == ~result.kept)[problem.weights > 0].all() or not _flat(problem)
    solution = optimum(result.reduced)
    exact = max(best.accuracy, solution.accuracy) <= 1e-7
    enough = 1e-11 if exact else 1e-7 * (1.0 + abs(best.value))
    assert objective(problem, solution.point) <= best.value + enough


def _flat(problem) -> bool:
    return any(piece.is_flat for piece in problem.pieces)


@given(recipe=recipes())
def test_full_screening_is_true(recipe):
    decided(law_full_screening_is_true, recipe)


@given(recipe=recipes(penalty=("l2", "l1", "elastic_net")))
def test_verdicts_are_at_least_those_of_the_fit(recipe):
    X, y, arguments = arrays(recipe)
    weights = arguments.pop("sample_weight")
    how = {"max_iter": 50, "random_state": 0}
    result = ss.screen(X, y, **arguments, sample_weight=weights, **how)
    with warnings.catch_warnings():
        # so few steps may not be enough
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MODELS[arguments["loss"].task](**arguments, **how).fit(X, y, weights)
    assert not (result.kept & ~model.kept_).any()
    found = result.to_estimator()
    np.testing.assert_array_equal(found.coef_, model.coef_)
    np.testing.assert_array_equal(found.intercept_, model.intercept_)


# --- several classes ----------------------------------------------------------------------------


def several(seed: int, loss: str, penalty: str, intercept: bool):
    rng = np.random.default_rng(seed)
    n, p, k = int(rng.integers(6, 25)), int(rng.integers(1, 5)), int(rng.integers(3, 5))
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X = rng.normal(size=(n, p)) + 2.0 * np.eye(k, p)[y] * rng.uniform(0, 2)
    weights = rng.choice([0.5, 1.0, 2.0], n)
    alpha = float(10.0 ** rng.uniform(-3, 0))
    how = {"loss": loss, "penalty": penalty, "alpha": alpha, "fit_intercept": intercept}
    return X, np.array(list("abcd"))[y], weights, how


def law_dropped_rows_change_no_class(X, y, weights, how) -> int:
    """Without the dropped rows, divided by all weights, every class has the same optimal value."""
    result = ss.screen(X, y, sample_weight=weights, **how, max_iter=50, random_state=0)
    assert result.certified and len(result.parts) == len(np.unique(y))
    for part in result.parts:
        problem, best = part.problem, optimum(part.problem)
        left = optimum(problem.restrict(result.kept))
        room = 1e-6 if max(best.accuracy, left.accuracy) > 1e-7 else 1e-9
        assert objective(problem, left.point) <= best.value + room * (1.0 + abs(best.value))
    return int((~result.kept).sum())


SETTINGS = st.tuples(
    st.integers(0, 2**32 - 1), st.sampled_from(HINGES), st.sampled_from(["l2", "elastic_net"]),
    st.booleans(),
)  # fmt: skip


@given(setting=SETTINGS)
def test_dropped_rows_change_no_class(setting):
    decided(lambda: law_dropped_rows_change_no_class(*several(*setting)) and None)


def broken(law, settings) -> bool:
    for setting in settings:
        try:
            law(*setting)
        except AssertionError:
            return True
    return False


DRAWN = [several(seed, "squared_hinge", "l2", seed % 2 == 0) for seed in range(40)]


def test_some_rows_are_dropped():
    assert sum(law_dropped_rows_change_no_class(*drawn) for drawn in DRAWN[:10]) > 20


def test_mutation_dropped_by_one_class_is_dropped(monkeypatch):
    def by_any(self):
        return np.all([part.kept for part in self.parts], axis=0)

    monkeypatch.setattr(verdicts.Verdicts, "kept", property(by_any))
    assert broken(law_dropped_rows_change_no_class, DRAWN)


def test_mutation_pieces_of_rows_that_were_not_decided(monkeypatch):
    """The ends of the flat piece for all rows: bounds that do not hold."""

    def everywhere(decisions):
        piece = next(piece for piece in decisions.pieces if piece.is_flat)
        return Bounds(np.asarray(piece.lower), np.asarray(piece.upper))

    monkeypatch.setattr(screening, "_pieces", everywhere)
    recipes_ = [(Recipe("squared_hinge", "l2", seed=seed),) for seed in range(20)]
    assert broken(law_full_screening_is_true, recipes_)


# --- what it says -------------------------------------------------------------------------------


@pytest.mark.parametrize("container", ["array", "frame", "sparse", "list"])
def test_rows_are_taken_in_the_type_they_came_in(container):
    pd, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "up", "down")
    make = {
        "array": np.asarray, "sparse": sparse.csr_array, "list": np.ndarray.tolist,
        "frame": lambda rows: pd.DataFrame(rows, columns=["a", "b", "c"], index=range(100, 160)),
    }[container]  # fmt: skip
    result = ss.screen(make(X), y, alpha=1e-2)
    rows, labels = result.take(make(X), list(y))
    assert type(rows) is type(make(X)) and isinstance(labels, list)
    assert labels == list(y[result.kept])
    if container == "frame":
        assert list(rows.index) == list(100 + np.flatnonzero(result.kept))
        assert list(result.to_estimator().feature_names_in_) == ["a", "b", "c"]
