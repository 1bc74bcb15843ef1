"""One problem on its way from pass to pass: where it is, what is proved, what is worth trying."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, norm
from safesift.workflows.scale.certificate import Proof
from safesift.workflows.scale.found import Balance
from safesift.workflows.scale.outcomes import Outcome, PassRecord
from safesift.workflows.scale.passes import Query

Array = NDArray[np.float64]

# how far rows are held, in units of how the sample's solution scatters, and as a share of the size
# of the point
_WIDE, NEAR = 3.0, 1e-6
# a ball may be larger when it is measured again, and rows are held that are well outside it
_BALL, _HELD_BALLS = 1.5, 4.0
# the first step is at most so many times as long as the point
_TRUSTED = 100.0
# a gap of more than this share of the least one so far, and a value that did not fall by this share
# of it, is little gained; then rows are held so many times as far. After so many such passes in a
# row in which the value neither rose nor fell by what is asked for nothing more is expected
_LITTLE, _FALL, _WIDER, _MOST_IDLE = 0.5, 0.1, 4.0, 6


class State:
    """One problem on its way.

    Parameters
    ----------
    number : int
    query : Query
    unit : float
        The scale of its predictions.
    decides : bool
        Whether it is to be told what became of its rows: a fold needs no more than its model.
    """

    def __init__(self, number: int, query: Query, unit: float, decides: bool = True) -> None:
        self.number, self.query, self.unit, self.decides = number, query, unit, decides
        self.balance = Balance()
        # the proof of the last pass, that of the least value and that of the smallest gap
        self.proof: Proof | None = None
        self.best: Proof | None = None
        self.sharpest: Proof | None = None
        self.history: list[PassRecord] = []
        self.wide, self.done = _WIDE, False
        # passes in a row in which little was gained, and of those nothing at all
        self.last_try, self.in_vain, self.idle = False, 0, 0
        self.spread, self.all_held = query.spread, False
        # how far rows keep from the ends of their pieces, to be decided by a ball
        self.ball = 0.0
        # how far a step may lead: nobody knows how far a model made of pieces can be trusted
        spread = 0.0 if query.spread is None else norm(query.spread)
        self.trust = _TRUSTED * (norm(query.point) + spread + unit)

    @property
    def proved(self) -> Proof:
        assert self.proof is not None
        return self.proof

    @property
    def active(self) -> bool:
        """Whether another pass is worth it."""
        return not self.done and self.idle < _MOST_IDLE

    def note(self, found: Proof, asked: float) -> None:
        """Take what a pass has proved, and count it as one in vain where that is hardly more.

        Parameters
        ----------
        found : Proof
        asked : float
            The gap that is asked for.
        """
        least, best = self.sharpest, self.best
        fall = 0.0 if best is None else best.at.value - found.at.value
        gained = least is None or found.gap <= _LITTLE * least.gap
        if least is not None and math.isfinite(least.gap):
            gained |= fall >= max(_FALL * least.gap, rounding_of(found))
        self.in_vain = 0 if gained else self.in_vain + 1
        self.idle = (
            self.idle + 1 if not gained and abs(fall) < max(asked, rounding_of(found)) else 0
        )
        self.proof = found
        if least is None or found.gap < least.gap:
            self.sharpest = found

    def go_to(self, point: Array) -> None:
        """The point of the next pass; where little was gained, more rows are held there.

        They are expected to move as far as they do on the way to that point, and further with
        every such pass, until all of them are held that the budget allows. And the gap is measured
        in another way, too.
        """
        query, near = self.query, self.query.near
        if self.in_vain and not query.exact:
            # no row is held, and curvature that rows have to keep further out is less of it
            query = replace(query, direct=True)
        elif self.in_vain:
            way = (point - query.point)[:, None]
            spread = way if self.spread is None else np.concatenate([self.spread, way], axis=1)
            self.wide = max(self.wide, _WIDE) * _WIDER
            near = max(near, NEAR * norm(point)) * _WIDER**2
            query = replace(query, spread=spread, direct=True)
        self.query = replace(query, point=point, near=near)

    def decide_within(self, radius: float) -> None:
        """Let the next pass hold rows that a ball of about that radius would not decide."""
        self.ball = _BALL * radius
        self.query = replace(self.query, near=max(self.query.near, _HELD_BALLS * radius))

    def outcome(self) -> Outcome:
        """Where it ended: where the gap is smallest, unless rows are decided elsewhere."""
        proved = self.proved if self.done or self.sharpest is None else self.sharpest
        coef, intercept = proved.problem.split(proved.at.point)
        share = self.query.share or 1.0
        return Outcome(
            coef, intercept, proved.gap / share, proved.relative_gap, proved.at.value / share,
            self.done and self.decides and proved.decides, tuple(self.history),
        )  # fmt: skip


def rounding_of(proved: Proof) -> float:
    """Differences of values below that are none."""
    return 64 * EPS * abs(proved.at.value)
