"""Hard-example mining: the few rows of a large pool that can matter, and the proof for the rest.

The full problem P has the training rows and all rows of the pool, each with its label and its
weight, with the divisor W of them all. K is the training rows and some rows of the pool, P_K the
same sum over K only, *with the same W*. Losses are ≥ 0 and 0 where they are flat, whatever the
label, so P_K ≤ P.

**Theorem.** Let B contain every minimiser of P_K, of which there is one, and let every row outside
K lie strictly inside a flat piece of its own loss, that of its label, for all x in B. Then P and
P_K have the same minimisers and the same least value. Where the rows outside K are flat at a point
x₀ as well, a duality gap of P_K at x₀ is one of P.

*Proof.* For x a minimiser of P_K, x ∈ B, so the rows outside K have loss 0 there and
P(x) = P_K(x) = min P_K ≤ min P: x is a minimiser of P. Conversely P_K(y) ≤ P(y) = min P = min P_K
for a minimiser y of P. And P(x₀) = P_K(x₀), while a dual point of P_K, with 0 for the rows outside
(f*(0) = −inf f = 0), is one of P of the same value. ∎

Labels enter by the losses of the rows, and by W and the weights of the classes, which every pass
counts anew: a solution of P_K proves something about a pass that read rows, labels and totals as
P_K has them.

So only the last pass over the pool has to prove anything, about regions of a small problem, and
whatever chose K before it may guess:

    pool → blocks (`design.pool`) → bounds over a region of P_K (`pooled`) → flat, or held
         → P_K again → … until a pass finds nothing new (`Search`).

What is held is counted before it is copied (`_Found`): rows and the problem they become part of,
with the numbers that a solver keeps for every row, must fit into the budget of the pool.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.design.pool import Block, HeldRows, Pool, in_words
from safesift.solvers import Fit, Settings
from safesift.workflows.pooled import Candidate, PooledProblem, PoolRead

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

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
        At which row the pool was first seen not to be what it was in an earlier pass.
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
    return Search(pool, Candidate.begun(full, settings, start), max_passes, verbose).result()


class _Found:
    """Rows of the pool that are held since a model was last fitted."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.parts: list[HeldRows] = []
        self.n_rows = self.n_bytes = 0

    def add(self, block: Block, which: Mask, already: Candidate) -> None:
        """Hold some rows of a block, unless they are too many beside those that are held."""
        if not which.any():
            return
        part = block.held(which, self._pool.like.data)
        self.n_rows, self.n_bytes = self.n_rows + len(part), self.n_bytes + part.n_bytes
        n_held, n_bytes = len(already.indices) + self.n_rows, already.n_bytes + self.n_bytes
        if n_bytes > self._pool.budget.held:
            raise MemoryError(self._complaint(n_held, n_bytes, block.stop))
        self.parts.append(part)

    def _complaint(self, n_held: int, n_bytes: int, n_read: int) -> str:
        pool = self._pool
        return (
            f"{n_held} rows of {pool.name} are in doubt after {n_read} were read, and to fit a "
            f"model to them takes {in_words(n_bytes)} where memory leaves "
            f"{in_words(pool.budget.held)}: increase memory, or alpha, or check "
            f"{pool.labels.described}, since rows of the wrong class are all in doubt."
        )


class _Seen(NamedTuple):
    """What a pass saw.

    Attributes
    ----------
    found : list of HeldRows
        Rows in doubt that were not held, as they were read.
    stale : mask or None
        Those of the held rows that were not read as they are; None where all of them were.
    read : PoolRead
    n_new : int
        How many rows came into doubt.
    changed : int or None
        At which row the pool was first seen not to be what it was in an earlier pass.
    settled : bool
        Whether another pass would find the same: nothing is new, nothing changed.
    """

    found: list[HeldRows]
    read: PoolRead
    n_new: int
    stale: Mask | None = None
    changed: int | None = None
    settled: bool = False


class Search:
    """The passes over one pool, until one of them proves that no other row matters."""

    def __init__(self, pool: Pool, begun: Candidate, max_passes: int, verbose: int) -> None:
        self._pool, self._candidate, self._read = pool, begun, PoolRead()
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
            self._solve(seen.found, seen.read, seen.stale)

    def _solve(
        self, found: list[HeldRows], read: PoolRead, stale: Mask | None = None, tol: float = 0.0
    ) -> None:
        self._hold(found, read, stale)
        self._candidate = self._candidate.fitted(tol)
        self._n_fits += 1

    def _hold(self, found: list[HeldRows], read: PoolRead, stale: Mask | None) -> None:
        """Make what was found part of P_K; each copy is let go before the next one is made."""
        if stale is not None:
            self._candidate = self._candidate.without(stale)
        self._candidate = self._candidate.grown(found, read)
        found.clear()

    # --- passes -----------------------------------------------------------------------------

    def _learn(self) -> _Seen:
        """The first pass: hold what has a loss at the model, fitted again whenever much is new."""
        found, n_new = _Found(self._pool), 0
        for part, read in self._parts():
            doubtful = self._candidate.in_doubt(part, self._candidate.at_point)
            found.add(part, doubtful, self._candidate)
            n_new += int(doubtful.sum())
            much = max(_GROWTH * self._candidate.n_at_hand, _LEAST_NEW)
            if self._max_passes > 1 and found.n_rows >= much:
                self._solve(found.parts, read, tol=_ROUGH)
                found = _Found(self._pool)
        return _Seen(found.parts, self._read, n_new)

    def _examine(self) -> _Seen:
        """Every other pass: hold what is not flat all over the region, too."""
        candidate, found, n_new = self._candidate, _Found(self._pool), 0
        stale, changed = np.ones(len(candidate.indices), dtype=bool), None
        for block in self._blocks():
            before = candidate.held_in(block)
            same = candidate.held(before).as_in(block)
            stale[before[same]] = False
            wanted = candidate.in_doubt(block, candidate.region)
            # what is held as it was read is not held twice, what changed is held as it is now
            wanted[candidate.indices[before] - block.start] = ~same
            n_new += int(wanted.sum() - (~same).sum())
            found.add(block, wanted, candidate)
            if changed is None and not same.all():
                changed = int(candidate.indices[before[~same][0]])
        if changed is None and self._read != candidate.read:
            changed = min(self._read.n_rows, candidate.read.n_rows)
        return _Seen(
            found.parts, self._read, n_new, stale if stale.any() else None, changed,
            settled=not n_new and changed is None,
        )  # fmt: skip

    def _blocks(self) -> Iterator[Block]:
        """The blocks of the pool, each counted once it is done with."""
        self._read = PoolRead()
        for block in self._pool.blocks():
            yield block
            self._read = self._read.plus(self._candidate.full.weighed(block))

    def _parts(self) -> Iterator[tuple[Block, PoolRead]]:
        """The blocks, in parts no larger than what is at hand, and what was read with each."""
        for block in self._blocks():
            done, read = 0, self._read
            while done < block.rows.n_samples:
                size = max(self._candidate.n_at_hand, _LEAST_NEW)
                part = block.part(done, min(done + size, block.rows.n_samples))
                done, read = part.stop - block.start, read.plus(self._candidate.full.weighed(part))
                yield part, read

    # --- the end ----------------------------------------------------------------------------

    def _proves(self, seen: _Seen) -> bool:
        """Whether a pass is the proof that nothing else matters."""
        return seen.settled and self._candidate.region.certified

    def _note(self, seen: _Seen) -> None:
        seconds = time.perf_counter() - self._began
        gone = 0 if seen.stale is None else int(seen.stale.sum())
        n_held = len(self._candidate.indices) - gone + sum(map(len, seen.found))
        done = MiningPass(seen.read.n_rows, seen.n_new, n_held, self._n_fits, seconds)
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
        proved, fit = self._proves(seen), self._candidate.fit
        guessed = fit is not None and not self._candidate.region.certified
        if fit is None or not proved:
            self._hold(seen.found, seen.read, seen.stale)
            fit = self._candidate.unproved(fit)
        # only the pool is cut down: the training rows stay, whatever is known of them
        n, problem, candidate = self._candidate.full.n_training, fit.problem, self._candidate
        kept = np.flatnonzero(fit.kept[n:])
        weight = float(problem.weights[:n].sum() + problem.weights[n:][kept].sum())
        return Mined(
            fit=replace(fit, decisions=fit.decisions.take(slice(n))),
            kept=candidate.held(kept[np.argsort(candidate.indices[kept])]),
            alpha_kept=problem.alpha * problem.divisor / weight,
            proved=proved,
            guessed=guessed,
            changed=self._changed,
            history=tuple(self._history),
        )
