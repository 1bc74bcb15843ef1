"""What goes into a solver and what comes out of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from safesift.arithmetic.devices.arrays import on_host
from safesift.arithmetic.printing import Brief
from safesift.arithmetic.tally import Tally, counting
from safesift.parameters import check_count, check_positive
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Decisions
from safesift.problem.duality import DualPoint
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.problem.scales import ColumnScales, column_scales
from safesift.regions import TestSet
from safesift.solvers.screening import Screening

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """When to stop, and how to screen on the way.

    Attributes
    ----------
    tol : float
        Stop as soon as the duality gap is at most tol times P of the best constant model.
    max_iter : int
        The largest number of steps per problem; what a step is depends on the solver.
    screening : Screening
    seed : int
        For the solvers that draw random numbers.
    solver : str
        The name of a solver, or "auto" for the one that is estimated to be the fastest.
    decided : tuple of int, optional
        The problems of a level for which it is to be told what became of their rows, all by
        default. A fold of a cross-validation needs no more than its solution.
    """

    tol: float = 1e-6
    max_iter: int = 1000
    screening: Screening = field(default_factory=Screening)
    seed: int = 0
    solver: str = "auto"
    decided: tuple[int, ...] | None = None

    @classmethod
    def of(
        cls,
        *,
        tol: float,
        max_iter: int,
        screening: Screening,
        random_state: Any,
        solver: str = "auto",
    ) -> Settings:
        """From the parameters of a user, each checked."""
        return cls(
            tol=check_positive("tol", tol),
            max_iter=check_count("max_iter", max_iter),
            screening=screening,
            seed=int(check_random_state(random_state).randint(np.iinfo(np.int32).max)),
            solver=solver,
        )

    def decides(self, k: int) -> bool:
        """Whether rows are decided for the k-th problem of a level."""
        return self.decided is None or k in self.decided


class Spent(NamedTuple):
    """What is spent on a point that nobody solves for: when that began, and the rows read since."""

    began: float
    tally: Tally


@contextmanager
def spending() -> Iterator[Spent]:
    """Count what is spent inside the block."""
    with counting() as tally:
        yield Spent(time.perf_counter(), tally)


@dataclass(frozen=True)
class Look:
    """How things stood when the gap was measured on all rows.

    Attributes
    ----------
    passes : float
        Over the data, so far: readings of as many rows as there are, by all problems of a level
        together. Rows of which a solver holds a copy are not read again.
    seconds : float
        So far.
    gap, relative_gap : float
        Certified, on all rows.
    n_kept, n_undecided : int
        How many rows are not proved to be of no influence, and on how many it is not proved
        on which piece of their loss they lie.
    n_features : int
        How many features are not proved to be zero.
    """

    passes: float
    seconds: float
    gap: float
    relative_gap: float
    n_kept: int
    n_undecided: int
    n_features: int

    @classmethod
    def at(
        cls,
        certificate: Certificate,
        decisions: Decisions,
        *,
        passes: float,
        began: float,
        n_features: int,
    ) -> Look:
        """How things stand now; `began` is the time of `time.perf_counter` at the start."""
        return cls(
            passes=passes,
            seconds=time.perf_counter() - began,
            gap=certificate.gap,
            relative_gap=certificate.relative_gap,
            n_kept=len(decisions.dropped) - int(np.count_nonzero(decisions.dropped)),
            n_undecided=int(np.count_nonzero(decisions.undecided)),
            n_features=n_features,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Brief):
    """A solution certified on all rows, and what became of every row there.

    Attributes
    ----------
    certificate : Certificate
        Of the full problem, at the solution.
    decisions : Decisions
    history : tuple of Look
        The last one is at the solution.
    n_iter : int
        Steps.
    converged : bool
        Whether the gap is as small as was asked for.
    region : TestSet or None
        The last set by which rows were decided: it contains every optimum.
    """

    certificate: Certificate
    decisions: Decisions
    history: tuple[Look, ...]
    n_iter: int
    converged: bool
    region: TestSet | None = None

    @classmethod
    def at_centre(
        cls, certificate: Certificate, decisions: Decisions, tol: float, spent: Spent
    ) -> Fit:
        """A point that was not solved for, as a fit after no step."""
        design = certificate.problem.design
        look = Look.at(
            certificate,
            decisions,
            passes=spent.tally.rows / max(design.n_samples, 1),
            began=spent.began,
            n_features=design.n_features,
        )
        return cls(certificate, decisions, (look,), 0, certificate.relative_gap <= tol)

    @property
    def problem(self) -> Problem:
        return self.certificate.problem

    @property
    def at(self) -> Evaluation:
        return self.certificate.at

    @property
    def dual(self) -> DualPoint:
        return self.certificate.dual

    @property
    def gap(self) -> float:
        return self.certificate.gap

    @property
    def relative_gap(self) -> float:
        return self.certificate.relative_gap

    @property
    def limited(self) -> bool:
        """Whether rounding allows no smaller gap."""
        return self.gap <= self.certificate.attainable

    @property
    def coef(self) -> Array:
        return self.problem.split(self.at.point)[0]

    @property
    def intercept(self) -> float:
        return self.problem.split(self.at.point)[1]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """False where the row is proved to have no influence."""
        return on_host(~self.decisions.dropped)

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """True where it is not proved on which piece of its loss the row lies."""
        return on_host(self.decisions.undecided)


class Missed(NamedTuple):
    """How far from the tolerance a solver stopped, why, and on what columns."""

    relative_gap: float
    n_iter: int
    limited: bool
    scales: ColumnScales | None = None


def missed(fits: Iterable[Fit]) -> list[Missed]:
    """Those fits that did not reach the tolerance."""
    return [
        Missed(fit.relative_gap, fit.n_iter, fit.limited, column_scales(fit.problem))
        for fit in fits
        if not fit.converged
    ]


def complaint(
    who: str,
    misses: Sequence[Missed],
    n_problems: int,
    settings: Settings,
    what: str = "problems",
    names: Sequence[str] | None = None,
) -> str:
    """That some problems were not solved to the tolerance, why, and what to do about it."""
    worst = max(misses, key=lambda one: one.relative_gap)
    share = "" if n_problems == 1 else f" for {len(misses)} of {n_problems} {what}"
    gap = f"the relative duality gap is {worst.relative_gap:.2g} after {worst.n_iter} steps"
    return (
        f"{who} did not converge{share}: {gap}, above tol={settings.tol:g}; "
        f"{_remedy(worst, settings, names)}, or accept a larger tol."
    )


def _remedy(worst: Missed, settings: Settings, names: Sequence[str] | None) -> str:
    if worst.scales is not None and worst.scales.far_apart:
        return f"{worst.scales.described(names)}, so scale the columns"
    if worst.limited or worst.n_iter < settings.max_iter:
        return "rounding allows no less, so scale the features or the targets"
    return "increase max_iter, scale the features"


def print_history(fits: Iterable[Fit]) -> None:
    """What happened on the way to each solution, a line for every look."""
    for fit in fits:
        for look in fit.history:
            print(
                f"{look.passes:.1f} passes, {look.seconds:.2g} s: relative gap "
                f"{look.relative_gap:.2g}, {look.n_kept} kept, {look.n_undecided} undecided"
            )
