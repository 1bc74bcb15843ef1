"""From a source of blocks to certified models: what `fit`, `safe_path` and `screen` share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from safesift import progress
from safesift.arithmetic.numerics import exact_sum
from safesift.design.block_source import BlockSource
from safesift.design.pool import in_words
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.risk import check_shares
from safesift.workflows.scale.certificate import Extent
from safesift.workflows.scale.codes import CodeStore, RowMask
from safesift.workflows.scale.driver import MOST_PASSES, Driver, PassRecord, State
from safesift.workflows.scale.engine import Engine, Task, engine_for
from safesift.workflows.scale.found import Held
from safesift.workflows.scale.passes import Query, flat_codes, piecewise
from safesift.workflows.scale.reading import Reading, Scaling
from safesift.workflows.scale.start import start
from safesift.workflows.scale.survey import Survey, Surveyed

Array = NDArray[np.float64]

# beyond so many columns rows are held and no matrices are made, as for data in memory
_WIDEST = 5000
# matrices of a problem that are held at a time, those of tasks under way included, and what they
# may take of the budget; the share of what is known of the rows
_MATRICES, _MATRIX_SHARE, _CODE_SHARE = 12, 0.4, 0.1


@dataclass(frozen=True, eq=False)
class BlockModel:
    """What is asked of a source.

    Attributes
    ----------
    loss, penalty
    alphas : sequence of float
        From the most regularised one on; radii of a constraint.
    fit_intercept : bool
    tol : float
    seed : int
    class_weights : callable, optional
        Labels and their total weights ↦ what the weights of each are multiplied by, or None.
    """

    loss: Loss
    penalty: Penalty
    alphas: Sequence[float]
    fit_intercept: bool
    tol: float
    seed: int
    class_weights: Callable[[NDArray, Array], Array | None] | None = None

    def refuse(self) -> None:
        """Say what cannot be solved a block at a time, before any work."""
        loss = self.loss
        if math.isinf(loss.proved_smoothness):
            raise ValueError(
                f"loss={loss!r} has kinks, at which slopes are not known from predictions, and "
                "cannot be certified a block at a time: use its smooth relative "
                "('squared_hinge', 'smoothed_hinge', 'squared_epsilon_insensitive', "
                "'smoothed_epsilon_insensitive'), or rows in memory."
            )
        if loss.n_parameters is not None:
            raise ValueError("loss: epsilon must be one number for rows that come in blocks.")


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
    """

    fits: list[list[BlockFit]]
    classes: NDArray | None
    reading: Reading
    surveyed: Surveyed
    kept: RowMask
    undecided: RowMask
    n_passes: int


def solve_blocks(source: BlockSource, model: BlockModel) -> Solution:
    """Solve the problems of a source, a pass at a time."""
    model.refuse()
    engine = engine_for(source)
    surveyed = _surveyed(source, model, engine)
    reading = _reading(source, model, surveyed)
    queries = _queries(model, reading.classes)
    folds = _folds(source, model, surveyed)
    sample = surveyed.sample
    assert sample is not None and surveyed.n_features is not None
    begin = start(surveyed, reading, queries, len(model.alphas), model.seed)
    X = sample.X[:1] if reading.scaling is None else reading.scaling.applied(sample.X[:1])
    lengths = {part: surveyed.length(part) for part in sorted(surveyed.seals)}
    flat = flat_codes(model.loss)
    codes = CodeStore(lengths, len(queries), len(flat), int(_CODE_SHARE * source.memory))
    none = np.zeros(0, dtype=np.intp)
    driver = Driver(
        reading,
        _extent(surveyed, reading),
        codes,
        engine,
        tol=model.tol,
        folds=folds,
        nothing=Held(none, none, X[:0], sample.y[:0], np.zeros(0), np.zeros((0, 1), dtype=bool)),
        row_bytes=_row_bytes(X) if not sparse.issparse(sample.X) else _row_bytes(sample.X),
    )
    states = [
        State(
            k,
            replace(query, point=begin.points[k], spread=begin.spreads[k],
                    constant=begin.constants[k]),
            begin.units[k],
        )
        for k, query in enumerate(queries)
    ]  # fmt: skip
    at_once = _at_once(source, surveyed, model) if folds else len(states)
    for first in range(0, len(states), at_once):
        driver.run(states[first : first + at_once])
    return _solution(states, model, reading, surveyed, codes, driver.n_passes)


# --- what there is ----------------------------------------------------------------------------


def _surveyed(source: BlockSource, model: BlockModel, engine: Engine) -> Surveyed:
    survey = Survey(source, model.loss.task)
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


def _reading(source: BlockSource, model: BlockModel, surveyed: Surveyed) -> Reading:
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
    return Reading(source, surveyed.seals, model.fit_intercept, divisor, classes, factors, scaling)


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


def _queries(model: BlockModel, classes: NDArray | None) -> list[Query]:
    """Classes one after the other, levels within a class."""
    labels: Sequence[Any] = [None]
    if classes is not None:
        labels = list(classes[1:] if len(classes) == 2 else classes)
    nothing, queries = np.zeros(0), list[Query]()
    for label in labels:
        for place, level in enumerate(model.alphas):
            penalty, alpha = model.penalty, float(level)
            if penalty.is_constraint:
                ball: Any = penalty  # a dataclass with a radius, as every constraint is
                penalty, alpha = replace(ball, radius=alpha), 1.0
            after = len(queries) - 1 if place else None
            queries.append(Query(model.loss, penalty, alpha, label, nothing, after=after))
    return queries


# --- memory -----------------------------------------------------------------------------------


def _matrix_bytes(surveyed: Surveyed, model: BlockModel) -> int:
    assert surveyed.n_features is not None
    return 8 * _MATRICES * (surveyed.n_features + model.fit_intercept) ** 2


def _folds(source: BlockSource, model: BlockModel, surveyed: Surveyed) -> bool:
    """Whether matrices with a row for each column are made."""
    assert surveyed.n_features is not None
    fits = _matrix_bytes(surveyed, model) <= _MATRIX_SHARE * source.memory
    if fits and surveyed.n_features <= _WIDEST:
        return True
    wide = surveyed.n_features > _WIDEST and piecewise(model.loss)
    if wide and not fits:
        return False
    needed = in_words(int(_matrix_bytes(surveyed, model) / _MATRIX_SHARE))
    raise MemoryError(
        f"memory is {in_words(source.memory)}, and matrices of {surveyed.n_features} columns for "
        f"one problem need {needed}: increase memory, or give fewer columns."
    )


def _at_once(source: BlockSource, surveyed: Surveyed, model: BlockModel) -> int:
    """How many problems the budget allows in flight."""
    return max(int(_MATRIX_SHARE * source.memory / _matrix_bytes(surveyed, model)), 1)


def _row_bytes(X: Any) -> float:
    if sparse.issparse(X):
        return 2.0 * X.data.nbytes / max(X.shape[0], 1) + 8
    return float(X.dtype.itemsize * X.shape[1])


# --- the end ----------------------------------------------------------------------------------


def _solution(
    states: Sequence[State],
    model: BlockModel,
    reading: Reading,
    surveyed: Surveyed,
    codes: CodeStore,
    n_passes: int,
) -> Solution:
    flat = flat_codes(model.loss)
    undecided = np.arange(len(flat)) == 0

    def fit(state: State, level: float) -> BlockFit:
        proved = state.proved
        coef, intercept = proved.problem.split(proved.at.point)
        if reading.scaling is not None:
            coef, intercept = reading.scaling.in_units(coef, intercept)
        return BlockFit(
            coef=coef,
            intercept=intercept,
            alpha=level,
            gap=proved.gap,
            relative_gap=proved.relative_gap,
            value=proved.at.value,
            converged=proved.relative_gap <= model.tol,
            decided=state.done and proved.decides,
            history=tuple(state.history),
            kept=RowMask(codes, [state.number], ~flat),
            undecided=RowMask(codes, [state.number], undecided),
        )

    n = len(model.alphas)
    fits = [
        [
            fit(state, float(level))
            for state, level in zip(states[k : k + n], model.alphas, strict=True)
        ]
        for k in range(0, len(states), n)
    ]
    everyone = range(len(states))
    return Solution(
        fits,
        reading.classes,
        reading,
        surveyed,
        RowMask(codes, everyone, ~flat),
        RowMask(codes, everyone, undecided),
        n_passes,
    )
