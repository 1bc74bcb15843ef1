"""What the laws are checked on: losses, penalties, samples and small problems, all generated.

Everything is found through the registries `LOSSES` and `PENALTIES`. A parameter of a new loss or
penalty is varied as soon as its name is in `PARAMETERS`; until then its default is used. Problems
that nobody asked a loss or penalty for have those that are written a second time (`definitions`).
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from safesift.losses import LOSSES, Loss
from safesift.penalties import PENALTIES, Penalty
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from tests.laws.definitions import written

LOSS_NAMES = sorted(LOSSES)
PENALTY_NAMES = sorted(PENALTIES)
SMOOTH_NAMES = [name for name in LOSS_NAMES if np.isfinite(LOSSES[name]().smoothness)]
KINKED_NAMES = [name for name in LOSS_NAMES if name not in SMOOTH_NAMES]

TINY = 5e-324  # the smallest positive float64
EXTREMES = (0.0, -0.0, TINY, -TINY, 1e-310, -1e-300, 1e-160, -1e-8, 1e16, -1e155, 1e300, -1e300)


def examples(share: float) -> settings:
    """Fewer (or more) examples than the profile has, where one is expensive (or cheap)."""
    return settings(max_examples=max(1, round(share * settings.default.max_examples)))


def fails(law, n: int) -> bool:
    """Whether a law of a seed fails for one of the first n."""
    for seed in range(n):
        try:
            law(seed)
        except AssertionError:
            return True
    return False


# Eighths hit kinks, ties and zeros exactly; the floats have all their bits set.
eighths = st.integers(-40, 40).map(lambda k: k / 8)
numbers = st.one_of(eighths, st.floats(-100, 100))
extremes = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e300, 1e300))

PARAMETERS = {
    "mu": st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 3)),
    "delta": st.one_of(st.sampled_from([0.5, 1.0, 2.0]), st.floats(0.01, 10)),
    "epsilon": st.one_of(st.sampled_from([0.0, 0.25, 1.0]), st.floats(0, 2)),
    "width": st.one_of(st.sampled_from([0.25, 1.0]), st.floats(0.01, 2)),
    "l1_ratio": st.one_of(st.sampled_from([0.0, 0.5]), st.floats(0, 0.99)),
    "radius": st.one_of(st.sampled_from([0.5, 1.0, 3.0]), st.floats(0.01, 10)),
}
PER_SAMPLE = {"epsilon"}


@st.composite
def _configured(draw, cls, n_samples=None):
    """An object of a registered class, with random parameters."""
    chosen = {}
    for name in (field.name for field in fields(cls) if field.name in PARAMETERS):
        values = PARAMETERS[name]
        if name in PER_SAMPLE and n_samples is not None and draw(st.booleans()):
            values = hnp.arrays(np.float64, n_samples, elements=values)
        chosen[name] = draw(values)
    return cls(**chosen)


def losses(name: str, n_samples: int | None = None) -> st.SearchStrategy[Loss]:
    """A loss with random parameters, maybe one per sample where `n_samples` is given."""
    return _configured(LOSSES[name], n_samples)


def penalties(name: str) -> st.SearchStrategy[Penalty]:
    return _configured(PENALTIES[name])


# --- predictions and targets --------------------------------------------------------------------


class Samples(NamedTuple):
    """A loss and as many predictions as targets."""

    loss: Loss
    pred: np.ndarray
    y: np.ndarray


def targets(loss: Loss, n_samples: int, elements=numbers) -> st.SearchStrategy[np.ndarray]:
    """Labels -1 and 1, targets, or intervals."""
    if loss.task == "interval":
        rows = st.lists(intervals(elements), min_size=n_samples, max_size=n_samples)
        return rows.map(np.array)
    if loss.task == "classification":
        elements = st.sampled_from([-1.0, 1.0])
    return hnp.arrays(np.float64, n_samples, elements=elements)


def intervals(elements=numbers) -> st.SearchStrategy[tuple[float, float]]:
    """Bounded intervals, of width zero, and open on either side."""
    return st.one_of(
        st.tuples(elements, elements).map(lambda ends: tuple(sorted(ends))),
        elements.map(lambda end: (end, end)),
        elements.map(lambda end: (end, np.inf)),
        elements.map(lambda end: (-np.inf, end)),
    )


def as_targets(loss: Loss, y) -> np.ndarray:
    """Numbers as targets of a loss: where it wants intervals, of width zero."""
    y = np.asarray(y)
    return np.stack([y, y], axis=-1) if loss.task == "interval" else y


@st.composite
def predictions(draw, loss, y, elements=numbers):
    """Predictions, some of them exactly at a kink of the sample's loss or next to it."""
    pred = draw(hnp.arrays(np.float64, len(y), elements=elements))
    places = kinks(loss, y)
    if len(places):
        at_kink = draw(hnp.arrays(np.int64, len(y), elements=st.integers(-1, len(places) - 1)))
        place = places[at_kink, np.arange(len(y))]
        chosen = np.where((at_kink >= 0) & np.isfinite(place), place, pred)
        side = draw(st.sampled_from([0.0, -np.inf, np.inf]))
        pred = chosen if side == 0 else np.nextafter(chosen, side)
    return pred


def kinks(loss: Loss, y: np.ndarray) -> np.ndarray:
    """The ends of the pieces, NaN where infinite: one row per end, one column per sample."""
    ends = [end for piece in loss.pieces(y) for end in (piece.lower, piece.upper)]
    places = np.array(ends, dtype=np.float64).reshape(len(ends), len(y))
    return np.where(np.isfinite(places), places, np.nan)


@st.composite
def samples(draw, name, elements=numbers, max_size=6):
    """A loss with predictions and targets."""
    n_samples = draw(st.integers(1, max_size))
    loss = draw(losses(name, n_samples))
    y = draw(targets(loss, n_samples, elements))
    return Samples(loss, draw(predictions(loss, y, elements)), y)


# --- problems -----------------------------------------------------------------------------------

# entries of a matrix: nothing so small that its square is lost, for which there are other tests
entries = st.one_of(
    st.just(0.0), eighths, st.floats(-8, 8).map(lambda value: value if abs(value) > 1e-100 else 0.0)
)
vectors = hnp.arrays(np.float64, st.integers(1, 6), elements=numbers)


@st.composite
def problems(
    draw, loss=None, penalty=None, *, intercept=None, weighted=None, max_samples=12, max_features=5,
    elements=entries,
):  # fmt: skip
    """A small problem: dense or CSR, float32 or float64, with or without weights and intercept.

    Parameters
    ----------
    loss, penalty : str, optional
        Names; any by default.
    intercept, weighted : bool, optional
        Either by default.
    elements : strategy
        Entries of X and regression targets.
    """
    loss_name = draw(st.sampled_from(written(LOSSES))) if loss is None else loss
    penalty_name = draw(st.sampled_from(written(PENALTIES))) if penalty is None else penalty
    classification = LOSSES[loss_name].task == "classification"
    n = draw(st.integers(2 if classification else 1, max_samples))
    p = draw(st.integers(1, max_features))
    weighted = draw(st.booleans()) if weighted is None else weighted
    chosen = draw(losses(loss_name, n))
    return make_problems(
        draw(matrices(n, p, elements)),
        draw(_targets_of_problem(chosen, n, elements)),
        loss=chosen,
        penalty=draw(penalties(penalty_name)),
        alpha=draw(st.one_of(st.sampled_from([0.125, 1.0]), st.floats(1e-3, 10))),
        fit_intercept=draw(st.booleans()) if intercept is None else intercept,
        sample_weight=draw(sample_weights(n)) if weighted else None,
    ).problem


@st.composite
def matrices(draw, n, p, elements=entries):
    """A matrix of features, in one of the storages and types."""
    X = draw(hnp.arrays(np.float64, (n, p), elements=elements))
    X = X.astype(draw(st.sampled_from([np.float64, np.float32])))
    return sparse.csr_array(X) if draw(st.booleans()) else X


@st.composite
def sample_weights(draw, n):
    """Weights of which the first two are positive: there the two labels are, if any."""
    weight = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(0.01, 10))
    weights = draw(hnp.arrays(np.float64, n, elements=weight))
    weights[:2] = np.where(weights[:2] == 0, 1.0, weights[:2])
    return weights


@st.composite
def _targets_of_problem(draw, loss, n, elements):
    y = draw(targets(loss, n, elements))
    if loss.task == "classification":
        y[:2] = 1.0, -1.0
    return y


def points(problem: Problem, elements=numbers) -> st.SearchStrategy[np.ndarray]:
    """Feasible points, with coordinates that are zero and points on the boundary of balls."""
    coordinates = st.one_of(st.just(0.0), elements)
    arrays = hnp.arrays(np.float64, problem.design.n_columns, elements=coordinates)
    return arrays.map(problem.feasible)
