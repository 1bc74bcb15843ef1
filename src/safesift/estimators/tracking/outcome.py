"""A fitted model, what follows it, and a record of how it came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.estimators.linear import LinearModel, Missed, Samples, missed
from safesift.estimators.tracking.data import Data
from safesift.estimators.tracking.follower import Follower
from safesift.estimators.tracking.labels import Classes
from safesift.estimators.tracking.pieces import Targets
from safesift.estimators.tracking.state import Followed, State, Task, moments, undecided_slots
from safesift.solvers.records import Fit

Array = NDArray[np.float64]

# what a fit says of its samples and of itself, and an update does not write down
_OF_A_FIT = ("kept_", "kept_per_class_", "undecided_", "history_", "n_iter_")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a fit or of an update.

    Attributes
    ----------
    model : LinearModel
        Fitted.
    state : State
    record : dict
        For the history.
    missed : list of Missed
        The problems that did not reach the tolerance.
    """

    model: LinearModel
    state: State
    record: dict[str, Any]
    missed: list[Missed]


def fitted(
    model: LinearModel, task: Task, samples: Samples, starts: Sequence[Array] | None
) -> Outcome:
    """Fit all samples, and make everything that following them needs."""
    problems = model._problems(samples, task.loss, task.penalty, task.alpha)
    (fits,) = model._solve([problems], task.settings, starts)
    design, classes = problems[0].design, None
    data = Data.of(
        samples.X, samples.y, samples.sample_weight, samples.weights, design.row_norms,
        design.intercept,
    )  # fmt: skip
    if samples.classes is not None:
        classes = Classes.of(samples.y, samples.sample_weight)
    refused, followers = task.refused(model), ()
    if not refused:
        followers = _followers(task, samples, fits, data)
        unmeasured, data = data, data.measured(moments(data, followers))
        for follower in followers:
            follower.remeasure(unmeasured, data)
    attributes = model._attributes(samples, fits)
    # one pass each for the Gram matrix and for the metric
    passes = max(fit.history[-1].passes for fit in fits) + (0 if refused else 2)
    record = {
        "local": False,
        "rows_read": round(passes * data.n_samples),
        "passes": passes,
        "n_changed": 0,
        "n_undecided": int(attributes["undecided_"].sum()),
        "gap": float(max(fit.gap for fit in fits)),
        "relative_gap": float(max(fit.relative_gap for fit in fits)),
        "residue": 0.0,
        "rebuilt": not refused,
    }
    state = State(task, data, classes, followers, refused)
    return Outcome(_with_attributes(model, attributes), state, record, missed(fits))


def followed_to(model: LinearModel, followed: Followed) -> Outcome:
    """The model where its followers have gone."""
    state = followed.state
    followers, gaps = state.followers, np.array([end.gap for end in state.ends])
    n_rows = state.data.n_samples * len(followers)
    rows_read = sum(follower.n_read for follower in followers)
    record = {
        "local": rows_read < n_rows,
        "rows_read": rows_read,
        "passes": rows_read / n_rows,
        "n_changed": sum(follower.n_changed for follower in followers),
        "n_undecided": len(undecided_slots(state)),
        "gap": float(gaps.max()),
        "relative_gap": followed.relative_gap,
        "residue": followed.residue,
        "rebuilt": followed.rebuilt,
    }
    attributes = _fitted_attributes(model, followers, gaps)
    return Outcome(_with_attributes(model, attributes), state, record, [])


def _followers(
    task: Task, samples: Samples, fits: Sequence[Fit], data: Data
) -> tuple[Follower, ...]:
    """One for each problem, at its solution."""
    labels = [None]
    if samples.classes is not None:
        labels = samples.classes[1:] if len(samples.classes) == 2 else samples.classes
    n_features = samples.X.shape[1]
    return tuple(
        Follower.at(Targets(task.loss, label), task.alpha, n_features, fit.at.point, data)
        for label, fit in zip(labels, fits, strict=True)
    )


def last_points(model: LinearModel) -> list[Array]:
    """Where a refit begins: at the last model."""
    coefs, intercepts = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)[:, None]
    return list(np.hstack([coefs, intercepts]) if model.fit_intercept else coefs)


def _fitted_attributes(
    model: LinearModel, followers: Sequence[Follower], gaps: Array
) -> dict[str, Any]:
    """Coefficients and gaps in the shape that the estimator has them."""
    points = np.stack([follower.point for follower in followers])
    p = followers[0].n_features
    coefs = points[:, :p]
    intercepts = points[:, p] if points.shape[1] > p else np.zeros(len(points))
    one = len(followers) == 1
    gap = float(gaps[0]) if one else gaps
    if model._task == "regression":
        return {"coef_": coefs[0], "intercept_": float(intercepts[0]), "dual_gap_": gap}
    return {"coef_": coefs, "intercept_": intercepts, "dual_gap_": gap}


def _with_attributes(model: LinearModel, attributes: dict[str, Any]) -> LinearModel:
    """A copy of a model with other fitted attributes; the model itself does not change."""
    other = object.__new__(type(model))
    known = {name: value for name, value in vars(model).items() if name not in _OF_A_FIT}
    vars(other).update(known, **attributes)
    return other
