"""Hard-example mining: the few rows of a large pool that can matter, and the proof for the rest.

The full problem P has the training rows and all rows of the pool, labelled as one class, with the
divisor W of them all. K is the training rows and some rows of the pool, P_K the same sum over K
only, *with the same W*. Losses are ≥ 0 and 0 where they are flat, so P_K ≤ P.

**Theorem.** Let B contain every minimiser of P_K, of which there is one, and let every row outside
K lie strictly inside a flat piece of its loss for all x in B. Then P and P_K have the same
minimisers and the same least value. Where the rows outside K are flat at a point x₀ as well, a
duality gap of P_K at x₀ is one of P.

*Proof.* For x a minimiser of P_K, x ∈ B, so the rows outside K have loss 0 there and
P(x) = P_K(x) = min P_K ≤ min P: x is a minimiser of P. Conversely P_K(y) ≤ P(y) = min P = min P_K
for a minimiser y of P. And P(x₀) = P_K(x₀), while a dual point of P_K, with 0 for the rows outside
(f*(0) = −inf f = 0), is one of P of the same value. ∎

So only the last pass over the pool has to prove anything, about regions of a small problem, and
whatever chose K before it may guess:

    pool → blocks (`design.pool`) → bounds over a region of P_K (`pooled`) → flat, or held
         → P_K again → … until a pass finds nothing new (`Search`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.design.pool import HeldRows, Pool
from safesift.design.rows import RowDesign
from safesift.solvers import Fit, Settings
from safesift.workflows.pooled import Candidate, PooledProblem

Array = NDArray[np.float64]

# fit again in the middle of a pass when this share of the rows at hand is new, and so many at least
_GROWTH, _LEAST_NEW = 0.5, 100
# the relative gap of those fits, and that of the others: the smaller, the fewer rows are in doubt
_ROUGH, _TIGHT = 1e-3, 1e-8


@dataclass(frozen=True)
class MiningPass:
    """One pass over the pool.

    Attributes
    ----------
    n_rows : int
        Rows that were read.
    n_new : int
        Rows in doubt that were not held before.
    n_held : int
        Rows of the pool that were held at its end.
    n_fits : int
        How often a model was fitted to what was held, in the pass or right before it.
    seconds : float
        Since mining began.
    """

    n_rows: int
    n_new: int
    n_held: int
    n_fits: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Mined:
    """What mining found.

    Attributes
    ----------
    fit : Fit
        Certified on all rows; its decisions are those about the training rows.
    kept : HeldRows
        The rows of the pool that may matter.
    alpha_kept : float
        The alpha for the training rows and the kept ones alone, with a solver that averages.
    proved : bool
        Whether every other row of the pool is proved to be of no influence.
    guessed : bool
        Whether the region that was asked for is a guess, by which nothing can be proved.
    changed : int or None
        The first row that was once not as it was in an earlier pass.
    history : tuple of MiningPass
    """

    fit: Fit
    kept: HeldRows
    alpha_kept: float
    proved: bool
    guessed: bool
    changed: int | None
    history: tuple[MiningPass, ...]


def mine(
    full: PooledProblem,
    pool: Pool,
    settings: Settings,
    start: Array,
    *,
    max_passes: int = 20,
    verbose: int = 0,
) -> Mined:
    """Find the rows of a pool that can matter, and prove that the others do not.

    Parameters
    ----------
    full : PooledProblem
    pool : Pool
    settings : Settings
        How P_K is solved, to a relative gap of 1e-8 at most.
    start : array
        A model to begin with.
    max_passes : int, default=20
        At most so many passes over the pool; without a proof all rows in doubt are kept.
    verbose : int, default=0
        1 prints a line per pass.

    Returns
    -------
    Mined
    """
    settings.screening.validate(full.training)
    settings = replace(settings, tol=min(settings.tol, _TIGHT))
    begun = Candidate(full, settings, start, np.empty(0, dtype=np.intp), n_pool=0)
    return Search(pool, begun, max_passes, verbose).result()


class _Seen(NamedTuple):
    """What a pass saw: what was held before and what was found, as it was read.

    `changed` is the first row that is not as it was in an earlier pass. It is `settled` where
    another pass would find the same: nothing is new, nothing changed.
    """

    held: HeldRows
    n_rows: int
    n_new: int
    changed: int | None = None
    settled: bool = False


class Search:
    """The passes over one pool, until one of them proves that no other row matters."""

    def __init__(self, pool: Pool, begun: Candidate, max_passes: int, verbose: int) -> None:
        self._pool, self._candidate = pool, begun
        self._max_passes, self._verbose = max_passes, verbose
        self._began, self._n_fits = time.perf_counter(), 0
        self._history: list[MiningPass] = []
        self._changed: int | None = None

    def result(self) -> Mined:
        while True:
            seen = self._learn() if not self._history else self._examine()
            self._note(seen)
            if seen.settled or len(self._history) == self._max_passes:
                return self._concluded(seen)
            self._solve(seen.held, seen.n_rows)

    def _solve(self, held: HeldRows, n_pool: int, tol: float = 0.0) -> None:
        self._candidate = self._candidate.solved(held, n_pool, tol)
        self._n_fits += 1

    # --- passes -----------------------------------------------------------------------------

    def _learn(self) -> _Seen:
        """The first pass: hold what has a loss at the model, fitted again whenever much is new."""
        found, n_rows, n_new = [], 0, 0
        for start, block in self._parts():
            candidate, n_rows = self._candidate, start + block.n_samples
            doubtful = candidate.in_doubt(start, block, candidate.at_point)
            found += [HeldRows.of_block(start, block, doubtful)] if doubtful.any() else []
            n_new += int(doubtful.sum())
            much = max(_GROWTH * candidate.n_at_hand, _LEAST_NEW)
            if self._max_passes > 1 and sum(map(len, found)) >= much:
                self._solve(self._joined([candidate.held(0, start), *found]), n_rows, _ROUGH)
                found = []
        held = self._joined([self._candidate.held(0, n_rows), *found])
        return _Seen(held, n_rows, n_new)

    def _examine(self) -> _Seen:
        """Every other pass: hold what is not flat all over the region, too."""
        candidate, parts, n_rows, n_new = self._candidate, [], 0, 0
        changes: list[int] = []
        for start, block in self._blocks():
            n_rows = start + block.n_samples
            before = candidate.held(start, n_rows)
            changes.extend(before.differing(start, block))
            wanted = candidate.in_doubt(start, block, candidate.region)
            wanted[before.indices - start] = True
            parts.append(HeldRows.of_block(start, block, wanted))
            n_new += len(parts[-1]) - len(before)
        if n_rows != candidate.n_pool:
            changes.append(min(n_rows, candidate.n_pool))
        changed = int(changes[0]) if changes else None
        return _Seen(self._joined(parts), n_rows, n_new, changed, not n_new and changed is None)

    def _joined(self, parts: list[HeldRows]) -> HeldRows:
        return HeldRows.joined(parts, like=self._pool.like.data)

    def _blocks(self) -> Iterator[tuple[int, RowDesign]]:
        full, n_rows = self._candidate.full, 0
        for start, block in self._pool.blocks():
            n_rows = start + block.n_samples
            full.check_weights(n_rows)
            yield start, block
        if n_rows == 0:
            raise ValueError(f"{self._pool.name} holds no rows: pass at least one.")
        full.check_weights(n_rows, is_all=True)

    def _parts(self) -> Iterator[tuple[int, RowDesign]]:
        """The blocks, in parts no larger than what is at hand, to learn from."""
        for start, block in self._blocks():
            done = 0
            while done < block.n_samples:
                size = max(self._candidate.n_at_hand, _LEAST_NEW)
                rows = np.arange(done, min(done + size, block.n_samples))
                yield start + done, block.only(rows)
                done += len(rows)

    # --- the end ----------------------------------------------------------------------------

    def _proves(self, seen: _Seen) -> bool:
        """Whether a pass is the proof that nothing else matters."""
        return seen.settled and self._candidate.region.certified

    def _note(self, seen: _Seen) -> None:
        seconds = time.perf_counter() - self._began
        done = MiningPass(seen.n_rows, seen.n_new, len(seen.held), self._n_fits, seconds)
        self._n_fits = 0
        self._history.append(done)
        if self._changed is None:
            self._changed = seen.changed
        progress.report("pool", len(self._history), self._max_passes)
        if self._verbose:
            print(
                f"pass {len(self._history)}: {done.n_rows} rows, {done.n_new} new in doubt, "
                f"{done.n_held} held, {seconds:.2g} s" + (", proved" if self._proves(seen) else "")
            )

    def _concluded(self, seen: _Seen) -> Mined:
        candidate, proved = self._candidate, self._proves(seen)
        n, fit = candidate.full.n_training, candidate.fit
        if fit is None or not proved:
            fit = candidate.unproved(seen.held, seen.n_rows, same_pool=seen.changed is None)
        # only the pool is cut down: the training rows stay, whatever is known of them
        kept, problem = fit.kept[n:], fit.problem
        weight = float(problem.weights[:n].sum() + problem.weights[n:][kept].sum())
        return Mined(
            fit=replace(fit, decisions=fit.decisions.take(slice(n))),
            kept=HeldRows(seen.held.indices[kept], seen.held.rows[kept]),
            alpha_kept=problem.alpha * problem.divisor / weight,
            proved=proved,
            guessed=candidate.fit is not None and not candidate.region.certified,
            changed=self._changed,
            history=tuple(self._history),
        )
