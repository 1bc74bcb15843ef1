"""Figure 4: fraction of samples screened against epochs, with the test accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safesift.regions import Curvature, Ellipsoid, GapBall
from safesift_paper.experiments.drawing import BLUE, GREEN, INK, ORANGE, axes_in_a_row
from safesift_paper.experiments.liblinear import NewtonRun, alpha_of
from safesift_paper.experiments.samples import Samples
from safesift_paper.experiments.spec import Cell, Experiment, Finding, Protocol, Record, Result
from safesift_paper.experiments.tables import origin, spread, table
from safesift_paper.experiments.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOTE = """\
Squared hinge + l2, λ = {lmbda:g} in the paper's convention (Table 2). After each epoch of
LIBLINEAR: test accuracy of the iterate, and percent of the training samples that regions around it
screen. The ellipsoid makes one step on all rows."""

_REGIONS = {"gap_ball": GapBall(), "ellipsoid": Ellipsoid(n_steps=1), "curvature": Curvature()}
# percent of the samples from which a region screens, and how far a good iterate is from the best
_STARTED, _GOOD = 1.0, 0.002
_LOOKS = {
    "gap_ball": (ORANGE, "gap ball"),
    "ellipsoid": (GREEN, "ellipsoid, one step"),
    "curvature": (BLUE, "curvature (ours)"),
}


@dataclass(frozen=True)
class Tradeoff(Protocol):
    """Screen with several regions after every number of epochs.

    Parameters
    ----------
    epochs : tuple of int
    """

    epochs: tuple[int, ...]

    def run(self, cell: Cell, samples: Samples | None) -> Result:
        X, X_test, y, y_test = samples.split(cell["seed"])
        task = Task(X, y, "squared_hinge", "l2", alpha_of(cell["lambda"], len(y)))
        screened = {name: [] for name in _REGIONS}
        accuracies = []
        solver = NewtonRun(X, y, cell["lambda"])
        for epochs in self.epochs:
            coef = solver.after(epochs)
            accuracies.append(float(np.mean(np.sign(X_test @ coef) == y_test)))
            for name, region in _REGIONS.items():
                screened[name].append(task.screened(region, coef)["screened"])
        return {
            "epochs": list(self.epochs),
            "accuracy": accuracies,
            "screened": screened,
            "limit": task.limit,
        }

    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        header = ["epochs", "test accuracy", *(name for _, name in _LOOKS.values())]
        found = [record.result for record in records]
        rows = [
            [
                str(epochs),
                spread((one["accuracy"][k] for one in found), digits=4),
                *(spread(one["screened"][region][k] for one in found) for region in _LOOKS),
            ]
            for k, epochs in enumerate(found[0]["epochs"])
        ]
        limit = f"At the optimum {spread(one['limit'] for one in found)} % are without influence."
        note = _NOTE.format(lmbda=records[0].cell["lambda"])
        return "\n\n".join([note, origin(records), table(header, rows), limit])

    def findings(self, records: Sequence[Record]) -> list[Finding]:
        cases = []
        for found in (record.result for record in records):
            for region in ("gap_ball", "ellipsoid"):
                starts = np.flatnonzero(np.array(found["screened"][region]) > _STARTED)
                good = max(found["accuracy"]) - _GOOD
                cases.append(bool(starts.size) and found["accuracy"][starts[0]] >= good)
        return [Finding.of_cases("Screening starts after the iterate predicts well", cases)]

    def figure(self, experiment: Experiment, records: Sequence[Record]) -> Figure:
        figure, (axes,) = axes_in_a_row(1)
        found = [record.result for record in records]
        epochs = found[0]["epochs"]
        for region, (color, name) in _LOOKS.items():
            shares = np.array([one["screened"][region] for one in found], dtype=float)
            # one step hardly changes the ball that it starts from
            style = "--" if region == "ellipsoid" else "-"
            axes.errorbar(
                epochs, shares.mean(0), shares.std(0), color=color, lw=2, ls=style, label=name
            )
        axes.set(xlabel="epochs", ylabel="percent of samples screened", ylim=(-3, 103))
        accuracy = axes.twinx()
        scores = np.array([one["accuracy"] for one in found])
        accuracy.plot(epochs, scores.mean(0), color=INK, ls=":", label="test accuracy")
        accuracy.set_ylabel("test accuracy (dotted)")
        axes.legend(frameon=False, loc="lower right")
        return figure


EXPERIMENT = Experiment(
    name="figure4",
    title="Figure 4: samples screened against epochs",
    protocol=Tradeoff(epochs=(1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)),
    grid={"data": ("mnist",), "lambda": (1e-1,), "seed": (1, 2, 3)},
    quick={"seed": (1,)},
    remarks="""\
The paper shows a picture without numbers. Its findings are those here: nothing is screened until
the iterate is as accurate as it will be, then everything within a few epochs; one step of the
ellipsoid method adds nothing to the ball that it starts from. The curvature region starts two
epochs earlier.""",
)
