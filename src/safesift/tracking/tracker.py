"""The estimator that follows its data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.linear import LinearModel, Samples, missed
from safesift.estimators.regressor import SafeRegressor
from safesift.solvers.records import Fit
from safesift.tracking.certificate import slope
from safesift.tracking.data import Data
from safesift.tracking.edits import read_edit
from safesift.tracking.follower import Follower
from safesift.tracking.labels import Classes
from safesift.tracking.pieces import Targets
from safesift.tracking.settle import Settled
from safesift.tracking.state import (
    Followed,
    NotFollowedError,
    State,
    Task,
    decided_rows,
    follow,
    moments,
    samples_of,
)
from safesift.validation import check_positive

Array = NDArray[np.float64]

# what a refit says of every sample, and an update does not write down
_PER_SAMPLE = ("kept_", "kept_per_class_", "undecided_", "history_", "n_iter_")


def _delegates(name: str) -> Any:
    """The method is there where the estimator, fitted or not, has it."""

    def has(tracker: SafeTracker) -> bool:
        return hasattr(getattr(tracker, "estimator_", tracker.estimator), name)

    return available_if(has)


class SafeTracker(MetaEstimatorMixin, BaseEstimator):
    """A certified linear model that follows data which change a little at a time.

    After every `update` the model is that of a fresh fit on the resulting data, to the same
    certified duality gap. With an l2 penalty and a loss that is smooth and made of linear and
    quadratic pieces, an update reads the edited rows and those that may have changed their piece
    of the loss since they were last read; all others are proved to be where they were. With
    anything else, or where the classes change, the model is fitted again from where it was, and
    `history_` says so.

    Parameters
    ----------
    estimator : SafeClassifier or SafeRegressor
        Says what to fit, and to which tolerance. It is cloned, not changed.
    residue : float, default=1e-10
        What rounding may leave behind of rows that came and went: a bound on the change of the
        objective, relative to it. Beyond it the Gram matrix is built anew from the rows.

    Attributes
    ----------
    estimator_ : SafeClassifier or SafeRegressor
        Fitted on the data as they are.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        Of `estimator_`.
    dual_gap_ : float, or array of shape (n_classes,)
        Certified on all samples there are.
    kept_ : array of shape (n_samples,)
        False where the sample is proved to have no influence.
    undecided_ : array of shape (n_samples,)
        True where it is not proved on which piece of its loss the sample lies at the optimum.
    X_, y_, sample_weight_ : matrix and arrays
        The samples as they are: what stays keeps its order, what is added comes last.
    history_ : list of dict
        One record for the fit and for every update: `n_samples`, `n_added`, `n_removed`,
        `n_relabelled`; `local`, whether fewer rows were read than there are, without a refit;
        `why` there was a refit, if there was one; `rows_read`, `passes` (over the data, all classes
        together), `n_changed` (rows that changed their piece), `n_undecided`, `gap`,
        `relative_gap` (an upper bound, the largest of any class), `residue` (see there),
        `rebuilt`, whether the Gram matrix was, and `seconds`.

    See Also
    --------
    SafeClassifier, SafeRegressor

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> y = (X[:, 0] + 0.3 * rng.normal(size=2000) > 0).astype(int)
    >>> tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-3)).fit(X[:1500], y[:1500])
    >>> tracker = tracker.update(add=(X[1500:1600], y[1500:1600]), remove=np.arange(100))
    >>> last = tracker.history_[-1]
    >>> last["local"], last["n_samples"], bool(last["relative_gap"] < 1e-6)
    (True, 1500, True)
    >>> fresh = ss.SafeClassifier(alpha=1e-3).fit(X[100:1600], y[100:1600])
    >>> bool(np.allclose(tracker.coef_, fresh.coef_, atol=1e-6))
    True
    """

    def __init__(self, estimator: LinearModel, *, residue: float = 1e-10) -> None:
        self.estimator = estimator
        self.residue = residue

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        return tags

    # --- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model on data to start with, of which a copy is kept.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        began = time.perf_counter()
        self._check()
        model = clone(self.estimator)
        task = Task.of(model)
        samples = model._read(X, y, sample_weight)
        counts = {"n_added": len(samples.y), "n_removed": 0, "n_relabelled": 0}
        self._refit(model, task, samples, None, began, counts, "fit", [])
        return self

    def update(self, *, add: Any = None, remove: Any = None, relabel: Any = None) -> Self:
        """Change the data, and the model with them.

        All indices are positions in the data *before* the update. What stays keeps its order and
        what is added comes last, as in ``np.concatenate([np.delete(X, remove, axis=0), X_new])``.
        An update that fails or is interrupted changes nothing.

        Parameters
        ----------
        add : (X, y) or (X, y, sample_weight), optional
            New samples.
        remove : int, array of int, mask or slice, optional
            The samples that go.
        relabel : (index, y), optional
            Samples that get another target, and their targets.

        Returns
        -------
        self
        """
        began = time.perf_counter()
        if "estimator_" not in vars(self):
            check_is_fitted(self, "estimator_")
        state, model = self._state, self.estimator_
        edit = read_edit(model, state.data, add, remove, relabel)
        classes = state.classes and state.classes.edited(state.data, edit)
        data, entering = state.data.edited(edit, bool(model.fit_intercept))
        if not data.total > 0:
            raise ValueError("no sample with a positive weight would be left: keep or add one.")
        why = state.refused
        if state.classes is not None and classes is None:
            why = "the classes changed"
        try:
            if why:
                raise NotFollowedError(why)
            followed = follow(model, state, edit, data, entering, self.residue)
        except NotFollowedError as reason:
            samples = samples_of(model, data)
            self._check_classes(samples)
            starts = None if state.classes is not None and classes is None else _points(model)
            self._refit(
                model, state.task, samples, starts, began, edit.counts, str(reason), self.history_
            )
            return self
        self._publish(followed, classes, began, edit.counts)
        return self

    def _check(self) -> None:
        if not isinstance(self.estimator, SafeClassifier | SafeRegressor):
            raise TypeError(
                "SafeTracker follows a SafeClassifier or a SafeRegressor, got "
                f"{type(self.estimator).__name__}."
            )
        check_positive("residue", self.residue)
        if np.ndim(getattr(self.estimator, "epsilon", 0.0)):
            raise ValueError(
                "SafeTracker needs one epsilon for all samples, new ones included: pass a number."
            )

    def _check_classes(self, samples: Samples) -> None:
        if samples.classes is None:
            return
        check_classification_targets(samples.y)
        if len(samples.classes) < 2:
            raise ValueError(
                f"one class only would be left ({samples.classes[0]!r}, among samples of positive "
                "weight): keep or add a sample of another."
            )

    # --- what came of it --------------------------------------------------------------------

    def _refit(
        self, model: LinearModel, task: Task, samples: Samples, starts: Any, began: float,
        counts: dict[str, int], why: str, history: list[dict[str, Any]],
    ) -> None:  # fmt: skip
        """Fit all samples, and make everything that following them needs."""
        problems = model._problems(samples, task.loss, task.penalty, task.alpha)
        (fits,) = model._solve([problems], task.settings, starts)
        attributes = model._attributes(samples, fits)
        data = Data.of(
            samples.X, samples.y, samples.sample_weight, samples.weights,
            problems[0].design.row_norms, problems[0].fit_intercept,
        )  # fmt: skip
        classes = None
        if samples.classes is not None:
            classes = Classes.of(samples.y, samples.sample_weight)
        refused = task.refused(model)
        followers = () if refused else _followers(task, samples, fits, data)
        if followers:
            unmeasured, data = data, data.measured(moments(data, followers))
            for follower in followers:
                follower.remeasure(unmeasured, data)
        passes = max(fit.history[-1].passes for fit in fits) + (1 if followers else 0)
        record = {
            "n_samples": data.n_samples,
            **counts,
            "local": False,
            "why": why,
            "rows_read": round(passes * data.n_samples),
            "passes": passes,
            "n_changed": 0,
            "n_undecided": int(attributes["undecided_"].sum()),
            "gap": max(fit.solution.gap for fit in fits),
            "relative_gap": max(fit.solution.relative_gap for fit in fits),
            "residue": 0.0,
            "rebuilt": bool(followers),
            "seconds": time.perf_counter() - began,
        }
        fitted = _with_attributes(model, attributes)
        vars(self).update(
            estimator_=fitted,
            history_=[*history, record],
            _state=State(task, data, classes, followers, refused),
            _ends=None,
        )
        model._publish({}, fits if model.verbose else [])
        model._warn(task.settings, missed(fits), len(fits))

    def _publish(
        self, followed: Followed, classes: Classes | None, began: float, counts: dict[str, int]
    ) -> None:
        """Take over a state that was followed: all at once, at the very end."""
        state, ends = followed.state, followed.settled
        n, followers = state.data.n_samples, state.followers
        gaps = np.array([end.gap for end in ends])
        rows_read = sum(follower.n_read for follower in followers)
        attributes = _fitted_attributes(self.estimator_, followers, gaps)
        record = {
            "n_samples": n,
            **counts,
            "local": rows_read < n * len(followers),
            "why": "",
            "rows_read": rows_read,
            "passes": rows_read / (n * len(followers)),
            "n_changed": sum(follower.n_changed for follower in followers),
            "n_undecided": followed.n_undecided,
            "gap": float(gaps.max()),
            "relative_gap": followed.relative_gap,
            "residue": followed.residue,
            "rebuilt": followed.rebuilt,
            "seconds": time.perf_counter() - began,
        }
        if self.estimator_.verbose:
            print(
                f"update: {rows_read} rows read, relative gap {followed.relative_gap:.2g}, "
                f"{record['n_undecided']} undecided"
            )
        vars(self).update(
            estimator_=_with_attributes(self.estimator_, attributes),
            history_=[*self.history_, record],
            _state=replace(state, classes=classes),
            _ends=ends,
        )

    # --- the fitted model -------------------------------------------------------------------

    @property
    def coef_(self) -> Array:
        return self._fitted("coef_")

    @property
    def intercept_(self) -> Any:
        return self._fitted("intercept_")

    @property
    def classes_(self) -> NDArray:
        return self._fitted("classes_")

    @property
    def dual_gap_(self) -> Any:
        return self._fitted("dual_gap_")

    @property
    def n_features_in_(self) -> int:
        return self._fitted("n_features_in_")

    @property
    def feature_names_in_(self) -> NDArray:
        return self._fitted("feature_names_in_")

    def _fitted(self, name: str) -> Any:
        if "estimator_" not in vars(self):
            raise AttributeError(f"SafeTracker has no {name} yet: call fit first.")
        return getattr(self.estimator_, name)

    @property
    def kept_(self) -> NDArray[np.bool_]:
        if self._ends is None:
            return self._fitted("kept_")
        return decided_rows(self._state, self._ends)[0].any(axis=1)

    @property
    def undecided_(self) -> NDArray[np.bool_]:
        if self._ends is None:
            return self._fitted("undecided_")
        return decided_rows(self._state, self._ends)[1]

    @property
    def X_(self) -> Any:
        return self._state.data.store.rows(self._state.data.order)

    @property
    def y_(self) -> NDArray:
        return self._state.data.y[self._state.data.order]

    @property
    def sample_weight_(self) -> Array:
        return self._state.data.sample_weight[self._state.data.order]

    def predict(self, X: Any) -> NDArray:
        """Classes or numbers, as the estimator predicts them.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(X)

    @_delegates("decision_function")
    def decision_function(self, X: Any) -> Array:
        """Scores of a classifier: positive for `classes_[1]`, or one column per class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.decision_function(X)

    @_delegates("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Probabilities, for the logistic losses.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, R² of a regressor.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_.score(X, y, sample_weight)


def _followers(
    task: Task, samples: Samples, fits: Sequence[Fit], data: Data
) -> tuple[Follower, ...]:
    """One for each problem, at its solution."""
    labels = [None]
    if samples.classes is not None:
        labels = samples.classes[1:] if len(samples.classes) == 2 else samples.classes
    n_features = samples.X.shape[1]
    return tuple(
        Follower.at(Targets(task.loss, label), task.alpha, n_features, fit.solution.at.point, data)
        for label, fit in zip(labels, fits, strict=True)
    )


def _points(model: LinearModel) -> list[Array]:
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
    known = {name: value for name, value in vars(model).items() if name not in _PER_SAMPLE}
    vars(other).update(known, **attributes)
    return other
