"""The estimator that follows its data."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from safesift.arithmetic.threads import computes, using
from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.conditional import available_if
from safesift.estimators.edits import check_classes, read_edit
from safesift.estimators.linear import LinearModel, Samples
from safesift.estimators.proving import ProvesEdits
from safesift.estimators.regressor import SafeRegressor
from safesift.estimators.showing import ShowsFit
from safesift.losses import Loss
from safesift.parameters import check_positive
from safesift.penalties import L2, Penalty
from safesift.problem.risk import check_shares
from safesift.solvers.records import Missed, Settings, missed
from safesift.workflows.tracking import Change, Classes, Data, Tracked, Tracking, made_of_pieces

Array = NDArray[np.float64]

# beyond so many columns, factors of Q cost more than a few passes over the rows
_WIDEST = 1000


@dataclass(frozen=True, eq=False)
class _Parameters:
    """Those of the model, checked once."""

    loss: Loss
    penalty: Penalty
    alpha: float
    settings: Settings

    @classmethod
    def of(cls, model: LinearModel) -> _Parameters:
        loss, penalty = model._checked_loss(), model._checked_penalty()
        return cls(loss, penalty, model.alpha, model._checked_settings())

    def refusal(self, model: LinearModel) -> str:
        """Why such a model cannot be followed row by row; empty where it can."""
        if not isinstance(self.penalty, L2):
            return f"penalty={model.penalty!r} is not 'l2'"
        if not made_of_pieces(self.loss):
            return f"loss={model.loss!r} is not smooth, linear or quadratic everywhere"
        if model.n_features_in_ > _WIDEST:
            return f"there are more than {_WIDEST} features"
        if isinstance(getattr(model, "class_weight", None), str):
            return "class_weight='balanced' changes the weight of every sample"
        return ""


@dataclass(frozen=True, eq=False)
class _Version:
    """A fitted model, what follows it, and a record of how it came about.

    `missed` are the problems that did not reach the tolerance.
    """

    model: LinearModel
    tracking: Tracking
    record: dict[str, Any]
    missed: Sequence[Missed] = ()


def _delegates(name: str) -> Any:
    """The method is there where the estimator, fitted or not, has it."""
    return available_if(
        lambda tracker: getattr(getattr(tracker, "estimator_", tracker.estimator), name)
    )


def _of_the_model(name: str) -> property:
    """A fitted attribute of the estimator."""
    return property(lambda tracker: tracker._fitted(name))


def _in_turn(method: Callable) -> Any:
    """One thread at a time: an update is made of the samples that the one before it has left."""

    @functools.wraps(method)
    def alone(self: SafeTracker, *args: Any, **kwargs: Any) -> Any:
        with self._turn:
            return method(self, *args, **kwargs)

    return alone


class SafeTracker(ProvesEdits, ShowsFit, MetaEstimatorMixin, BaseEstimator):
    """A certified linear model that follows data which change a little at a time.

    After every `update` the model is that of a fresh fit on the resulting data, to the same
    certified duality gap. With an l2 penalty and a loss that is smooth and made of linear and
    quadratic pieces, an update reads the edited rows and those that may have changed their piece
    of the loss since they were last read; all others are proved to be where they were. With
    anything else, or where the classes change, the model is fitted again from where it was, and
    `history_` says so.

    Several threads may use one tracker: they take turns. A copy, shallow or deep, goes its own way.

    Parameters
    ----------
    estimator : SafeClassifier or SafeRegressor
        Says what to fit, and to which tolerance. It is cloned, not changed.
    residue : float, default=1e-10
        What rounding may leave behind of rows that came and went: a bound on the change of the
        objective, relative to it. Beyond it (and twice what fresh sums have) the Gram matrix is
        built anew from the rows.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
        Where this is None, the number of the estimator counts.

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

    def __init__(
        self, estimator: LinearModel, *, residue: float = 1e-10, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.residue = residue
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), self.estimator.__sklearn_tags__()
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags, tags.input_tags = inner.target_tags, inner.input_tags
        return tags

    # --- owners -----------------------------------------------------------------------------

    @property
    def _turn(self) -> Any:
        # made when it is needed: scikit-learn wants nothing but parameters before; atomic
        return self.__dict__.setdefault("_lock", threading.RLock())

    @_in_turn
    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles are made of: a state to whose slots nobody writes any more."""
        if "_tracking" in vars(self):
            self.__dict__.update(_tracking=self._tracking.shared)
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    # --- fitting ----------------------------------------------------------------------------

    @_in_turn
    @computes
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
        if self.n_jobs is not None:
            model.set_params(n_jobs=self.n_jobs)
        parameters = _Parameters.of(model)
        samples = model._read(X, y, sample_weight)
        with using(model.n_jobs), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            version = _fitted(model, parameters, samples)
        edit = {"n_added": len(samples.y), "n_removed": 0, "n_relabelled": 0, "why": "fit"}
        return self._take(version, parameters, [], edit, began)

    @_in_turn
    @computes
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
        model = self._known
        change = read_edit(model, self._tracking.data, add, remove, relabel)
        # sums that overflow end in an infinite gap, and that in a refit
        with using(model.n_jobs), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            version, why = self._edited(change)
        edit = {
            "n_added": len(change.y),
            "n_removed": len(change.removed),
            "n_relabelled": len(change.relabelled),
            "why": why,
        }
        return self._take(version, self._parameters, self.history_, edit, began)

    def _edited(self, change: Change) -> tuple[_Version, str]:
        """What comes of an edit, and why that took a refit, if it did."""
        model, parameters, tracking = self.estimator_, self._parameters, self._tracking
        classes = tracking.classes and tracking.classes.edited(tracking.data, change)
        edited = tracking.data.edited(change)
        if not edited.data.total > 0:
            raise ValueError("no sample with a positive weight would be left: keep or add one.")
        check_shares(edited.data.weights[edited.data.order], edited.data.total)
        if tracking.classes is not None and classes is None:
            samples = _samples(model, edited.data)
            check_classes(samples)
            return _fitted(model, parameters, samples), "the classes changed"
        why = parameters.refusal(model) if not tracking.followers else ""
        if not why:
            tracked = tracking.after(edited, classes, parameters.settings, self.residue)
            if tracked.relative_gap <= parameters.settings.tol:
                return _followed(model, tracked), ""
            why = "the steps did not reach the tolerance"
        samples = _samples(model, edited.data)
        return _fitted(model, parameters, samples, list(model._points)), why

    def _take(
        self,
        version: _Version,
        parameters: _Parameters,
        history: list[dict[str, Any]],
        edit: dict[str, Any],
        began: float,
    ) -> Self:
        """Take over another version, all at once and at the very end."""
        model, tracking = version.model, version.tracking
        record = {"n_samples": tracking.data.n_samples, **edit, **version.record}
        record["seconds"] = time.perf_counter() - began
        if model.verbose:
            print(", ".join(f"{name} {value}" for name, value in record.items()))
        model._warn(parameters.settings, version.missed, len(version.missed))
        fitted = {"estimator_": model, "history_": [*history, record]}
        self.__dict__.update(**fitted, _tracking=tracking, _parameters=parameters)
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

    # --- the samples, and what is proved of them ----------------------------------------------

    @property
    @_in_turn
    def kept_(self) -> NDArray[np.bool_]:
        known = self._fitted("kept_", None)
        return self._tracking.kept if known is None else known

    @property
    @_in_turn
    def undecided_(self) -> NDArray[np.bool_]:
        known = self._fitted("undecided_", None)
        return self._tracking.undecided if known is None else known

    @property
    def _data(self) -> Data:
        if "_tracking" not in vars(self):
            raise AttributeError("SafeTracker has no samples yet: call fit first.")
        return self._tracking.data

    @property
    @_in_turn
    def X_(self) -> Any:
        return self._data.design.take(self._data.order).data

    @property
    @_in_turn
    def y_(self) -> NDArray:
        return self._data.y[self._data.order]

    @property
    @_in_turn
    def sample_weight_(self) -> Array:
        return self._data.sample_weight[self._data.order]

    # --- the model ----------------------------------------------------------------------------

    coef_, intercept_ = _of_the_model("coef_"), _of_the_model("intercept_")
    classes_, dual_gap_ = _of_the_model("classes_"), _of_the_model("dual_gap_")
    n_features_in_ = _of_the_model("n_features_in_")
    feature_names_in_ = _of_the_model("feature_names_in_")

    def _fitted(self, name: str, *default: Any) -> Any:
        if "estimator_" not in vars(self):
            raise AttributeError(f"SafeTracker has no {name} yet: call fit first.")
        return getattr(self.estimator_, name, *default)

    @property
    def _known(self) -> Any:
        """The fitted estimator."""
        if "estimator_" not in vars(self):  # scikit-learn takes longer to find out
            check_is_fitted(self, "estimator_")
        return self.estimator_

    @computes
    def predict(self, X: Any) -> NDArray:
        """Classes or numbers, as the estimator predicts them.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._known.predict(X)

    @_delegates("decision_function")
    @computes
    def decision_function(self, X: Any) -> Array:
        """Scores of a classifier: positive for `classes_[1]`, or one column per class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._known.decision_function(X)

    @_delegates("predict_proba")
    @computes
    def predict_proba(self, X: Any) -> Array:
        """Probabilities, for the logistic losses.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return self._known.predict_proba(X)

    @computes
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
        return self._known.score(X, y, sample_weight)


# --- versions ---------------------------------------------------------------------------------


def _fitted(
    model: LinearModel,
    parameters: _Parameters,
    samples: Samples,
    starts: Sequence[Array] | None = None,
) -> _Version:
    """Fit all samples, and make everything that following them needs."""
    problems = model._problems(samples, parameters.loss, parameters.penalty, parameters.alpha)
    (fits,) = model._solve([problems], parameters.settings, starts)
    passes = max(fit.history[-1].passes for fit in fits)
    data = Data.of(
        samples.X, samples.y, samples.sample_weight, samples.weights, problems[0].fit_intercept
    )
    labelled = samples.classes is not None
    tracking = Tracking(data, Classes.of(samples.y, samples.sample_weight) if labelled else None)
    followed = not parameters.refusal(model)
    if followed:
        # one pass for the sums, one for the metric
        tracking, passes = tracking.following(fits), passes + 2
    attributes = model._attributes(samples, fits)
    record = {
        "local": False,
        "rows_read": round(passes * len(samples.y)),
        "passes": passes,
        "n_changed": 0,
        "n_undecided": int(attributes["undecided_"].sum()),
        "gap": float(max(fit.gap for fit in fits)),
        "relative_gap": float(max(fit.relative_gap for fit in fits)),
        "residue": 0.0,
        "rebuilt": followed,
    }
    return _Version(model._fitted_with(attributes), tracking, record, missed(fits))


def _followed(model: LinearModel, tracked: Tracked) -> _Version:
    """The model where its followers have gone."""
    tracking, gaps, rows_read = tracked.tracking, tracked.gaps, tracked.n_read
    n_rows = tracking.data.n_samples * len(gaps)
    record = {
        "local": rows_read < n_rows,
        "rows_read": rows_read,
        "passes": rows_read / n_rows,
        "n_changed": tracked.n_changed,
        "n_undecided": len(tracking.undecided_slots),
        "gap": float(gaps.max()),
        "relative_gap": tracked.relative_gap,
        "residue": tracked.residue,
        "rebuilt": tracked.rebuilt,
    }
    return _Version(model._fitted_with(_attributes(model, tracked)), tracking, record)


def _attributes(model: LinearModel, tracked: Tracked) -> dict[str, Any]:
    """Coefficients and gaps in the shape that the estimator has them."""
    points, gaps, p = tracked.points, tracked.gaps, model.n_features_in_
    coefs = points[:, :p]
    intercepts = points[:, p] if model.fit_intercept else np.zeros(len(points))
    gap = float(gaps[0]) if len(gaps) == 1 else gaps
    if model._task == "regression":
        return {"coef_": coefs[0], "intercept_": float(intercepts[0]), "dual_gap_": gap}
    return {"classes_": model.classes_, "coef_": coefs, "intercept_": intercepts, "dual_gap_": gap}


def _samples(model: LinearModel, data: Data) -> Samples:
    """All samples, in their order."""
    X, y = data.design.take(data.order).data, data.y[data.order]
    return model._samples(X, y, data.sample_weight[data.order])
