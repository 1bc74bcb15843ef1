"""Compression: test scores of models of the samples that rank first (Figures 6, 7 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safesift_paper.experiments.drawing import BLUE, GREEN, GREY, ORANGE, axes_in_a_row
from safesift_paper.experiments.samples import Samples, Split
from safesift_paper.experiments.spec import Cell, Experiment, Finding, Protocol, Record, Result
from safesift_paper.experiments.tables import label, origin, repeats_of, spread, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NOTE = """\
Score on the test samples (20 % of all) of a model of the training samples that are left after a
fraction of them is deleted. *Screening* deletes those with the lowest scores of the screening test
first, *margin* those that an early approximation of the solution fits best, *random* any of them:
these are the paper's. *Hybrid* is our method, which gives the samples that it keeps weights, so
that they stand for the others."""

Array = NDArray[np.float64]

_LOOKS = {
    "screening": (ORANGE, "screening"),
    "margin": (GREEN, "margin"),
    "random": (GREY, "random"),
    "hybrid": (BLUE, "hybrid (ours)"),
}
# up to here the paper finds that screening beats random deletion
_PAPER_CLAIMS_UP_TO = 0.8


@dataclass(frozen=True)
class Model:
    """A loss, its penalty, and alpha in our convention."""

    loss: str
    penalty: str
    alpha: float
    parameters: tuple[tuple[str, float], ...] = ()

    def made(self) -> Any:
        """The loss with its parameters."""
        from safesift.losses import LOSSES

        return LOSSES[self.loss](**dict(self.parameters))

    def __str__(self) -> str:
        return f"{self.loss.replace('_', ' ')} + {self.penalty}"


@dataclass(frozen=True)
class Compression(Protocol):
    """Delete more and more training samples by several rankings, fit and score.

    Parameters
    ----------
    models : tuple of Model
        Cells name one by its loss.
    fractions : tuple of float
    """

    models: tuple[Model, ...]
    fractions: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)

    def split(self, cell: Cell, samples: Samples | None) -> Split:
        """The samples of a cell."""
        return samples.split(cell["seed"])

    def run(self, cell: Cell, samples: Samples | None) -> Result:
        from safesift import compression_curve

        X, X_test, y, y_test = self.split(cell, samples)
        (model,) = (model for model in self.models if model.loss == cell["loss"])
        curve = compression_curve(
            X, y, loss=model.made(), penalty=model.penalty, alpha=model.alpha,
            fractions=self.fractions, methods=tuple(_LOOKS), n_repeats=1, test=(X_test, y_test),
            fit_intercept=False, random_state=cell["seed"],
        )  # fmt: skip
        return {
            "model": str(model),
            "metric": curve.metric,
            "fractions": curve.fractions.tolist(),
            "n_kept": curve.n_kept.tolist(),
            "scores": {name: curve.of(name).tolist() for name in _LOOKS},
            "full": float(curve.full[0]),
        }

    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        parts = [_NOTE]
        if "data" in records[0].cell:
            parts.append(origin(records))
        for title, repeats in _panels(records).items():
            parts += [f"**{title}**", _table(repeats)]
        return "\n\n".join(parts)

    def findings(self, records: Sequence[Record]) -> list[Finding]:
        panels = _panels(records).items()
        return [finding for title, repeats in panels for finding in _findings(title, repeats)]

    def figure(self, experiment: Experiment, records: Sequence[Record]) -> Figure:
        panels = _panels(records)
        figure, all_axes = axes_in_a_row(len(panels))
        for axes, (title, repeats) in zip(all_axes, panels.items(), strict=True):
            _draw(axes, title, repeats)
        return figure


def _panels(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The repeats of every picture, by its title."""
    panels = {}
    for repeats in repeats_of(records):
        first = repeats[0]
        name = label(first) if "data" in first.cell else "synthetic"
        panels[f"{name}, {first.result['model']}"] = repeats
    return panels


def _table(repeats: Sequence[Record]) -> str:
    found = [record.result for record in repeats]
    header = ["deleted", *(name for _, name in _LOOKS.values())]
    rows = [
        [
            f"{100 * fraction:g} %",
            *(spread((one["scores"][way][k] for one in found), digits=4) for way in _LOOKS),
        ]
        for k, fraction in enumerate(found[0]["fractions"])
    ]
    everything = spread((one["full"] for one in found), digits=4)
    return f"{found[0]['metric']}; with all samples {everything}\n\n{table(header, rows)}"


def _findings(title: str, repeats: Sequence[Record]) -> list[Finding]:
    """Where screening beats random deletion, and where it does not."""
    found = [record.result for record in repeats]
    fractions = np.array(found[0]["fractions"])
    ahead = np.array(
        [np.subtract(one["scores"]["screening"], one["scores"]["random"]) for one in found]
    )
    below = (fractions > 0) & (fractions < _PAPER_CLAIMS_UP_TO)
    findings = [_compared(f"Screening beats random deletion below 80 % ({title})", ahead[:, below])]
    beyond = fractions > _PAPER_CLAIMS_UP_TO
    if beyond.any():
        claim = f"Random deletion tends to do better beyond 80 % ({title})"
        findings.append(_compared(claim, -ahead[:, beyond]))
    return findings


def _compared(claim: str, ahead: Array) -> Finding:
    """A row of `ahead` for each repeat, a column for each fraction."""
    mean = ahead.mean(axis=0)
    error = ahead.std(axis=0) / np.sqrt(max(len(ahead) - 1, 1))
    better, worse = int((mean >= 0).sum()), int((mean < -2.0 * error).sum())
    if better == len(mean):
        verdict = "confirmed"
    elif worse:
        verdict = "in part" if better else "refuted"
    else:
        verdict = "not refuted"
    return Finding(
        claim,
        verdict,
        f"ahead at {better} of {len(mean)} fractions, behind by more than two standard errors at "
        f"{worse}",
    )


def _draw(axes: Axes, title: str, repeats: Sequence[Record]) -> None:
    found = [record.result for record in repeats]
    fractions = found[0]["fractions"]
    for way, (color, name) in _LOOKS.items():
        scores = np.array([one["scores"][way] for one in found], dtype=float)
        axes.errorbar(
            fractions, scores.mean(0), scores.std(0), color=color, lw=2, capsize=3, label=name,
            # it mostly lies on top of the screening's
            ls="--" if way == "margin" else "-",
        )  # fmt: skip
    # a ranking that fails where hardly anything is left must not hide the rest
    everything = np.mean([one["full"] for one in found])
    chance = np.min([one["scores"]["random"] for one in found])
    room = 0.2 * (everything - chance) + 1e-3
    axes.set_ylim(chance - room, everything + room)
    axes.axhline(everything, color=GREY, lw=1, ls=":")
    axes.set(title=title, xlabel="fraction deleted", ylabel=found[0]["metric"])
    axes.legend(frameon=False, loc="lower left")
