"""What a tracker knows between two updates, and how an edit changes it without a refit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.estimators.linear import LinearModel, Samples
from safesift.estimators.tracking.certificate import undecided
from safesift.estimators.tracking.data import Data, Edit, Rows
from safesift.estimators.tracking.follower import Follower
from safesift.estimators.tracking.labels import Classes
from safesift.estimators.tracking.pieces import made_of_pieces
from safesift.estimators.tracking.settle import Settled, settle
from safesift.estimators.tracking.store import Slots
from safesift.losses import Loss
from safesift.penalties import L2, Penalty
from safesift.solvers.records import Settings

Array = NDArray[np.float64]

# beyond so many columns, factors of Q cost more than a few passes over the rows
WIDEST = 1000
_MOST_STEPS = 50


@dataclass(frozen=True, eq=False)
class Task:
    """The parameters of the model, checked once."""

    loss: Loss
    penalty: Penalty
    alpha: float
    settings: Settings

    @classmethod
    def of(cls, model: LinearModel) -> Task:
        return cls(
            model._checked_loss(), model._checked_penalty(), model.alpha, model._checked_settings()
        )

    def refused(self, model: LinearModel) -> str:
        """Why such a model cannot be followed row by row; empty where it can."""
        if not isinstance(self.penalty, L2):
            return f"penalty={model.penalty!r} is not 'l2'"
        if not made_of_pieces(self.loss):
            return f"loss={model.loss!r} is not smooth, linear or quadratic everywhere"
        if model.n_features_in_ > WIDEST:
            return f"there are more than {WIDEST} features"
        if isinstance(getattr(model, "class_weight", None), str):
            return "class_weight='balanced' changes the weight of every sample"
        return ""


@dataclass(frozen=True, eq=False)
class State:
    """The samples, and the problems that are followed on them.

    Attributes
    ----------
    task : Task
    data : Data
    classes : Classes or None
        For classification.
    followers : tuple of Follower
        One for each row of coefficients; none where the model cannot be followed.
    refused : str
        Why it cannot.
    ends : tuple of Settled, or None
        Where the followers are; None after a fit, when the fitted model knows.
    n_read : int
        Rows read since steps have been measured in the present metric.
    """

    task: Task
    data: Data
    classes: Classes | None
    followers: tuple[Follower, ...]
    refused: str = ""
    ends: tuple[Settled, ...] | None = None
    n_read: int = 0


class NotFollowedError(Exception):
    """An edit that has to be answered by a refit, and why."""


@dataclass(frozen=True, eq=False)
class Followed:
    """What came of an edit that needed no refit."""

    state: State
    relative_gap: float
    residue: float
    rebuilt: bool


def samples_of(model: LinearModel, data: Data) -> Samples:
    """All samples, in their order."""
    order = data.order
    X, y, sample_weight = data.store.rows(order), data.y[order], data.sample_weight[order]
    if model._task != "classification":
        return Samples(X, y, sample_weight, sample_weight)
    classes = np.unique(y[sample_weight > 0])
    weights = sample_weight
    if model.class_weight is not None:
        weights = sample_weight * model._class_weights(y, sample_weight, classes)
    return Samples(X, y, sample_weight, weights, classes)


def follow(
    model: LinearModel,
    state: State,
    edit: Edit,
    data: Data,
    entering: Rows,
    classes: Classes | None,
    residue: float,
) -> Followed:
    """Change the sums by the edited rows, and go to the new optimum.

    Raises
    ------
    NotFollowedError
        Where that does not reach the tolerance. The state is as it was.
    """
    leaving, tol = state.data.leaving(edit), state.task.settings.tol
    max_iter = min(state.task.settings.max_iter, _MOST_STEPS)
    followers, ends, rebuilt, gaps, left = [], [], False, [], []
    for k, before in enumerate(state.followers):
        follower = before.fresh_copy()
        follower.swap(leaving, entering)
        end = settle(follower, data, tol, max_iter)
        # twice what fresh sums had is no reason, since it would be there again
        if follower.residue(data.total) > max(residue, 2.0 * follower.fresh_residue):
            follower.rebuild(data)
            end, rebuilt = settle(follower, data, tol, max_iter), True
        left.append(follower.residue(data.total))
        error = follower.sums.residue(follower.length) / data.total
        gaps.append(_relative_gap(model, state.task, data, end, error, k))
        followers.append(follower)
        ends.append(end)
    data, n_read = _remeasured(data, followers, state.n_read)
    task, followers = state.task, tuple(followers)
    moved = State(task, data, classes, followers, "", tuple(ends), n_read)
    return Followed(moved, max(gaps), max(left), rebuilt)


def _remeasured(data: Data, followers: Sequence[Follower], n_read: int) -> tuple[Data, int]:
    """In a new metric, once as much work has gone into rows as it takes; and how much has since.

    Data that drift leave the metric behind, and rows are then read more often than they need be.
    """
    n_read += sum(follower.n_read for follower in followers)
    if n_read <= data.n_samples * len(followers) * len(followers[0].point):
        return data, n_read
    measured = data.measured(moments(data, followers))
    for follower in followers:
        follower.remeasure(data, measured)
        follower.n_read += data.n_samples
    return measured, 0


def moments(data: Data, followers: Sequence[Follower]) -> Array:
    """The curvature of the problems: second moments of the rows that matter most."""
    return sum(follower.curvature(data.total) for follower in followers) / len(followers)


def _relative_gap(
    model: LinearModel, task: Task, data: Data, end: Settled, error: float, k: int
) -> float:
    """The gap as a share of P of the best constant model, or a bound on that.

    P at the point, known up to an error, is at most `gap` above the minimum, which no constant
    model beats.
    """
    tol, least = task.settings.tol, end.value - error - end.gap
    if 0 <= end.gap <= tol * least:
        return end.gap / least
    problems = model._problems(samples_of(model, data), task.loss, task.penalty, task.alpha)
    relative = end.gap / problems[k].reference
    if not relative <= tol:
        raise NotFollowedError("the steps did not reach the tolerance")
    return relative


def undecided_slots(state: State) -> Slots:
    """Rows that some problem does not prove to be on their piece at every optimum."""
    found = [
        undecided(follower, state.data, end.at)
        for follower, end in zip(state.followers, state.ends, strict=True)
    ]
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found))


def kept_samples(state: State) -> NDArray[np.bool_]:
    """For every sample whether some problem does not prove that it has no influence."""
    data, order = state.data, state.data.order
    kept = np.zeros(len(data.y), dtype=bool)
    for follower in state.followers:
        terms = follower.targets.terms(data.y[order], follower.piece[order], np.ones(len(order)))
        kept[order] |= (terms.quadratic != 0) | (terms.linear != 0)
    kept[undecided_slots(state)] = True
    return kept[order]
