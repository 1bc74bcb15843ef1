"""Regularisation paths: one certified model per alpha, or per radius of a constraint.

What paths of linear models and of kernel machines have in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from safesift.alerts import warn
from safesift.arithmetic.threads import computes
from safesift.design.factory import check_finite
from safesift.design.placing import placed
from safesift.grids import Grid, Walk, check_eps, check_levels
from safesift.losses import Loss
from safesift.parameters import check_count
from safesift.penalties import Penalty
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.problem.scales import column_name, column_names
from safesift.problem.training import Training
from safesift.regions import Region
from safesift.registry import provided
from safesift.solvers import Fit, Screening, Settings, choose, print_history, solve_path
from safesift.solvers.records import complaint, missed
from safesift.workflows.proofs import Proof, write_proof
from safesift.workflows.scale.on_device import samples_on_device
from safesift.workflows.scale.results import path_of_blocks, rows_in_blocks
from safesift.workflows.showing import Reported, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


# what is kept of the fit of one alpha, by the name of the attribute of the path
Facts = Mapping[str, Callable[[Fit], Any]]


_FACTS: Facts = {
    "intercepts": lambda fit: fit.intercept,
    "dual_gaps": lambda fit: fit.gap,
    "relative_gaps": lambda fit: fit.relative_gap,
    "n_kept": lambda fit: fit.history[-1].n_kept,
    "n_undecided": lambda fit: fit.history[-1].n_undecided,
    "n_iter": lambda fit: fit.n_iter,
    "passes": lambda fit: fit.history[-1].passes,
    "seconds": lambda fit: fit.history[-1].seconds,
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CertifiedPath(Shown):
    """One certified model per alpha; the attributes are described by the subclasses."""

    training: Training
    parameter: str = "alpha"
    alphas: Array
    intercepts: Array
    dual_gaps: Array
    relative_gaps: Array
    n_kept: NDArray[np.int64]
    n_undecided: NDArray[np.int64]
    n_iter: NDArray[np.int64]
    passes: Array
    seconds: Array
    classes: NDArray | None = None

    def summary(self) -> str:
        """How many models of which kind there are, and what is proved of them."""
        strong, weak = np.argsort(-self.alphas)[[0, -1]]
        return "\n".join([
            f"{len(self.alphas)} models: {self.training}",
            f"  {self.parameter} from {self.alphas[strong]:.3g} to {self.alphas[weak]:.3g}",
            f"  relative duality gaps at most {self.relative_gaps.max():.2g}, on all samples",
            f"  samples kept: {self.n_kept[strong]} at the largest {self.parameter}, "
            f"{self.n_kept[weak]} at the smallest",
            f"  {self.seconds.sum():.2g} s, {self.passes.sum():.3g} passes over the data",
        ])  # fmt: skip


def path_facts(
    function: str, problem: Problem, grid: Grid, settings: Settings, facts: Facts, verbose: int,
    names: Sequence[str] | None,
) -> dict[str, Any]:  # fmt: skip
    """Solve along a grid as far as that is worth it, and tell in the order of the caller.

    The facts that every path has and some more, an array for each, by the names of attributes; and
    a warning where the tolerance was not reached.
    """
    walk, wanted, points, misses = Walk(grid, [problem]), {**_FACTS, **facts}, [], []
    # the fits are gone through once, and nothing else of them is kept
    for (fit,) in solve_path([[problem.at_level(level)] for level in grid.levels], settings):
        if not walk.enters(fit.converged):
            break
        points.append({name: read(fit) for name, read in wanted.items()})
        misses += missed([fit])
        if verbose:
            print_history([fit])
        walk.note([fit.at.value])
        if walk.ended:
            break
    if misses:
        said = complaint(function, misses, len(points), settings, "alphas", names)
        warn(said, ConvergenceWarning)
    parameter = "radius" if problem.penalty.is_constraint else "alpha"
    places = grid.as_asked(walk.n_seen)
    columns = {name: np.array([points[k][name] for k in places]) for name in wanted}
    return {"parameter": parameter, "alphas": grid.levels[places], **columns}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PathResult(Reported, CertifiedPath):
    """One certified model per alpha, in the order in which they were asked for.

    Attributes
    ----------
    parameter : str
        What `alphas` are: "alpha", or "radius" for a constraint.
    alphas : array of shape (n_alphas,)
        As given; by default alphas falling, radii growing.
    coefs : array of shape (n_alphas, n_features)
    intercepts : array of shape (n_alphas,)
    dual_gaps, relative_gaps : arrays of shape (n_alphas,)
        Certified on all samples; the latter relative to P of the best constant model.
    n_kept, n_undecided : arrays of shape (n_alphas,)
        How many samples are not proved to be of no influence, and on how many it is not proved on
        which piece of their loss they lie.
    n_iter : array of shape (n_alphas,)
        Steps.
    passes, seconds : arrays of shape (n_alphas,)
        What each alpha cost; a pass is a product with as many rows as there are.
    classes : array or None
        The two labels that stand for -1 and 1.
    training : Training
        Loss, penalty and intercept of the models.
    feature_names : tuple of str, optional
        Where the samples came with names.
    """

    coefs: Array
    feature_names: tuple[str, ...] | None = None

    def feature(self, column: int) -> str:
        """The name of a feature, or its number."""
        return column_name(self.feature_names, column)

    @computes
    def write_proof(
        self,
        path: Any,
        X: Any,
        y: Any,
        level: int,
        *,
        sample_weight: Any = None,
        seed: bytes | None = None,
    ) -> Proof:
        """Write what is proved of one of the models, and of the rows there, into a file.

        Parameters
        ----------
        path : str or Path
            An .npz file for `safesift_check`; beside it, in `path`.seed, the seed to keep.
        X, y, sample_weight
            The samples of the path, which it does not hold itself.
        level : int
            Which of the models, counted as in `alphas`.
        seed : bytes, optional
            To use in place of 32 random ones.

        Returns
        -------
        Proof
        """
        training = replace(self.training, alpha=1.0)
        inputs = make_problems(
            X, y, sample_weight=sample_weight, classes=self.classes, **vars(training)
        )
        problem = inputs.problem.at_level(float(self.alphas[level]))
        check_finite(problem.design, columns=column_names(X))
        point = problem.join(self.coefs[level], float(self.intercepts[level]))
        target = problem.y if inputs.labels is None else inputs.labels
        return write_proof(path, [problem], [point], target=target, classes=self.classes, seed=seed)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the coefficients and the share of kept samples against alpha.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        return provided("plot_path")(self, axes)


@computes
def safe_path(
    X: Any,
    y: Any = None,
    *,
    target: Any = None,
    alphas: Any = None,
    n_alphas: int = 20,
    eps: float | None = None,
    loss: str | Loss = "squared_hinge",
    penalty: str | Penalty = "l2",
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    screening: Literal["auto"] | str | Region | None = "auto",
    solver: str = "auto",
    device: str | None = None,
    precision: str = "float64",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> PathResult:
    """Solve a regularised empirical risk for many alphas, each certified on all samples.

    Each model starts from the one before; what was learnt about the samples goes along, so that
    further alphas cost about a pass over the data each where there are more samples than features.

    Parameters
    ----------
    X : array, CSR matrix, pandas or polars frame, torch tensor, CuPy array, Design
        Of shape (n_samples, n_features).
        Used as it is, float32 or float64 (or integers), in any order. A `safesift.design.Design`
        must have been told of the intercept. Or rows in blocks, made by `safesift.blocks`, which
        have their targets and weights with them; all alphas then share their passes. Or a dask
        array or frame, whose partitions are read where they are.
    y : array of shape (n_samples,), or (n_samples, 2) for intervals
        Any two labels for a classification loss, numbers for a regression loss, lower and upper
        ends for an interval loss. None with blocks.
    target : str, or pair of str for the ends of intervals, optional
        The column of targets, where X is a dask frame, in place of y; `sample_weight` then may be
        the name of a column, too.
    alphas : array, optional
        In any order, which is that of the result; solved from the most regularised one on. For a
        constraint ("l1_ball", "l2_ball") its radii. By default evenly spaced in their logarithms,
        from where the model is nearly or exactly constant (`safesift.grids.alpha_max`) down to
        where every column that explains something has its say and the objective falls by less than
        a thousandth of that of the best constant model in a decade; or to where the tolerance is
        not reached any more; at most 20 decades. A multiple of X has the same models.
    n_alphas : int, default=20
        How many alphas there are to four decades; with `eps`, in all.
    eps : float, optional
        The smallest alpha over the largest one, where that is not for the data to say; for a
        constraint the smallest radius over the largest one.
    loss : str or Loss, default="squared_hinge"
        A name of `safesift.losses.LOSSES` or an object with its parameters.
    penalty : str or Penalty, default="l2"
        A name of `safesift.penalties.PENALTIES` or an object with its parameters.
    l1_ratio : float, optional
        With penalty="elastic_net" only.
    fit_intercept : bool, default=True
        Add an intercept that is not penalised.
    sample_weight : array of shape (n_samples,), optional
        Weight 0 is exactly removal, weight 2 exactly repetition.
    tol : float, default=1e-6
        The duality gap to reach, relative to the objective of the best constant model.
    max_iter : int, default=1000
        The largest number of steps per alpha.
    screening : "auto", str, Region or None, default="auto"
        "auto": whatever is fastest, verified on all samples. A region or its name: samples are
        left out only where it decides them. None: every step reads every sample.
    solver : str, default="auto"
        A name of `safesift.solvers.SOLVERS`, or "auto": the one that is estimated to be the
        fastest. One that does not suit the problem is refused with the reason.
    device : str, optional
        Where to compute, as "cuda": rows are moved there, as a whole if they fit, else block by
        block. By default where they are: arrays of torch and CuPy stay on their device.
    precision : "float64" or "float32", default="float64"
        Of the products of Gram matrices on a device: "float32" is faster on most cards. Gaps are
        measured in float64 all the same; near kinks fewer rows may be decided.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
        For the sample of rows that a start is found on, and solvers that visit rows in random
        order.
    verbose : int, default=0
        Print how every model came about.

    Returns
    -------
    PathResult

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 4))
    >>> y = np.where(X[:, 0] + 0.3 * rng.normal(size=500) > 0, "yes", "no")
    >>> path = ss.safe_path(X, y, alphas=[1.0, 0.1, 0.01])
    >>> path.coefs.shape, bool((path.relative_gaps <= 1e-6).all())
    ((3, 4), True)
    """
    settings = Settings.of(
        tol=tol,
        max_iter=max_iter,
        screening=Screening.of(screening),
        random_state=random_state,
        solver=solver,
    )
    training = Training(loss, penalty, 1.0, l1_ratio, bool(fit_intercept))
    X, y, sample_weight = samples_on_device("safe_path", X, y, sample_weight, device)
    source = rows_in_blocks(
        "safe_path", X, y, sample_weight, target, eps=(eps, None), screening=(screening, "auto"),
        solver=(solver, "auto"), device=(device, None), precision=(precision, "float64"),
    )  # fmt: skip
    if source is not None:
        return PathResult(**path_of_blocks(source, training, alphas, settings.tol, settings.seed))
    names = column_names(X)
    rows = placed(X, device, precision)
    inputs = make_problems(rows, y, sample_weight=sample_weight, **vars(training))
    problem = inputs.problem
    given = None if alphas is None else check_levels(alphas)
    check_eps(eps, given is not None)
    settings.screening.validate(problem)
    choose(problem, check_count("n_alphas", n_alphas) if given is None else len(given), solver)
    check_finite(problem.design, columns=names)
    grid = Grid.of([problem], n_alphas, eps) if given is None else Grid.given(given, problem)
    facts: Facts = {"coefs": lambda fit: fit.coef}
    found = path_facts("safe_path", problem, grid, settings, facts, verbose, names)
    training = replace(training, alpha=math.nan)
    return PathResult(training=training, classes=inputs.classes, feature_names=names, **found)
