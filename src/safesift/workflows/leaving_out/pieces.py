"""Leaving samples out of a model whose losses are linear or quadratic piece by piece, with l2.

`arithmetic.compiled.leave_out` does the work; this is what it works on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic import threads
from safesift.arithmetic.compiled.leave_out import BEYOND, leave_out, workspace
from safesift.arithmetic.numerics import norm
from safesift.workflows.leaving_out.base import Array, Base, Pieces, Rows
from safesift.workflows.leaving_out.groups import Groups
from safesift.workflows.leaving_out.models import Models

# samples within reach are held whitened, as far as this multiple of the longest first step
_ROOM = 2.0
# and where models need more, as far as this multiple of what was held
_MORE = 4.0


@dataclass(frozen=True, eq=False)
class PiecewiseSpace:
    """A base, and its samples in the order in which they may change piece.

    Parameters
    ----------
    base : Base
    pieces : Pieces
    """

    base: Base
    pieces: Pieces

    @cached_property
    def which(self) -> NDArray[np.int8]:
        """The piece of every sample at the base."""
        return self.pieces.at(self.base.at.pred)

    @cached_property
    def slopes(self) -> Array:
        """Of every sample's piece at the base."""
        quadratic, linear = self.pieces.of(self.which)
        return quadratic * self.base.at.pred + linear

    @cached_property
    def reach(self) -> Array:
        """The least ‖v‖ at which a sample may change its piece; those without weight never do."""
        base = self.base
        distance = self.pieces.distance(base.at.pred, self.which) - base.pred_error
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.maximum(distance, 0.0) / base.z_norms * (1.0 - 1e-12)
        reach[np.isnan(reach)] = 0.0
        return np.where(base.problem.shares > 0, reach, math.inf)

    @cached_property
    def first_steps(self) -> Array:
        """About ‖v‖ for every sample that is left out alone."""
        base = self.base
        shares, z = base.problem.shares, base.z_norms
        kept = np.maximum(1.0 - shares * base.curvature * z**2, 1e-2)
        return shares * np.abs(self.slopes) * z / kept

    @cached_property
    def _samples(self) -> tuple:
        base = self.base
        return (
            base.at.pred, base.pred_error, base.problem.shares, self.which.astype(np.int64),
            self.pieces.breaks, self.pieces.quadratic, self.pieces.linear, base.z_norms,
            base.z_errors,
        )  # fmt: skip

    @property
    def _white(self) -> tuple:
        base = self.base
        return (
            base.image, base.image_error, base.looseness, base.share_error, base.pull_of_alpha,
            base.growth,
        )  # fmt: skip

    def points(self, moves: Array) -> Array:
        """Models by how they differ from that of the base."""
        return self.base.points(moves)

    def models(
        self, groups: Groups, todo: Rows, shifts: Array, keep: bool = False, n_moved: int = 0
    ) -> Models:
        """The models without each of some groups.

        Parameters
        ----------
        groups : Groups
        todo : array of integers
            The numbers of those groups.
        shifts : array
            By how much the alpha of each of them is above that of the base.
        keep : bool
            Whether to keep how every model differs from that of the base.
        n_moved : int
            For how many samples of each model to keep what became of their slopes.
        """
        found = Models.empty(groups, self.base.n_columns if keep else 0, n_moved)
        idle = ~groups.any(self._pulling)[todo] & (shifts == 0)
        self._keep_base(groups, todo[idle], found)
        todo, shifts = todo[~idle], shifts[~idle]
        steps = groups.sums(self.first_steps)[todo] + np.abs(shifts) * norm(self.base.pull_of_alpha)
        room = _ROOM * float(steps.max(initial=0.0)) + 4.0 * norm(self.base.image)
        while len(todo):
            held = self._held(room)
            self._leave_out(groups, todo, shifts, held, found)
            beyond = found.status[todo] == BEYOND
            todo, shifts = todo[beyond], shifts[beyond]
            if math.isinf(held.limit):
                break
            room = _MORE * room
        return found

    @cached_property
    def _pulling(self) -> NDArray[np.bool_]:
        """Samples that may have a slope other than 0 at the optimum: others have no influence."""
        quadratic, linear = self.pieces.of(self.which)
        nearby = self._own_optimum.length[0] + self._own_optimum.radius[0]
        flat = (quadratic == 0) & (linear == 0) & (self.reach > nearby)
        return ~flat & (self.base.problem.shares > 0)

    @cached_property
    def _own_optimum(self) -> Models:
        """Of all samples: the base is next to it."""
        nobody = Groups(
            np.full(len(self.which), -1), np.zeros(0, np.intp), np.zeros(2, dtype=np.intp)
        )
        found = Models.empty(nobody, self.base.n_columns)
        one, held = np.zeros(1, dtype=np.intp), self._held(self._nearby)
        self._leave_out(nobody, one, np.zeros(1), held, found)
        return found

    def _keep_base(self, groups: Groups, some: Rows, found: Models) -> None:
        """Groups of samples without influence: their model is that of the base."""
        if not len(some):
            return
        members, _ = groups.members_of(some)
        base, alone = self.base, self._own_optimum
        far = alone.length[0] + alone.radius[0]
        found.pred[members] = base.at.pred[members]
        found.half[members] = base.pred_error[members] + base.z_norms[members] * far
        # the base itself, so that no slope has changed, and the optimum is that far from it
        found.status[some], found.length[some], found.radius[some] = alone.status[0], 0.0, far

    @property
    def _nearby(self) -> float:
        """A radius around the base that certainly contains its own optimum, if that is settled."""
        return 1e3 * (norm(self.base.image) + self.base.image_error)

    def _held(self, room: float) -> Held:
        near = np.flatnonzero(self.reach <= room)
        order = np.argsort(self.reach[near], kind="stable")
        beyond = self.reach[self.reach > room]
        # in the order in which they are looked at
        white = self.base.whitened(near)[order]
        limit = float(beyond.min()) if len(beyond) else math.inf
        return Held(near[order], self.reach[near[order]], white, limit)

    def _leave_out(
        self, groups: Groups, todo: Rows, shifts: Array, held: Held, found: Models
    ) -> None:
        base, owner = self.base, groups.owner

        def work(block: slice) -> None:
            some = todo[block]
            members, starts = groups.members_of(some)
            rows, back = np.unique(members, return_inverse=True)
            own = base.whitened(rows)[back]
            part = found.part(some, len(members))
            leave_out(
                some, members, starts, own, owner, self._samples, held.reach,
                (held.order, held.white), held.limit, self._white, shifts[block],
                workspace(base.n_columns), part.arrays,
            )  # fmt: skip
            found.put(some, members, part)

        threads.run(work, base.blocks(len(todo), groups.largest))


@dataclass(frozen=True, eq=False)
class Held:
    """Whitened rows of the samples that may change their piece, in the order of their reach."""

    order: Rows
    reach: Array
    white: Array
    limit: float
