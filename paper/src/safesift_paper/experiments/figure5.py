"""Figure 5: a regularisation path with and without screening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safesift import PathResult, safe_path
from safesift_paper.experiments.drawing import BLUE, INK, ORANGE, axes_in_a_row
from safesift_paper.experiments.samples import Samples
from safesift_paper.experiments.spec import Cell, Experiment, Finding, Protocol, Record, Result
from safesift_paper.experiments.tables import origin, spread, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOTE = """\
Squared hinge + l2, alpha from {first:g} down to {last:g} (the mean of the losses, as in the paper's
scripts for this figure), every model certified to a relative duality gap of {tol:g} and started
from the one before. *Epochs* are products with as many rows as there are. *Without screening*
every step reads every row; *gap ball* leaves rows out where the paper's baseline region decides
them; *auto* is what the library does: whatever is fastest, verified on all rows."""

_LOOKS = {
    "none": (INK, "without screening"),
    "gap_ball": (ORANGE, "gap ball"),
    "auto": (BLUE, "auto (ours)"),
}


@dataclass(frozen=True)
class Paths(Protocol):
    """The same path by several ways of screening.

    Parameters
    ----------
    first, last : float
        The ends of the grid.
    n_alphas : int
    tol : float
    """

    first: float = 1e-4
    last: float = 1e-5
    n_alphas: int = 20
    tol: float = 1e-6

    def run(self, cell: Cell, samples: Samples | None) -> Result:
        X, X_test, y, y_test = samples.split(cell["seed"])
        alphas = np.geomspace(self.first, self.last, self.n_alphas)
        screening = None if cell["screening"] == "none" else cell["screening"]
        path = safe_path(
            X, y, alphas=alphas, tol=self.tol, screening=screening, fit_intercept=False
        )
        return {
            "alphas": path.alphas.tolist(),
            "passes": _per_alpha(path.passes),
            "seconds": _per_alpha(path.seconds),
            "kept": path.n_kept.tolist(),
            "relative_gaps": path.relative_gaps.tolist(),
            "accuracy": _accuracies(path, X_test, y_test),
        }

    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        rows = []
        for way, (_, name) in _LOOKS.items():
            found = [r.result for r in records if r.cell["screening"] == way]
            if found:
                rows.append([
                    name,
                    spread(sum(one["passes"]) for one in found),
                    spread((sum(one["seconds"]) for one in found), digits=2),
                    spread(max(one["accuracy"]) * 100 for one in found),
                ])  # fmt: skip
        header = ["screening", "epochs, whole path", "seconds, whole path", "best accuracy, %"]
        note = _NOTE.format(first=self.first, last=self.last, tol=self.tol)
        return "\n\n".join([note, origin(records), table(header, rows)])

    def findings(self, records: Sequence[Record]) -> list[Finding]:
        costs = {
            (record.cell["screening"], record.cell["seed"]): sum(record.result["passes"])
            for record in records
        }
        findings = []
        for way in ("gap_ball", "auto"):
            cases = [
                costs[way, seed] < passes
                for (other, seed), passes in costs.items()
                if other == "none" and (way, seed) in costs
            ]
            if cases:
                claim = f"Screening saves epochs along a path ({_LOOKS[way][1]})"
                findings.append(Finding.of_cases(claim, cases))
        return findings

    def figure(self, experiment: Experiment, records: Sequence[Record]) -> Figure:
        figure, both = axes_in_a_row(2)
        for axes, cost in zip(both, ("passes", "seconds"), strict=True):
            for way, (color, name) in _LOOKS.items():
                found = [r.result for r in records if r.cell["screening"] == way]
                if not found:
                    continue
                costs = np.cumsum([one[cost] for one in found], axis=1)
                axes.errorbar(
                    found[0]["alphas"], costs.mean(0), costs.std(0), color=color, lw=2, label=name
                )
            axes.set_xscale("log")
            axes.invert_xaxis()
            axes.set_xlabel("alpha")
            axes.set_ylabel("epochs so far" if cost == "passes" else "seconds so far")
            axes.legend(frameon=False)
        return figure


def _per_alpha(costs: np.ndarray) -> list[float]:
    return costs.round(4).tolist()


def _accuracies(path: PathResult, X_test: np.ndarray, y_test: np.ndarray) -> list[float]:
    return np.mean(np.sign(X_test @ path.coefs.T) == y_test[:, None], axis=0).tolist()


EXPERIMENT = Experiment(
    name="figure5",
    title="Figure 5: a regularisation path with and without screening",
    protocol=Paths(),
    grid={"data": ("mnist",), "screening": tuple(_LOOKS), "seed": (1, 2, 3)},
    quick={"seed": (1,)},
    remarks="""\
The paper shows a picture without numbers, of a solver that needs many epochs for each λ. The one
here (dual coordinate descent) needs six or seven, warm: too few for a gap ball to pay for the
passes that building it takes, so that the paper's gain turns into a loss. *Auto* leaves rows out
without proof while it solves, proves what came of it once at the end, and gains 1.4 times. What
screening is worth along a path thus depends on how good the solver is without it.""",
)
