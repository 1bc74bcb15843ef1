"""safesift throws away the training samples that cannot change a model, and proves it.

>>> import safesift as ss
>>> sorted(ss.regions.REGIONS)
['auto', 'curvature', 'ellipsoid', 'gap_ball', 'gradient_ball', 'norm_ball', 'objective_ball']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# name -> the module that holds it; loaded when first used, so that the import stays cheap
_LAZY = {
    "IntervalRegressor": "safesift.estimators.interval",
    "SafeClassifier": "safesift.estimators.classifier",
    "SafeClassifierCV": "safesift.estimators.cross_validation",
    "SafeKernelClassifier": "safesift.estimators.kernel_classifier",
    "SafeKernelRegressor": "safesift.estimators.kernel_regressor",
    "SafeRegressor": "safesift.estimators.regressor",
    "SafeRegressorCV": "safesift.estimators.cross_validation",
    "SafeTracker": "safesift.tracking.tracker",
    "SampleScreener": "safesift.estimators.sampler",
    "MiningResult": "safesift.mining",
    "mine_hard": "safesift.mining",
    "SampleCompressor": "safesift.estimators.compressor",
    "Compressed": "safesift.compression",
    "CompressionCurve": "safesift.compression",
    "Ranking": "safesift.compression",
    "compress": "safesift.compression",
    "compression_curve": "safesift.compression",
    "rank_samples": "safesift.compression",
    "safe_path": "safesift.path",
    "PathResult": "safesift.path",
    "kernel_rows": "safesift.kernel_machines",
    "safe_kernel_path": "safesift.kernel_machines",
    "KernelPathResult": "safesift.kernel_machines",
    "screen": "safesift.screening",
    "ScreeningResult": "safesift.screening",
    "screen_range": "safesift.ranges",
    "RangeResult": "safesift.ranges",
    "solve_and_repair": "safesift.repair",
    "RegionError": "safesift.regions",
    "CustomOmega": "safesift.omegas",
    "Omega": "safesift.omegas",
    "SetDistance": "safesift.convolution",
    "infimum_convolution": "safesift.convolution",
    "make_safe": "safesift.convolution",
    "mu_for_fraction": "safesift.convolution",
    "mu_max": "safesift.convolution",
    "objective_bounds": "safesift.convolution",
    "plot_losses": "safesift.plotting",
    "pointwise_bound": "safesift.convolution",
}
_MODULES = ("datasets", "features", "grids", "losses", "penalties", "regions")

__all__ = [
    "Compressed",
    "CompressionCurve",
    "CustomOmega",
    "IntervalRegressor",
    "KernelPathResult",
    "MiningResult",
    "Omega",
    "PathResult",
    "RangeResult",
    "Ranking",
    "RegionError",
    "SafeClassifier",
    "SafeClassifierCV",
    "SafeKernelClassifier",
    "SafeKernelRegressor",
    "SafeRegressor",
    "SafeRegressorCV",
    "SafeTracker",
    "SampleCompressor",
    "SampleScreener",
    "ScreeningResult",
    "SetDistance",
    "__version__",
    "compress",
    "compression_curve",
    "datasets",
    "features",
    "grids",
    "infimum_convolution",
    "kernel_rows",
    "losses",
    "make_safe",
    "mine_hard",
    "mu_for_fraction",
    "mu_max",
    "objective_bounds",
    "penalties",
    "plot_losses",
    "pointwise_bound",
    "rank_samples",
    "regions",
    "safe_kernel_path",
    "safe_path",
    "screen",
    "screen_range",
    "solve_and_repair",
]

if TYPE_CHECKING:
    from safesift import datasets, features, grids, losses, penalties, regions
    from safesift.compression import (
        Compressed,
        CompressionCurve,
        Ranking,
        compress,
        compression_curve,
        rank_samples,
    )
    from safesift.convolution import (
        SetDistance,
        infimum_convolution,
        make_safe,
        mu_for_fraction,
        mu_max,
        objective_bounds,
        pointwise_bound,
    )
    from safesift.estimators.classifier import SafeClassifier
    from safesift.estimators.compressor import SampleCompressor
    from safesift.estimators.cross_validation import SafeClassifierCV, SafeRegressorCV
    from safesift.estimators.interval import IntervalRegressor
    from safesift.estimators.kernel_classifier import SafeKernelClassifier
    from safesift.estimators.kernel_regressor import SafeKernelRegressor
    from safesift.estimators.regressor import SafeRegressor
    from safesift.estimators.sampler import SampleScreener
    from safesift.kernel_machines import KernelPathResult, kernel_rows, safe_kernel_path
    from safesift.mining import MiningResult, mine_hard
    from safesift.omegas import CustomOmega, Omega
    from safesift.path import PathResult, safe_path
    from safesift.plotting import plot_losses
    from safesift.ranges import RangeResult, screen_range
    from safesift.regions import RegionError
    from safesift.repair import solve_and_repair
    from safesift.screening import ScreeningResult, screen
    from safesift.tracking.tracker import SafeTracker


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"safesift.{name}")
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'safesift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
