"""The loop over passes: all problems in flight, each at its own point, until each is certified."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.arithmetic.numerics import EPS, norm
from safesift.design.factory import as_design
from safesift.design.pool import in_words
from safesift.design.rows import rows_of
from safesift.problem.decisions import Bounds, decide
from safesift.problem.evaluation import Folded
from safesift.problem.problem import Problem
from safesift.solvers import Screening, Settings, solve_path
from safesift.solvers.quadratic import Model, minimise
from safesift.workflows.scale.certificate import Extent, Proof, proof
from safesift.workflows.scale.codes import CodeStore
from safesift.workflows.scale.engine import Engine, Task
from safesift.workflows.scale.found import Balance, Found, Held, PartFound
from safesift.workflows.scale.passes import Pass, Query, coded, pieces_of
from safesift.workflows.scale.reading import Reading

Array = NDArray[np.float64]

# how far rows are held, in units of how the sample's solution scatters, and as a share of the size
# of the point; and by how much less once hardly a row moves, next to those that are held
_WIDE, _NEAR, _NARROWER, _HARDLY_ANY = 3.0, 1e-6, 0.2, 0.01
# the reduced problem is solved to this share of what is asked for
_SHARPER, _TIGHT = 1e-3, 1e-9
# the first step is at most so many times as long as the point
_TRUSTED = 100.0
# of a quadratic function, relative to its curvature
_DAMPING = 1e-13
# what held rows may take, as a share of the budget; a held row is held twice while it is solved for
_HELD_SHARE, _PER_HELD_ROW = 0.4, 512
MOST_PASSES = 50


@dataclass(frozen=True)
class PassRecord:
    """How a problem stood after a pass.

    Attributes
    ----------
    passes : int
        Over the data, the survey included.
    seconds : float
    gap, relative_gap : float
        Certified, on all rows.
    n_kept, n_undecided : int
        Rows that are not proved to be of no influence, and of which it is not proved on which
        piece of their loss they lie.
    n_held, n_moved : int
        Rows that are held for all problems, and those that had left the piece they were folded on.
    """

    passes: int
    seconds: float
    gap: float
    relative_gap: float
    n_kept: int
    n_undecided: int
    n_held: int
    n_moved: int


class State:
    """One problem on its way."""

    def __init__(self, number: int, query: Query, unit: float) -> None:
        self.number, self.query, self.unit = number, query, unit
        self.balance = Balance()
        self.best: Proof | None = None
        self.proof: Proof | None = None
        self.history: list[PassRecord] = []
        self.wide, self.done = _WIDE, False
        self.last_try = False
        # how far a step may lead: nobody knows how far a model made of pieces can be trusted
        spread = 0.0 if query.spread is None else norm(query.spread)
        self.trust = _TRUSTED * (norm(query.point) + spread + unit)

    @property
    def proved(self) -> Proof:
        assert self.proof is not None
        return self.proof


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
    ) -> None:
        self._reading, self._extent, self._codes = reading, extent, codes
        self._engine, self._tol, self._folds, self._nothing = engine, tol, folds, nothing
        self._row_bytes = 2 * row_bytes + _PER_HELD_ROW
        self._budget = _HELD_SHARE * reading.source.memory
        self._began, self.n_passes = time.perf_counter(), 1

    def run(self, states: Sequence[State], most_passes: int = MOST_PASSES) -> None:
        """Go on until all problems are done, or so many passes are made for them."""
        most_passes += self.n_passes - 1
        while active := [state for state in states if not state.done]:
            if self.n_passes >= most_passes:
                break
            self._step(active)
        for state in active:
            self._leave_undecided(state)

    def _step(self, active: list[State]) -> None:
        """One pass, and what comes of it for every problem that is not done."""
        self._prepare(active)
        found, held = self._pass([state.query for state in active], active)
        self.n_passes += 1
        for k, state in enumerate(active):
            self._take(state, found[k], active, len(held))
        progress.report(self._news(active), self.n_passes, MOST_PASSES)
        for k, state in enumerate(active):
            own = held.of(k)
            if self._is_done(state):
                state.done = True
                self._settle(state, own)
            else:
                state.query = replace(state.query, point=self._next(state, own))

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
                query = replace(query, after=places.get(state.number - 1))
            size = norm(query.point) or state.unit
            near = max(query.near, _NEAR * size)
            state.query = replace(query, wide=state.wide, near=near)

    def _pass(self, queries: list[Query], active: list[State]) -> tuple[Sequence[Found], Held]:
        n_rows = self._extent.n_rows
        most = self._budget / self._row_bytes / max(n_rows, 1) if self._folds else 1.0
        task = Pass(self._reading, tuple(queries), most, self._folds)
        numbers = [state.number for state in active]
        parts = list(self._codes.lengths)
        tasks = _Tasks(self._codes, parts, numbers)
        held = [self._nothing.wanted_by(len(queries))]
        n_bytes, n_seen = 0.0, 0

        def take(result: PartFound) -> None:
            nonlocal n_bytes, n_seen
            for number, codes in zip(numbers, result.codes, strict=True):
                self._codes.put(result.part, number, codes)
            held.extend(result.held)
            n_bytes += self._row_bytes * sum(map(len, result.held))
            n_seen += self._codes.lengths[result.part]
            progress.report_within(f"pass {self.n_passes + 1}", n_seen, n_rows)
            if n_bytes > 2 * self._budget and not self._folds:
                raise MemoryError(self._too_many(n_bytes, n_seen))

        return self._engine.carry_out(task, tasks, take), Held.together(held)

    def _too_many(self, n_bytes: float, n_rows: int) -> str:
        memory = self._reading.source.memory
        return (
            f"the rows that are not proved to be of no influence take {in_words(int(n_bytes))} "
            f"after {n_rows} rows, and memory is {in_words(memory)}: increase memory, or alpha."
        )

    def _take(self, state: State, found: Found, active: list[State], n_held: int) -> None:
        """What a pass found about one problem."""
        query = state.query
        base = state.balance
        if query.anew:
            base = Balance() if query.after is None else active[query.after].balance
        if not query.exact:
            base = Balance()
        state.balance = base.plus(found.added, found.removed)
        state.query = replace(query, anew=not query.exact, after=None)
        if state.history and found.n_moved <= _HARDLY_ANY * state.history[-1].n_undecided:
            state.wide *= _NARROWER
        problem = self._extent.problem(query, found, state.unit, found.constant)
        state.proof = proof(problem, query, found, state.balance)
        state.history.append(
            PassRecord(
                self.n_passes, time.perf_counter() - self._began, state.proof.gap,
                state.proof.relative_gap, found.n_kept, found.n_undecided, n_held, found.n_moved,
            )
        )  # fmt: skip

    def _folded(self, state: State) -> Folded:
        return state.balance.folded(len(state.query.point))

    # --- what comes of it ---------------------------------------------------------------------

    def _is_done(self, state: State) -> bool:
        """Certified, and all rows decided or one more pass spent on that."""
        proved = state.proved
        if not proved.relative_gap <= self._tol:
            return False
        hopeless = not pieces_of(state.query.loss) or math.isinf(proved.radius)
        if proved.decides or state.last_try or hopeless:
            return True
        state.last_try = True
        return False

    def _next(self, state: State, held: Held) -> Array:
        """The solution of the reduced problem; halfway back, where the last one was worse."""
        proved, best = state.proved, state.best
        room = 64 * EPS * abs(proved.at.value)
        if best is not None and not proved.at.value <= best.at.value + room:
            state.trust = 0.5 * norm(proved.at.point - best.at.point)
            return 0.5 * (best.at.point + proved.at.point)
        state.best = proved
        if state.last_try and math.isfinite(proved.radius):
            state.query = replace(state.query, near=max(state.query.near, 4.0 * proved.radius))
        found = self._minimum(state, held, proved)
        way = found - proved.at.point
        length = norm(way)
        if not length > state.trust:
            return found
        # downhill at first, since the model has the gradient of the objective; then nobody knows
        shorter, state.trust = state.trust / length, 4.0 * state.trust
        return proved.problem.feasible(proved.at.point + shorter * way)

    def _minimum(self, state: State, held: Held, proved: Proof) -> Array:
        """The solution of the reduced problem."""
        query, folded = state.query, self._folded(state)
        if not query.exact:
            folded = _expansion(folded, proved)
        if len(held) == 0:
            return self._quadratic_minimum(query, folded, proved)
        # what it proposes is proved elsewhere: how far these sums may be off does not matter here
        problem = replace(self._held_problem(query, held), folded=folded)
        tol = min(_SHARPER * self._tol, _TIGHT)
        settings = Settings(tol, 1000, Screening(guesses=False), decided=())
        ((fit,),) = solve_path([[problem]], settings, [query.point])
        return fit.at.point

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
        """Of no row but those without weight it is known what became of them."""
        for part in self._codes.lengths:
            codes = self._codes.get(part, state.number)
            self._codes.put(part, state.number, np.where(codes == 1, 1, 0).astype(np.uint8))


@dataclass(frozen=True)
class _Tasks(Sequence):
    """For every part its number and what is known of its rows, unpacked when it is asked for."""

    codes: CodeStore
    parts: list[int]
    numbers: list[int]

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[k] for k in range(*place.indices(len(self)))]
        part = self.parts[place]
        return Task(part, [self.codes.get(part, number) for number in self.numbers])


def _expansion(folded: Folded, proved: Proof) -> Folded:
    """½uᵀQu + gᵀu around the point of a proof, with u the way from there."""
    point, gradient = proved.at.point, proved.at.loss_gradient
    curved = folded.product(point)
    r = proved.at.sums.loss - float(gradient @ point) + 0.5 * float(point @ curved)
    return replace(folded, q=gradient - curved, r=r)
