"""From a source of blocks to certified models: what `fit`, `safe_path` and `screen` share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift import progress
from safesift.arithmetic.numerics import exact_sum
from safesift.design.block_source import BlockSource
from safesift.design.pool import in_words
from safesift.grids import Grid
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.problem import Problem
from safesift.problem.risk import check_shares
from safesift.solvers import Settings
from safesift.workflows.scale import budget
from safesift.workflows.scale.budget import Size
from safesift.workflows.scale.certificate import Extent
from safesift.workflows.scale.checkpoint import Checkpoint
from safesift.workflows.scale.codes import CodeStore, RowMask
from safesift.workflows.scale.driver import MOST_PASSES, Driver
from safesift.workflows.scale.engine import Engine, Task, engine_for
from safesift.workflows.scale.folds import Folds
from safesift.workflows.scale.found import Held
from safesift.workflows.scale.outcomes import Outcome, PassRecord
from safesift.workflows.scale.passes import Query, flat_codes, kinked, piecewise
from safesift.workflows.scale.reading import Reading, Scaling
from safesift.workflows.scale.remembering import Remembered
from safesift.workflows.scale.start import sample_problems, start
from safesift.workflows.scale.states import State
from safesift.workflows.scale.survey import Survey, Surveyed
from safesift.workflows.scale.whole import solve_whole

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Spaced:
    """So many alphas, evenly spaced in their logarithms, from where models are constant."""

    n_alphas: int
    eps: float

    def levels(self, problems: Sequence[Problem]) -> list[float]:
        """For the problems of a sample, one for each class."""
        return Grid.of(problems, self.n_alphas, self.eps).levels.tolist()


@dataclass(frozen=True, eq=False)
class BlockModel:
    """What is asked of a source.

    Attributes
    ----------
    loss, penalty
    alphas : sequence of float, or Spaced
        From the most regularised one on; radii of a constraint.
    fit_intercept : bool
    tol : float
    seed : int
    class_weights : callable, optional
        Labels and their total weights ↦ what the weights of each are multiplied by, or None.
    n_folds : int, optional
        Of a cross-validation: every problem is solved without each of so many folds, too.
    """

    loss: Loss
    penalty: Penalty
    alphas: Any
    fit_intercept: bool
    tol: float
    seed: int
    class_weights: Callable[[NDArray, Array], Array | None] | None = None
    n_folds: int | None = None

    def refuse(self) -> None:
        """Say what cannot be solved, before any work."""
        if self.loss.n_parameters is not None:
            raise ValueError("loss: epsilon must be one number for rows that come in blocks.")

    def refuse_kinks(self, memory: int) -> None:
        """Say what cannot be solved a block at a time."""
        if math.isinf(self.loss.proved_smoothness) and not kinked(self.loss):
            raise ValueError(
                f"loss={self.loss!r} has no slope that is proved to be continuous, and cannot be "
                f"certified a block at a time; not all rows fit into {in_words(memory)} of memory "
                "either: use another loss, or increase memory."
            )

    def described(self) -> dict[str, str]:
        """What is asked, in words, for a checkpoint."""
        owner = getattr(self.class_weights, "__self__", None)
        return {
            "loss": repr(self.loss),
            "penalty": repr(self.penalty),
            "alphas": repr(self.alphas),
            "fit_intercept": str(self.fit_intercept),
            "tol": repr(self.tol),
            "class_weight": repr(getattr(owner, "class_weight", None)),
            "cv": str(self.n_folds),
        }


@dataclass(frozen=True, eq=False)
class BlockFit:
    """One certified model.

    Attributes
    ----------
    coef, intercept
        In the units of the data, also where columns were scaled.
    alpha : float
    gap, relative_gap : float
        Measured on all rows, of the scaled problem where columns were scaled.
    value : float
        Of the objective.
    converged : bool
    decided : bool
        Whether a ball around the optimum was proved, so that rows could be decided.
    history : tuple of PassRecord
    kept, undecided : RowMask
    """

    coef: Array
    intercept: float
    alpha: float
    gap: float
    relative_gap: float
    value: float
    converged: bool
    decided: bool
    history: tuple[PassRecord, ...]
    kept: RowMask
    undecided: RowMask


@dataclass(frozen=True, eq=False)
class Solution:
    """The models of a source.

    Attributes
    ----------
    fits : list of lists of BlockFit
        For every class (one where there are two, or none) and every alpha.
    classes : array or None
    reading : Reading
    surveyed : Surveyed
    kept, undecided : RowMask
        For all problems together.
    n_passes : int
    without : list of lists of lists of BlockFit
        The same as `fits` without each fold of a cross-validation.
    """

    fits: list[list[BlockFit]]
    classes: NDArray | None
    reading: Reading
    surveyed: Surveyed
    kept: RowMask
    undecided: RowMask
    n_passes: int
    without: list[list[list[BlockFit]]] = field(default_factory=list)

    def at_level(self, place: int) -> Solution:
        """Of one alpha only, and of all rows."""
        fits = [[of_class[place]] for of_class in self.fits]
        kept, undecided = (
            RowMask.any([getattr(one, name) for (one,) in fits]) for name in ("kept", "undecided")
        )
        return replace(self, fits=fits, kept=kept, undecided=undecided, without=[])


def solve_blocks(source: BlockSource, model: BlockModel) -> Solution:
    """Solve the problems of a source, a pass at a time, or all rows at once where they fit."""
    model.refuse()
    # what is decoded is kept where matrices will be, as far as those leave room for it
    remembered = Remembered(source, budget.cache(source.memory))
    try:
        return _solved(source, model, engine_for(source), remembered)
    finally:
        remembered.shrink(0)


def _solved(
    source: BlockSource, model: BlockModel, engine: Engine, remembered: Remembered
) -> Solution:
    checkpoint = None
    if source.checkpoint is not None:
        checkpoint = Checkpoint(source.checkpoint, source, model.described())
    known = None if checkpoint is None else checkpoint.last()
    surveyed = _surveyed(source, model, engine, remembered) if known is None else known["surveyed"]
    reading = _reading(source, model, surveyed, remembered)
    model = _with_levels(model, surveyed, reading) if known is None else known["model"]
    queries = _queries(model, reading.classes)
    lengths = {part: surveyed.length(part) for part in sorted(surveyed.seals)}
    n_codes = len(flat_codes(model.loss))
    codes = CodeStore(lengths, len(queries), n_codes, budget.codes(source.memory))
    n_levels = len(model.alphas)
    size = Size.of(surveyed, reading) if known is None else known["size"]
    if known is None and size.all_fit(len(queries) // n_levels):
        full = tuple(k for k, query in enumerate(queries[::n_levels]) if query.fold is None)
        settings = Settings(model.tol, seed=model.seed, decided=full)
        outcomes = solve_whole(reading, queries, n_levels, settings, engine=engine, codes=codes)
        return _solution(outcomes, model, reading, surveyed, codes, n_passes=2)
    model.refuse_kinks(source.memory)
    # linear pieces have no matrices
    matrices, n_passes = not kinked(model.loss) and size.folds(piecewise(model.loss)), 1
    if known is None:
        states = _begun(queries, model, surveyed, reading)
        surveyed = surveyed.thinned()
    else:
        assert checkpoint is not None
        checkpoint.load_codes(codes)
        states, n_passes = known["states"], known["n_passes"]
    passes = _Passes(reading, model, surveyed, size, codes, engine, checkpoint)
    n_passes = passes.made(states, matrices, n_passes)
    outcomes = [state.outcome() for state in states]
    return _solution(outcomes, model, reading, surveyed, codes, n_passes)


def _begun(
    queries: Sequence[Query], model: BlockModel, surveyed: Surveyed, reading: Reading
) -> list[State]:
    """Every problem where the sample has its solution; folds where all rows have it."""
    full = [query for query in queries if query.fold is None]
    begin = start(surveyed, reading, full, len(model.alphas), model.seed)
    places = [k % len(full) for k in range(len(queries))]
    return [
        State(
            number,
            replace(query, point=begin.points[k], spread=begin.spreads[k],
                    constant=begin.constants[k]),
            begin.units[k],
            decides=query.fold is None,
        )
        for number, (query, k) in enumerate(zip(queries, places, strict=True))
    ]  # fmt: skip


class _Passes:
    """The passes of all problems, so many of them in flight as the budget allows."""

    def __init__(
        self,
        reading: Reading,
        model: BlockModel,
        surveyed: Surveyed,
        size: Size,
        codes: CodeStore,
        engine: Engine,
        checkpoint: Checkpoint | None,
    ) -> None:
        self._reading, self._model, self._surveyed = reading, model, surveyed
        self._size, self._codes = size, codes
        self._engine, self._checkpoint = engine, checkpoint

    def made(self, states: Sequence[State], matrices: bool, n_passes: int) -> int:
        """Go on after some passes until all problems are done; how many were made in all."""
        reading, model, surveyed = self._reading, self._model, self._surveyed
        sample, size = surveyed.sample, self._size
        assert sample is not None
        at_once = min(size.at_once, len(states)) if matrices else len(states)
        if reading.remembered is not None:
            reading.remembered.shrink(size.cache_beside(at_once if matrices else 0))

        def save(n_passes: int) -> None:
            assert self._checkpoint is not None
            plain = replace(model, class_weights=None)
            known = {
                "surveyed": surveyed, "model": plain, "size": size, "states": states,
                "n_passes": n_passes,
            }  # fmt: skip
            self._checkpoint.save(n_passes, known, self._codes)

        saves = self._checkpoint is not None
        X = sample.X[:1] if reading.scaling is None else reading.scaling.applied(sample.X[:1])
        none = np.zeros(0, dtype=np.intp)
        driver = Driver(
            reading,
            _extent(surveyed, reading),
            self._codes,
            self._engine,
            tol=model.tol,
            folds=matrices or kinked(model.loss),
            nothing=Held(none, none, X[:0], sample.y[:0], np.zeros(0), np.zeros((0, 1), bool)),
            row_bytes=size.row_bytes,
            save=save if saves else None,
            n_passes=n_passes,
        )
        if saves and n_passes == 1:
            save(1)
        for first in range(0, len(states), at_once):
            driver.run(states[first : first + at_once])
        return driver.n_passes


# --- what there is ----------------------------------------------------------------------------


def _surveyed(
    source: BlockSource, model: BlockModel, engine: Engine, remembered: Remembered
) -> Surveyed:
    survey = Survey(source, model.loss.task, remembered)
    tasks = [Task(part) for part in range(source.n_parts)]
    n_seen = 0

    def take(n_rows: int) -> None:
        nonlocal n_seen
        n_seen += n_rows
        progress.report_within("pass 1", n_seen, source.n_rows or 0)

    surveyed: Surveyed = engine.carry_out(survey, tasks, take)
    progress.report("pass 1: what there is", 1, MOST_PASSES)
    if surveyed.n_rows == 0:
        raise ValueError("there are no rows: give at least one block that has some.")
    if not surveyed.weight > 0:
        raise ValueError("the weight is zero everywhere: give some row a positive weight.")
    if not math.isfinite(surveyed.weight):
        raise ValueError("the weights are too large to add up: divide them by the largest one.")
    check_shares(np.array([surveyed.least_weight]), surveyed.weight)
    return surveyed


def _reading(
    source: BlockSource, model: BlockModel, surveyed: Surveyed, remembered: Remembered
) -> Reading:
    divisor, factors = surveyed.weight, None
    classes = surveyed.labels
    if classes is not None:
        assert surveyed.label_weights is not None
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only ({classes.tolist()[0]!r}, among rows of positive weight): "
                "classification needs two."
            )
        if model.class_weights is not None:
            factors = model.class_weights(classes, surveyed.label_weights)
        if factors is not None:
            divisor = exact_sum((factors * surveyed.label_weights).tolist())
    scaling = None
    if surveyed.moments is not None:
        assert surveyed.sample is not None
        dense = not sparse.issparse(surveyed.sample.X)
        if not dense and not model.fit_intercept:
            raise ValueError(
                "scale='standard' centres columns, and sparse rows are centred by the intercept: "
                "set fit_intercept=True, or scale the rows before."
            )
        scaling = Scaling.of(surveyed.moments, dense)
    folds = None if model.n_folds is None else Folds.cut(model.n_folds, surveyed.counts)
    return Reading(
        source, surveyed.seals, model.fit_intercept, divisor, classes, factors, scaling, folds,
        remembered,
    )  # fmt: skip


def _extent(surveyed: Surveyed, reading: Reading) -> Extent:
    assert surveyed.n_features is not None
    blocks = max(len(seals) for seals in surveyed.seals.values())
    # the tree, and what of it is left over at the end
    depth = blocks + 2 * math.ceil(math.log2(len(surveyed.seals) + 1))
    norms = surveyed.norms
    if reading.scaling is not None:
        # a bound on the norms of scaled rows: an underflow is all that it is for
        norms = surveyed.norms / float(reading.scaling.deviation.min()) * 4.0 + surveyed.n_rows
    return Extent(
        surveyed.n_rows, surveyed.n_features, surveyed.row_length, reading.intercept,
        reading.divisor, norms, depth,
    )  # fmt: skip


def _with_levels(model: BlockModel, surveyed: Surveyed, reading: Reading) -> BlockModel:
    """With the alphas that the sample asks for, where none are given."""
    if not isinstance(model.alphas, Spaced):
        return model
    alone = replace(model, alphas=[1.0], n_folds=None)
    problems, _ = sample_problems(surveyed, reading, _queries(alone, reading.classes))
    return replace(model, alphas=model.alphas.levels(problems))


def _queries(model: BlockModel, classes: NDArray | None) -> list[Query]:
    """All rows, then without each fold; there classes one after the other, and levels within."""
    labels: Sequence[Any] = [None]
    if classes is not None:
        labels = list(classes[1:] if len(classes) == 2 else classes)
    folds = [None, *range(model.n_folds or 0)]
    n_full, nothing, queries = len(labels) * len(model.alphas), np.zeros(0), list[Query]()
    for fold, label in product(folds, labels):
        for place, level in enumerate(model.alphas):
            penalty, alpha = model.penalty, float(level)
            if penalty.is_constraint:
                ball: Any = penalty  # a dataclass with a radius, as every constraint is
                penalty, alpha = replace(ball, radius=alpha), 1.0
            # the problem whose rows are on the same pieces, but for a few
            after = len(queries) - 1 if place else None
            if fold is not None:
                after = len(queries) % n_full
            queries.append(
                Query(model.loss, penalty, alpha, label, nothing, after=after, fold=fold)
            )
    return queries


# --- the end ----------------------------------------------------------------------------------


def _solution(
    outcomes: Sequence[Outcome],
    model: BlockModel,
    reading: Reading,
    surveyed: Surveyed,
    codes: CodeStore,
    n_passes: int,
) -> Solution:
    flat = flat_codes(model.loss)
    undecided = np.arange(len(flat)) == 0

    def fit(number: int, level: float) -> BlockFit:
        end = outcomes[number]
        coef, intercept = end.coef, end.intercept
        if reading.scaling is not None:
            coef, intercept = reading.scaling.in_units(coef, intercept)
        return BlockFit(
            coef=coef,
            intercept=intercept,
            alpha=level,
            gap=end.gap,
            relative_gap=end.relative_gap,
            value=end.value,
            converged=end.relative_gap <= model.tol,
            decided=end.decided,
            history=end.history,
            kept=RowMask(codes, [number], ~flat),
            undecided=RowMask(codes, [number], undecided),
        )

    n = len(model.alphas)
    fits = [
        [fit(first + k, float(level)) for k, level in enumerate(model.alphas)]
        for first in range(0, len(outcomes), n)
    ]
    n_classes = len(fits) // (1 + (model.n_folds or 0))
    everyone = range(n_classes * n)
    return Solution(
        fits[:n_classes],
        reading.classes,
        reading,
        surveyed.thinned(),
        RowMask(codes, everyone, ~flat),
        RowMask(codes, everyone, undecided),
        n_passes,
        [fits[k : k + n_classes] for k in range(n_classes, len(fits), n_classes)],
    )
