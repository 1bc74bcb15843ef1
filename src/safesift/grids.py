"""The alphas, or the radii of a constraint, from which a path or a cross-validation chooses.

Every grid begins where the model is nearly, or exactly, the best constant one, and goes towards
less regularisation: alphas fall, radii grow. How far is for the data to say, unless it is given
(`Grid.of`): at least to where every column that is correlated with what is to be explained has its
say, however small its unit is, and on from there until a score, or without one the objective, no
longer moves (`Walk`). Multiples of X have the same models: all of that is relative to X.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import norm
from safesift.arithmetic.threads import computes
from safesift.parameters import check_count, require_positive
from safesift.penalties import L1Ball
from safesift.problem.problem import Problem

Array = NDArray[np.float64]

# under l2 the grid begins where the model is proved to explain no more than this share
_EXPLAINED = 0.1
# how far from the best constant its slopes are taken, on both sides, relative to the targets
_NEARBY = 1e-6
# a grid that ends by itself has its number of levels to so many decades, and ends after so many
_DECADES, _MOST_DECADES = 4, 20
# alphas that can be computed with, with room for the penalty's own factors
_LEAST, _MOST = 1e-295, 1e295
# columns count whose squared correlation with the slopes of the best constant model is that large
_CORRELATED = 1e-3
# variances below this share of the mean square of a column, and correlations, are rounding
_LOST = 1e-12
# the objective moves where it falls by that share of the best constant model's, in a decade
MOVES = 1e-3
# after so many decades without a better score no better one is expected
_PATIENCE = 2.0


@dataclass(frozen=True, eq=False)
class Grid:
    """Alphas, or radii, in the order of a path.

    Attributes
    ----------
    levels : array
        All that may be gone through.
    n_needed : int
        So many of them are, if they can be solved.
    n_least : int
        So many of them are, come what may.
    places : array of ints, optional
        Of a grid that was given in another order: ``levels[places]`` is what was asked for.
    """

    levels: Array
    n_needed: int
    n_least: int
    places: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, problems: Sequence[Problem], n_alphas: int = 20, eps: float | None = None) -> Grid:
        """A grid for problems on the same rows: it begins where all of them are constant.

        Parameters
        ----------
        problems : sequence of Problem
            One for each class. Their own alphas, or radii, do not matter.
        n_alphas : int, default=20
            With `eps` how many levels there are, without it how many there are to four decades.
        eps : float, optional
            The smallest alpha over the largest one, in (0, 1); by default the data decide.
        """
        n_alphas = check_count("n_alphas", n_alphas)
        if eps is not None:
            grids = [alpha_grid(one, n_alphas, eps) for one in problems]
            return cls.given(_strongest(problems, grids), problems[0])
        per_decade, constraint = n_alphas / _DECADES, problems[0].penalty.is_constraint
        decades = np.arange(math.floor(_MOST_DECADES * per_decade) + 1) / per_decade
        start = _strongest(problems, [_constant_start(one) for one in problems])
        needed = [_decades_between(start, _needed(one, start)) for one in problems]
        n_needed = int((decades < max([_PATIENCE, *needed])).sum()) + 1
        levels = start * 10.0 ** (decades if constraint else -decades)
        # beyond, nothing can be computed with; one level is left, and refused with the reason
        levels = levels[: max(int(((levels > _LEAST) & (levels < _MOST)).sum()), 1)]
        return cls(
            levels,
            n_needed=min(n_needed, len(levels)),
            n_least=min(n_needed, n_alphas, len(levels)),
        )

    @classmethod
    def given(cls, asked: Array, problem: Problem) -> Grid:
        """A grid that is gone through to its end, each level once, from strong to weak."""
        levels, places = np.unique(asked, return_inverse=True)
        if not problem.penalty.is_constraint:
            levels, places = levels[::-1], len(levels) - 1 - places
        return cls(levels, n_needed=len(levels), n_least=len(levels), places=places)

    def as_asked(self, n_seen: int) -> NDArray[np.intp]:
        """Where the levels that were asked for are, or all that were gone through."""
        return np.arange(n_seen) if self.places is None else self.places


class Edge(NamedTuple):
    """An end of a grid, and what lies beyond it: in words.

    Attributes
    ----------
    end, beyond : str
    """

    end: str
    beyond: str


class Walk:
    """The way along a grid: what was seen, and whether going on is of any use.

    Of a grid that is given every level is of use. One that ends by itself ends where a score was no
    better for some decades, where no objective moves any more, and before what cannot be solved.

    Parameters
    ----------
    grid : Grid
    problems : sequence of Problem
        Those whose objectives count.

    Attributes
    ----------
    n_seen : int
        How many levels were gone through.
    best : int
        At which of them the score was largest; of equal ones, the first.
    blocked : bool
        Whether the next one could not be solved.
    """

    def __init__(self, grid: Grid, problems: Sequence[Problem]) -> None:
        self._grid, self._problems = grid, problems
        self._units = np.array([one.reference for one in problems])
        self._values = np.array([one.constant_value for one in problems])
        self.n_seen, self.best, self.blocked = 0, 0, False
        self._best_score, self._in_vain, self._moving = -math.inf, 0.0, True

    def enters(self, solved: bool) -> bool:
        """Whether the next level belongs to the way, solved as it is, or not."""
        # if tolerance is not reached here, it will not be at weaker regularisation either
        self.blocked = not solved and self.n_seen >= self._grid.n_least
        return not self.blocked

    def note(self, values: Sequence[float], score: float | None = None) -> None:
        """Tell what a level came to: the objectives, and a score, the larger, the better."""
        i, levels, new = self.n_seen, self._grid.levels, np.asarray(values)
        decades = _decades_between(levels[max(i - 1, 0)], levels[i])
        fall = float(((self._values - new) / self._units).max())
        self._values, self._moving = new, not fall <= MOVES * decades
        if score is not None:
            if score > self._best_score:
                self.best, self._best_score = i, score
            self._in_vain = _decades_between(levels[self.best], levels[i])
        self.n_seen += 1

    @property
    def ended(self) -> bool:
        """Whether the next level is not worth a look."""
        if self.n_seen < self._grid.n_needed:
            return False
        return self._in_vain >= _PATIENCE - 1e-9 or not self._moving

    @property
    def edge(self) -> Edge | None:
        """The end of the grid at which the score was largest, if there may be a better one beyond.

        There is none where a model is constant already, nor where no objective moves any more.
        """
        levels = self._grid.levels
        strong, weak = Edge("largest", "larger"), Edge("smallest", "smaller")
        if self._problems[0].penalty.is_constraint:
            strong, weak = weak, strong
        if len(levels) == 1:
            return None
        if self.best == 0:
            constant = all(_starts_constant(levels[0], one) for one in self._problems)
            return None if constant else strong
        at_the_end = self.blocked or self.n_seen == len(levels)
        return weak if at_the_end and self._moving and self.best == self.n_seen - 1 else None


def _decades_between(level: float, other: float) -> float:
    # of levels that are far apart the quotient underflows
    return abs(math.log10(other) - math.log10(level))


@computes
def alpha_grid(
    problem: Problem, n_alphas: int = 20, eps: float = 1e-4, *, n_jobs: int | None = None
) -> Array:
    """Alphas from `alpha_max` down to `eps` times it, evenly spaced in their logarithms.

    For a constraint the radii instead, from `radius_min` up to `radius_min` / `eps`.

    Parameters
    ----------
    problem : Problem
        Its own alpha, or radius, does not matter.
    n_alphas : int, default=20
    eps : float, default=1e-4
        In (0, 1).
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    array of shape (n_alphas,)

    Examples
    --------
    >>> import numpy as np
    >>> from safesift.grids import alpha_grid
    >>> from safesift.problem.inputs import make_problems
    >>> inputs = make_problems(np.eye(2), [1.0, -3.0], loss="squared", penalty="l1", alpha=1.0,
    ...                        fit_intercept=False)
    >>> print(alpha_grid(inputs.problem, 3, 1e-2))
    [1.5   0.15  0.015]
    """
    n_alphas = check_count("n_alphas", n_alphas)
    check_eps(eps, alphas_given=False)
    factors = np.geomspace(1.0, eps, n_alphas)
    start = _start(problem)
    return start / factors if problem.penalty.is_constraint else start * factors


@computes
def alpha_max(problem: Problem, *, n_jobs: int | None = None) -> float:
    """The alpha at which a path begins.

    With g the gradient of the loss at the best constant model, whose objective is P₀:

    * l1 and elastic net: max |g_j| / l1_ratio. From there on all coefficients are 0, and for
      smooth losses that is the smallest such alpha. For a loss with kinks the slopes at a kink are
      not unique, so that a smaller one may do as well.
    * l2: 5‖g‖²/P₀. By strong convexity P₀ − P* ≤ ‖g‖²/(2·alpha), so that at this alpha no more
      than a tenth of P₀ can be explained.

    1 where g = 0: the best constant is then a solution for every alpha.

    Parameters
    ----------
    problem : Problem
        Its own alpha does not matter; a constraint has none, see `radius_min`.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    float
    """
    gradient = _constant_gradient(problem)
    threshold = problem.penalty.sparse_threshold(1.0)
    if threshold > 0:
        largest = float(np.abs(gradient).max()) / threshold
    else:
        explained = _EXPLAINED * problem.constant_value * 2.0 * problem.penalty.strong_convexity
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = float(np.float64(norm(gradient)) ** 2 / explained)
    return _usable(largest)


@computes
def radius_min(problem: Problem, *, n_jobs: int | None = None) -> float:
    """The radius at which the path of a constraint begins.

    By convexity P₀ − P* ≤ radius·‖g‖ in the dual norm; at this radius no more than a tenth of P₀
    can be explained. 1 where g = 0.

    Parameters
    ----------
    problem : Problem
        Its own radius does not matter.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    float
    """
    gradient = _constant_gradient(problem)
    one_norm = isinstance(problem.penalty, L1Ball)
    dual_norm = float(np.abs(gradient).max()) if one_norm else norm(gradient)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _usable(float(np.float64(_EXPLAINED * problem.constant_value) / dual_norm))


def check_eps(eps: float | None, alphas_given: bool) -> None:
    """Refuse an eps that is none, or that has nothing to say.

    Parameters
    ----------
    eps : float or None
        Should be in (0, 1).
    alphas_given : bool
        Whether there is a grid already.
    """
    if eps is None:
        return
    if alphas_given:
        raise ValueError(
            f"eps={eps!r} is for a grid that is found, but alphas are given: leave one of them out."
        )
    require_positive("eps", eps)
    if eps >= 1:
        raise ValueError(
            f"eps must be below 1, got {eps!r}: it is the smallest alpha over the largest one."
        )


def _starts_constant(level: float, problem: Problem) -> bool:
    """Whether regularisation is as strong as where a grid would begin, or stronger."""
    start = _start(problem)
    return level <= start if problem.penalty.is_constraint else level >= start


def _start(problem: Problem) -> float:
    return radius_min(problem) if problem.penalty.is_constraint else alpha_max(problem)


def _constant_start(problem: Problem) -> float:
    """The same, and a decade stronger for a penalty that sets nothing to 0 exactly."""
    if problem.penalty.is_constraint:
        return 0.1 * _start(problem)
    return _start(problem) * (1.0 if problem.penalty.sparse_threshold(1.0) > 0 else 10.0)


def _strongest(problems: Sequence[Problem], levels: Sequence[Any]) -> Any:
    """Of the levels of each problem, those of the strongest regularisation."""
    choose = np.min if problems[0].penalty.is_constraint else np.max
    return choose(levels, axis=0)


def _needed(problem: Problem, start: float) -> float:
    """The level at which every column that counts has its say.

    A column j alone, of variance h_j, makes predictions of the size u of the targets with the
    coefficient u/√h_j. It has its say where the pull of the penalty towards 0 is there no more than
    the slope of the loss at the best constant, |g_j|; or where that coefficient is inside the ball.
    It counts if it is correlated with the slopes of the loss there, or more than all others.
    """
    constant, penalty = problem.split(problem.constant_point)[1], problem.penalty
    slopes, gradient = _slopes(problem, constant), np.abs(_constant_gradient(problem))
    spread = _variances(problem)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        correlation = gradient**2 / (spread * float(problem.shares @ slopes**2))
        correlation = np.where(np.isfinite(correlation), correlation, 0.0)
        counts = correlation >= np.clip(correlation.max(), _LOST, _CORRELATED)
        if not counts.any():
            return start
        coefs = problem.unit / np.sqrt(spread[counts])
        if penalty.is_constraint:
            return _usable(float(coefs.max()), start)
        pull = penalty.sparse_threshold(1.0) + penalty.strong_convexity * coefs
        return _usable(float((gradient[counts] / pull).min()), start)


def _variances(problem: Problem) -> Array:
    """Of every column, or its mean square where no intercept takes the mean away."""
    p, rows = problem.design.n_features, problem.risk.rows
    squares = rows.columns_sq[:p]
    if not problem.fit_intercept:
        return squares
    means = problem.design.rmatvec(rows.shares)[:p] / (float(rows.shares.sum()) or 1.0)
    # below that, of a column far from 0, there is nothing but rounding
    return np.maximum(squares - means**2, _LOST * squares)


def check_levels(alphas: Any) -> Array:
    """Given alphas, or radii, in the order in which they are given; an error for what is none.

    Parameters
    ----------
    alphas : sequence of float
        Positive and finite.

    Returns
    -------
    array of shape (n_alphas,)
    """
    try:
        levels = np.array(alphas, dtype=np.float64)
    except (TypeError, ValueError):
        levels = np.empty(0)
    if levels.ndim != 1 or not levels.size or not (np.isfinite(levels) & (levels > 0)).all():
        raise ValueError(
            f"alphas must be a list of positive numbers, got {alphas!r}: list some, as [1.0, 0.1]."
        )
    return levels


def _constant_gradient(problem: Problem) -> Array:
    """The gradient of the loss at the best constant model, on the penalised coordinates.

    With an intercept the slopes ν must add up to 0: those just below and just above the best
    constant are mixed so that they do, which also finds slopes that fit at a kink.
    """
    constant = problem.split(problem.constant_point)[1]
    nu = _slopes(problem, constant)
    if problem.fit_intercept:
        step = _NEARBY * problem.unit
        below, above = _slopes(problem, constant - step), _slopes(problem, constant + step)
        low, high = float(problem.shares @ below), float(problem.shares @ above)
        if low < 0 < high:
            nu = (high * below - low * above) / (high - low)
    gradient = problem.design.rmatvec(problem.shares * nu) + problem.q
    return gradient[: problem.design.n_features]


def _slopes(problem: Problem, constant: float) -> Array:
    slopes = problem.loss.slope(np.full_like(problem.shares, constant), problem.y)
    return np.where(problem.shares > 0, slopes, 0.0)


def _usable(level: float, otherwise: float = 1.0) -> float:
    return level if math.isfinite(level) and level > 0 else otherwise
