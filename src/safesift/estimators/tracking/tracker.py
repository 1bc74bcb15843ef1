"""The estimator that follows its data."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.linear import LinearModel, Samples
from safesift.estimators.regressor import SafeRegressor
from safesift.estimators.tracking.data import Edit
from safesift.estimators.tracking.edits import read_edit
from safesift.estimators.tracking.fitted import Tracked
from safesift.estimators.tracking.outcome import Outcome, fitted, followed_to, last_points
from safesift.estimators.tracking.state import NotFollowedError, Task, follow, samples_of
from safesift.parameters import check_positive


class SafeTracker(Tracked, MetaEstimatorMixin, BaseEstimator):
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
        objective, relative to it. Beyond it (and twice what fresh sums have) the Gram matrix is
        built anew from the rows.

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
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            outcome = fitted(model, task, samples, None)
        edit = {"n_added": len(samples.y), "n_removed": 0, "n_relabelled": 0, "why": "fit"}
        return self._take(outcome, [], edit, began)

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
        edit = read_edit(self.estimator_, self._state.data, add, remove, relabel)
        # sums that overflow end in an infinite gap, and that in a refit
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            outcome, why = self._edited(edit)
        return self._take(outcome, self.history_, {**edit.counts, "why": why}, began)

    def _edited(self, edit: Edit) -> tuple[Outcome, str]:
        """What comes of an edit, and why that took a refit, if it did."""
        state, model = self._state, self.estimator_
        classes = state.classes and state.classes.edited(state.data, edit)
        data, entering = state.data.edited(edit)
        if not data.total > 0:
            raise ValueError("no sample with a positive weight would be left: keep or add one.")
        other_classes = state.classes is not None and classes is None
        try:
            if other_classes or state.refused:
                raise NotFollowedError("the classes changed" if other_classes else state.refused)
            followed = follow(model, state, edit, data, entering, classes, self.residue)
        except NotFollowedError as reason:
            samples = samples_of(model, data)
            self._check_classes(samples)
            starts = None if other_classes else last_points(model)
            return fitted(model, state.task, samples, starts), str(reason)
        return followed_to(model, followed), ""

    def _take(
        self, outcome: Outcome, history: list[dict[str, Any]], edit: dict[str, Any], began: float
    ) -> Self:
        """Take over the outcome, all at once and at the very end."""
        model, state = outcome.model, outcome.state
        seconds = time.perf_counter() - began
        record = {"n_samples": state.data.n_samples, **edit, **outcome.record, "seconds": seconds}
        if model.verbose:
            print(", ".join(f"{name} {value}" for name, value in record.items()))
        model._warn(state.task.settings, outcome.missed, len(outcome.missed), stacklevel=4)
        vars(self).update(estimator_=model, _state=state, history_=[*history, record])
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
