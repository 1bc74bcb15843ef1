"""Generated problems: small, of every kind, and often nasty.

Hypothesis draws a `Recipe`; `build` makes the problem from it. Families beside plain random data:
duplicated rows and columns, zero rows, collinear features, an objective whose loss is linear around
the optimum (there the balls are tight), margins exactly at a kink, weights with zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from safesift import losses, penalties
from safesift.losses import LOSSES
from safesift.penalties import PENALTIES
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from tests.laws.definitions import written
from tests.laws.safe_losses import SAFE_LOSSES

FAMILIES = ("random", "duplicates", "collinear", "tight", "kink", "offset")


@dataclass(frozen=True)
class Recipe:
    """Everything a problem is made from; printed by Hypothesis when a law fails."""

    loss: str
    penalty: str
    family: str = "random"
    intercept: bool = False
    weighted: bool = False
    single: bool = False
    sparse: bool = False
    seed: int = 0

    def rng(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, 12345])


def recipes(loss=None, penalty=None, **fixed) -> st.SearchStrategy[Recipe]:
    """Recipes over all losses and penalties, with some fields fixed."""
    fields = {
        "loss": st.sampled_from(sorted(loss or written(LOSSES))),
        "penalty": st.sampled_from(sorted(penalty or written(PENALTIES))),
        "family": st.sampled_from(FAMILIES),
        "intercept": st.booleans(),
        "weighted": st.booleans(),
        "single": st.booleans(),
        "sparse": st.booleans(),
        "seed": st.integers(0, 2**32 - 1),
    }
    fields |= {name: st.just(value) for name, value in fixed.items()}
    return st.builds(Recipe, **fields)


def build(recipe: Recipe) -> Problem:
    X, y, arguments = arrays(recipe)
    return make_problems(X, y, **arguments).problem


def arrays(recipe: Recipe):
    """The arguments of `safesift.screen` that a recipe stands for."""
    rng = recipe.rng()
    n, p = int(rng.integers(2, 13)), int(rng.integers(1, 6))
    X = _matrix(recipe, rng, n, p)
    y = _targets(recipe, rng, X)
    alpha = float(10.0 ** rng.uniform(-2.5, 0.5))
    if recipe.family == "tight":
        alpha = 4.0 * float((X**2).sum(axis=1).max()) + 1.0
    arguments = {
        "loss": make_loss(recipe.loss, rng, n),
        "penalty": make_penalty(recipe.penalty, rng),
        "alpha": alpha,
        "fit_intercept": recipe.intercept,
        "sample_weight": _weights(recipe, rng, y) if recipe.weighted else None,
    }
    X = X.astype(np.float32 if recipe.single else np.float64)
    return (sparse.csr_array(X) if recipe.sparse else X), y, arguments


def task_of(name: str) -> str:
    return (SAFE_LOSSES | LOSSES)[name].task


def make_loss(name: str, rng: np.random.Generator, n: int) -> losses.Loss:
    if name in SAFE_LOSSES:
        return SAFE_LOSSES[name].make(rng)
    if name == "safe_logistic":
        return losses.SafeLogistic(mu=float(rng.choice([0.0, 0.5, rng.uniform(0, 2)])))
    if name == "huber":
        return losses.Huber(delta=float(rng.uniform(0.1, 2)))
    parameters = {}
    if name.endswith("hinge"):
        parameters["mu"] = float(rng.choice([0.0, 0.0, rng.uniform(-1, 1)]))
    if name.endswith("epsilon_insensitive"):
        per_sample = rng.uniform(0, 0.8, n)
        parameters["epsilon"] = per_sample if rng.random() < 0.5 else float(per_sample[0])
    if name.startswith("smoothed"):
        parameters["width"] = float(rng.uniform(0.05, 1))
    return LOSSES[name](**parameters)


def make_penalty(name: str, rng: np.random.Generator) -> penalties.Penalty:
    if name == "elastic_net":
        return penalties.ElasticNet(l1_ratio=float(rng.uniform(0.05, 0.95)))
    if name.endswith("ball"):
        return PENALTIES[name](radius=float(rng.uniform(0.1, 3)))
    return PENALTIES[name]()


def _matrix(recipe: Recipe, rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-0.5, 0.7)
    if rng.random() < 0.3:
        X[rng.random((n, p)) < 0.5] = 0.0
    if recipe.family == "duplicates":
        X = X[rng.integers(0, n, n)]
        X[:, rng.integers(0, p)] = X[:, rng.integers(0, p)]
    if recipe.family == "collinear" and p > 1:
        X[:, -1] = X[:, :-1] @ rng.normal(size=p - 1) + 1e-7 * rng.normal(size=n)
    return X


def _targets(recipe: Recipe, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    n, p = X.shape
    signal = X @ rng.normal(size=p) + 0.3 * rng.normal(size=n)
    if task_of(recipe.loss) == "classification":
        y = np.where(signal > np.median(signal), 1.0, -1.0)
        y[rng.permutation(n)[:2]] = [-1.0, 1.0]
        return y
    if recipe.family == "kink":
        signal = np.round(signal)
    signal = signal + (100.0 if recipe.family == "offset" else 0.0)
    if task_of(recipe.loss) != "interval":
        return signal
    y = intervals(rng, signal)
    if recipe.intercept:
        y[0] = signal[0] - 0.5, signal[0] + 0.5  # otherwise the intercept may have no bound
    return y


def intervals(rng: np.random.Generator, signal: np.ndarray) -> np.ndarray:
    """Intervals around a signal: bounded, of width zero, one-sided; sometimes all on one side."""
    kind = rng.choice(rng.choice(["bounded", "point", "lower", "upper"], size=3), size=len(signal))
    low, high = (signal + side * rng.uniform(0, 1, len(signal)) for side in (-1, 1))
    low, high = (np.where(kind == "point", signal, end) for end in (low, high))
    return np.column_stack([
        np.where(kind == "upper", -np.inf, low), np.where(kind == "lower", np.inf, high)
    ])  # fmt: skip


def _weights(recipe: Recipe, rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    weights = rng.choice([0.0, 0.5, 1.0, 2.0, 7.0], size=len(y))
    for label in np.unique(y) if task_of(recipe.loss) == "classification" else [y[0]]:
        weights[np.flatnonzero(y == label)[0]] = 1.0
    return weights


def rough_point(problem: Problem, recipe: Recipe, point: np.ndarray) -> np.ndarray:
    """A centre at a random distance from a given point, often small, sometimes zero."""
    rng = np.random.default_rng([recipe.seed, 999])
    size = float(rng.choice([0.0, 1e-8, 1e-4, 1e-2, 0.1, 1.0, 3.0]))
    return problem.feasible(point + size * rng.normal(size=len(point)))
