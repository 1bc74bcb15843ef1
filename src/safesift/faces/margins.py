"""How far every sample is from where it would not count: what pictures of a screening show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import on_host
from safesift.problem.decisions import Bounds
from safesift.workflows.verdicts import Screened, ScreeningResult, flat_excess

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Excess:
    """How far predictions stick out of the flat piece of the loss; below 0 is inside.

    Of several classes the one that needs a sample most counts.

    Attributes
    ----------
    at_centre, at_worst : arrays of shape (n_samples,)
        At the model that was found, and at any optimum.
    limits : (float, float)
        That leave out the few samples that are very far away.
    axis : str
        What that is, in words.
    """

    at_centre: Array
    at_worst: Array
    limits: tuple[float, float]
    axis: str

    @classmethod
    def of(cls, result: ScreeningResult) -> Excess:
        centre = np.max([_at_centre(part) for part in result.parts], axis=0)
        flat = any(piece.is_flat for piece in result.parts[0].problem.pieces)
        axis = "distance out of the flat piece" if flat else "slope of the loss"
        return cls(centre, result.score, _limits(centre), axis)

    def order(self, kept: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Dropped samples first, each by how far they are."""
        return np.lexsort((self.at_centre, kept))


def _at_centre(part: Screened) -> Array:
    return on_host(flat_excess(part.problem, Bounds(part.at.pred, part.at.pred)))


def _limits(values: Array) -> tuple[float, float]:
    low, high = np.quantile(values, [0.01, 0.99])
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    room = 0.1 * (high - low) or 1.0
    return low - room, high + room
