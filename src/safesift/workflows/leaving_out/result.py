"""What is known when every model without a sample is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, get_scorer, r2_score

from safesift.arithmetic.printing import record_in_brief
from safesift.arithmetic.threads import computes
from safesift.design import Design, as_design
from safesift.design.factory import check_finite
from safesift.parameters import check_count
from safesift.problem.inputs import distance
from safesift.problem.scales import column_names
from safesift.problem.training import Training
from safesift.registry import provided
from safesift.workflows.leaving_out.parts import Part
from safesift.workflows.showing import Reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# numbers of a block of effects
_BLOCK = 2**22


class Influence(NamedTuple):
    """Of every row of some X, the groups (or samples) whose leaving moves its prediction most.

    Attributes
    ----------
    rows : array of shape (n, top), or (n, n_classes, top) with several classes
        Samples, or groups in the order of their labels; the most influential first.
    effects : array of the same shape
        The prediction without them, less that of the model of all samples.
    """

    rows: Rows
    effects: Array

    def __repr__(self) -> str:
        return record_in_brief(self)


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut(Reported):
    """For every sample, what the model without it (or without its group) says of it.

    Attributes
    ----------
    decision : array of shape (n_samples,), or (n_samples, n_classes) with several classes
        Decision values, or predictions of a regression.
    lower, upper : arrays of the same shape
        Between them lies what every optimum of the problem without the sample says, rounding
        included.
    fitted : array of the same shape
        What the model of all samples says.
    change : array of the same shape
        `decision` less `fitted`: how far a sample pulls its own prediction.
    prediction : array of shape (n_samples,)
        Labels, or numbers.
    certain : mask of shape (n_samples,)
        Whether the whole interval gives the same label; for a regression, whether it is finite.
    n_refits : int
        How many models had to be solved for, one by one.
    n_changed : array of shape (n_groups,)
        How many other samples change the piece of their loss without a group.
    training : Training
    classes : array or None
    columns : tuple of str or None
        The names of the features, where X was a frame.
    y, sample_weight : arrays of shape (n_samples,)
        What was trained on.
    groups : array of shape (n_samples,)
        Who leaves together, by numbers from 0.
    parts, points
        The problems, one for each of several classes, and the models of all samples.
    n_jobs : int or None
        Threads for what is computed when it is asked for.
    """

    decision: Array
    lower: Array
    upper: Array
    fitted: Array
    y: NDArray
    sample_weight: Array
    groups: Rows
    n_refits: int
    n_changed: NDArray[np.int64]
    training: Training
    classes: NDArray | None
    parts: tuple[Part, ...] = field(repr=False)
    points: tuple[Array, ...] = field(repr=False)
    n_jobs: int | None = None
    columns: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def change(self) -> Array:
        """How far a sample pulls its own prediction."""
        return self.decision - self.fitted

    @property
    def prediction(self) -> NDArray:
        """Labels of decision values, or the predictions themselves."""
        return self._labels(self.decision)

    def _labels(self, decision: Array) -> NDArray:
        if self.classes is None:
            return decision
        if decision.ndim == 1:
            return self.classes[(decision > 0).astype(np.intp)]
        return self.classes[decision.argmax(axis=1)]

    @property
    def certain(self) -> NDArray[np.bool_]:
        """Whether the interval leaves no doubt about the label."""
        if self.classes is None:
            return np.isfinite(self.upper - self.lower)
        if self.decision.ndim == 1:
            return (self.lower > 0) | (self.upper <= 0)
        best = self.decision.argmax(axis=1)[:, None]
        least = np.take_along_axis(self.lower, best, axis=1)[:, 0]
        others = self.upper.copy()
        np.put_along_axis(others, best, -np.inf, axis=1)
        return least > others.max(axis=1)

    def score(self, scoring: Any = None) -> float:
        """How good the predictions are, weighted: an honest estimate of that of the model.

        Parameters
        ----------
        scoring : str or callable, optional
            As in scikit-learn; by default the accuracy, or R², of intervals of the distance to
            them.
        """
        weights = self.sample_weight
        if scoring is None:
            if self.classes is not None:
                return float(accuracy_score(self.y, self.prediction, sample_weight=weights))
            if self.y.ndim == 2:
                return -float(np.average(distance(self.decision, self.y), weights=weights))
            return float(r2_score(self.y, self.decision, sample_weight=weights))
        return scored(scoring, self.decision, self.prediction, self.classes, self.y, weights)

    def suspects(self, k: int = 20) -> Rows:
        """The k samples most at odds with the model of the others, the worst first.

        By how far the decision value of the own label is below the largest other one, by the
        residual, or by the distance to the interval: likely errors of labels or targets.

        Parameters
        ----------
        k : int, default=20

        Returns
        -------
        array of shape (k,)
            Row numbers.
        """
        k = min(check_count("k", k), len(self.decision))
        return np.argsort(-self.strangeness, kind="stable")[:k]

    @property
    def strangeness(self) -> Array:
        """By which `suspects` are ranked: the larger, the stranger; -inf without weight."""
        strange = strangeness(self.decision, self.y, self.classes)
        return np.where(self.sample_weight > 0, strange, -np.inf)

    # --- other rows ---------------------------------------------------------------------------

    @computes
    def influence(self, X: Any, top: int = 10) -> Influence:
        """Whose leaving moves the predictions of other rows most.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n, n_features)
        top : int, default=10
            How many to name for each row.

        Returns
        -------
        Influence
            All effects, a block at a time, are `influence_blocks`.
        """
        n_groups = int(self.groups.max()) + 1
        top = min(check_count("top", top), n_groups)
        found = [self._largest(k, X, top) for k in range(len(self.parts))]
        if len(found) == 1:
            return found[0]
        rows = np.stack([one.rows for one in found], axis=1)
        return Influence(rows, np.stack([one.effects for one in found], axis=1))

    def _largest(self, part: int, X: Any, top: int) -> Influence:
        rows: Rows | None = None
        effects = np.zeros(0)
        for some, block in self.effects(part, X):
            more = np.broadcast_to(some, block.shape)
            rows = more if rows is None else np.hstack([rows, more])
            effects = block if rows is more else np.hstack([effects, block])
            best = np.argsort(-np.abs(effects), axis=1, kind="stable")[:, :top]
            rows = np.take_along_axis(rows, best, axis=1)
            effects = np.take_along_axis(effects, best, axis=1)
        assert rows is not None  # there are groups
        return Influence(rows, effects)

    def influence_blocks(self, X: Any) -> Iterator[tuple[Rows, Array]]:
        """Samples (or groups) a block at a time, and what leaving them does to predictions of X.

        Yields
        ------
        rows : array of shape (k,)
        effects : array of shape (n, k)
            The prediction without them, less that of the model of all samples. With several
            classes all blocks of one class come before those of the next.
        """
        for part in range(len(self.parts)):
            yield from self.effects(part, X)

    def effects(self, k: int, X: Any) -> Iterator[tuple[Rows, Array]]:
        """`influence_blocks` of the k-th class."""
        part, design = self.parts[k], self.design_of(X)
        part.problem.check_unchanged()
        before = design.matvec(self.points[k])
        size = max(_BLOCK // max(design.n_samples + design.n_columns, 1), 16)
        for some, points in part.points(size):
            yield some, design.matvec(np.ascontiguousarray(points)) - before[:, None]

    def design_of(self, X: Any) -> Design:
        """Other rows, checked."""
        design, names = as_design(X, self.training.fit_intercept), column_names(X)
        if names is not None and self.columns is not None and names != self.columns:
            raise ValueError(
                f"X has the columns {', '.join(names[:5])}, …, but the models have "
                f"{', '.join(self.columns[:5])}, …: pass the same ones in the same order."
            )
        expected = self.parts[0].problem.design.n_features
        if design.n_features != expected:
            raise ValueError(f"X has {design.n_features} features, but the models have {expected}.")
        check_finite(design, columns=names)
        return design

    # --- faces --------------------------------------------------------------------------------

    def summary(self) -> str:
        """What was found, in a few lines."""
        return provided("summary_of_leaving_out")(self)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw every sample's prediction with and without it.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        return provided("plot_leave_one_out")(self, axes)


def scored(
    scoring: Any, decision: Array, prediction: NDArray, classes: NDArray | None, y: NDArray,
    weights: Array | None,
) -> float:  # fmt: skip
    """The score of predictions that are known, by a scorer of scikit-learn.

    It is told weights that differ: not every callable takes them.
    """
    known = _Known(decision, prediction)
    if classes is not None:
        known = _KnownClassifier(decision, prediction)
        known.classes_ = classes
    rows = np.arange(len(decision))[:, None]
    plain = weights is None or (weights == weights[0]).all()
    told = {} if plain else {"sample_weight": weights}
    scorer = get_scorer(scoring)
    try:
        return float(scorer(known, rows, y, **told))
    except AttributeError as missing:
        if "predict_proba" not in str(missing):
            raise
        raise ValueError(
            f"scoring={scoring!r} needs probabilities, and what models say of the samples they "
            "were trained without are decision values: use a scorer of these, such as 'roc_auc', "
            "or of labels."
        ) from None


def strangeness(decision: Array, y: NDArray, classes: NDArray | None) -> Array:
    """How far decision values are from what targets ask for.

    Of labels, by how much the decision value of the own label is below the largest other one; of
    numbers the residual; of intervals the distance to them.
    """
    if classes is None:
        return distance(decision, y) if y.ndim == 2 else np.abs(y - decision)
    if decision.ndim == 1:
        return np.where(y == classes[1], -decision, decision)
    own = np.searchsorted(classes, y)[:, None].clip(0, len(classes) - 1)
    others = decision.copy()
    np.put_along_axis(others, own, -np.inf, axis=1)
    return others.max(axis=1) - np.take_along_axis(decision, own, axis=1)[:, 0]


class _Known(RegressorMixin, BaseEstimator):
    """What scorers ask of a model, answered from what is known; rows are row numbers."""

    def __init__(self, decision: Array, prediction: NDArray) -> None:
        self.decision, self.prediction = decision, prediction

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, rows: ArrayLike) -> NDArray:
        return self.prediction[np.ravel(rows)]


class _KnownClassifier(ClassifierMixin, _Known):
    classes_: NDArray

    def decision_function(self, rows: ArrayLike) -> Array:
        return self.decision[np.ravel(rows)]
