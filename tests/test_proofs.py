"""Proof files: what is written is accepted, and hostile files are refused."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import safesift as ss
import safesift_check as checker
import safesift_receipt
import safesift_root as roots
from safesift.losses import LOSSES
from safesift.penalties import PENALTIES
from tests.code_lines import code_lines

CHECK = Path(__file__).parents[1] / "check"
MOST_LINES = 500


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def samples(rng, task="classification", n=120, p=4):
    X = rng.normal(size=(n, p))
    target = X[:, 0] + 0.4 * rng.normal(size=n)
    if task == "classification":
        return X, np.where(target > 0, "yes", "no")
    if task == "regression":
        return X, target
    return X, np.column_stack([target - 0.2, np.where(rng.random(n) < 0.3, np.inf, target + 0.2)])


def verified(proof, *more, **arrays) -> str:
    np.savez("data.npz", **arrays)
    return run(str(proof.path), "data.npz", "--seed", f"{proof.path}.seed", *more)


def run(*arguments) -> str:
    """The exit status and what is printed."""
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        status = (roots if "--seed" in arguments else checker).main(list(arguments))
        return f"{status} {sys.stdout.getvalue()}"
    finally:
        sys.stdout = out


# --- the checker as a file ----------------------------------------------------------------------


def test_the_checker_imports_nothing_of_the_library():
    allowed = {*sys.stdlib_module_names, "numpy", "pyarrow"}
    for name, own in (
        ("safesift_check", {"safesift_tables"}),
        ("safesift_tables", {"safesift_check"}),
        ("safesift_root", {"safesift_check", "safesift_tables"}),
        ("safesift_receipt", {"safesift_check", "safesift_root", "safesift_tables"}),
    ):
        tree = ast.parse((CHECK / f"{name}.py").read_text())
        found = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.split(".")[0])
        assert found <= allowed | own


def test_the_checker_runs_without_the_library(rng, in_folder):
    X, y = samples(rng)
    proof = ss.screen(X, y, alpha=0.01).write_proof("p.npz")
    np.savez("data.npz", X=X, y=y)
    block = "import sys; sys.modules['safesift'] = None; sys.path.insert(0, sys.argv.pop(1)); "
    code = block + "import safesift_check; sys.exit(safesift_check.main())"
    command = [sys.executable, "-c", code, str(CHECK), str(proof.path), "data.npz"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PROVED" in done.stdout


def test_the_checker_can_be_read_in_one_sitting():
    assert code_lines((CHECK / "safesift_check.py").read_text()) <= MOST_LINES


def test_lines_of_code_are_counted():
    assert code_lines('"""Doc\nmore."""\n# a comment\nx = 1  # one\n\ny = [\n    2,\n]\n') == 4


# --- what can be written ------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net", "l1_ball", "l2_ball"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_and_penalty(rng, in_folder, loss, penalty, intercept):
    if loss not in checker.LOSSES or penalty not in PENALTIES:
        pytest.skip("added from outside")
    X, y = samples(rng, LOSSES[loss].task, n=60, p=3)
    weights = rng.integers(0, 3, 60).astype(float)
    result = ss.screen(
        X, y, loss=loss, penalty=penalty, alpha=0.02, fit_intercept=intercept, sample_weight=weights
    )
    proof = result.write_proof("p.npz")
    said = verified(proof, X=X, y=y, sample_weight=weights)
    assert said.startswith("0 PROVED"), said
    kinked = np.isinf(LOSSES[loss]().smoothness)
    if not (kinked and penalty != "l2"):
        lost = proof.kept & ~result.kept
        assert lost.sum() <= 1


def test_exact_and_float_agree(rng, in_folder):
    for loss, penalty in (
        ("squared_hinge", "l2"),
        ("huber", "l1"),
        ("hinge", "l2"),
        ("safe_logistic", "l2"),
    ):
        X, y = samples(rng, LOSSES[loss].task, n=15, p=2)
        proof = ss.screen(X, y, loss=loss, penalty=penalty, alpha=0.05).write_proof("p.npz")
        assert verified(proof, "--exact", X=X, y=y).startswith("0 PROVED")
        assert verified(proof, X=X, y=y).startswith("0 PROVED")


def test_storages(rng, in_folder):
    X, y = samples(rng)
    X = X * (X > 0)
    for stored in (X.astype(np.float32), np.asfortranarray(X), sparse.csr_array(X)):
        proof = ss.screen(stored, y, alpha=0.01).write_proof("p.npz")
        dense = stored.toarray() if sparse.issparse(stored) else np.ascontiguousarray(stored)
        assert verified(proof, X=dense, y=y).startswith("0 PROVED")
    csr = sparse.csr_array(X)
    said = verified(proof, data=csr.data, indices=csr.indices, indptr=csr.indptr, y=y)
    assert said.startswith("0 PROVED"), said


def test_several_classes_and_class_weights(rng, in_folder):
    X, _ = samples(rng)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = ss.SafeClassifier(alpha=0.01).fit(X, y)
    proof = model.write_proof("p.npz", X, y)
    assert verified(proof, X=X, y=y).startswith("0 PROVED")
    assert proof.verdicts.shape == (120, 3)
    assert (proof.kept == model.kept_).all()
    balanced = ss.SafeClassifier(alpha=0.01, class_weight={0: 2.0, 1: 1.0, 2: 0.5}).fit(X, y)
    weights = np.array([2.0, 1.0, 0.5])[y]
    proof = balanced.write_proof("p.npz", X, y)
    assert verified(proof, X=X, y=y, sample_weight=weights).startswith("0 PROVED")


def test_models_and_paths(rng, in_folder):
    X, y = samples(rng, "regression")
    epsilon = rng.random(120)
    model = ss.SafeRegressor(alpha=0.01, epsilon=epsilon).fit(X, y)
    assert verified(model.write_proof("p.npz", X, y), X=X, y=y, epsilon=epsilon).startswith(
        "0 PROVED"
    )
    X, y = samples(rng, "interval")
    model = ss.IntervalRegressor(alpha=0.01).fit(X, y)
    assert verified(model.write_proof("p.npz", X, y), X=X, y=y).startswith("0 PROVED")
    X, y = samples(rng)
    path = ss.safe_path(X, y, alphas=[0.1, 0.01])
    proof = path.write_proof("p.npz", X, y, 1)
    assert proof.statement["alpha"] == 0.01
    assert verified(proof, X=X, y=y).startswith("0 PROVED")


def test_a_loose_model_has_its_true_gap(rng, in_folder):
    X, y = samples(rng)
    model = ss.SafeClassifier(alpha=0.01).fit(X, y)
    model.coef_ = model.coef_ + 0.1
    proof = model.write_proof("p.npz", X, y)
    assert 1e-4 < proof.gap < 0.1
    assert verified(proof, X=X, y=y).startswith("0 PROVED")


def test_miners(in_folder):
    pool = np.linspace(-9.0, 0.0, 300)[:, None]
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    mined = ss.mine_hard(pool, ss.SafeClassifier(alpha=0.01).fit(X, y), X, y, label=0)
    proof = mined.write_proof("p.npz", X, y, pool)
    labels = np.concatenate([y, np.zeros(300, dtype=int)])
    assert verified(proof, X=np.vstack([X, pool]), y=labels).startswith("0 PROVED")
    assert (proof.kept[4:] == mined.kept).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_precomputed_kernels(rng, in_folder, loss, intercept):
    X, y = samples(rng, n=80)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 10)
    model = ss.SafeKernelClassifier(
        kernel="precomputed", alpha=1e-3, loss=loss, fit_intercept=intercept
    )
    proof = model.fit(K, y).write_proof("p.npz", K, y)
    shifted = K + (model.kernel_shift_ or 0.0) * np.eye(80)
    said = verified(proof, X=shifted, y=y)
    assert said.startswith("0 PROVED") and "assumed: X is a kernel matrix" in said
    assert (proof.kept & ~model.kept_).sum() <= 1


def test_what_cannot_be_stated_is_refused_by_name(rng, in_folder):
    X, y = samples(rng, "regression", n=20)
    numeric = ss.losses.from_function(lambda r: np.sqrt(1 + r * r) - 1, task="regression")
    with pytest.raises(ValueError, match="NumericResidual is no loss in closed form"):
        ss.screen(X, y, loss=numeric, alpha=0.1).write_proof("p.npz")
    model = ss.SafeKernelRegressor(alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="fit with kernel='precomputed'"):
        model.write_proof("p.npz", X, y)


def test_data_that_changed_are_refused(rng, in_folder):
    X, y = samples(rng)
    result = ss.screen(X, y, alpha=0.01)
    X[0] += 1.0
    with pytest.raises(RuntimeError, match="changed after this result was made"):
        result.write_proof("p.npz")


# --- commitments --------------------------------------------------------------------------------


def test_other_data_are_noticed(rng, in_folder):
    X, y = samples(rng)
    proof = ss.screen(X, y, alpha=0.01).write_proof("p.npz")
    flat = int(np.flatnonzero(~proof.kept)[0])
    moved = X.copy()
    moved[flat] *= 1.0 + 1e-9  # hardly: all claims are still true
    assert "not those of the root" in verified(proof, X=moved, y=y)
    assert run(str(proof.path), "data.npz").startswith("0 PROVED")
    assert verified(proof, X=np.where(X == 0, -0.0, X), y=y).startswith("0 PROVED")


def test_receipts(rng, in_folder):
    X, y = samples(rng, n=13)
    proof = ss.screen(X, y, alpha=0.05).write_proof("p.npz")
    for i in range(13):
        receipt = json.loads(json.dumps(proof.receipt(i)))
        row = {"features": X[i].tolist(), "target": y[i]}
        assert safesift_receipt.verify(receipt, row, proof.root) == proof.verdicts[i].tolist()
        for key, wrong in (("target", "maybe"), ("weight", 2.0), ("features", (X[i] + 1).tolist())):
            with pytest.raises(checker.Unproved, match="not in the data"):
                safesift_receipt.verify(receipt, row | {key: wrong})
        with pytest.raises(checker.Unproved, match="something else"):
            safesift_receipt.verify(receipt | {"verdicts": [3]}, row)
        assert all(str(value) not in json.dumps(receipt) for value in X[(i + 1) % 13])
    with pytest.raises(IndexError):
        proof.receipt(13)


def test_receipts_as_a_program(rng, in_folder, capsys):
    X, y = samples(rng, n=13)
    proof = ss.screen(X, y, alpha=0.05).write_proof("p.npz")
    Path("r.json").write_text(json.dumps(proof.receipt(2)))
    Path("row.json").write_text(json.dumps({"features": X[2].tolist(), "target": y[2]}))
    assert safesift_receipt.main(["r.json", "row.json", "--root", proof.root]) == 0
    out = capsys.readouterr().out
    assert "the statement, give --statement" in out and "the root" not in out
    assert safesift_receipt.main(["r.json", "row.json", "--root", "00"]) == 1
    assert safesift_receipt.main(["row.json", "row.json"]) == 2


def test_deletions(rng, in_folder):
    X, y = samples(rng)
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=0.01)).fit(X[:100], y[:100])
    before = tracker.write_proof("before.npz")
    gone = np.array([3, 17, 90])
    after = tracker.update(remove=gone).write_proof("after.npz", before=before, removed=gone)
    assert after.statement["root_before"] == before.root
    assert verified(after, X=tracker.X_, y=tracker.y_).startswith("0 PROVED")
    tracker.update(remove=[5], add=(X[100:], y[100:]))
    last = tracker.write_proof("last.npz", before=after, removed=[5])
    assert verified(last, X=tracker.X_, y=tracker.y_).startswith("0 PROVED")
    # one more is missing than is said
    wrong = tracker.update(remove=[7, 8]).write_proof("wrong.npz", before=last, removed=[7, 8])
    with np.load("wrong.npz") as arrays:
        parts = dict(arrays)
    parts |= {"removed": parts["removed"][:1], "removed_leaves": parts["removed_leaves"][:32]}
    np.savez("less.npz", **parts)
    np.savez("data.npz", X=tracker.X_, y=tracker.y_)
    said = run("less.npz", "data.npz", "--seed", "wrong.npz.seed")
    assert "more or less is missing than was removed" in said
    assert verified(wrong, X=tracker.X_, y=tracker.y_).startswith("0 PROVED")


# --- hostile files ------------------------------------------------------------------------------


@pytest.fixture
def honest(rng, in_folder):
    X, y = samples(rng, n=40, p=2)
    ss.screen(X, y, penalty="l1", alpha=0.05).write_proof("p.npz")
    np.savez("data.npz", X=X, y=y)
    assert run("p.npz", "data.npz").startswith("0")
    with np.load("p.npz") as arrays:
        return dict(arrays)


def stated(arrays, change) -> None:
    statement = json.loads(arrays["statement"].tobytes())
    change(statement)
    text = json.dumps(statement).encode()
    np.savez("q.npz", **(arrays | {"statement": np.frombuffer(text, dtype=np.uint8)}))


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda s: s.update(more=1), 2),
        (lambda s: s.pop("alpha"), 2),
        (lambda s: s.update(alpha=float("nan")), 2),
        (lambda s: s.update(alpha=-1.0), 1),
        (lambda s: s.update(alpha="0.05"), 2),
        (lambda s: s.update(intercept=1), 2),
        (lambda s: s.update(n_samples=10**12), 2),
        (lambda s: s.update(n_features=3), 2),
        (lambda s: s.update(format="safesift-proof 1"), 2),
        (lambda s: s["loss"].update(name="made up"), 2),
        (lambda s: s["loss"].update(factor=0.0), 1),
        (lambda s: s["loss"].update(mu=1e400), 2),
        (lambda s: s["penalty"].update(radius=1.0), 2),
        (lambda s: s.pop("root_before"), 2),
        (lambda s: s.update(gaps=[float("inf")]), 2),
        (lambda s: s.update(gaps=[1e-30]), 1),
        (lambda s: s.update(rules=[[]]), 1),
        (lambda s: s.update(rules=[None]), 2),
        (lambda s: s.update(rules=["ball"]), 2),
        (lambda s: s["rules"][0].insert(0, "ball"), 1),
        (lambda s: s["gaps"].append(1.0), 2),
        (lambda s: s.update(rules=[s["rules"][0] * 200]), 2),
        (lambda s: s["rules"][0].append("ball"), 2),
        (lambda s: s["rules"][0].append("believe"), 2),
        (lambda s: s.update(labels=["no", "maybe"]), 2),
        (lambda s: s.update(target=["../y"]), 2),
        (lambda s: s.update(transform=[["believe", [1.0, 1.0]]]), 2),
        (lambda s: s.update(labels=["yes", "yes"]), 2),
        (lambda s: s.update(gaps=s["gaps"] * 20_000, rules=s["rules"] * 20_000), 2),
    ],
)
def test_statements_that_are_none(honest, change, status):
    stated(honest, change)
    said = run("q.npz", "data.npz")
    assert said.startswith(f"{status} NOT"), said


def test_archives_that_are_none(honest, in_folder):
    whole = Path("p.npz").read_bytes()
    for name, content in {
        "truncated": whole[: len(whole) // 2], "empty": b"", "text": b"hello", "tail": whole[100:],
    }.items():  # fmt: skip
        Path(f"{name}.npz").write_bytes(content)
        assert run(f"{name}.npz", "data.npz").startswith("2 NOT READABLE"), name
    np.savez_compressed("packed.npz", **honest)
    assert "compressed" in run("packed.npz", "data.npz")
    np.savez("types.npz", **(honest | {"numbers": honest["numbers"].astype(np.float32)}))
    assert "other types" in run("types.npz", "data.npz")
    for name, status in (("numbers", ("1", "2")), ("verdicts", "2")):
        np.savez("shapes.npz", **(honest | {name: honest[name][:-1]}))
        assert run("shapes.npz", "data.npz").startswith(status), name
        np.savez("shapes.npz", **(honest | {name: np.append(honest[name], honest[name][:1])}))
        assert run("shapes.npz", "data.npz").startswith(status), name
        np.savez("shapes.npz", **(honest | {name: honest[name][:, None]}))
        assert run("shapes.npz", "data.npz").startswith("2"), name
    np.savez("more.npz", **honest, surprise=np.zeros(3))
    assert "other arrays" in run("more.npz", "data.npz")
    np.savez("nan.npz", **(honest | {"numbers": honest["numbers"] * np.nan}))
    assert run("nan.npz", "data.npz").startswith("2")
    with (
        zipfile.ZipFile("twice.npz", "w") as archive,
        zipfile.ZipFile("p.npz") as source,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        for member in (*source.namelist(), "numbers.npy"):
            archive.writestr(member, source.read(member))
    assert "two of one name" in run("twice.npz", "data.npz")
    objects = io.BytesIO()
    np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile("objects.npz", "w") as archive:
        archive.writestr("statement.npy", objects.getvalue())
    assert run("objects.npz", "data.npz").startswith("2")
    assert run("nowhere.npz", "data.npz").startswith("2")


def test_a_bomb_is_not_unpacked(in_folder, honest):
    with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("statement.npy", b"\0" * 300_000_000)
    np.savez("data.npz", X=np.zeros((2, 1)), y=[0, 1])
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9)); "
    code = limit + "import sys; sys.path.insert(0, sys.argv.pop(1)); import safesift_check as c; "
    command = [
        sys.executable,
        "-c",
        code + "sys.exit(c.main())",
        str(CHECK),
        "bomb.npz",
        "data.npz",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    )
    assert done.returncode == 2 and "compressed" in done.stdout, done.stdout + done.stderr


def test_corrupted_bytes(honest, in_folder):
    from tests.laws.proof_corruption import corrupt

    counts = corrupt("p.npz", "data.npz", 1000, seed=1)
    assert sum(counts.values()) == 1000 and set(counts) <= {0, 1, 2}
    assert counts[2] > 100


def test_expectations(honest):
    assert run(
        "p.npz", "data.npz", "--expect", "alpha=0.05,loss=squared_hinge,penalty=l1"
    ).startswith("0")
    assert run("p.npz", "data.npz", "--expect", "gap=1e-3").startswith("0")
    assert run("p.npz", "data.npz", "--expect", "alpha=0.06").startswith("1 NOT PROVED: alpha is")
    assert run("p.npz", "data.npz", "--expect", "colour=red").startswith("2")
    for wish in ("intercept=true", "intercept=True", "kernel=false", "n_samples=40", "mu=0"):
        assert run("p.npz", "data.npz", "--expect", wish).startswith("0"), wish
    said = run("p.npz", "data.npz", "--expect", "intercept=false")
    assert said.startswith("1 NOT PROVED: intercept is true and not false"), said
    for wish in (
        "transform=[]",
        "weight=null",
        'target=["y"],features=null',
        'labels=["no", "yes"]',
    ):
        assert run("p.npz", "data.npz", "--expect", wish).startswith("0"), wish
    for wish in (
        "root=00",
        "transform=[1]",
        "weight=w",
        'target=["z"]',
        "labels=[]",
        "alpha=0.05,mu=1",
    ):
        assert run("p.npz", "data.npz", "--expect", wish).startswith("1"), wish
    for wish in ("colour=red", "alpha", "=0.05", "name=l1", "steps=1", "parts=[]"):
        said = run("p.npz", "data.npz", "--expect", wish)
        assert said.startswith("2") and "give NAME=VALUE" in said and "n_samples" in said, said
