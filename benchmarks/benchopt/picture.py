"""Draws docs/pictures/benchopt.png: the smallest gap to be had in so many seconds.

A panel per problem and data of the last run. A run counts with the shortest of its repetitions.
Runs are left out that took longer than one of the same solver with a smaller gap: a tolerance that
was not met any sooner, or a machine that had other things to do.

python benchmarks/benchopt/picture.py [outputs/some_run.parquet]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from benchopt.results import read_results
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

FOLDER = Path(__file__).parent
PICTURE = FOLDER.parents[1] / "docs" / "pictures" / "benchopt.png"
# gaps are drawn down to that
LEAST = 1e-12
# ours last, so that it lies above
STYLES = {
    "LIBLINEAR[dual=True]": ("LIBLINEAR dual", "#0072b2", "s"),
    "LIBLINEAR[dual=False]": ("LIBLINEAR primal", "#56b4e9", "D"),
    "cyanure": ("cyanure", "#e69f00", "^"),
    "skglm[algorithm=Newton]": ("skglm Newton", "#009e73", "v"),
    "skglm[algorithm=CD]": ("skglm CD", "#7a5195", "P"),
    "ReHLine": ("ReHLine", "#999999", "X"),
    "safesift": ("safesift", "#d55e00", "o"),
}


def main(file: Path) -> None:
    table = read_results(file)
    problems, data = _order(table["objective_name"]), _order(table["dataset_name"])
    figure, axes = plt.subplots(
        len(data), len(problems), figsize=(3.0 * len(problems), 1.8 * len(data) + 0.7),
        sharex="row", sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for i, name in enumerate(data):
        for j, problem in enumerate(problems):
            chosen = (table["dataset_name"] == name) & (table["objective_name"] == problem)
            _draw(axes[i, j], table[chosen])
        axes[i, 0].set_ylabel(_data_title(table[table["dataset_name"] == name]))
    for j, problem in enumerate(problems):
        axes[0, j].set_title(_problem_title(table[table["objective_name"] == problem]), fontsize=10)
        axes[-1, j].set_xlabel("seconds")
    known = {label: line for axis in axes.flat for line, label in _legend(axis)}
    labels = [label for label, _, _ in STYLES.values() if label in known]
    figure.legend([known[label] for label in labels], labels, loc="outside lower center",
                  ncols=len(labels), fontsize=8, frameon=False)  # fmt: skip
    figure.savefig(PICTURE, dpi=100, pil_kwargs={"optimize": True})


def _draw(axis: Axes, runs: pd.DataFrame) -> None:
    for solver, (label, color, marker) in STYLES.items():
        own = runs[runs["solver_name"] == solver].groupby("stop_val")
        points = own[["time", "objective_relative_gap"]].min().sort_values("time")
        best = points[points["objective_relative_gap"].cummin().diff().fillna(-1.0) < 0.0]
        axis.plot(best["time"], best["objective_relative_gap"].clip(lower=LEAST), color=color,
                  marker=marker, markersize=4, linewidth=1.2, label=label)  # fmt: skip
    axis.set(xscale="log", yscale="log", ylim=(LEAST / 10.0, 3.0))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.25)


def _legend(axis: Axes) -> list[tuple]:
    return list(zip(*axis.get_legend_handles_labels(), strict=True))


def _order(names: pd.Series) -> list[str]:
    return list(dict.fromkeys(names))


def _problem_title(runs: pd.DataFrame) -> str:
    first = runs.iloc[0]
    intercept = {"none": "no intercept", "free": "free intercept", "ones": "penalised intercept"}
    alphas = "one alpha" if first["p_obj_n_alphas"] == 1 else f"{first['p_obj_n_alphas']} alphas"
    return f"{first['p_obj_penalty']}, {intercept[first['p_obj_intercept']]}, {alphas}"


def _data_title(runs: pd.DataFrame) -> str:
    first = runs.iloc[0]
    if first["file_dataset"] == "datasets/simulated.py":
        size = (first["p_dataset_n_samples"], first["p_dataset_n_features"])
        return "simulated {:.0f} × {:.0f}\nrelative gap".format(*size)
    return f"{first['p_dataset_data']}\nrelative gap"


if __name__ == "__main__":
    runs = sorted((FOLDER / "outputs").glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else runs[-1])
