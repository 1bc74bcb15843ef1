"""Figure 3: safe interval regression on a toy data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safesift import SafeRegressor, screen
from safesift.losses import SquaredEpsilonInsensitive
from safesift.regions import Curvature, Ellipsoid
from safesift_paper.datasets import make_sparse_regression
from safesift_paper.experiments.drawing import BLUE, INK, RED, axes_in_a_row
from safesift_paper.experiments.samples import Samples
from safesift_paper.experiments.spec import Cell, Experiment, Protocol, Record, Result
from safesift_paper.experiments.tables import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOTE = """\
Twenty intervals of half-width μ = {mu:g} around targets that one feature of two generates, an l1
penalty (alpha = {alpha:g}) and {steps} steps of the ellipsoid method from the ball that the penalty
allows: nothing is guessed. Intervals in blue are proved to be met by the optimum and dropped. The
model of the others is the same: coefficients differ by {change:.1e}."""


@dataclass(frozen=True)
class ToyIntervals(Protocol):
    """The paper's toy: n = 20, p = 2, 20 steps."""

    n_samples: int = 20
    n_steps: int = 20
    half_width: float = 0.1
    noise: float = 0.08
    alpha: float = 1e-3

    def run(self, cell: Cell, samples: Samples | None) -> Result:
        data = make_sparse_regression(self.n_samples, 2, 1, self.noise, cell["seed"])
        X, y = data.X, data.y
        loss = SquaredEpsilonInsensitive(self.half_width)
        found = {
            name: screen(
                X,
                y,
                loss=loss,
                penalty="l1",
                alpha=self.alpha,
                screening=region,
                fit_intercept=False,
            )
            for name, region in (("ellipsoid", Ellipsoid(self.n_steps)), ("curvature", Curvature()))
        }
        kept = found["ellipsoid"].kept
        on_all = self._fit(X, y, self.alpha)
        on_kept = self._fit(X[kept], y[kept], found["ellipsoid"].alpha_kept)
        informative = int(np.argmax(np.abs(on_all)))
        return {
            "feature": X[:, informative].tolist(),
            "targets": y.tolist(),
            "prediction": (X @ on_all).tolist(),
            "kept": {name: result.kept.tolist() for name, result in found.items()},
            "certified": all(result.certified for result in found.values()),
            "change": float(np.abs(on_all - on_kept).max()),
        }

    def _fit(self, X: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
        loss = SquaredEpsilonInsensitive(self.half_width)
        model = SafeRegressor(loss, penalty="l1", alpha=alpha, fit_intercept=False, tol=1e-12)
        return model.fit(X, y).coef_

    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        found = records[0].result
        note = _NOTE.format(
            mu=self.half_width, alpha=self.alpha, steps=self.n_steps, change=found["change"]
        )
        rows = [
            [name, str(sum(not kept for kept in mask)), str(sum(mask))]
            for name, mask in found["kept"].items()
        ]
        return f"{note}\n\n{table(['region', 'dropped', 'kept'], rows)}"

    def figure(self, experiment: Experiment, records: Sequence[Record]) -> Figure:
        found = records[0].result
        figure, (axes,) = axes_in_a_row(1)
        feature, targets = np.array(found["feature"]), np.array(found["targets"])
        kept = np.array(found["kept"]["ellipsoid"])
        for rows, color, name in ((~kept, BLUE, "dropped"), (kept, RED, "kept")):
            axes.errorbar(
                feature[rows], targets[rows], yerr=self.half_width, fmt="none", ecolor=color,
                elinewidth=2, capsize=3, label=name,
            )  # fmt: skip
        order = np.argsort(feature)
        prediction = np.array(found["prediction"])[order]
        axes.plot(feature[order], prediction, color=INK, lw=1, label="optimum")
        axes.set_xlabel("informative feature")
        axes.set_ylabel("interval")
        axes.legend(frameon=False)
        return figure


EXPERIMENT = Experiment(
    name="figure3",
    title="Figure 3: safe interval regression on a toy data set",
    protocol=ToyIntervals(),
    grid={"seed": (4,)},
)
