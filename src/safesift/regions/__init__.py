"""Regions that contain every optimum, and bound the prediction of every row.

To add a region, subclass `BallRegion` (a `Ball` in the penalised coordinates) or `Region` (any
`TestSet`), make it a frozen dataclass of its parameters, each with a default, and put it into
`REGIONS`, from inside or outside the library: `REGIONS["mine"] = Mine`. It then goes by that name
wherever a region does, and the law tests pick it up from there.
"""

from safesift.problem.decisions import Bounds
from safesift.regions.auto import Auto
from safesift.regions.ball import (
    Ball,
    BallRegion,
    GapBall,
    GradientBall,
    GuessedBall,
    NormBall,
    ObjectiveBall,
)
from safesift.regions.base import Intersection, Region, RegionError, TestSet
from safesift.regions.curvature import Curvature
from safesift.regions.ellipsoid import Ellipsoid, HalfSpaceCut
from safesift.regions.ellipsoidal import EllipsoidalSet
from safesift.regions.previous import AlphaBall, Edit, EditBall

__all__ = [
    "REGIONS",
    "AlphaBall",
    "Auto",
    "Ball",
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
