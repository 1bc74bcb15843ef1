"""Regions that contain every optimum, and bound the prediction of every row."""

from safesift.problem.decisions import Bounds
from safesift.regions.auto import Auto
from safesift.regions.ball import (
    BallRegion,
    GapBall,
    GradientBall,
    GuessedBall,
    NormBall,
    ObjectiveBall,
)
from safesift.regions.base import Intersection, Region, RegionError, TestSet
from safesift.regions.curvature import Curvature
from safesift.regions.cuts import HalfSpaceCut
from safesift.regions.ellipsoid import Ellipsoid
from safesift.regions.ellipsoidal import EllipsoidalSet
from safesift.regions.previous import AlphaBall, Edit, EditBall

__all__ = [
    "REGIONS",
    "AlphaBall",
    "Auto",
    "BallRegion",
    "Bounds",
    "Curvature",
    "Edit",
    "EditBall",
    "Ellipsoid",
    "EllipsoidalSet",
    "GapBall",
    "GradientBall",
    "GuessedBall",
    "HalfSpaceCut",
    "Intersection",
    "NormBall",
    "ObjectiveBall",
    "Region",
    "RegionError",
    "TestSet",
]

REGIONS: dict[str, type[Region]] = {
    "auto": Auto,
    "curvature": Curvature,
    "gap_ball": GapBall,
    "gradient_ball": GradientBall,
    "norm_ball": NormBall,
    "objective_ball": ObjectiveBall,
    "ellipsoid": Ellipsoid,
}
