"""Safe logistic + l1: how many samples are screened after some epochs (Table 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from safesift.regions import Curvature, Ellipsoid, GuessedBall
from safesift_paper.experiments.samples import Samples
from safesift_paper.experiments.spec import Cell, Experiment, Finding, Protocol, Record, Result
from safesift_paper.experiments.stochastic import epochs_of_saga
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
Percent of the training samples (80 % of all) screened. λ goes with the mean of the losses, and is
our alpha. An *epoch* is a pass over the data of a variance-reduced stochastic method (SAGA on
batches of 64 rows; the paper uses one of Cyanure's). *Guessed* is the paper's region: {steps} steps
of the ellipsoid method from a ball of the guessed radius r around the iterate, which proves
nothing. Its authors' scripts put the number r into the matrix of the ellipsoid, so that the radius
there is √r: both are shown. *Distance* is that from the iterate to the optimum: the guess is right
if it is below the radius. A region that is proved to be wrong is *refused*; "wrong" counts samples
that were dropped and that the optimum needs, of all splits together. *Curvature* is our region
around the same iterate, and *own* the same around where our own solver ends, after so many passes:
certified, with nothing guessed. *Limit* is the share that the optimum itself leaves without
influence."""


@dataclass(frozen=True, eq=False)
class L1Screening(Protocol):
    """Run a stochastic method for some epochs, then build regions around where it got to.

    Parameters
    ----------
    radii : mapping of data set to mapping of epochs to radius
        The paper's guesses; "other" for data sets it does not have.
    n_steps : int, default=10
        Of the ellipsoid method; the paper does not say how many.
    """

    radii: Mapping[str, Mapping[int, float]]
    n_steps: int = 10

    def run(self, cell: Cell, samples: Samples | None) -> Result:
        X, _, y, _ = samples.split(cell["seed"])
        task = Task(X, y, "safe_logistic", "l1", cell["lambda"], tol=1e-7)
        radii = self._radii(samples.stands_in_for or samples.name)
        after: dict[str, Any] = {}
        iterates = epochs_of_saga(task, max(radii), cell["seed"])
        for epochs, start in enumerate(iterates, start=1):
            if epochs not in radii:
                continue
            radius = radii[epochs]
            after[str(epochs)] = {
                "radius": radius,
                "distance": float(np.linalg.norm(start - task.solution)),
                "guessed": task.screened(self._guess(radius), start),
                "guessed_root": task.screened(self._guess(math.sqrt(radius)), start),
                "curvature": task.screened(Curvature(), start),
            }
        return {
            "alpha": task.alpha,
            "limit": task.limit,
            "own": task.screened(Curvature(), task.solution) | {"passes": task.passes},
            "non_zero": int(np.count_nonzero(task.solution)),
            "after": after,
        }

    def _radii(self, name: str) -> Mapping[int, float]:
        return self.radii.get(name, self.radii["other"])

    def _guess(self, radius: float) -> Ellipsoid:
        return Ellipsoid(n_steps=self.n_steps, start=GuessedBall(radius), depth="central")

    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        header = ["data", "λ", "epochs", "paper", "r", "distance", "guessed, radius r",
                  "guessed, radius √r", "curvature", "own", "limit"]  # fmt: skip
        rows = [
            _row(experiment, repeats, epochs)
            for repeats in repeats_of(records)
            for epochs in repeats[0].result["after"]
        ]
        note = _NOTE.format(steps=self.n_steps)
        return "\n\n".join([note, origin(records), table(header, rows)])

    def findings(self, records: Sequence[Record]) -> list[Finding]:
        """Of the paper's region, and of ours, which is certified."""
        rises = []
        guessed: dict[tuple, dict[float, float]] = {}
        own: dict[tuple, dict[float, float]] = {}
        for record in records:
            lmbda, after = record.cell["lambda"], record.result["after"]
            place = (record.cell["data"], record.cell["seed"])
            own.setdefault(place, {})[lmbda] = record.result["own"]["screened"]
            shares = {epochs: one["guessed"]["screened"] or 0.0 for epochs, one in after.items()}
            rises.append(_never_falls(list(shares.values())))
            for epochs, share in shares.items():
                guessed.setdefault((*place, epochs), {})[lmbda] = share
        return [
            Finding.of_cases("l1 screening rises with the epochs (guessed radius)", rises),
            Finding.of_cases("l1 screening falls with λ (guessed radius)", _fall(guessed)),
            Finding.of_cases("l1 screening falls with λ (certified)", _fall(own)),
        ]


def _never_falls(shares: Sequence[float]) -> bool:
    return all(a <= b + ROUNDED for a, b in pairwise(shares))


def _fall(by_lambda: Mapping[tuple, Mapping[float, float]]) -> list[bool]:
    """Whether shares fall with λ, for everything that has them for several."""
    return [
        _never_falls([shares[lmbda] for lmbda in sorted(shares, reverse=True)])
        for shares in by_lambda.values()
        if len(shares) > 1
    ]


def _row(experiment: Experiment, repeats: Sequence[Record], epochs: str) -> list[str]:
    first, found = repeats[0], [record.result["after"][epochs] for record in repeats]
    printed = experiment.paper.get((paper_name(first), first.cell["lambda"], int(epochs)))
    return [
        label(first),
        f"{first.cell['lambda']:g}",
        epochs,
        "–" if printed is None else f"{printed:g}",
        f"{found[0]['radius']:g}",
        spread((one["distance"] for one in found), digits=2),
        *(
            screened_text([one[region] for one in found])
            for region in ("guessed", "guessed_root", "curvature")
        ),
        _own(repeats),
        spread(record.result["limit"] for record in repeats),
    ]


def _own(repeats: Sequence[Record]) -> str:
    found = [record.result["own"] for record in repeats]
    passes = spread((one["passes"] for one in found), digits=0)
    return f"{screened_text(found)} after {passes}"
