"""The convolutional kernel network: scikit-learn's conventions, its mathematics, its memory."""

from __future__ import annotations

import sys
import tracemalloc
import types

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import safesift as ss
from safesift import progress
from safesift_paper import datasets
from safesift_paper.features import (
    ConvolutionalKernelNetwork,
    KernelLayer,
    arrays,
    cached_features,
    ckn,
)
from safesift_paper.features.kmeans import spherical_kmeans, unit_rows
from safesift_paper.features.layer import FittedLayer, Preparation, pooling_matrix

pytestmark = pytest.mark.slow

SMALL = (KernelLayer(3, 12, 2), KernelLayer(2, 16, 2))


@parametrize_with_checks(
    [
        ConvolutionalKernelNetwork(SMALL, backend="numpy"),
        ConvolutionalKernelNetwork(SMALL, contrast=False, whitening=True, backend="numpy"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


def network(**parameters):
    chosen = {"backend": "numpy", "random_state": 0} | parameters
    return ConvolutionalKernelNetwork(SMALL, **chosen)


# --- mathematics ----------------------------------------------------------------------------------


def test_the_map_is_the_nystrom_projection():
    """On the anchors themselves the kernel is met exactly: ψ(z)ᵀψ(z') = ‖z‖‖z'‖κ(cos)."""
    rng = np.random.RandomState(0)
    spec = KernelLayer(2, 6, 1, beta=1.5)
    anchors = unit_rows(rng.standard_normal((6, 4)))
    layer = FittedLayer.fit(spec, anchors, Preparation(), rng)
    patches = 3.0 * layer.anchors.reshape(-1, 2, 2, 1)
    features = layer.apply(patches, arrays.NumpyArrays()).reshape(len(patches), -1)
    expected = 9.0 * np.exp(1.5 * (layer.anchors @ layer.anchors.T - 1.0))
    np.testing.assert_allclose(features @ features.T, expected, rtol=1e-6)


def test_the_kernel_is_homogeneous_and_zero_at_zero():
    rng = np.random.RandomState(0)
    layer = FittedLayer.fit(KernelLayer(2, 5), rng.standard_normal((50, 4)), Preparation(), rng)
    maps = rng.standard_normal((3, 4, 4, 1))
    maps[2] = 0.0
    once = layer.apply(maps.copy(), arrays.NumpyArrays())
    twice = layer.apply(2.0 * maps, arrays.NumpyArrays())
    np.testing.assert_allclose(twice, 2.0 * once, atol=1e-12)
    assert (once[2] == 0).all()


def test_windows_are_patches_channels_last():
    maps = np.arange(2 * 4 * 5 * 3).reshape(2, 4, 5, 3)
    rows = arrays.NumpyArrays().windows(maps, 3, 2)
    assert rows.shape == (2 * 2 * 4, 3 * 2 * 3)
    np.testing.assert_array_equal(rows[1 * 8 + 1 * 4 + 2], maps[1, 1:4, 2:4].ravel())


def test_contrast_and_whitening():
    rng = np.random.RandomState(0)
    patches = rng.standard_normal((2000, 9)) @ rng.standard_normal((9, 9)) + 5.0
    centered = Preparation.learnt(patches, centered=True, whitening=False).apply(patches)
    np.testing.assert_allclose(centered.mean(axis=1), 0.0, atol=1e-12)
    white = Preparation.learnt(patches - patches.mean(0), False, True).apply(
        patches - patches.mean(0)
    )
    spread = np.linalg.eigvalsh(np.cov(white.T))
    before = np.linalg.eigvalsh(np.cov(patches.T))
    assert spread.max() <= 1.01
    assert spread.max() / spread.min() < 0.01 * before.max() / before.min()


@pytest.mark.parametrize(("size", "subsampling"), [(24, 2), (10, 4), (1, 3), (7, 1)])
def test_pooling(size, subsampling):
    weights = pooling_matrix(size, subsampling)
    assert weights.shape == (-(-size // subsampling), size)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(weights, weights[::-1, ::-1])
    assert (weights >= 0).all()


def test_kmeans_finds_directions():
    rng = np.random.RandomState(0)
    directions = np.eye(5)
    rows = np.repeat(directions, 50, axis=0) + 0.05 * rng.standard_normal((250, 5))
    centers = spherical_kmeans(unit_rows(rows), 5, np.random.RandomState(3))
    np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1.0)
    assert np.sort((centers @ directions.T).max(axis=1)).mean() > 0.85
    assert spherical_kmeans(unit_rows(rows[:2]), 5, rng).shape == (2, 5)
    assert spherical_kmeans(unit_rows(np.zeros((4, 5))), 3, rng).shape == (1, 5)


# --- use ------------------------------------------------------------------------------------------


def test_digits_are_told_apart(digits):
    X, y = digits
    layers = (KernelLayer(3, 32, 1), KernelLayer(2, 48, 2))
    encoder = network().set_params(layers=layers)
    model = make_pipeline(encoder, LinearSVC(C=10.0, random_state=0)).fit(X[:1000], y[:1000])
    pixels = LinearSVC(C=1.0, random_state=0).fit(X[:1000] / 16.0, y[:1000])
    score = model.score(X[1000:], y[1000:])
    assert score > 0.95 and score > pixels.score(X[1000:] / 16.0, y[1000:]) + 0.02


def test_defaults_have_the_width_of_the_paper():
    rng = np.random.RandomState(0)
    for shape in ((28, 28), (32, 32, 3)):
        X = rng.randint(0, 256, (12, int(np.prod(shape)))).astype(np.uint8)
        model = ConvolutionalKernelNetwork(image_shape=shape, random_state=0, backend="numpy")
        features = model.fit_transform(X)
        assert features.shape == (12, 2304) and features.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, rtol=1e-5)
    assert len(model.get_feature_names_out()) == 2304


def test_precision_and_batches_do_not_matter(digits, monkeypatch):
    X = digits[0][:60]
    model = network().fit(X.astype(np.float64))
    features = model.transform(X.astype(np.float64))
    assert features.dtype == np.float64
    single = model.transform(X)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, features, atol=1e-5)
    monkeypatch.setattr(ckn, "_BATCH_NUMBERS", 1)
    np.testing.assert_allclose(model.transform(X.astype(np.float64)), features, atol=1e-12)


def test_the_seed_decides(digits):
    X = digits[0][:100]
    one = network().fit_transform(X)
    np.testing.assert_array_equal(one, clone(network()).fit_transform(X))
    assert np.abs(one - network().set_params(random_state=1).fit_transform(X)).max() > 1e-3


def test_memory_is_bounded(digits, monkeypatch):
    X = np.tile(digits[0], (8, 1))
    model = network().fit(X)
    monkeypatch.setattr(ckn, "_BATCH_NUMBERS", 100_000)
    features = np.empty((len(X), model.transform(X[:2]).shape[1]), np.float32)
    tracemalloc.start()
    model.encode_into(features, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000  # all patches at once would be 100 MB


def test_progress(digits):
    heard = []
    model = network().fit(digits[0])
    with progress.listening(lambda *event: heard.append(event)):
        model.transform(digits[0])
    assert heard[-1] == ("convolutional kernel network", 1797, 1797)


def test_features_are_computed_once(digits, monkeypatch, tmp_path):
    monkeypatch.setenv("SAFESIFT_CACHE", str(tmp_path))
    X = digits[0]
    features = cached_features(network(), X[:50], fitted_on=X[:100], name="digits")
    expected = network().fit(X[:100]).transform(X[:50])
    np.testing.assert_array_equal(features, expected)
    encode = ConvolutionalKernelNetwork.encode_into
    monkeypatch.setattr(ConvolutionalKernelNetwork, "encode_into", None)
    again = cached_features(network(backend="auto"), X[:50], fitted_on=X[:100], name="digits")
    np.testing.assert_array_equal(again, expected)
    monkeypatch.setattr(ConvolutionalKernelNetwork, "encode_into", encode)
    others = cached_features(network(whitening=True), X[:50], fitted_on=X[:100], name="digits")
    assert np.abs(others - expected).max() > 1e-3
    assert len(list((tmp_path / "features").iterdir())) == 2
    with pytest.raises(ValueError, match="random_state of the network must be a whole number"):
        cached_features(network().set_params(random_state=None), X[:50])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"image_shape": (8, 9)}, r"image_shape must be .* images of 64 numbers, got \(8, 9\)"),
        ({"layers": ()}, "layers must be a tuple of one or more KernelLayer"),
        ({"backend": "jax"}, "backend must be 'auto', 'numpy' or 'torch', got 'jax'"),
    ],
)
def test_refusals(digits, parameters, message):
    with pytest.raises(ValueError, match=message):
        network().set_params(**parameters).fit(digits[0])


def test_refused_layers(digits):
    with pytest.raises(TypeError, match="layers must hold KernelLayer objects, got int"):
        network().set_params(layers=(3,)).fit(digits[0])
    with pytest.raises(ValueError, match="n_filters must be a positive integer, got 0"):
        KernelLayer(3, 0)
    with pytest.raises(ValueError, match="beta must be positive"):
        KernelLayer(beta=-1.0)


def test_torch_is_asked_for(monkeypatch, digits):
    monkeypatch.setattr(arrays, "find_spec", lambda name: None)
    assert isinstance(arrays.arrays_for("auto"), arrays.NumpyArrays)
    with pytest.raises(ImportError, match=r"pip install .safesift-paper.torch."):
        arrays.arrays_for("torch")
    monkeypatch.setattr(arrays, "find_spec", lambda name: object())
    fake = types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", fake)
    assert isinstance(arrays.arrays_for("auto"), arrays.TorchArrays)


def test_torch_agrees(digits):
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install")
    X = digits[0][:200]
    model = network().fit(X)
    features = model.transform(X)
    np.testing.assert_allclose(model.set_params(backend="torch").transform(X), features, atol=1e-4)


def test_real_digits(data_folder):
    """A small network and 2 000 digits; the full size is an experiment."""
    train, test = datasets.load_mnist("train"), datasets.load_mnist("test")
    layers = (KernelLayer(5, 32, 2, 2.0), KernelLayer(3, 64, 4, 4.0))
    encoder = network(image_shape=(28, 28)).set_params(layers=layers).fit(train.X[:500])
    model = ss.SafeClassifier(alpha=1e-4, tol=1e-3).fit(
        encoder.transform(train.X[:2000]), train.labels[:2000]
    )
    assert model.score(encoder.transform(test.X[:1000]), test.labels[:1000]) > 0.93
