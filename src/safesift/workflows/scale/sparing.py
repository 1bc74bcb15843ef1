"""Parts of a source that a pass need not read: what is known of each since it was read.

Every folded row of a part stays on its piece as far from the point of a pass as the *clearance* of
the part. As long as the points of all problems have moved less than that, a pass over the part
would find the same rows on the same pieces, and hold the same ones: they are at hand. So only parts
are read in which a row may have left its piece. What came of it is known from what is folded of all
rows and from the rows that are held (`certificate.proof_nearby`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from safesift.arithmetic.numerics import EPS
from safesift.workflows.scale.found import Found, Held, Note


class Known:
    """What is known of every part, for the problems in flight, at their points.

    Parameters
    ----------
    numbers : sequence of int
        Of the problems.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = list(numbers)
        self.held: Held | None = None
        self._notes: dict[int, list[Note]] = {}

    def put(self, part: int, notes: Sequence[Note]) -> None:
        """What a pass found in a part; one without rows need not be read again."""
        if notes:
            self._notes[part] = list(notes)

    def among(self, numbers: Sequence[int]) -> Known | None:
        """The same for some of the problems; None where one of them is not known."""
        if not set(numbers) <= set(self.numbers) or self.held is None:
            return None
        columns = [self.numbers.index(number) for number in numbers]
        found = Known(numbers)
        found._notes = {part: [own[k] for k in columns] for part, own in self._notes.items()}
        found.held = self.held.wanted_among(columns)
        return found

    def due(self, needs: Sequence[float]) -> list[int]:
        """Parts in which some row may leave its piece, if points move as far as that."""
        return [
            part
            for part, own in self._notes.items()
            if not all(need < note.clearance for need, note in zip(needs, own, strict=True))
        ]

    def move(self, steps: Sequence[float]) -> None:
        """Let the points move as far as that, at most."""
        for part, own in self._notes.items():
            pairs = zip(own, steps, strict=True)
            left = [note.clearance - step * (1.0 + 4 * EPS) for note, step in pairs]
            self._notes[part] = [note._replace(clearance=room * (1.0 - 4 * EPS))
                                 for note, room in zip(own, left, strict=True)]  # fmt: skip

    def held_elsewhere(self, parts: Sequence[int]) -> Held:
        """The rows that are held of other parts; all of them are let go, as some are read again."""
        assert self.held is not None  # since the first pass
        held, self.held = self.held, None
        return held.take(np.flatnonzero(~np.isin(held.parts, parts)))

    def whole(self, k: int, found: Found) -> Found:
        """The same of one problem, with what is counted over all parts."""
        clearances, *counts = zip(*(notes[k] for notes in self._notes.values()), strict=True)
        n_kept, n_undecided, n_decided = map(sum, counts)
        return replace(
            found, clearance=min(clearances), n_kept=n_kept, n_undecided=n_undecided,
            n_decided=n_decided,
        )  # fmt: skip
