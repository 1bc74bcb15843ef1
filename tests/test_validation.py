"""What a user may pass to `screen`, and the one sentence said about what may not be passed."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import safesift as ss
from safesift import losses, penalties, regions
from safesift.design.dense import DenseDesign
from safesift.design.sparse import SparseDesign
from safesift.problem.problem import Problem


def data(n=20, p=3):
    """Features, two labels, and real targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] > 0, 1, -1), X @ np.ones(p) + 0.1 * rng.normal(size=n)


X, LABELS, TARGETS = data()
COEF = np.array([1.5, 0.1, -0.1])
LETTERS = np.where(LABELS > 0, "a", "b")


def with_entry(array, place, value, dtype=float):
    """A copy with one entry changed."""
    array = np.array(array, dtype=dtype)
    array[place] = value
    return array


# --- what is refused ----------------------------------------------------------------------------

# name: (the argument that must be named, the arguments that differ from a good call)
BAD = {
    # X
    "X with NaN": ("X", {"X": with_entry(X, (3, 1), np.nan)}),
    "X with infinity": ("X", {"X": with_entry(X, (3, 1), -np.inf)}),
    "float32 X with NaN": ("X", {"X": with_entry(X, (3, 1), np.nan, np.float32)}),
    "sparse X with NaN": ("X", {"X": sparse.csr_array(with_entry(X, (3, 1), np.nan))}),
    "sparse X with infinity": ("X", {"X": sparse.csc_array(with_entry(X, (3, 1), np.inf))}),
    "frame with NaN": ("X", {"X": pd.DataFrame(with_entry(X, (3, 1), np.nan))}),
    "frame with None": ("X", {"X": pl.DataFrame({"a": [1.0, None] * 10})}),
    "X with one dimension": ("X", {"X": X[:, 0]}),
    "X with three dimensions": ("X", {"X": X[None]}),
    "X is a number": ("X", {"X": 3.0}),
    "X is None": ("X", {"X": None}),
    "X is a text": ("X", {"X": "data.csv"}),
    "X is a ragged list": ("X", {"X": [[1.0, 2.0]] * 19 + [[1.0]]}),
    "X without rows": ("X", {"X": X[:0], "y": LABELS[:0]}),
    "X without columns": ("X", {"X": X[:, :0]}),
    "sparse X without columns": ("X", {"X": sparse.csr_array((20, 0))}),
    "complex X": ("X", {"X": X + 1j}),
    "sparse complex X": ("X", {"X": sparse.csr_array(X + 1j)}),
    "X of texts": ("X", {"X": X.astype(str)}),
    "X of objects": ("X", {"X": np.full((20, 3), "a", dtype=object)}),
    "X of dates": ("X", {"X": np.zeros((20, 3), dtype="datetime64[s]")}),
    "frame with a column of texts": ("X", {"X": pd.DataFrame({"a": X[:, 0], "b": ["u"] * 20})}),
    # y
    "y too short": ("y", {"y": LABELS[:-1]}),
    "y too long": ("y", {"y": np.append(LABELS, 1)}),
    "y with two columns": ("y", {"y": np.column_stack([LABELS, LABELS])}),
    "y is a number": ("y", {"y": 1}),
    "y is None": ("y", {"y": None}),
    "y with NaN labels": ("y", {"y": with_entry(LABELS, 4, np.nan)}),
    "y with infinite labels": ("y", {"y": with_entry(LABELS, 4, np.inf)}),
    "y with missing texts": ("y", {"y": with_entry(LETTERS, 4, None, object)}),
    "y with pandas NA": ("y", {"y": pd.Series(["a", "b", None] * 6 + ["a", "b"], dtype="string")}),
    "y of mixed types": ("y", {"y": with_entry(LETTERS, 4, 1, object)}),
    "y of one class": ("y", {"y": np.ones(20)}),
    "y of one class of texts": ("y", {"y": ["spam"] * 20}),
    "one class left by the weights": (
        "y", {"sample_weight": np.where(LABELS > 0, 1.0, 0.0)}),
    "NaN targets": ("y", {"loss": "squared", "y": with_entry(TARGETS, 2, np.nan)}),
    "infinite targets": ("y", {"loss": "huber", "y": with_entry(TARGETS, 2, np.inf)}),
    "texts as targets": ("y", {"loss": "squared", "y": ["1.5", "a"] * 10}),
    "complex targets": ("y", {"loss": "squared", "y": TARGETS + 1j}),
    # sample_weight
    "NaN weight": ("sample_weight", {"sample_weight": with_entry(np.ones(20), 3, np.nan)}),
    "infinite weight": ("sample_weight", {"sample_weight": with_entry(np.ones(20), 3, np.inf)}),
    "negative weight": ("sample_weight", {"sample_weight": with_entry(np.ones(20), 3, -1.0)}),
    "no weight at all": ("sample_weight", {"sample_weight": np.zeros(20)}),
    "weights too short": ("sample_weight", {"sample_weight": np.ones(19)}),
    "weights with two columns": ("sample_weight", {"sample_weight": np.ones((20, 2))}),
    "weights are texts": ("sample_weight", {"sample_weight": ["heavy"] * 20}),
    "complex weights": ("sample_weight", {"sample_weight": np.ones(20) + 1j}),
    "weights too large to add": ("sample_weight", {"sample_weight": np.full(20, 1e308)}),
    # alpha
    "alpha is zero": ("alpha", {"alpha": 0.0}),
    "alpha is negative": ("alpha", {"alpha": -1e-3}),
    "alpha is NaN": ("alpha", {"alpha": np.nan}),
    "alpha is infinite": ("alpha", {"alpha": np.inf}),
    "alpha is a text": ("alpha", {"alpha": "small"}),
    "alpha is a number in a text": ("alpha", {"alpha": "0.1"}),
    "alpha is None": ("alpha", {"alpha": None}),
    "alpha is a list": ("alpha", {"alpha": [0.1, 0.2]}),
    "alpha is an array": ("alpha", {"alpha": np.array([0.1, 0.2])}),
    "alpha is complex": ("alpha", {"alpha": 1j}),
    # names and objects
    "unknown loss": ("loss", {"loss": "sqared_hinge"}),
    "unknown penalty": ("penalty", {"penalty": "L2"}),
    "unknown region": ("screening", {"screening": "gapball"}),
    "unknown fold": ("fold", {"fold": "sometimes"}),
    "loss is a class": ("loss", {"loss": losses.Hinge}),
    "penalty is a class": ("penalty", {"penalty": penalties.L1}),
    "region is a class": ("screening", {"screening": regions.GapBall}),
    "loss is None": ("loss", {"loss": None}),
    "penalty is a number": ("penalty", {"penalty": 2}),
    "loss given as penalty": ("penalty", {"penalty": losses.Hinge()}),
    "region is a function": ("screening", {"screening": max}),
    "epsilon of another length": (
        "epsilon", {"y": TARGETS, "loss": losses.EpsilonInsensitive(epsilon=np.ones(7))}),
    # coef and intercept
    "coef too short": ("coef", {"coef": np.zeros(2)}),
    "coef with two rows": ("coef", {"coef": np.zeros((2, 3))}),
    "coef as a column": ("coef", {"coef": np.zeros((3, 1))}),
    "coef is a number": ("coef", {"coef": 1.0}),
    "coef with NaN": ("coef", {"coef": [0.0, np.nan, 0.0]}),
    "coef with infinity": ("coef", {"coef": [0.0, np.inf, 0.0]}),
    "coef of texts": ("coef", {"coef": ["a", "b", "c"]}),
    "coef is complex": ("coef", {"coef": np.ones(3) + 1j}),
    "intercept without fit_intercept": ("intercept", {"coef": np.zeros(3), "intercept": 0.5}),
    "intercept is NaN": (
        "intercept", {"coef": np.zeros(3), "intercept": np.nan, "fit_intercept": True}),
    "intercept is a text": (
        "intercept", {"coef": np.zeros(3), "intercept": "high", "fit_intercept": True}),
    "intercept has two entries": (
        "intercept", {"coef": np.zeros(3), "intercept": [0.1, 0.2], "fit_intercept": True}),
    "intercept is None": (
        "intercept", {"coef": np.zeros(3), "intercept": None, "fit_intercept": True}),
    # regions that need strong convexity
    "gap ball with l1": ("screening", {"screening": "gap_ball", "penalty": "l1"}),
    "gap ball with a norm ball": ("screening", {"screening": "gap_ball", "penalty": "l2_ball"}),
    "gap ball with an intercept": ("screening", {"screening": "gap_ball", "fit_intercept": True}),
    "gradient ball with l1": ("screening", {"screening": "gradient_ball", "penalty": "l1"}),
    "gradient ball with an intercept": (
        "screening", {"screening": "gradient_ball", "fit_intercept": True}),
    "objective ball with l1": ("screening", {"screening": "objective_ball", "penalty": "l1"}),
}  # fmt: skip


def call(**changed):
    return ss.screen(**({"X": X, "y": LABELS, "alpha": 0.1, "fit_intercept": False} | changed))


def steady(**changed):
    """With a region whose bounds depend continuously on rounding, to compare results."""
    return call(**({"coef": COEF, "screening": "gap_ball"} | changed))


@pytest.mark.parametrize("name", BAD)
def test_refused_in_one_sentence_that_names_the_argument(name):
    argument, changed = BAD[name]
    assert_sentence(refusal(changed), argument)


def refusal(changed) -> str:
    with pytest.raises((ValueError, TypeError)) as caught:
        call(**changed)
    return str(caught.value)


def assert_sentence(message: str, argument: str) -> None:
    """One line, one sentence, short, about the right argument."""
    words = message.replace("=", " ").replace(":", " ").replace(",", " ").split()
    assert argument in words, message
    assert "\n" not in message, message
    assert message.endswith("."), message
    assert len(message) < 350, message


@pytest.mark.parametrize("name", [n for n in BAD if "NaN" not in n or "X" not in n])
def test_refused_before_any_work(name, monkeypatch):
    """No pass over the data, unless it is their values that are wrong."""
    argument, changed = BAD[name]

    def too_late(*arguments, **keywords):
        raise AssertionError("the data were looked at before the arguments were checked")

    monkeypatch.setattr(Problem, "evaluate", too_late)
    if argument != "X":
        monkeypatch.setattr(DenseDesign, "block", too_late)
        monkeypatch.setattr(SparseDesign, "block", too_late)
    refusal(changed)


@pytest.mark.parametrize(
    ("changed", "nearest"),
    [
        ({"loss": "sqared_hinge"}, "'squared_hinge'"),
        ({"loss": "hinges"}, "'hinge'"),
        ({"loss": "logistical"}, "'logistic'"),
        ({"penalty": "elasticnet"}, "'elastic_net'"),
        ({"penalty": "L2"}, "'l2'"),
        ({"screening": "gap ball"}, "'gap_ball'"),
        ({"screening": "ellipse"}, "'ellipsoid'"),
    ],
)
def test_unknown_names_come_with_the_nearest_one(changed, nearest):
    assert nearest in refusal(changed)


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"screening": "gap_ball", "penalty": "l1"}, "'ellipsoid'"),
        ({"screening": "gradient_ball", "fit_intercept": True}, "'ellipsoid'"),
        ({"loss": losses.Hinge}, "Hinge("),
        ({"coef": np.zeros(3), "intercept": 0.5}, "fit_intercept=True"),
        ({"y": LETTERS, "loss": "squared"}, "classification"),
        ({"X": X[:, 0]}, "reshape"),
    ],
)
def test_messages_tell_what_to_do_instead(changed, advice):
    assert advice in refusal(changed)


def test_two_wrong_arguments_are_reported_one_at_a_time():
    assert "alpha" in refusal({"alpha": -1.0, "X": with_entry(X, (0, 0), np.nan)})


# --- what is accepted ---------------------------------------------------------------------------


def assert_same(result, expected):
    """The same bounds, decisions and centre."""
    np.testing.assert_allclose(result.lower, expected.lower, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(result.upper, expected.upper, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(result.kept, expected.kept)


@pytest.fixture(scope="module")
def expected():
    return steady()


@pytest.mark.parametrize(
    "y",
    [
        np.where(LABELS > 0, "yes", "no"),
        np.where(LABELS > 0, "yes", "no").astype(object),
        np.where(LABELS > 0, "yes", "no").tolist(),
        np.where(LABELS > 0, b"yes", b"no"),
        LABELS > 0,
        (LABELS > 0).tolist(),
        (LABELS > 0).astype(np.uint8),
        LABELS.astype(np.float32),
        LABELS[:, None],
        LABELS * 7 + 3,
        pd.Series(LABELS),
        pd.Series(np.where(LABELS > 0, "yes", "no")),
        pd.Series(np.where(LABELS > 0, "yes", "no"), dtype="category"),
        pd.Series(np.where(LABELS > 0, "yes", "no"), dtype="string"),
        pd.Series(LABELS > 0, dtype="boolean"),
        pd.Series(LABELS, dtype="Int64"),
        pd.Series(LABELS, index=np.arange(20)[::-1]),
        pd.DataFrame({"y": LABELS}),
        pl.Series(LABELS),
        pl.Series(np.where(LABELS > 0, "yes", "no").tolist()),
        pl.Series((LABELS > 0).tolist()),
    ],
)
def test_labels_of_every_kind(y, expected):
    result = steady(y=y)
    assert_same(result, expected)
    assert len(result.classes) == 2 and result.classes[0] < result.classes[1]


@pytest.mark.parametrize(
    "convert",
    [
        np.asfortranarray,
        lambda X: X.tolist(),
        pd.DataFrame,
        lambda X: pd.DataFrame(X, index=np.arange(20)[::-1], columns=["a", "b", "c"]),
        lambda X: pd.DataFrame(X, dtype="Float64"),
        lambda X: pd.DataFrame(X).astype(object),
        lambda X: pl.DataFrame(X),
        lambda X: pl.DataFrame(X).with_columns(pl.all().cast(pl.Float64)),
        sparse.csr_array,
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.coo_matrix,
        sparse.lil_array,
        sparse.dok_array,
        sparse.bsr_array,
        lambda X: X.astype(object),
        lambda X: X.astype(">f8"),
        lambda X: X.astype(np.longdouble),
        lambda X: np.ma.masked_array(X),
        lambda X: np.broadcast_to(X, (20, 3)),
    ],
)
def test_matrices_of_every_kind(convert, expected):
    assert_same(steady(X=convert(X)), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "uint8", "bool"])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_numbers_of_every_type(dtype, storage):
    """The same as for float64 copies of the same numbers."""
    values = (np.abs(X) * 20).astype(dtype)
    if storage is sparse.csr_array and dtype == "float16":
        pytest.skip("SciPy has no sparse float16")
    plain = steady(X=values.astype(np.float64), coef=COEF * 0.1)
    assert_same(steady(X=storage(values), coef=COEF * 0.1), plain)


@pytest.mark.parametrize(
    "targets",
    [
        TARGETS.astype(np.float32),
        TARGETS[:, None],
        TARGETS.tolist(),
        np.round(TARGETS).astype(int),
        np.round(TARGETS).astype(np.int8),
        TARGETS > 0,
        pd.Series(TARGETS),
        pd.Series(TARGETS, dtype="Float64"),
        pl.Series(TARGETS),
        np.full(20, 3.0),
    ],
)
def test_targets_of_every_kind(targets):
    plain = np.asarray(targets, dtype=np.float64).ravel()
    arguments = {"loss": "huber", "coef": np.ones(3)}
    assert_same(steady(y=targets, **arguments), steady(y=plain, **arguments))


@pytest.mark.parametrize(
    "weights",
    [
        np.arange(1, 21),
        np.arange(1, 21, dtype=np.float32),
        list(range(1, 21)),
        np.arange(1.0, 21.0)[:, None],
        pd.Series(np.arange(1, 21)),
        pl.Series(np.arange(1, 21)),
    ],
)
def test_weights_of_every_kind(weights):
    plain = steady(sample_weight=np.arange(1.0, 21.0))
    assert_same(steady(sample_weight=weights), plain)


def test_a_third_class_without_weight_does_not_count():
    y = LETTERS.astype(object)
    y[:3] = "c"
    weights = np.where(np.arange(20) < 3, 0.0, 1.0)
    result = steady(y=y, sample_weight=weights)
    assert list(result.classes) == ["a", "b"]
    assert not result.kept[:3].any()


@pytest.mark.parametrize(
    "coef", [COEF[None], COEF.tolist(), COEF.astype(np.float32), pd.Series(COEF)]
)
def test_coefficients_of_every_kind(coef, expected):
    np.testing.assert_allclose(steady(coef=coef).coef, expected.coef, rtol=1e-6)


@pytest.mark.parametrize("intercept", [0.25, np.float32(0.25), np.array([0.25]), [0.25]])
def test_intercepts_of_every_kind(intercept):
    result = steady(screening="auto", intercept=intercept, fit_intercept=True)
    assert result.intercept == 0.25


@pytest.mark.parametrize("alpha", [1, np.float32(0.5), np.array(0.5), np.int64(2), 1e-8, 1e8])
def test_alphas_of_every_kind(alpha):
    assert steady(alpha=alpha).problem.alpha == float(alpha)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", sorted(penalties.PENALTIES))
@pytest.mark.parametrize("alpha", [1e-299, 1e-200, 1e200, 1e300])
def test_alphas_of_every_size(alpha, penalty, intercept):
    for loss in ("squared_hinge", "hinge", "squared"):
        result = call(alpha=alpha, penalty=penalty, fit_intercept=intercept, loss=loss)
        assert not np.isnan(result.lower).any() and not np.isnan(result.upper).any()
        assert result.gap >= 0


@pytest.mark.parametrize("alpha", [5e-324, 1e-310, 1e308])
def test_alphas_that_cannot_be_computed_with(alpha):
    """Where products with alpha are denormal, rounding has no bound relative to them."""
    for penalty in ("l2", "l1", "elastic_net"):
        with pytest.raises(ValueError, match=rf"alpha={re.escape(repr(alpha))}.* is beyond"):
            call(alpha=alpha, penalty=penalty)
    assert call(alpha=alpha, penalty="l2_ball").gap >= 0  # a constraint has no alpha
    nearly = penalties.ElasticNet(1.0 - 1e-15)
    with pytest.raises(ValueError, match=r"alpha=1e-290 \(1e-305 for the squared norm\) is"):
        call(alpha=1e-290, penalty=nearly)


@pytest.mark.parametrize("weights", [[1e300, 1e-10], [1.0, 5e-324], [1e10, 1e-291]])
def test_weights_next_to_nothing_are_refused(weights):
    """Their share of all weights would be denormal, or 0, and they would be taken for removed."""
    sample_weight = np.ones(20)
    sample_weight[:2] = weights
    with pytest.raises(ValueError, match=r"sample_weight is .* for row 1, .* set it to 0"):
        call(sample_weight=sample_weight)
    sample_weight[1] = 0.0
    assert call(sample_weight=sample_weight).gap >= 0


def test_names_and_objects_are_the_same(expected):
    result = steady(loss=losses.SquaredHinge(), penalty=penalties.L2(), screening=regions.GapBall())
    assert_same(result, expected)


# --- odd but valid data -------------------------------------------------------------------------

ODD = {
    "a constant column": np.column_stack([X, np.full(20, 7.0)]),
    "a column of zeros": np.column_stack([X, np.zeros(20)]),
    "only zeros": np.zeros((20, 3)),
    "rows of zeros": np.where(np.arange(20)[:, None] % 3 == 0, 0.0, X),
    "duplicated rows": np.tile(X[:5], (4, 1)),
    "duplicated columns": X[:, [0, 0, 0, 1, 1]],
    "more features than samples": np.random.default_rng(1).normal(size=(20, 60)),
    "tiny numbers": 1e-150 * X,
    "huge numbers": 1e150 * X,
    "denormal numbers": 1e-310 * X,
    "numbers of all sizes": X * 10.0 ** np.arange(-100, 101, 100),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", sorted(penalties.PENALTIES))
@pytest.mark.parametrize("name", ODD)
def test_odd_data_are_screened(name, penalty, intercept):
    for loss in ("squared_hinge", "hinge", "huber"):
        result = call(
            X=ODD[name], y=LABELS, loss=loss, penalty=penalty, fit_intercept=intercept, fold="never"
        )
        assert result.kept.shape == (20,)
        assert not np.isnan(result.lower).any() and not np.isnan(result.upper).any()
        assert (result.lower <= result.upper).all()
        assert result.gap >= 0


@pytest.mark.parametrize("loss", sorted(losses.LOSSES))
def test_one_sample_per_class(loss):
    result = call(X=X[:2], y=[1, -1], loss=loss)
    assert result.kept.shape == (2,)


@pytest.mark.parametrize(
    "loss", sorted(name for name, cls in losses.LOSSES.items() if cls.task != "classification")
)
def test_one_sample_for_regression(loss):
    result = call(X=X[:1], y=[2.0], loss=loss)
    assert result.kept.shape == (1,)


def test_the_arguments_are_not_changed():
    copies = X.copy(), LABELS.copy(), np.ones(20), COEF.copy()
    call(X=copies[0], y=copies[1], sample_weight=copies[2], coef=copies[3])
    for copy, original in zip(copies, (X, LABELS, np.ones(20), COEF), strict=True):
        np.testing.assert_array_equal(copy, original)
