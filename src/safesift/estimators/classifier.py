"""Linear classification, certified, one class against the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from safesift.arithmetic.devices.arrays import DeviceArray, on_host
from safesift.arithmetic.threads import computes
from safesift.estimators.conditional import available_if
from safesift.estimators.linear import LinearModel, Samples, records, returned_for
from safesift.losses import LOSSES, Logistic, Loss, SafeLogistic
from safesift.penalties import Penalty
from safesift.problem.inputs import check_weights
from safesift.regions import Region
from safesift.solvers.records import Fit
from safesift.workflows.scale.solve import Solution

Array = NDArray[np.float64]


def _gives_probabilities(estimator: Classification) -> None:
    """Asked by `hasattr` at any time, so an unknown loss is no other error here."""
    named = LOSSES.get(estimator.loss) if isinstance(estimator.loss, str) else type(estimator.loss)
    if named not in (Logistic, SafeLogistic):
        raise AttributeError(
            f"{type(estimator).__name__} has no predict_proba with loss={estimator.loss!r}, which "
            "gives no probabilities: use loss='logistic' or loss='safe_logistic'."
        )


class Classification(ClassifierMixin, LinearModel):
    """What the classifiers share."""

    _task = "classification"

    if TYPE_CHECKING:
        # a parameter of the subclasses, and what a fit learns
        class_weight: Mapping | str | None
        classes_: NDArray

    # --- fitting ----------------------------------------------------------------------------

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        X, y, sample_weight = self._moved(X, y, sample_weight)
        X, y = self._validated(X, y, reset=True)
        check_classification_targets(y)
        samples = self._samples(X, y, check_weights(sample_weight, len(y)))
        classes = samples.known_classes
        if len(classes) == 1:
            raise ValueError(
                f"y has one class only ({classes[0]!r}, among samples of positive weight): "
                f"{type(self).__name__} needs two."
            )
        return samples

    def _samples(self, X: Any, y: NDArray, weights: Array) -> Samples:
        """Validated arrays, with classes and their weights."""
        classes = np.unique(y[weights > 0])
        if self.class_weight is None:
            return Samples(X, y, weights, weights, classes)
        factors = self._class_weights(y, weights, classes)
        return Samples(X, y, weights, check_weights(weights * factors, len(y)), classes)

    def _class_weights(self, y: NDArray, weights: Array, classes: NDArray) -> Array:
        """For every sample the weight of its class; "balanced" gives all the same total."""
        # a label that only samples of weight 0 have may get any number
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            totals = np.bincount(codes, weights, minlength=len(classes))
            return (totals.sum() / (len(classes) * totals))[codes]
        if not isinstance(self.class_weight, Mapping):
            raise ValueError(
                f"class_weight must be None, 'balanced' or a dict, got {self.class_weight!r}."
            )
        given = compute_class_weight(self.class_weight, classes=classes, y=y[weights > 0])
        return given[codes]

    def _attributes(self, samples: Samples, fits: Sequence[Fit]) -> dict[str, Any]:
        kept = np.column_stack([fit.kept for fit in fits])
        gaps = np.array([fit.gap for fit in fits])
        histories = [records(fit) for fit in fits]
        binary = len(fits) == 1
        return {
            "classes_": samples.classes,
            "coef_": np.stack([fit.coef for fit in fits]),
            "intercept_": np.array([fit.intercept for fit in fits]),
            "dual_gap_": float(gaps[0]) if binary else gaps,
            "n_iter_": max(fit.n_iter for fit in fits),
            "kept_": kept.any(axis=1),
            "kept_per_class_": kept,
            "undecided_": np.any([fit.undecided for fit in fits], axis=0),
            "history_": histories[0] if binary else histories,
        }

    def _block_weights(self, classes: NDArray, totals: Array) -> Array | None:
        if self.class_weight is None:
            return None
        return self._class_weights(classes, totals, classes)

    def _block_attributes(self, solution: Solution) -> dict[str, Any]:
        fits = [fits[0] for fits in solution.fits]
        gaps, binary = np.array([fit.gap for fit in fits]), len(fits) == 1
        histories = [[asdict(record) for record in fit.history] for fit in fits]
        return {
            "classes_": solution.classes,
            "coef_": np.stack([fit.coef for fit in fits]),
            "intercept_": np.array([fit.intercept for fit in fits]),
            "dual_gap_": float(gaps[0]) if binary else gaps,
            "n_iter_": max(len(fit.history) for fit in fits),
            "kept_": solution.kept,
            "kept_per_class_": tuple(fit.kept for fit in fits),
            "undecided_": solution.undecided,
            "history_": histories[0] if binary else histories,
            "scaling_": solution.reading.scaling,
        }

    # --- using ------------------------------------------------------------------------------

    @computes
    def decision_function(self, X: Any) -> Array:
        """Signed scores: positive for `classes_[1]`, or one column per class.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        return returned_for(X, self._scores(X))

    def _scores(self, X: Any) -> Array:
        scores = self._predictions(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @computes
    def predict(self, X: Any) -> NDArray:
        """The class of the largest score.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return returned_for(X, labels(self._scores(X), self.classes_))

    @available_if(_gives_probabilities)
    @computes
    def predict_proba(self, X: Any) -> Array:
        """Probabilities, by the link that makes the loss proper: η(t) = f'(−t)/(f'(t) + f'(−t)).

        For the logistic loss that is 1/(1 + e^{−t}). Where both slopes of the safe logistic loss
        vanish it is ½. With more than two classes the probabilities of each against the rest are
        divided by their sum; where all are 0 they are uniform.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return returned_for(X, self._probabilities(X))

    def _probabilities(self, X: Any) -> Array:
        eta = self._link(self._predictions(X))
        if eta.shape[1] == 1:
            return np.hstack([1.0 - eta, eta])
        sums = eta.sum(axis=1, keepdims=True)
        uniform = np.full_like(eta, 1.0 / eta.shape[1])
        return np.divide(eta, sums, out=uniform, where=sums > 0)

    @available_if(_gives_probabilities)
    @computes
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities; −inf where one is 0.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return returned_for(X, np.log(self._probabilities(X)))

    def _link(self, scores: Array) -> Array:
        loss = self._checked_loss()
        ahead, behind = -loss.slope(scores, 1.0), -loss.slope(-scores, 1.0)
        both = ahead + behind
        return np.divide(behind, both, out=np.full_like(scores, 0.5), where=both > 0)


def best_of(scores: Array) -> NDArray[np.intp]:
    """Which class has the largest score, by its number."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


def labels(scores: Array, classes: NDArray) -> NDArray:
    """The classes of decision values, where those are; labels that are no numbers are here."""
    best = best_of(scores)
    if isinstance(best, DeviceArray):
        if classes.dtype.kind in "biuf":
            return DeviceArray(best.place.moved(classes), best.place)[best].array
        best = on_host(best)
    return classes[best]


class SafeClassifier(Classification):
    """Linear classification with a certified duality gap: support vector machines and relatives.

    Minimises (1/W) Σ s_i f(y_i(a_iᵀx + c)) + alpha·R(x), W = Σ s_i, with y_i = ±1; more than two
    classes are separated one against the rest, in shared passes over the data. The intercept c is
    not penalised. Samples that are proved to be on one piece of their loss at every optimum are
    left out or folded away as the solver goes; the gap is measured on all samples.

    Parameters
    ----------
    loss : str or Loss, default="squared_hinge"
        "squared_hinge" (½[1 − m]₊²), "hinge" ([1 − m]₊), "smoothed_hinge", "logistic",
        "safe_logistic", or an object of `safesift.losses` with its parameters.
    penalty : str or Penalty, default="l2"
        "l2" (½‖x‖₂²), "l1", "elastic_net", "l2_ball", "l1_ball", or an object such as
        ``safesift.penalties.L2Ball(radius=2.0)``.
    alpha : float, default=1e-4
        Weight of the penalty, next to the mean loss; of no effect on a ball. LinearSVC's C is
        1/(2·W·alpha) for the squared hinge and 1/(W·alpha) for the hinge.
    l1_ratio : float in [0, 1), optional
        Share of the l1 norm in penalty="elastic_net", 0.5 by default; None with any other.
    fit_intercept : bool, default=True
    tol : float, default=1e-6
        Relative duality gap to reach: relative to the objective of the best constant model.
    max_iter : int, default=1000
        The largest number of steps, for each class.
    class_weight : dict, "balanced" or None, default=None
        Multiplies the weights of the samples of a class, in the problems of all classes.
        "balanced" gives all classes the same total.
    screening : "auto", None, str or Region, default="auto"
        "auto": whatever is fastest; a region, by name or as an object: rows are left out where it
        decides them; None: every step reads every row. The solution is the same.
    solver : str, default="auto"
        A name of `safesift.solvers.SOLVERS`, or "auto": the one that is estimated to be the
        fastest. One that does not suit the problem is refused with the reason.
    warm_start : bool, default=False
        Start from the last solution, as in a loop over alphas.
    device : str, optional
        Where to compute, as "cuda": rows are moved there, as a whole if they fit, else block by
        block. By default where they are: arrays of torch and CuPy stay on their device.
    precision : "float64" or "float32", default="float64"
        Of the products of Gram matrices on a device: "float32" is faster on most cards. Gaps are
        measured in float64 all the same; near kinks fewer rows may be decided.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
        For the solvers that draw random numbers.
    verbose : int, default=0
        1 prints a line per check, 2 one per step as well.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
        Those with a sample of positive weight.
    dual_gap_ : float, or array of shape (n_classes,)
        Certified: the objective is at most that far above its minimum, measured on all samples.
    n_iter_ : int
        Steps of the solver, the most of any class.
    kept_ : array of shape (n_samples,)
        False where the sample is proved to have no influence: without it the model is the same.
    kept_per_class_ : array of shape (n_samples, 1) or (n_samples, n_classes)
        The same for each row of `coef_`.
    undecided_ : array of shape (n_samples,)
        True where it is not proved, for some class, on which piece of its loss the sample lies.
    history_ : list of dict, or a list of such lists, one per class
        How things stood each time the gap was measured on all samples: `passes` over the data,
        `seconds`, `gap`, `relative_gap`, `n_kept`, `n_undecided`, and `n_features`, how many are
        not proved to be zero.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only where X has feature names that are strings.

    Examples
    --------
    >>> import safesift as ss
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ss.SafeClassifier(alpha=1e-3).fit(X, y)
    >>> model.coef_.shape, model.kept_per_class_.shape
    ((3, 4), (150, 3))
    >>> bool(model.score(X, y) > 0.9), bool(model.dual_gap_.max() < 1e-6)
    (True, True)
    """

    _remote = True

    def __init__(
        self,
        loss: str | Loss = "squared_hinge",
        *,
        penalty: str | Penalty = "l2",
        alpha: float = 1e-4,
        l1_ratio: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Mapping | str | None = None,
        screening: str | Region | None = "auto",
        solver: str = "auto",
        warm_start: bool = False,
        device: str | None = None,
        precision: str = "float64",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.screening = screening
        self.solver = solver
        self.warm_start = warm_start
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
