"""Generated pools, and the laws of mining as plain functions: what is not kept cannot matter."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import safesift as ss
from safesift.penalties import PENALTIES
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from tests.laws.reference import dense_rows, objective, optimum

# what is held of the largest pool fits into it; `tests.laws.test_mining` makes blocks small
MEMORY = "500 kB"
LOSSES = ("squared_hinge", "safe_logistic", "smoothed_hinge", "hinge")
FAMILIES = ("plain", "grid", "ordered", "duplicates")
CLASS_WEIGHTS = {None: None, "balanced": "balanced", "dict": {0: 0.5, 1: 3.0}}


@dataclass(frozen=True)
class Recipe:
    """A pool and training rows, by a seed.

    Attributes
    ----------
    class_weight : None, "balanced" or "dict"
    label : int
        Of all rows of the pool, or of most of them.
    mixed : bool
        Whether each row of the pool has a label of its own.
    max_iter : int
        1 stops far from the optimum, where the region has to be wide.
    """

    seed: int
    loss: str = "squared_hinge"
    penalty: str = "l2"
    family: str = "plain"
    intercept: bool = False
    weighted: bool = False
    class_weight: str | None = None
    label: int = 0
    mixed: bool = False
    single: bool = False
    sparse: bool = False
    max_iter: int = 1000
    max_passes: int = 20


@dataclass(frozen=True, eq=False)
class Setting:
    """The arguments of `mine_hard`, and the full problem written down independently."""

    X: np.ndarray
    y: np.ndarray
    pool: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None
    pool_weight: np.ndarray | float
    model: ss.SafeClassifier
    recipe: Recipe

    @property
    def full(self) -> Problem:
        recipe = self.recipe
        y = np.append(self.y, self.labels)
        ours = np.ones(len(self.y)) if self.weights is None else self.weights
        weights = np.append(ours, np.zeros(len(self.pool)) + self.pool_weight)
        if recipe.class_weight == "balanced":
            totals = np.bincount(y, weights)
            weights = weights * (weights.sum() / (2 * totals))[y]
        elif recipe.class_weight == "dict":
            weights = weights * np.array([0.5, 3.0])[y]
        return make_problems(
            np.vstack([self.X, self.pool]).astype(np.float64), y, loss=recipe.loss,
            penalty=recipe.penalty, alpha=self.model.alpha, fit_intercept=recipe.intercept,
            sample_weight=weights,
        ).problem  # fmt: skip

    @property
    def told(self) -> dict[str, Any]:
        """How `mine_hard` is told of the labels."""
        return {"y_pool": self.labels} if self.recipe.mixed else {"label": self.recipe.label}

    def mined(self, pool=None, **options) -> ss.MiningResult:
        store = sparse.csr_matrix if self.recipe.sparse else np.asarray
        pool = store(self.pool) if pool is None else pool
        options = {"memory": MEMORY, "max_passes": self.recipe.max_passes, **self.told} | options
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return ss.mine_hard(
                pool, self.model, store(self.X), self.y, sample_weight=self.weights,
                pool_weight=self.pool_weight, **options,
            )  # fmt: skip


def setting(recipe: Recipe) -> Setting:
    rng = np.random.default_rng(recipe.seed)
    n, m, p = int(rng.integers(6, 20)), int(rng.integers(20, 60)), int(rng.integers(1, 4))
    direction = rng.normal(size=p)
    y = np.append([0, 1], rng.integers(0, 2, n - 2))
    X = rng.normal(size=(n, p)) + np.outer(2 * y - 1, direction)
    labels = _labels(recipe, m)
    sides = 2 * labels - 1
    pool = rng.normal(size=(m, p)) + np.outer(sides, rng.uniform(0.5, 3) * direction)
    if recipe.family == "grid":
        # integers: rows exactly on a kink, and equal rows
        X, pool = np.round(X), np.round(pool)
    elif recipe.family == "ordered":
        # the hardest come last, so that the first pass knows nothing of them
        rows = np.argsort(-sides * (pool @ direction))
        pool, labels = pool[rows], labels[rows]
    elif recipe.family == "duplicates":
        rows = rng.integers(0, m // 4, m)
        pool, labels = pool[rows], labels[rows]
    dtype = np.float32 if recipe.single else np.float64
    X, pool = X.astype(dtype), pool.astype(dtype)
    weights, pool_weight = None, 1.0
    if recipe.weighted:
        weights = rng.choice([0.5, 1.0, 3.0], n)
        pool_weight = rng.choice([0.0, 0.25, 1.0, 4.0], m)
        pool_weight[0] = 1.0
    model = ss.SafeClassifier(
        recipe.loss, penalty=recipe.penalty, alpha=10.0 ** rng.uniform(-3, -0.5),
        fit_intercept=recipe.intercept, class_weight=CLASS_WEIGHTS[recipe.class_weight],
        random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, weights)
    model.set_params(max_iter=recipe.max_iter)
    return Setting(X, y, pool, labels, weights, pool_weight, model, recipe)


def _labels(recipe: Recipe, n_rows: int) -> np.ndarray:
    """Mostly those of one class, and where they are mixed a third of the other."""
    labels = np.full(n_rows, recipe.label)
    if recipe.mixed:
        rng = np.random.default_rng([recipe.seed, 1])
        labels[rng.random(n_rows) < 1 / 3] = 1 - recipe.label
    return labels


def law_what_is_not_kept_cannot_matter(recipe: Recipe) -> None:
    """At the optimum of everything the other rows are flat, and without them it is the same."""
    given = setting(recipe)
    _check_what_is_not_kept(given, given.mined())


def law_of_rows_that_change_sides(recipe: Recipe) -> None:
    """The same where rows that nobody holds become rows of the other class after a pass."""
    given = setting(replace(recipe, sparse=False, max_passes=max(recipe.max_passes, 2)))
    sides = 2 * given.labels - 1
    flat = sides * given.model.decision_function(given.pool) > 1.5
    rows, labels = given.pool.copy(), given.labels.copy()
    # as far from the other class as they were from their own
    rows[flat], labels[flat] = -rows[flat], 1 - labels[flat]
    readings = iter([(given.pool, given.labels)])
    mined = given.mined(lambda: [next(readings, (rows, labels))], **dict.fromkeys(given.told))
    _check_what_is_not_kept(replace(given, pool=rows, labels=labels), mined)


def _check_what_is_not_kept(given: Setting, mined: ss.MiningResult) -> None:
    full = given.full
    best, point = optimum(full), _point(full, mined.model)
    room = 1e-7 if best.accuracy > 1e-7 else 1e-11
    room *= 1.0 + abs(best.value)
    assert objective(full, point) - best.value <= mined.dual_gap + room
    if not mined.proved:
        return
    dropped = np.ones(len(given.pool), dtype=bool)
    dropped[mined.indices] = False
    rows = np.append(
        np.zeros(len(given.y), dtype=bool), dropped & (full.weights[len(given.y) :] > 0)
    )
    slopes = full.loss.value(dense_rows(full)[rows] @ best.point, full.y[rows])
    assert (slopes <= 1e-5 + best.accuracy).all()
    kept = np.append(np.ones(len(given.y), dtype=bool), ~dropped)
    solution = optimum(full.restrict(kept))
    if solution.accuracy > 1e-7:
        room = max(room, 1e-7 * (1.0 + abs(best.value)))
    assert objective(full, solution.point) <= best.value + room
    assert abs(solution.value - best.value) <= room


def law_the_gap_is_that_of_the_rows_read_last(recipe: Recipe) -> None:
    """Of a pool whose hard rows become easy after the first pass, the last one counts."""
    given = setting(replace(recipe, sparse=False))
    margins = (2 * given.labels - 1) * given.model.decision_function(given.pool)
    easiest, later, labels = np.argmax(margins), given.pool.copy(), given.labels.copy()
    later[margins < 1], labels[margins < 1] = given.pool[easiest], given.labels[easiest]
    readings = iter([(given.pool, given.labels)])
    mined = given.mined(lambda: [next(readings, (later, labels))], **dict.fromkeys(given.told))
    full = replace(given, pool=later, labels=labels).full
    best, point = optimum(full), _point(full, mined.model)
    room = max(1e-11, best.accuracy) * (1.0 + abs(best.value))
    assert objective(full, point) - best.value <= mined.dual_gap + room


def law_kept_rows_alone(recipe: Recipe) -> None:
    """With `alpha_kept`, an estimator that averages has the same optimum on the kept rows."""
    given = setting(replace(recipe, class_weight=None, max_iter=1000, sparse=False))
    mined = given.mined()
    assert mined.proved
    y = np.append(given.y, mined.y_kept)
    weights = None
    if recipe.weighted:
        weights = np.append(given.weights, given.pool_weight[mined.indices])
    alone = make_problems(
        np.vstack([given.X, mined.X_kept]), y, loss=recipe.loss, penalty=recipe.penalty,
        alpha=mined.alpha_kept, fit_intercept=recipe.intercept, sample_weight=weights,
    ).problem  # fmt: skip
    best, point = optimum(given.full), optimum(alone).point
    assert objective(given.full, point) <= best.value + 1e-6 * (1.0 + abs(best.value))


def _point(problem: Problem, model: ss.SafeClassifier) -> np.ndarray:
    return problem.join(model.coef_[0], float(model.intercept_[0]))


def allowed(loss: str, penalty: str) -> bool:
    """Whether mining can prove anything."""
    return loss != "hinge" or PENALTIES[penalty].strong_convexity != 0
