"""Pages about results: what they say, of whatever data, and what they refuse."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine

import safesift as ss
from safesift.cli.commands import cli
from tests.hostile import ATTACKS, hostile_frame, with_texts
from tests.test_cards import Balance

DATA = load_breast_cancer(as_frame=True)
X, Y = DATA.data, DATA.target.map({0: "malignant", 1: "benign"})
WINE, KIND = load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def screened():
    return ss.screen(X, Y, alpha=1e-4)


@pytest.fixture(scope="module")
def left_out():
    return ss.leave_one_out(X, Y, alpha=1e-4)


@pytest.fixture(scope="module")
def path():
    return ss.safe_path(X, Y, alphas=np.geomspace(1e-1, 1e-4, 6))


def read(path) -> tuple[str, str]:
    """The page, and its text."""
    page = path.read_text("utf-8")
    balance = Balance(page)
    assert not balance.open
    return page, balance.text


def numbers(page: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def rows_listed(page: str) -> list[int]:
    return [int(row) for row in re.findall(r'<tr data-row="(\d+)">', page)]


def test_a_page_says_what_was_found(tmp_path, screened, left_out, path):
    proof = tmp_path / "p.npz"
    screened.write_proof(proof)
    made = screened.report(tmp_path / "r.html", X, also=[left_out, path], proof=proof)
    page, text = read(made)
    n_dropped = int((~screened.kept).sum())
    assert f"{n_dropped:,} of 569 samples cannot change the model" in text
    assert hashlib.sha256(proof.read_bytes()).hexdigest() in text and "p.npz" in text
    assert f"{screened.alpha_kept:.6g}" in text and "Label by label" in text
    of_class = int((~screened.kept & (Y == "benign").to_numpy()).sum())
    assert f"{of_class} (" in text
    assert str(X.columns[0]) in text and "ss.screen(X, y, loss='squared_hinge'" in text
    data = numbers(page)
    assert set(data) == {"margins", "left-out", "path"}
    assert len(data["path"]["levels"]) == 6 and len(data["margins"]["told"]) == 569


def test_the_hardest_and_the_most_doubtful_are_listed(tmp_path, screened, left_out):
    made = screened.report(tmp_path / "r.html", also=[left_out])
    listed = rows_listed(read(made)[0])
    hardest = np.argsort(-np.where(screened.kept, screened.score, -np.inf))[:50]
    wrong = np.flatnonzero(left_out.strangeness > 0)
    assert set(hardest) <= set(listed) and set(wrong[:100]) <= set(listed)
    assert listed[0] == left_out.suspects(1)[0]
    assert screened.kept[listed].sum() >= 87  # whatever is dropped is doubtful, or not there
    assert len(listed) == len(set(listed)) <= 200


def test_every_result_by_itself(tmp_path, screened, left_out, path):
    for name, result in {"s": screened, "l": left_out, "p": path}.items():
        page, text = read(result.report(tmp_path / f"{name}.html"))
        assert "How to come to the same result" in text
        assert ("samples" in page) and ("data-row" in page) == (name != "p")


@pytest.mark.parametrize("kind", ["classes", "numbers", "intervals", "sparse", "float32", "flat"])
def test_all_kinds_of_samples(tmp_path, kind):
    n = len(WINE)
    ends = np.stack([WINE[:, 0], np.where(np.arange(n) % 3, WINE[:, 0] + 1, np.inf)], axis=1)
    result = {
        "classes": lambda: ss.screen(WINE, KIND, alpha=1e-3),
        "numbers": lambda: ss.screen(WINE[:, 1:], WINE[:, 0], loss="huber", alpha=1e-3),
        "intervals": lambda: ss.screen(WINE[:, 1:], ends, loss="squared_interval", alpha=1e-3),
        "sparse": lambda: ss.screen(sparse.csr_array(WINE), KIND > 0, alpha=1e-3),
        "float32": lambda: ss.screen(WINE.astype(np.float32), KIND > 0, alpha=1e-3),
        "flat": lambda: ss.screen(WINE, KIND > 0, loss="logistic", alpha=1e-3),
    }[kind]()
    page, text = read(result.report(tmp_path / "r.html"))
    assert len(numbers(page)["margins"]["x"]) == n and "Features that matter" in text
    assert ("flat nowhere" in text) == (kind in ("flat", "numbers"))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, np.asarray])
def test_own_columns_are_shown(tmp_path, screened, frame):
    own = {"name": [f"patient {k}" for k in range(569)], "years of age": list(range(569))}
    data = frame(own) if frame is not np.asarray else np.array(list(own.values()), dtype=object).T
    page, text = read(screened.report(tmp_path / "r.html", data))
    row = rows_listed(page)[0]
    assert f"patient {row}" in text
    assert ("years of age" in text) == (frame is not np.asarray)


def test_many_columns_and_long_texts_are_cut(tmp_path):
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(60, 200))
    result = ss.screen(wide, wide[:, 0] > 0, alpha=1e-2)
    many = pd.DataFrame(wide, columns=[f"c{k}" for k in range(200)]).assign(c0="long " * 500)
    _, text = read(result.report(tmp_path / "r.html", many))
    assert "160 more columns are not shown" in text and "long " * 50 not in text
    assert (tmp_path / "r.html").stat().st_size < 2_000_000


def test_hostile_names_cells_and_labels_stay_text(tmp_path):
    frame, y = hostile_frame()
    result = ss.screen(frame, y, alpha=1e-3)
    also = [ss.leave_one_out(frame, y, alpha=1e-3), ss.safe_path(frame, y, n_alphas=3)]
    page, text = read(result.report(tmp_path / "r.html", with_texts(frame), also=also))
    balance = Balance(page)
    assert balance.names.isdisjoint({"img", "b>"})
    # two scripts: the numbers, and the page's own, which the policy names by its hash
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.S)
    assert len(scripts) == 2
    assert "harmed" not in scripts[1] and "onload" not in re.sub(r"&[a-z#0-9]+;", "", scripts[1])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src &#x27;none&#x27;" in policy and "unsafe-eval" not in policy
    assert ATTACKS[4] in text and "\x00" not in page and "\x1b" not in page
    assert "<" not in scripts[0]


def test_nothing_is_asked_of_a_network(tmp_path, screened):
    page, _ = read(screened.report(tmp_path / "r.html"))
    assert not re.findall(r"https?://|\bsrc=|@import|url\(", page)


def test_what_cannot_be_is_one_sentence_before_anything_is_written(tmp_path, screened, path):
    other = ss.screen(WINE, KIND > 0, alpha=1e-2)
    (tmp_path / "folder.html").mkdir()
    refused = {
        "extension .html": lambda: screened.report(tmp_path / "r.pdf"),
        "no such directory": lambda: screened.report(tmp_path / "none" / "r.html"),
        "there are 569 samples": lambda: screened.report(tmp_path / "r.html", X[:5]),
        "on other samples": lambda: screened.report(
            tmp_path / "r.html", also=[ss.leave_one_out(WINE, KIND > 0, alpha=1e-2)]
        ),
        "second ScreeningResult": lambda: screened.report(tmp_path / "r.html", also=[other]),
        "is a directory": lambda: screened.report(tmp_path / "folder.html"),
        "no such file": lambda: screened.report(tmp_path / "r.html", proof=tmp_path / "p.npz"),
        "does not know its samples": lambda: path.report(tmp_path / "r.html", X),
    }
    for words, call in refused.items():
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="holds a SafeClassifier"):
        screened.report(tmp_path / "r.html", also=[ss.SafeClassifier()])
    with pytest.raises(TypeError, match="also is a PathResult: pass a list"):
        screened.report(tmp_path / "r.html", also=path)
    assert not (tmp_path / "r.html").exists()


def test_data_that_have_changed_are_noticed(tmp_path):
    changing = WINE.copy()
    result = ss.screen(changing, KIND > 0, alpha=1e-3)
    changing[3] += 1.0
    with pytest.raises(RuntimeError):
        result.report(tmp_path / "r.html")


# --- on the command line ----------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    frame = DATA.frame.assign(who=[f"patient {k}, <b>" for k in range(569)])
    frame["target"] = Y
    frame.to_csv(tmp_path / "cancer.csv", index=False)
    frame.to_parquet(tmp_path / "cancer.parquet")
    np.savez(tmp_path / "cancer.npz", X=X.to_numpy(), y=Y.to_numpy(dtype=str))
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["report", *map(str, arguments)])


@pytest.mark.parametrize("name", ["cancer.csv", "cancer.parquet", "cancer.npz"])
def test_command(table, name):
    page = table / "r.html"
    named = [] if name.endswith("npz") else ["--target", "target", "--ignore", "who"]
    done = run(table / name, *named, "--scale", "standard", "-o", page)
    assert done.exit_code == 0, done.output
    text = read(page)[1]
    assert "Along alpha" in text and "With and without a sample" in text
    if named:
        assert re.search(r"patient \d+, <b>", text) and "mean radius" in text
        assert "patient 5, <b>" in text or "row 5" in text
    frame = X.to_numpy()
    scaled = (frame - frame.mean(axis=0)) / frame.std(axis=0)
    expected = ss.screen(scaled, Y.to_numpy(), alpha=1e-4)
    assert f"{int((~expected.kept).sum())} of 569 samples cannot change the model" in text


def test_command_with_a_proof_tells_where_it_is(table):
    page, proof = table / "r.html", table / "p.npz"
    done = run(table / "cancer.csv", "--target", "target", "--ignore", "who", "-o", page,
               "--proof", proof, "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["page"] == str(page)
    assert hashlib.sha256(proof.read_bytes()).hexdigest() in read(page)[1]


def test_command_and_page_count_rows_of_weight_0_alike(tmp_path):
    frame = DATA.frame.assign(weight=np.arange(569) % 2)
    frame.to_csv(tmp_path / "weighted.csv", index=False)
    page = tmp_path / "r.html"
    done = run(tmp_path / "weighted.csv", "--target", "target", "--weights", "weight",
               "--scale", "standard", "-o", page)  # fmt: skip
    assert done.exit_code == 0, done.output
    (told,) = re.findall(r"(\d+) of\s+569\s+rows\s+cannot", done.output)
    assert int(told) > 285 and f"{told} of 569 samples cannot" in read(page)[1]


def test_command_refuses_in_one_sentence(table):
    page = table / "r.html"
    page.write_text("mine")
    target = ("--target", "target", "--ignore", "who")
    refused = {
        "exists already": (table / "cancer.csv", *target, "-o", page),
        "extension .html": (table / "cancer.csv", *target, "-o", table / "r.pdf"),
        "pattern or a directory": (table / "*.csv", *target, "-o", table / "s.html"),
        "holds text": (table / "cancer.csv", "--target", "target", "-o", table / "s.html"),
    }
    for words, arguments in refused.items():
        done = run(*arguments)
        assert done.exit_code != 0 and words in done.output, done.output
    assert page.read_text() == "mine" and not (table / "s.html").exists()


@pytest.mark.parametrize("loss", ["hinge", "huber"])
def test_command_without_what_would_cost_much_or_has_no_labels(table, loss):
    target = "target" if loss == "hinge" else "mean radius"
    done = run(table / "cancer.csv", "--target", target, "--ignore",
               "who" if loss == "hinge" else "who,target", "--loss", loss, "--scale", "standard",
               "-o", table / "r.html")  # fmt: skip
    assert done.exit_code == 0, done.output
    text = read(table / "r.html")[1]
    assert ("without the sample" in text) == (loss == "huber")
