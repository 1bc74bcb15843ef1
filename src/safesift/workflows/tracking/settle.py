"""From an edit to the new optimum: all problems on the same samples, by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, solve_positive
from safesift.design.slots import Slots
from safesift.solvers.line_search import backtrack
from safesift.solvers.records import Fit, Settings
from safesift.workflows.tracking.data import Data, Edited
from safesift.workflows.tracking.follower import Follower, Slope, certified_gap, slope, undecided
from safesift.workflows.tracking.pieces import Classes, PieceTable

Array = NDArray[np.float64]

_MOST_STEPS = 50
# steps go on to this share of the gap that is asked for
_POLISH = 1e-2


@dataclass(frozen=True, eq=False)
class Settled:
    """Where a follower ended: exact value and gradient of all rows.

    Attributes
    ----------
    gap : float
        Certified, on all rows.
    value : float
        P.
    at : Slope
        The gradient there.
    """

    gap: float
    value: float
    at: Slope


def settle(follower: Follower, data: Data, settings: Settings) -> Settled:
    """Go to the optimum; the gap says how near that was.

    The tolerance is relative to P itself, which is less than P of the best constant model.
    """
    value, gap, changed = follower.value(data.total), math.inf, -1
    for steps_left in range(min(settings.max_iter, _MOST_STEPS), -1, -1):
        at = slope(follower, data)
        before, gap = gap, certified_gap(follower, data, at)
        # on the same pieces as before the gap falls, but for what the arithmetic allows
        stalled = changed == follower.n_changed and not gap < 0.5 * before
        if gap <= _POLISH * settings.tol * value or stalled or not steps_left:
            break
        changed = follower.n_changed
        reached = _step(follower, data, at, value)
        if reached is None:
            break
        value = reached
    return Settled(gap, value, at)


def _step(follower: Follower, data: Data, at: Slope, value: float) -> float | None:
    """A Newton step, shorter where P would rise; None where it does not fall at all."""
    start, step = follower.point, -_solved(follower.curvature(data.total), at.gradient)

    def along(share: float) -> float:
        follower.move(start + share * step, data)
        return follower.value(data.total)

    room = 64 * EPS * abs(value) + follower.sums.rounding(follower.length) / data.total
    share, reached = backtrack(along, value + room, factor=0.25)
    if share > 0:
        return reached
    follower.move(start, data)
    return None


def _solved(H: Array, right: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(H, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        return solve_positive(H, right)


@dataclass(frozen=True, eq=False)
class Tracking:
    """The samples, and the problems that are followed on them.

    Attributes
    ----------
    data : Data
    classes : Classes or None
        For classification.
    followers : tuple of Follower
        One for each problem; none where they cannot be followed.
    ends : tuple of Settled
        Where the followers are; none after a fit.
    n_read : int
        Rows read since steps have been measured in the present metric.
    """

    data: Data
    classes: Classes | None = None
    followers: tuple[Follower, ...] = ()
    ends: tuple[Settled, ...] = ()
    n_read: int = 0

    def following(self, fits: Sequence[Fit]) -> Tracking:
        """With a follower for each fit, at its solution: a pass for the sums, one for the metric.

        The fits are of smooth losses made of pieces (`made_of_pieces`), with an l2 penalty.
        """
        labels = [None] if self.classes is None else self.classes.positive
        followers = tuple(
            Follower(
                PieceTable(fit.problem.loss, label), fit.problem.alpha, fit.at.point, self.data
            )
            for label, fit in zip(labels, fits, strict=True)
        )
        return replace(self, followers=followers)._remeasured()

    def after(
        self, edited: Edited, classes: Classes | None, settings: Settings, residue: float
    ) -> Tracked:
        """Change the sums by the edited rows, and go to the new optimum.

        Everything here stays as it was. Where `Tracked.relative_gap` exceeds the tolerance, only a
        fit can help.

        Parameters
        ----------
        edited : Edited
            The data.
        classes : Classes or None
            The same classes, counted again.
        settings : Settings
        residue : float
            What rounding may change of P, as a share of it, before the sums are built anew.
        """
        data, leaving, entering = edited
        gaps, residues, ends, followers, rebuilt = [], [], [], [], False
        for before in self.followers:
            follower = before.fresh_copy()
            follower.swap(leaving, entering)
            end = settle(follower, data, settings)
            left = follower.residue(data.total)
            # twice what fresh sums had is no reason, since it would be there again
            if left > max(residue, 2.0 * follower.fresh_residue):
                follower.rebuild(data)
                end, rebuilt = settle(follower, data, settings), True
                left = follower.residue(data.total)
            gaps.append(_relative_gap(follower, data, end, settings.tol))
            residues.append(left)
            followers.append(follower)
            ends.append(end)
        n_read = self.n_read + sum(follower.n_read for follower in followers)
        moved = Tracking(data, classes, tuple(followers), tuple(ends), n_read)
        return Tracked(moved._measured_if_worth_it(), max(gaps), max(residues), rebuilt)

    def _measured_if_worth_it(self) -> Tracking:
        """In a new metric, once as much work has gone into rows as it takes.

        Data that drift leave the metric behind, and rows are then read more often than need be.
        """
        data, followers = self.data, self.followers
        if self.n_read <= data.n_samples * len(followers) * len(followers[0].point):
            return self
        measured = self._remeasured()
        for follower in followers:
            follower.n_read += data.n_samples
        return measured

    def _remeasured(self) -> Tracking:
        """In the metric of the curvature of the problems: of the rows that matter most."""
        curvatures = [follower.curvature(self.data.total) for follower in self.followers]
        moments = sum(curvatures[1:], start=curvatures[0]) / len(curvatures)
        measured = self.data.measured(moments)
        for follower in self.followers:
            follower.remeasure(self.data, measured)
        return replace(self, data=measured, n_read=0)

    @property
    def shared(self) -> Tracking:
        """The same for several owners, each of which takes a copy of the rows before it edits."""
        return replace(self, data=self.data.shared)

    # --- what is proved ---------------------------------------------------------------------

    @property
    def undecided_slots(self) -> Slots:
        """Rows that some problem does not prove to be on their piece at every optimum."""
        found = [
            undecided(follower, self.data, end.at)
            for follower, end in zip(self.followers, self.ends, strict=True)
        ]
        return found[0] if len(found) == 1 else np.unique(np.concatenate(found))

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """The same for every sample."""
        mask = np.zeros(len(self.data.y), dtype=bool)
        mask[self.undecided_slots] = True
        return mask[self.data.order]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """For every sample whether some problem does not prove that it has no influence."""
        kept, order, y = self.undecided, self.data.order, self.data.y[self.data.order]
        for follower in self.followers:
            terms = follower.table.terms(y, follower.piece[order], np.ones(len(order)))
            kept |= (terms.quadratic != 0) | (terms.linear != 0)
        return kept


@dataclass(frozen=True, eq=False)
class Tracked:
    """What came of an edit without a fit.

    Attributes
    ----------
    tracking : Tracking
    relative_gap : float
        The largest of any problem, or more.
    residue : float
        By how much the rounding of the sums may change P, as a share of it.
    rebuilt : bool
        Whether some sums were built anew for it.
    """

    tracking: Tracking
    relative_gap: float
    residue: float
    rebuilt: bool

    @property
    def points(self) -> Array:
        """The solutions, one in each row."""
        return np.array([follower.point for follower in self.tracking.followers])

    @property
    def gaps(self) -> Array:
        """Certified, on all rows."""
        return np.array([end.gap for end in self.tracking.ends])

    @property
    def n_read(self) -> int:
        """Rows read, by all problems together."""
        return sum(follower.n_read for follower in self.tracking.followers)

    @property
    def n_changed(self) -> int:
        """Rows that were found on another piece."""
        return sum(follower.n_changed for follower in self.tracking.followers)


def _relative_gap(follower: Follower, data: Data, end: Settled, tol: float) -> float:
    """The gap as a share of P of the best constant model, or a bound on that.

    P at the point, known up to an error, is at most `gap` above the minimum, which no constant
    model beats.
    """
    error = follower.sums.residue(follower.length) / data.total
    least = end.value - error - end.gap
    if 0 <= end.gap <= tol * least:
        return end.gap / least
    relative = end.gap / follower.problem(data).reference
    return math.inf if math.isnan(relative) else relative
