"""Samples in the order in which to keep them.

How many rows, and which ones, of which strata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.threads import computes
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.training import Training
from safesift.regions import Region
from safesift.registry import unknown_name
from safesift.workflows.compression.blocks import check_ranking, examine_blocks
from safesift.workflows.compression.examined import examine
from safesift.workflows.compression.hybrid import Hybrid
from safesift.workflows.compression.samples import Rows, Samples, grouped
from safesift.workflows.compression.strata import Strata
from safesift.workflows.scale.results import rows_in_blocks
from safesift.workflows.showing import Shown

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# rows beyond twice as many as are asked for, before the others are let go
_SPARE = 1024


def count_to_keep(n_keep: int | float, samples: Samples) -> int:
    """A number of rows from a number, or from a share of the rows of positive weight."""
    available = samples.n_counted
    if isinstance(n_keep, bool) or not isinstance(n_keep, Real):
        raise TypeError(
            f"n_keep must be a number of samples or a share of them, got {type(n_keep).__name__}."
        )
    if isinstance(n_keep, Integral):
        if not 1 <= n_keep <= available:
            raise ValueError(
                f"n_keep={n_keep} must be at least 1 and at most {available}, the number of "
                "samples of positive weight; a float is a share of them."
            )
        count = int(n_keep)
    else:
        if not 0.0 < n_keep <= 1.0:
            raise ValueError(
                f"n_keep={n_keep!r} must be in (0, 1] as a share of the samples; a whole number of "
                "samples is an int."
            )
        count = max(1, round(n_keep * available))
    least = samples.n_classes
    if count < least:
        raise ValueError(
            f"n_keep={n_keep!r} keeps {count} of {available} samples, fewer than the {least} "
            "classes: keep at least one of each."
        )
    return count


class _Ranked(NamedTuple):
    """Some rows, and what they are ranked by: the largest score first, then the largest of ties."""

    rows: Indices
    scores: Array
    ties: Array
    classes: Indices

    @classmethod
    def of(cls, rows: Rows, scores: Array) -> _Ranked:
        """Where a region bounds nothing all scores are infinite: then margins rank."""
        infinite = np.isinf(scores) & rows.counted
        ties = np.where(infinite, rows.margins, 0.0) if infinite.any() else np.zeros(len(scores))
        return cls(rows.start + np.arange(len(scores)), scores, ties, rows.class_codes)

    def take(self, which: NDArray) -> _Ranked:
        return _Ranked(*(column[which] for column in self))

    @classmethod
    def together(cls, some: Sequence[_Ranked]) -> _Ranked:
        return cls(*map(np.concatenate, zip(*some, strict=True)))

    def first(self, count: int) -> _Ranked:
        """So many of them, in their order; equal ones as they come."""
        return self.take(np.lexsort((self.rows, -self.ties, -self.scores))[:count])


class _Best:
    """The first rows of an order, of rows that come some at a time.

    It holds about twice as many as it gives, whatever comes.
    """

    def __init__(self, count: int) -> None:
        self._count, self._least = count, -np.inf
        self._found: list[_Ranked] = []

    def add(self, some: _Ranked) -> None:
        if self._least > -np.inf:
            some = some.take(some.scores >= self._least)
        self._found.append(some)
        if sum(len(one.rows) for one in self._found) > 2 * self._count + _SPARE:
            self.first()

    def first(self) -> _Ranked:
        """The first of those that came so far."""
        best = _Ranked.together(self._found).first(self._count)
        self._found = [best]
        if self._count and len(best.rows) == self._count:
            self._least = float(best.scores[-1])
        return best


def first_of(samples: Samples, scores: Iterable[Array], count: int, strata: Strata) -> Indices:
    """The first rows by falling score: of every stratum its share, and of every class one at least.

    Parameters
    ----------
    samples : Samples
    scores : iterable of arrays
        Of every part.
    count : int
    strata : Strata
    """
    best = [_Best(n) for n in _allotted(samples, count, strata)]
    of_class = [_Best(1) for _ in range(samples.n_classes)]
    for rows, own in zip(samples.parts(), scores, strict=True):
        ranked = _Ranked.of(rows, own)
        for groups, codes in ((best, strata.codes(rows)), (of_class, rows.class_codes)):
            for code, mine in grouped(codes, rows.counted):
                groups[code].add(ranked.take(mine))
    chosen = _Ranked.together([one.first() for one in best]).first(count)
    return np.sort(_with_every_class([one.first() for one in of_class], chosen))


def _allotted(samples: Samples, count: int, strata: Strata) -> list[int]:
    """How many of each stratum: by weight, at least one where the count allows it."""
    sizes, masses = (
        strata.masses(samples, values)
        for values in (lambda rows: rows.counted, lambda rows: rows.weights)
    )
    allotted = np.minimum(np.floor(count * masses / masses.sum()), sizes).astype(np.intp)
    if count >= len(sizes):
        allotted = np.maximum(allotted, 1)
    while allotted.sum() != count:
        # one at a time, to or from the stratum that is furthest from its share
        lacking = count * masses / masses.sum() - allotted
        if allotted.sum() < count:
            allotted[np.argmax(np.where(allotted < sizes, lacking, -np.inf))] += 1
        else:
            allotted[np.argmin(np.where(allotted > 1, lacking, np.inf))] -= 1
    return allotted.tolist()


def _with_every_class(best: Sequence[_Ranked], chosen: _Ranked) -> Indices:
    """The best of every class that is missing takes the place of the worst of the others."""
    rows, codes = chosen.rows.copy(), chosen.classes.copy()
    for missing in np.setdiff1d(np.arange(len(best)), codes):
        spare = np.bincount(codes, minlength=len(best))[codes] > 1
        place = np.flatnonzero(spare)[-1]
        rows[place], codes[place] = best[missing].rows[0], missing
    return rows


# --- ways to rank samples: a score each, the largest kept first ---------------------------


@dataclass(frozen=True)
class Method:
    """A way to rank samples.

    Attributes
    ----------
    scores : function of Samples and Generator
        An array for every part.
    represents : bool
        Whether the kept rows stand for the dropped ones, so that their weights should add up to
        those of all; otherwise the dropped rows are taken to be of no influence.
    needed : function of Samples
        Rows ↦ those without which nothing is proved: the others may go, or have any weight.
    ranks_needed_first : bool
        Whether those come first in the ranking.
    adapts : bool
        Whether the choice depends on the budget by more than a cut through the ranking.
    """

    scores: Callable[[Samples, np.random.Generator], Iterator[Array]]
    represents: bool
    needed: Callable[[Samples], Callable[[Rows], Mask]]
    ranks_needed_first: bool = False
    adapts: bool = False


def _screening(samples: Samples, rng: np.random.Generator) -> Iterator[Array]:
    return (rows.test_values for rows in samples.parts())


def _margin(samples: Samples, rng: np.random.Generator) -> Iterator[Array]:
    return (rows.margins for rows in samples.parts())


def _leverage(samples: Samples, rng: np.random.Generator) -> Iterator[Array]:
    return (rows.weights * rows.leverage for rows in samples.parts())


def _random(samples: Samples, rng: np.random.Generator) -> Iterator[Array]:
    # whatever their weights, which those that are drawn keep
    return (rng.random(len(rows.weights)) for rows in samples.parts())


def _hybrid(samples: Samples, rng: np.random.Generator) -> Iterator[Array]:
    return (-first for first in Hybrid(samples, rng.random()).first_budgets())


def _undecided(samples: Samples) -> Callable[[Rows], Mask]:
    if not samples.certified:
        return lambda rows: rows.counted
    return lambda rows: rows.counted & (rows.test_values >= 0)


def _active(samples: Samples) -> Callable[[Rows], Mask]:
    return lambda rows: rows.active


def _all(samples: Samples) -> Callable[[Rows], Mask]:
    return lambda rows: rows.counted


METHODS: dict[str, Method] = {
    "hybrid": Method(_hybrid, represents=True, needed=_active, adapts=True),
    "screening": Method(_screening, represents=False, needed=_undecided, ranks_needed_first=True),
    "margin": Method(_margin, represents=False, needed=_undecided),
    "leverage": Method(_leverage, represents=True, needed=_all),
    "random": Method(_random, represents=True, needed=_all),
}


def method_named(name: str) -> Method:
    """The method of that name, or one sentence."""
    if not isinstance(name, str) or name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Shown):
    """Samples in the order in which to keep them.

    Attributes
    ----------
    order : array of shape (n_samples,)
        Row numbers, the most informative first; samples of weight 0 last.
    scores : array of shape (n_samples,)
        What they are ordered by, falling; by row.
    method : str
    training : Training
        The model that samples are ranked for.
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
    training: Training
    n_certified: int | None = None
    classes: NDArray | None = None

    def summary(self) -> str:
        """How many samples, by what, for which model."""
        lines = [
            f"{len(self.order)} samples ranked by {self.method!r}",
            f"  model: {self.training}",
            f"  the first rows: {', '.join(map(str, self.order[:5]))}, …",
        ]
        if self.n_certified is not None:
            lines.append(f"  the first {self.n_certified} are proved to be enough")
        return "\n".join(lines)


@computes
def rank_samples(
    X: Any,
    y: Any = None,
    *,
    loss: str | Loss = "squared_hinge",
    penalty: str | Penalty = "l2",
    alpha: float = 1e-4,
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    method: str = "screening",
    screening: str | Region = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Ranking:
    """Rank samples by how much a regularised empirical risk needs them.

    The model is solved on all samples first (except for "random" and "leverage"), to a small
    certified gap; more than two classes are separated one against the rest, and a sample counts as
    much as it does for the class that needs it most.

    Parameters
    ----------
    X : array, CSR matrix, pandas or polars frame of shape (n_samples, n_features)
        Or rows in blocks, made by `safesift.blocks`, which have their targets and weights with
        them, or of dask. They are read in passes, and some numbers of every row are held.
    y : array of shape (n_samples,), or (n_samples, 2) for intervals
        Any labels for a classification loss, numbers for a regression loss, lower and upper ends
        for an interval loss. None with blocks.
    loss : str or Loss, default="squared_hinge"
        A name of `safesift.losses.LOSSES` or an object with its parameters.
    penalty : str or Penalty, default="l2"
        A name of `safesift.penalties.PENALTIES` or an object with its parameters.
    alpha : float, default=1e-4
        Weight of the penalty, next to the mean loss.
    l1_ratio : float in [0, 1), optional
        Share of the l1 norm in penalty="elastic_net", 0.5 by default; None with any other.
    fit_intercept : bool, default=True
        The model has an intercept that is not penalised.
    sample_weight : array of shape (n_samples,), optional
        Samples of weight 0 come last.
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
    screening : str or Region, default="auto"
        The region of the screening test: a name of `safesift.regions.REGIONS` or an object.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
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
    model = Training(loss, penalty, alpha, l1_ratio, fit_intercept)
    method_named(method)
    source = rows_in_blocks(
        "rank_samples", X, y, sample_weight, None, screening=(screening, "auto")
    )
    if source is not None:
        blocks = examine_blocks(source, model, seed_of(rng))
        check_ranking(blocks)
        return ranked(blocks, method, rng)
    return ranked(examine(X, y, model, sample_weight, screening, seed_of(rng)), method, rng)


def ranked(samples: Samples, method: str, rng: np.random.Generator) -> Ranking:
    """The ranking of samples that are examined already."""
    how = method_named(method)
    scores, n_certified = list(how.scores(samples, rng)), None
    if how.ranks_needed_first:
        n_certified = samples.count(how.needed(samples))
    return Ranking(
        _ordered(samples, scores), np.concatenate(scores), method, samples.training, n_certified,
        samples.classes,
    )  # fmt: skip


def _ordered(samples: Samples, scores: Sequence[Array]) -> Indices:
    """Rows by falling score; samples of weight 0 last. Equal ones as they come."""
    pairs = list(zip(samples.parts(), scores, strict=True))
    every = _Ranked.together([_Ranked.of(rows, own) for rows, own in pairs])
    weightless = np.concatenate([~rows.counted for rows, _ in pairs])
    return np.lexsort((-every.ties, -every.scores, weightless))


def generator(random_state: Any) -> np.random.Generator:
    """A generator from what scikit-learn calls a random state."""
    from sklearn.utils import check_random_state

    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))


def seed_of(rng: np.random.Generator) -> int:
    """A seed for what takes one."""
    return int(rng.integers(2**31 - 1))
