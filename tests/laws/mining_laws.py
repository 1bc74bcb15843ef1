"""Generated pools, and the laws of mining as plain functions: what is not kept cannot matter."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import safesift as ss
from safesift.penalties import PENALTIES
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from tests.laws.reference import dense_rows, objective, optimum

LOSSES = ("squared_hinge", "safe_logistic", "smoothed_hinge", "hinge")
FAMILIES = ("plain", "grid", "ordered", "duplicates")


@dataclass(frozen=True)
class Recipe:
    """A pool and training rows, by a seed.

    Attributes
    ----------
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
    weights: np.ndarray | None
    pool_weight: np.ndarray | float
    model: ss.SafeClassifier
    recipe: Recipe

    @property
    def full(self) -> Problem:
        recipe = self.recipe
        y = np.append(self.y, np.full(len(self.pool), recipe.label))
        ours = np.ones(len(self.y)) if self.weights is None else self.weights
        weights = np.append(ours, np.zeros(len(self.pool)) + self.pool_weight)
        if recipe.class_weight == "balanced":
            totals = np.bincount(y, weights)
            weights = weights * (weights.sum() / (2 * totals))[y]
        return make_problems(
            np.vstack([self.X, self.pool]).astype(np.float64), y, loss=recipe.loss,
            penalty=recipe.penalty, alpha=self.model.alpha, fit_intercept=recipe.intercept,
            sample_weight=weights,
        ).problem  # fmt: skip

    def mined(self, pool=None, **options) -> ss.MiningResult:
        store = sparse.csr_matrix if self.recipe.sparse else np.asarray
        pool = store(self.pool) if pool is None else pool
        options = {"block_size": 17, "max_passes": self.recipe.max_passes} | options
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return ss.mine_hard(
                pool, self.model, store(self.X), self.y, sample_weight=self.weights,
                label=self.recipe.label, pool_weight=self.pool_weight, **options,
            )  # fmt: skip


def setting(recipe: Recipe) -> Setting:
    rng = np.random.default_rng(recipe.seed)
    n, m, p = int(rng.integers(6, 20)), int(rng.integers(20, 60)), int(rng.integers(1, 4))
    direction = rng.normal(size=p)
    y = np.append([0, 1], rng.integers(0, 2, n - 2))
    X = rng.normal(size=(n, p)) + np.outer(2 * y - 1, direction)
    pool = rng.normal(size=(m, p)) + (2 * recipe.label - 1) * rng.uniform(0.5, 3) * direction
    if recipe.family == "grid":
        # integers: rows exactly on a kink, and equal rows
        X, pool = np.round(X), np.round(pool)
    elif recipe.family == "ordered":
        # the hardest come last, so that the first pass knows nothing of them
        pool = pool[np.argsort((1 - 2 * recipe.label) * (pool @ direction))]
    elif recipe.family == "duplicates":
        pool = pool[rng.integers(0, m // 4, m)]
    dtype = np.float32 if recipe.single else np.float64
    X, pool = X.astype(dtype), pool.astype(dtype)
    weights, pool_weight = None, 1.0
    if recipe.weighted:
        weights = rng.choice([0.5, 1.0, 3.0], n)
        pool_weight = rng.choice([0.0, 0.25, 1.0, 4.0], m)
        pool_weight[0] = 1.0
    model = ss.SafeClassifier(
        recipe.loss, penalty=recipe.penalty, alpha=10.0 ** rng.uniform(-3, -0.5),
        fit_intercept=recipe.intercept, class_weight=recipe.class_weight, random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, weights)
    model.set_params(max_iter=recipe.max_iter)
    return Setting(X, y, pool, weights, pool_weight, model, recipe)


def law_what_is_not_kept_cannot_matter(recipe: Recipe) -> None:
    """At the optimum of everything the other rows are flat, and without them it is the same."""
    given = setting(recipe)
    mined, full = given.mined(), given.full
    best, point = optimum(full), _point(full, mined.model_)
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
    margins = (2 * recipe.label - 1) * given.model.decision_function(given.pool)
    later = given.pool.copy()
    later[margins < 1] = given.pool[np.argmax(margins)]
    readings = iter([given.pool])
    mined = given.mined(lambda: [next(readings, later)])
    full = replace(given, pool=later).full
    best, point = optimum(full), _point(full, mined.model_)
    room = max(1e-11, best.accuracy) * (1.0 + abs(best.value))
    assert objective(full, point) - best.value <= mined.dual_gap + room


def law_kept_rows_alone(recipe: Recipe) -> None:
    """With `alpha_kept`, an estimator that averages has the same optimum on the kept rows."""
    given = setting(replace(recipe, class_weight=None, max_iter=1000, sparse=False))
    mined = given.mined()
    assert mined.proved
    y = np.append(given.y, np.full(mined.n_kept, recipe.label))
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
