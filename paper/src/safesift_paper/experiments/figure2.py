"""Figure 2: what the regularisation of the dual does to losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safesift import make_safe
from safesift.losses import Logistic, Loss, SafeLogistic, Squared
from safesift_paper.experiments.drawing import BLUE, INK, ORANGE, axes_in_a_row
from safesift_paper.experiments.samples import Samples
from safesift_paper.experiments.spec import Cell, Experiment, Protocol, Record, Result
from safesift_paper.experiments.tables import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOTE = """\
The squared loss convolved with the l1 norm's conjugate, and the logistic loss with the paper's Ω
(sign and constant corrected: see docs/errata.md). Both get a flat piece and stay smooth; where it
is:"""


@dataclass(frozen=True)
class LossCurves(Protocol):
    """Values of losses on a grid."""

    def run(self, cell: Cell, samples: Samples | None) -> Result:
        t = np.linspace(-3.0, 3.0, 121)
        return {"t": t.round(3).tolist(), "losses": [_curve(*entry, t) for entry in _losses()]}

    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        rows = [
            [one["name"], _ends(one["flat"]), f"{one['largest_jump_of_slope']:.3f}"]
            for one in records[0].result["losses"]
        ]
        header = ["loss", "flat on", "largest jump of the slope between grid points"]
        return f"{_NOTE}\n\n{table(header, rows)}"

    def figure(self, experiment: Experiment, records: Sequence[Record]) -> Figure:
        found = records[0].result
        figure, both = axes_in_a_row(2)
        for axes, task in zip(both, ("regression", "classification"), strict=True):
            curves = [one for one in found["losses"] if one["task"] == task]
            for one, color in zip(curves, (INK, BLUE, ORANGE), strict=True):
                axes.plot(found["t"], one["values"], color=color, lw=2, label=one["name"])
            axes.set_xlabel("residual" if task == "regression" else "margin")
            axes.set_ylabel("loss")
            axes.legend(frameon=False)
        return figure


def _losses() -> list[tuple[str, Loss]]:
    return [
        ("squared", Squared()),
        ("squared, μ = 0.5", make_safe("squared", omega="l1", mu=0.5)),
        ("squared, μ = 1", make_safe("squared", omega="l1", mu=1.0)),
        ("logistic", Logistic()),
        ("safe logistic, μ = 0", SafeLogistic(mu=0.0)),
        ("safe logistic, μ = 1", SafeLogistic(mu=1.0)),
    ]


def _curve(name: str, loss: Loss, t: np.ndarray) -> dict:
    target = np.ones_like(t) if loss.task == "classification" else np.zeros_like(t)
    pieces = [piece for piece in loss.pieces(target[:1]) if piece.is_flat]
    flat = [float(pieces[0].lower[0]), float(pieces[0].upper[0])] if pieces else None
    return {
        "name": name,
        "task": loss.task,
        "flat": None if flat is None else [end if np.isfinite(end) else None for end in flat],
        "values": loss.value(t, target).round(5).tolist(),
        "largest_jump_of_slope": float(np.abs(np.diff(loss.slope(t, target))).max()),
    }


def _ends(flat: list | None) -> str:
    if flat is None:
        return "nowhere"
    lower, upper = ("∞" if end is None else f"{end:g}" for end in flat)
    return f"[{lower}, {upper}" + (")" if upper == "∞" else "]")


EXPERIMENT = Experiment(
    name="figure2",
    title="Figure 2: losses before and after the regularisation of the dual",
    protocol=LossCurves(),
    grid={},
)
