"""A small story: which samples went, that the model did not change, and what that is good for.

It is told in words, and in a picture of all margins and of what easy and hard samples look like.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from safesift.arithmetic.printing import Brief
from safesift.faces.demo_forgetting import Forgotten, forget
from safesift.faces.plotting import BLUE, INK, ORANGE
from safesift.workflows.screening import screen
from safesift.workflows.verdicts import ScreeningResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

Array = NDArray[np.float64]

DIGIT = 3
ALPHA = 3e-4
_DROPPED, _KEPT = BLUE, ORANGE
_GRID_COLUMNS = 6


@dataclass(frozen=True, eq=False, repr=False)
class Findings(Brief):
    """Everything there is to tell.

    Attributes
    ----------
    images : array of shape (n_samples, 8, 8)
    digits : array of shape (n_samples,)
    X : array of shape (n_samples, 64)
        The images as rows of length 1.
    y : array of shape (n_samples,)
        1 for `DIGIT`, -1 for the others.
    result : ScreeningResult
    on_all, on_kept : arrays of shape (64,)
        Coefficients of models trained on all rows, and on the kept ones.
    forgotten : Forgotten
        What it takes to forget rows one by one.
    """

    images: NDArray
    digits: NDArray
    X: Array
    y: Array
    result: ScreeningResult
    on_all: Array
    on_kept: Array
    forgotten: Forgotten

    @property
    def margins(self) -> Array:
        """How clearly the model is right about each sample: below 0 it is wrong."""
        return self.y * self.result.only.at.pred

    @property
    def coef_change(self) -> float:
        """The largest change of a coefficient, relative to the largest coefficient."""
        change = np.abs(self.on_all - self.on_kept).max()
        return float(change / np.abs(self.on_all).max())

    @property
    def n_disagreements(self) -> int:
        """How many samples the two models classify differently."""
        signs = [np.sign(self.X @ coef) for coef in (self.on_all, self.on_kept)]
        return int((signs[0] != signs[1]).sum())


def run(picture: Path) -> None:
    """Tell the story, and draw it where matplotlib is there to draw with."""
    findings = experiment()
    print(tell(findings))
    if find_spec("matplotlib") is None:
        print('\nFor the picture, install matplotlib:  pip install "safesift[plot]"')
        return
    draw(findings, picture)
    print(f"\nThe picture is in {picture}.")


def experiment() -> Findings:
    """Screen, then train scikit-learn's support vector machine on all rows and on the kept."""
    digits = load_digits()
    X, y = normalize(digits.data), np.where(digits.target == DIGIT, 1.0, -1.0)
    result = screen(X, y, loss="squared_hinge", penalty="l2", alpha=ALPHA, fit_intercept=False)
    # scikit-learn sums the losses, and without our ½: its C is the same for all and for kept rows
    C = 1.0 / (2.0 * len(y) * ALPHA)
    return Findings(
        images=digits.images,
        digits=digits.target,
        X=X,
        y=y,
        result=result,
        on_all=_train(X, y, C),
        on_kept=_train(X[result.kept], y[result.kept], C),
        forgotten=forget(),
    )


def _train(X: Array, y: Array, C: float) -> Array:
    model = LinearSVC(
        loss="squared_hinge", C=C, fit_intercept=False, dual=True, tol=1e-10, max_iter=100_000,
        random_state=0,
    )  # fmt: skip
    return model.fit(X, y).coef_[0]


_STORY = """\
Is it a {digit}?

Here are {n} handwritten digits, and a support vector machine that tells the {digit}s from the rest.
Some digits are so easy that the model gets them right with room to spare. Such a digit does not
pull at the model at all: without it, the model stays what it is. safesift finds these digits: it
proves how clearly the exact model is right about each of them, here up to ±{half_width:.0e}.

  dropped   {n_dropped:5d} digits  ({share_dropped:.0%})  {proof}
  kept      {n_kept:5d} digits  ({share_kept:.0%})

Does it hold? scikit-learn's LinearSVC, trained on all digits and on the kept ones alone:

  coefficients differ by at most   {coef_change:.0e} of the largest (the solver's own precision)
  digits classified differently    {n_disagreements} of {n}

The same model, from {share_kept:.0%} of the data.

What is it good for?

A model is trained on {n_samples} people, and {n_requests} of them ask to be forgotten, one by one.
Each time the model has to be that of the people who are left. Most requests change nothing, and
that can be proved; the others change a little, and it is known where. On this machine, just now:

  LinearSVC, trained again each time       {again_seconds:6.2f} s
  SafeTracker, brought up to date          {tracked_seconds:6.2f} s   {times:.0f} times faster

  the last two models differ by at most    {last_change:.0e} of the largest coefficient
  every one of the {n_requests} models is certified: relative duality gap at most {worst_gap:.0e}"""


def tell(findings: Findings) -> str:
    """The story in words."""
    result = findings.result
    n, n_kept = len(findings.y), int(result.kept.sum())
    forgotten = findings.forgotten
    return _STORY.format(
        n_samples=forgotten.n_samples,
        n_requests=forgotten.n_requests,
        again_seconds=forgotten.again_seconds,
        tracked_seconds=forgotten.tracked_seconds,
        times=forgotten.times_faster,
        last_change=forgotten.coef_change,
        worst_gap=forgotten.worst_gap,
        digit=DIGIT,
        n=n,
        n_kept=n_kept,
        n_dropped=n - n_kept,
        share_kept=n_kept / n,
        share_dropped=1 - n_kept / n,
        half_width=float((result.upper - result.lower).max()) / 2,
        proof="proved to have no influence" if result.certified else "NOT proved",
        coef_change=findings.coef_change,
        n_disagreements=findings.n_disagreements,
    )


def draw(findings: Findings, path: Path) -> None:
    """Draw the story to a file, in the format of its extension."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.2), dpi=150, layout="constrained", facecolor="white")
    ((left, right),) = figure.subfigures(1, 2, squeeze=False, width_ratios=[1.1, 1])
    _draw_margins(left.subplots(), findings)
    keep, margins = findings.result.kept, findings.margins
    easiest = _first_of_each(findings, np.where(keep, np.inf, -margins))
    hardest = _first(findings, np.where(keep, margins, np.inf))
    top, bottom = right.subfigures(2, 1)
    _draw_digits(top, "Dropped: easy ones", _DROPPED, findings, easiest)
    _draw_digits(bottom, "Kept: the hardest ones", _KEPT, findings, hardest)
    figure.savefig(path)


def _draw_margins(axes: Axes, findings: Findings) -> None:
    order = np.argsort(findings.margins)
    margins, kept = findings.margins[order], findings.result.kept[order]
    rank = np.arange(len(order))
    for rows, color in ((kept, _KEPT), (~kept, _DROPPED)):
        axes.fill_between(rank, 1.0, margins, where=rows, color=color, alpha=0.18, lw=0)
        axes.scatter(rank[rows], margins[rows], s=7, color=color, lw=0)
    axes.axhline(1.0, color=INK, lw=1.2, ls="--")
    axes.set_xlim(-0.01 * len(order), 1.01 * len(order))
    _label(axes, kept, margins)


def _label(axes: Axes, kept: NDArray[np.bool_], margins: Array) -> None:
    n, n_kept = len(kept), int(kept.sum())
    axes.set_title(
        f"{n - n_kept} of {n} samples cannot change the model", fontweight="bold", loc="left"
    )
    axes.set_xlabel("samples, from the hardest to the easiest")
    axes.set_ylabel("margin: how clearly the model is right")
    axes.text(
        0.99 * n, 0.93, "above 1 the loss is flat: no influence", ha="right", va="top", color=INK
    )
    axes.text(
        n_kept * 1.15, margins.min(), f"{n_kept} kept", color=_KEPT, fontweight="bold", fontsize=13
    )
    axes.text(
        0.55 * n, np.quantile(margins, 0.97), f"{n - n_kept} dropped", color=_DROPPED,
        fontweight="bold", fontsize=13, ha="center",
    )  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)


def _first(findings: Findings, order: Array) -> list[NDArray[np.intp]]:
    """The first samples in an order: a row of the digit, and a row of the others."""
    return [
        np.argsort(np.where(rows, order, np.inf))[:_GRID_COLUMNS]
        for rows in (findings.y > 0, findings.y < 0)
    ]


def _first_of_each(findings: Findings, order: Array) -> list[NDArray[np.intp]]:
    """The same, with different digits among the others."""
    first = np.full_like(order, np.inf)
    for digit in np.unique(findings.digits):
        best = np.argmin(np.where(findings.digits == digit, order, np.inf))
        first[best] = digit
    return [_first(findings, order)[0], _first(findings, first)[1]]


def _draw_digits(
    figure: SubFigure, title: str, color: str, findings: Findings, rows: list[NDArray[np.intp]]
) -> None:
    figure.suptitle(title, color=color, fontweight="bold")
    grid = figure.subplots(2, _GRID_COLUMNS)
    for axes, sample in zip(grid.flat, np.concatenate(rows), strict=True):
        axes.imshow(findings.images[sample], cmap="gray_r", interpolation="bicubic")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(color=color, lw=1.5)
    for axes, name in zip(grid[:, 0], (f"{DIGIT}s", "others"), strict=True):
        axes.set_ylabel(name, color=INK)
