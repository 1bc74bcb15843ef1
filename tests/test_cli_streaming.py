"""Commands on files that are read a block at a time: screen, fit, predict."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import safesift as ss
from safesift import progress
from safesift.cli import console
from safesift.faces.model_files import KEYS, read_model
from tests.cli_files import assert_refused, run
from tests.test_blocks import FEATURES, N, P, samples, table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = ("--target", "label", "--weights", "w", "--ignore", "name,day")


@pytest.fixture
def folder(tmp_path):
    """Two files of five row groups, below directories that name days; and one file."""
    X, y, weights = samples()
    for day, rows in ((1, slice(0, 1600)), (2, slice(1600, N))):
        (tmp_path / "clicks" / f"day={day}").mkdir(parents=True)
        path = tmp_path / "clicks" / f"day={day}" / "a.parquet"
        pq.write_table(table(X[rows], y[rows], weights[rows]), path, row_group_size=700)
    pq.write_table(table(X, y, weights), tmp_path / "all.parquet", row_group_size=700)
    return tmp_path


def known(**parameters):
    X, y, weights = samples()
    return ss.SafeClassifier(alpha=1e-3, **parameters).fit(X, y, weights)


# --- screen -----------------------------------------------------------------------------------


def test_a_pattern_is_screened_file_by_file(folder):
    result = run("screen", folder / "clicks/**/*.parquet", *COLUMNS, "--alpha", "1e-3",
                 "--output", folder / "kept", "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    expected = known()
    assert facts["samples"] == N and facts["files"] == 2 and facts["certified"]
    assert abs(facts["kept"] - expected.kept_.sum()) <= 0.02 * N
    assert facts["kept"] + facts["dropped"] + facts["weightless"] == N
    assert facts["weightless"] == (samples()[2] == 0).sum()
    assert facts["features"] == FEATURES and facts["classes"] == ["no", "yes"]
    written = [pq.read_table(folder / f"kept/day={day}/a.parquet", partitioning=None)
               for day in (1, 2)]  # fmt: skip
    assert sum(map(len, written)) == facts["kept"]
    assert written[0].schema.names == [*FEATURES, "label", "w", "name"]
    rows = pa.concat_tables(written)
    X = np.column_stack([rows.column(name).to_numpy() for name in FEATURES])
    few = ss.SafeClassifier(alpha=facts["alpha_kept"], tol=1e-9)
    few.fit(X, rows.column("label").to_numpy(), rows.column("w").to_numpy())
    np.testing.assert_allclose(few.coef_, expected.coef_, atol=2e-3)


def test_a_directory_and_a_budget_are_streamed_too(folder):
    facts = []
    for arguments in (
        ["clicks"],
        ["all.parquet", "--memory", "5MB"],
        ["clicks", "--memory", "1 GB"],
    ):
        names = [folder / arguments[0], *arguments[1:]]
        ignore = "name,day" if arguments[0] == "clicks" else "name"
        result = run("screen", *names, "--target", "label", "--ignore", ignore, "--json")
        assert result.exit_code == 0, result.stderr
        facts.append(json.loads(result.stdout))
    assert len({one["samples"] for one in facts}) == 1
    assert facts[0]["kept"] == facts[2]["kept"]
    assert facts[0]["alpha_kept"] == pytest.approx(1e-4 * N / facts[0]["kept"], rel=0.2)


def test_files_are_compressed_file_by_file(folder):
    result = run("compress", folder / "clicks", *COLUMNS, "--alpha", "1e-3", "--keep", "20%",
                 "-o", folder / "few", "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    written = [
        pq.read_table(path, partitioning=None) for path in (folder / "few").rglob("*.parquet")
    ]
    # of the rows that have weight
    assert facts["kept"] == sum(map(len, written)) == round(0.2 * (samples()[2] > 0).sum())
    assert facts["samples"] == N and facts["alpha_kept"] > 0 and facts["classes"] == ["no", "yes"]
    said = run("compress", folder / "clicks", *COLUMNS, "--keep", "20%").stdout
    assert "Train on the kept rows" in " ".join(said.split())
    left = os.listdir(folder)
    result = run("compress", folder / "clicks", *COLUMNS, "--keep", "9", "--weights-output", "w")
    assert_refused(result, "--weights-output is for one file in memory", folder, left)


def test_it_says_what_was_kept(folder):
    result = run("screen", folder / "clicks", *COLUMNS, "--scale", "standard", "-o", folder / "k",
                 "--memory", "500 KB")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    for words in (f"of {N} rows kept", "passes", "certified: the dropped rows cannot", "(parquet)",
                  "no is -1, yes is +1", "alpha_kept = "):  # fmt: skip
        assert words in text, words
    lines = result.stderr.splitlines()
    assert len(lines) >= 2
    for number, line in enumerate(lines, start=1):
        assert line.startswith(f"screening: pass {number}: ") and line.endswith("rows/s"), line
        assert f"{N} rows in" in line
    assert "% of rows decided" in lines[-1] and "relative gap" in lines[-1]
    silent = run("screen", folder / "clicks", *COLUMNS)
    assert "is told when they are written" in " ".join(silent.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--one-hot"], "--one-hot is for one file in memory"),
        (["--impute", "mean"], "--impute is for one file in memory"),
        (["--effort", "quick"], "--effort is for one file in memory"),
        (["--proof", "p.npz"], "--proof is for one file in memory"),
        (["--scale", "minmax"], "--scale minmax is for one file in memory"),
        (["--features", "x0"], "Give --features or --ignore, not both."),
        (["--target", "lable"], "has no column 'lable'"),
        (["--ignore", "nome"], "--ignore names 'nome', and there is no such column."),
        (["--ignore", "day"], "the column 'name' of type string holds no numbers"),
        (["--memory", "much"], "--memory must be a size"),
        (["--upper", "x0"], "--upper is for intervals"),
        (["--output", "-"], "name a directory"),
        (["--output", "absent/kept"], "there is no such directory"),
        (["--alpha", "-1"], "--alpha must be positive"),
    ],
)
def test_what_is_refused(folder, arguments, words, monkeypatch):
    monkeypatch.chdir(folder)
    left = os.listdir(folder)
    result = run("screen", "clicks/**/*.parquet", *COLUMNS, *arguments)
    kept = [line for line in result.stderr.splitlines() if not line.startswith("screening: pass")]
    assert result.exit_code == 2 and len(kept) == 1 and words in kept[0], result.stderr
    assert result.stdout == "" and sorted(os.listdir(folder)) == sorted(left)


def test_what_is_not_there_or_of_several_kinds_is_refused(folder):
    left = os.listdir(folder)
    for data, words in (("no/*.parquet", "there are no such files"), (".", "there is no such")):
        result = run("screen", folder / data if data != "." else "absent.parquet", "--memory",
                     "1GB", "--target", "label")  # fmt: skip
        assert_refused(result, words, folder, left)
    (folder / "clicks" / "b.csv").write_text("x0,label\n1,2\n")
    assert_refused(run("screen", folder / "clicks", *COLUMNS), "several formats", folder, left)
    (folder / "clicks" / "b.csv").rename(folder / "clicks" / "b.txt")
    assert_refused(run("screen", folder / "clicks", *COLUMNS), "end with .txt", folder, left)
    (folder / "clicks" / "b.txt").unlink()
    assert_refused(run("screen", folder / "clicks"), "--target is missing", folder, left)
    (folder / "kept").mkdir()
    result = run("screen", folder / "clicks/**/*.parquet", *COLUMNS, "-o", folder / "kept")
    assert_refused(result, "exists already", folder, [*left, "kept"])


def test_a_missing_cell_is_named(folder):
    X, y, weights = samples()
    X[1650, 2] = np.nan
    path = folder / "clicks" / "day=2" / "a.parquet"
    pq.write_table(table(X[1600:], y[1600:], weights[1600:]), path, row_group_size=40)
    result = run("screen", folder / "clicks", *COLUMNS)
    assert result.exit_code == 2
    assert "day=2/a.parquet, row group 1: a feature is missing or infinite" in result.stderr
    assert "column 'x2'" in result.stderr and "--impute" not in result.stderr


# --- fit and predict --------------------------------------------------------------------------


def trained(folder, *arguments, data="clicks/**/*.parquet"):
    result = run("fit", folder / data, *COLUMNS[:4], *arguments, "-o", folder / "model.json")
    assert result.exit_code == 0, result.stderr
    return result


def test_a_model_is_trained_written_and_scores(folder):
    said = trained(folder, "--ignore", "name,day", "--alpha", "1e-3").stdout
    assert f"trained on {N} rows" in said
    model, expected = read_model(folder / "model.json"), known()
    np.testing.assert_allclose(model.coefficients, expected.coef_, atol=2e-3)
    assert model.labels == ["no", "yes"] and model.columns == FEATURES and model.alpha == 1e-3
    assert model.scaling is None and model.relative_gap <= 1e-6 and model.target == ["label"]
    result = run("predict", folder / "model.json", folder / "all.parquet",
                 "-o", folder / "scores.parquet")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = pq.read_table(folder / "scores.parquet")
    X, y, _ = samples()
    decisions = X @ np.array(model.coefficients[0]) + model.intercept[0]
    np.testing.assert_allclose(found.column("decision").to_numpy(), decisions, rtol=1e-12)
    predicted = found.column("prediction").to_numpy()
    assert (predicted == np.where(decisions > 0, "yes", "no")).all()
    assert f"{N} rows scored, {100 * (predicted == y).mean():.2f} % as they are" in result.stdout
    piped = run("predict", folder / "model.json", folder / "clicks")
    lines = piped.stdout.splitlines()
    assert lines[0] == '"prediction","decision"' and len(lines) == N + 1
    assert f"{N} rows scored" in piped.stderr


def test_columns_that_are_scaled_are_told_in_their_units(folder):
    trained(folder, "--ignore", "name,day", "--scale", "standard", "--alpha", "1e-3")
    model = read_model(folder / "model.json")
    X, y, weights = samples()
    s = weights / weights.sum()
    mean = s @ X
    deviation = np.sqrt(s @ (X - mean) ** 2)
    np.testing.assert_allclose(model.scaling["mean"], mean, atol=1e-12)
    expected = ss.SafeClassifier(alpha=1e-3).fit((X - mean) / deviation, y, weights)
    np.testing.assert_allclose(model.coefficients * deviation, expected.coef_, atol=2e-3)


def test_several_classes_and_numbers(folder):
    X, _, _ = samples()
    rows = {name: X[:, j] for j, name in enumerate(FEATURES)}
    rows |= {"kind": np.digitize(X[:, 0], [-0.5, 0.5]), "price": X @ np.arange(1.0, P + 1)}
    import pyarrow.csv

    pyarrow.csv.write_csv(pa.table(rows), folder / "more.csv")
    result = run("fit", folder / "more.csv", "--target", "kind", "--ignore", "price",
                 "-o", folder / "m.json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    model = read_model(folder / "m.json")
    assert model.labels == [0, 1, 2] and np.shape(model.coefficients) == (3, P)
    scored = run("predict", folder / "m.json", folder / "more.csv", "-o", folder / "s.csv")
    assert scored.exit_code == 0, scored.stderr
    found = pyarrow.csv.read_csv(folder / "s.csv")
    assert found.schema.names == ["prediction", "decision_0", "decision_1", "decision_2"]
    assert (found.column("prediction").to_numpy() == rows["kind"]).mean() > 0.8
    result = run("fit", folder / "more.csv", "--target", "price", "--ignore", "kind", "--loss",
                 "huber", "-o", folder / "n.json", "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["relative_gap"] <= 1e-6
    model = read_model(folder / "n.json")
    assert model.labels is None and model.loss["parameters"] == {"delta": 1.0}
    scored = run("predict", folder / "n.json", folder / "more.csv")
    assert scored.stdout.splitlines()[0] == '"prediction"'


def test_outputs_that_exist_or_are_of_no_kind_are_refused(folder):
    trained(folder, "--ignore", "name,day")
    left = os.listdir(folder)
    again = run("fit", folder / "all.parquet", *COLUMNS[:4], "--ignore", "name", "-o",
                folder / "model.json")  # fmt: skip
    assert_refused(again, "exists already", folder, left)
    scored = run("predict", folder / "model.json", folder / "all.parquet", "-o", folder / "s.txt")
    assert_refused(scored, "written as .csv or .parquet", folder, left)
    pq.write_table(pq.read_table(folder / "all.parquet").drop(["x1"]), folder / "few.parquet")
    scored = run("predict", folder / "model.json", folder / "few.parquet")
    assert_refused(scored, "has no column 'x1'", folder, [*left, "few.parquet"])


# --- model files that are none ----------------------------------------------------------------


def changed(key, value):
    return lambda content: content | {key: value}


def without(key):
    return lambda content: {k: v for k, v in content.items() if k != key}


BAD = {
    "unknown": (changed("pickle", "cos\nsystem"), "the key 'pickle' is not known"),
    "version": (changed("safesift_model", 2), "it has version 2, and 1 is what is read here"),
    "truth": (changed("safesift_model", True), "it has version True"),
    "none": (without("safesift_model"), "the key 'safesift_model' is missing"),
    "length": (changed("intercept", [1.0, 2.0]), "'intercept' has 2 entries, and there should"),
    "columns": (changed("columns", FEATURES[1:]), "a row of 'coefficients' has 4 entries"),
    "twice": (changed("columns", ["x0"] * P), "'columns' has a name twice"),
    "text": (changed("coefficients", [["1"] * P]), "a row of 'coefficients' contains '1'"),
    "true": (changed("intercept", [True]), "'intercept' contains True"),
    "huge": (changed("intercept", [10**400]), "'intercept' contains 1000"),
    "shape": (changed("coefficients", 3), "'coefficients' must be a list"),
    "labels": (changed("labels", ["no"]), "'labels' must be two or more, and different"),
    "mixed": (changed("labels", ["no", 1]), "'labels' must be text, or numbers"),
    "nested": (changed("labels", [["no"], ["yes"]]), "'labels' must be text, or numbers"),
    "numbers": (changed("labels", None), "'labels' do not go with the loss squared_hinge"),
    "alpha": (changed("alpha", 0), "'alpha' contains 0"),
    "gap": (changed("gap", [-1e-9]), "'gap' contains -1e-09"),
    "roles": (changed("target", ["x0"]), "'target' is one of the 'columns'"),
    "loss": (changed("loss", {"name": "hing", "parameters": {}}), "'hing', which is not known"),
    "listed": (changed("loss", {"name": [], "parameters": {}}), "which is not known"),
    "parts": (changed("penalty", {"name": "l2"}), "'penalty' must have 'name' and 'parameters'"),
    "given": (changed("penalty", {"name": "l2", "parameters": {"radius": 1}}), "does not have"),
    "scaling": (changed("scaling", {"mean": [0.0] * P}), "'scaling' must be null, or have 'mean'"),
    "zero": (
        changed("scaling", {"mean": [0.0] * P, "deviation": [0.0] * P}),
        "'deviation' contains 0.0",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    X, y, weights = samples()
    pq.write_table(table(X, y, weights), folder / "all.parquet")
    result = run("fit", folder / "all.parquet", *COLUMNS[:4], "--ignore", "name",
                 "-o", folder / "model.json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    return json.loads((folder / "model.json").read_text())


@pytest.mark.parametrize("name", [*BAD, *(f"without {key}" for key in KEYS)])
def test_malformed_models_are_refused_by_name(name, content, tmp_path):
    change, words = BAD.get(name) or (without(name[8:]), f"the key '{name[8:]}' is missing")
    (tmp_path / "m.json").write_text(json.dumps(change(content)))
    result = run("predict", tmp_path / "m.json", "none.parquet")
    assert_refused(result, words, tmp_path, ["m.json"])
    assert "m.json is no model of this version" in result.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2", "is no JSON"),
        ("", "is no JSON"),
        ("[]", "the key 'safesift_model' is missing"),
        ('{"safesift_model": 1, "safesift_model": 1}', "'safesift_model' is there twice"),
        ('{"safesift_model": 1, "gap": NaN}', "it contains NaN"),
        ('{"safesift_model": 1, "gap": -Infinity}', "it contains -Infinity"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_what_is_no_json_is_refused(text, words, tmp_path):
    (tmp_path / "m.json").write_text(text)
    assert_refused(run("predict", tmp_path / "m.json", "a.parquet"), words, tmp_path, ["m.json"])


def test_infinity_by_overflow_is_refused(content, tmp_path):
    text = json.dumps(content | {"alpha": 123456.5}).replace("123456.5", "1e999")
    (tmp_path / "m.json").write_text(text)
    assert_refused(run("predict", tmp_path / "m.json", "a"), "'alpha' contains inf", tmp_path,
                   ["m.json"])  # fmt: skip


# --- progress ---------------------------------------------------------------------------------


def test_a_bar_over_passes_and_blocks(monkeypatch, capsys):
    monkeypatch.setattr(console, "_is_terminal", lambda: True)
    monkeypatch.setattr(console, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "200")
    import time

    with console.passes("screening"):
        progress.report("pass 1: what there is", 1, 50)
        for rows in (100, 300, 600):
            progress.report_within("pass 2", rows, 1000)
            time.sleep(0.15)
        progress.report("pass 2: relative gap 1.0e-03, 97.0 % of rows decided", 2, 50)
        progress.report_within("pass 3", 10, 1000)
        time.sleep(0.3)
    shown = capsys.readouterr().err
    for words in ("screening: pass 2", "rows/s", "screening: pass 3", "97.0 % of rows decided"):
        assert words in shown, words


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_memory_does_not_grow_with_the_files(tmp_path):
    """80 MB of rows are screened and written within a budget of 40, and what belongs to it."""
    script = """
import json, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from safesift.arithmetic import tally
from safesift.__main__ import main

def anonymous():
    fields = dict(line.split(":") for line in open("/proc/self/status"))
    return 1024 * int(fields["RssAnon"].split()[0])

folder, n, p = sys.argv[1], 20_000, 20
sizes = {}
for which, files in (("few", 2), ("many", 50)):
    import os
    os.mkdir(f"{folder}/{which}")
    for k in range(files):
        rng = np.random.default_rng(k)
        X = rng.standard_normal((n, p), dtype=np.float32)
        columns = {f"x{j}": X[:, j] for j in range(p)}
        columns["label"] = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(n) > 0
        pq.write_table(pa.table(columns), f"{folder}/{which}/{k:02d}.parquet")
    sys.argv = ["safesift", "screen", f"{folder}/{which}/*.parquet", "--target", "label",
                "--memory", "40MB", "-o", f"{folder}/kept-{which}", "-j", "1", "--json"]
    peak = [0]
    whole = tally.count
    def count(rows, peak=peak):
        peak[0] = max(peak[0], anonymous())
        return whole(rows)
    import safesift.design.block_source as source
    source.tally.count = count
    try:
        main()
    except SystemExit as end:
        assert not end.code
    source.tally.count = whole
    sizes[which] = peak[0]
print(json.dumps(sizes))
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True,
                          text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    sizes = json.loads(done.stdout.splitlines()[-1])
    assert sizes["many"] - sizes["few"] < 45e6
    assert len(os.listdir(tmp_path / "kept-many")) == 51
