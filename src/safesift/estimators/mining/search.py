"""Passes over a pool until one of them proves that no other row matters."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from safesift import progress
from safesift.design.base import Design
from safesift.estimators.classifier import SafeClassifier
from safesift.estimators.linear import records
from safesift.estimators.mining.held import Held
from safesift.estimators.mining.pool import Pool
from safesift.estimators.mining.result import MiningPass, MiningResult
from safesift.estimators.mining.working import Working

# fit again in the middle of a pass when this share of the rows at hand is new, and so many at least
_GROWTH, _LEAST_NEW = 0.5, 100
# the relative gap of those fits
_ROUGH = 1e-3


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a pass saw.

    Attributes
    ----------
    working : Working
        As it was at its end.
    held : Held
        What was held then, and what was found since.
    n_rows : int
    n_new : int
        Rows found, in all of the pass.
    settled : bool
        Whether another pass would find the same: nothing is new, nothing changed.
    changed : int or None
        The first row that is not as it was in an earlier pass.
    """

    working: Working
    held: Held
    n_rows: int
    n_new: int
    settled: bool
    changed: int | None

    @property
    def proves(self) -> bool:
        """Whether the pass is the proof that nothing else matters."""
        return self.settled and self.working.region.certified


class Search:
    """The passes over one pool."""

    def __init__(self, pool: Pool, working: Working, max_passes: int, verbose: int) -> None:
        self._pool, self._working = pool, working
        self._max_passes, self._verbose = max_passes, verbose
        self._began, self._n_fits = time.perf_counter(), 0
        self._history: list[MiningPass] = []
        self._changed: int | None = None

    def result(self) -> MiningResult:
        while True:
            seen = self._pass()
            self._note(seen)
            if seen.settled or len(self._history) == self._max_passes:
                return self._concluded(seen)
            self._solve(seen.held, seen.n_rows)

    def _solve(self, held: Held, n_pool: int, tol: float | None = None) -> None:
        self._working = self._working.solved(held, n_pool, tol)
        self._n_fits += 1

    def _pass(self) -> _Seen:
        """Read the pool once; the first time, fit again whenever much is new."""
        is_first, is_last = not self._history, len(self._history) + 1 == self._max_passes
        found, changes, n_rows, n_new = [], [], 0, 0
        for start, design in self._parts(is_first):
            n_rows = start + design.n_samples
            self._check_weights(n_rows)
            new, changed = self._look(start, design, is_first)
            n_new += len(new)
            found += [new] if len(new) else []
            changes += [changed] if len(changed) else []
            if is_first and not is_last and self._much(found):
                self._solve(self._working.held.joined(found), n_rows, _ROUGH)
                found = []
        if n_rows == 0:
            raise ValueError("X_pool holds no rows: pass at least one.")
        self._check_weights(n_rows, is_all=True)
        held = self._working.held.replaced(changes).joined(found).before(n_rows)
        first_change = int(changes[0].indices[0]) if changes else None
        if first_change is None and not is_first and n_rows != self._working.n_pool:
            first_change = min(n_rows, self._working.n_pool)
        settled = not is_first and n_new == 0 and first_change is None
        return _Seen(self._working, held, n_rows, n_new, settled, first_change)

    def _look(self, start: int, design: Design, is_first: bool) -> tuple[Held, Held]:
        """Rows in doubt that are not held yet, and those held that are no longer the same.

        The first time in doubt is what has a loss at the model at hand: a proof comes later.
        """
        working = self._working
        held, differs = working.held.differing(start, design)
        doubtful = working.in_doubt(start, design, working.at_point if is_first else working.region)
        doubtful[held] = False
        return (
            _rows_at(design, start, np.flatnonzero(doubtful)),
            _rows_at(design, start, held[differs]),
        )

    def _parts(self, is_first: bool) -> Iterator[tuple[int, Design]]:
        """The blocks; the first time in parts no larger than what is at hand, to learn from."""
        for start, design in self._pool.blocks():
            done = 0
            while done < design.n_samples:
                at_hand = len(self._working.task.labels) + len(self._working.held)
                size = max(at_hand, _LEAST_NEW) if is_first else design.n_samples
                rows = np.arange(done, min(done + size, design.n_samples))
                yield start + done, design.only(rows)
                done += len(rows)

    def _much(self, found: list[Held]) -> bool:
        working = self._working
        at_hand = len(working.task.labels) + len(working.held)
        return sum(map(len, found)) >= max(_GROWTH * at_hand, _LEAST_NEW)

    def _check_weights(self, n_rows: int, is_all: bool = False) -> None:
        weights = self._working.task.pool_weight
        if np.ndim(weights) and (len(weights) < n_rows or (is_all and len(weights) > n_rows)):
            count = n_rows if is_all else f"at least {n_rows}"
            raise ValueError(
                f"pool_weight has {len(weights)} entries but X_pool has {count} rows: pass one per "
                "row, or one number."
            )

    def _note(self, seen: _Seen) -> None:
        done = MiningPass(
            seen.n_rows, seen.n_new, len(seen.held), self._n_fits,
            time.perf_counter() - self._began,
        )  # fmt: skip
        self._n_fits = 0
        self._history.append(done)
        if self._changed is None:
            self._changed = seen.changed
        progress.report("pool", len(self._history), self._max_passes)
        if self._verbose:
            print(
                f"pass {len(self._history)}: {done.n_rows} rows, {done.n_new} new in doubt, "
                f"{done.n_held} held, {done.seconds:.2g} s" + (", proved" if seen.proves else "")
            )

    # --- the end ----------------------------------------------------------------------------

    def _concluded(self, seen: _Seen) -> MiningResult:
        task = seen.working.task
        gap, kept = self._gap(seen), seen.held
        if seen.proves:
            kept = kept.take(seen.working.fit.kept[len(task.labels) :])
        problem = task.problem(kept, seen.n_rows)
        self._warn(seen, gap)
        return MiningResult(
            indices=kept.indices,
            X_kept=kept.rows,
            model_=_fitted(seen, gap),
            dual_gap=gap,
            proved=seen.proves,
            n_pool=seen.n_rows,
            alpha_kept=problem.alpha * problem.divisor / float(problem.weights.sum()),
            history=tuple(self._history),
        )

    def _gap(self, seen: _Seen) -> float:
        """On all rows: in the last pass those that are not held have no loss at the point."""
        if seen.proves:
            return seen.working.fit.gap
        return seen.working.gap_on(seen.held, seen.n_rows, same_pool=seen.changed is None)

    def _warn(self, seen: _Seen, gap: float) -> None:
        tol, fit = seen.working.task.model.tol, seen.working.fit
        if self._changed is not None:
            ending = "" if seen.proves else ", and about those nothing is proved"
            _say(
                f"X_pool changed between passes (first seen at row {self._changed}): the result "
                f"is about the rows as they were read last{ending}; let it yield the same rows in "
                "the same order every time."
            )
        elif not seen.working.region.certified and fit is not None:
            _say(
                f"screening={seen.working.task.model.screening!r} of the model is a guess and "
                "proves nothing: all rows in doubt are kept; use screening='auto'."
            )
        elif not seen.proves:
            _say(
                f"mine_hard ended without a proof after max_passes={self._max_passes} passes "
                f"({seen.n_new} rows came into doubt in the last one, the duality gap on all rows "
                f"is {gap:.2g}): all rows in doubt are kept; increase max_passes."
            )
        elif fit.relative_gap > tol:
            _say(
                f"mine_hard did not converge: the relative duality gap is "
                f"{fit.relative_gap:.2g}, above tol={tol:g}; increase max_iter of the "
                "model, or accept a larger tol."
            )


def _say(words: str) -> None:
    """A warning about the line that called `mine_hard`."""
    warnings.warn(words, ConvergenceWarning, stacklevel=6)


def _rows_at(design: Design, start: int, rows: NDArray[np.intp]) -> Held:
    return Held(rows + start, design.take(rows).data)


def _fitted(seen: _Seen, gap: float) -> SafeClassifier:
    """The model of a pass, as if fitted on all rows."""
    task, point, fit = seen.working.task, seen.working.point, seen.working.fit
    model, p, n = task.model, task.X.shape[1], len(task.labels)
    everything = np.ones(n, dtype=bool)
    kept = fit.kept[:n] if seen.proves else everything
    vars(model).update(
        classes_=task.classes,
        coef_=point[None, :p],
        intercept_=point[p:] if model.fit_intercept else np.zeros(1),
        dual_gap_=gap,
        n_iter_=0 if fit is None else fit.n_iter,
        kept_=kept,
        kept_per_class_=kept[:, None],
        undecided_=fit.undecided[:n] if seen.proves else everything,
        history_=[] if fit is None else records(fit),
    )
    return model
