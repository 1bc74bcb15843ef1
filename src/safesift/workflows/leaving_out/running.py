"""`leave_one_out`: arguments, and the models of every class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.threads import computes
from safesift.design.factory import check_finite
from safesift.losses import Loss
from safesift.parameters import check_count, check_positive
from safesift.penalties import Penalty
from safesift.problem.inputs import make_problems, vector
from safesift.problem.problem import Problem
from safesift.problem.scales import column_names
from safesift.problem.training import Training
from safesift.workflows.leaving_out.groups import Groups
from safesift.workflows.leaving_out.parts import Part
from safesift.workflows.leaving_out.result import LeaveOneOut


@computes
def leave_one_out(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "squared_hinge",
    penalty: str | Penalty = "l2",
    alpha: float = 1e-4,
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    groups: Any = None,
    width: float = 1e-3,
    max_iter: int = 1000,
    n_jobs: int | None = None,
) -> LeaveOneOut:
    """For every sample, what the model that is trained without it says of it, with a proof.

    For losses that are quadratic piece by piece (squared, Huber, squared and smoothed hinge, the
    squared and smoothed losses of intervals) and l2, all models together take about as long as one;
    docs/leave_one_out.md says how, and what others cost.

    Parameters
    ----------
    X : array, CSR matrix, pandas or polars frame, Design, of shape (n_samples, n_features)
        Used as it is, float32 or float64 (or integers), in any order.
    y : array of shape (n_samples,), or (n_samples, 2) for intervals
        Labels for a classification loss, numbers for a regression loss, lower and upper ends for
        an interval loss.
    loss : str or Loss, default="squared_hinge"
        A name of `safesift.losses.LOSSES` or an object with its parameters.
    penalty : str or Penalty, default="l2"
        "l2", "l1" or "elastic_net", or such an object; constraints are refused.
    alpha : float, default=1e-4
        Weight of the penalty, the same with and without a sample.
    l1_ratio : float in [0, 1), optional
        Share of the l1 norm in penalty="elastic_net", 0.5 by default; None with any other.
    fit_intercept : bool, default=True
        Add an intercept that is not penalised.
    sample_weight : array of shape (n_samples,), optional
        Weight 0 is exactly removal: such a sample is predicted by the model of all.
    groups : array of shape (n_samples,), optional
        Samples with the same label are left out together, as in a K-fold cross-validation whose
        folds they are; by default every sample alone.
    width : float, default=1e-3
        How long intervals may be, relative to the spread of the predictions, before more work is
        done; they are far shorter where the optimum is found exactly.
    max_iter : int, default=1000
        The largest number of steps per model that has to be solved for.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    LeaveOneOut

    Raises
    ------
    ValueError
        For a constraint as penalty, for a loss with kinks under a penalty without l2 part (neither
        has a unique optimum), and where the last samples of a class are left out: what is
        left is no classification.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> y = np.where(X[:, 0] + 0.3 * rng.normal(size=500) > 0, "yes", "no")
    >>> loo = ss.leave_one_out(X, y, alpha=1e-2)
    >>> bool((loo.upper - loo.lower).max() < 1e-8), 0.8 < loo.score() < 1.0
    (True, True)

    It is what a model of the others says:

    >>> others = ss.SafeClassifier(alpha=1e-2, tol=1e-12).fit(X[1:], y[1:])
    >>> bool(np.isclose(others.decision_function(X[:1])[0], loo.decision[0], atol=1e-6))
    True
    """
    training = Training(loss, penalty, alpha, l1_ratio, bool(fit_intercept))
    width, max_iter = check_positive("width", width), check_count("max_iter", max_iter)
    inputs = make_problems(X, y, sample_weight=sample_weight, **vars(training))
    problem = inputs.problems[0]
    refuse_uncovered(problem)
    together = _checked_groups(groups, problem.design.n_samples)
    refuse_last(inputs.classes, inputs.labels, problem.weights, together)
    check_finite(problem.design, columns=column_names(X))
    parts = tuple(Part(one, together, width, max_iter) for one in inputs.problems)
    found = [part.found() for part in parts]
    for one in inputs.problems:
        one.seal()
    fitted, decision, half = (
        _columns(values)
        for values in (
            [full.at.pred for full, _, _ in found],
            [models.pred for _, models, _ in found],
            [models.half for _, models, _ in found],
        )
    )
    return LeaveOneOut(
        decision=decision,
        # rounded outwards
        lower=np.nextafter(decision - half, -np.inf),
        upper=np.nextafter(decision + half, np.inf),
        fitted=fitted,
        y=problem.y if inputs.labels is None else inputs.labels,
        sample_weight=problem.weights,
        groups=together.owner,
        n_refits=sum(refitted for _, _, refitted in found),
        n_changed=np.max([models.changed for _, models, _ in found], axis=0),
        training=training,
        classes=inputs.classes,
        parts=parts,
        points=tuple(full.at.point for full, _, _ in found),
        n_jobs=n_jobs,
        columns=column_names(X),
    )


def _checked_groups(groups: Any, n_samples: int) -> Groups:
    if groups is None:
        return Groups.single(n_samples)
    labels = vector("groups", groups)
    if len(labels) != n_samples:
        raise ValueError(f"groups has {len(labels)} entries but X has {n_samples} rows.")
    return Groups.of(labels)


def refuse_uncovered(problem: Problem) -> None:
    """Refuse losses and penalties for which leaving samples out is not done."""
    loss, penalty = problem.loss, problem.penalty
    if penalty.is_constraint:
        raise ValueError(
            f"penalty {penalty!r} is a constraint, for which leaving samples out is not done: use "
            "'l2', 'l1' or 'elastic_net'."
        )
    if np.isinf(loss.smoothness) and penalty.strong_convexity == 0:
        raise ValueError(
            f"loss {loss!r} with penalty {penalty!r} has neither curvature nor a unique optimum, "
            "and no useful interval is known: use 'l2' or 'elastic_net', or a smooth loss."
        )
    if not problem.design.has_rows:
        raise TypeError("X must have rows that can be read: pass a matrix, not a kernel.")


def refuse_last(
    classes: NDArray | None, labels: NDArray | None, weights: NDArray[np.float64], groups: Groups
) -> None:
    """Every class, or everything, has to be there without any of the groups."""
    if classes is None or labels is None:
        counted = weights > 0
        last = np.flatnonzero(groups.sums(counted.astype(float)) == counted.sum())
        if len(last):
            row = int(groups.rows(int(last[0]))[0])
            raise ValueError(
                f"y: without the samples left out with row {row} none of positive weight is left: "
                "use more samples, or use more groups."
            )
        return
    for label, name in zip(classes, classes.tolist(), strict=True):
        counted = (labels == label) & (weights > 0)
        whole = groups.sums(counted.astype(float))
        last = np.flatnonzero(whole == counted.sum())
        if len(last):
            row = int(groups.rows(int(last[0]))[0])
            raise ValueError(
                f"y: class {name!r} has no other samples than those left out with row {row}, and "
                "without it there is no such class: leave those samples out beforehand, or use "
                "more groups."
            )


def _columns(vectors: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return vectors[0] if len(vectors) == 1 else np.stack(vectors, axis=1)
