"""Laws of followed problems, on small generated ones: what is claimed, recomputed from all rows."""

from __future__ import annotations

import copy
import pickle
import warnings
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import safesift as ss
from safesift.losses import LOSSES
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.workflows.tracking.data import Data
from safesift.workflows.tracking.follower import Follower, certified_gap, slope, undecided
from safesift.workflows.tracking.pieces import PieceTable
from tests.laws.reference import dense_rows, objective, optimum

LOSS_NAMES = (
    "squared_hinge",
    "smoothed_hinge",
    "squared",
    "huber",
    "squared_epsilon_insensitive",
    "smoothed_epsilon_insensitive",
)
# of sums that are computed here and of reference optima
NOISE = 1e-11


def rows(rng, n, p):
    """Rows that are sometimes equal, zero, on a kink, or large."""
    kinds = [rng.normal(size=(n, p)), rng.integers(-2, 3, (n, p)).astype(float)]
    X = kinds[rng.integers(2)]
    X[rng.random(n) < 0.1] = 0.0
    return X * rng.choice([1.0, 1.0, 1.0, 30.0], size=(n, 1))


def targets(rng, n, task, n_classes=2):
    if task == "classification":
        return rng.integers(0, n_classes, n)
    return np.round(rng.normal(size=n), 1)


def problem_of(model, X, y, weights, label=None) -> Problem:
    y = np.where(y == label, 1.0, -1.0) if label is not None else y
    return make_problems(
        X, y, loss=model._checked_loss(), penalty="l2", alpha=model.alpha,
        fit_intercept=model.fit_intercept, sample_weight=weights,
    ).problem  # fmt: skip


def law_model_is_optimal(tracker, X, y, weights) -> None:
    """The tracker has these samples, and what it says of its model is true of them."""
    model = tracker.estimator_
    held = tracker.X_.toarray() if sparse.issparse(tracker.X_) else tracker.X_
    np.testing.assert_array_equal(held, X)
    np.testing.assert_array_equal(tracker.y_, y)
    np.testing.assert_array_equal(tracker.sample_weight_, weights)
    labels = [None]
    if model._task == "classification":
        classes = np.unique(y[weights > 0])
        np.testing.assert_array_equal(tracker.classes_, classes)
        labels = classes[1:] if len(classes) == 2 else classes
    coefs, intercepts = np.atleast_2d(tracker.coef_), np.atleast_1d(tracker.intercept_)
    flat = np.ones(len(y), dtype=bool)
    for k, label in enumerate(labels):
        problem = problem_of(model, X, y, weights, label)
        point = problem.join(coefs[k], float(intercepts[k]))
        gap = float(np.atleast_1d(tracker.dual_gap_)[k])
        best, size = optimum(problem), max(1.0, problem.constant_value)
        # recomputed from its definition
        assert objective(problem, point) <= best.value + gap + NOISE * size
        if tracker.history_[-1]["relative_gap"] <= model.tol:
            assert gap <= model.tol * size
        else:
            assert tracker.history_[-1]["why"]  # only a fit may end without reaching it
        if not problem.fit_intercept:
            far = np.linalg.norm(point - best.point)
            assert far <= np.sqrt(2.0 * gap / model.alpha) + best.accuracy + 1e-7
        pred = dense_rows(problem) @ best.point
        flat &= np.abs(problem.loss.slope(pred, problem.y)) <= 1e-6
    # what is dropped has no slope at the optimum
    assert (flat | tracker.kept_ | (weights == 0)).all()


def follower_of(problem: Problem, point, others=None) -> tuple[Follower, Data]:
    """A follower at any point; other rows with the same targets lie in the slots that come next."""
    X, n = problem.design.data, problem.design.n_samples
    y, weights = problem.y, problem.weights
    if others is not None:
        X, y, weights = np.concatenate([X, others]), np.tile(y, 2), np.tile(weights, 2)
    data = Data.of(X, y, weights, weights, problem.fit_intercept)
    data = replace(data, order=data.order[:n], total=float(problem.weights.sum()))
    label = 1.0 if problem.loss.task == "classification" else None
    return Follower(PieceTable(problem.loss, label), problem.alpha, point, data), data


def drawn_problem(seed: int, loss: str, intercept: bool) -> tuple[Problem, np.random.Generator]:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 25)), int(rng.integers(1, 5))
    task = LOSSES[loss]().task
    y = targets(rng, n, task)
    if task == "classification":
        y[:2] = 0, 1
    weights = rng.choice([0.5, 1.0, 3.0], n)
    problem = make_problems(
        rows(rng, n, p), y, loss=loss, penalty="l2", alpha=float(rng.choice([1e-2, 0.3])),
        fit_intercept=intercept, sample_weight=weights,
    ).problem  # fmt: skip
    return problem, rng


def law_certificate_holds(seed: int, loss: str, intercept: bool) -> None:
    """At any point the gap is one, and what is decided there is so at the optimum."""
    problem, rng = drawn_problem(seed, loss, intercept)
    best = optimum(problem)
    d = len(best.point)
    follower, data = follower_of(problem, best.point + 0.3 * rng.normal(size=d))
    direction = rng.normal(size=d)
    if rng.random() < 0.5:
        # a gradient in one coordinate only
        direction = np.linalg.lstsq(follower.curvature(data.total), np.eye(d)[-1])[0]
    measured = data.measured(np.cov(rng.normal(size=(d, 4))).reshape(d, d) + np.eye(d))
    follower.remeasure(data, measured)
    data, point = measured, best.point + 10.0 ** rng.uniform(-9, 0) * direction
    for _ in range(rng.integers(4)):
        follower.move(point + 0.2 * rng.normal(size=d), data)
    follower.move(point, data)
    at = slope(follower, data)
    gap = certified_gap(follower, data, at)
    size = max(1.0, problem.constant_value)
    assert objective(problem, point) - best.value <= gap * (1.0 + 1e-9) + NOISE * size
    assert abs(follower.value(data.total) - objective(problem, point)) <= NOISE * size
    assert abs(follower.problem(data).primal(point) - objective(problem, point)) <= NOISE * size
    decided = np.ones(len(problem.y), dtype=bool)
    decided[undecided(follower, data, at)] = False
    which, room = follower.table.locate(problem.y, dense_rows(problem) @ best.point)
    agrees = (which == follower.piece[: len(which)]) | (room <= 1e-7)
    assert (agrees | ~decided).all()


def law_sums_are_known(seed: int, loss: str, intercept: bool) -> None:
    """After rows came, went and moved, the sums are within their bounds of exact ones."""
    problem, rng = drawn_problem(seed, loss, intercept)
    d = problem.design.n_columns
    large = rng.choice([1.0, 1e6], size=(problem.design.n_samples, 1)) * problem.design.data
    follower, data = follower_of(problem, rng.normal(size=d), large)
    for _ in range(20):
        some = np.flatnonzero(rng.random(data.n_samples) < 0.5)
        small, large = data.rows(some), data.rows(some + data.n_samples)
        follower.swap(small, large)
        follower.swap(large, small)
        follower.move(rng.normal(size=d), data)
    A = np.longdouble(dense_rows(problem))
    terms = follower.table.terms(
        problem.y, follower.piece[: len(problem.y)], np.longdouble(problem.weights)
    )
    Q = (A.T * terms.quadratic) @ A
    q, r = A.T @ terms.linear, terms.constant.sum()
    sums = follower.sums
    assert np.linalg.norm(np.float64(Q - sums.Q)) <= sums.Q_error
    assert np.linalg.norm(np.float64(q - sums.q)) <= sums.q_error
    assert abs(float(r - sums.r)) <= sums.r_error


@contextmanager
def hard_to_fit():
    """The gap says how far a fit came."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class Edits:
    """A tracker, and the samples it should have."""

    def __init__(self, seed: int, loss: str, intercept: bool, storage: str, n_classes: int = 2):
        self.rng = np.random.default_rng(seed)
        self.task = LOSSES[loss]().task
        self.p, self.n_classes, self.storage = int(self.rng.integers(1, 4)), n_classes, storage
        kind = ss.SafeClassifier if self.task == "classification" else ss.SafeRegressor
        alpha = float(self.rng.choice([1e-2, 0.3]))
        model = kind(loss, alpha=alpha, fit_intercept=intercept, random_state=0)
        n = int(self.rng.integers(8, 20))
        self.X, self.y, self.weights = self.new(n)
        if self.task == "classification":
            self.y[: self.n_classes] = np.arange(self.n_classes)
            self.weights[: self.n_classes] = 1.0
        self.tracker = ss.SafeTracker(model)
        with hard_to_fit():
            self.tracker.fit(self.stored(self.X), self.y, self.weights)

    def new(self, n):
        X = rows(self.rng, n, self.p)
        if self.storage == "float32":
            X = X.astype(np.float32).astype(np.float64)
        y = targets(self.rng, n, self.task, self.n_classes)
        return X, y, self.rng.choice([0.0, 1.0, 1.0, 2.5], n)

    def stored(self, X):
        if self.storage == "csr":
            return sparse.csr_array(X)
        return X.astype(np.float32) if self.storage == "float32" else X

    def edit(self, n_add: int, n_remove: int, n_relabel: int) -> None:
        """A random edit of some size; one that leaves no two classes is refused, and undone."""
        rng, n = self.rng, len(self.y)
        order = rng.permutation(n)
        out, again = order[: min(n_remove, n - 1)], order[n_remove : n_remove + n_relabel]
        X, y, w = self.new(n_add)
        labels = targets(rng, len(again), self.task, self.n_classes)
        relabelled = self.y.copy()
        relabelled[again] = labels
        new = (
            np.concatenate([np.delete(self.X, out, axis=0), X]),
            np.concatenate([np.delete(relabelled, out), y]),
            np.concatenate([np.delete(self.weights, out), w]),
        )
        change = {
            "add": (self.stored(X), y, w) if n_add else None,
            "remove": out if len(out) else None,
            "relabel": (again, labels) if len(again) else None,
        }
        needed = 2 if self.task == "classification" else 0
        if not (new[2] > 0).any() or len(np.unique(new[1][new[2] > 0])) < needed:
            with pytest.raises(ValueError, match="would be left"):
                self.tracker.update(**change)
            return
        with hard_to_fit():
            self.tracker.update(**change)
        self.X, self.y, self.weights = new

    def check(self) -> None:
        law_model_is_optimal(self.tracker, self.X, self.y, self.weights)

    def copied(self, how) -> Edits:
        """The same with a copy of the tracker, to be edited in another way."""
        other = copy.copy(self)
        other.tracker, other.rng = how(self.tracker), copy.deepcopy(self.rng)
        other.rng.random()
        return other


# ways to get a second tracker with the same samples
COPIES = (copy.copy, copy.deepcopy, lambda tracker: pickle.loads(pickle.dumps(tracker)))


def law_copies_go_their_own_way(seed: int, loss: str, intercept: bool, storage: str) -> None:
    """Of a tracker and its copies any is edited at any time, and none notices the others."""
    family = [Edits(seed, loss, intercept, storage)]
    rng = np.random.default_rng(seed)
    for _ in range(6):
        chosen = family[rng.integers(len(family))]
        if len(family) < 4 and rng.random() < 0.5:
            family.append(chosen.copied(COPIES[rng.integers(len(COPIES))]))
        chosen.edit(*rng.integers(0, 5, 3))
        for edits in family:
            edits.check()


def law_after_edits(seed: int, loss: str, intercept: bool, storage: str) -> None:
    """A few edits, and what the tracker says after each."""
    edits = Edits(seed, loss, intercept, storage)
    for _ in range(4):
        edits.edit(*edits.rng.integers(0, 5, 3))
        edits.check()
