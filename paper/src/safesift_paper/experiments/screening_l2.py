"""Squared hinge + l2: how many samples each region screens after some epochs (Table 2, Table 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from safesift.regions import Curvature, Ellipsoid, GapBall
from safesift_paper.experiments.liblinear import NewtonRun, alpha_of
from safesift_paper.experiments.samples import Samples
from safesift_paper.experiments.spec import Cell, Experiment, Finding, Protocol, Record, Result
from safesift_paper.experiments.tables import (
    ROUNDED,
    label,
    origin,
    paper_name,
    repeats_of,
    spread,
    table,
)
from safesift_paper.experiments.task import Task, screened_text

_NOTE = """\
Percent of the training samples (80 % of all) proved to be of no influence. The paper's λ goes with
the *sum* of the losses [1 − t]²₊, not their mean: our alpha is λ/(2n). An *epoch* is a step of
scikit-learn's default solver, LIBLINEAR's Newton method, as in the paper's scripts. *Gap ball* is
taken one epoch later than the others, which use that time for their own passes. *Ellipsoid, paper*
makes its cuts on {rows} random rows, one pass in all: that is not safe, and is marked so with the
number of samples it drops wrongly, if any. *Ellipsoid, safe* makes one cut on all rows. *Curvature*
is our region, certified. *Limit* is the share that the optimum itself leaves without influence."""


@dataclass(frozen=True)
class L2Screening(Protocol):
    """Run LIBLINEAR for the epochs of a cell, then build regions around where it got to.

    Parameters
    ----------
    subset_rows : int, default=1000
        On how many rows the paper's ellipsoid is cut; together the cuts cost one pass.
    """

    subset_rows: int = 1000

    def run(self, cell: Cell, samples: Samples | None) -> Result:
        X, _, y, _ = samples.split(cell["seed"])
        task = Task(X, y, "squared_hinge", "l2", alpha_of(cell["lambda"], len(y)))
        solver = NewtonRun(X, y, cell["lambda"])
        start, later = solver.after(cell["epochs"]), solver.after(cell["epochs"] + 1)
        return {
            "alpha": task.alpha,
            "limit": task.limit,
            "solver_ended_after": solver.ended_after,
            "gap_ball": task.screened(GapBall(), later),
            "ellipsoid_paper": task.screened(self._on_subset(cell, len(y)), start),
            "ellipsoid_safe": task.screened(Ellipsoid(n_steps=1), start),
            "curvature": task.screened(Curvature(), start),
        }

    def _on_subset(self, cell: Cell, n_samples: int) -> Ellipsoid:
        rows = min(self.subset_rows, n_samples)
        return Ellipsoid(
            n_steps=round(n_samples / rows), subset=rows / n_samples, random_state=cell["seed"]
        )

    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        header = ["data", "λ", "epochs", "paper: ellipsoid / gap", "ellipsoid, paper",
                  "ellipsoid, safe", "gap ball", "curvature", "limit"]  # fmt: skip
        rows = [_row(experiment, repeats) for repeats in repeats_of(records)]
        note = _NOTE.format(rows=self.subset_rows)
        return "\n\n".join([note, origin(records), table(header, rows)])

    def findings(self, records: Sequence[Record]) -> list[Finding]:
        cases = [
            record.result["ellipsoid_safe"]["screened"]
            <= record.result["gap_ball"]["screened"] + ROUNDED
            for record in records
        ]
        return [Finding.of_cases("The gap ball screens at least as much as the ellipsoid", cases)]


def _row(experiment: Experiment, repeats: Sequence[Record]) -> list[str]:
    first, found = repeats[0], [record.result for record in repeats]
    lmbda, epochs = first.cell["lambda"], first.cell["epochs"]
    printed = experiment.paper.get((paper_name(first), lmbda, epochs))
    return [
        label(first),
        f"{lmbda:g}",
        str(epochs),
        "–" if printed is None else " / ".join(f"{value:g}" for value in printed),
        *(
            screened_text([one[region] for one in found])
            for region in ("ellipsoid_paper", "ellipsoid_safe", "gap_ball", "curvature")
        ),
        spread(one["limit"] for one in found),
    ]
