"""How large μ should be: where everything can be dropped, and where a given share can."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import total
from safesift.arithmetic.threads import computes
from safesift.losses import Loss
from safesift.losses.omegas import Omega
from safesift.losses.safe import infimum_convolution, resolve_loss, resolve_omega
from safesift.penalties import Penalty
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import decide
from safesift.problem.evaluation import Evaluation
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.problem.training import Training
from safesift.regions import Auto
from safesift.regions.intercept import UnboundedInterceptError
from safesift.registry import provided
from safesift.solvers import solve
from safesift.workflows.objective_bounds import ObjectiveBounds, bounds_at
from safesift.workflows.showing import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

# trials before bisection, as shares of mu_max; a hair beyond it everything is droppable
_GRID = (0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 1.001)
_MAX_BISECTIONS = 12


@computes
def mu_max(
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    omega: str | Omega | Callable = "l1",
    fit_intercept: bool = True,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> float:
    """The smallest μ for which ν* = 0 is optimal: from it on, no sample has any influence.

    With R(0) = 0 the least of R this does not depend on penalty and alpha: ν = 0 is optimal
    exactly if some constant model (0 without an intercept) lies in the flat interval of every
    sample. For the squared loss with "l1" that is max|y|, with an intercept half the range of y.

    Parameters
    ----------
    X, y, loss, fit_intercept, sample_weight
        As in `safesift.screen`; samples of weight 0 do not count.
    omega : str, Omega or callable, default="l1"
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    float
        0 if the loss itself is flat there.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> y = np.array([-1.0, 2.0, 5.0])
    >>> round(ss.mu_max(np.eye(3), y, loss="squared", fit_intercept=False), 9)
    5.0
    >>> round(ss.mu_max(np.eye(3), y, loss="squared"), 9)
    3.0
    """
    loss, omega = resolve_loss(loss), resolve_omega(omega)
    problem = make_problems(
        X, y, loss=loss, penalty="l2", alpha=1.0, fit_intercept=fit_intercept,
        sample_weight=sample_weight,
    ).problem  # fmt: skip
    return _mu_max(problem, omega)


def _mu_max(problem: Problem, omega: Omega) -> float:
    def misses(mu: float) -> bool:
        return _constant_misses(problem.with_loss(infimum_convolution(problem.loss, omega, mu)))

    if not misses(0.0):
        return 0.0
    low, high = 0.0, problem.unit
    while misses(high):
        low, high = high, 2.0 * high
        if high > 1e15 * problem.unit:
            raise ValueError(
                f"mu_max does not exist: {problem.loss!r} with omega={type(omega).__name__} gets "
                "no flat region around a constant, however large mu is: use another omega (for the "
                "logistic loss 'entropy'), or a loss with a minimum."
            )
    while high - low > 1e-14 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if misses(middle) else (low, middle)
    return high


def _constant_misses(problem: Problem) -> bool:
    """Whether no constant model is on the flat piece of every sample."""
    flat = _flat_piece(problem)
    if flat is None:
        return True
    counted = problem.weights > 0
    lowest, highest = float(flat[0][counted].max()), float(flat[1][counted].min())
    return lowest > highest if problem.fit_intercept else not lowest <= 0.0 <= highest


def _flat_piece(problem: Problem) -> tuple[Array, Array] | None:
    for piece in problem.pieces:
        if piece.is_flat:
            return np.asarray(piece.lower), np.asarray(piece.upper)
    return None


@dataclass(frozen=True)
class Trial:
    """One μ: which share of the samples can be dropped, and how good the model is.

    Attributes
    ----------
    mu : float
    fraction : float
        Share of the samples on the flat piece at the (approximate) optimum: the limit for
        screening.
    certified : float
        Share that `screen` proves droppable from there.
    score : float
        Training accuracy, or R² for regression.
    """

    mu: float
    fraction: float
    certified: float
    score: float


@dataclass(frozen=True, eq=False, repr=False)
class MuChoice(Shown):
    """What `mu_for_fraction` found.

    Attributes
    ----------
    mu, fraction, certified, score
        Of the chosen trial.
    loss : Loss
        The safe loss with that μ.
    original_score : float
        Score of the model with the original loss.
    objective : ObjectiveBounds or None
        What the change costs in the objective; None where Ω is not a norm.
    trials : tuple of Trial
        All of them, μ increasing.
    training : Training
        The model, with the original loss.
    """

    best: Trial
    loss: Loss
    original_score: float
    objective: ObjectiveBounds | None
    trials: tuple[Trial, ...]
    training: Training

    @property
    def mu(self) -> float:
        return self.best.mu

    @property
    def fraction(self) -> float:
        return self.best.fraction

    @property
    def certified(self) -> float:
        return self.best.certified

    @property
    def score(self) -> float:
        return self.best.score

    def summary(self) -> str:
        """What was chosen for which model, and what it costs."""
        lines = [
            f"mu={self.mu:.4g}: {self.fraction:.1%} of the samples droppable, "
            f"{self.certified:.1%} proved",
            f"  model: {self.training}",
            f"  training score {self.score:.4g}, {self.original_score:.4g} with the original loss",
        ]
        if self.objective is not None:
            lines.append(f"  the objective falls by at most {self.objective.delta:.3g}")
        return "\n".join(lines)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the droppable share and the score against μ."""
        return provided("plot_choice")(self, axes)


@computes
def mu_for_fraction(
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    omega: str | Omega | Callable = "l1",
    penalty: str | Penalty = "l2",
    alpha: float = 1e-4,
    l1_ratio: float | None = None,
    fraction: float = 0.5,
    fraction_tol: float = 0.01,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> MuChoice:
    """The μ at which about a given share of the samples can be dropped, and what it costs.

    A few μ up to `mu_max` are tried, then the share is bisected. Each trial solves the problem
    with the safe loss (approximately) and screens it. `fraction` of the result says what was
    reached: with the squared hinge and l2 no μ < 1 changes the share at all, since the solution
    is (1 − μ) times that of μ = 0.

    Parameters
    ----------
    X, y, loss, penalty, alpha, l1_ratio, fit_intercept, sample_weight
        As in `safesift.screen`.
    omega : str, Omega or callable, default="l1"
    fraction : float, default=0.5
        The share of the samples, between 0 and 1.
    fraction_tol : float, default=0.01
        How close to `fraction` is close enough.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.

    Returns
    -------
    MuChoice
    """
    if not (isinstance(fraction, int | float) and 0.0 <= fraction <= 1.0):
        raise ValueError(f"fraction must be a number from 0 to 1, got {fraction!r}.")
    loss, omega = resolve_loss(loss), resolve_omega(omega)
    training = Training(loss, penalty, alpha, l1_ratio, bool(fit_intercept))
    problem = make_problems(X, y, sample_weight=sample_weight, **vars(training)).problem
    search = _Search(problem, omega)
    best = search.run(float(fraction), fraction_tol)
    chosen = problem.with_loss(infimum_convolution(loss, omega, best.mu))
    found = solve(chosen).certificate
    return MuChoice(
        best=best,
        loss=chosen.loss,
        original_score=_score(problem, solve(problem).at),
        objective=bounds_at(found, loss, omega, best.mu) if omega.is_norm else None,
        trials=tuple(sorted(search.trials, key=lambda trial: trial.mu)),
        training=training,
    )


class _Search:
    """Tries μ by μ and remembers."""

    def __init__(self, problem: Problem, omega: Omega) -> None:
        self._problem, self._omega = problem, omega
        self.trials: list[Trial] = []

    def run(self, fraction: float, fraction_tol: float) -> Trial:
        """The trial closest to the fraction."""
        largest = _mu_max(self._problem, self._omega)
        grid = [self._try(share * largest) for share in _GRID]
        above = next((k for k, trial in enumerate(grid) if trial.fraction >= fraction), None)
        low = 0.0 if not above else grid[above - 1].mu
        high = grid[-1].mu if above is None else grid[above].mu
        for _ in range(_MAX_BISECTIONS):
            closest = min(self.trials, key=lambda trial: abs(trial.fraction - fraction))
            if abs(closest.fraction - fraction) <= fraction_tol or not low < high:
                break
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._try(middle).fraction >= fraction else (middle, high)
        return min(self.trials, key=lambda trial: abs(trial.fraction - fraction))

    def _try(self, mu: float) -> Trial:
        loss = infimum_convolution(self._problem.loss, self._omega, mu)
        problem = self._problem.with_loss(loss)
        found = solve(problem).certificate
        counted = problem.weights > 0
        trial = Trial(
            mu=mu,
            fraction=float(_on_flat_piece(problem, found.at)[counted].mean()),
            certified=float(_proved(found)[counted].mean()),
            score=_score(problem, found.at),
        )
        self.trials.append(trial)
        return trial


def _on_flat_piece(problem: Problem, at: Evaluation) -> NDArray[np.bool_]:
    flat = _flat_piece(problem)
    if flat is None:
        return np.zeros(len(at.pred), dtype=bool)
    return (flat[0] < at.pred) & (at.pred < flat[1])


def _proved(certificate: Certificate) -> NDArray[np.bool_]:
    problem = certificate.problem
    try:
        bounds = Auto().build(certificate).own_bounds(problem)
    except UnboundedInterceptError:
        return np.zeros(problem.design.n_samples, dtype=bool)
    return decide(problem, bounds, fold="never").dropped


def _score(problem: Problem, at: Evaluation) -> float:
    """Training accuracy, or R²."""
    if problem.loss.task == "classification":
        return total(problem.shares, (problem.y * at.pred > 0).astype(np.float64))
    mean = total(problem.shares, problem.y)
    spread = total(problem.shares, (problem.y - mean) ** 2)
    rest = total(problem.shares, (problem.y - at.pred) ** 2)
    return 1.0 - rest / spread if spread > 0 else (1.0 if rest == 0 else -math.inf)
