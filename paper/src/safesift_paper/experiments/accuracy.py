"""Best test accuracies of losses and penalties over a grid of λ (Table 3)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from safesift_paper.experiments.samples import Samples
from safesift_paper.experiments.spec import Cell, Experiment, Finding, Protocol, Record, Result
from safesift_paper.experiments.tables import label, origin, paper_name, repeats_of, spread, table

_NOTE = """\
Mean accuracy on the test samples (20 % of all) for the best λ, in brackets, of a logarithmic grid.
λ goes with the sum of the losses for the logistic loss and the squared hinge (scikit-learn's C =
1/λ) and with their mean for the safe logistic loss, as in the paper's scripts. *Difference* is
ours minus the paper's."""

# what the paper calls similar is not said: its table differs by up to 0.1 points
_SIMILAR = 0.005

_NAMES = {"logistic": "Logistic", "safe_logistic": "Safelog", "squared_hinge": "Squared hinge"}


@dataclass(frozen=True)
class Accuracy(Protocol):
    """Fit a path over the grid, score every model on the test samples.

    Parameters
    ----------
    lambdas : tuple of float
        Falling.
    tol : float, default=1e-4
        Relative duality gap of the models.
    max_iter : int, default=200
        Steps per model; those that end there are scored as they are.
    """

    lambdas: tuple[float, ...]
    tol: float = 1e-4
    max_iter: int = 200

    def run(self, cell: Cell, samples: Samples | None) -> Result:
        from sklearn.exceptions import ConvergenceWarning

        from safesift import safe_path

        X, X_test, y, y_test = samples.split(cell["seed"])
        scale = _alpha_per_lambda(cell["loss"], len(y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            path = safe_path(
                X, y, alphas=[scale * lmbda for lmbda in self.lambdas], loss=cell["loss"],
                penalty=cell["penalty"], tol=self.tol, max_iter=self.max_iter, fit_intercept=False,
            )  # fmt: skip
        decisions = X_test @ path.coefs.T
        accuracies = np.mean(np.sign(decisions) == y_test[:, None], axis=0)
        return {
            "lambdas": list(self.lambdas),
            "accuracies": accuracies.tolist(),
            "relative_gaps": path.relative_gaps.tolist(),
            "seconds": path.seconds.tolist(),
        }

    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        rows = [_row(experiment, repeats) for repeats in repeats_of(records)]
        header = ["data", "model", "paper", "ours", "difference"]
        return "\n\n".join([_NOTE, origin(records), table(header, rows)])

    def findings(self, records: Sequence[Record]) -> list[Finding]:
        best: dict[str, dict[str, float]] = {}
        for repeats in repeats_of(records):
            cell, accuracies = repeats[0].cell, _accuracies(repeats)
            losses = best.setdefault(cell["data"], {})
            here = float(accuracies.mean(axis=0).max())
            losses[cell["loss"]] = max(here, losses.get(cell["loss"], 0.0))
        cases = [
            losses["safe_logistic"] >= max(losses.values()) - _SIMILAR
            for losses in best.values()
            if "safe_logistic" in losses and len(losses) > 1
        ]
        claim = f"Safe logistic is as accurate as the others, to {100 * _SIMILAR:g} points"
        return [Finding.of_cases(claim, cases)]


def _alpha_per_lambda(loss: str, n_samples: int) -> float:
    """What λ is multiplied by to get our alpha."""
    return {"logistic": 1 / n_samples, "squared_hinge": 0.5 / n_samples, "safe_logistic": 1.0}[loss]


def _accuracies(repeats: Sequence[Record]) -> np.ndarray:
    """A row for each repeat, a column for each λ."""
    return np.array([record.result["accuracies"] for record in repeats])


def _row(experiment: Experiment, repeats: Sequence[Record]) -> list[str]:
    first = repeats[0]
    loss, penalty = first.cell["loss"], first.cell["penalty"]
    accuracies = _accuracies(repeats)
    best = int(np.argmax(accuracies.mean(axis=0)))
    ours = f"{spread(accuracies[:, best], digits=4)} ({first.result['lambdas'][best]:g})"
    printed = experiment.paper.get((paper_name(first), loss, penalty))
    paper, difference = "–", "–"
    if printed is not None:
        paper = f"{printed[0]:g} ({printed[1]:g})"
        difference = f"{accuracies[:, best].mean() - printed[0]:+.4f}"
    return [label(first), f"{_NAMES[loss]} + {penalty}", paper, ours, difference]
