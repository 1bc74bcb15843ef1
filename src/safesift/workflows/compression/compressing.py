"""A small data set in place of a large one: which rows, with which weights, at which alpha."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.threads import computes
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.training import Training
from safesift.regions import Region
from safesift.workflows.compression.blocks import examine_blocks
from safesift.workflows.compression.calibration import calibrated, design_weights, rescaled
from safesift.workflows.compression.examined import examine
from safesift.workflows.compression.hybrid import Hybrid
from safesift.workflows.compression.ranking import (
    count_to_keep,
    first_of,
    generator,
    method_named,
    seed_of,
)
from safesift.workflows.compression.samples import Rows, Samples
from safesift.workflows.compression.strata import Strata, masses_of
from safesift.workflows.scale.reading import Reading
from safesift.workflows.scale.results import rows_in_blocks
from safesift.workflows.scale.writing import write_rows
from safesift.workflows.showing import Shown
from safesift.workflows.verdicts import taken

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Compressed(Shown):
    """The rows to keep, and how to train on them.

    Attributes
    ----------
    indices : array of shape (n_kept,)
        Row numbers, rising.
    weights : array of shape (n_kept,) or None
        Sample weights to train with: they add up to W, the total weight of all samples, where the
        kept rows stand for the dropped ones. Otherwise the weights that the samples had, None if
        they had none.
    alpha : float
        The alpha to train with, next to the *mean* loss of the kept rows. The given one where those
        stand for the dropped ones; times W/W_kept where the dropped ones are taken to be of no
        influence, so that the divisor stays that of all samples; in between for "hybrid" without
        new weights.
    certified : bool
        Whether the optimum of the kept rows, with these weights and this alpha, is proved to be
        the optimum of all samples.
    method : str
    n_samples : int
        How many there were.
    training : Training
        The model that the rows are for, with the alpha of all of them.
    """

    indices: Indices
    weights: Array | None
    alpha: float
    certified: bool
    method: str
    n_samples: int
    training: Training

    @property
    def kept(self) -> NDArray[np.bool_]:
        """True where a row is kept."""
        mask = np.zeros(self.n_samples, dtype=bool)
        mask[self.indices] = True
        return mask

    def take(self, *arrays: Any) -> Any:
        """The kept rows of one array, matrix or frame, or of several, in the type they came in."""
        return taken(self.indices, self.n_samples, arrays)

    def summary(self) -> str:
        """How many rows were kept, for which model, and how to train on them."""
        proof = "the model of all rows, proved" if self.certified else "the model changes a little"
        weights = "no weights" if self.weights is None else "the weights in `weights`"
        return "\n".join([
            f"{len(self.indices)} of {self.n_samples} samples kept by {self.method!r} ({proof})",
            f"  model: {self.training}",
            f"  train on them with alpha={self.alpha:g} and {weights}",
        ])  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class BlockCompressed(Compressed):
    """The rows to keep of a source of blocks.

    Attributes
    ----------
    reading : Reading
        How its rows are read.
    """

    reading: Reading

    def write(self, directory: str | Path) -> Path:
        """Write the kept rows, read and written a block at a time.

        As `BlockScreening.write` does; where the kept rows have weights of their own, these take
        the place of the column of weights, or are a new one, `sample_weight`.

        Parameters
        ----------
        directory : str or Path
            Must not exist. It is there when all of it is. `safesift.json` in it has the alpha to
            train with.
        """
        starts, kept = self.reading.starts, self.indices

        def rows(part: int) -> slice:
            return slice(*np.searchsorted(kept, starts[part : part + 2]))

        def mask(part: int) -> NDArray[np.bool_]:
            chosen = np.zeros(starts[part + 1] - starts[part], dtype=bool)
            chosen[kept[rows(part)] - starts[part]] = True
            return chosen

        def weights(part: int) -> Array | None:
            return None if self.weights is None else self.weights[rows(part)]

        record = {
            "training": str(self.training),
            "method": self.method,
            "alpha": self.training.alpha,
            "alpha_kept": self.alpha,
            "rows": self.n_samples,
            "kept": len(kept),
            "certified": self.certified,
        }
        return write_rows(self.reading, mask, Path(directory), lambda _: record, weights)


@computes
def compress(
    X: Any,
    y: Any = None,
    *,
    n_keep: int | float,
    loss: str | Loss = "squared_hinge",
    penalty: str | Penalty = "l2",
    alpha: float = 1e-4,
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    method: str = "hybrid",
    reweight: bool | None = None,
    stratify: bool = False,
    screening: str | Region = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Compressed:
    """Choose the rows from which a model is best trained, for a given number of rows.

    Parameters
    ----------
    X, y, loss, penalty, alpha, l1_ratio, fit_intercept, sample_weight, screening
        As in `rank_samples`. Of rows in blocks the result can `write` what is kept, a block at a
        time.
    n_keep : int or float
        How many samples to keep, or which share of those of positive weight (0 < n_keep ≤ 1). Of
        every class at least one is kept.
    method : {"hybrid", "screening", "margin", "random", "leverage"}, default="hybrid"
        "hybrid" mixes samples that the model leans on with representative ones, as many of each as
        the budget allows, and weights them so that they pull at the solution as all samples do
        (see `docs/compression.md`). The others keep the first of their ranking: `rank_samples`.
    reweight : bool, optional
        Whether the weights of the kept samples stand for all samples, and add up to W. By default
        they do for "hybrid", "random" and "leverage", and not for "screening" and "margin", which
        take the dropped samples to be of no influence.
    stratify : bool, default=False
        Keep of every class its share by weight; for numbers and intervals, of every tenth of the
        targets. With weights, every stratum then has its total weight.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    Compressed

    Notes
    -----
    `certified` is True where nothing is lost: with "screening" or "margin", not reweighted, where
    every sample that the region leaves undecided is kept; with "hybrid" where all of those and at
    least one of the others are. The others lie on a flat piece at the optimum, where any weight
    has the same, zero, pull.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, 10, class_sep=1.5, random_state=0)
    >>> small = ss.compress(X, y, n_keep=0.05, alpha=1e-3, random_state=0)
    >>> X_small, y_small = small.take(X, y)
    >>> model = ss.SafeClassifier(alpha=small.alpha)
    >>> model = model.fit(X_small, y_small, sample_weight=small.weights)
    >>> everything = ss.SafeClassifier(alpha=1e-3).fit(X, y)
    >>> len(y_small), bool(abs(model.score(X, y) - everything.score(X, y)) < 0.01)
    (100, True)
    >>> round(float(small.weights.sum()), 6)
    2000.0
    """
    rng = generator(random_state)
    model = Training(loss, penalty, alpha, l1_ratio, fit_intercept)
    method_named(method)
    source = rows_in_blocks("compress", X, y, sample_weight, None, screening=(screening, "auto"))
    if source is not None:
        blocks = examine_blocks(source, model, seed_of(rng))
        choice = Choice(method, reweight, stratify, given_weights=blocks.weighted)
        chosen = choice.made(blocks, n_keep, rng)
        return BlockCompressed(**vars(chosen), reading=blocks.solution.reading)
    samples = examine(X, y, model, sample_weight, screening, seed_of(rng))
    choice = Choice(method, reweight, stratify, given_weights=sample_weight is not None)
    return choice.made(samples, n_keep, rng)


@dataclass(frozen=True)
class Choice:
    """How to choose rows and weights, once samples are examined: see `compress`."""

    method: str
    reweight: bool | None = None
    stratify: bool = False
    given_weights: bool = False

    def made(self, samples: Samples, n_keep: int | float, rng: np.random.Generator) -> Compressed:
        """The choice for a number of rows."""
        count = count_to_keep(n_keep, samples)
        strata = Strata.of(samples, self.stratify)
        method = method_named(self.method)
        represents = method.represents if self.reweight is None else self.reweight
        if method.adapts:
            return self._mixed(samples, count, strata, Hybrid(samples, rng.random(), represents))
        kept = first_of(samples, method.scores(samples, rng), count, strata)
        own = samples.at(kept, _weights)
        if represents:
            masses = strata.masses(samples, _weights)
            scaled = rescaled(own, samples.at(kept, strata.codes), masses)
            return self._record(samples, kept, scaled)
        share = float(own.sum() / samples.total_weight) if method.represents else 1.0
        return self._record(samples, kept, own, share)

    def _mixed(self, samples: Samples, count: int, strata: Strata, mix: Hybrid) -> Compressed:
        """Hard and representative rows."""
        kept = first_of(samples, mix.priorities(count), count, strata)
        if mix.weighted:
            return self._record(samples, kept, _mixed_weights(samples, mix, kept, strata))
        active = samples.sum(_active_weights)
        share = float(samples.at(kept, _active_weights).sum()) / active if active > 0 else 1.0
        return self._record(samples, kept, samples.at(kept, _weights), share)

    def _record(
        self, samples: Samples, kept: Indices, used: Array, share: float | None = None
    ) -> Compressed:
        """`share` of the pull of all samples is that of the kept ones, where weights stay."""
        alpha = samples.alpha
        weights: Array | None = used
        if share is not None:
            alpha *= share * samples.divisor / float(used.sum())
            weights = used if self.given_weights else None
        certified = self._certified(samples, kept, used)
        return Compressed(
            kept, weights, alpha, certified, self.method, samples.n_rows, samples.training
        )

    def _certified(self, samples: Samples, kept: Indices, used: Array) -> bool:
        """Whether what is dropped, or has another weight, is proved to be of no influence."""
        needed = method_named(self.method).needed(samples)
        same = samples.at(kept, needed) & (used == samples.at(kept, _weights))
        return int(np.count_nonzero(same)) == samples.count(needed)


def _weights(rows: Rows) -> Array:
    return rows.weights


def _active_weights(rows: Rows) -> Array:
    return np.where(rows.active, rows.weights, 0.0)


def _mixed_weights(samples: Samples, mix: Hybrid, kept: Indices, strata: Strata) -> Array:
    """Their own weights where all that matters is kept, else calibrated ones."""
    own, active = samples.at(kept, _weights), samples.at(kept, lambda rows: rows.active)
    codes, idle = samples.at(kept, strata.codes), np.where(active, 0.0, own)
    masses = strata.masses(samples, lambda rows: rows.weights - _active_weights(rows))
    carried = masses_of(codes, idle, len(masses))
    if active.sum() < samples.n_active or (carried == 0)[masses > 0].any():
        inclusion = samples.at(kept, mix.inclusion(len(kept)))
        return calibrated(samples, kept, design_weights(own, inclusion), strata)
    carriers = ~active
    if carriers.any():
        own[carriers] = rescaled(own[carriers], codes[carriers], masses)
    return own
