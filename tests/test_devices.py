"""Rows on a device, for whoever calls: types, moves, errors, and room that runs out.

The device is that of array-api-strict, from which nothing gets here by accident.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from fractions import Fraction
from types import SimpleNamespace

import array_api_strict as xp
import numpy as np
import pytest
from scipy import sparse

import safesift as ss
from safesift.arithmetic.devices import algebra, places
from safesift.arithmetic.devices.arrays import DeviceArray, on_host
from safesift.arithmetic.devices.places import DeviceError, Place, counting_transfers, place_named
from safesift.design import device, device_blocks
from safesift.design.device import DeviceDesign, Placed
from safesift.losses.numeric import numeric_version
from safesift.workflows.scale import on_device

STRICT = xp.Device("device1")


def sent(values, dtype=None):
    return xp.asarray(np.asarray(values, dtype=dtype), device=STRICT)


def brought(values):
    return np.asarray(values.to_device(xp.Device("CPU_DEVICE")))


def samples(n=400, p=4, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    scores = X @ rng.normal(size=(p, n_classes)) + 0.3 * rng.normal(size=(n, n_classes))
    return X.astype(np.float32), scores.argmax(axis=1)


def is_there(values) -> bool:
    return isinstance(values, type(sent([0.0]))) and values.device == STRICT


# --- who may pass what ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_classifier(n_classes, loss):
    X, y = samples(n_classes=n_classes)
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    model = ss.SafeClassifier(loss, alpha=1e-2).fit(sent(X), sent(y), sent(weights))
    known = ss.SafeClassifier(loss, alpha=1e-2).fit(X, y, weights)
    for name, value in vars(known).items():
        if isinstance(value, np.ndarray):
            assert isinstance(getattr(model, name), np.ndarray), name
            assert getattr(model, name).shape == value.shape
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-2)
    # both are proved: what is dropped there is not proved to be needed here
    assert (model.kept_ | ~known.kept_ | known.undecided_).all()
    scores, predicted = model.decision_function(sent(X)), model.predict(sent(X))
    assert is_there(scores) and is_there(predicted)
    np.testing.assert_allclose(brought(scores), model.decision_function(X), rtol=1e-12)
    np.testing.assert_array_equal(brought(predicted), model.predict(X))
    if loss == "logistic":
        proba, logs = model.predict_proba(sent(X)), model.predict_log_proba(sent(X))
        assert is_there(proba) and is_there(logs)
        np.testing.assert_allclose(brought(proba), model.predict_proba(X), rtol=1e-12)
        np.testing.assert_allclose(brought(logs), np.log(brought(proba)))


def test_labels_that_are_no_numbers_are_numpy():
    X, y = samples()
    model = ss.SafeClassifier().fit(sent(X), np.array(["no", "yes"])[y])
    predicted = model.predict(sent(X))
    assert isinstance(predicted, np.ndarray) and set(predicted) == {"no", "yes"}


@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "huber", "squared"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_a_regressor(loss, penalty):
    X, _ = samples()
    y = X @ np.array([1.0, -2.0, 0.0, 0.5]) + 3.0 + 0.1 * np.random.default_rng(0).normal(size=400)
    how = {"loss": loss, "penalty": penalty, "alpha": 1e-3}
    model, known = ss.SafeRegressor(**how).fit(sent(X), sent(y)), ss.SafeRegressor(**how).fit(X, y)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-2)
    assert isinstance(model.intercept_, float) and model.dual_gap_ < 1e-5
    assert is_there(model.predict(sent(X)))
    np.testing.assert_allclose(brought(model.predict(sent(X))), model.predict(X), rtol=1e-6)


def test_numpy_is_moved_where_it_is_asked_for():
    X, y = samples()
    model = ss.SafeClassifier(alpha=1e-2, device="strict").fit(X, y)
    known = ss.SafeClassifier(alpha=1e-2).fit(X, y)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-3)
    assert isinstance(model.predict(X), np.ndarray)
    path = ss.safe_path(X, y, alphas=[1e-1, 1e-2], device="strict")
    assert (path.relative_gaps <= 1e-6).all() and isinstance(path.coefs, np.ndarray)
    result = ss.screen(X, y, alpha=1e-2, device="strict")
    assert isinstance(result.problem.design, DeviceDesign)
    assert (result.kept | ~known.kept_ | known.undecided_).all()


def test_a_screening_tells_all_it_tells_here():
    X, y = samples()
    there, here = ss.screen(sent(X), sent(y), alpha=1e-2), ss.screen(X, y, alpha=1e-2)
    for name in ("kept", "undecided", "lower", "upper", "weights", "score", "zero_coef"):
        assert isinstance(getattr(there, name), np.ndarray), name
        assert getattr(there, name).shape == getattr(here, name).shape
    assert "samples" in there.summary() and there.alpha_kept > 1e-2
    assert there.check(there.coef, there.intercept).passed
    model = there.to_estimator()
    np.testing.assert_allclose(model.coef_, here.to_estimator().coef_, atol=1e-3)
    around = ss.screen(sent(X), y, alpha=1e-2, coef=here.coef, intercept=here.intercept)
    assert around.certified and (around.lower <= around.upper).all()
    assert ss.screen(sent(X), y, effort="quick", alpha=1e-1).certified


def test_screening_by_a_region_in_few_directions():
    X, y = samples(n=300, p=12)
    before = ss.safe_path(sent(X), y, alphas=[2e-2], fit_intercept=False)
    how = {"alpha": 1e-2, "fit_intercept": False, "screening": ss.regions.Curvature(rank=4)}
    there = ss.screen(sent(X), y, coef=before.coefs[0], **how)
    here = ss.screen(X, y, coef=before.coefs[0], **how)
    assert there.certified and (~there.kept).sum() > 0
    assert abs(int(there.kept.sum()) - int(here.kept.sum())) <= 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_cross_validation_of_labels(n_classes):
    X, y = samples(n=300, n_classes=n_classes)
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    alphas = np.geomspace(1.0, 1e-3, 4)
    how = {"alphas": alphas, "cv": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the edge of a grid
        known = ss.SafeClassifierCV(**how).fit(X, y, weights)
        with counting_transfers() as moved:
            model = ss.SafeClassifierCV(**how).fit(sent(X), y, weights)
        moved_there = ss.SafeClassifierCV(**how, device="strict").fit(X, y, weights)
    np.testing.assert_allclose(model.scores_, known.scores_, atol=0.02)
    np.testing.assert_allclose(moved_there.scores_, model.scores_, atol=1e-12)
    assert model.alpha_ == known.alpha_ and is_there(model.predict(sent(X)))
    # weights, once for every fold and class; masks at the end
    assert sum(size >= 90 for size in moved) <= 3 * n_classes + 2 * n_classes


def test_a_cross_validation_of_numbers():
    X, _ = samples(n=300)
    y = X @ np.array([1.0, -2.0, 0.0, 0.5]) + 0.1 * np.random.default_rng(0).normal(size=300)
    how = {"alphas": [1e-1, 1e-2, 1e-3], "cv": 3, "penalty": "l1"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        known, model = (
            ss.SafeRegressorCV(**how).fit(X, y),
            ss.SafeRegressorCV(**how).fit(sent(X), y),
        )
    np.testing.assert_allclose(model.scores_, known.scores_, atol=1e-4)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-2)


def test_a_grid_of_its_own():
    X, y = samples()
    there, here = ss.safe_path(sent(X), y, n_alphas=5), ss.safe_path(X, y, n_alphas=5)
    np.testing.assert_allclose(there.alphas, here.alphas, rtol=1e-9)


# --- rows that come in blocks ---------------------------------------------------------------------


def in_blocks(X, y, **how):
    return ss.blocks.calls(lambda k: (X[k::3], y[k::3]), 3, **how)


def in_their_order(X, y):
    order = np.concatenate([np.arange(len(y))[k::3] for k in range(3)])
    return X[order], y[order]


@pytest.mark.parametrize("fits", [True, False])
def test_blocks_are_moved_as_a_whole_or_sent_again(fits, monkeypatch):
    X, y = samples()
    known = ss.SafeClassifier(alpha=1e-2).fit(*in_their_order(X, y))
    monkeypatch.setattr(on_device, "free_bytes", lambda place: 0 if fits else 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if fits else "ignore")
        model = ss.SafeClassifier(alpha=1e-2, device="strict").fit(in_blocks(X, y))
        path = ss.safe_path(in_blocks(X, y), alphas=[1e-1, 1e-2], penalty="l1", device="strict")
        result = ss.screen(in_blocks(X, y), alpha=1e-2, device="strict")
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-3)
    assert (model.kept_ | ~known.kept_ | known.undecided_).all()
    assert (path.relative_gaps <= 1e-6).all()
    assert isinstance(result.problem.design, DeviceDesign)
    assert (result.problem.design.sent_to is None) == fits
    assert (result.kept | ~known.kept_ | known.undecided_).all()


def test_blocks_that_do_not_fit_are_said_to_be_sent(monkeypatch):
    X, y = samples()
    monkeypatch.setattr(on_device, "free_bytes", lambda place: 8)
    with pytest.warns(UserWarning, match="is sent there block by block"):
        ss.safe_path(in_blocks(X, y), alphas=[0.1], device="strict")


def test_a_frame_in_blocks_on_a_device(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = samples()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    rows = ss.blocks.parquet(str(tmp_path / "rows.parquet"), target="label")
    model = ss.SafeClassifier(alpha=1e-2, device="strict").fit(rows)
    assert model.feature_names_in_.tolist() == list("abcd")
    known = ss.SafeClassifier(alpha=1e-2).fit(frame[list("abcd")], frame["label"])
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-3)
    assert (model.predict(frame[list("abcd")]) == known.predict(frame[list("abcd")])).all()


def test_a_cross_validation_of_blocks_on_a_device():
    X, y = samples(n=300)
    how = {"alphas": [1e-1, 1e-2, 1e-3], "cv": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = ss.SafeClassifierCV(**how, device="strict").fit(in_blocks(X, y))
        known = ss.SafeClassifierCV(**how).fit(*in_their_order(X, y))
    np.testing.assert_allclose(model.scores_, known.scores_, atol=0.02)


def test_blocks_that_change_between_two_readings(monkeypatch):
    X, y = samples()
    read = []

    def make(k):
        read.append(k)
        return X[k::3] + (len(read) > 5), y[k::3]

    with pytest.raises(RuntimeError, match="changed between two passes"):
        ss.SafeClassifier(device="strict").fit(ss.blocks.calls(make, 3))


def test_blocks_with_what_has_no_meaning_on_a_device():
    X, y = samples()
    model = ss.SafeClassifier(device="strict")
    with pytest.raises(ValueError, match="scale='standard' has no meaning for blocks on a device"):
        model.fit(in_blocks(X, y, scale="standard"))
    with pytest.raises(ValueError, match="has no meaning for fit of rows that come in blocks"):
        model.fit(in_blocks(X, y), y)
    mixed = [(X[:200], y[:200].astype(str)), (X[200:], y[200:].astype(float))]
    with pytest.raises(ValueError, match="block 1 has targets of type float64"):
        model.fit(ss.blocks.calls(mixed.__getitem__, 2))
    with pytest.raises(ValueError, match="block 1 has 3 columns, and others have 4"):
        model.fit(ss.blocks.calls([(X, y), (X[:, :3], y)].__getitem__, 2))


# --- products in single precision -----------------------------------------------------------------


def test_products_of_gram_matrices_in_float32():
    X, y = samples()
    known = ss.SafeClassifier(alpha=1e-2).fit(X, y)
    model = ss.SafeClassifier(alpha=1e-2, precision="float32").fit(sent(X), y)
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-3)
    assert model.dual_gap_ <= 1e-6
    assert (model.kept_ | ~known.kept_ | known.undecided_).all()
    path = ss.safe_path(X, y, alphas=[1e-1, 1e-3], device="strict", precision="float32")
    assert (path.relative_gaps <= 1e-6).all()
    result = ss.screen(X, y, alpha=1e-2, device="strict", precision="float32")
    assert result.problem.design.single and result.certified


def test_columns_of_any_size_in_float32():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * np.array([1e-150, 1e-30, 1.0, 1e60])
    design = Placed(sent(X), Place.of(sent(X)), single=True).design(intercept=True)
    weights = rng.random(300) * 10.0 ** rng.uniform(-12, 3, size=300)
    rows = np.column_stack([X, np.ones(300)])
    exact = (rows * weights[:, None]).T @ rows
    size = np.sqrt(np.diag(exact))
    off = np.abs(on_host(design.gram(weights)) - exact) / np.outer(size, size)
    assert 1e-12 < off.max() <= design.gram_error


def test_a_precision_without_a_meaning():
    X, y = samples()
    with pytest.raises(ValueError, match="precision='float32' is for rows on a device"):
        ss.SafeClassifier(precision="float32").fit(X, y)
    with pytest.raises(ValueError, match="precision must be 'float64' or 'float32', got 'half'"):
        ss.safe_path(sent(X), y, precision="half")


def test_products_of_float32_that_lose_digits(monkeypatch):
    X, y = samples()
    monkeypatch.setattr(Place, "is_cuda", True)
    monkeypatch.setattr(device, "free_bytes", lambda place: 0)
    ss.safe_path(sent(X), y, alphas=[0.1], precision="float32")
    whole = xp.matmul
    monkeypatch.setattr(xp, "matmul", lambda a, b: whole(a, b) * (1.0 + 2.0**-11))
    with pytest.raises(DeviceError, match="lose digits here"):
        ss.safe_path(sent(X), y, alphas=[0.1], precision="float32")


# --- what leaves the device -----------------------------------------------------------------------


def test_only_masks_are_brought_here():
    """Of a fit: y to be read, and at the end what was kept and what is undecided."""
    X, y = samples(n=2000)
    with counting_transfers() as moved:
        ss.SafeClassifier(alpha=1e-2).fit(sent(X), sent(y))
    assert sorted(size for size in moved if size >= 2000) == [2000] * 3
    with counting_transfers() as moved:
        ss.safe_path(sent(X), y, alphas=[1e-1, 1e-2, 1e-3])
    assert max(moved) < 200


def test_nothing_leaves_by_accident():
    there = DeviceArray(sent([1.0, 2.0]))
    with pytest.raises(TypeError, match="would have to leave its device"):
        np.asarray(there)
    with pytest.raises(TypeError, match="not on the device meets one that is"):
        there + np.ones(2)
    with pytest.raises(TypeError, match=r"numpy.arctan is not known"):
        np.arctan(there)
    with pytest.raises(TypeError, match=r"numpy.cov is not known"):
        np.cov(there)


# --- what is refused ------------------------------------------------------------------------------


def test_a_device_that_is_not_there():
    X, y = samples()
    with pytest.raises(DeviceError, match=r"device='cuda:97' is not there: use one of .*'strict'"):
        ss.safe_path(X, y, device="cuda:97")
    with pytest.raises(TypeError, match="must be a string"):
        ss.SafeClassifier(device=3).fit(X, y)


@pytest.mark.parametrize(
    "loss, relative", [("hinge", "squared_hinge"), (ss.losses.AbsoluteMargin(), "smoothed_hinge")]
)
def test_losses_with_kinks(loss, relative):
    X, y = samples()
    with pytest.raises(ValueError, match=f"has kinks.*'{relative}'"):
        ss.safe_path(sent(X), y, loss=loss)


def test_losses_of_other_kinds():
    X, y = samples()
    with pytest.raises(ValueError, match="epsilon must be one number"):
        ss.SafeRegressor(epsilon=np.ones(400)).fit(sent(X), y)
    with pytest.raises(ValueError, match="known by functions of Python"):
        ss.safe_path(sent(X), y, loss=numeric_version(ss.losses.SquaredHinge()))


def test_rows_that_are_not_dense():
    X, y = samples()
    with pytest.raises(TypeError, match="takes dense rows, got csr_array"):
        ss.safe_path(sparse.csr_array(X), y, device="strict")
    with pytest.raises(TypeError, match="and rows 0 to 399 has sparse ones"):
        ss.SafeClassifier(device="strict").fit(ss.blocks.arrays(sparse.csr_array(X), y))


def test_solvers_that_read_rows_here():
    X, y = samples()
    with pytest.raises(ValueError, match="it reads rows of this process, not of a device"):
        ss.safe_path(sent(X), y, solver="dual_descent")


def test_estimators_that_read_rows_here():
    X, y = samples()
    with pytest.raises(TypeError, match="SafeKernelClassifier reads rows of this process"):
        ss.SafeKernelClassifier().fit(sent(X), y)
    for how in ({"cv": "loo"}, {"alphas": "certified"}):
        with pytest.raises(ValueError, match="read rows of this process"):
            ss.SafeClassifierCV(**how).fit(sent(X), y)
    with pytest.raises(ValueError, match="scoring='f1' scores samples of this process"):
        ss.SafeClassifierCV(scoring="f1").fit(sent(X), y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_no_numbers(bad):
    X, y = samples()
    X[7, 2] = bad
    with pytest.raises(ValueError, match=r"X contains NaN or infinity \(first in row 7"):
        ss.SafeClassifier().fit(sent(X), y)
    with pytest.raises(ValueError, match="row 7"):
        ss.safe_path(sent(X), y, alphas=[0.1])
    model = ss.SafeClassifier().fit(sent(np.nan_to_num(X, posinf=0.0)), y)
    with pytest.raises(ValueError, match="row 7"):
        model.predict(sent(X))
    with pytest.raises(ValueError, match="2 features, but"):
        model.predict(sent(X[:, :2]))


def test_shapes_and_types():
    X, y = samples()
    with pytest.raises(ValueError, match="2 dimensions"):
        ss.SafeClassifier().fit(sent(X[:, 0]), y)
    with pytest.raises(ValueError, match="complex128"):
        ss.SafeClassifier().fit(sent(X.astype(complex)), y)
    with pytest.raises(ValueError, match="entries but X has"):
        ss.SafeClassifier().fit(sent(X), y[:-1])
    whole = ss.SafeClassifier().fit(sent((8 * X).astype(np.int32)), y)
    assert whole.dual_gap_ < 1e-6


# --- what a claim may rest on ---------------------------------------------------------------------


@pytest.mark.parametrize("name", list(places._OVERRIDES))
def test_an_environment_that_shortens_products(name, monkeypatch):
    X, y = samples()
    monkeypatch.setattr(Place, "is_cuda", True)
    monkeypatch.setattr(device, "free_bytes", lambda place: 0)
    monkeypatch.setenv(name, "0")
    ss.safe_path(sent(X), y, alphas=[0.1])
    monkeypatch.setenv(name, "1")
    with pytest.raises(DeviceError, match=f"{name}=1"):
        ss.safe_path(sent(X), y, alphas=[0.1])


def test_products_of_another_type(monkeypatch):
    X, _ = samples()
    design = DeviceDesign(sent(X))
    monkeypatch.setattr(xp, "matmul", lambda a, b: xp.astype(a @ b, xp.float32))
    for product in (lambda: design.matvec(np.ones(4)), lambda: design.gram(np.ones(400))):
        with pytest.raises(DeviceError, match="came out as"):
            product()


@pytest.mark.parametrize(
    "name, exact, other", [("allow_tf32", False, True), ("fp32_precision", "ieee", "tf32")]
)
def test_settings_of_torch_are_set_around_products(name, exact, other, monkeypatch):
    """By the name that they have there."""
    matmul = SimpleNamespace(**{name: other})
    torch = SimpleNamespace(backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(Place, "is_cuda", True)
    with places.honest_products(Place.of(sent([1.0]))):
        assert vars(matmul) == {name: exact}
    assert vars(matmul) == {name: other}


def test_what_is_not_known_is_an_error_and_no_other_answer():
    """As a loss from outside may ask for: in place, of some entries, in another shape or order."""
    vector, matrix = DeviceArray(sent(np.arange(3.0))), DeviceArray(sent(np.eye(3)))
    mask = np.array([True, False, False])
    for ask in (
        lambda: np.clip(vector, 0.0, 1.0, out=vector),
        lambda: np.sum(vector, where=DeviceArray(sent(mask))),
        lambda: vector.sum(initial=1.0),
        lambda: np.zeros_like(vector, shape=(2,)),
        lambda: matrix.__setitem__(mask, 1.0),
        lambda: vector.__setitem__(np.array([2, 0]), DeviceArray(sent([5.0, 7.0]))),
    ):
        with pytest.raises(TypeError):
            ask()
    short = DeviceArray(sent([0.5, 0.25], np.float32))
    np.testing.assert_array_equal(on_host(short * np.float32(0.5)), [0.25, 0.125])


def test_functions_that_libraries_have_otherwise_are_those_of_the_standard(monkeypatch):
    """The sign of what is no number is none, and not 0 as torch and CuPy have it."""
    monkeypatch.setattr(Place, "own", SimpleNamespace(sign=xp.zeros_like))
    values = DeviceArray(sent([np.nan, -4.0]), Place(xp, STRICT))
    np.testing.assert_array_equal(on_host(np.sign(values)), [np.nan, -1.0])
    np.testing.assert_array_equal(on_host(np.power(values, 3.0)), [np.nan, -64.0])


def test_a_matrix_that_has_no_factor():
    """Whatever the library makes of it."""
    for matrix in (np.diag([1.0, -1.0]), np.diag([1.0, np.nan])):
        with pytest.raises(np.linalg.LinAlgError), np.errstate(invalid="ignore"):
            algebra.cholesky(DeviceArray(sent(matrix)))
    factor = algebra.cholesky(DeviceArray(sent(np.diag([4.0, 9.0]))), ridge=7.0)
    np.testing.assert_allclose(algebra.cho_solve(factor, np.array([11.0, 32.0])), [1.0, 2.0])


# --- room that runs out ---------------------------------------------------------------------------


class OutOfMemoryError(RuntimeError):
    """As torch's is."""


def test_smaller_blocks_where_there_is_no_room(monkeypatch):
    X, y = samples(n=3000)
    known = ss.safe_path(sent(X), y, alphas=[1e-1, 1e-2])
    whole = DeviceDesign._converted

    def converted(self, here, rows):
        if here.stop - here.start > 500:
            raise OutOfMemoryError
        return whole(self, here, rows)

    monkeypatch.setattr(DeviceDesign, "_converted", converted)
    with pytest.warns(UserWarning, match="no room for blocks of the usual size") as said:
        path = ss.safe_path(sent(X), y, alphas=[1e-1, 1e-2])
    assert len(said) == 1
    np.testing.assert_allclose(path.coefs, known.coefs, atol=1e-6)
    monkeypatch.setattr(device_blocks, "_FEWEST_ROWS", 1000)
    with pytest.raises(OutOfMemoryError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ss.safe_path(sent(X), y, alphas=[1e-1])


def test_short_blocks_of_a_gram_matrix_are_within_its_bound(monkeypatch):
    """Each adds nearly half a unit in the last place, and all of that would be lost one by one."""
    monkeypatch.setattr(device, "_LONGEST_GRAM", 256)
    monkeypatch.setattr(device_blocks, "_FEWEST_ROWS", 4)
    n = 20_000
    X = np.full((n, 1), math.sqrt(0.98 * 2.0**-53 / 4))
    X[0], X[1:4] = 1.0, 0.0
    room = device_blocks.Room()
    room.entries = 4
    design = DeviceDesign(sent(X), room=room)
    exact = 1 + (n - 4) * Fraction(X[-1, 0]) ** 2
    computed = float(on_host(design.gram(np.ones(n)))[0, 0])
    assert abs(Fraction(computed) - exact) <= design.gram_error * exact


def test_rows_that_do_not_fit_are_sent_block_by_block(monkeypatch):
    X, y = samples(n=3000)
    known = ss.safe_path(X, y, alphas=[1e-1, 1e-2])
    whole, sizes = Place.moved, []

    def moved(self, values):
        if values.ndim == 2 and len(values) > 1500:
            raise OutOfMemoryError
        sizes.append(values.shape)
        return whole(self, values)

    monkeypatch.setattr(Place, "moved", moved)
    monkeypatch.setattr(device_blocks, "_BLOCK", 1024 * 5)
    with pytest.warns(UserWarning, match="is sent there block by block"):
        path = ss.safe_path(X, y, alphas=[1e-1, 1e-2], device="strict")
    assert (path.relative_gaps <= 1e-6).all() and (1024, 4) in sizes
    np.testing.assert_allclose(path.coefs, known.coefs, atol=1e-3)
    with pytest.warns(UserWarning):
        result = ss.screen(X, y, alpha=1e-2, device="strict")
    assert result.certified


def test_rows_are_sent_in_the_queue_of_whoever_computes(monkeypatch):
    """A thread that sends them in a queue of its own writes over rows that are still to be read."""
    entered = threading.local()

    @contextmanager
    def queue(mine):
        entered.queue = mine
        yield
        entered.queue = None

    cuda = SimpleNamespace(current_stream=lambda device: ("current", device), stream=queue)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    there = Place(SimpleNamespace(__name__="array_api_compat.torch"), "cuda:1")
    parts = [slice(k, k + 1) for k in range(3)]
    seen = device_blocks.one_ahead(lambda part: (entered.queue, part), parts, there)
    assert list(seen) == [(("current", "cuda:1"), part) for part in parts]


def test_other_errors_are_not_taken_for_that():
    assert places.is_out_of_memory(MemoryError()) and places.is_out_of_memory(OutOfMemoryError())
    assert not places.is_out_of_memory(RuntimeError("out of luck"))
    with pytest.raises(DeviceError):
        place_named("nowhere")
    assert on_host(np.ones(2)).tolist() == [1.0, 1.0]


# --- scikit-learn's own checks --------------------------------------------------------------------

CHECKS = """
import array_api_strict
from sklearn.utils.estimator_checks import check_array_api_input
import safesift as ss

for model in (
    ss.SafeClassifier(alpha=1e-2, tol=1e-10),
    ss.SafeClassifier("logistic", alpha=1e-2, tol=1e-10),
    ss.SafeRegressor(alpha=1e-2, tol=1e-10),
):
    name, where = type(model).__name__, ("array_api_strict", "device1")
    check_array_api_input(name, model, *where, check_values=True, check_sample_weight=True)
    check_array_api_input(name, model, *where, dtype_name="float32")
print("passed")
"""


@pytest.mark.slow
def test_checks_of_scikit_learn():
    """In a process of its own: scipy is to be told before it is imported."""
    found = subprocess.run(
        [sys.executable, "-c", CHECKS],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.strip() == "passed", found.stderr[-2000:]
