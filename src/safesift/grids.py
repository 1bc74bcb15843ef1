"""The alphas, or the radii of a constraint, from which a path or a cross-validation chooses.

Every grid begins where the model is nearly, or exactly, the best constant one, and goes towards
less regularisation: alphas fall, radii grow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import norm
from safesift.parameters import check_count, require_positive
from safesift.penalties import L1Ball
from safesift.problem.problem import Problem

Array = NDArray[np.float64]

# under l2 the grid begins where the model is proved to explain no more than this share
_EXPLAINED = 0.1
# how far from the best constant its slopes are taken, on both sides, relative to the targets
_NEARBY = 1e-6


def alpha_grid(problem: Problem, n_alphas: int = 20, ratio: float = 1e-4) -> Array:
    """Alphas from `alpha_max` down to `ratio` times it, evenly spaced in their logarithms.

    For a constraint the radii instead, from `radius_min` up to `radius_min` / `ratio`.

    Parameters
    ----------
    problem : Problem
        Its own alpha, or radius, does not matter.
    n_alphas : int, default=20
    ratio : float, default=1e-4
        In (0, 1).

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
    require_positive("ratio", ratio)
    if ratio >= 1:
        raise ValueError(f"ratio must be below 1, got {ratio!r}: the grid goes from 1 to ratio.")
    factors = np.geomspace(1.0, ratio, n_alphas)
    if problem.penalty.is_constraint:
        return radius_min(problem) / factors
    return alpha_max(problem) * factors


def alpha_max(problem: Problem) -> float:
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


def radius_min(problem: Problem) -> float:
    """The radius at which the path of a constraint begins.

    By convexity P₀ − P* ≤ radius·‖g‖ in the dual norm; at this radius no more than a tenth of P₀
    can be explained. 1 where g = 0.
    """
    gradient = _constant_gradient(problem)
    one_norm = isinstance(problem.penalty, L1Ball)
    dual_norm = float(np.abs(gradient).max()) if one_norm else norm(gradient)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _usable(float(np.float64(_EXPLAINED * problem.constant_value) / dual_norm))


def check_levels(alphas: Any) -> Array:
    """Given alphas, or radii, in the order in which they are given; an error for what is none."""
    try:
        levels = np.array(alphas, dtype=np.float64)
    except (TypeError, ValueError):
        levels = np.empty(0)
    if levels.ndim != 1 or not levels.size or not (np.isfinite(levels) & (levels > 0)).all():
        raise ValueError(
            f"alphas must be a list of positive numbers, got {alphas!r}: list some, as [1.0, 0.1]."
        )
    return levels


class PathOrder(NamedTuple):
    """How a path goes through levels that were asked for in any order.

    Attributes
    ----------
    levels : array
        Each once, alphas falling, radii growing: from one solution the next is not far.
    places : array of ints
        At which of them each of those asked for is found: ``levels[places]`` is what was asked.
    """

    levels: Array
    places: NDArray[np.intp]

    @classmethod
    def of(cls, asked: Array, problem: Problem) -> PathOrder:
        """The order in which a problem is solved for these levels."""
        growing, places = np.unique(asked, return_inverse=True)
        if problem.penalty.is_constraint:
            return cls(growing, places)
        return cls(growing[::-1], len(growing) - 1 - places)


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
    slopes = problem.loss.slope(np.full(problem.design.n_samples, constant), problem.y)
    return np.where(problem.shares > 0, slopes, 0.0)


def _usable(level: float) -> float:
    return level if np.isfinite(level) and level > 0 else 1.0
