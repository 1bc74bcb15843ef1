"""What a proof is about, in the words of `safesift_check`."""

from __future__ import annotations

from typing import Any

import numpy as np

import safesift_check as checker
from safesift import losses, penalties
from safesift.design.kernel import KernelDesign
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.penalties.function_norm import SquaredNorm
from safesift.problem.problem import Problem

# what the checker calls the losses that have a closed form
_LOSSES: dict[type[Loss], str] = {
    losses.Hinge: "hinge",
    losses.SquaredHinge: "squared_hinge",
    losses.SmoothedHinge: "smoothed_hinge",
    losses.AbsoluteMargin: "absolute_margin",
    losses.SquaredMargin: "squared_margin",
    losses.Logistic: "logistic",
    losses.SafeLogistic: "safe_logistic",
    losses.Squared: "squared",
    losses.Huber: "huber",
    losses.EpsilonInsensitive: "epsilon_insensitive",
    losses.SmoothedEpsilonInsensitive: "smoothed_epsilon_insensitive",
    losses.SquaredEpsilonInsensitive: "squared_epsilon_insensitive",
    losses.AbsoluteInterval: "absolute_interval",
    losses.SmoothedInterval: "smoothed_interval",
    losses.SquaredInterval: "squared_interval",
}
_PENALTIES: dict[type[Penalty], str] = {
    penalties.L2: "l2",
    penalties.L1: "l1",
    penalties.ElasticNet: "elastic_net",
    penalties.L1Ball: "l1_ball",
    penalties.L2Ball: "l2_ball",
    SquaredNorm: "l2",
}


def loss_record(loss: Loss) -> dict[str, Any]:
    """Name and parameters, without an epsilon where every row has its own."""
    factor = 1.0
    while isinstance(loss, losses.Scaled):
        factor, loss = factor * loss.factor, loss.loss
    if type(loss) not in _LOSSES:
        raise ValueError(
            f"{type(loss).__name__} is no loss in closed form, and a proof cannot state it: use "
            f"one of {', '.join(sorted(_LOSSES.values()))}."
        )
    name = _LOSSES[type(loss)]
    given = {one: getattr(loss, one) for one in checker.LOSSES[name][1]}
    given = {one: float(value) for one, value in given.items() if not np.ndim(value)}
    return {"name": name, "factor": float(factor), **given}


def epsilon_of(loss: Loss) -> Any:
    """The epsilon of all rows, or those of the rows, where each has its own."""
    while isinstance(loss, losses.Scaled):
        loss = loss.loss
    return np.asarray(getattr(loss, "epsilon", 0.0), dtype=np.float64)


def penalty_record(penalty: Penalty) -> dict[str, Any]:
    """Name and parameters."""
    if type(penalty) not in _PENALTIES:
        raise ValueError(
            f"{type(penalty).__name__} is no penalty that a proof can state: use one of "
            f"{', '.join(sorted(set(_PENALTIES.values())))}."
        )
    given = {name: float(v) for name, v in vars(penalty).items() if name in ("l1_ratio", "radius")}
    return {"name": _PENALTIES[type(penalty)], **given}


def problem_record(problem: Problem) -> dict[str, Any]:
    """All that a statement says of the objective."""
    if problem.folded is not None:
        raise ValueError("a reduced problem is not that of its rows: write the proof of all rows.")
    return {
        "n_samples": problem.design.n_samples,
        "n_features": problem.design.n_features,
        "loss": loss_record(problem.loss),
        "penalty": penalty_record(problem.penalty),
        "alpha": float(problem.alpha),
        "intercept": bool(problem.fit_intercept),
        "kernel": isinstance(problem.design, KernelDesign),
    }
