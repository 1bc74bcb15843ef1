"""Losses beyond the registry for the laws to run on: numeric ones, and closed forms of their own.

Each comes with its infimum convolution written for the reference solver from the definition,
inf_z f(z) + (μΩ)*(t − z), which shares nothing with the library's way of computing it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import cvxpy as cp
import numpy as np

from safesift import losses
from safesift.losses import Loss
from safesift.losses.numeric import numeric_version
from safesift.losses.omegas import L1, CustomOmega, Entropy, Quadratic

Expression = cp.Expression
Conic = Callable[[Expression], tuple[Expression, list[cp.Constraint]]]

# how the reference solver writes a numeric loss, as a function of margin or residual
CONIC: WeakKeyDictionary[Loss, Conic] = WeakKeyDictionary()


@dataclass(frozen=True)
class Kind:
    """A family of losses: its task, and a loss of it with random parameters."""

    task: Literal["classification", "regression"]
    make: Callable[[np.random.Generator], Loss]


def log_cosh(r):
    return np.abs(r) + np.log1p(np.exp(-2 * np.abs(r))) - np.log(2.0)


def pseudo_huber(r):
    return r * (r / (1 + np.hypot(1.0, r)))


def pseudo_huber_slope(r):
    return r / np.hypot(1.0, r)


PSEUDO_HUBER = losses.from_function(pseudo_huber, pseudo_huber_slope, task="regression")
LOG_COSH = losses.from_function(log_cosh, task="regression")  # without its derivative


def _remember(loss: Loss, conic: Conic) -> Loss:
    CONIC[loss] = conic
    return loss


def _shifted(cost: Callable[[Expression], Expression], mu: float) -> Conic:
    """Convolution with μ|·|: the least cost within μ."""

    def conic(t: Expression):
        z = cp.Variable(t.shape)
        return cost(z), [cp.abs(t - z) <= mu]

    return conic


def _mu(rng: np.random.Generator) -> float:
    return float(rng.choice([0.25, rng.uniform(0.05, 1.0)]))


def _squared(rng):
    mu = _mu(rng)
    loss = numeric_version(losses.Squared()).convolved(L1(), mu)
    return _remember(loss, _shifted(lambda z: 0.5 * cp.square(z), mu))


def _pseudo_huber(rng):
    mu = _mu(rng)

    def cost(z):
        return cp.norm(cp.vstack([np.ones(z.shape), z]), 2, axis=0) - 1

    return _remember(PSEUDO_HUBER.convolved(L1(), mu), _shifted(cost, mu))


def _log_cosh(rng):
    mu = _mu(rng)

    def cost(z):
        return cp.logistic(2 * z) - z - np.log(2.0)

    return _remember(LOG_COSH.convolved(L1(), mu), _shifted(cost, mu))


def _softplus_hinge(rng):
    """log(1 + e^{β(1 − m)})/β: the hinge, rounded off; flat nowhere."""
    beta = float(rng.uniform(1.0, 8.0))
    loss = losses.from_function(
        lambda m: np.logaddexp(0.0, beta * (1.0 - m)) / beta, task="classification"
    )
    return _remember(loss, lambda m: (cp.logistic(beta * (1 - m)) / beta, []))


def _numeric_hinge(rng):
    """A kink, an Ω with a kink and curvature: [1 − m]₊ with |u| + ½w·u²."""
    mu, width = _mu(rng), float(rng.uniform(0.1, 1.0))
    omega = CustomOmega(lambda u: np.abs(u) + 0.5 * width * u**2, lambda u: np.sign(u) + width * u)
    loss = numeric_version(losses.Hinge()).convolved(omega, mu)
    w = width * mu
    return _remember(loss, lambda m: (cp.huber(cp.pos(1 - mu - m), w) / (2 * w), []))


def _kinked_hinge(rng):
    mu = _mu(rng)
    loss = numeric_version(losses.Hinge()).convolved(L1(), mu)
    return _remember(loss, lambda m: (cp.pos(1 - mu - m), []))


def _numeric_safe_logistic(rng):
    mu = _mu(rng)
    loss = numeric_version(losses.Logistic()).convolved(Entropy(), mu)

    def conic(m):
        w = cp.Variable(m.shape)
        return cp.exp(w) - w - 1, [w <= m + mu - 1, w <= 0]

    return _remember(loss, conic)


def _numeric_insensitive(rng):
    epsilon, width = float(rng.uniform(0, 0.5)), float(rng.uniform(0.1, 1.0))
    loss = numeric_version(losses.EpsilonInsensitive(epsilon)).convolved(Quadratic(), width)

    def conic(r):
        return cp.huber(cp.pos(cp.abs(r) - epsilon), width) / (2 * width), []

    return _remember(loss, conic)


SAFE_LOSSES = {
    "numeric_squared": Kind("regression", _squared),
    "numeric_pseudo_huber": Kind("regression", _pseudo_huber),
    "numeric_log_cosh": Kind("regression", _log_cosh),
    "numeric_insensitive": Kind("regression", _numeric_insensitive),
    "numeric_softplus_hinge": Kind("classification", _softplus_hinge),
    "numeric_hinge": Kind("classification", _numeric_hinge),
    "numeric_kinked_hinge": Kind("classification", _kinked_hinge),
    "numeric_safe_logistic": Kind("classification", _numeric_safe_logistic),
    "absolute_margin": Kind("classification", lambda rng: losses.AbsoluteMargin()),
    "squared_margin": Kind("classification", lambda rng: losses.SquaredMargin()),
    "scaled_huber": Kind(
        "regression",
        lambda rng: losses.Scaled(
            losses.SmoothedEpsilonInsensitive(_mu(rng), float(rng.uniform(0.2, 2))),
            float(rng.uniform(0.2, 3)),
        ),
    ),
    "scaled_hinge": Kind(
        "classification",
        lambda rng: losses.Scaled(losses.Hinge(_mu(rng)), float(rng.uniform(0.2, 3))),
    ),
}
NUMERIC = sorted(name for name in SAFE_LOSSES if name.startswith("numeric"))
