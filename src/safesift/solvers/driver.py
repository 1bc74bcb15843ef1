"""The one loop: it evaluates what solvers propose, certifies, decides, records and stops.

All problems of a level (classes, folds) go in step, so that every pass over the data serves them
all; the levels of a path follow each other, each from where the last one ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.arithmetic import threads
from safesift.arithmetic.numerics import EPS, total
from safesift.arithmetic.tally import Tally, counting
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Decisions, decide
from safesift.problem.duality import Dual, DualPoint
from safesift.problem.evaluation import Evaluation
from safesift.problem.passes import Computation, together
from safesift.problem.problem import Evaluate, Problem
from safesift.regions import Region, TestSet
from safesift.solvers.base import Proposal, Solver, choose
from safesift.solvers.line_search import best_share
from safesift.solvers.records import Fit, Look, Settings
from safesift.solvers.screening import Screening

Array = NDArray[np.float64]

# the gap is measured after so many steps at the latest
_MANY_STEPS = 25
# a gap that fell to this share of what it was is progress, even where the value stands still
_SMALLER = 0.9
# a gap of this share of the value is one near the optimum; at that relative gap steps are fast
_NEAR, _SMALL = 0.1, 1e-5


def solve_path(
    levels: Sequence[Sequence[Problem]],
    settings: Settings,
    starts: Sequence[Array | None] | None = None,
) -> Iterator[list[Fit]]:
    """Solve problems that share one design, for one alpha (or radius) after another.

    Parameters
    ----------
    levels : sequence of sequences of Problem
        `levels[i][k]` is problem k (a class against the rest, a fold) at the i-th alpha or radius.
        All have the same design object; problem k has the same y, loss and weights at every level.
    settings : Settings
    starts : sequence of arrays, optional
        A point for each problem of the first level.

    Yields
    ------
    list of Fit
        Of one level after another, a fit for each problem. What a level leaves behind for the next
        is not kept, so that the memory does not grow with the number of levels.
    """
    first = levels[0]
    kind = choose(first[0], len(levels), settings.solver)
    starts = [None] * len(first) if starts is None else starts
    solvers = [kind(one, settings, at) for one, at in zip(first, starts, strict=True)]
    past: Sequence[Past | None] = [None] * len(first)
    for problems in levels:
        fits, past = _solve_level(solvers, problems, settings, past)
        yield fits


@threads.computes
def solve(
    problem: Problem,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    start: Array | None = None,
    solver: str = "auto",
) -> Fit:
    """Minimise one problem to a certified relative duality gap; its rows are not decided."""
    settings = Settings(tol, max_iter, Screening(guesses=False), solver=solver, decided=())
    ((fit,),) = solve_path([[problem]], settings, [start])
    return fit


# data so large that squares overflow end in an infinite gap, not in a warning
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _solve_level(
    solvers: Sequence[Solver],
    problems: Sequence[Problem],
    settings: Settings,
    past: Sequence[Past | None],
) -> tuple[list[Fit], list[Past]]:
    levels = [Level(one, settings, last) for one, last in zip(problems, past, strict=True)]
    with counting() as tally:
        runs = [
            Run(solver, level, settings.decides(k), tally).solve()
            for k, (solver, level) in enumerate(zip(solvers, levels, strict=True))
        ]
        fits = together(runs, threads.run if solvers[0].threaded else None)
    return fits, [level.over() for level in levels]


class Past(NamedTuple):
    """What is left of a level: its solution, and how far predictions moved on the way there.

    `warm` says whether it began at the solution of a level before.
    """

    at: Evaluation
    movement: Array
    warm: bool


class Level:
    """One problem at one level of a path, as solvers see it.

    Attributes
    ----------
    problem : Problem
    screening : Screening
    past : Past or None
        Of the level before.
    asked : float
        The gap that is asked for.
    target : float
        The gap to reach: that, or what rounding allows at the best point, where that is more.
    max_iter : int
    begun : bool
        Whether there is a point yet.
    at : Evaluation
        The best point so far, as soon as the level has begun.
    measured : bool
        Whether the gap at that point was measured.
    certificate : Certificate
        What is proved at that point, where its gap was measured.
    decisions : Decisions
        What is proved of the rows, by all looks at this level.
    n_iter : int
        Steps so far.
    """

    def __init__(self, problem: Problem, settings: Settings, past: Past | None) -> None:
        self.problem, self.past = problem, past
        self.screening, self.max_iter = settings.screening, settings.max_iter
        self.asked = settings.tol * problem.reference
        self._first: Evaluation | None = None
        self._at: Evaluation | None = None
        self._certificate: Certificate | None = None
        self.decisions = Decisions.nothing(problem)
        self._steps = 0.0

    def move(self, at: Evaluation) -> None:
        """Go to another point, of which nothing is proved yet."""
        self._first = at if self._first is None else self._first
        self._at, self._certificate = at, None

    def prove(self, dual: DualPoint) -> None:
        """Measure the gap between the best point and a dual point, if that is better."""
        if self._certificate is None:
            self._certificate = self.problem.certified_by(self.at, dual)
        else:
            self._certificate = self._certificate.improved(dual)

    def over(self) -> Past:
        """What the next level may want to know."""
        first = self.at if self._first is None else self._first
        moved = self.at.pred - first.pred
        return Past(self.at, np.abs(moved, out=moved), self.past is not None)

    @property
    def begun(self) -> bool:
        return self._at is not None

    @property
    def at(self) -> Evaluation:
        if self._at is None:
            raise RuntimeError("no point was proposed yet at this level.")
        return self._at

    @property
    def measured(self) -> bool:
        return self._certificate is not None

    @property
    def certificate(self) -> Certificate:
        if self._certificate is None:
            raise RuntimeError("the gap was not measured yet at the best point of this level.")
        return self._certificate

    @property
    def gap(self) -> float:
        """Infinite where it was not measured."""
        return math.inf if self._certificate is None else self._certificate.gap

    @property
    def target(self) -> float:
        attainable = 0.0 if self._certificate is None else self._certificate.attainable
        return max(self.asked, attainable) if math.isfinite(attainable) else self.asked

    @property
    def converged(self) -> bool:
        return self.gap <= self.target

    @property
    def n_iter(self) -> int:
        return math.ceil(self._steps - 1e-9)

    @property
    def exhausted(self) -> bool:
        """Whether all steps are made that may be."""
        return self._steps >= self.max_iter

    def count(self, steps: float) -> None:
        """Count steps."""
        self._steps += steps
        if steps:
            self.report()

    def report(self, more: float = 0.0) -> None:
        """Tell whoever listens how many steps are made, and some that are not counted yet."""
        done = min(math.ceil(self._steps + more - 1e-9), self.max_iter)
        progress.report("solver", done, self.max_iter)


class Run:
    """A solver on its way through a level.

    Parameters
    ----------
    solver : Solver
    level : Level
    decides : bool
        Whether it is to be told what became of the rows.
    tally : Tally
        Of the rows read by all problems of the level.
    """

    def __init__(self, solver: Solver, level: Level, decides: bool, tally: Tally) -> None:
        self._solver, self.level, self._decides, self._tally = solver, level, decides, tally
        self._steps = solver.steps(level)
        self._answer: Any = None
        self._dual: DualPoint | None = None
        self._measured_at = 0.0
        self._n_features = level.problem.design.n_features
        self._history: list[Look] = []
        self._region: TestSet | None = None
        self._began = time.perf_counter()

    def solve(self) -> Computation[Fit]:
        """Go on until the gap is small enough, the steps are used up, or the solver ends."""
        level = self.level
        advanced = yield from self._advance()
        while advanced and not self._ended:
            advanced = yield from self._advance()
        complete = yield from self._conclude()
        in_doubt, gap = not complete or self._worth_more or self._worth_a_step, level.gap
        if advanced and level.converged and in_doubt:
            # one step more, and the gap is small enough to decide by, unless nothing comes of it
            yield from self._advance()
            if not level.measured or level.gap < gap:
                yield from self._conclude()
        if self._worth_more:
            self._decide(level.screening.thorough)
            self._history[-1] = self._look()
        self._steps.close()
        return Fit(
            certificate=level.certificate,
            decisions=level.decisions,
            history=tuple(self._history),
            n_iter=min(level.n_iter, level.max_iter),
            converged=level.gap <= level.asked,
            region=self._region,
        )

    @property
    def _worth_more(self) -> bool:
        """Whether so many rows are in doubt that it is worth more than a step to decide them."""
        return self._solver.thorough and self._many_in_doubt

    @property
    def _worth_a_step(self) -> bool:
        """Whether a step more, where it makes a small gap a tiny one, may decide many rows."""
        level = self.level
        tiny_next = level.gap <= _SMALL * level.problem.reference
        return self._solver.sharpens and tiny_next and self._many_in_doubt

    @property
    def _many_in_doubt(self) -> bool:
        level = self.level
        worth = level.screening.worth_more
        return self._decides and worth(level.problem, level.at, level.decisions)

    @property
    def _ended(self) -> bool:
        level = self.level
        if level.exhausted:
            return True
        return level.converged and not self._solver.goes_on(level)

    def _advance(self) -> Computation[bool]:
        """All that the solver asks for, up to its next proposal; False where it makes none."""
        while True:
            try:
                asked = self._steps.send(self._answer)
            except StopIteration:
                return False
            if isinstance(asked, Proposal):
                self._answer = yield from self._consider(asked)
                return True
            self._answer = yield asked

    # --- a proposal -------------------------------------------------------------------------

    def _consider(self, proposal: Proposal) -> Computation[bool]:
        """Go there unless it is worse, and measure the gap; whether it was any better."""
        level, gap, is_first = self.level, self.level.gap, not self.level.begun
        reached, fell = yield from self._moved(proposal)
        if self._worth_measuring(proposal, fell):
            enough = 0.0 if level.exhausted or not fell else self._enough(reached, is_first)
            yield from self._measure(proposal, reached, enough)
        # at the end of the arithmetic the value stands still; the gap may still fall
        return fell or level.gap < _SMALLER * gap

    def _moved(self, proposal: Proposal) -> Computation[tuple[Evaluation, bool]]:
        """What was reached, where the level now is unless it is worse, and if its value fell."""
        level = self.level
        before = level.at if level.begun else None
        reached = yield from self._reached(proposal, before)
        level.count(proposal.steps)
        fell, better = _compared(reached, before)
        if better and reached is not before:
            level.move(reached)
        return reached, fell

    def _reached(self, proposal: Proposal, before: Evaluation | None) -> Computation[Evaluation]:
        """What was proposed, or the best point on the way there."""
        problem, reached = self.level.problem, proposal.at
        if reached is None:
            assert proposal.point is not None, "a proposal is a point or an evaluation"
            # where arithmetic comes to its end the best constant model is still one
            known = bool(np.isfinite(proposal.point).all())
            reached = yield Evaluate(problem, proposal.point if known else problem.constant_point)
        if proposal.searches and before is not None and not _compared(reached, before)[1]:
            reached = yield Evaluate(problem, _best_between(problem, before, reached))
        return reached

    def _enough(self, reached: Evaluation, is_first: bool) -> float:
        """The gap up to which slopes will do: where a step is better than a multiple of them."""
        level = self.level
        if level.screening.region is None and (is_first or not level.problem.pieces):
            return math.inf  # so far away that nothing is decided by it, or nothing ever is
        return _NEAR * abs(reached.value)

    def _worth_measuring(self, proposal: Proposal, fell: bool) -> bool:
        level = self.level
        if proposal.promised <= 0.5 * level.target or not fell or level.exhausted:
            return True
        # a region is built from a certificate
        many = level.n_iter - self._measured_at >= _MANY_STEPS
        return many or level.screening.region is not None

    def _measure(
        self, proposal: Proposal, reached: Evaluation, enough: float = 0.0
    ) -> Computation[None]:
        """Certify the best point with the best dual point, decide rows, and write that down.

        Where the slopes leave a gap of no more than `enough`, or is asked for, they are the point.
        """
        level, dual = self.level, Dual(self.level.problem)
        if proposal.ray is None:
            slopes = reached if proposal.slopes is None else proposal.slopes
            found = yield from dual.best(slopes, self._dual, enough=max(enough, level.target))
        else:
            found = yield from dual.feasible(proposal.ray)
        if self._dual is None or found.value > self._dual.value:
            self._dual = found
        level.prove(self._dual)
        self._measured_at = level.n_iter
        if self._solver.looks:
            self._decide(self._solver.region(level))
        self._history.append(self._look())

    # --- decisions --------------------------------------------------------------------------

    def _conclude(self) -> Computation[bool]:
        """What became of every row, at the end; False where a smaller gap would tell more."""
        level, solver, complete = self.level, self._solver, True
        if not level.measured:
            yield from self._measure(Proposal(at=level.at), level.at)
        if not solver.looks:
            complete = self._decide(solver.region(level))
        self._history[-1] = self._look()
        return complete

    def _decide(self, region: Region | None) -> bool:
        """Decide rows by a region; False where a smaller gap would tell more."""
        if region is None or not self._decides:
            return True
        level, problem = self.level, self.level.problem
        test_set = region.build(level.certificate)
        if not test_set.certified:
            # a guess may say which rows to read, and never what became of them
            return True
        self._region = test_set
        found = decide(problem, test_set.own_row_bounds(problem), "always")
        level.decisions = level.decisions.joined(found)
        p = problem.design.n_features
        self._n_features = min(self._n_features, p - int(test_set.zero_features(p).sum()))
        return test_set.complete

    def _look(self) -> Look:
        level = self.level
        return Look.at(
            level.certificate,
            level.decisions,
            passes=self._tally.rows / max(level.problem.design.n_samples, 1),
            began=self._began,
            n_features=self._n_features,
        )


def _compared(reached: Evaluation, before: Evaluation | None) -> tuple[bool, bool]:
    """Whether the objective fell by more than rounding, and whether it did not rise by more."""
    if before is None or math.isnan(before.value):
        # from where nothing is known of the objective, everything leads down
        return True, True
    rounding = 8 * EPS * abs(before.value)
    return reached.value < before.value - rounding, reached.value <= before.value + rounding


def _best_between(problem: Problem, at: Evaluation, reached: Evaluation) -> Array:
    """The best point between two evaluations, found without a pass over the data."""
    change, moved = reached.point - at.point, reached.pred - at.pred

    def objective(share: float) -> float:
        point = at.point + share * change
        losses = problem.loss.value(at.pred + share * moved, problem.y)
        folded = 0.0 if problem.folded is None else problem.folded.value(point)
        penalty = problem.alpha * problem.penalty.value(problem.split(point)[0])
        return total(problem.shares, losses) + folded + penalty

    return at.point + best_share(objective) * change
