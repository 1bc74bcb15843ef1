"""The estimators that choose their alpha by cross-validation, all folds along one path.

A fold is the full problem with weight 0 for its held-out rows, divided by its own total weight, so
that all folds share one design and the passes over it.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import get_scorer
from sklearn.model_selection import LeaveOneOut, check_cv
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_method_params

from safesift.arithmetic.threads import computes
from safesift.design.device import Placed
from safesift.estimators.block_choice import choose_on_blocks, rows_to_choose_on
from safesift.estimators.classifier import Classification, best_of
from safesift.estimators.exact_choice import (
    certified_alpha,
    check_leaving_out,
    predictions_without,
    refuse_on_device,
    score_without,
)
from safesift.estimators.folds import (
    Fold,
    HeldOut,
    checked_folds,
    in_groups,
    mean_score,
    on_fold,
    searched,
    warn_of_edge,
)
from safesift.estimators.following import whole
from safesift.estimators.linear import LinearModel, Samples
from safesift.estimators.regressor import Regression
from safesift.grids import Grid, Walk, check_eps, check_levels
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.problem import Problem
from safesift.problem.training import Training
from safesift.regions import Region
from safesift.solvers.records import Fit, Settings, missed

Array = NDArray[np.float64]


class CrossValidated(LinearModel):
    """What the two cross-validated estimators share."""

    if TYPE_CHECKING:
        # parameters of the subclasses
        alphas: int | str | ArrayLike
        eps: float | None
        cv: Any
        scoring: Any

        # what a fit learns
        alpha_: float

    @whole
    @computes
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, target: Any = None, **params: Any
    ) -> Self:
        """Choose alpha by cross-validation, and fit the model on all samples with it.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            float32 and float64 are used as they are. Or rows in blocks, made by
            `safesift.blocks`, which have their targets and weights with them, or of dask.
        y : array of shape (n_samples,)
            None with blocks.
        sample_weight : array of shape (n_samples,), optional
            Weighs losses and scores. Weight 0 is exactly removal, weight 2 exactly repetition
            within a fold.
        target : str, optional
            The column of targets, where X is a dask frame, in place of y.
        **params : dict
            For the splitter, such as groups, and for the scorer; with metadata routing enabled.

        Returns
        -------
        self
        """
        _raise_for_params(params, self, "fit")
        settings, loss = self._checked_settings(), self._checked_loss()
        penalty = self._checked_penalty()
        source = rows_to_choose_on(self, X, y, sample_weight, target, params)
        if source is not None:
            choose_on_blocks(self, source, settings, loss, penalty)
            return self
        samples = self._read(X, y, sample_weight)
        routed = self._routed("fit", sample_weight, params)
        full = self._problems(samples, loss, penalty, alpha=1.0)
        if full[0].design.remote:
            refuse_on_device(self._leaves_one_out or self._certifies, self.scoring)
        if self._certifies:
            return self._fit_certified(full, samples, settings, self._folds(samples, routed))
        grid, folds = self._grid(full), self._folds(samples, routed)
        if self._leaves_one_out:
            check_leaving_out(full[0], samples)
        held_out = [HeldOut.of(full[0].design, *self._asked(samples, fold.test)) for fold in folds]
        on_folds = [] if self._leaves_one_out else folds
        problems = [*full, *(problem for fold in on_folds for problem in on_fold(full, fold))]
        levels = [[problem.at_level(alpha) for problem in problems] for alpha in grid.levels]
        # of a fold nothing is needed but its predictions
        settings = replace(settings, decided=tuple(range(len(full))))

        def scored(fits: Sequence[Fit]) -> list[float]:
            if self._leaves_one_out:
                return [self._score_without(samples, held_out[0], fits, settings.max_iter)]
            of_folds = zip(folds, held_out, in_groups(fits[len(full) :], len(full)), strict=True)
            return [self._fold_score(samples, *of_fold, routed) for of_fold in of_folds]

        walk = Walk(grid, full)
        found = searched(self._solve(levels, settings), walk, len(full), scored, folds)
        places, means = grid.as_asked(walk.n_seen), [mean_score(one, folds) for one in found.scores]
        path = {
            "alpha_": float(grid.levels[walk.best]),
            "alphas_": grid.levels[places],
            "scores_": np.array(found.scores).T[:, places],
            "mean_score_path_": np.array(means)[places],
        }
        self._publish(path | self._attributes(samples, found.best), found.best)
        self._warn(settings, found.missed, len(problems) * walk.n_seen)
        if not (found.missed and walk.blocked):
            warn_of_edge(self, walk, full[0])
        return self

    def _grid(self, full: Sequence[Problem]) -> Grid:
        """The alphas; of several classes, the grid that begins where all are constant."""
        check_eps(self.eps, alphas_given=not isinstance(self.alphas, Integral))
        if not isinstance(self.alphas, Integral):
            return Grid.given(check_levels(self.alphas), full[0])
        return Grid.of(full, operator.index(self.alphas), self.eps)

    @property
    def _leaves_one_out(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "loo"

    @property
    def _certifies(self) -> bool:
        if not isinstance(self.alphas, str):
            return False
        if self.alphas != "certified":
            raise ValueError(f"alphas must be numbers, or 'certified', got {self.alphas!r}.")
        if self._leaves_one_out or self.scoring is not None or self.eps is not None:
            raise ValueError("alphas='certified' goes with folds, scoring=None and eps=None only.")
        return True

    def _fit_certified(
        self, full: Sequence[Problem], samples: Samples, settings: Settings, folds: Sequence[Fold]
    ) -> Self:
        """The best alpha of an interval, with its proof."""
        training = Training(self.loss, self.penalty, 1.0, self.l1_ratio, bool(self.fit_intercept))
        found = certified_alpha(full, samples, folds, training)
        ((*fits,),) = self._solve([[one.at_level(found.alpha) for one in full]], settings)
        path = {
            "alpha_": found.alpha,
            "alphas_": found.trials[::-1, 0].copy(),
            "scores_": 1.0 - found.trials[None, ::-1, 1],
            "mean_score_path_": 1.0 - found.trials[::-1, 1],
            "certificate_": found,
        }
        self._publish(path | self._attributes(samples, fits), fits)
        self._warn(settings, missed(fits), len(fits))
        return self

    def _score_without(
        self, samples: Samples, held_out: HeldOut, fits: Sequence[Fit], max_iter: int
    ) -> float:
        """The score of every sample's prediction by the model without it."""
        pred = predictions_without(fits, max_iter)
        if self.scoring is not None:
            return score_without(pred, samples, self.scoring)
        return self._default_score(held_out, pred)

    def _folds(self, samples: Samples, routed: Bunch) -> list[Fold]:
        if self._leaves_one_out:
            everything = np.arange(len(samples.y))
            return [Fold(everything, everything, float(samples.sample_weight.sum()))]
        cv = check_cv(self.cv, samples.y, classifier=self._task == "classification")
        # blocks on a device have no rows that a splitter could look at
        X = samples.y if isinstance(samples.X, Placed) else samples.X
        splits = cv.split(X, samples.y, **routed.splitter.split)
        return checked_folds(splits, samples.weights, samples.sample_weight)

    # --- scores -----------------------------------------------------------------------------

    @computes
    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """Score with `scoring`: accuracy or R² by default.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        **params : dict
            For the scorer; with metadata routing enabled.

        Returns
        -------
        float
        """
        _raise_for_params(params, self, "score")
        if self.scoring is None:
            return super().score(X, y, sample_weight)
        routed = self._routed("score", sample_weight, params)
        return get_scorer(self.scoring)(self, X, y, **routed.scorer.score)

    def _asked(self, samples: Samples, rows: NDArray[np.intp]) -> tuple[NDArray, ...]:
        return rows, self._targets(samples, rows), samples.sample_weight[rows]

    def _fold_score(
        self, samples: Samples, fold: Fold, held_out: HeldOut, fits: Sequence[Fit], routed: Bunch
    ) -> float:
        """The score of one fold's models on its held-out rows; 0 where these have no weight."""
        if fold.weight == 0:
            return 0.0
        if self.scoring is None:
            # the held-out rows have weight 0, but their predictions were made all the same
            pred = np.column_stack([fit.at.pred[held_out.rows] for fit in fits])
            return self._default_score(held_out, pred)
        model = self._fitted_from(samples, fits)
        params = _check_method_params(samples.X, routed.scorer.score, indices=fold.test)
        return get_scorer(self.scoring)(model, samples.X[fold.test], samples.y[fold.test], **params)

    @abstractmethod
    def _targets(self, samples: Samples, rows: NDArray[np.intp]) -> NDArray:
        """What some samples ask of their predictions, in numbers."""

    @abstractmethod
    def _default_score(self, held_out: HeldOut, pred: Array) -> float:
        """Of predictions, one column per problem; scikit-learn's own functions are far slower."""

    # --- metadata ---------------------------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Where the parameters of `fit` and `score` go: here, to the splitter, to the scorer."""
        split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        splitter = LeaveOneOut() if self._leaves_one_out else check_cv(self.cv)
        router.add(splitter=splitter, method_mapping=split)
        if self.scoring is not None:
            score = MethodMapping().add(caller="score", callee="score")
            score.add(caller="fit", callee="score")
            router.add(scorer=get_scorer(self.scoring), method_mapping=score)
        return router

    def _routed(self, method: str, sample_weight: Any, params: Mapping[str, Any]) -> Bunch:
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            return process_routing(self, method, **given, **params)
        return Bunch(splitter=Bunch(split={}), scorer=Bunch(score=given))


class SafeClassifierCV(CrossValidated, Classification):
    """`SafeClassifier` with alpha chosen by cross-validation.

    All folds and the full data are solved along one path of alphas, in shared passes over the
    data, each from the solution for the alpha before; every point is certified.

    Parameters
    ----------
    alphas : int, array or "certified", default=20
        The alphas to choose from; "certified": all of six decades, with a proof that none is
        better (`certify_alpha`); or how many there are to four decades (with `eps`, in all):
        evenly spaced in their logarithms, from `safesift.grids.alpha_max`, where the model is
        nearly or exactly constant, down to where every column that explains something has its say
        and the score was no better for two decades, or the objective no longer moves; at most 20
        decades. A multiple of X has the same models. For a ball, its radii instead.
    eps : float, optional
        The smallest alpha over the largest one, where that is not for the data to say.
    cv : int, splitter or iterable, default=5
        As in scikit-learn: an integer means stratified folds, without shuffling. "loo": every
        sample by the model without it, exactly, from the models of all (`leave_one_out`). Rows in
        blocks have such folds only, and an integer for `alphas` is then how many there are, to a
        sample's `alpha_max` times `eps` (1e-4 by default).
    scoring : str, callable or None, default=None
        What to maximise, by default the accuracy. Scores are averaged over the folds with the
        weights of their held-out samples. Of equal scores the largest alpha wins.
    loss, penalty, l1_ratio, fit_intercept, tol, max_iter, class_weight, screening, solver, \
device, precision, n_jobs, random_state, verbose
        As in `SafeClassifier`.

    Attributes
    ----------
    alpha_ : float
        The best alpha, or radius.
    alphas_ : array of shape (n_alphas,)
        As given; by default alphas falling, radii growing.
    scores_ : array of shape (n_folds, n_alphas)
    mean_score_path_ : array of shape (n_alphas,)
    certificate_ : CertifiedAlpha
        With alphas="certified" only; `scores_` has one row then, 1 less the error.
    coef_, intercept_, classes_, dual_gap_, n_iter_, kept_, kept_per_class_, undecided_, history_
        Of the model fitted on all samples with `alpha_`, as in `SafeClassifier`.

    Examples
    --------
    >>> import safesift as ss
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ss.SafeClassifierCV(alphas=5, cv=3).fit(scale(X), y)
    >>> model.scores_.shape == (3, len(model.alphas_)), bool(model.mean_score_path_.max() > 0.95)
    (True, True)
    """

    _remote = True

    def __init__(
        self,
        alphas: int | str | ArrayLike = 20,
        *,
        eps: float | None = None,
        cv: Any = 5,
        scoring: Any = None,
        loss: str | Loss = "squared_hinge",
        penalty: str | Penalty = "l2",
        l1_ratio: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Mapping | str | None = None,
        screening: str | Region | None = "auto",
        solver: str = "auto",
        device: str | None = None,
        precision: str = "float64",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.screening = screening
        self.solver = solver
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _targets(self, samples: Samples, rows: NDArray[np.intp]) -> NDArray:
        classes, y = samples.known_classes, samples.y[rows]
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        # a label that only samples of weight 0 have is never right
        return np.where(classes[codes] == y, codes, -1)

    def _default_score(self, held_out: HeldOut, pred: Array) -> float:
        _, codes, weights = held_out
        right = best_of(pred[:, 0] if pred.shape[1] == 1 else pred) == codes
        return float((right * weights).sum() / weights.sum())


class SafeRegressorCV(CrossValidated, Regression):
    """`SafeRegressor` with alpha chosen by cross-validation.

    All folds and the full data are solved along one path of alphas, in shared passes over the
    data, each from the solution for the alpha before; every point is certified.

    Parameters
    ----------
    alphas : int, array or "certified", default=20
        The alphas to choose from; "certified": all of six decades, with a proof that none is
        better (`certify_alpha`); or how many there are to four decades (with `eps`, in all):
        evenly spaced in their logarithms, from `safesift.grids.alpha_max`, where the model is
        nearly or exactly constant, down to where every column that explains something has its say
        and the score was no better for two decades, or the objective no longer moves; at most 20
        decades. A multiple of X has the same models. For a ball, its radii instead.
    eps : float, optional
        The smallest alpha over the largest one, where that is not for the data to say.
    cv : int, splitter or iterable, default=5
        As in scikit-learn: an integer means consecutive folds, without shuffling. "loo": every
        sample by the model without it, exactly, from the models of all (`leave_one_out`). Rows in
        blocks have such folds only, and an integer for `alphas` is then how many there are, to a
        sample's `alpha_max` times `eps` (1e-4 by default).
    scoring : str, callable or None, default=None
        What to maximise, by default R². Scores are averaged over the folds with the weights of
        their held-out samples. Of equal scores the largest alpha wins.
    loss, epsilon, penalty, l1_ratio, fit_intercept, tol, max_iter, screening, solver, device, \
precision, n_jobs, random_state, verbose
        As in `SafeRegressor`.

    Attributes
    ----------
    alpha_ : float
        The best alpha, or radius.
    alphas_ : array of shape (n_alphas,)
        As given; by default alphas falling, radii growing.
    scores_ : array of shape (n_folds, n_alphas)
    mean_score_path_ : array of shape (n_alphas,)
    certificate_ : CertifiedAlpha
        With alphas="certified" only; `scores_` has one row then, 1 less the error.
    coef_, intercept_, dual_gap_, n_iter_, kept_, undecided_, history_
        Of the model fitted on all samples with `alpha_`, as in `SafeRegressor`.

    Examples
    --------
    >>> import safesift as ss
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ss.SafeRegressorCV(alphas=5, cv=3, penalty="l1", epsilon=20.0).fit(X, y)
    >>> bool(model.mean_score_path_.max() > 0.4)
    True
    """

    _remote = True

    def __init__(
        self,
        alphas: int | str | ArrayLike = 20,
        *,
        eps: float | None = None,
        cv: Any = 5,
        scoring: Any = None,
        loss: str | Loss = "squared_epsilon_insensitive",
        epsilon: ArrayLike = 0.1,
        penalty: str | Penalty = "l2",
        l1_ratio: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        screening: str | Region | None = "auto",
        solver: str = "auto",
        device: str | None = None,
        precision: str = "float64",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.epsilon = epsilon
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.screening = screening
        self.solver = solver
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _targets(self, samples: Samples, rows: NDArray[np.intp]) -> NDArray:
        return samples.y[rows]

    def _default_score(self, held_out: HeldOut, pred: Array) -> float:
        _, y, weights = held_out
        mean = float((y * weights).sum() / weights.sum())
        spread = float(weights @ (y - mean) ** 2)
        rest = float(weights @ (y - pred[:, 0]) ** 2)
        # of a constant y scikit-learn's convention
        return 1.0 - rest / spread if spread > 0 else float(rest == 0)
