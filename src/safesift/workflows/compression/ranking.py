"""Samples in the order in which to keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.regions import Region
from safesift.workflows.compression.choosing import ordered
from safesift.workflows.compression.examined import Examined, Model, examine
from safesift.workflows.compression.methods import method_named

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Samples in the order in which to keep them.

    Attributes
    ----------
    order : array of shape (n_samples,)
        Row numbers, the most informative first; samples of weight 0 last.
    scores : array of shape (n_samples,)
        What they are ordered by, falling; by row.
    method : str
    n_certified : int or None
        Of the method "screening": so many rows at the front are enough. The optimum of those, with
        the divisor W of all, is the optimum of all, and that is proved. All of them where a guess
        entered the region. None for the other methods.
    classes : array or None
        The labels of a classification.
    """

    order: NDArray[np.intp]
    scores: Array
    method: str
    n_certified: int | None = None
    classes: NDArray | None = None


def rank_samples(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "squared_hinge",
    penalty: str | Penalty = "l2",
    alpha: float = 1e-4,
    method: str = "screening",
    fit_intercept: bool = False,
    sample_weight: Any = None,
    region: str | Region = "auto",
    random_state: Any = None,
) -> Ranking:
    """Rank samples by how much a regularised empirical risk needs them.

    The model is solved on all samples first (except for "random" and "leverage"), to a small
    certified gap; more than two classes are separated one against the rest, and a sample counts as
    much as it does for the class that needs it most.

    Parameters
    ----------
    X : array, CSR matrix, pandas or polars frame of shape (n_samples, n_features)
    y : array of shape (n_samples,), or (n_samples, 2) for intervals
        Any labels for a classification loss, numbers for a regression loss, lower and upper ends
        for an interval loss.
    loss : str or Loss, default="squared_hinge"
        A name of `safesift.losses.LOSSES` or an object with its parameters.
    penalty : str or Penalty, default="l2"
        A name of `safesift.penalties.PENALTIES` or an object with its parameters.
    alpha : float, default=1e-4
        Weight of the penalty, next to the mean loss.
    method : {"screening", "margin", "random", "leverage", "hybrid"}, default="screening"
        * "screening": the value of the screening test, as in the paper: how far the bounds of a
          region on the prediction at the optimum reach out of the flat piece of the loss. Negative
          where the sample provably has no influence. For a loss that is flat nowhere, the largest
          slope within the bounds.
        * "margin": the same for the prediction at the solution, without a region.
        * "leverage": ridge leverage, weight times a_iᵀ(AᵀSA/W + alpha·I)⁻¹a_i; estimated by random
          projections beyond 2 000 features.
        * "random": uniform, whatever the weights: those that are drawn keep them.
        * "hybrid": minus the budget from which on a sample is kept by `compress`, up to a few
          exchanges: hard samples mixed with representative ones.
    fit_intercept : bool, default=False
        The model has an intercept that is not penalised.
    sample_weight : array of shape (n_samples,), optional
        Samples of weight 0 come last.
    region : str or Region, default="auto"
        The region of the screening test: a name of `safesift.regions.REGIONS` or an object.
    random_state : int, RandomState or None, default=None
        For "random" and "hybrid", and for solvers that draw random numbers.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> X = np.array([[3.0], [0.5], [-0.2], [-2.0]])
    >>> ranking = ss.rank_samples(X, [1, 1, 0, 0], alpha=0.1)
    >>> print(ranking.order, ranking.n_certified)
    [2 1 3 0] 2
    """
    rng = generator(random_state)
    model = Model(loss, penalty, alpha, fit_intercept)
    method_named(method)
    return ranked(examine(X, y, model, sample_weight, region, seed_of(rng)), method, rng)


def ranked(samples: Examined, method: str, rng: np.random.Generator) -> Ranking:
    """The ranking of samples that are examined already."""
    how = method_named(method)
    scores, n_certified = how.scores(samples, rng), None
    if how.ranks_needed_first:
        n_certified = int(how.needed(samples).sum())
    return Ranking(ordered(samples, scores), scores, method, n_certified, samples.classes)


def generator(random_state: Any) -> np.random.Generator:
    """A generator from what scikit-learn calls a random state."""
    from sklearn.utils import check_random_state

    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))


def seed_of(rng: np.random.Generator) -> int:
    """A seed for what takes one."""
    return int(rng.integers(2**31 - 1))
