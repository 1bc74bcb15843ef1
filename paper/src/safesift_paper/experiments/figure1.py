"""Figure 1: one step of the ellipsoid method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safesift import screen
from safesift.losses import SquaredHinge
from safesift.regions import Ellipsoid, EllipsoidalSet, GapBall
from safesift_paper.experiments.drawing import BLUE, GREY, INK, ORANGE, axes_in_a_row
from safesift_paper.experiments.samples import Samples
from safesift_paper.experiments.spec import Cell, Experiment, Protocol, Record, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOTE = """\
A ball that contains the optimum, cut through its centre x^k by a subgradient, and the smallest
ellipsoid around the half that is left; here for a squared hinge with two features. In the plane a
step leaves {expected:.3f} of the area; measured: {measured:.3f}."""


@dataclass(frozen=True)
class EllipsoidStep(Protocol):
    """A toy problem with two features, and an ellipsoid before and after one step."""

    def run(self, cell: Cell, samples: Samples | None) -> Result:
        rng = np.random.default_rng(3)
        X = rng.normal(size=(300, 2)) @ np.array([[1.0, 0.0], [0.9, 0.35]])
        y = np.where(X @ [1.0, -0.4] + 0.7 * rng.normal(size=300) > 0, 1, -1)
        center, alpha, loss = np.array([1.4, -0.5]), 0.02, SquaredHinge()
        regions = [Ellipsoid(n_steps=n, start=GapBall(), depth="central") for n in (0, 1)]
        steps = [
            screen(
                X,
                y,
                loss=loss,
                penalty="l2",
                alpha=alpha,
                coef=center,
                screening=region,
                fit_intercept=False,
            ).region
            for region in regions
        ]
        subgradient = X.T @ loss.slope(X @ center, y) / len(y) + alpha * center
        areas = [float(np.linalg.det(step.shape.matrix())) ** 0.5 for step in steps]
        return {
            "outlines": [_outline(step) for step in steps],
            "center": center.tolist(),
            "subgradient": subgradient.tolist(),
            "area_ratio": areas[1] / areas[0],
        }

    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        expected = 2.0 / 3.0 * 2.0 / np.sqrt(3.0)
        return _NOTE.format(expected=expected, measured=records[0].result["area_ratio"])

    def figure(self, experiment: Experiment, records: Sequence[Record]) -> Figure:
        found = records[0].result
        figure, (axes,) = axes_in_a_row(1)
        for outline, color, name in zip(
            found["outlines"], (BLUE, ORANGE), ("$E^k$", "$E^{k+1}$"), strict=True
        ):
            axes.plot(*np.array(outline).T, color=color, lw=2, label=name)
        center, g = np.array(found["center"]), np.array(found["subgradient"])
        across = np.array([-g[1], g[0]]) / np.hypot(*g)
        reach = np.ptp(np.array(found["outlines"][0]), axis=0).max() / 2
        line = center + np.outer([-1.0, 1.0], reach * across)
        axes.plot(*line.T, "--", color=GREY)
        tip = center - 0.45 * reach * g / np.hypot(*g)
        axes.annotate("", tip, center, arrowprops={"arrowstyle": "->", "color": INK})
        axes.text(*(tip + 0.06 * reach * across), "−g", color=INK)
        axes.plot(*center, "o", color=INK, ms=4)
        axes.set_aspect("equal")
        axes.legend(frameon=False)
        return figure


def _outline(ellipse: EllipsoidalSet) -> list[list[float]]:
    """Points on the boundary of a set in the plane."""
    angles = np.linspace(0.0, 2.0 * np.pi, 121)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    factor = np.linalg.cholesky(ellipse.shape.matrix())
    return np.round(ellipse.center + (factor @ circle).T, 5).tolist()


EXPERIMENT = Experiment(
    name="figure1",
    title="Figure 1: one step of the ellipsoid method",
    protocol=EllipsoidStep(),
    grid={"seed": (3,)},
)
