"""Losses: each one in one class, a function of prediction and target, elementwise.

A loss knows its value, its slope, its curvature, its conjugate and the pieces on which it is
flat, linear or quadratic. It knows nothing of regions: a decision (`problem.decisions`) is the
strict containment of an interval of predictions in a piece.

To add a loss, subclass `MarginLoss` (a function φ of the margin y·prediction, y = ±1),
`ResidualLoss` (a function φ of the residual prediction − y) or `IntervalLoss` (a function ψ of the
distance of the prediction to an interval), make it a frozen dataclass of its parameters, each with
a default, and put it into `LOSSES`, from inside or outside the library: `LOSSES["mine"] = Mine`. It
then goes by that name wherever a loss does, and the law tests pick it up from there. Where φ* is a
parabola with a kink at 0, declare the ends of argmin φ as `_minimisers`: the dual solvers then have
closed-form steps (`Loss.dual_form`).

Every loss here is convex, non-negative, and has infimum 0, so that 0 is in the domain of its
conjugate with f*(0) = 0.
"""

from safesift.losses.base import Loss, MarginLoss, Piece, ResidualLoss
from safesift.losses.classification import (
    AbsoluteMargin,
    Hinge,
    Logistic,
    SafeLogistic,
    SmoothedHinge,
    SquaredHinge,
    SquaredMargin,
)
from safesift.losses.interval import (
    AbsoluteInterval,
    IntervalLoss,
    SmoothedInterval,
    SquaredInterval,
)
from safesift.losses.multiples import Scaled
from safesift.losses.numeric import NumericMargin, NumericResidual, from_function
from safesift.losses.regression import (
    EpsilonInsensitive,
    Huber,
    SmoothedEpsilonInsensitive,
    Squared,
    SquaredEpsilonInsensitive,
)

__all__ = [
    "LOSSES",
    "AbsoluteInterval",
    "AbsoluteMargin",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "IntervalLoss",
    "Logistic",
    "Loss",
    "MarginLoss",
    "NumericMargin",
    "NumericResidual",
    "Piece",
    "ResidualLoss",
    "SafeLogistic",
    "Scaled",
    "SmoothedEpsilonInsensitive",
    "SmoothedHinge",
    "SmoothedInterval",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "SquaredInterval",
    "SquaredMargin",
    "from_function",
]

LOSSES: dict[str, type[Loss]] = {
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "smoothed_hinge": SmoothedHinge,
    "logistic": Logistic,
    "safe_logistic": SafeLogistic,
    "squared": Squared,
    "huber": Huber,
    "epsilon_insensitive": EpsilonInsensitive,
    "smoothed_epsilon_insensitive": SmoothedEpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
    "squared_interval": SquaredInterval,
    "absolute_interval": AbsoluteInterval,
    "smoothed_interval": SmoothedInterval,
}
