"""The loop over passes: all problems in flight, each at its own point, until each is certified."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.arithmetic.numerics import EPS, length_bound, norm
from safesift.design.factory import as_design
from safesift.design.pool import in_words
from safesift.design.rows import rows_of
from safesift.penalties import L2
from safesift.problem.decisions import Bounds, decide
from safesift.problem.evaluation import Folded
from safesift.problem.problem import Problem
from safesift.solvers import Screening, Settings, solve_path
from safesift.solvers.quadratic import Model, minimise
from safesift.workflows.scale.certificate import Extent, Proof, proof, proof_nearby
from safesift.workflows.scale.codes import CodeStore
from safesift.workflows.scale.engine import Engine, Task, Tasks
from safesift.workflows.scale.found import Balance, Found, Held, PartFound
from safesift.workflows.scale.outcomes import PassRecord
from safesift.workflows.scale.passes import Pass, Query, coded, kinked, pieces_of
from safesift.workflows.scale.reading import Reading
from safesift.workflows.scale.sparing import Known
from safesift.workflows.scale.states import NEAR, State, rounding_of

Array = NDArray[np.float64]

# by how much less far rows are held once hardly a row moves, next to those that are held
_NARROWER, _HARDLY_ANY = 0.2, 0.01
# the reduced problem is solved to this share of what is asked for; of a loss with kinks its gap is
# that of all rows
_SHARPER, _TIGHT, _SHARP = 1e-3, 1e-9, 1e-2
# of a quadratic function, relative to its curvature
_DAMPING = 1e-13
# what held rows may take, as a share of the budget; a held row is held twice while it is solved for
HELD_SHARE, PER_HELD_ROW = 0.4, 512
MOST_PASSES = 50
# a value that follows from what is folded is told if so much of it is rounding, at most
_EXACT = 1e-9


class _Proposed(NamedTuple):
    """Where to go next, and the gap of the reduced problem there, of a loss with kinks."""

    point: Array
    gap: float | None = None


class Driver:
    """Passes over the blocks of a source until every problem is certified.

    Parameters
    ----------
    reading : Reading
    extent : Extent
    codes : CodeStore
    engine : Engine
    tol : float
        The relative gap to reach.
    folds : bool
        As of `Pass`.
    nothing : Held
        No row, of the kind that held ones are.
    row_bytes : float
        What a row takes.
    save : callable, optional
        Called with the number of passes after each of them.
    n_passes : int, default=1
        So many are made already.
    """

    def __init__(
        self,
        reading: Reading,
        extent: Extent,
        codes: CodeStore,
        engine: Engine,
        *,
        tol: float,
        folds: bool,
        nothing: Held,
        row_bytes: float,
        save: Callable[[int], None] | None = None,
        n_passes: int = 1,
    ) -> None:
        self._reading, self._extent, self._codes = reading, extent, codes
        self._engine, self._tol, self._folds, self._nothing = engine, tol, folds, nothing
        self._row_bytes = 2 * row_bytes + PER_HELD_ROW
        self._budget = HELD_SHARE * reading.source.memory
        self._began, self.n_passes, self._save = time.perf_counter(), n_passes, save
        self._known: Known | None = None

    def run(self, states: Sequence[State], most_passes: int = MOST_PASSES) -> None:
        """Go on until all problems are done, or so many passes are made for them."""
        most_passes += self.n_passes - 1
        while active := [state for state in states if state.active]:
            if self.n_passes >= most_passes:
                break
            self._step(active)
            self._saved()
        for state in states:
            if not state.done:
                self._leave_undecided(state)

    def _saved(self) -> None:
        if self._save is not None:
            self._save(self.n_passes)

    def _step(self, active: list[State]) -> None:
        """One pass, and what comes of it for every problem that is not done."""
        self._prepare(active)
        parts = self._to_read(active)
        found, held = self._pass(active, parts)
        self.n_passes += 1
        whole = len(parts) == len(self._codes.lengths)
        taken = [self._take(state, found[k], active, held, k, whole)
                 for k, state in enumerate(active)]  # fmt: skip
        if not all(taken):
            self._known = None  # at these points all parts are to be read
            return
        progress.report(self._news(active), self.n_passes, MOST_PASSES)
        for k, state in enumerate(active):
            own = held.of(k)
            if self._is_done(state):
                state.done = True
                self._settle(state, own)
                continue
            proposed = self._next(state, own)
            nearby = self._proved_nearby(state, own, proposed)
            if nearby is None:
                state.go_to(proposed.point)
            else:
                self._end_there(state, own, nearby)

    def _news(self, active: list[State]) -> str:
        """What a pass found, in a few words."""
        last = [state.history[-1] for state in active]
        gap, n_undecided = (
            max(getattr(one, name) for one in last) for name in ("relative_gap", "n_undecided")
        )
        decided = 100.0 * (1.0 - n_undecided / self._extent.n_rows)
        return f"pass {self.n_passes}: relative gap {gap:.1e}, {decided:.1f} % of rows decided"

    # --- a pass -------------------------------------------------------------------------------

    def _prepare(self, active: list[State]) -> None:
        """How far rows are held this time; what is compared with what."""
        places = {state.number: k for k, state in enumerate(active)}
        for state in active:
            query = state.query
            if state.balance.cancelled:
                state.balance = Balance()
                query = replace(query, anew=True, after=None)
            if query.anew and query.after is not None:
                query = replace(query, after=places.get(query.after))
            size = norm(query.point) or state.unit
            near = max(query.near, NEAR * size)
            state.query = replace(query, wide=state.wide, near=near)

    def _to_read(self, active: list[State]) -> list[int]:
        """Parts in which a row may have left its piece since they were read, or all of them."""
        everyone, known = list(self._codes.lengths), self._known
        self._known = None
        if known is None or not all(map(_sparing, active)):
            return everyone
        known = known.among([state.number for state in active])
        if known is None:
            return everyone
        steps = [_length(state.query.point - state.proved.at.point) for state in active]
        # rows that are to be decided by a ball keep that distance, too
        needs = [step + state.ball for step, state in zip(steps, active, strict=True)]
        parts = known.due(needs)
        if not 0 < len(parts) < len(everyone):
            return everyone
        known.move(steps)
        self._known = known
        return parts

    def _pass(self, active: list[State], parts: list[int]) -> tuple[list[Found], Held]:
        """Read some parts; what is found of all of them, and the rows that are held of all."""
        queries, numbers = [state.query for state in active], [state.number for state in active]
        n_rows = self._extent.n_rows
        most = self._budget / self._row_bytes / max(n_rows, 1) if self._folds else 1.0
        task = Pass(self._reading, tuple(queries), most, self._folds)
        store, known = self._codes, self._known
        tasks = Tasks(parts, lambda part: Task(part, [store.get(part, k) for k in numbers]))
        held = [self._nothing.wanted_by(len(queries))]
        if known is None:
            known = Known(numbers)
        else:
            held.append(known.held_elsewhere(parts))
        n_bytes, n_seen = self._row_bytes * sum(map(len, held)), 0
        n_rows = sum(store.lengths[part] for part in parts)

        def take(result: PartFound) -> None:
            nonlocal n_bytes, n_seen
            for number, codes in zip(numbers, result.codes, strict=True):
                store.put(result.part, number, codes)
            known.put(result.part, result.notes)
            held.extend(result.held)
            n_bytes += self._row_bytes * sum(map(len, result.held))
            n_seen += store.lengths[result.part]
            progress.report_within(f"pass {self.n_passes + 1}", n_seen, n_rows)
            if n_bytes > 2 * self._budget and not self._folds:
                raise MemoryError(self._too_many(n_bytes, n_seen))

        found = self._engine.carry_out(task, tasks, take)
        known.held = Held.together(held)
        # a run that goes on after it was killed has no rows at hand
        self._known = known if self._save is None else None
        return [known.whole(k, one) for k, one in enumerate(found)], known.held

    def _too_many(self, n_bytes: float, n_rows: int) -> str:
        memory = self._reading.source.memory
        return (
            f"the rows that are not proved to be of no influence take {in_words(int(n_bytes))} "
            f"after {n_rows} rows, and memory is {in_words(memory)}: increase memory, or alpha."
        )

    def _take(
        self, state: State, found: Found, active: list[State], held: Held, k: int, whole: bool
    ) -> bool:
        """What a pass found about one problem; False where some parts alone do not tell."""
        query = state.query
        base = state.balance
        if query.anew:
            base = Balance() if query.after is None else active[query.after].balance
        if not query.exact:
            base = Balance()
        state.balance = base.plus(found.added, found.removed)
        if query.share is None:
            query = query.of_weight(found.weight if query.fold is not None else 1.0)
        state.query = replace(query, anew=not query.exact, after=None)
        if state.history and found.n_moved <= _HARDLY_ANY * state.history[-1].n_undecided:
            state.wide *= _NARROWER
        state.all_held = query.exact and found.n_decided == 0
        found_here: Proof | None
        if whole:
            problem = self._extent.problem(query, found, state.unit, found.constant)
            found_here = proof(problem, query, found, state.balance)
        else:
            found_here = self._proved(state, held.of(k), query.point, found.clearance)
        if found_here is None:
            return False
        state.note(found_here, self._tol * found_here.reference)
        proved, share = state.proved, state.query.share or 1.0
        state.history.append(
            PassRecord(
                self.n_passes, time.perf_counter() - self._began, proved.gap / share,
                proved.relative_gap, found.n_kept, found.n_undecided, len(held),
                found.n_moved,
            )
        )  # fmt: skip
        return True

    def _folded(self, state: State) -> Folded:
        return state.balance.folded(len(state.query.point))

    # --- what comes of it ---------------------------------------------------------------------

    def _is_done(self, state: State) -> bool:
        """Certified, and all rows decided or one more pass spent on that."""
        proved = state.proved
        if not proved.relative_gap <= self._tol:
            return False
        hopeless = not pieces_of(state.query.loss) or math.isinf(proved.radius)
        if not state.decides or proved.decides or state.last_try or hopeless:
            return True
        state.last_try = True
        return False

    def _next(self, state: State, held: Held) -> _Proposed:
        """The solution of the reduced problem; halfway back, where the last one was worse."""
        proved, best = state.proved, state.best
        if best is not None and not proved.at.value <= best.at.value + rounding_of(proved):
            if state.all_held:
                return self._minimum(state, held, proved)  # of the problem itself
            state.trust = 0.5 * norm(proved.at.point - best.at.point)
            return _Proposed(0.5 * (best.at.point + proved.at.point))
        state.best = proved
        if state.last_try and math.isfinite(proved.radius):
            state.decide_within(proved.radius)
        found = self._minimum(state, held, proved)
        way = found.point - proved.at.point
        length = norm(way)
        if not length > state.trust:
            return found
        # downhill at first, since the model has the gradient of the objective; then nobody knows
        shorter, state.trust = state.trust / length, 4.0 * state.trust
        return _Proposed(proved.problem.feasible(proved.at.point + shorter * way))

    def _proved_nearby(self, state: State, held: Held, proposed: _Proposed) -> Proof | None:
        """What is proved at a point, where no folded row can have left its piece on the way.

        Value and gradient on all rows are then those of the reduced problem, and no pass is needed.
        """
        query, before, point = state.query, state.proved, proposed.point
        step = _length(point - before.at.point)
        if not (step < before.clearance and query.exact):
            return None
        clearance = (before.clearance - step) * (1.0 - 4 * EPS)
        found = self._proved(state, held, point, clearance, proposed.gap)
        if found is None:
            return None
        if not found.relative_gap <= self._tol:
            return None
        if found.decides or not state.decides or state.last_try or math.isinf(found.radius):
            return found
        # held as far as that ball reaches, they are decided by one more pass
        state.last_try = True
        state.decide_within(found.radius)
        return None

    def _proved(
        self, state: State, held: Held, point: Array, clearance: float, gap: float | None = None
    ) -> Proof | None:
        """What the reduced problem proves where every folded row is on its piece."""
        if not len(held):
            return None
        folded = state.balance.folded_at(point)
        problem = replace(self._held_problem(state.query, held), folded=folded)
        at = problem.evaluate(point)
        if not problem.rounding(at).value <= _EXACT * abs(at.value):
            return None
        return proof_nearby(problem, at, state.proved, state.balance, clearance, gap)

    def _end_there(self, state: State, held: Held, found: Proof) -> None:
        """Be done without another pass."""
        state.proof, state.done = found, True
        state.query = replace(state.query, point=found.at.point)
        share = state.query.share or 1.0
        last = state.history[-1]
        state.history[-1] = replace(last, gap=found.gap / share, relative_gap=found.relative_gap)
        self._settle(state, held)

    def _minimum(self, state: State, held: Held, proved: Proof) -> _Proposed:
        """The solution of the reduced problem."""
        query, folded, linear = state.query, self._folded(state), kinked(state.query.loss)
        if not query.exact:
            folded = _expansion(folded, proved)
        if len(held) == 0:
            # of linear pieces alone there may be no minimum: more rows are held next time
            return _Proposed(
                query.point if linear else self._quadratic_minimum(query, folded, proved)
            )
        # how far these sums may be off does not matter where what it proposes is proved elsewhere
        if linear:
            folded = state.balance.folded_at(query.point)
        problem = replace(self._held_problem(query, held), folded=folded)
        tol = _SHARP * self._tol if linear else min(_SHARPER * self._tol, _TIGHT)
        settings = Settings(tol, 1000, Screening(guesses=False), decided=())
        ((fit,),) = solve_path([[problem]], settings, [query.point])
        return _Proposed(fit.at.point, fit.gap if linear else None)

    def _held_problem(self, query: Query, held: Held) -> Problem:
        """The problem of the rows that are held, with the divisor of all."""
        rows = rows_of(as_design(held.X, self._reading.intercept)).as_held()
        return query.problem(rows, held.y, held.weights, self._reading.divisor)

    def _quadratic_minimum(self, query: Query, folded: Folded, proved: Proof) -> Array:
        """Of a quadratic function and the penalty, damped where it may have none."""
        p, d = self._extent.n_features, self._extent.n_features + self._extent.intercept
        H = np.zeros((d, d)) if folded.Q is None else folded.Q.copy()
        ridge = _DAMPING * np.maximum(np.diag(H), 0.0)
        ridge[p:] += 1e3 * _DAMPING * query.loss.smoothness
        H[np.diag_indices_from(H)] += ridge
        model = Model(H, folded.q - ridge * query.point, p)
        point = minimise(query.penalty, model, query.alpha, query.point)
        return proved.problem.feasible(point)

    def _settle(self, state: State, held: Held) -> None:
        """What became of every row: decided where the ball says so, otherwise not."""
        proved, number = state.proved, state.number
        if not state.decides:
            return
        if not proved.decides:
            self._leave_undecided(state)
            return
        if not len(held):
            return
        problem = self._held_problem(state.query, held)
        at = problem.evaluate(state.query.point)
        reach = proved.radius * problem.design.row_norms * (1.0 + 16 * EPS)
        reach = reach + problem.prediction_error(at)
        found = coded(decide(problem, Bounds(at.pred - reach, at.pred + reach), "always"))
        for part in np.unique(held.parts):
            mine = held.parts == part
            self._codes.patch(int(part), number, held.places[mine], found[mine])

    def _leave_undecided(self, state: State) -> None:
        """Of no row but those without weight it is known what became of them.

        Nothing is folded then, for a run that goes on from here after it was killed.
        """
        state.balance = Balance()
        state.query = replace(state.query, anew=True, after=None)
        for part in self._codes.lengths:
            codes = self._codes.get(part, state.number)
            self._codes.put(part, state.number, np.where(codes == 1, 1, 0).astype(np.uint8))


def _length(step: Array) -> float:
    """At most so far."""
    return length_bound(step) * (1.0 + 16 * EPS)


def _sparing(state: State) -> bool:
    """Whether what is folded and held tells all that a pass does: slopes, and a gap of these."""
    query = state.query
    smooth = query.exact and not kinked(query.loss)
    return smooth and isinstance(query.penalty, L2) and not query.anew and not query.direct


def _expansion(folded: Folded, proved: Proof) -> Folded:
    """½uᵀQu + gᵀu around the point of a proof, with u the way from there."""
    point, gradient = proved.at.point, proved.at.loss_gradient
    curved = folded.product(point)
    r = proved.at.sums.loss - float(gradient @ point) + 0.5 * float(point @ curved)
    return replace(folded, q=gradient - curved, r=r)
