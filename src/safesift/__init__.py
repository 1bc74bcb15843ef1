"""safesift throws away the training samples that cannot change a model, and proves it.

>>> import safesift as ss
>>> sorted(ss.regions.REGIONS)
['auto', 'curvature', 'ellipsoid', 'gap_ball', 'gradient_ball', 'norm_ball', 'objective_ball']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from safesift import registry

__version__ = "0.1.0"

# module -> the public names it holds; loaded when first used, so that the import stays cheap
_PUBLIC = {
    "safesift.losses.conventions": ("C_from_alpha", "alpha_from_C"),
    "safesift.estimators.classifier": ("SafeClassifier",),
    "safesift.estimators.compression_curve": ("CompressionCurve", "compression_curve"),
    "safesift.estimators.cross_validation": ("SafeClassifierCV", "SafeRegressorCV"),
    "safesift.estimators.interval": ("IntervalRegressor",),
    "safesift.estimators.kernel": ("SafeKernelClassifier", "SafeKernelRegressor"),
    "safesift.estimators.mining": ("MiningResult", "mine_hard"),
    "safesift.estimators.regressor": ("SafeRegressor",),
    "safesift.estimators.sampler": ("SampleCompressor", "SampleScreener"),
    "safesift.estimators.tracker": ("SafeTracker",),
    "safesift.faces.plotting": ("plot_losses",),
    "safesift.losses.omegas": ("CustomOmega", "Omega"),
    "safesift.losses.safe": ("SetDistance", "infimum_convolution", "make_safe"),
    "safesift.regions": ("RegionError",),
    "safesift.workflows.certified_alpha": ("CertifiedAlpha", "certify_alpha"),
    "safesift.workflows.choose_mu": ("mu_for_fraction", "mu_max"),
    "safesift.workflows.compression": ("Compressed", "Ranking", "compress", "rank_samples"),
    "safesift.workflows.leaving_out": ("Influence", "LeaveOneOut", "leave_one_out"),
    "safesift.workflows.jackknife": ("LabelSets", "PredictionIntervals", "jackknife_plus"),
    "safesift.workflows.kernel_path": ("KernelPathResult", "kernel_rows", "safe_kernel_path"),
    "safesift.workflows.objective_bounds": ("objective_bounds", "pointwise_bound"),
    "safesift.workflows.path": ("PathResult", "safe_path"),
    "safesift.workflows.ranges": ("RangeResult", "screen_range"),
    "safesift.workflows.repair": ("solve_and_repair",),
    "safesift.workflows.scale.engine": ("engine",),
    "safesift.workflows.scale.results": ("BlockScreening",),
    "safesift.workflows.screening": ("screen",),
    "safesift.workflows.verdicts": ("ScreeningResult",),
}
_MODULES = {
    "blocks": "safesift.design.block_sources",
    "grids": "safesift.grids",
    "losses": "safesift.losses",
    "penalties": "safesift.penalties",
    "regions": "safesift.regions",
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = ["__version__", *sorted((*_MODULES, *_HOME))]

# what results offer and faces draw, write or read: imported when first asked for
registry.provide("card_html", "safesift.faces.cards")
registry.provide("plot_certified_alpha", "safesift.faces.leaving_out")
registry.provide("plot_choice", "safesift.faces.plotting")
registry.provide("plot_compression", "safesift.faces.plotting")
registry.provide("plot_leave_one_out", "safesift.faces.leaving_out")
registry.provide("plot_path", "safesift.faces.plotting")
registry.provide("plot_screening", "safesift.faces.plotting")
registry.provide("summary", "safesift.faces.summaries")
registry.provide("summary_of_leaving_out", "safesift.faces.leaving_out")
registry.provide("write_report", "safesift.faces.reports")
registry.provide("estimator_of", "safesift.estimators.models")
registry.provide("estimator_of_blocks", "safesift.estimators.models")
registry.provide("format_of", "safesift.faces.files")

if TYPE_CHECKING:
    from safesift import grids, losses, penalties, regions
    from safesift.design import block_sources as blocks
    from safesift.estimators.classifier import SafeClassifier
    from safesift.estimators.compression_curve import CompressionCurve, compression_curve
    from safesift.estimators.cross_validation import SafeClassifierCV, SafeRegressorCV
    from safesift.estimators.interval import IntervalRegressor
    from safesift.estimators.kernel import SafeKernelClassifier, SafeKernelRegressor
    from safesift.estimators.mining import MiningResult, mine_hard
    from safesift.estimators.regressor import SafeRegressor
    from safesift.estimators.sampler import SampleCompressor, SampleScreener
    from safesift.estimators.tracker import SafeTracker
    from safesift.faces.plotting import plot_losses
    from safesift.losses.conventions import C_from_alpha, alpha_from_C
    from safesift.losses.omegas import CustomOmega, Omega
    from safesift.losses.safe import SetDistance, infimum_convolution, make_safe
    from safesift.regions import RegionError
    from safesift.workflows.certified_alpha import CertifiedAlpha, certify_alpha
    from safesift.workflows.choose_mu import mu_for_fraction, mu_max
    from safesift.workflows.compression import Compressed, Ranking, compress, rank_samples
    from safesift.workflows.jackknife import LabelSets, PredictionIntervals, jackknife_plus
    from safesift.workflows.kernel_path import KernelPathResult, kernel_rows, safe_kernel_path
    from safesift.workflows.leaving_out import Influence, LeaveOneOut, leave_one_out
    from safesift.workflows.objective_bounds import objective_bounds, pointwise_bound
    from safesift.workflows.path import PathResult, safe_path
    from safesift.workflows.ranges import RangeResult, screen_range
    from safesift.workflows.repair import solve_and_repair
    from safesift.workflows.scale.engine import engine
    from safesift.workflows.scale.results import BlockScreening
    from safesift.workflows.screening import screen
    from safesift.workflows.verdicts import ScreeningResult


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'safesift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
