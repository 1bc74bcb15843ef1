"""Regions that contain the optimum
================================

One step of the ellipsoid method, and five regions around one centre::

    python examples/plot_regions.py [regions.png]

Left, the paper's Figure 1: a ball that contains the optimum, the half-space a subgradient allows,
and the smallest ellipsoid around what is left. Right: gap ball, ellipsoid method and curvature
region for the same problem and the same centre; the smaller, the more samples are decided.
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from safesift.design import DenseDesign
from safesift.problem.decisions import decide
from safesift.problem.inputs import make_problems
from safesift.regions import Curvature, Ellipsoid, GapBall, TestSet

ANGLES = np.linspace(0.0, 2.0 * np.pi, 721)


# %%
# A problem with two features
# ---------------------------
def toy():
    """A squared hinge with two features, and a centre a little off its optimum."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2)) @ np.array([[1.0, 0.0], [0.9, 0.35]])
    y = np.where(X @ [1.0, -0.4] + 0.7 * rng.normal(size=300) > 0, 1, -1)
    problem = make_problems(
        X, y, loss="squared_hinge", penalty="l2", alpha=0.02, fit_intercept=False
    ).problem
    best = minimize(lambda x: problem.primal(x), np.zeros(2), tol=1e-14).x
    return problem, best, problem.evaluate(best + np.array([0.16, 0.12]))


def outline(test_set: TestSet) -> np.ndarray:
    """The boundary of a convex set in the plane, from its bounds in every direction."""
    directions = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
    height = test_set.bounds(DenseDesign(directions)).upper
    slope = np.gradient(np.tile(height[:-1], 3), ANGLES[1])[720 : 2 * 720 + 1]
    across = np.column_stack([-np.sin(ANGLES), np.cos(ANGLES)])
    return height[:, None] * directions + slope[:, None] * across


# %%
# Outlines, and how much they decide
# ----------------------------------
def draw_step(axes, problem, best, at) -> None:
    ball, step = (
        GapBall().build(problem.certify(at)),
        Ellipsoid(n_steps=1).build(problem.certify(at)),
    )
    boundary = outline(ball)
    axes.plot(*boundary.T, color="tab:gray", label="ball around the centre")
    inside = boundary[(boundary - at.point) @ at.subgradient <= 0]
    axes.fill(*inside.T, color="tab:orange", alpha=0.2, lw=0, label="half that holds the optimum")
    axes.plot(*outline(step).T, color="tab:orange", label="smallest ellipsoid around that half")
    axes.set_title("One step of the ellipsoid method")
    finish(axes, best, at)


def draw_regions(axes, problem, best, at) -> None:
    regions = {
        "gap ball": (GapBall(), "tab:gray"),
        "ellipsoid method, 3 steps": (Ellipsoid(n_steps=3), "tab:orange"),
        "ellipsoid method, 10 steps": (Ellipsoid(n_steps=10), "tab:red"),
        "curvature ellipsoid": (Curvature(sharpen=False), "tab:blue"),
        "sharpened from both sides": (Curvature(), "tab:green"),
    }
    zoom = axes.inset_axes([0.52, 0.6, 0.46, 0.38], xticks=[], yticks=[])
    for name, (region, color) in regions.items():
        test_set = region.build(problem.certify(at))
        decisions = decide(problem, test_set.bounds(problem.design))
        decided = 100.0 * (1.0 - decisions.undecided.mean())
        axes.plot(*outline(test_set).T, color=color, label=f"{name}: {decided:.0f} % decided")
        zoom.plot(*outline(test_set).T, color=color)
    for point, marker in ((at.point, "k+"), (best, "k*")):
        zoom.plot(*point, marker, markersize=8)
    middle, half = 0.5 * (best + at.point), 0.22
    zoom.set(xlim=middle[0] + np.array([-half, half]), ylim=middle[1] + np.array([-half, half]))
    zoom.set_aspect("equal")
    axes.indicate_inset_zoom(zoom)
    axes.set_title("Five regions around the same centre")
    finish(axes, best, at)


def finish(axes, best, at) -> None:
    axes.plot(*at.point, "k+", markersize=10, label="centre")
    axes.plot(*best, "k*", markersize=10, label="optimum")
    axes.set_aspect("equal")
    axes.set_xlabel("first coefficient")
    axes.set_ylabel("second coefficient")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, fontsize=9)


# %%
# Both pictures
# -------------
def main(path: str = "regions.png") -> None:
    problem, best, at = toy()
    figure, axes = plt.subplots(1, 2, figsize=(10, 6.2), layout="constrained")
    draw_step(axes[0], problem, best, at)
    draw_regions(axes[1], problem, best, at)
    figure.savefig(path, dpi=110)
    print(f"written: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
