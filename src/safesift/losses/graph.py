"""The graph of a derivative as a table, and what is found in it: kinks, minimisers, brackets.

The subdifferential of a convex f of one number is a monotone curve of points (z, y), y ∈ ∂f(z),
vertical at kinks. `trace` follows it from z = −10¹⁶ to 10¹⁶ and returns nodes on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS
from safesift.losses.scalar import NotSmoothError, ScalarFunction

Array = NDArray[np.float64]

_N_NODES, _FARTHEST = 6001, 38.0
# a derivative that jumps by this share of a table's interval between neighbouring floats: a kink
_JUMP = 0.01
_MAX_ROUNDS = 12
# slopes that are below this share of the central ones next to where they vanish are a tail that
# is lost in rounding, not a minimum
_LOST_SHARE = 1e-12


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes (z, y) of the subdifferential of f, both never falling, split where y is 0.

    Attributes
    ----------
    function : ScalarFunction
        With its kinks.
    left, right : pairs of arrays
        z and y of the nodes with y < 0 and with y > 0, each in increasing order.
    minimum : (float, float)
        The ends of the set of minimisers, infinite where the infimum is not attained.
    infimum : float
        inf f.
    central : float
        The usual size of slopes around 0.
    doubt : float
        How far the ends of the minimum may be off, where slopes are interpolated.
    steepness : float
        The largest rate found at which slopes grow between kinks.
    """

    function: ScalarFunction
    left: tuple[Array, Array]
    right: tuple[Array, Array]
    minimum: tuple[float, float]
    infimum: float
    central: float
    doubt: float
    steepness: float

    @property
    def level(self) -> float:
        """The size of the numbers that f subtracts from each other near its minimum."""
        centre = np.clip(0.0, *self.minimum)
        around = self.function.value(np.array([centre - 1.0, centre + 1.0])) - self.infimum
        finite = around[np.isfinite(around)]
        return abs(self.infimum) + float(finite.max(initial=0.0))


def trace(function: ScalarFunction, what: str) -> Graph:
    """Follow the subdifferential of a function.

    Raises
    ------
    ValueError
        If the function is not convex, not finite, or has no infimum; `what` names it.
    """
    z = _nodes()
    try:
        y = function.slope(z)
    except NotSmoothError:
        raise ValueError(
            f"{what} is not smooth enough to be differentiated numerically (does it have kinks?): "
            "pass its derivative= as well."
        ) from None
    known = np.isfinite(y) & np.isfinite(function.value(z))
    if not known[np.abs(z) <= 1.0].all():
        raise ValueError(f"{what} must be finite: it is not at z={z[~known & (abs(z) <= 1)][0]:g}.")
    z, y = z[known], y[known]
    _require_convex(z, y, what)
    _require_consistent(function, z, y, what)
    z, y, kinks = _with_kinks(function, z, y, what)
    function = replace(function, kinks=kinks)
    return _split(function, z, np.maximum.accumulate(y), what)


def _nodes() -> Array:
    """Dense around 0, by a constant ratio further out, to ±10¹⁶; 0 itself is one."""
    return np.sinh(np.linspace(-_FARTHEST, _FARTHEST, _N_NODES)) * 0.2


def _require_convex(z: Array, y: Array, what: str) -> None:
    falls = y[:-1] - y[1:]
    worst = falls - 1e-9 * np.maximum(np.abs(y[:-1]), np.abs(y[1:]))
    if worst.max() > 1e-12 * central_slope(z, y):
        at = int(np.argmax(worst))
        raise ValueError(
            f"{what} must be convex, but its derivative falls from {y[at]:.6g} at z={z[at]:.6g} "
            f"to {y[at + 1]:.6g} at z={z[at + 1]:.6g}."
        )


def _require_consistent(function: ScalarFunction, z: Array, y: Array, what: str) -> None:
    """A convex function rises between its derivatives at two points: y₁Δ ≤ f(z₂) − f(z₁) ≤ y₂Δ."""
    value = function.value(z)
    step, rise = np.diff(z), np.diff(value)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.maximum(np.abs(y[1:]), np.abs(y[:-1])) * step
        room = 1e-9 * size + 1e-12 * (np.abs(value[1:]) + np.abs(value[:-1]) + central_slope(z, y))
        bad = (rise < y[:-1] * step - room) | (rise > y[1:] * step + room)
    if bad.any():
        at = int(np.flatnonzero(bad)[np.argmin(np.abs(z[:-1][bad]))])
        raise ValueError(
            f"{what} and its derivative do not belong together: it rises by {rise[at]:.6g} from "
            f"z={z[at]:.6g} to z={z[at + 1]:.6g}, where the derivative goes from {y[at]:.6g} to "
            f"{y[at + 1]:.6g}."
        )


def central_slope(z: Array, y: Array) -> float:
    """The usual size of slopes around 0."""
    return float(np.median(np.abs(y[np.abs(z) <= 2.0])))


def _with_kinks(
    function: ScalarFunction, z: Array, y: Array, what: str
) -> tuple[Array, Array, Array]:
    """The nodes with both sides of every kink among them, and the kinks.

    Between two nodes one jump is found at a time, so this is repeated until there is none.
    """
    kinks = np.empty(0)
    if function.derivative is None:
        return z, y, kinks
    for _ in range(_MAX_ROUNDS):
        low, high, y_low, y_high = _jumps(function, z, y)
        if not len(low):
            return z, y, kinks
        kinks = np.union1d(kinks, low)
        z, y = np.concatenate([z, low, high]), np.concatenate([y, y_low, y_high])
        order = np.lexsort((y, z))
        z, y = z[order], y[order]
    raise ValueError(f"{what} has too many kinks next to each other, around z={low[0]:.6g}.")


def _jumps(function: ScalarFunction, z: Array, y: Array) -> tuple[Array, Array, Array, Array]:
    """Neighbouring floats between which the derivative jumps: their z and their y."""
    apart = np.diff(z) > 4 * EPS * np.abs(z[1:])
    whole = np.diff(y)
    low, high, y_low, y_high = _steepest(function, z, y, 64)
    jump = y_high - y_low
    size = np.maximum(np.abs(y_low), np.abs(y_high))
    found = (jump > _JUMP * whole) & (jump > 1e-10 * size + 1e-12 * central_slope(z, y))
    found &= apart
    # 64 halvings end next to 0 in numbers far below what is meant
    low, high = (np.where(np.abs(end) < 1e-18, 0.0, end) for end in (low, high))
    return low[found], high[found], y_low[found], y_high[found]


def _steepest(
    function: ScalarFunction, z: Array, y: Array, halvings: int
) -> tuple[Array, Array, Array, Array]:
    """Of every interval the part on which y grows most, halved so often."""
    low, high, y_low, y_high = z[:-1], z[1:], y[:-1], y[1:]
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        y_middle = function.slope(middle)
        left = (y_middle - y_low) >= (y_high - y_middle)
        high, y_high = np.where(left, middle, high), np.where(left, y_middle, y_high)
        low, y_low = np.where(left, low, middle), np.where(left, y_low, y_middle)
    return low, high, y_low, y_high


def _steepness(function: ScalarFunction, z: Array, y: Array) -> float:
    """The largest growth rate of slopes on the steepest thousandth of every interval."""
    apart = np.diff(z) > 1e-9 * np.maximum(np.abs(z[1:]), 1e-3)
    low, high, y_low, y_high = _steepest(function, z, y, 10)
    with np.errstate(all="ignore"):
        rates = ((y_high - y_low) / (high - low))[apart]
    return float(np.max(rates[np.isfinite(rates)], initial=0.0))


def _split(function: ScalarFunction, z: Array, y: Array, what: str) -> Graph:
    falling, rising = np.flatnonzero(y < 0), np.flatnonzero(y > 0)
    central = central_slope(z, y)
    if y[-1] < -1e-9 * central or y[0] > 1e-9 * central:
        raise ValueError(f"{what} is not bounded below: a loss needs an infimum.")
    low = _edge(function, z, y, falling[-1], 1) if len(falling) else -math.inf
    high = _edge(function, z, y, rising[0], -1) if len(rising) else math.inf
    low, high = _meet(function, low, high)
    low = _attained(function, low, -1, central)
    high = _attained(function, high, 1, central)
    if math.isinf(low) and low > 0:
        infimum, high = float(function.value(z[-1:])[0]), math.inf
    elif math.isinf(high) and high < 0:
        infimum, low = float(function.value(z[:1])[0]), -math.inf
    else:
        infimum = float(function.value(np.array([np.clip(0.0, low, high)]))[0])
    doubt = _doubt(function, [end for end in (low, high) if math.isfinite(end)], central)
    left = (z <= low) & (y <= 0)
    right = (z >= high) & (y >= 0)
    return Graph(
        function=function,
        left=(z[left], y[left]),
        right=(z[right], y[right]),
        minimum=(low, high),
        infimum=infimum,
        central=central,
        doubt=doubt,
        steepness=_steepness(function, z, y),
    )


def _edge(function: ScalarFunction, z: Array, y: Array, at: int, side: int) -> float:
    """Where the derivative becomes 0, seen from one side, to the last float."""
    beyond = at + side
    if not 0 <= beyond < len(z):
        return side * math.inf
    inside, outside = z[at], z[beyond]
    sign = np.sign(y[at])
    for _ in range(100):
        middle = 0.5 * (inside + outside)
        if np.sign(function.slope(np.array([middle]))[0]) == sign:
            inside = middle
        else:
            outside = middle
    return 0.0 if abs(outside) < 1e-18 else float(outside)


def _meet(function: ScalarFunction, low: float, high: float) -> tuple[float, float]:
    """A single minimiser, where the two sides see it an ulp apart, or noise hides it."""
    noise = 1e-9 if function.derivative is not None else 1e-2
    if math.isfinite(low) and math.isfinite(high) and high - low <= noise * (1.0 + abs(low)):
        middle = 0.5 * (low + high)
        return middle, middle
    return low, high


def _attained(function: ScalarFunction, edge: float, side: int, central: float) -> float:
    """The edge of the minimisers, or infinity where slopes only became too small for floats."""
    if not math.isfinite(edge):
        return edge
    outside = np.array([edge + side * 0.05 * max(1.0, 0.01 * abs(edge))])
    steep = abs(float(function.slope(outside)[0]))
    return edge if steep > _LOST_SHARE * central else -side * math.inf


def _doubt(function: ScalarFunction, ends: list[float], central: float) -> float:
    """How far from a minimiser interpolated slopes are too small to be told from 0."""
    if function.derivative is not None:
        return 0.0
    distances = np.geomspace(1e-15, 1.0, 61)
    farthest = 0.0
    for end in ends:
        around = np.concatenate([end - distances, end + distances])
        lost = np.abs(function.slope(around)) <= 1e-12 * central
        farthest = max(farthest, float(np.abs(around - end)[lost].max(initial=0.0)))
    return 2.0 * farthest
