"""What surrounds a proof: the command line, odd tables, receipts and deletions that are forged."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import safesift as ss
import safesift_check as checker
import safesift_receipt
import safesift_root as roots
from tests.cli_files import command, run
from tests.test_proof_attacks import forged

CHECK = Path(__file__).parents[1] / "check"
screen = command("screen")


# --- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("data.csv", []),
        ("data.csv", ["--scale", "standard", "--impute", "mean"]),
        ("data.parquet", ["--scale", "minmax"]),
        ("data.parquet", ["--weights", "weight", "--ignore", "note"]),
        ("data.npz", ["--weights", "sample_weight"]),
        ("data.csv", ["--loss", "hinge", "--scale", "maxabs"]),
    ],
)
def test_screened_with_a_proof(data, name, more):
    proof = data / "p.npz"
    result = screen(data, name, "--alpha", "0.01", *more, "--proof", proof)
    assert result.exit_code == 0, result.stderr
    said = run("check", proof, data / name)
    assert said.exit_code == 0 and said.stdout.startswith("PROVED"), said.stdout
    said = run("check", proof, data / name, "--seed", f"{proof}.seed", "--expect", "alpha=1e-2")
    assert said.exit_code == 0 and "the data are those of the root" in said.stdout, said.stdout


def test_exit_codes_of_the_command(data):
    proof = data / "p.npz"
    assert screen(data, "data.csv", "--alpha", "0.01", "--proof", proof).exit_code == 0
    for more, code, words in (
        (["--expect", "intercept=true"], 0, "PROVED"),
        (["--expect", "intercept=false"], 1, "intercept is true and not false"),
        (["--expect", "colour=red"], 2, "give NAME=VALUE"),
        (["--seed", data / "nowhere"], 2, "NOT READABLE"),
    ):
        result = run("check", proof, data / "data.csv", *more)
        assert result.exit_code == code and words in result.stdout, result.stdout
    assert run("check", proof, data / "data.parquet").exit_code == 0
    assert run("check", proof, data / "data.npz").exit_code == 2
    text = (data / "data.csv").read_text()
    lines = text.splitlines(keepends=True)
    (data / "other.csv").write_text("".join([lines[0], *lines[:0:-1]]))
    assert run("check", proof, data / "other.csv").exit_code == 1
    (data / "seed").write_text("00" * 32)
    said = run("check", proof, data / "data.csv", "--seed", data / "seed")
    assert said.exit_code == 1 and "not those of the root" in said.stdout


@pytest.mark.parametrize(
    ("program", "more", "code"),
    [
        ("safesift_check.py", [], 0),
        ("safesift_check.py", ["--expect", "alpha=7"], 1),
        ("safesift_check.py", ["--expect", "alpha"], 2),
        ("safesift_root.py", ["--seed", "p.npz.seed"], 0),
        ("safesift_root.py", [], 2),
    ],
)
def test_programs(data, monkeypatch, program, more, code):
    monkeypatch.chdir(data)
    assert screen(data, "data.csv", "--alpha", "0.01", "--proof", "p.npz").exit_code == 0
    command = [sys.executable, str(CHECK / program), "p.npz", "data.csv", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_what_the_command_cannot_prove_it_refuses(data):
    result = screen(data, "data.svm", "--alpha", "0.01", "--proof", data / "p.npz")
    assert result.exit_code == 2 and "convert it first" in result.stderr
    result = screen(data, "data.csv", "--alpha", "0.01", "--proof", data / "p.zip")
    assert result.exit_code == 2 and "give it that name" in result.stderr


# --- tables -------------------------------------------------------------------------------------

COLUMNS = {"features": [{"column": "a", "equals": None}]}
FILL = [["fill", [1.0]]]


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def claimed(**changes):
    """½(2 − ax)² + ½x² is least at x = 1 if a is 1, which is claimed."""
    forged({"name": "squared"}, [1.0], [0], **{"gap": 1e-9, **COLUMNS, **changes})


def csv_status(text) -> int:
    Path("d.csv").write_text(text, encoding="utf-8")
    return checker.main(["p.npz", "d.csv"])


def parquet_status(**columns) -> int:
    parquet.write_table(pa.table(columns), "d.parquet")
    return checker.main(["p.npz", "d.parquet"])


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("a,y\n1,2\n", 0),
        ("\ufeffa,y\n1.0,2e0\n", 0),
        ('"a","y"\n"1"," 2 "\n', 0),
        ('a,note,y\n1,"a\nb, ""c""",2\n', 0),
        ("y,a\n2,1\n", 0),
        ("a,y\n3,2\n", 1),
        ("a,a,y\n1,1,2\n", 2),
        ("a,y,y\n1,2,2\n", 2),
        ("b,y\n1,2\n", 2),
        ("a,y\n1\n", 2),
        ("a,y\n1,2,3\n", 2),
        ("a,y\n1,2\n\n", 2),
        ("a,y\n1,2\n1,2\n", 2),
        ("a,y\n", 2),
        ("", 2),
        ('a,y\n"1,2\n', 2),
        ('a,y\n"1"0,2\n', 2),
        ("a,y\n,2\n", 2),
        ("a,y\none,2\n", 2),
        ("a,y\nnan,2\n", 2),
        ("a,y\ninf,2\n", 2),
        ("a,y\n1,\n", 2),
        ("a,y\n1,nan\n", 2),
        ("a,y\n1,two\n", 2),
        ("a,y\n0_1,2\n", 2),
        ("a,y\n１,2\n", 2),
        ("a,y\n1,0_2\n", 2),
        ("a,y\n1,1e200\n", 2),
        ("a,y\n1\x00,2\n", 2),
    ],
)
def test_odd_csv(in_folder, text, status):
    claimed()
    assert csv_status(text) == status


@pytest.mark.parametrize("cell", ["", "NA", "nan", "1_0"])
def test_what_is_missing_is_filled_as_stated(in_folder, cell):
    claimed(transform=FILL)
    assert csv_status(f"a,y\n{cell},2\n") == 0
    claimed(transform=[["fill", [3.0]]])
    assert csv_status(f"a,y\n{cell},2\n") == 1
    claimed(transform=FILL)
    assert csv_status("a,y\ninf,2\n") == 2


@pytest.mark.parametrize(
    ("cells", "status"),
    [
        ([1.0], 0),
        (np.array([1.0], np.float32), 0),
        (np.array([1.0], np.float16), 0),
        ([1], 0),
        ([True], 0),
        ([False], 1),
        (["1.0"], 0),
        ([Decimal("1.00")], 0),
        (pa.array([Decimal("1e3")], pa.decimal256(50, 2)), 1),
        (pa.array([1.0]).dictionary_encode(), 0),
        (pa.array(["1"]).dictionary_encode(), 0),
        ([3], 1),
        ([None], 2),
        ([np.nan], 2),
        ([2**53 + 1], 2),
        ([-(2**53)], 2),
        (pa.array([2**64 - 1], pa.uint64()), 2),
        (np.array(["2020-01-01"], "M8[s]"), 2),
        ([[1.0]], 2),
        ([{"a": 1.0}], 2),
        ([1.0, 1.0], 2),
    ],
)
def test_odd_parquet(in_folder, cells, status):
    claimed()
    assert parquet_status(a=cells, y=[2.0] * len(cells)) == status


def test_integers_are_not_filled_in_for(in_folder):
    """What is too large for a double is no missing value."""
    claimed(transform=FILL)
    assert parquet_status(a=pa.array([None], pa.int64()), y=[2.0]) == 0
    assert parquet_status(a=[2**53 + 1], y=[2.0]) == 2
    # nor is it another number, in a table of texts
    for cell, status in ((2**53 + 1, 2), (-(2**53), 2), (2**53 - 1, 1), ("9007199254740993.0", 1)):
        assert csv_status(f"a,y\n{cell},2\n") == status


def test_columns_of_one_name_in_parquet(in_folder):
    claimed()
    twice = pa.table([[1.0], [3.0], [2.0]], names=["a", "a", "y"])
    parquet.write_table(twice, "d.parquet")
    assert checker.main(["p.npz", "d.parquet"]) == 2


def test_features_are_named_and_what_is_cut_off_is_said(in_folder, capsys):
    """A feature that is there twice is seen by whoever reads what was proved."""
    names = [{"column": "a", "equals": None}, {"column": "a", "equals": 5}]
    forged({"name": "squared"}, [1.0, 0.0], [0], features=names)
    Path("d.csv").write_text("a,b,y\n1,5,2\n")
    assert checker.main(["p.npz", "d.csv"]) == 0
    assert f"features: {json.dumps(names)}" in capsys.readouterr().out
    zeros = ["multiply", [1.0] * 40 + [0.0]]
    forged({"name": "squared"}, [0.0] * 41, [0], transform=[zeros])
    np.savez("d.npz", X=np.ones((1, 41)), y=np.array([2.0]))
    assert checker.main(["p.npz", "d.npz"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:12] for line in lines if line.endswith(" …")] == ["  transform:"]


def test_features_hold_nothing_unknown(in_folder):
    claimed(features=[{"column": "a", "equals": None, "times": 2.0}])
    assert csv_status("a,y\n1,2\n") == 2


def test_categories_are_compared_as_texts_and_numbers(in_folder):
    for wanted, status in ((1, 0), (1.0, 0), ("1", 0), (True, 0), ("one", 1), ("", 1)):
        claimed(features=[{"column": "a", "equals": wanted}])
        assert csv_status("a,y\n1.0,2\n") == status
        assert parquet_status(a=[1], y=[2.0]) == status
    claimed(features=[{"column": "a", "equals": ""}])
    assert csv_status("a,y\n,2\n") == 0
    assert parquet_status(a=pa.array([None], pa.string()), y=[2.0]) == 0
    claimed(features=[{"column": "a", "equals": "None"}])
    assert parquet_status(a=pa.array([None], pa.string()), y=[2.0]) == 1


@pytest.mark.parametrize(
    ("cells", "status"),
    [
        (["yes", "no"], 0),
        (pa.array(["yes", "no"]).dictionary_encode(), 0),
        (["yes", "maybe"], 2),
        (["yes", None], 2),
        (["Yes", "no"], 2),
    ],
)
def test_labels_of_tables(in_folder, cells, status):
    forged({"name": "squared_hinge", "mu": 0.0}, [0.0], [0, 0], labels=["yes", "no"], **COLUMNS)
    assert parquet_status(a=[1.0, -1.0], y=cells) == status


def test_labels_that_are_numbers_or_truths(in_folder):
    forged({"name": "squared_hinge", "mu": 0.0}, [0.0], [0, 0], labels=[True, -1], **COLUMNS)
    for cells in ([1, -1], [1.0, -1.0], ["1", "-1.0"]):
        assert parquet_status(a=[1.0, -1.0], y=cells) == 0
    whole = 2**53
    forged({"name": "squared_hinge", "mu": 0.0}, [0.0], [0, 0], labels=[whole, 1], **COLUMNS)
    assert parquet_status(a=[1.0, -1.0], y=[whole, 1]) == 0
    assert parquet_status(a=[1.0, -1.0], y=[whole + 1, 1]) == 2


def test_open_ends_of_tables(in_folder):
    """An empty end is open on its own side, and garbage is no end."""
    ends = {"target": ["lower", "upper"]}
    forged({"name": "squared_interval"}, [0.0], [0], **COLUMNS, **ends, gap=1.0)
    for lower, upper, status in (
        ("1", "", 0), ("", "1", 0), ("-inf", "1", 0), ("1", "inf", 0), ("1", "1", 0),
        ("", "", 2), ("1", "x", 2), ("nan", "1", 2), ("2", "1", 2), ("inf", "", 2), ("3", "", 1),
    ):  # fmt: skip
        Path("d.csv").write_text(f"a,lower,upper\n1,{lower},{upper}\n")
        assert checker.main(["p.npz", "d.csv"]) == status, (lower, upper)


# --- receipts -----------------------------------------------------------------------------------


@pytest.fixture
def told(in_folder):
    """A proof about 13 rows, their receipts, and the rows as their owners know them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(13, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    proof = ss.screen(X, y, alpha=0.05).write_proof("p.npz")
    assert 0 < proof.kept.sum() < 13
    rows = [{"features": X[i].tolist(), "target": str(y[i])} for i in range(13)]
    return proof, rows


def refused(receipt, row, **more) -> None:
    with pytest.raises((checker.Unproved, checker.Unreadable, ValueError)):
        safesift_receipt.verify(receipt, row, **more)


def test_what_is_asserted_is_asserted_of_this_row(told):
    """The verdict of another row, with its own path, is not that of this one."""
    proof, rows = told
    flat, kept = np.flatnonzero(~proof.kept)[0], np.flatnonzero(proof.kept)[0]
    mine, other = proof.receipt(int(kept)), proof.receipt(int(flat))
    assert safesift_receipt.verify(mine, rows[kept]) != safesift_receipt.verify(other, rows[flat])
    taken = {name: other[name] for name in ("row", "verdicts", "verdict_path")}
    refused(mine | taken, rows[kept])
    refused(mine | {"slot": other["slot"], "salt": other["salt"]} | taken, rows[kept])


def test_receipts_of_another_proof_or_statement(told):
    proof, rows = told
    X = np.array([row["features"] for row in rows])
    again = ss.screen(X, np.array([row["target"] for row in rows]), alpha=0.5)
    other, mine = again.write_proof("q.npz"), proof.receipt(4)
    assert safesift_receipt.verify(mine, rows[4], root=proof.root, digest=proof.digest)
    refused(other.receipt(4), rows[4], root=proof.root)
    refused(other.receipt(4), rows[4], digest=proof.digest)
    refused(mine | {"statement": other.receipt(4)["statement"]}, rows[4])
    # a statement with the roots of another is another
    statement = json.loads(mine["statement"])
    statement["alpha"] = 0.5
    refused(mine | {"statement": json.dumps(statement)}, rows[4], digest=proof.digest)


@pytest.mark.parametrize("name", ["path", "verdict_path"])
def test_paths_that_are_none(told, name):
    proof, rows = told
    for place in (0, 5, 12):
        mine = proof.receipt(place)
        path = mine[name]
        for wrong in (
            path[:-1], path[1:], [*path, path[0]], [path[0], *path], path[::-1], [],
            ["00" * 31, *path[1:]], ["", *path[1:]],
        ):  # fmt: skip
            if wrong != path:
                refused(mine | {name: wrong}, rows[place])


def test_places_and_counts_that_are_none(told):
    proof, rows = told
    mine = proof.receipt(5)
    for change in (
        {"row": 4}, {"slot": 4}, {"row": 13}, {"slot": 13}, {"row": -8}, {"slot": -8},
        {"row": 5.0}, {"slot": True}, {"slot": "5"}, {"verdicts": []}, {"verdicts": [0, 0]},
        {"verdicts": [256]}, {"verdicts": [-1]}, {"verdicts": [True]}, {"verdicts": [7]},
    ):  # fmt: skip
        refused(mine | change, rows[5])
    statement = json.loads(mine["statement"])
    for change in ({"n_samples": 12}, {"n_samples": 14}):
        refused(mine | {"statement": json.dumps(statement | change)}, rows[5])
    for slots in (12, 14, 26):
        refused(mine | {"statement": json.dumps(statement | {"slots": slots})}, rows[5])
    twice = mine["statement"].replace('"alpha"', '"alpha": 1.0, "alpha"', 1)
    refused(mine | {"statement": twice}, rows[5])


def test_inner_nodes_are_no_leaves(told):
    """The two hashes below a node, presented as the content of a leaf one level higher."""
    proof, rows = told
    leaves, mine = list(proof.leaves), proof.receipt(0)
    inner = roots.sha(b"\1", leaves[0], leaves[1])
    assert roots.sha(b"\0", leaves[0], leaves[1]) != inner
    # a tree of 7 leaves with the same top has another root, as their number is in it
    nodes = [roots.sha(b"\1", *leaves[i : i + 2]) for i in range(0, 12, 2)] + [leaves[12]]
    assert roots.root_of(nodes) != proof.root == roots.root_of(leaves)
    statement = json.loads(mine["statement"])
    changed = statement | {"slots": 7}
    refused(mine | {"statement": json.dumps(changed), "path": mine["path"][1:]}, rows[0])


def test_a_salt_does_not_hold_a_part_of_the_row(in_folder):
    """A row whose first number, as bytes, is the head of another row: (1 entry, column 2)."""
    X = np.random.default_rng(3).normal(size=(13, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    X[4], y[4] = [np.array([1, 2], "<u4").view("<f8")[0], 7.5, 0.0], "yes"
    proof = ss.screen(X, y, alpha=0.05).write_proof("p.npz")
    mine, never = proof.receipt(4), {"features": [0.0, 0.0, 7.5], "target": "yes"}
    assert safesift_receipt.verify(mine, {"features": X[4].tolist(), "target": "yes"})
    head = np.array([2, 0, 1], "<u4").tobytes()  # 2 entries, columns 0 and 1
    salt = bytes.fromhex(mine["salt"]) + head
    # to the tree it is the same leaf
    assert roots.leaf(4, salt, np.array(never["features"]), b"yes", [1.0]) == proof.leaves[4]
    refused(mine | {"salt": salt.hex()}, never)


# --- deletions ----------------------------------------------------------------------------------


@pytest.fixture
def deleted(in_folder):
    """A proof after the deletion of rows 1 and 4 of 12, and what is in its file."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(14, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=0.05)).fit(X[:12], y[:12])
    before = tracker.write_proof("before.npz")
    tracker.update(remove=[1, 4], add=(X[12:], y[12:]))
    after = tracker.write_proof("p.npz", before=before, removed=np.array([1, 4]))
    np.savez("d.npz", X=tracker.X_, y=tracker.y_)
    with np.load("p.npz") as file:
        return before, after, dict(file)


def rooted(arrays, **changes) -> int:
    statement = json.loads(arrays["statement"].tobytes()) | changes
    text = np.frombuffer(json.dumps(statement).encode(), dtype=np.uint8)
    np.savez("q.npz", **(arrays | {"statement": text}))
    return roots.main(["q.npz", "d.npz", "--seed", "p.npz.seed"])


def test_a_deletion_in_words(deleted, capsys):
    before, after, arrays = deleted
    assert rooted(arrays) == 0
    said = capsys.readouterr().out
    assert f"2 rows and no others are missing of those of the root {before.root}" in said
    assert "2 rows are new since then" in said
    receipt = after.receipt(3)
    assert receipt["row"] == 3 and receipt["slot"] == 5


def test_deletions_that_did_not_happen(deleted):
    before, after, arrays = deleted
    leaves = arrays["removed_leaves"].reshape(2, 32)
    wrong = {
        "one less": {"removed": arrays["removed"][:1], "removed_leaves": leaves[0]},
        "none": {"removed": arrays["removed"][:0], "removed_leaves": leaves[:0].ravel()},
        "another": {"removed": np.array([1, 5], dtype="<u8")},
        "one that never was": {"removed": np.array([1, 12], dtype="<u8")},
        "out of range": {"removed": np.array([1, 2**63], dtype="<u8")},
        "leaves of others": {"removed_leaves": leaves[::-1].ravel()},
        "half a leaf": {"removed_leaves": arrays["removed_leaves"][:-16]},
        "present ones": {"absent": np.array([1, 3], dtype="<u8")},
        "absent twice": {"absent": np.array([1, 1], dtype="<u8")},
        "no slot": {"absent": arrays["absent"][:1]},
    }
    for name, change in wrong.items():
        assert rooted(arrays | change) > 0, name
    for name, (root, slots) in {
        "nothing": (None, None),
        "another root": (after.root, 12),
        "more slots": (before.root, 14),
        "fewer slots": (before.root, 11),
        "slots that never were": (before.root, 10**15),
    }.items():
        assert rooted(arrays, root_before=root, slots_before=slots) > 0, name
    assert rooted(arrays, slots=10**15) == 2


def test_a_removed_row_that_stayed_is_noticed(deleted):
    """The data still hold row 4, in place of a new one."""
    _, _, arrays = deleted
    with np.load("d.npz") as file:
        X, y = file["X"], file["y"]
    rng = np.random.default_rng(5)
    X[-1] = rng.normal(size=(14, 2))[4]
    np.savez("d.npz", X=X, y=y)
    assert rooted(arrays) == 1


def test_what_was_gone_before_is_not_removed_again(in_folder):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(14, 2))
    y = np.where(X[:, 0] > 0, "yes", "no")
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=0.05)).fit(X, y)
    before = tracker.write_proof("p.npz")
    for row in (1, 3):  # in the slots 1 and 4
        tracker.update(remove=[row])
        before = tracker.write_proof("p.npz", before=before, removed=np.array([row]))
    np.savez("d.npz", X=tracker.X_, y=tracker.y_)
    with np.load("p.npz") as file:
        arrays = dict(file)
    assert rooted(arrays) == 0
    leaves = np.append(arrays["removed_leaves"], np.frombuffer(roots.gone(1), dtype=np.uint8))
    twice = {"removed": np.array([*arrays["removed"], 1], dtype="<u8"), "removed_leaves": leaves}
    assert rooted(arrays | twice) == 1
