"""`screen` and `safe_path` of rows that come in blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from safesift.alerts import warn
from safesift.design.block_source import BlockSource
from safesift.design.block_sources import dask
from safesift.design.dask_source import is_dask
from safesift.grids import check_levels
from safesift.losses import LOSSES, Loss
from safesift.penalties import Penalty
from safesift.problem.inputs import check_penalty
from safesift.problem.training import Training
from safesift.registry import provided, resolve
from safesift.workflows.scale.codes import RowMask
from safesift.workflows.scale.solve import BlockFit, BlockModel, Solution, solve_blocks
from safesift.workflows.scale.writing import write_kept
from safesift.workflows.showing import Shown

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class BlockScreening(Shown):
    """What `screen` found about rows that come in blocks.

    Attributes
    ----------
    solution : Solution
        The models, and what became of every row.
    training : Training
        Loss, penalty, alpha and intercept of the model that all this is about.
    kept, undecided : RowMask
        As of `ScreeningResult`, to be read part by part; `numpy.asarray` makes one array.
    coef, intercept
        The certified model; with several classes a row for each. In the units of the data, also
        where columns were scaled.
    gap : float, or array of shape (n_classes,)
        Measured on all rows: of the scaled problem, where columns were scaled.
    passes : int
        Over the data.
    classes : array or None
        The labels; the second of two stands for 1.
    certified : bool
        True: nothing is guessed.
    """

    solution: Solution
    training: Training

    @property
    def fits(self) -> list[BlockFit]:
        """One for each problem."""
        return [fits[0] for fits in self.solution.fits]

    @property
    def classes(self) -> NDArray | None:
        return self.solution.classes

    @property
    def certified(self) -> bool:
        return True

    @property
    def kept(self) -> RowMask:
        return self.solution.kept

    @property
    def undecided(self) -> RowMask:
        return self.solution.undecided

    @property
    def coef(self) -> Array:
        coefs = [fit.coef for fit in self.fits]
        return coefs[0] if len(coefs) == 1 else np.stack(coefs)

    @property
    def intercept(self) -> Any:
        found = [fit.intercept for fit in self.fits]
        return found[0] if len(found) == 1 else np.array(found)

    @property
    def gap(self) -> Any:
        gaps = [fit.gap for fit in self.fits]
        return gaps[0] if len(gaps) == 1 else np.array(gaps)

    @property
    def relative_gap(self) -> float:
        """The largest of all problems."""
        return max(fit.relative_gap for fit in self.fits)

    @property
    def passes(self) -> int:
        return self.solution.n_passes

    def __repr__(self) -> str:
        return f"<BlockScreening: {self.kept.sum()} of {len(self.kept)} rows kept (proved)>"

    def summary(self) -> str:
        """What was kept, in a few lines."""
        kept, n, undecided = self.kept.sum(), len(self.kept), self.undecided.sum()
        scaled = " (of the scaled problem)" if self.solution.reading.scaling is not None else ""
        return "\n".join([
            f"{n} rows in {self.passes} passes: {self.training}",
            f"  {n - kept} dropped ({100.0 * (n - kept) / n:.1f} %): cannot change the model",
            f"  {kept} kept, {undecided} of them not decided",
            f"  relative duality gap {self.relative_gap:.2g}, on all rows{scaled}",
        ])  # fmt: skip

    def to_estimator(self) -> Any:
        """The model as a fitted estimator, as its own `fit` would have left it."""
        return provided("estimator_of_blocks")(self)

    def write(self, directory: str | Path) -> Path:
        """Write the rows that matter, read and written a block at a time.

        Files keep their format, names and columns, below a new directory; arrays and blocks made
        by calls become `part-….npz` with X (or its CSR arrays), y, weight and the numbers of the
        rows. `safesift.json` beside them says what they are for, and has `alpha_kept`: the alpha
        for a solver that averages over the kept rows alone.

        Parameters
        ----------
        directory : str or Path
            Must not exist. It is there when all of it is.
        """
        return write_kept(self.solution, self.training, Path(directory))


def screen_blocks(source: BlockSource, training: Training, tol: float, seed: int) -> BlockScreening:
    """Screen the rows of a source; every problem is solved to `tol`."""
    solution = solve_blocks(source, block_model(training, [training.alpha], tol, seed))
    fits = [fit for fits in solution.fits for fit in fits]
    complain("screen", fits, tol)
    return BlockScreening(solution, training)


def path_of_blocks(
    source: BlockSource, training: Training, alphas: Any, tol: float, seed: int
) -> dict[str, Any]:
    """The facts of a path, by the names of the attributes of `PathResult`."""
    if alphas is None:
        raise ValueError(
            "alphas is None, and rows that come in blocks do not tell which are worth it before "
            "they are read: list some, as alphas=[1e-2, 1e-3]."
        )
    given = check_levels(alphas)
    model = block_model(training, given, tol, seed)
    order = np.argsort(given if model.penalty.is_constraint else -given, kind="stable")
    solution = solve_blocks(source, replace(model, alphas=given[order].tolist()))
    if len(solution.fits) > 1:
        raise ValueError(
            f"y has {len(solution.fits)} classes, and two are needed here: make labels of one "
            "class against the rest."
        )
    (fits,) = solution.fits
    complain("safe_path", fits, tol)
    asked = [fits[k] for k in np.argsort(order, kind="stable")]
    last = [fit.history[-1] for fit in asked]
    return {
        "training": replace(training, alpha=math.nan),
        "parameter": "radius" if model.penalty.is_constraint else "alpha",
        "alphas": given,
        "coefs": np.stack([fit.coef for fit in asked]),
        "intercepts": np.array([fit.intercept for fit in asked]),
        "dual_gaps": np.array([fit.gap for fit in asked]),
        "relative_gaps": np.array([fit.relative_gap for fit in asked]),
        "n_kept": np.array([fit.kept.sum() for fit in asked]),
        "n_undecided": np.array([fit.undecided.sum() for fit in asked]),
        "n_iter": np.array([len(fit.history) for fit in asked]),
        # all alphas share their passes: each has its part in them
        "passes": np.full(len(asked), solution.n_passes / len(asked)),
        "seconds": np.array([one.seconds for one in last]) / len(asked),
        "classes": solution.classes,
    }


def block_model(training: Training, alphas: Any, tol: float, seed: int) -> BlockModel:
    """What is asked of a source, in the words of whoever trains."""
    loss = resolve("loss", training.loss, LOSSES, Loss)
    penalty: Penalty = check_penalty(training.penalty, training.l1_ratio)
    if penalty.is_constraint and len(alphas) == 1:
        ball: Any = penalty
        alphas = [ball.radius]
    return BlockModel(loss, penalty, list(alphas), training.fit_intercept, tol, seed)


def rows_in_blocks(
    who: str, X: Any, y: Any, sample_weight: Any, target: Any, **given: Any
) -> BlockSource | None:
    """The source, if X is one, or a dask array or frame; what has no meaning then is refused."""
    if is_dask(X):
        refuse_given(who, **given)
        return dask(X, y, sample_weight, target=target)
    if target is not None:
        raise ValueError(
            f"target={target!r} names a column of a dask frame, and X is none: pass y, or name the "
            "target where the blocks are made (safesift.blocks)."
        )
    if isinstance(X, BlockSource):
        refuse_given(who, y=(y, None), sample_weight=(sample_weight, None), **given)
        return X
    return None


def refuse_given(what: str, **given: Any) -> None:
    """Refuse arguments that mean nothing for rows that come in blocks."""
    for name, (value, default) in given.items():
        # an array is not what was left out, and too long to be repeated
        several = np.ndim(value) > 0
        if value is not default and (several or value != default):
            raise ValueError(
                f"{name}{'' if several else f'={value!r}'} has no meaning for {what} of rows that "
                "come in blocks: leave it out."
            )


def complain(who: str, fits: list[BlockFit], tol: float) -> None:
    """Say that some problems were not solved to the tolerance."""
    missed = [fit for fit in fits if not fit.converged]
    if missed:
        worst = max(missed, key=lambda fit: fit.relative_gap)
        share = "" if len(fits) == 1 else f" for {len(missed)} of {len(fits)} problems"
        warn(
            f"{who} did not converge{share}: the relative duality gap is {worst.relative_gap:.2g} "
            f"after {worst.history[-1].passes} passes, above tol={tol:g}; scale the columns "
            "(scale='standard'), or accept a larger tol.",
            ConvergenceWarning,
        )
