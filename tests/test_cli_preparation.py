"""Features that are scaled, encoded and filled in: as scikit-learn does it, and on record."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

import safesift as ss
from safesift.faces import files
from safesift.faces.files.preparation import SCALERS, STRATEGIES, Preparation
from tests.cli_files import assert_refused, run

N = 90
CATEGORIES = ["sex", "port", "deck"]
NUMBERS = ["age", "fare", "class"]
BASICS = ("--target", "survived", "--ignore", "name,id")
SCALER = {"standard": StandardScaler, "maxabs": MaxAbsScaler, "minmax": MinMaxScaler}


def passengers():
    """A table as people have them: text, numbers, gaps, a column of names."""
    rng = np.random.default_rng(0)
    age = np.where(rng.random(N) < 0.2, np.nan, rng.gamma(5, 6, N).round(1))
    sex, fare = rng.choice(["male", "female"], N), rng.lognormal(2, 1, N).round(2)
    likely = 2.0 * (sex == "female") + 0.3 * np.log(fare) + 0.3 * rng.normal(size=N)
    return pd.DataFrame(
        {
            "id": [f"p{i:03d}" for i in range(N)],
            "survived": np.where(likely > 1.7, "yes", "no"),
            "name": [f'Doe, "{i}"' for i in range(N)],
            "sex": sex,
            "age": age,
            "fare": fare,
            "class": rng.choice([1, 2, 3], N),
            "port": rng.choice(["S", "C", "Q"], N),
            "deck": np.where(rng.random(N) < 0.5, None, rng.choice(list("ABC"), N)),
        }
    )


def write(folder):
    table = passengers()
    table.to_csv(folder / "data.csv", index=False)
    table.to_parquet(folder / "data.parquet", index=False)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path)


def by_sklearn(scale, impute):
    """What somebody would write in Python."""
    scaler = [] if scale == "none" else [SCALER[scale]()]
    filled = [SimpleImputer(strategy=impute)] if impute == "most_frequent" else []
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy=impute), *scaler), NUMBERS),
            ("categories", make_pipeline(*filled, OneHotEncoder()), CATEGORIES),
        ],
        verbose_feature_names_out=False,
    )


def features():
    """With NaN where a category is missing, as pandas reads it from a file."""
    table = passengers()
    return table.assign(deck=table["deck"].where(table["deck"].notna(), np.nan).astype(object))


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def read(path, ignore=("name", "id"), **columns):
    columns = files.Columns(target="survived", may_miss=True, ignore=ignore, **columns)
    return files.read(path, columns)


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
@pytest.mark.parametrize("scale", SCALERS)
@pytest.mark.parametrize("impute", STRATEGIES)
def test_as_a_column_transformer_does(folder, name, scale, impute):
    table = read(folder / name, one_hot="text")
    prepared = Preparation(scale, impute).of(table.samples)
    expected = by_sklearn(scale, impute)
    X = expected.fit_transform(features())
    np.testing.assert_allclose(dense(prepared.X), dense(X), rtol=1e-13, atol=1e-13)
    assert list(prepared.names) == expected.get_feature_names_out().tolist()


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_numbers_may_be_categories(folder, name):
    table = read(
        folder / name, one_hot=("class", "sex"), features=("age", "sex", "class"), ignore=()
    )
    prepared = Preparation("standard", "mean").of(table.samples)
    assert prepared.names == ("age", "sex_female", "sex_male", "class_1", "class_2", "class_3")
    expected = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
            ("categories", OneHotEncoder(), ["sex", "class"]),
        ]
    )
    np.testing.assert_allclose(dense(prepared.X), dense(expected.fit_transform(features())))


def redone(record, table):
    """From the record alone: transformers that were never fitted to anything."""
    blocks = []
    for part in record:
        values = table[part["columns"]].to_numpy(
            dtype=object if part["steps"][-1]["transformer"] == "OneHotEncoder" else float
        )
        for step in part["steps"]:
            learned = step["learned"]
            if step["transformer"] == "SimpleImputer":
                values = np.where(pd.isna(values), learned["statistics_"], values)
            elif step["transformer"] == "StandardScaler":
                values = (values - learned["mean_"]) / learned["scale_"]
            elif step["transformer"] == "MaxAbsScaler":
                values = values / learned["scale_"]
            elif step["transformer"] == "MinMaxScaler":
                values = values * learned["scale_"] + learned["min_"]
            else:
                values = np.column_stack(
                    [
                        [
                            (pd.isna(cell) if category is None else cell == category)
                            for cell in column
                        ]
                        for column, categories in zip(values.T, learned["categories_"], strict=True)
                        for category in categories
                    ]
                )
        blocks.append(np.asarray(values, dtype=float))
    return np.hstack(blocks)


@pytest.mark.parametrize("scale", SCALERS)
@pytest.mark.parametrize("impute", STRATEGIES)
def test_the_record_is_enough_to_do_it_again(folder, scale, impute):
    result = run("screen", folder / "data.csv", *BASICS, "--one-hot", "--impute", impute,
                 "--scale", scale, "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    X = redone(facts["preprocessing"], features())
    expected = Preparation(scale, impute).of(read(folder / "data.csv", one_hot="text").samples)
    np.testing.assert_allclose(X, dense(expected.X), rtol=1e-12, atol=1e-12)
    assert X.shape[1] == facts["n_features"] == len(facts["features"])


OPTIONS = (*BASICS, "--one-hot", "--impute", "median", "--scale", "standard", "--alpha", "0.01")


def test_the_rows_are_those_that_matter_to_the_transformed_table(folder):
    """They are written as they were; the model of them is that of all rows, after the record."""
    result = run("screen", folder / "data.csv", *OPTIONS, "-o", folder / "kept.csv")
    assert result.exit_code == 0, result.stderr
    all_rows = (folder / "data.csv").read_bytes().splitlines(keepends=True)
    kept_rows = (folder / "kept.csv").read_bytes().splitlines(keepends=True)
    assert kept_rows[0] == all_rows[0] and set(kept_rows) < set(all_rows)

    record = json.loads((folder / "kept.csv.preprocessing.json").read_text())["preprocessing"]
    table, kept = features(), pd.read_csv(folder / "kept.csv")
    X, X_kept = redone(record, table), redone(record, kept)
    found = ss.screen(X, table["survived"], alpha=0.01, random_state=0)
    assert found.kept.sum() == len(kept) < 0.8 * N
    model = {"tol": 1e-11, "fit_intercept": True}
    full = ss.SafeClassifier(alpha=0.01, **model).fit(X, table["survived"])
    part = ss.SafeClassifier(alpha=found.alpha_kept, **model).fit(X_kept, kept["survived"])
    np.testing.assert_allclose(part.coef_, full.coef_, atol=1e-5)
    # and not after transformers that were fitted to the kept rows: hence the record
    again = X_kept.copy()
    again[:, :3] = StandardScaler().fit_transform(again[:, :3])
    other = ss.SafeClassifier(alpha=found.alpha_kept, **model).fit(again, kept["survived"])
    assert np.abs(other.coef_ - full.coef_).max() > 1e-3


# --- where it is recorded -------------------------------------------------------------------------


def test_parquet_holds_the_record(folder):
    result = run(
        "screen", folder / "data.parquet", *OPTIONS, "-o", folder / "kept.parquet", "--json"
    )
    assert result.exit_code == 0, result.stderr
    before = parquet.read_schema(folder / "data.parquet").metadata
    after = parquet.read_schema(folder / "kept.parquet").metadata
    record = json.loads(after.pop(b"safesift"))
    assert after == before
    assert record["preprocessing"] == json.loads(result.stdout)["preprocessing"]
    assert sorted(os.listdir(folder)) == ["data.csv", "data.parquet", "kept.parquet"]


def test_archives_hold_the_record(tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 3)) < 0.1, np.nan, rng.normal(5, 3, (40, 3)))
    np.savez(tmp_path / "d.npz", X=X, y=rng.integers(0, 2, 40), feature_names=["a", "b", "c"])
    result = run("screen", tmp_path / "d.npz", "--impute", "mean", "--scale", "minmax",
                 "-o", tmp_path / "k.npz", "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    with np.load(tmp_path / "k.npz") as kept:
        (part,) = json.loads(str(kept["safesift"]))["preprocessing"]
        assert kept["feature_names"].tolist() == part["columns"] == ["a", "b", "c"]
    np.testing.assert_allclose(part["steps"][0]["learned"]["statistics_"], np.nanmean(X, axis=0))
    # an archive that has a record already gets a new one, or none
    again = run("screen", tmp_path / "k.npz", "--impute", "mean", "-o", tmp_path / "k2.npz")
    assert again.exit_code == 0, again.stderr
    with np.load(tmp_path / "k2.npz") as kept:
        (part,) = json.loads(str(kept["safesift"]))["preprocessing"]
    assert [step["transformer"] for step in part["steps"]] == ["SimpleImputer"]


def test_text_has_a_file_beside_it(folder):
    output, beside = folder / "kept.csv", folder / "kept.csv.preprocessing.json"
    result = run("screen", folder / "data.csv", *OPTIONS, "-o", output)
    assert beside.exists()
    words = " ".join(result.stdout.split())
    assert "do not fit them again to the kept rows" in words
    assert "preprocessing.json" in words.replace(" ", "")
    output.unlink()
    left = os.listdir(folder)
    again = run("screen", folder / "data.csv", *OPTIONS, "-o", output)
    assert_refused(again, "preprocessing.json exists already: add --overwrite", folder, left)
    plain = ("--target", "survived", "--features", "fare")
    assert run("screen", folder / "data.csv", *plain, "-o", output, "--overwrite").exit_code == 0
    assert output.exists() and not beside.exists()


def test_nothing_is_recorded_where_nothing_was_done(folder):
    for name in ("data.csv", "data.parquet"):
        output = folder / f"kept.{name.partition('.')[2]}"
        result = run("screen", folder / name, "--target", "survived", "--features", "fare",
                     "--one-hot", "-o", output, "--json")  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["preprocessing"] is None
    assert b"safesift" not in (parquet.read_schema(folder / "kept.parquet").metadata or {})
    assert not (folder / "kept.csv.preprocessing.json").exists()


# --- names ----------------------------------------------------------------------------------------


def test_json_has_labels_names_and_rows(folder):
    result = run("screen", folder / "data.csv", "--target", "survived", "--ignore", "name",
                 "--id", "id", "--rows", "--one-hot", "--impute", "mean", "--scale", "standard",
                 "--penalty", "l1", "--alpha", "0.05", "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["target"] == "survived"
    assert facts["classes"] == ["no", "yes"]
    assert facts["features"][:4] == ["age", "fare", "class", "sex_female"]
    assert {"sex_female", "deck_nan"} <= set(facts["features"])
    X = dense(
        Preparation("standard", "mean").of(read(folder / "data.csv", one_hot="text").samples).X
    )
    expected = ss.screen(X, passengers()["survived"], penalty="l1", alpha=0.05, random_state=0)
    assert facts["kept_rows"] == np.flatnonzero(expected.kept).tolist()
    assert facts["kept_ids"] == [f"p{row:03d}" for row in facts["kept_rows"]]
    zero = np.flatnonzero(expected.zero_coef)
    assert len(zero) > 0
    assert facts["zero_features"] == [facts["features"][k] for k in zero]
    assert (facts["loss"], facts["penalty"], facts["alpha"]) == ("squared_hinge", "l1", 0.05)


def test_json_of_matrices_numbers_features(tmp_path):
    lines = [f"{(-1) ** i} 1:{i % 7} 2:{i % 3} 3:0.001\n" for i in range(40)]
    (tmp_path / "d.svm").write_text("".join(lines))
    result = run("screen", tmp_path / "d.svm", "--penalty", "l1", "--alpha", "0.5", "--json")
    facts = json.loads(result.stdout)
    assert facts["features"] is None and facts["target"] is None
    assert facts["classes"] == [-1, 1]
    assert facts["zero_features"] == [0, 1, 2]
    assert "kept_rows" not in facts and "kept_ids" not in facts


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (BASICS,
         "The columns 'sex', 'port', 'deck' hold text ('male' in row 1): make categories of them "
         "with --one-hot, or leave them out with --ignore. The column 'age' has missing values "
         "(first in row 3): fill those in with --impute mean, or remove the rows."),
        ((*BASICS, "--one-hot"), "The column 'age' has missing values (first in row 3)"),
        ((*BASICS, "--one-hot", "sex,port", "--impute", "mean"), "The column 'deck' holds text"),
        ((*BASICS, "--one-hot", "sx"), "There is no column 'sx': did you mean 'sex'?"),
        ((*BASICS, "--one-hot", "survived"), "--one-hot survived: the column is not a feature."),
        ((*BASICS, "--one-hot=name"), "--one-hot name: the column is not a feature."),
        (("--target", "survived", "--features", "fare", "--id", "fare"), "it is --id"),
    ],
)  # fmt: skip
def test_refuses_in_one_line(folder, arguments, words):
    left = os.listdir(folder)
    result = run("screen", folder / "data.csv", *arguments, "-o", folder / "kept.csv")
    assert_refused(result, words, folder, left)


@pytest.mark.parametrize(
    ("name", "content", "arguments", "words"),
    [
        ("d.csv", "a,b,y\n1,,0\n2,NA,1\n", ("--target", "y", "--impute", "mean"),
         "The column 'b' holds no value at all: leave it out with --ignore."),
        ("d.csv", "a,b,y\n1,inf,0\n2,1,1\n", ("--target", "y", "--impute", "mean"),
         "The column 'b' has infinite values (first in row 1)"),
        ("d.csv", "a,y\n1,0\n2,\n", ("--target", "y", "--impute", "mean"),
         "The column 'y' has a missing value (first in row 2): fill it in, or remove the row."),
        ("d.csv", "a,w,y\n1,,0\n2,1,1\n", ("--target", "y", "--weights", "w", "--impute", "mean"),
         "The column 'w' has a missing value (first in row 1)"),
        ("d.svm", "1 1:2\n0 1:3\n", ("--scale", "standard"), "use --scale maxabs"),
        ("d.svm", "1 1:2\n0 1:3\n", ("--scale", "minmax"), "use --scale maxabs"),
        ("d.svm", "1 1:2\n0 1:3\n", ("--one-hot",), "--one-hot names a column, and svmlight"),
    ],
)  # fmt: skip
def test_refuses_tables(tmp_path, name, content, arguments, words):
    (tmp_path / name).write_text(content)
    assert_refused(run("screen", tmp_path / name, *arguments), words, tmp_path, [name])


def test_refuses_infinity_before_it_is_scaled(tmp_path):
    np.savez(tmp_path / "d.npz", X=[[1.0], [np.inf]], y=[0, 1])
    result = run("screen", tmp_path / "d.npz", "--scale", "standard")
    assert_refused(result, "There are infinite values among the features", tmp_path, ["d.npz"])


def test_names_of_rows_are_noticed(folder):
    arguments = ("--target", "survived", "--one-hot", "--impute", "mean")
    result = run("screen", folder / "data.csv", *arguments)
    text = " ".join(result.stdout.split())
    for name in ("name", "id"):
        assert f"Most rows have a category of {name!r} for themselves" in text
    assert "'sex'" not in text


def test_sparse_where_most_of_it_is_zero(tmp_path):
    rows = "".join(f"{'abcdefghij'[i % 10]}{i // 10},{i % 2}\n" for i in range(100))
    (tmp_path / "d.csv").write_text("word,y\n" + rows)
    table = files.read(tmp_path / "d.csv", files.Columns(target="y", one_hot="text"))
    assert Preparation().of(table.samples).X.format == "csr"


def test_the_choices_are_those_of_the_library():
    from safesift.cli.commands import screen

    choices = {option.name: option.type for option in screen.params}
    assert list(choices["scale"].choices) == list(SCALERS)
    assert list(choices["impute"].choices) == list(STRATEGIES)
