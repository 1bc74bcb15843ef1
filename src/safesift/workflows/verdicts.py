"""What screening found: for one problem, and for all that samples make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import on_host
from safesift.arithmetic.printing import Brief
from safesift.arithmetic.threads import computes
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Bounds, Decisions
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.problem.training import Training, check_points
from safesift.regions import TestSet
from safesift.regions.center import Center
from safesift.regions.features import zero_features
from safesift.registry import provided
from safesift.solvers import Fit
from safesift.workflows.proofs import DataColumns, Proof, write_proof
from safesift.workflows.reasons import why_little
from safesift.workflows.showing import Reported, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Check(Brief):
    """Whether a solution confirms the decisions: see `ScreeningResult.check`.

    Attributes
    ----------
    violations : mask
        Decided samples that are not on their piece at the solution; they must come back.
    gap : float
        Duality gap of the solution on *all* rows; of several problems the largest.
    """

    violations: Mask
    gap: float

    @property
    def passed(self) -> bool:
        """Whether every decided sample is on its piece at the solution."""
        return not self.violations.any()


@dataclass(frozen=True, eq=False, repr=False)
class Screened(Brief):
    """One problem: a point, a set around it, bounds over the set, and what they decide.

    Attributes
    ----------
    fit : Fit
        The centre, what is proved there, and the decisions.
    region : TestSet
        Contains every optimum.
    bounds : Bounds
        On the decision values at every optimum.
    """

    fit: Fit
    region: TestSet
    bounds: Bounds

    def __repr__(self) -> str:
        kept, region = self.kept, self.region.describe()
        return f"<Screened: {int(kept.sum())} of {len(kept)} samples kept, region: {region}>"

    @property
    def certificate(self) -> Certificate:
        return self.fit.certificate

    @property
    def problem(self) -> Problem:
        return self.fit.problem

    @property
    def at(self) -> Evaluation:
        return self.fit.at

    @property
    def decisions(self) -> Decisions:
        return self.fit.decisions

    @property
    def certified(self) -> bool:
        return self.region.certified

    @property
    def kept(self) -> Mask:
        return self.fit.kept

    @cached_property
    @computes
    def zero_coef(self) -> Mask:
        """Features certified to be zero at every optimum."""
        self.problem.check_unchanged()
        zero = zero_features(Center.of(self.certificate), 2.0 * self.certificate.gap)
        if not self.certified:
            return zero
        return zero | self.region.zero_features(self.problem.design.n_features)

    @cached_property
    @computes
    def reduced(self) -> Problem:
        """The problem of the undecided rows, with the others folded in."""
        self.problem.check_unchanged()
        return replace(self.problem.reduce(self.decisions), certified=self.certified)

    @cached_property
    @computes
    def score(self) -> Array:
        """How far the bounds stick out of the flat piece; strictly inside where that is proved."""
        self.problem.check_unchanged()
        excess, inside = flat_excess(self.problem, self.bounds), self.decisions.dropped
        return on_host(np.where(inside & (excess >= 0), np.nextafter(0.0, -1.0), excess))

    @computes
    def check(self, point: Array) -> Check:
        """Whether every decided row is on its piece at a point."""
        self.problem.check_unchanged()
        at = self.problem.evaluate(point)
        margin, decisions = self.problem.prediction_error(at), self.decisions
        on_piece = (at.pred - margin > decisions.lower) & (at.pred + margin < decisions.upper)
        return Check(on_host(~on_piece & ~decisions.undecided), self.problem.certify(at).gap)

    def without(self, rows: Mask) -> Screened:
        """The same, with some rows undecided again."""
        rows = self.problem.design.vector(rows)
        return replace(self, fit=replace(self.fit, decisions=self.decisions.without(rows)))


@dataclass(frozen=True, eq=False, repr=False)
class Verdicts(Shown):
    """What is proved of samples: for one problem, or for one per class against the rest.

    Attributes
    ----------
    parts : tuple of Screened
        One for each problem.
    training : Training
        The model that the samples are for.
    classes : array or None
        The labels; the second of two stands for 1.
    feature_names : tuple of str, optional
        Where the samples came with names.
    n_jobs : int, optional
        Threads for what is computed when it is asked for.
    labels : array, optional
        Of all samples, as they were given.
    problem, certificate, region, decisions
        Where there is one problem: what was solved, what is proved at the centre, the set that
        holds every optimum, and what it decides.
    """

    parts: tuple[Screened, ...]
    training: Training
    classes: NDArray | None = None
    feature_names: tuple[str, ...] | None = None
    n_jobs: int | None = field(default=None, kw_only=True)
    labels: NDArray | None = field(default=None, kw_only=True)

    @property
    def only(self) -> Screened:
        """The one problem there is; of more than two classes each has its own, in `parts`."""
        if len(self.parts) > 1:
            raise AttributeError(
                f"there are {len(self.parts)} problems, one for each class against the rest: look "
                "at result.parts."
            )
        return self.parts[0]

    # --- of one problem ---------------------------------------------------------------------

    @property
    def problem(self) -> Problem:
        return self.only.problem

    @property
    def certificate(self) -> Certificate:
        return self.only.certificate

    @property
    def region(self) -> TestSet:
        return self.only.region

    @property
    def decisions(self) -> Decisions:
        return self.only.decisions

    # --- of all -----------------------------------------------------------------------------

    @property
    def certified(self) -> bool:
        """False as soon as a guess entered."""
        return all(part.certified for part in self.parts)

    @property
    def kept(self) -> Mask:
        """False where the sample is dropped: it cannot change the model. The others may."""
        return np.any([part.kept for part in self.parts], axis=0)

    @property
    def undecided(self) -> Mask:
        """Rows still needed once the decided ones are folded."""
        return np.any([part.fit.undecided for part in self.parts], axis=0)

    @property
    def lower(self) -> Array:
        return _columns([on_host(part.bounds.lower) for part in self.parts])

    @property
    def upper(self) -> Array:
        return _columns([on_host(part.bounds.upper) for part in self.parts])

    @property
    def coef(self) -> Array:
        coefs = [part.problem.split(part.at.point)[0] for part in self.parts]
        return coefs[0] if len(coefs) == 1 else np.stack(coefs)

    @property
    def intercept(self) -> Any:
        found = [part.problem.split(part.at.point)[1] for part in self.parts]
        return found[0] if len(found) == 1 else np.array(found)

    @property
    def weights(self) -> Array:
        """Of the samples."""
        return on_host(self.parts[0].problem.weights)

    def take(self, *arrays: Any) -> Any:
        """The kept rows of one array, matrix or frame, or of several, in the type they came in.

        Train on them with `alpha_kept`, if the solver averages the loss over its rows.
        """
        return taken(np.flatnonzero(self.kept), len(self.kept), arrays)

    def summary(self) -> str:
        """What was kept and why, as a small table."""
        return provided("summary")(self)

    def __repr__(self) -> str:
        proof = "proved" if self.certified else "not certified"
        return (
            f"<{type(self).__name__}: {int(self.kept.sum())} of {len(self.kept)} samples kept "
            f"({proof}), {self.training}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ScreeningResult(Reported, Verdicts):
    """What `screen` found.

    Attributes
    ----------
    kept : mask of shape (n_samples,)
        False where the sample is dropped: proved to be of no influence, for every class.
    undecided : mask of shape (n_samples,)
        True where it is not proved on which piece of its loss the sample is.
    lower, upper : arrays of shape (n_samples,), or (n_samples, n_classes) with several classes
        Bounds on the decision value a_iᵀx* + c* at every optimum.
    zero_coef : mask of shape (n_features,)
        Features certified to be zero at every optimum.
    certified : bool
        False as soon as a guess (a guessed radius, a cut from a subset) entered.
    coef, intercept
        The centre: the certified model that was found, or the solution that was given. With
        several classes a row for each.
    gap : float, or array of shape (n_classes,)
        Duality gap at the centre, on all rows.
    classes : array or None
        The labels; the second of two stands for 1.
    training : Training
        Loss, penalty, alpha and intercept of the model that all this is about.
    parts : tuple of Screened
        One for each problem: one, or one for each of several classes against the rest. Of one
        problem `problem`, `region`, `decisions` and `certificate` are here as well.
    n_jobs : int or None
        Threads for what is computed when it is asked for.
    """

    @property
    def gap(self) -> Any:
        gaps = [part.certificate.gap for part in self.parts]
        return gaps[0] if len(gaps) == 1 else np.array(gaps)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the objective of the best constant model, the largest of all."""
        return max(part.certificate.relative_gap for part in self.parts)

    @property
    @computes
    def zero_coef(self) -> Mask:
        return np.all([part.zero_coef for part in self.parts], axis=0)

    @property
    @computes
    def reduced(self) -> Any:
        """The reduced problem: `folded.Q`, `folded.q`, `folded.r` and the undecided rows.

        It has exactly the optima of the full one. Computed when first asked for: one pass, and a
        Gram matrix of the samples on quadratic pieces. With several classes a tuple, one for each.
        """
        found = tuple(part.reduced for part in self.parts)
        return found[0] if len(found) == 1 else found

    @property
    def alpha_kept(self) -> float:
        """The alpha to use on the kept rows alone with a solver that averages over its rows.

        Dropping rows must not change the divisor W, so alpha grows by W / W_kept.
        """
        problem, kept = self.parts[0].problem, float(self.weights[self.kept].sum())
        return problem.alpha * problem.divisor / kept if kept > 0 else np.inf

    @property
    @computes
    def score(self) -> Array:
        """Ranks the samples: the larger, the harder and the more informative.

        How far the interval [lower, upper] sticks out of the flat piece, negative where the
        sample is dropped; for the class that needs the sample most. For a loss without a flat
        piece, the largest slope over the interval.
        """
        return np.max([part.score for part in self.parts], axis=0)

    @property
    @computes
    def reason(self) -> str:
        """Why little is proved, and what would help; empty where much is."""
        return why_little(self)

    @computes
    def check(self, coef: Any, intercept: Any = 0.0) -> Check:
        """Whether a solution of the reduced problem confirms the decisions, in one pass.

        If it solves the problem of the kept (or reduced) rows and every decided sample lies on
        its piece at it, it solves the full problem, whatever region the decisions came from.

        Parameters
        ----------
        coef : array of shape (n_features,), or (n_classes, n_features) with several classes
        intercept : float or array of shape (n_classes,), default=0.0

        Returns
        -------
        Check
            Which samples contradict, and the duality gap on all rows.
        """
        points = check_points([part.problem for part in self.parts], coef, intercept)
        checks = [part.check(point) for part, point in zip(self.parts, points, strict=True)]
        violations = np.any([check.violations for check in checks], axis=0)
        return Check(violations, max(check.gap for check in checks))

    def repaired(self, check: Check) -> ScreeningResult:
        """The same result with the violating samples brought back."""
        return replace(self, parts=tuple(part.without(check.violations) for part in self.parts))

    @computes
    def write_proof(
        self, path: Any, *, columns: DataColumns | None = None, seed: bytes | None = None
    ) -> Proof:
        """Write what is proved into a file that `safesift_check` verifies without this library.

        Redone around the final point, by the few rules of docs/proofs.md.

        Parameters
        ----------
        path : str or Path
            An .npz file. Beside it, in `path`.seed, is the seed of the commitment: keep that one.
        columns : DataColumns, optional
            Where a checker finds the rows; by default in the arrays X (or CSR's data, indices and
            indptr), y, sample_weight and epsilon of an .npz file.
        seed : bytes, optional
            To use in place of 32 random ones.

        Returns
        -------
        Proof
            With `receipt(row)` for the owners of single rows.
        """
        problems = [part.problem for part in self.parts]
        problems[0].check_unchanged()
        target = problems[0].y if self.labels is None else self.labels
        return write_proof(
            path,
            problems,
            [part.at.point for part in self.parts],
            target=target,
            classes=self.classes,
            fits=[part.fit for part in self.parts],
            columns=columns,
            seed=seed,
        )

    def to_estimator(self) -> Any:
        """The model at the centre as a fitted estimator, as its own `fit` would have left it.

        Returns
        -------
        SafeClassifier, SafeRegressor or IntervalRegressor
        """
        return provided("estimator_of")(self)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the decision values with their bounds, and the piece on which samples do not count.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        return provided("plot_screening")(self, axes)


def flat_excess(problem: Problem, bounds: Bounds) -> Array:
    """How far intervals of predictions stick out of the flat piece: `ScreeningResult.score`."""
    for piece in problem.pieces:
        if piece.is_flat:
            with np.errstate(invalid="ignore"):
                # an infinite end is never exceeded: fmax passes over inf − inf
                return np.fmax(piece.lower - bounds.lower, bounds.upper - piece.upper)
    ends = [np.abs(problem.loss.slope(end, problem.y)) for end in bounds]
    return np.maximum(*ends)


def taken(indices: NDArray[np.intp], n_samples: int, arrays: Sequence[Any]) -> Any:
    """Rows of one array, matrix or frame, or of several, in the type they came in.

    Raises
    ------
    ValueError
        Where one has not as many rows as there were samples: the indices mean other rows there.
    """
    from sklearn.utils import _safe_indexing
    from sklearn.utils.validation import _num_samples

    for number, array in enumerate(arrays, start=1):
        if _num_samples(array) != n_samples:
            raise ValueError(
                f"argument {number} of take has {_num_samples(array)} rows, but {n_samples} "
                "samples were decided on: pass those, all of them and in their order."
            )
    rows = tuple(_safe_indexing(array, indices) for array in arrays)
    return rows[0] if len(rows) == 1 else rows


def _columns(vectors: Sequence[Array]) -> Array:
    return vectors[0] if len(vectors) == 1 else np.stack(vectors, axis=1)
