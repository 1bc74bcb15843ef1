"""One pass at the current points: evaluate, fold rows that are far from kinks, hold the others.

A row is folded for a problem when its prediction is further from the ends of its piece than it is
expected to move. That expectation is a guess; that a row *is* on its piece within the `clearance`
of the pass is not, and that is all that verdicts rest on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import total
from safesift.design.block_source import BlockSource
from safesift.design.rows import rows_of
from safesift.losses import Loss
from safesift.losses.base import Piece
from safesift.penalties import L2, Penalty
from safesift.problem.decisions import Bounds, Decisions, decide
from safesift.problem.evaluation import Evaluation, Folded
from safesift.problem.inputs import as_intervals
from safesift.problem.problem import Problem, evaluate_together
from safesift.problem.risk import Risk, Targets, WeightedRows
from safesift.workflows.scale.engine import Task
from safesift.workflows.scale.found import Found, Held, Note, PartFound, RaySums, added
from safesift.workflows.scale.reading import Reading, Ready, Weighted

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Query:
    """One problem at one point, as a pass is asked about it.

    Attributes
    ----------
    loss, penalty, alpha
    label : object
        The class that stands for 1; None where targets are numbers.
    point : array
    direct : bool
        Whether the value of a dual point is asked for even where the gradient gives a gap: by sums
        over the conjugates, which rounding does not touch as an intercept touches the other.
    fold : int or None
        The fold whose rows are left out, None where all of them count.
    share : float or None
        What the rows that count weigh next to all of them: alpha is multiplied by it, since the
        sum is divided by the weight of all. None as long as it is not known.
    constant : float
        The constant model of which the loss is asked for.
    spread : array of shape (n_columns, n_directions) or None
        Where the optimum is expected, relative to the point: a_iᵀ(x* − x) is about as large as
        ‖spreadᵀa_i‖.
    wide, near : float
        A row is held within wide·‖spreadᵀa_i‖ + near·‖a_i‖ of an end of its piece.
    anew : bool
        Whether nothing of it is folded so far.
    after : int or None
        The problem whose pieces it is compared with, where nothing is folded so far; one of the
        same targets.
    """

    loss: Loss
    penalty: Penalty
    alpha: float
    label: Any
    point: Array
    constant: float = 0.0
    spread: Array | None = None
    wide: float = 0.0
    near: float = 0.0
    anew: bool = True
    after: int | None = None
    direct: bool = False
    fold: int | None = None
    share: float | None = None

    def of_weight(self, share: float) -> Query:
        """The same once it is known what its rows weigh."""
        return replace(self, share=share, alpha=self.alpha * share)

    @property
    def exact(self) -> bool:
        """Whether the loss is quadratic, piece by piece, everywhere; else it is expanded."""
        return piecewise(self.loss)

    def targets(self, y: NDArray) -> Array:
        """What the samples ask of their predictions."""
        if self.loss.task == "classification":
            return np.where(y == self.label, 1.0, -1.0)
        return as_intervals(y) if self.loss.task == "interval" else np.asarray(y, dtype=np.float64)

    def problem(self, rows: Any, y: NDArray, weights: Array, divisor: float) -> Problem:
        """The problem on some rows, none of them of its fold, with the divisor of all."""
        risk = Risk(WeightedRows(rows, weights, divisor), Targets(self.loss, self.targets(y)))
        return Problem(risk, self.penalty, self.alpha)


def problems_on(
    queries: Sequence[Query], rows: Any, samples: Weighted, divisor: float
) -> list[Problem]:
    """The problems of several queries on the same rows, with the divisor of all.

    Those of one class share their targets, those of one fold their weights, levels of both their
    samples.
    """
    weighted: dict[int | None, WeightedRows] = {}
    targets: dict[Any, Targets] = {}
    risks: dict[tuple[int | None, Any], Risk] = {}
    problems = []
    for query in queries:
        fold, label = query.fold, query.label
        if fold not in weighted:
            weighted[fold] = WeightedRows(rows, samples.without(fold), divisor)
        if label not in targets:
            targets[label] = Targets(query.loss, query.targets(samples.y))
        if (fold, label) not in risks:
            risks[fold, label] = Risk(weighted[fold], targets[label])
        problems.append(Problem(risks[fold, label], query.penalty, query.alpha))
    return problems


def pieces_of(loss: Loss) -> list[Piece]:
    """Those of one sample: how many there are, and of which kind."""
    y = np.array([[0.0, 0.0]]) if loss.task == "interval" else np.ones(1)
    return loss.pieces(y)


def piecewise(loss: Loss) -> bool:
    """Whether a loss is linear or quadratic, piece by piece, everywhere."""
    return loss.quadratic_rays and bool(pieces_of(loss))


def kinked(loss: Loss) -> bool:
    """Whether a loss is linear piece by piece, so that slopes at a kink are not known by it."""
    linear = piecewise(loss) and not any(np.any(piece.quadratic) for piece in pieces_of(loss))
    return linear and math.isinf(loss.proved_smoothness)


@dataclass(frozen=True, eq=False)
class Pass:
    """The task of a pass.

    Attributes
    ----------
    reading : Reading
    queries : tuple of Query
    most_held : float
        The share of the rows of a block that may be held.
    folds : bool
        Whether matrices with a row for each column are made; without them only rows on flat and
        linear pieces are folded.
    """

    reading: Reading
    queries: tuple[Query, ...]
    most_held: float = 1.0
    folds: bool = True

    @property
    def source(self) -> BlockSource:
        return self.reading.source

    plus = staticmethod(added)

    def parted(self, found: PartFound) -> tuple[tuple[Found, ...], PartFound]:
        """Sums are added up, the pieces of rows and those that are held are told."""
        notes = tuple(map(Note.of, found.problems))
        return found.problems, replace(found, problems=(), notes=notes)

    def __call__(self, task: Task) -> PartFound:
        """What is found in a part, given the pieces on which its rows are folded so far."""
        part, codes = task.part, task.codes
        found: tuple[Found, ...] = ()
        pieces: list[list[Codes]] = [[] for _ in self.queries]
        held: list[Held] = []
        for ready in self.reading.blocks(part):
            rows = slice(ready.block.start, ready.block.start + ready.block.n_rows)
            before = [own[rows] for own in codes]
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                looks = self._looks(ready)
                mine = tuple(self._found(looks, k, before) for k in range(len(looks)))
            found = added(found, mine)
            for own, look in zip(pieces, looks, strict=True):
                own.append(look.codes)
            held += self._held(ready, looks)
        joined = [np.concatenate(own) if own else np.zeros(0, np.uint8) for own in pieces]
        return PartFound(part, found, joined, held)

    # --- where rows are, and which of them are held -------------------------------------------

    def _looks(self, ready: Ready) -> list[_Look]:
        problems = problems_on(self.queries, ready.rows, ready.samples, self.reading.divisor)
        points = [query.point for query in self.queries]
        evaluations = evaluate_together(list(zip(problems, points, strict=True)))
        spreads = self._spreads(ready)
        norms = ready.rows.row_norms
        reaches = [
            query.near * norms + (0.0 if spread is None else query.wide * spread)
            for query, spread in zip(self.queries, spreads, strict=True)
        ]
        every = slice(None)
        rooms = [
            one.pieces.room(at.pred, every) for one, at in zip(problems, evaluations, strict=True)
        ]
        let_go = self._let_go(rooms, reaches)
        looks = []
        for parts in zip(self.queries, problems, evaluations, rooms, reaches, strict=True):
            _, problem, at, _, reach = parts
            decisions = self._decided(problem, at, reach, let_go)
            looks.append(_Look(*parts, decisions, coded(decisions)))
        return looks

    def _spreads(self, ready: Ready) -> list[Array | None]:
        """How far predictions are expected to move; problems of one class share that."""
        known: dict[int, Array] = {}
        found: list[Array | None] = []
        for query in self.queries:
            if query.spread is None or query.wide == 0.0 or not query.exact:
                found.append(None)
                continue
            if id(query.spread) not in known:
                ones = np.ones(query.spread.shape[1])
                known[id(query.spread)] = np.sqrt(ready.rows.projected_sq(query.spread, ones))
            found.append(known[id(query.spread)])
        return found

    def _let_go(self, rooms: Sequence[Array], reaches: Sequence[Array]) -> Mask | None:
        """Rows that should be held but are too many: those furthest from their kinks."""
        if self.most_held >= 1.0 or not rooms:
            return None
        ratios = np.min([room / reach for room, reach in zip(rooms, reaches, strict=True)], axis=0)
        most = max(int(self.most_held * len(ratios)), 1)
        if np.count_nonzero(ratios <= 1.0) <= most:
            return None
        return ratios > np.partition(ratios, most - 1)[most - 1]

    def _decided(
        self, problem: Problem, at: Evaluation, reach: Array, let_go: Mask | None
    ) -> Decisions:
        if let_go is not None:
            reach = np.where(let_go, 0.0, reach)
        found = decide(problem, Bounds(at.pred - reach, at.pred + reach), "always")
        return found if self.folds else found.folding(problem, "never")

    # --- sums ---------------------------------------------------------------------------------

    def _found(self, looks: list[_Look], k: int, before: Sequence[Codes]) -> Found:
        query, look = self.queries[k], looks[k]
        problem, at, decisions = look.problem, look.at, look.decisions
        came, went, n_moved = None, None, 0
        if not query.exact:
            came = self._expanded(look)
        else:
            old, whose = None if query.anew else before[k], problem
            if query.anew and query.after is not None:
                old, whose = looks[query.after].codes, looks[query.after].problem
            came, went, n_moved = _changes(look, old, whose)
        carrying = problem.weights > 0
        decided = ~decisions.undecided & carrying
        clear = (look.room - problem.prediction_error(at)) / problem.design.row_norms
        constant = np.full(problem.design.n_samples, query.constant)
        return Found(
            sums=at.sums,
            gradient=at.loss_gradient,
            constant=total(problem.shares, problem.loss.value(constant, problem.y)),
            weight=float(problem.shares.sum()),
            added=came,
            removed=went,
            clearance=float(np.min(clear[decided], initial=math.inf)) if query.exact
            else min(query.near, float(np.min(clear[decided], initial=math.inf))),
            sum_error=max(problem.design.sum_error, rows_of(problem.design).gram_error),
            n_kept=int(np.count_nonzero(~decisions.dropped)),
            n_undecided=int(np.count_nonzero(decisions.undecided)),
            n_decided=int(np.count_nonzero(decided)),
            n_moved=n_moved,
            rays=_rays(problem, at) if query.direct or not isinstance(query.penalty, L2) else None,
        )  # fmt: skip

    def _expanded(self, look: _Look) -> Folded:
        """The curvature that rows keep within the reach; the rest of an expansion is the gradient.

        Less curvature than there is: whatever it proves is true.
        """
        problem, pred = look.problem, look.at.pred
        reach = look.reach + problem.prediction_error(look.at)
        floor = problem.loss.curvature_floor(pred - reach, pred + reach, problem.y)
        rows = rows_of(problem.design)
        error = (rows.gram_error + problem.curvature_error) * (1.0 + 1e-6)
        return Folded(np.zeros(rows.n_columns), 0.0, rows.gram(problem.shares * floor), error)

    def _held(self, ready: Ready, looks: Sequence[_Look]) -> list[Held]:
        wanted = np.stack(
            [
                look.decisions.undecided & (look.problem.weights > 0) & look.query.exact
                for look in looks
            ],
            axis=1,
        )
        rows = np.flatnonzero(wanted.any(axis=1))
        if not rows.size:
            return []
        block = ready.block
        return [
            Held(
                np.full(len(rows), block.part), rows + block.start, ready.rows.take(rows).data,
                block.y[rows], ready.samples.weights[rows], wanted[rows],
            )
        ]  # fmt: skip


class _Look(NamedTuple):
    """One problem on one block: how far predictions are from the ends of their pieces."""

    query: Query
    problem: Problem
    at: Evaluation
    room: Array
    reach: Array
    decisions: Decisions
    codes: Codes


def _changes(
    look: _Look, old: Codes | None, whose: Problem
) -> tuple[Folded | None, Folded | None, int]:
    """What is to be added to what is folded, and what to be taken away; how many rows moved.

    What was folded, was folded with the weights of `whose`.
    """
    if old is None:
        return look.problem.fold(look.decisions), None, 0
    rows = np.flatnonzero(look.codes != old)
    if not rows.size:
        return None, None, 0
    new, old = look.codes[rows], old[rows]
    mine = look.problem.restrict(rows)
    theirs = mine if whose is look.problem else whose.restrict(rows)
    came, went = mine.fold(decoded(mine, new)), theirs.fold(decoded(theirs, old))
    return came, went, int(np.count_nonzero(old))


def _rays(problem: Problem, at: Evaluation) -> RaySums:
    """Sums over the positive and the negative slopes apart."""
    sides = [np.where(side, at.nu, 0.0) for side in (at.nu > 0, at.nu < 0)]
    loads = np.stack([problem.shares * nu for nu in sides], axis=1)
    loss, y, shares = problem.loss, problem.y, problem.shares

    def conjugates(multiple: float) -> Array:
        values = [np.where(nu != 0, loss.conjugate(multiple * nu, y), 0.0) for nu in sides]
        return np.array([total(shares, value) for value in values])

    sizes = [total(shares, np.where(nu != 0, loss.conjugate_size(nu, y), 0.0)) for nu in sides]
    return RaySums(
        problem.design.rmatvec(loads).T.copy(), conjugates(1.0), conjugates(0.5), np.array(sizes)
    )


# --- the piece of a row as a small number -----------------------------------------------------


def coded(decisions: Decisions) -> Codes:
    """0 for rows that are not decided, 1 for rows without weight, 2 and more for the pieces."""
    found = np.where(decisions.undecided, -1, decisions.which)
    return (found + 1).astype(np.uint8)


def decoded(problem: Problem, codes: Codes) -> Decisions:
    """What the numbers stand for."""
    which = codes.astype(np.int8) - np.int8(1)
    flat = which == 0
    for k, piece in enumerate(problem.pieces, start=1):
        flat |= (which == k) & (piece.quadratic == 0) & (piece.linear == 0)
    return Decisions(flat, (which >= 0) & ~flat, problem.pieces, which)


def flat_codes(loss: Loss) -> Mask:
    """For every number whether rows that have it are dropped."""
    return np.array([False, True, *(piece.is_flat for piece in pieces_of(loss))])
