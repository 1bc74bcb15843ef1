"""Problems whose optimum is known without solving them.

Any point becomes an optimum when the right linear term qᵀx is added, and a `Problem` may carry one
(its folded part). On dyadic numbers the term is computed without rounding, so the planted point is
optimal exactly: at a kink, within 1e-9 of it, with several optima, whatever the conditioning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from safesift import losses, penalties
from safesift.design import as_design
from safesift.losses import LOSSES
from safesift.problem.evaluation import Folded
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk
from tests.laws.definitions import PENALTY_DEFINITIONS, penalty_definition, written
from tests.laws.problems import make_loss

FAMILIES = ("plain", "duplicates", "collinear", "deficient", "kink", "close", "scaled", "wide")
PENALTIES = tuple(written(penalties.PENALTIES))
CURVED = tuple(name for name in sorted(LOSSES) if np.isfinite(LOSSES[name]().smoothness))


@dataclass(frozen=True, eq=False)
class Planted:
    """A problem, an optimum of it, and how far rounding may have moved it."""

    problem: Problem
    optimum: np.ndarray
    predictions: np.ndarray
    room: float


def plant(seed: int, loss: str, penalty: str, family: str, intercept: bool) -> Planted:
    rng = np.random.default_rng([seed, 77])
    n = int(rng.integers(1, 40))
    p = int(rng.integers(1, 7)) if family != "wide" else n + int(rng.integers(0, 5))
    X = _rows(rng, n, p, family)
    x = _eighths(rng, p, 12) * (rng.random(p) < rng.uniform(0.3, 1.0))
    c = float(_eighths(rng, 1, 8)[0]) if intercept else 0.0
    chosen = _dyadic_loss(loss, rng, n)
    pred = X @ x + c
    y, chosen = _at_the_edge(rng, chosen, pred, _targets(rng, chosen, pred), family)
    weights = _weights(rng, n)
    point = np.append(x, c) if intercept else x
    design = as_design(_stored(rng, X), intercept)
    chosen_penalty, alpha = _penalty(rng, penalty, x), float(2.0 ** rng.integers(-14, 3))
    problem = Problem(Risk.of(design, chosen, y, weights), chosen_penalty, alpha)
    return _with_optimum(rng, problem, X, point, pred)


def _with_optimum(rng, problem, X, point, pred) -> Planted:
    p = X.shape[1]
    slopes = problem.shares * problem.loss.slope(pred, problem.y)
    gradient = X.T @ slopes + _penalty_pull(rng, problem, point[:p])
    if problem.fit_intercept:
        gradient = np.append(gradient, slopes.sum())
    # the constant keeps the loss and the folded part together at 0 or more, as after folding
    constant = max(0.0, float(gradient @ point))
    folded = Folded(q=-gradient, r=constant)
    # the pull of an added penalty may round
    exact = problem.loss.quadratic_rays and type(problem.penalty) not in PENALTY_DEFINITIONS
    return Planted(replace(problem, folded=folded), point, pred, 0.0 if exact else 1e-7)


def _eighths(rng, size, largest):
    return rng.integers(-largest, largest + 1, size=size) / 8.0


def _rows(rng, n, p, family):
    X = _eighths(rng, (n, p), 16)
    if family == "duplicates":
        X = X[rng.integers(0, n, n)]
        X[:, rng.integers(0, p)] = X[:, rng.integers(0, p)]
        X[:, 0] += (rng.random(n) < 0.3) * 2.0**-18
    if family == "collinear" and p > 1:
        X[:, -1] = X[:, 0] + 2.0**-20 * rng.integers(-1, 2, n)
    if family == "deficient" and p > 1:
        X[:, p // 2 :] = X[:, : p - p // 2]
    if family == "scaled":
        X = X * 2.0 ** rng.integers(-10, 11, size=p)
    return X


def _dyadic_loss(name, rng, n):
    """The loss with parameters that are dyadic, so that its slopes are."""
    loss = make_loss(name, rng, n)
    for parameter, step in (("mu", 8.0), ("delta", 8.0), ("epsilon", 8.0)):
        if hasattr(loss, parameter):
            rounded = np.round(np.asarray(getattr(loss, parameter)) * step) / step
            rounded = np.maximum(rounded, 0.125) if parameter == "delta" else rounded
            loss = replace(loss, **{parameter: rounded if np.ndim(rounded) else float(rounded)})
    if hasattr(loss, "width"):
        loss = replace(loss, width=float(2.0 ** rng.integers(-4, 1)))
    return loss


def _targets(rng, loss, pred):
    if loss.task == "classification":
        return rng.choice([-1.0, 1.0], size=len(pred))
    target = pred + _eighths(rng, len(pred), 16)
    if loss.task == "interval":
        half = rng.choice([0.0, 0.125, 1.0], len(pred))
        ends = np.column_stack([target - half, target + half])
        return np.where(rng.random((len(pred), 2)) < [0.2, 0.0], [-np.inf, np.inf], ends)
    return target


def _at_the_edge(rng, loss, pred, y, family):
    """Put samples on a kink of the slope, or within 1e-9 of it."""
    if family not in ("kink", "close"):
        return y, loss
    off = 2.0**-30 * rng.choice([-1.0, 1.0], len(pred)) if family == "close" else 0.0 * pred
    if loss.task == "interval":
        kept = (rng.random(len(pred)) < 0.3)[:, None]
        side = rng.choice([-1.0, 1.0], len(pred))
        ends = np.sort(np.column_stack([pred + off, pred + off + side]), axis=1)
        return np.where(kept, y, ends), loss
    if loss.task == "regression":
        edge = getattr(loss, "delta", getattr(loss, "epsilon", 0.0))
        edged = pred + edge * rng.choice([-1.0, 1.0], len(pred)) + off
        return np.where(rng.random(len(pred)) < 0.7, edged, y), loss
    mu = 1.0 - y[0] * pred[0] + off[0]
    if hasattr(loss, "mu") and (mu >= 0 or not isinstance(loss, losses.SafeLogistic)):
        loss = replace(loss, mu=float(mu))
    return y, loss


def _weights(rng, n):
    """Powers of two and zeros, adding up to a power of two: shares are dyadic."""
    weights = rng.choice([0.0, 1.0, 1.0, 2.0, 4.0], size=n)
    total = max(weights[:-1].sum(), 1.0)
    weights[-1] = 2.0 ** np.ceil(np.log2(total + 1)) - weights[:-1].sum()
    return weights


def _stored(rng, X):
    X = X.astype(rng.choice([np.float32, np.float64]))
    return sparse.csr_array(X) if rng.random() < 0.4 else X


def _penalty(rng, name, x):
    if name == "elastic_net":
        return penalties.ElasticNet(l1_ratio=float(rng.choice([0.25, 0.5, 0.875])))
    if name == "l1_ball":
        return penalties.L1Ball(radius=float(max(np.abs(x).sum() + rng.choice([0.0, 1.0]), 0.125)))
    if name == "l2_ball":
        return penalties.L2Ball(radius=float(np.linalg.norm(x) + rng.choice([0.125, 1.0])))
    return penalties.PENALTIES[name]()


def _penalty_pull(rng, problem, x):
    """An element of alpha·∂R(x), at the edge of the subdifferential now and then."""
    inner = _eighths(rng, len(x), 8)
    signs = np.where(x != 0, np.sign(x), inner)
    match problem.penalty:
        case penalties.L2():
            return problem.alpha * x
        case penalties.L1():
            return problem.alpha * signs
        case penalties.ElasticNet(l1_ratio=ratio):
            return problem.alpha * (ratio * signs + (1.0 - ratio) * x)
        case penalties.L1Ball(radius=radius) if np.abs(x).sum() == radius:
            return float(2.0 ** rng.integers(-8, 1)) * signs
        case penalties.L1Ball() | penalties.L2Ball():
            return np.zeros_like(x)
    subgradient = penalty_definition(problem.penalty).subgradient
    return problem.alpha * subgradient(problem.penalty, x, inner)


def rough_center(planted: Planted, seed: int) -> np.ndarray:
    """A centre at any distance from the optimum, with some of its zeros."""
    rng = np.random.default_rng([seed, 78])
    size = 10.0 ** rng.uniform(-9, 1)
    point = planted.optimum + size * rng.normal(size=len(planted.optimum))
    kept = rng.random(len(point)) < 0.6
    point[kept & (planted.optimum == 0)] = 0.0
    if rng.random() < 0.2:  # and with a wrong one
        point[rng.integers(0, planted.problem.design.n_features)] = 0.0
    return planted.problem.feasible(point)
