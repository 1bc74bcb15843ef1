"""How good the model is when a part of the samples is deleted, method by method.

What the repeats of an experiment share: splits into training and test rows, and threads.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.arithmetic.threads import computes, each
from safesift.estimators.models import MODELS
from safesift.losses import LOSSES, Loss
from safesift.parameters import check_count
from safesift.penalties import Penalty
from safesift.problem.inputs import check_labels, vector
from safesift.problem.training import Training
from safesift.regions import Region
from safesift.registry import provided, resolve
from safesift.workflows.compression.compressing import Choice, Compressed
from safesift.workflows.compression.examined import Examined, examine
from safesift.workflows.compression.ranking import generator, method_named, seed_of
from safesift.workflows.showing import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


_TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on, and samples to test on."""

    train: NDArray[np.intp]
    X_test: Any
    y_test: Any


def _done(function: Callable, tasks: Sequence[tuple], stage: str, verbose: int) -> list[Any]:
    """What a function makes of many arguments, several at a time; and how far it is."""
    results, total = [], len(tasks)
    for done, result in enumerate(each(lambda task: function(*task), tasks), start=1):
        progress.report(stage, done, total)
        if verbose and (done % max(total // 10, 1) == 0 or done == total):
            print(f"{stage}: {done} of {total}")
        results.append(result)
    return results


def splits_of(
    X: Any, y: Any, test: Any, n_repeats: int, task: str, rng: np.random.Generator
) -> list[Split]:
    """Test data of each repeat: its own fifth of the samples, or what is given."""
    from sklearn.model_selection import train_test_split
    from sklearn.utils import _safe_indexing, check_consistent_length

    check_consistent_length(X, y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if test is not None:
        X_test, y_test = test
        return [Split(np.arange(n), X_test, y_test)] * n_repeats
    by = _labels(y) if task == "classification" else None
    splits = []
    for _ in range(n_repeats):
        train, tested = train_test_split(
            np.arange(n), test_size=_TEST_SHARE, stratify=by, random_state=seed_of(rng)
        )
        splits.append(Split(train, _safe_indexing(X, tested), _safe_indexing(y, tested)))
    return splits


def _labels(y: Any) -> NDArray:
    labels = vector("y", y)
    check_labels(labels)
    return labels


FRACTIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True, eq=False, repr=False)
class CompressionCurve(Shown):
    """Scores on test data against the fraction of the training samples that is deleted.

    Attributes
    ----------
    fractions : array of shape (n_fractions,)
        Deleted fractions, as given.
    n_kept : array of shape (n_fractions,)
        Training samples that are left.
    methods : tuple of str
    scores : array of shape (n_methods, n_fractions, n_repeats)
        NaN where no model could be fitted.
    full : array of shape (n_repeats,)
        Scores of the model of all training samples.
    metric : str
        What the scores are: "accuracy", "R²", or the name of the scorer.
    training : Training
        The model.
    mean, standard_error : arrays of shape (n_methods, n_fractions)
        Over the repeats.
    """

    fractions: Array
    n_kept: NDArray[np.intp]
    methods: tuple[str, ...]
    scores: Array
    full: Array
    metric: str
    training: Training

    @property
    def mean(self) -> Array:
        return self.scores.mean(axis=-1)

    @property
    def standard_error(self) -> Array:
        n = self.scores.shape[-1]
        return self.scores.std(axis=-1, ddof=1) / math.sqrt(n) if n > 1 else 0.0 * self.mean

    def of(self, method: str) -> Array:
        """The mean scores of one method."""
        if method not in self.methods:
            raise ValueError(f"method={method!r} is not among {', '.join(self.methods)}.")
        return self.mean[self.methods.index(method)]

    def summary(self) -> str:
        """The mean scores of every method at the largest deleted fractions."""
        shown = slice(max(len(self.fractions) - 4, 0), None)
        deleted = "  ".join(f"{fraction:7.1%}" for fraction in self.fractions[shown])
        lines = [
            f"{self.metric} of {self.training}",
            f"  {'deleted':<12}{deleted}",
        ]
        for method, scores in zip(self.methods, self.mean, strict=True):
            lines.append(f"  {method:<12}" + "  ".join(f"{score:7.4f}" for score in scores[shown]))
        return "\n".join([*lines, f"  of all training samples: {self.full.mean():.4f}"])

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the scores with their standard errors against the deleted fraction.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        return provided("plot_compression")(self, axes)


@dataclass(frozen=True)
class _Plan:
    """What every repeat does."""

    model: Training
    methods: tuple[str, ...]
    counts: tuple[int, ...]
    screening: Region | str
    scoring: Any

    def estimator(self, alpha: float) -> Any:
        model = self.model
        task = resolve("loss", model.loss, LOSSES, Loss).task
        return MODELS[task](
            loss=model.loss,
            penalty=model.penalty,
            alpha=alpha,
            l1_ratio=model.l1_ratio,
            fit_intercept=model.fit_intercept,
        )


@computes
def compression_curve(
    X: Any,
    y: Any,
    *,
    fractions: Sequence[float] = FRACTIONS,
    methods: Sequence[str] = ("hybrid", "screening", "random"),
    n_repeats: int = 5,
    test: tuple[Any, Any] | None = None,
    scoring: Any = None,
    loss: str | Loss = "squared_hinge",
    penalty: str | Penalty = "l2",
    alpha: float = 1e-4,
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    screening: str | Region = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> CompressionCurve:
    """Fit models to compressed data and score them on test data, for several methods.

    Every repeat draws its own fifth of the samples to test on, the same for all methods, ranks the
    others, deletes a fraction of them by `compress` and fits the model to what is left, with the
    weights and the alpha that `compress` gives.

    Parameters
    ----------
    X, y, loss, penalty, alpha, l1_ratio, fit_intercept, screening
        As in `rank_samples`.
    fractions : sequence of float, default=(0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99)
        Which fractions of the training samples to delete, in [0, 1).
    methods : sequence of str, default=("hybrid", "screening", "random")
        Methods of `rank_samples`.
    n_repeats : int, default=5
    test : (X_test, y_test), optional
        Test data, in place of splits: all of X is trained on, and the repeats differ in
        `random_state` only.
    scoring : str or callable, optional
        A scorer of scikit-learn, such as "neg_mean_squared_error"; by default the estimator's own:
        accuracy for classification, R² for regression.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1 prints a line for every tenth of the models.

    Returns
    -------
    CompressionCurve

    Examples
    --------
    >>> import safesift as ss
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(1000, 10, flip_y=0.1, random_state=0)
    >>> curve = ss.compression_curve(X, y, alpha=1e-3, fractions=[0.5, 0.9], n_repeats=3,
    ...                              random_state=0)
    >>> curve.mean.shape, curve.metric
    ((3, 2), 'accuracy')
    >>> bool(curve.of("hybrid")[1] > curve.of("screening")[1])
    True
    """
    deleted = _check_fractions(fractions)
    for method in methods:
        method_named(method)
    rng = generator(random_state)
    task = resolve("loss", loss, LOSSES, Loss).task
    splits = splits_of(X, y, test, check_count("n_repeats", n_repeats), task, rng)
    n_train = len(splits[0].train)
    counts = np.maximum(np.round((1.0 - deleted) * n_train).astype(int), 1)
    model = Training(loss, penalty, alpha, l1_ratio, fit_intercept)
    plan = _Plan(model, tuple(methods), tuple(counts), screening, scoring)
    seeds = [seed_of(rng) for _ in splits]
    full, scores = _scores(plan, X, y, splits, seeds, verbose)
    return CompressionCurve(
        deleted, counts, plan.methods, scores, full, _metric(scoring, task), model
    )


def _scores(
    plan: _Plan, X: Any, y: Any, splits: list[Split], seeds: list[int], verbose: int
) -> tuple[Array, Array]:
    """Of all rows, for every split; and for methods × counts × splits."""
    from sklearn.exceptions import ConvergenceWarning

    pairs = zip(splits, seeds, strict=True)
    choices = _done(_choices, [(plan, X, y, *pair) for pair in pairs], "ranking", verbose)
    tasks = [
        (plan, X, y, split, small)
        for split, smalls in zip(splits, choices, strict=True)
        for small in smalls
    ]
    with warnings.catch_warnings():
        # each is one of many models, and nothing that the user could do about it
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = _done(_score, tasks, "fitting", verbose)
    found = np.array(scores).reshape(len(splits), -1)
    shape = len(plan.methods), len(plan.counts), len(splits)
    return found[:, 0], found[:, 1:].T.reshape(shape)


def _choices(plan: _Plan, X: Any, y: Any, split: Split, seed: int) -> list[Compressed | None]:
    """All rows first, then for every method and count the rows to fit to."""
    from sklearn.utils import _safe_indexing

    rows = _safe_indexing(X, split.train), _safe_indexing(y, split.train)
    samples = examine(*rows, plan.model, None, plan.screening, seed)
    n = len(samples.weights)
    everything = Compressed(np.arange(n), None, plan.model.alpha, True, "all", n, plan.model)
    return [
        everything,
        *(_made(samples, method, count, seed) for method in plan.methods for count in plan.counts),
    ]


def _made(samples: Examined, method: str, count: int, seed: int) -> Compressed | None:
    """None where there are fewer rows than classes."""
    if samples.classes is not None and count < len(samples.classes):
        return None
    return Choice(method).made(samples, int(count), np.random.default_rng(seed))


def _score(plan: _Plan, X: Any, y: Any, split: Split, small: Compressed | None) -> float:
    """The score on the test data of the model of some of the training rows."""
    from sklearn.metrics import check_scoring
    from sklearn.utils import _safe_indexing

    if small is None:
        return math.nan
    rows = split.train[small.indices]
    estimator = plan.estimator(small.alpha)
    scorer = check_scoring(estimator, plan.scoring)
    estimator.fit(_safe_indexing(X, rows), _safe_indexing(y, rows), small.weights)
    return float(scorer(estimator, split.X_test, split.y_test))


def _check_fractions(fractions: Any) -> Array:
    try:
        deleted = np.array(fractions, dtype=np.float64)
    except (TypeError, ValueError):
        deleted = np.empty(0)
    if deleted.ndim != 1 or not deleted.size or not ((deleted >= 0) & (deleted < 1)).all():
        raise ValueError(
            f"fractions must be a list of fractions to delete, in [0, 1), got {fractions!r}."
        )
    return deleted


def _metric(scoring: Any, task: str) -> str:
    if scoring is not None:
        return scoring if isinstance(scoring, str) else "score"
    return "accuracy" if task == "classification" else "R²"
