"""Pictures of losses, choices, screenings, paths and compression; drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from safesift.faces.margins import Excess
from safesift.losses import LOSSES, Loss
from safesift.losses.safe import flat_interval
from safesift.registry import naming_extra, resolve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from safesift.estimators.compression_curve import CompressionCurve
    from safesift.workflows.choose_mu import MuChoice
    from safesift.workflows.path import PathResult
    from safesift.workflows.verdicts import ScreeningResult

INK, BLUE, ORANGE, GREEN, SKY = "#333333", "#4477aa", "#dd7733", "#228833", "#66ccee"
_COLORS = (INK, BLUE, ORANGE, GREEN, "#aa3377", SKY, "#ccbb44")
_DROPPABLE, _SCORE = BLUE, ORANGE
# a method keeps its colour in every picture
_METHOD_COLORS = {
    "hybrid": ORANGE, "screening": BLUE, "random": INK, "margin": SKY, "leverage": GREEN,
}  # fmt: skip


def plot_losses(
    losses: str | Loss | Sequence[str | Loss] | Mapping[str, str | Loss],
    axes: Axes | None = None,
    *,
    limits: tuple[float, float] = (-3.0, 3.0),
) -> Axes:
    """Draw losses against the margin (classification) or the residual (regression).

    The flat region of each is a bar below the curves.

    Parameters
    ----------
    losses : str or Loss, a sequence of them, or a mapping of labels to them
        Names or objects, all of one task.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.
    limits : (float, float), default=(-3, 3)

    Returns
    -------
    matplotlib Axes
    """
    if isinstance(losses, str | Loss):
        losses = [losses]
    named = losses if isinstance(losses, Mapping) else {str(loss): loss for loss in losses}
    labelled = {label: resolve("losses", loss, LOSSES, Loss) for label, loss in named.items()}
    tasks = {loss.task for loss in labelled.values()}
    if len(tasks) != 1:
        raise ValueError(
            "losses must hold at least one loss, all for classification or all for regression: "
            "draw the others on axes of their own."
        )
    axes = new_axes(axes)
    classification = tasks == {"classification"}
    t = np.linspace(*limits, 1201)
    for k, (label, loss) in enumerate(labelled.items()):
        color = _COLORS[k % len(_COLORS)]
        values = loss.value(t, np.full_like(t, 1.0 if classification else 0.0))
        axes.plot(t, values, color=color, lw=2, label=label)
    axes.set_xlim(*limits)
    _mark_flat_regions(axes, list(labelled.values()), limits)
    axes.set_xlabel("margin  y · prediction" if classification else "residual  prediction − y")
    axes.set_ylabel("loss")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _mark_flat_regions(axes: Axes, losses: list[Loss], limits: tuple[float, float]) -> None:
    top, lane = axes.get_ylim()[1], 0
    for k, loss in enumerate(losses):
        flat = flat_interval(loss)
        if flat is not None:
            lane += 1
            height = -0.035 * lane * top
            color = _COLORS[k % len(_COLORS)]
            ends = np.clip(flat, *limits)
            axes.plot(ends, [height, height], color=color, lw=4, solid_capstyle="butt")
    axes.axhline(0.0, color="#cccccc", lw=0.8, zorder=0)
    axes.set_ylim(-0.035 * (lane + 1) * top, top)


def plot_choice(choice: MuChoice, axes: Axes | None = None) -> Axes:
    """Draw the droppable share and the score of every trial against μ."""
    axes = new_axes(axes)
    mu = [trial.mu for trial in choice.trials]
    axes.plot(mu, [100 * trial.fraction for trial in choice.trials], "o-", ms=4, color=_DROPPABLE)
    axes.plot(mu, [100 * trial.certified for trial in choice.trials], "--", color=_DROPPABLE)
    axes.axvline(choice.mu, color="#999999", lw=1, ls=":")
    axes.plot([choice.mu], [100 * choice.fraction], "o", ms=10, mfc="none", color=_DROPPABLE)
    axes.set_xlabel("μ")
    axes.set_ylabel("% of samples: droppable (line), proved (dashed)", color=_DROPPABLE)
    axes.set_ylim(-3, 103)
    score = axes.twinx()
    name = "training accuracy" if choice.loss.task == "classification" else "training R²"
    score.plot(mu, [trial.score for trial in choice.trials], "s-", ms=4, color=_SCORE)
    score.axhline(choice.original_score, color=_SCORE, lw=1, ls=":")
    score.set_ylabel(f"{name} (dotted: original loss)", color=_SCORE)
    axes.set_title(
        f"μ = {choice.mu:.3g}: {100 * choice.fraction:.0f} % of the samples droppable", loc="left"
    )
    for each in (axes, score):
        each.spines["top"].set_visible(False)
    return axes


def new_axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise naming_extra(error) from None
    return pyplot.subplots(figsize=(6.4, 4.4), layout="constrained")[1]


def plot_path(path: PathResult, axes: Axes | None = None) -> Axes:
    """Draw the coefficients of a path, and the share of samples that are kept.

    Parameters
    ----------
    path : PathResult
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes(axes)
    order = np.argsort(path.alphas)
    alphas, coefs = path.alphas[order], path.coefs[order]
    largest = np.argsort(-np.abs(coefs).max(axis=0))
    for rank, feature in enumerate(largest):
        named = rank < len(_COLORS) - 1
        axes.plot(
            alphas, coefs[:, feature], zorder=2 - rank / 1e6,
            color=_COLORS[1 + rank] if named else "#bbbbbb", lw=1.8 if named else 0.8,
            label=path.feature(int(feature)) if named else None,
        )  # fmt: skip
    axes.set_xscale("log")
    if path.parameter == "alpha":
        axes.invert_xaxis()  # towards less regularisation
    axes.set_xlabel(path.parameter)
    axes.set_ylabel("coefficients")
    share = axes.twinx()
    share.plot(alphas, path.n_kept[order], color=INK, ls="--", lw=2, label="kept samples")
    share.set_ylim(bottom=0)
    share.set_ylabel("kept samples (dashed)")
    lines = [*axes.get_lines()[: len(_COLORS) - 1], *share.get_lines()]
    share.legend(handles=lines, loc="best", framealpha=0.85, edgecolor="none", fontsize=8)
    for each in (axes, share):
        each.spines["top"].set_visible(False)
    return axes


def plot_screening(result: ScreeningResult, axes: Axes | None = None) -> Axes:
    """Draw how far every sample is from where it would not count, at the centre and at worst.

    Samples are sorted by how far their prediction at the centre is out of the flat piece of the
    loss; the line above is how far it may be at any optimum. Below zero is dropped.

    Parameters
    ----------
    result : ScreeningResult
        Of several classes the one that needs a sample most counts.
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes(axes)
    excess = Excess.of(result)
    order, (low, high) = excess.order(result.kept), excess.limits
    at, worst, kept = excess.at_centre[order], excess.at_worst[order], result.kept[order]
    rank = np.arange(len(order))
    for mask, color, label in ((~kept, BLUE, "dropped"), (kept, ORANGE, "kept")):
        if mask.any():
            top = np.clip(worst[mask], low, high)
            axes.vlines(rank[mask], np.clip(at[mask], low, high), top, color=color, alpha=0.25)
            axes.plot(rank[mask], at[mask], ".", ms=4, color=color, label=f"{mask.sum()} {label}")
    axes.axhline(0.0, color=INK, lw=1)
    axes.set_ylim(low, high)
    axes.set_xlabel("samples")
    axes.set_ylabel(excess.axis)
    proof = "proved" if result.certified else "not certified"
    axes.set_title(f"{kept.sum()} of {len(kept)} samples kept ({proof})", loc="left")
    axes.legend(frameon=False)
    return axes


def plot_compression(curve: CompressionCurve, axes: Axes | None = None) -> Axes:
    """Draw scores with their standard errors against the number of samples that are left.

    Parameters
    ----------
    curve : CompressionCurve
    axes : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes(axes)
    # an even step per halving: what happens beyond 90 % deleted is what differs
    order = np.argsort(curve.fractions)
    fractions, means = curve.fractions[order], curve.mean[:, order]
    kept, errors = 1.0 - fractions, curve.standard_error[:, order]
    axes.axhline(curve.full.mean(), color="#999999", lw=1, ls=":", label="all samples")
    for method, mean, error in zip(curve.methods, means, errors, strict=True):
        axes.errorbar(
            kept, mean, yerr=error, label=method, color=_METHOD_COLORS[method], lw=2, marker="o",
            ms=4, capsize=3, zorder=3 if method == "hybrid" else 2,
            ls="--" if method == "margin" else "-",  # it often lies on "screening"
        )  # fmt: skip
    axes.set_xscale("log")
    axes.invert_xaxis()
    shown = _apart(np.log(kept))
    axes.set_xticks(kept[shown], [f"{100 * fraction:g}" for fraction in fractions[shown]])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("% of the training samples deleted")
    axes.set_ylabel(f"test {curve.metric}")
    axes.set_ylim(bottom=max(axes.get_ylim()[0], _lowest_worth_showing(curve)))
    axes.legend(frameon=False, loc="lower left")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _apart(places: np.ndarray) -> list[int]:
    """Ticks whose labels do not run into each other: a twentieth of the axis apart."""
    chosen = [0]
    for k, place in enumerate(places):
        if abs(place - places[chosen[-1]]) > 0.05 * np.ptp(places):
            chosen.append(k)
    return chosen


def _lowest_worth_showing(curve: CompressionCurve) -> float:
    """A method that fails altogether must not squeeze the others into a line."""
    full = float(curve.full.mean())
    best_of_worst = float(np.nanmin(np.nanmax(curve.mean, axis=0)))
    return full - 2.5 * max(full - best_of_worst, 0.02 * abs(full))
