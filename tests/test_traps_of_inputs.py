"""What users hold is read as it is meant, or refused by name: never silently misread."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import safesift as ss

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LABELS = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
TARGETS = X @ np.ones(3) + 0.1 * RNG.normal(size=60)
WEIGHTS = RNG.integers(1, 4, 60)
LETTERS = np.where(LABELS, "b", "a")


def hollow(column: Any) -> Any:
    """A series in which one entry is missing."""
    if isinstance(column, pl.Series):
        return pl.Series([None, *column.to_list()[1:]], dtype=column.dtype)
    column = column.copy()
    column.iloc[0] = None
    return column


def masked(array: np.ndarray) -> np.ma.MaskedArray:
    """One entry masked, with something beneath that would be taken for real."""
    mask = np.zeros(array.shape, dtype=bool)
    mask[(3,) * array.ndim if array.ndim == 1 else (3, 0)] = True
    return np.ma.array(array, mask=mask)


# --- task and target ----------------------------------------------------------------------------

# everything public that takes labels, as f(X, y)
OF_LABELS: dict[str, Callable[..., Any]] = {
    "screen": ss.screen,
    "screen_range": lambda X, y: ss.screen_range(X, y, alpha_range=(0.1, 1.0)),
    "safe_path": lambda X, y: ss.safe_path(X, y, alphas=[0.1]),
    "safe_kernel_path": lambda X, y: ss.safe_kernel_path(X, y, alphas=[0.1]),
    "compress": lambda X, y: ss.compress(X, y, n_keep=10, random_state=0),
    "rank_samples": ss.rank_samples,
    "compression_curve": lambda X, y: ss.compression_curve(X, y, fractions=[0.5], n_repeats=1),
    "mu_max": lambda X, y: ss.mu_max(X, y, loss="logistic"),
    "SafeClassifier": lambda X, y: ss.SafeClassifier().fit(X, y),
    "SafeClassifierCV": lambda X, y: ss.SafeClassifierCV(alphas=2, cv=2).fit(X, y),
    "SafeKernelClassifier": lambda X, y: ss.SafeKernelClassifier().fit(X, y),
    "SafeTracker": lambda X, y: ss.SafeTracker(ss.SafeClassifier()).fit(X, y),
    "SampleScreener": lambda X, y: ss.SampleScreener().fit(X, y),
    "SampleCompressor": lambda X, y: ss.SampleCompressor().fit(X, y),
}


def refusal(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises((ValueError, TypeError)) as caught:
        call(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("name", OF_LABELS)
def test_a_continuous_target_is_no_label(name: str, boxed: bool) -> None:
    y = TARGETS.astype(object) if boxed else TARGETS
    message = refusal(OF_LABELS[name], X, y)
    assert "continuous" in message or "Unknown label type" in message, message


@pytest.mark.parametrize("name", OF_LABELS)
def test_several_labels_of_a_sample_are_refused(name: str) -> None:
    two = np.column_stack([LABELS, 1 - LABELS, LABELS])
    message = refusal(OF_LABELS[name], X, two)
    assert "(60, 3)" in message or "Multilabel" in message, message
    message = refusal(OF_LABELS[name], X, sparse.csr_array(two))
    assert "y is a sparse matrix" in message or "Multilabel" in message, message


def test_whole_numbers_are_labels_however_many() -> None:
    """As for scikit-learn, which warns where nearly every one is different."""
    y = np.arange(60) % 20
    small = ss.compress(X, y.astype(float), n_keep=40, random_state=0)
    assert set(y[small.indices]) == set(range(20))
    with pytest.warns(UserWarning, match="unique classes"):
        ss.compress(X, np.arange(60), n_keep=60, random_state=0)


def test_an_edit_of_a_tracker_is_checked_alike() -> None:
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=0.1)).fit(X, LABELS.astype(float))
    for edit in ({"add": (X[:2], [0.5, 1.0])}, {"relabel": ([0, 1], [0.5, 1.0])}):
        assert "Unknown label type: continuous" in refusal(tracker.update, **edit)
    assert "masked" in refusal(tracker.update, add=(masked(X), LABELS))
    assert "masked" in refusal(tracker.update, add=(X, masked(LABELS)))


# --- y ------------------------------------------------------------------------------------------

LABEL_COLUMNS = {
    "Int64": pd.Series(LABELS, dtype="Int64"),
    "Float64": pd.Series(LABELS, dtype="Float64"),
    "boolean": pd.Series(LABELS == 1, dtype="boolean"),
    "string": pd.Series(LETTERS, dtype="string"),
    "category": pd.Series(LETTERS, dtype="category"),
    "category of numbers": pd.Series(LABELS, dtype="category"),
    "text": pd.Series(LETTERS),
    "objects": pd.Series(LABELS).astype(object),
    "arrow": pd.Series(LABELS, dtype="int64[pyarrow]"),
    "polars": pl.Series(LABELS.tolist()),
    "polars text": pl.Series(LETTERS.tolist()),
    "polars category": pl.Series(LETTERS.tolist(), dtype=pl.Categorical),
    "polars boolean": pl.Series((LABELS == 1).tolist()),
}
READERS = {
    "safe_path": lambda X, y, w=None: ss.safe_path(X, y, alphas=[0.1], sample_weight=w),
    "SafeClassifier": lambda X, y, w=None: ss.SafeClassifier(alpha=0.1).fit(X, y, w),
}


def coefs(model: Any) -> np.ndarray:
    return model.coefs[0] if hasattr(model, "coefs") else model.coef_[0]


def classes(model: Any) -> list:
    return list(model.classes if hasattr(model, "classes") else model.classes_)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", LABEL_COLUMNS)
def test_labels_are_what_they_are(kind: str, reader: str) -> None:
    column, read = LABEL_COLUMNS[kind], READERS[reader]
    model = read(X, column)
    np.testing.assert_allclose(coefs(model), coefs(read(X, LABELS)), rtol=1e-6)
    # a boolean or an integer does not come back as a float
    assert classes(model) == sorted(set(column.to_list()))
    assert {type(c) for c in np.array(classes(model)).tolist()} <= {
        type(c) for c in column.to_list()
    }


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", LABEL_COLUMNS)
def test_missing_labels_are_refused(kind: str, reader: str) -> None:
    message = refusal(READERS[reader], X, hollow(LABEL_COLUMNS[kind]))
    assert "NaN" in message or "missing" in message, message


NUMBERS = {
    "Float64": lambda v: pd.Series(v, dtype="Float64"),
    "Float32": lambda v: pd.Series(np.float32(v), dtype="Float32"),
    "Int64": lambda v: pd.Series(np.rint(v), dtype="Int64"),
    "category": lambda v: pd.Series(np.rint(v), dtype="category"),
    "arrow": lambda v: pd.Series(v, dtype="float64[pyarrow]"),
    "objects": lambda v: np.asarray(v, dtype=object),
    "decimals": lambda v: np.array([Decimal(float(x)) for x in v]),
    "polars": lambda v: pl.Series(np.asarray(v, dtype=float).tolist()),
    "big-endian": lambda v: v.astype(">f8"),
    "half": lambda v: v.astype(np.float16),
    "long": lambda v: v.astype(np.longdouble),
}


def as_float(values: Any) -> np.ndarray:
    return np.array([float(v) for v in values])


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_every_kind_are_targets_and_weights(kind: str) -> None:
    targets, weights = NUMBERS[kind](TARGETS), NUMBERS[kind](WEIGHTS)
    regression = ss.safe_path(X, targets, alphas=[0.1], loss="huber")
    expected = ss.safe_path(X, as_float(targets), alphas=[0.1], loss="huber")
    np.testing.assert_allclose(regression.coefs, expected.coefs, rtol=1e-9)
    fit = ss.SafeRegressor(alpha=0.1).fit(X, targets)
    np.testing.assert_allclose(
        fit.coef_, ss.SafeRegressor(alpha=0.1).fit(X, as_float(targets)).coef_
    )
    for read in READERS.values():
        model = read(X, LABELS, weights)
        np.testing.assert_allclose(coefs(model), coefs(read(X, LABELS, WEIGHTS)), rtol=1e-6)


@pytest.mark.parametrize("kind", ["Float64", "Int64", "category", "arrow", "polars"])
def test_missing_numbers_are_refused(kind: str) -> None:
    column = hollow(NUMBERS[kind](TARGETS))
    assert "y contains NaN" in refusal(ss.safe_path, X, column, loss="huber")
    assert "y contains NaN" in refusal(ss.SafeRegressor().fit, X, column)
    for read in READERS.values():
        assert "sample_weight contains NaN" in refusal(
            read, X, LABELS, hollow(NUMBERS[kind](WEIGHTS))
        )


@pytest.mark.parametrize("read", READERS.values())
@pytest.mark.parametrize(
    "weights",
    [WEIGHTS.astype(str), pd.Series(WEIGHTS.astype(str)), pd.Series(LABELS == 1, dtype="string")],
)
def test_weights_are_no_texts(weights: Any, read: Callable[..., Any]) -> None:
    assert "sample_weight must hold numbers" in refusal(read, X, LABELS, weights)


# --- X ------------------------------------------------------------------------------------------

FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
WHOLE = np.rint(20 * X)
MATRICES: dict[str, Any] = {
    "big-endian": WHOLE.astype(">f8"),
    "big-endian float32": WHOLE.astype(">f4"),
    "big-endian int16": WHOLE.astype(">i2"),
    "half": WHOLE.astype(np.float16),
    "big-endian half": WHOLE.astype(">f2"),
    "long": WHOLE.astype(np.longdouble),
    "long sparse": sparse.csr_array(WHOLE).astype(np.longdouble),
    "objects": WHOLE.astype(object),
    "mixed objects": np.array([[int(v) if v > 0 else Decimal(int(v)) for v in r] for r in WHOLE]),
    "int8": WHOLE.astype(np.int8),
    "a mask of nothing": np.ma.array(WHOLE, mask=np.zeros(WHOLE.shape, dtype=bool)),
    "Int64": pd.DataFrame(WHOLE).astype("Int64"),
    "Float64": pd.DataFrame(WHOLE).astype("Float64"),
    "Int64 beside float32": pd.DataFrame(WHOLE).astype({0: "Int64", 1: "float32"}),
    "categories of numbers": pd.DataFrame(WHOLE).astype("category"),
    "arrow": pd.DataFrame(WHOLE).astype("float64[pyarrow]"),
    "polars": pl.DataFrame(WHOLE).with_columns(pl.col("column_0").cast(pl.Int16)),
}
SOLVERS = {
    "squared hinge": lambda X: ss.safe_path(X, LABELS, alphas=[1.0]),
    "hinge": lambda X: ss.safe_path(X, LABELS, alphas=[1.0], loss="hinge"),
    "l1": lambda X: ss.safe_path(X, LABELS, alphas=[0.1], penalty="l1"),
    "fit": lambda X: ss.SafeClassifier(alpha=1.0).fit(X, LABELS),
}


@pytest.mark.filterwarnings("ignore:X has feature names", "ignore:Feature names")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", MATRICES)
def test_matrices_mean_their_numbers(kind: str, solver: str) -> None:
    matrix, solve = MATRICES[kind], SOLVERS[solver]
    if isinstance(matrix, pd.DataFrame):
        matrix = matrix.rename(columns=str)
    np.testing.assert_allclose(coefs(solve(matrix)), coefs(solve(WHOLE)), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("kind", ["big-endian", "half", "long", "objects", "Float64"])
def test_kernels_read_them_alike(kind: str) -> None:
    plain = ss.safe_kernel_path(WHOLE, LABELS, alphas=[0.1])
    path = ss.safe_kernel_path(MATRICES[kind], LABELS, alphas=[0.1])
    np.testing.assert_allclose(path.values, plain.values, rtol=1e-5)


FRAMES_READ = {
    "safe_path": lambda X: ss.safe_path(X, LABELS, alphas=[0.1]),
    "SafeClassifier": lambda X: ss.SafeClassifier().fit(X, LABELS),
    "SampleCompressor": lambda X: ss.SampleCompressor().fit(X, LABELS),
}


@pytest.mark.parametrize("read", FRAMES_READ.values())
@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(LETTERS),
        pd.Series(LETTERS, dtype="string"),
        pd.Series(LETTERS).astype(object),
        pd.Series(np.full(60, np.datetime64("2020-01-01"))),
        pl.Series(LETTERS.tolist()),
        pl.Series(LETTERS.tolist(), dtype=pl.Categorical),
    ],
)
def test_a_column_without_numbers_is_named(column: Any, read: Callable[[Any], Any]) -> None:
    if isinstance(column, pl.Series):
        frame = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(column.alias("b"))
    else:
        frame = FRAME.assign(b=column)
    message = refusal(read, frame)
    assert message.startswith("X has the column 'b' of type "), message


@pytest.mark.parametrize("read", FRAMES_READ.values())
@pytest.mark.parametrize(
    "frame",
    [
        FRAME.astype("Float64").mask(FRAME > 1.0),
        FRAME.assign(b=hollow(pd.Series(LABELS, dtype="Int64"))),
        FRAME.assign(b=hollow(pd.Series(LABELS == 1, dtype="boolean"))),
        FRAME.assign(b=hollow(pd.Series(LABELS, dtype="category"))),
        pl.DataFrame(X).with_columns(hollow(pl.Series(LABELS.tolist())).alias("column_1")),
        pl.DataFrame(X).with_columns(hollow(pl.Series([True] * 60)).alias("column_1")),
    ],
)
def test_missing_entries_are_refused(frame: Any, read: Callable[[Any], Any]) -> None:
    message = refusal(read, frame)
    assert "X contains NaN" in message, message


# --- masks --------------------------------------------------------------------------------------

MASKED: dict[str, Callable[[], Any]] = {
    "path X": lambda: ss.safe_path(masked(X), LABELS),
    "path y": lambda: ss.safe_path(X, masked(LABELS)),
    "path y, regression": lambda: ss.safe_path(X, masked(TARGETS), loss="huber"),
    "path y, intervals": lambda: ss.safe_path(
        X, masked(np.column_stack([TARGETS, TARGETS + 1])), loss="squared_interval"
    ),
    "path sample_weight": lambda: ss.safe_path(X, LABELS, sample_weight=masked(WEIGHTS)),
    "kernel path X": lambda: ss.safe_kernel_path(masked(X), LABELS, alphas=[0.1]),
    "screen X": lambda: ss.screen(masked(X), LABELS),
    "compress y": lambda: ss.compress(X, masked(LABELS), n_keep=10),
    "kernel_rows K": lambda: ss.kernel_rows(masked(X @ X.T)),
    "fit X": lambda: ss.SafeClassifier().fit(masked(X), LABELS),
    "fit y": lambda: ss.SafeClassifier().fit(X, masked(LABELS)),
    "fit sample_weight": lambda: ss.SafeClassifier().fit(X, LABELS, masked(WEIGHTS)),
    "predict X": lambda: ss.SafeClassifier().fit(X, LABELS).predict(masked(X)),
    "regressor y": lambda: ss.SafeRegressor().fit(X, masked(TARGETS)),
    "interval y": lambda: ss.IntervalRegressor().fit(X, masked(TARGETS)),
    "kernel fit X": lambda: ss.SafeKernelClassifier().fit(masked(X), LABELS),
    "cv y": lambda: ss.SafeClassifierCV(alphas=2, cv=2).fit(X, masked(LABELS)),
    "sampler X": lambda: ss.SampleCompressor().fit(masked(X), LABELS),
    "tracker y": lambda: ss.SafeTracker(ss.SafeRegressor()).fit(X, masked(TARGETS)),
}


@pytest.mark.parametrize("name", MASKED)
def test_what_is_masked_is_refused_by_name(name: str) -> None:
    argument = name.split(",")[0].split()[-1]
    message = refusal(MASKED[name])
    assert message.startswith(f"{argument} is masked in 1 entries (first in row 3)"), message
