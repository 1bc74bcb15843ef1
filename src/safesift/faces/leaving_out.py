"""What leaving samples out has found, in words and in pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safesift.faces.plotting import BLUE, INK, ORANGE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from safesift.workflows.certified_alpha import CertifiedAlpha
    from safesift.workflows.leaving_out import LeaveOneOut

# so many samples are drawn at most
_MOST_DRAWN = 20_000


def summary_of_leaving_out(loo: LeaveOneOut) -> str:
    """How many models, how good their predictions are, and how surely these are known."""
    n, n_groups = len(loo.decision), len(loo.n_changed)
    what = "a sample" if n == n_groups else "a group"
    score = "accuracy" if loo.classes is not None else "R²"
    score = "minus mean distance" if loo.y.ndim == 2 else score
    width, spread = np.max(loo.upper - loo.lower), float(np.std(loo.decision))
    fitted = "" if loo.y.ndim == 2 else f" (all samples: {_fitted_score(loo):.4g})"
    lines = [
        f"{n_groups} models without {what} each: {loo.training}",
        f"  {score} of their predictions: {loo.score():.4g}{fitted}",
        f"  intervals: at most {width:.2g} long, predictions spread by {spread:.2g}",
        f"  {np.mean(loo.n_changed > 0):.0%} of the models move other samples across a kink, "
        f"{loo.n_changed.mean():.2g} each on average",
        f"  solved for one by one: {loo.n_refits}",
    ]
    if loo.classes is not None:
        lines.append(f"  label certain for {np.mean(loo.certain):.1%} of the samples")
    worst = ", ".join(map(str, loo.suspects(5)))
    return "\n".join([*lines, f"  most at odds with the others: rows {worst}"])


def _fitted_score(loo: LeaveOneOut) -> float:
    from dataclasses import replace

    return replace(loo, decision=loo.fitted).score()


def plot_leave_one_out(loo: LeaveOneOut, axes: Axes | None = None) -> Axes:
    """Each sample's decision value with it and without it; most at odds are marked."""
    axes = new_axes(axes)
    column = slice(None) if loo.decision.ndim == 1 else (slice(None), 0)
    with_it, without = loo.fitted[column], loo.decision[column]
    drawn = np.arange(len(with_it))
    if len(drawn) > _MOST_DRAWN:
        drawn = np.random.default_rng(0).choice(drawn, _MOST_DRAWN, replace=False)
    axes.axline((0.0, 0.0), slope=1.0, color="#bbbbbb", lw=1, zorder=0)
    error = np.where(np.isfinite(loo.upper), 0.5 * (loo.upper - loo.lower), 0.0)[column][drawn]
    if error.max(initial=0.0) > 1e-3 * np.std(without):
        axes.errorbar(with_it[drawn], without[drawn], error, fmt="none", ecolor="#cccccc", lw=0.6)
    size = 4.0 if len(drawn) > 2000 else 12.0
    axes.scatter(
        with_it[drawn], without[drawn], s=size, color=BLUE, alpha=0.5, lw=0, rasterized=True
    )
    worst = loo.suspects(10)
    axes.scatter(
        with_it[worst], without[worst], s=40, facecolors="none", edgecolors=ORANGE, lw=1.2,
        label="most at odds with the others",
    )  # fmt: skip
    axes.set_xlabel("prediction of the model of all samples", color=INK)
    axes.set_ylabel("prediction of the model without the sample", color=INK)
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def plot_certified_alpha(found: CertifiedAlpha, axes: Axes | None = None) -> Axes:
    """The band in which the validation error of every alpha lies, and the alphas solved for."""
    axes = new_axes(axes)
    edges = np.array([one.low for one in found.intervals] + [found.intervals[-1].high])
    lower = np.array([one.lower for one in found.intervals])
    upper = np.array([one.upper for one in found.intervals])
    shown = np.minimum(upper, 2.0 * np.max(found.trials[:, 1]))
    axes.stairs(
        shown, edges, baseline=lower, fill=True, color=BLUE, alpha=0.3, lw=0, label="proved"
    )
    axes.plot(*found.trials.T, ".", ms=3, color=INK, label="solved for")
    axes.axhline(found.least, color=BLUE, lw=1, ls=":")
    axes.plot([found.alpha], [found.error], "o", ms=9, mfc="none", color=ORANGE, label="best")
    axes.set_xscale("log")
    axes.set_xlabel("alpha", color=INK)
    axes.set_ylabel(f"{found.metric} error of held-out samples", color=INK)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
