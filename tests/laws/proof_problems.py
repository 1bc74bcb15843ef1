"""Small problems whose optimum is known exactly, in rational numbers, for the laws of the checker.

*Planted*: targets are free for losses of numbers and intervals, so that slopes are chosen first (at
kinks, too), and two rows make the sum of the gradients vanish. *Solved*: a linear system for the
pieces and signs that a solver found, verified in rational numbers, whatever the loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction as Q
from typing import Any

import numpy as np

import safesift_check as checker

SMOOTH = (
    "squared_hinge", "smoothed_hinge", "squared", "huber", "smoothed_epsilon_insensitive",
    "squared_epsilon_insensitive", "squared_interval", "smoothed_interval",
)  # fmt: skip
FREE = (
    "squared", "huber", "epsilon_insensitive", "smoothed_epsilon_insensitive",
    "squared_epsilon_insensitive", "absolute_interval", "smoothed_interval", "squared_interval",
)  # fmt: skip


class Rows:
    """Rows in memory, in place of a `Data` of the checker (or of a mistaken one)."""

    def __init__(self, X, y, weights):
        self.X, self.y, self.weights = np.asarray(X, float), np.asarray(y), weights
        (self.n, self.p), self.one_epsilon, self.checker = self.X.shape, 0.0, checker
        self.target = np.reshape(self.y, (self.n, -1))

    @property
    def epsilon(self):
        """That of the loss, for every row."""
        return np.full(self.n, self.one_epsilon)

    def blocks(self):
        for start in range(0, self.n, 7):
            rows = slice(start, min(start + 7, self.n))
            block = np.hstack([self.X[rows], np.ones((rows.stop - start, 1))])
            # of some blocks a column of zeros is left out, as of sparse ones
            cols = np.flatnonzero((block != 0).any(axis=0) | (start % 2 == 0))
            yield rows, cols, self.checker.ar.array(block[:, cols])


@dataclass
class Known:
    """A problem and an optimum of it."""

    statement: dict[str, Any]
    rows: Rows
    y: np.ndarray
    optimum: list[Q]
    slopes: np.ndarray | None = None

    @property
    def p(self) -> int:
        return self.rows.p

    def full(self, point):
        """A point of the checker, which ends with an intercept, be it 0."""
        return np.append(point, [0.0] * (self.p + 1 - len(point)))

    def split(self, point):
        return (list(point[: self.p]), point[self.p] if self.statement["intercept"] else Q(0))


# --- exact definitions, written a second time ---------------------------------------------------


def parameters(statement) -> tuple[Q, Q | float, Q]:
    """k, m and what is added to the ends of an interval."""
    loss = statement["loss"]
    _, _, k, m = checker.LOSSES[loss["name"]]
    k, m = (loss[v] if isinstance(v, str) else v for v in (k, m))
    return Q(k), (m if m == math.inf else Q(m)), Q(loss.get("epsilon", 0))


def interval(statement, target) -> tuple[Q | float, Q | float]:
    loss, (_, _, epsilon) = statement["loss"], parameters(statement)
    kind = checker.LOSSES[loss["name"]][0]
    if kind == "margin":
        edge = 1 - Q(loss["mu"])
        return (edge, math.inf) if target > 0 else (-math.inf, -edge)
    if kind == "interval":
        return tuple(Q(float(end)) if math.isfinite(end) else float(end) for end in target)
    return Q(float(target)) - epsilon, Q(float(target)) + epsilon


def excess(t: Q, ends) -> Q:
    return t - ends[1] if t > ends[1] else t - ends[0] if t < ends[0] else Q(0)


def loss_value(statement, t: Q, target) -> Q:
    k, m, _ = parameters(statement)
    d = abs(excess(t, interval(statement, target)))
    if k == 0:
        return m * d
    inner = d if m == math.inf else min(d, k * m)
    return inner * (d - inner / 2) / k


def piece(statement, t: Q, target) -> int:
    """The verdict that is true of a prediction, 0 at the end of a piece."""
    k, m, _ = parameters(statement)
    ends = interval(statement, target)
    if ends[0] < t < ends[1]:
        return checker.FLAT
    d = abs(excess(t, ends))
    width = k * m if m != math.inf else math.inf
    if d > width:
        return checker.LINEAR
    if d < width and (d > 0 or ends[0] == ends[1]):
        return checker.CURVED
    return 0


def prediction(known: Known, row: int, point) -> Q:
    x, c = known.split(point)
    return sum((Q(float(a)) * b for a, b in zip(known.rows.X[row], x, strict=True)), Q(0)) + c


def objective(known: Known, point) -> Q:
    """P, exactly; +inf outside of a ball."""
    s = known.statement
    x, _ = known.split(point)
    weights = [Q(float(w)) for w in known.rows.weights]
    values = (loss_value(s, prediction(known, i, point), known.y[i]) for i in range(len(weights)))
    mean = sum(w * value for w, value in zip(weights, values, strict=True))
    mean = mean / sum(weights) * Q(s["loss"]["factor"])
    one, two = sum(map(abs, x), Q(0)), sum((v * v for v in x), Q(0))
    name, alpha = s["penalty"]["name"], Q(s["alpha"])
    if "radius" in s["penalty"]:
        radius = Q(s["penalty"]["radius"])
        inside = one <= radius if name == "l1_ball" else two <= radius**2
        return mean if inside else math.inf
    ratio = {"l1": Q(1), "l2": Q(0)}.get(name, Q(s["penalty"].get("l1_ratio", 0)))
    return mean + alpha * (ratio * one + (1 - ratio) * two / 2)


# --- planted ------------------------------------------------------------------------------------


def stated(loss, penalty, alpha, intercept, n, p, **given) -> dict[str, Any]:
    return {
        "n_samples": n, "n_features": p, "loss": {"name": loss, "factor": 1.0, **given},
        "penalty": penalty, "alpha": alpha, "intercept": intercept, "kernel": False, "labels": None,
    }  # fmt: skip


def plant(rng) -> Known:
    """A problem of numbers or intervals whose slopes at the optimum were chosen."""
    name, intercept = str(rng.choice(FREE)), bool(rng.integers(2))
    n, p = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    given = {"epsilon": float(rng.integers(0, 3)) / 4, "width": 2.0 ** -int(rng.integers(0, 3)),
             "delta": float(rng.integers(1, 4)) / 2}  # fmt: skip
    given = {key: given[key] for key in checker.LOSSES[name][1]}
    x, c = _eighths(rng, p) * (rng.random(p) < 0.7), float(_eighths(rng, 1)[0]) * intercept
    penalty, alpha = _penalty(rng, x), float(2.0 ** rng.integers(-6, 1))
    statement = stated(name, penalty, alpha, intercept, n + 2, p, **given)
    X, weights = _eighths(rng, (n, p)), rng.integers(0, 3, n).astype(float)
    if rng.random() < 0.3:
        X[rng.integers(0, n)] = X[0]
    _, m, _ = parameters(statement)
    limit = 2.0 if m == math.inf else float(m)
    slopes = rng.choice([0.0, 0.0, 0.25, 0.5, 1.0], n) * rng.choice([-1.0, 1.0], n) * limit
    # a row for the gradient, and one for the intercept
    total = weights.sum() + 1.0 + 64.0
    pull = total * _pull(rng, statement, x)
    rest = X.T @ (weights * slopes) + pull
    X = np.vstack([X, -rest / (0.5 * limit), np.zeros(p)])
    slopes = np.append(slopes, 0.5 * limit)
    weights = np.append(weights, [1.0, 64.0])
    slopes = np.append(slopes, -(weights[:-1] @ slopes) / 64.0 if intercept else 0.0)
    if abs(slopes[-1]) > limit:
        return plant(rng)
    y = _targets(rng, statement, X @ x + c, slopes)
    rows = Rows(X, y, weights)
    rows.one_epsilon = given.get("epsilon", 0.0)
    optimum = [Q(float(v)) for v in ([*x, c] if intercept else x)]
    return Known(statement, rows, y, optimum, slopes)


def _eighths(rng, size):
    return rng.integers(-12, 13, size=size) / 8.0


def _penalty(rng, x):
    size = float(np.abs(x).sum())
    kinds = [{"name": "l2"}, {"name": "l1"}, {"name": "elastic_net", "l1_ratio": 0.5}]
    if size > 0:
        kinds += [{"name": "l1_ball", "radius": size + float(rng.choice([0.0, 1.0]))}]
        kinds += [{"name": "l2_ball", "radius": size + 0.5}]
    return kinds[rng.integers(len(kinds))]


def _pull(rng, statement, x):
    """An element of alpha·∂R, or of a ball's normal cone."""
    alpha, name = statement["alpha"], statement["penalty"]["name"]
    signs = np.where(x != 0, np.sign(x), rng.integers(-4, 5, len(x)) / 4)
    on_the_edge = name == "l1_ball" and np.abs(x).sum() == statement["penalty"]["radius"]
    ratio = {"l1": 1.0, "l2": 0.0}.get(name, 0.5)
    if "radius" in statement["penalty"]:
        return 0.25 * signs * on_the_edge
    return alpha * (ratio * signs + (1.0 - ratio) * x)


def _targets(rng, statement, pred, slopes):
    """Ends next to which the losses have these slopes at the predictions."""
    k, m, epsilon = (float(value) for value in parameters(statement))
    own = statement["loss"]["name"].endswith("interval")
    half = rng.choice([0.0, 0.25, 1.0], len(pred)) if own else np.full(len(pred), epsilon)
    steep = np.abs(slopes) == m
    beyond = k * np.abs(slopes) + steep * rng.choice([0.0, 0.5], len(pred))
    inside = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], len(pred)) * half
    middle = pred - np.where(slopes == 0, inside, np.sign(slopes) * (half + beyond))
    if not own:
        return middle
    ends = np.column_stack([middle - half, middle + half])
    # an end that nobody is beyond may be anywhere
    drop = rng.random(len(pred)) < 0.3
    ends[drop & (slopes > 0), 0] = -np.inf
    ends[drop & (slopes < 0), 1] = np.inf
    return ends


# --- solved -------------------------------------------------------------------------------------


def solve(known: Known) -> bool:
    """Put the exact optimum in place of a rough one; whether that could be verified."""
    s, n, p = known.statement, known.rows.n, known.p
    k, m, _ = parameters(s)
    x, c = known.split([Q(float(v)) for v in known.optimum])
    rough = [*x, c] if s["intercept"] else x
    used = [j for j in range(p) if abs(x[j]) > Q(1, 10**9)] + ([p] if s["intercept"] else [])
    alpha, name = Q(s["alpha"]), s["penalty"]["name"]
    ratio = {"l1": Q(1), "l2": Q(0)}.get(name, Q(s["penalty"].get("l1_ratio", 0)))
    tau, kappa = alpha * ratio, alpha * (1 - ratio)
    weights = [Q(float(w)) for w in known.rows.weights]
    total, factor = sum(weights), Q(s["loss"]["factor"])
    A = [[Q(float(v)) for v in row] + [Q(1)] * s["intercept"] for row in known.rows.X]
    if "radius" in s["penalty"] or k == 0 or (not used):
        return False
    M = [[kappa * (i == j and i < p) for j in used] + [Q(0)] for i in used]
    for at, j in enumerate(used):
        if j < p:
            M[at][-1] -= tau * (1 if x[j] > 0 else -1)
    for i in range(n):
        kind, ends = piece(s, prediction(known, i, rough), known.y[i]), interval(s, known.y[i])
        share = weights[i] / total * factor
        side = 1 if excess(prediction(known, i, rough), ends) >= 0 else -1
        if kind == 0:
            return False
        for at, j in enumerate(used):
            if kind == checker.LINEAR:
                M[at][-1] -= share * m * side * A[i][j]
            elif kind == checker.CURVED:
                end = ends[1] if side > 0 else ends[0]
                M[at][-1] += share / k * end * A[i][j]
                for other, q in enumerate(used):
                    M[at][other] += share / k * A[i][j] * A[i][q]
    found = _eliminated(M)
    if found is None:
        return False
    point = [Q(0)] * len(rough)
    for j, value in zip(used, found, strict=True):
        point[j] = value
    known.optimum = point
    return is_optimal(known)


def _eliminated(M):
    n = len(M)
    for i in range(n):
        pivot = next((r for r in range(i, n) if M[r][i] != 0), None)
        if pivot is None:
            return None
        M[i], M[pivot] = M[pivot], M[i]
        M[i] = [v / M[i][i] for v in M[i]]
        for r in range(n):
            if r != i and M[r][i] != 0:
                M[r] = [a - M[r][i] * b for a, b in zip(M[r], M[i], strict=True)]
    return [row[-1] for row in M]


def is_optimal(known: Known) -> bool:
    """Whether 0 is a subgradient at the optimum, for smooth losses and no ball."""
    s, p = known.statement, known.p
    k, m, _ = parameters(s)
    weights = [Q(float(w)) for w in known.rows.weights]
    total, factor = sum(weights), Q(s["loss"]["factor"])
    gradient = [Q(0)] * len(known.optimum)
    for i, w in enumerate(weights):
        e = excess(prediction(known, i, known.optimum), interval(s, known.y[i]))
        slope = e / k if m == math.inf else max(min(e / k, m), -m)
        row = [Q(float(v)) for v in known.rows.X[i]] + [Q(1)] * s["intercept"]
        gradient = [g + w / total * factor * slope * a for g, a in zip(gradient, row, strict=True)]
    alpha, name = Q(s["alpha"]), s["penalty"]["name"]
    ratio = {"l1": Q(1), "l2": Q(0)}.get(name, Q(s["penalty"].get("l1_ratio", 0)))
    for j, g in enumerate(gradient):
        x = known.optimum[j]
        if j >= p:
            fine = g == 0
        elif x == 0:
            fine = abs(g) <= alpha * ratio
        else:
            fine = g + alpha * ratio * (1 if x > 0 else -1) + alpha * (1 - ratio) * x == 0
        if not fine:
            return False
    return True


def rough(rng) -> Known:
    """A problem with labels, numbers or intervals, and a rough optimum of it."""
    name, intercept = str(rng.choice(SMOOTH)), bool(rng.integers(2))
    n, p = int(rng.integers(4, 14)), int(rng.integers(1, 4))
    given = {"mu": 0.25, "epsilon": 0.25, "width": 0.5, "delta": 0.5}
    given = {key: given[key] for key in checker.LOSSES[name][1]}
    X, weights = _eighths(rng, (n, p)), rng.integers(0, 3, n).astype(float)
    weights[0] = 1.0
    kind, target = checker.LOSSES[name][0], X[:, 0] + _eighths(rng, n)
    y = {"margin": np.where(target > 0, 1.0, -1.0), "number": target}.get(
        kind, np.column_stack([target - 0.25, np.where(rng.random(n) < 0.3, np.inf, target + 0.25)])
    )
    if kind == "margin":
        y[:2] = [1.0, -1.0]
    penalty = [{"name": "l2"}, {"name": "l1"}, {"name": "elastic_net", "l1_ratio": 0.5}]
    penalty, alpha = penalty[rng.integers(3)], float(2.0 ** rng.integers(-7, -1))
    statement = stated(name, penalty, alpha, intercept, n, p, **given)
    rows = Rows(X, y, weights)
    rows.one_epsilon = given.get("epsilon", 0.0)
    known = Known(statement, rows, y, [])
    known.optimum = solved_by_the_library(known)
    return known


def solved_by_the_library(known: Known) -> list[float]:
    from safesift.solvers import Settings, solve_path

    ((fit,),) = solve_path([[library_problem(known)]], Settings(tol=1e-12))
    return list(fit.at.point)


def library_problem(known: Known):
    """The same problem, for the library."""
    from safesift.design import as_design
    from safesift.losses import LOSSES
    from safesift.penalties import PENALTIES, ElasticNet, L1Ball, L2Ball
    from safesift.problem.problem import Problem
    from safesift.problem.risk import Risk

    s, rows = known.statement, known.rows
    given = {key: value for key, value in s["loss"].items() if key not in ("name", "factor")}
    penalty, name = {k: v for k, v in s["penalty"].items() if k != "name"}, s["penalty"]["name"]
    balls = {"elastic_net": ElasticNet, "l1_ball": L1Ball, "l2_ball": L2Ball}
    chosen = balls[name](**penalty) if name in balls else PENALTIES[name]()
    risk = Risk.of(
        as_design(rows.X, s["intercept"]), LOSSES[s["loss"]["name"]](**given), known.y, rows.weights
    )
    return Problem(risk, chosen, s["alpha"])
