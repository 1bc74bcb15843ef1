"""What goes wrong in a first hour is said in a sentence that helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import safesift as ss
from safesift.cli.commands import cli
from safesift.cli.words import in_options

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LABELS = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
CANCER = load_breast_cancer(as_frame=True)
TAKERS = {
    "screen": ss.screen(X, LABELS, alpha=1e-2),
    "screen_range": ss.screen_range(X, LABELS, alpha_range=(1e-2, 1.1e-2)),
    "compress": ss.compress(X, LABELS, n_keep=0.5),
}


@pytest.mark.parametrize("result", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize("n_rows", [5, 61, 1000])
@pytest.mark.parametrize("kind", [np.asarray, list, pd.DataFrame, sparse.csr_matrix])
def test_rows_of_another_table_are_not_taken(result: Any, n_rows: int, kind: Any) -> None:
    """In a longer table the same numbers are other rows, and nobody would notice."""
    with pytest.raises(ValueError, match=f"argument 2 of take has {n_rows} rows, but 60 samples"):
        result.take(X, kind(np.zeros((n_rows, 2))))


READ = {
    "screen": ss.screen,
    "screen_range": lambda X, y: ss.screen_range(X, y, alpha_range=(1e-3, 1e-2)),
    "safe_path": ss.safe_path,
    "safe_kernel_path": lambda X, y: ss.safe_kernel_path(X, y, alphas=[0.1]),
    "compress": lambda X, y: ss.compress(X, y, n_keep=0.1),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize("kind", ["float64", "Float64", "polars"])
def test_the_column_of_a_missing_number_is_named(read: Callable, kind: str) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[7, "b"] = np.nan
    table: Any = pl.from_pandas(frame) if kind == "polars" else frame.astype(kind)
    with pytest.raises(ValueError, match="first in row 7, column 'b'"):
        read(table, LABELS)


MESSAGES = {
    "no y": (lambda: ss.screen(X, None), "y is None: pass one entry per sample"),
    "mixed labels": (
        lambda: ss.screen(X, np.array([0, "b"] * 30, dtype=object)),
        r"y mixes labels of different types \(int, str\): make all of them strings",
    ),
    "a loss for numbers": (
        lambda: ss.SafeClassifier("squared").fit(X, LABELS),
        "loss='squared' is not a loss for labels: use one of hinge",
    ),
    "a loss for labels": (
        lambda: ss.SafeRegressor("hinge").fit(X, LABELS),
        "loss='hinge' is not a loss for numbers: use one of squared",
    ),
    "no solver": (
        lambda: ss.SafeClassifier(solver="liblinear").fit(X, LABELS),
        "solver='liblinear' is not known: choose one of auto",
    ),
    "no kernel": (
        lambda: ss.SafeKernelClassifier(kernel="gauss").fit(X, LABELS),
        "kernel='gauss' is not known: choose one of cosine.*, or a function",
    ),
    "capitals": (
        lambda: ss.SafeKernelClassifier(kernel="RBF").fit(X, LABELS),
        "kernel='RBF' is not known: did you mean 'rbf'",
    ),
    "gamma": (
        lambda: ss.SafeKernelClassifier(gamma="big").fit(X, LABELS),
        "gamma must be 'scale', 'auto' or a number, got 'big'",
    ),
    "three classes": (
        lambda: ss.safe_path(X, np.arange(60) % 3),
        "y has 3 classes, and two are needed here: pass y == label",
    ),
    "no mu": (
        lambda: ss.mu_for_fraction(X, LABELS, loss="logistic"),
        "however large mu is: use another omega",
    ),
}


@pytest.mark.parametrize(("call", "message"), MESSAGES.values(), ids=MESSAGES)
def test_messages(call: Callable, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_losses_are_drawn_by_their_names() -> None:
    pytest.importorskip("matplotlib")
    axes = ss.plot_losses(["hinge", ss.losses.SquaredHinge()])
    assert [line.get_label() for line in axes.get_lines()[:2]] == ["hinge", "SquaredHinge(mu=0.0)"]
    ss.plot_losses("hinge")


# --- results --------------------------------------------------------------------------------------


def test_under_a_constraint_the_radius_is_told_and_no_alpha() -> None:
    result = ss.screen(X, LABELS, penalty="l2_ball")
    assert "L2Ball(radius=1.0)" in repr(result) and "alpha" not in repr(result)


def test_a_part_says_how_many_samples_it_keeps() -> None:
    result = ss.screen(X, np.arange(60) % 3)
    assert all(f"{part.kept.sum()} of 60 samples kept" in repr(part) for part in result.parts)


def test_reasons_name_what_helps() -> None:
    """Each is followed, and helps."""
    table, y = CANCER.data, CANCER.target
    scaled = scale(table)
    raw = ss.screen(table, y, loss="hinge")
    assert "scale the columns (StandardScaler), ask for a smaller tol" in raw.reason
    assert ss.screen(scaled, y, loss="hinge").kept.sum() < 100 < raw.kept.sum()
    ball = ss.screen(scaled, y, penalty="l2_ball")
    assert "a constraint adds no curvature" in ball.reason and "tol" not in ball.reason
    assert "--penalty l2, l1 or elastic_net" in in_options(ball.reason)
    assert ss.screen(scaled, y, penalty="l2").kept.sum() < 100 < ball.kept.sum()
    model = ss.screen(scaled, y).to_estimator()
    without = ss.screen(scaled, y, coef=model.coef_)
    assert "pass the intercept that goes with coef" in without.reason
    both = ss.screen(scaled, y, coef=model.coef_, intercept=model.intercept_)
    assert both.kept.sum() < 100 < without.kept.sum()


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["10%", "5%"])
def test_compressing_recommends_weights_where_they_help(tmp_path: Any, keep: str) -> None:
    path = tmp_path / "cancer.csv"
    CANCER.frame.to_csv(path, index=False)
    call = ["compress", str(path), "--target", "target", "--scale", "standard", "--keep", keep]
    done = CliRunner().invoke(cli, [*call, "--output", str(tmp_path / "small.csv")])
    assert done.exit_code == 0, done.output
    assert ("certified" in done.output) == (keep == "10%")
    assert ("comes closer" in done.output) == (keep == "5%")


def test_owners_of_a_parameter_are_a_list(tmp_path: Any) -> None:
    path = tmp_path / "cancer.csv"
    CANCER.frame.to_csv(path, index=False)
    done = CliRunner().invoke(cli, ["screen", str(path), "--target", "target", "--epsilon", "5"])
    assert done.exit_code == 2
    assert "epsilon_insensitive, smoothed_epsilon_insensitive and squared_" in done.output
