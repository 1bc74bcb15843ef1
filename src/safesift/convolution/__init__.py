"""Safe losses: how a convex loss is given a flat region, what that costs, how to choose μ."""

from safesift.convolution.bounds import (
    ObjectiveBounds,
    PointwiseBounds,
    objective_bounds,
    pointwise_bound,
)
from safesift.convolution.choosing import MuChoice, Trial, mu_for_fraction, mu_max
from safesift.convolution.safe import infimum_convolution, make_safe
from safesift.convolution.sets import SetDistance

__all__ = [
    "MuChoice",
    "ObjectiveBounds",
    "PointwiseBounds",
    "SetDistance",
    "Trial",
    "infimum_convolution",
    "make_safe",
    "mu_for_fraction",
    "mu_max",
    "objective_bounds",
    "pointwise_bound",
]
