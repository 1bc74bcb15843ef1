"""The experiments: cells are run once, everything shown comes from the JSON, nothing is hidden."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

from safesift.cli.commands import cli
from safesift.losses import SafeLogistic
from safesift.regions import GapBall
from safesift_paper import experiments
from safesift_paper.datasets import DataUnavailableError
from safesift_paper.experiments import runner, samples
from safesift_paper.experiments.compression import _compared
from safesift_paper.experiments.liblinear import NewtonRun, alpha_of
from safesift_paper.experiments.render import section, write_page
from safesift_paper.experiments.results import Results
from safesift_paper.experiments.runner import Plan, plan_stand_ins
from safesift_paper.experiments.spec import Experiment, Finding, Protocol
from safesift_paper.experiments.stochastic import epochs_of_saga
from safesift_paper.experiments.task import Task

pytestmark = pytest.mark.slow

NAMES = experiments.NAMES


# --- runner ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Square(Protocol):
    """Squares a number; stops at `stops_at`, as an interrupted run does."""

    stops_at: int | None = None
    ran: ClassVar[list[int]] = []

    def run(self, cell, samples):
        if cell["number"] == self.stops_at:
            raise KeyboardInterrupt
        self.ran.append(cell["number"])
        return {"square": cell["number"] ** 2, "infinite": float("inf")}

    def markdown(self, experiment, records):
        return " ".join(str(record.result["square"]) for record in records)

    def __repr__(self):
        return "Square"


@pytest.fixture
def squares():
    Square.ran.clear()
    return Experiment("squares", "Squares", Square(), {"number": (1, 2, 3)})


def test_an_interrupted_run_goes_on(squares, tmp_path):
    plan = Plan(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        runner.run(replace(squares, protocol=Square(stops_at=3)), plan, lambda line: None)
    assert Square.ran == [1, 2]
    told = []
    assert runner.run(squares, plan, told.append) == []
    assert Square.ran == [1, 2, 3] and told[0] == "squares 3/3: number 3 …"
    runner.run(squares, plan, told.append)
    assert Square.ran == [1, 2, 3]
    assert section(squares, plan, tmp_path / "page.md").startswith("## Squares\n\n1 4 9\n\n")


def test_lines_say_where_they_come_from(squares, tmp_path):
    runner.run(squares, Plan(tmp_path), lambda line: None)
    line = json.loads((tmp_path / "squares.jsonl").read_text().splitlines()[0])
    assert line["cell"] == {"number": 1} and line["protocol"] == "Square"
    assert line["result"] == {"square": 1, "infinite": None}
    assert line["about"]["versions"]["numpy"] == np.__version__ and line["about"]["seconds"] >= 0


def test_a_line_that_was_cut_off_is_run_again(squares, tmp_path):
    plan = Plan(tmp_path)
    runner.run(squares, plan, lambda line: None)
    path = tmp_path / "squares.jsonl"
    path.write_text(path.read_text()[:-20])
    runner.run(squares, plan, lambda line: None)
    assert Square.ran == [1, 2, 3, 3]
    assert [json.loads(line)["cell"]["number"] for line in path.read_text().splitlines()] == [
        1, 2, 3,
    ]  # fmt: skip


def test_results_of_other_parameters_do_not_count(squares, tmp_path):
    runner.run(squares, Plan(tmp_path), lambda line: None)
    assert Results(tmp_path, "squares", "Square").records
    assert not Results(tmp_path, "squares", "Cube").records


def test_unfinished_experiments_say_so(squares, tmp_path):
    plan = Plan(tmp_path)
    assert "Not run yet." in section(squares, plan, tmp_path / "page.md")
    with pytest.raises(KeyboardInterrupt):
        runner.run(replace(squares, protocol=Square(stops_at=2)), plan, lambda line: None)
    assert "*1 of 3 cells are finished.*" in section(squares, plan, tmp_path / "page.md")


def test_stand_ins_are_asked_for_by_name():
    experiment = experiments.load("table2")
    data = {cell["data"] for cell in experiment.cells(False, {})}
    assert data == {"mnist", "svhn"}
    chosen = plan_stand_ins(("cifar10",))
    data = {cell["data"] for cell in experiment.cells(False, chosen)}
    assert data == {"mnist", "cifar10"}
    with pytest.raises(ValueError, match="--stand-in mnist is not known: choose one of cifar10"):
        plan_stand_ins(("mnist",))


def test_missing_data_do_not_stop_the_rest(monkeypatch, tmp_path):
    def only_digits(name):
        if name == "svhn":
            raise DataUnavailableError("svhn is nowhere.")
        return samples.samples("digits")

    monkeypatch.setattr(runner, "samples", only_digits)
    experiment = replace(
        experiments.load("table2"),
        grid={"data": ("svhn", "mnist"), "lambda": (1.0,), "epochs": (20,), "seed": (1,)},
    )
    missing = runner.run(experiment, Plan(tmp_path), lambda line: None)
    assert missing == [
        "svhn is nowhere. Or use --stand-in cifar10, which is then named in every output."
    ]
    assert len(Plan(tmp_path).results(experiment).records) == 1


# --- parts ----------------------------------------------------------------------------------------


def test_the_convention_of_lambda():
    """LIBLINEAR with C = 1/λ solves our problem with alpha = λ/(2n)."""
    X, _, y, _ = samples.samples("digits").split(1)
    task = Task(X, y, "squared_hinge", "l2", alpha_of(1.0, len(y)))
    solver = NewtonRun(X, y, 1.0)
    coef = solver.after(100)
    assert solver.after(200) is coef and np.abs(solver.after(2) - coef).max() > 1e-3
    np.testing.assert_allclose(coef, task.solution, atol=1e-4)
    assert task.screened(GapBall(), coef)["gap"] < 1e-8


def test_saga_gets_to_the_optimum():
    X, _, y, _ = samples.samples("digits").split(1)
    task = Task(X, y, "safe_logistic", "l1", 1e-2)

    def objective(coef):
        return SafeLogistic().value(X @ coef, y).mean() + task.alpha * np.abs(coef).sum()

    constant = objective(np.zeros(X.shape[1]))
    values = [objective(coef) for coef in epochs_of_saga(task, 300, seed=0)]
    assert values[0] == pytest.approx(constant)
    assert values[-1] < objective(task.solution) + 1e-3 * constant
    assert values[10] < values[1] < values[0]


def test_nothing_certified_is_wrong():
    data = samples.samples("digits")
    for name in ("table1", "table2"):
        experiment = experiments.load(name)
        cell = next(iter(experiment.cells(True, {})))
        result = experiment.protocol.run(cell, data)
        for outcomes in result.get("after", {"": result}).values():
            for outcome in outcomes.values():
                if isinstance(outcome, dict) and outcome["certified"]:
                    assert outcome["wrong"] == 0 and outcome["screened"] <= result["limit"] + 0.1


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    outcome = CliRunner().invoke(cli, ["reproduce", *NAMES, "--quick", "--out", str(out)])
    assert outcome.exit_code == 0, outcome.output
    return out


def test_quick(quick):
    page = (quick / "reproduction.md").read_text()
    for name in NAMES:
        assert f"## {experiments.load(name).title}" in page
        if name.startswith("figure"):
            assert (quick / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "Not run yet" not in page and "cells are finished" not in page
    assert "**a stand-in** for the paper's data" in page


def test_finished_cells_are_not_run_again(quick):
    outcome = CliRunner().invoke(cli, ["reproduce", *NAMES, "--quick", "--out", str(quick)])
    assert outcome.exit_code == 0 and "…" not in outcome.output


def test_the_page_keeps_what_was_there(quick, tmp_path):
    page = tmp_path / "page.md"
    outcome = CliRunner().invoke(
        cli, ["reproduce", "figure2", "--quick", "--out", str(quick), "--page", str(page)]
    )
    assert outcome.exit_code == 0
    # a section for each, and one for the findings
    assert page.read_text().count("\n## ") == len(NAMES) + 1


def test_findings_are_in_words(quick):
    page = (quick / "reproduction.md").read_text()
    claims = (
        "The gap ball screens at least as much as the ellipsoid",
        "l1 screening rises with the epochs (guessed radius)",
        "l1 screening falls with λ (certified)",
        "Safe logistic is as accurate as the others, to 0.5 points",
        "Screening starts after the iterate predicts well",
        "Screening saves epochs along a path (gap ball)",
        "Screening beats random deletion below 80 % (digits (for the paper's data), squared hinge",
        "Random deletion tends to do better beyond 80 %",
    )
    for claim in claims:
        # in the table at the top, and in a section
        assert f"\n| {claim}" in page and f"\n*{claim}" in page
    assert set(re.findall(r"\*: ([a-z ]+);", page)) <= {
        "confirmed", "not refuted", "in part", "refuted"
    }  # fmt: skip


def test_a_finding_needs_every_case():
    verdicts = [
        Finding.of_cases("So", cases).verdict for cases in ([True] * 3, [True, False], [False])
    ]
    assert verdicts == ["confirmed", "in part", "refuted"]


@pytest.mark.parametrize(
    ("ahead", "verdict"),
    [
        ([[0.1, 0.2], [0.2, 0.1]], "confirmed"),
        ([[0.1, -0.5], [0.2, 0.4]], "not refuted"),
        ([[0.1, -0.5], [0.2, -0.4]], "in part"),
        ([[-0.1, -0.5], [-0.2, -0.4]], "refuted"),
    ],
)
def test_a_comparison_knows_its_noise(ahead, verdict):
    assert _compared("So", np.array(ahead)).verdict == verdict


def test_the_page_may_lie_elsewhere(quick, tmp_path):
    page = tmp_path / "docs" / "page.md"
    chosen = [experiments.load("figure1")]
    write_page(chosen, Plan(quick, quick=True), page)
    (link,) = re.findall(r"!\[.*\]\((.*)\)", page.read_text())
    assert (page.parent / link).resolve() == (quick / "figure1.png").resolve()


def test_the_page_alone(tmp_path):
    outcome = CliRunner().invoke(cli, ["reproduce", "all", "--page-only", "--out", str(tmp_path)])
    assert outcome.exit_code == 0 and list(tmp_path.iterdir()) == [tmp_path / "reproduction.md"]
    assert "Not run yet." in (tmp_path / "reproduction.md").read_text()


def test_refusals(tmp_path):
    for arguments, message in (
        (["table9"], "table9 is no experiment: choose among table1, table2"),
        (["table1", "--stand-in", "mnist"], "--stand-in mnist is not known"),
    ):
        outcome = CliRunner().invoke(cli, ["reproduce", *arguments, "--out", str(tmp_path)])
        assert outcome.exit_code == 2 and message in outcome.output
    assert not list(tmp_path.iterdir())


def test_offline_says_what_to_do(tmp_path, monkeypatch):
    def nothing(name):
        raise DataUnavailableError(f"{name} is nowhere.")

    monkeypatch.setattr(runner, "samples", nothing)
    outcome = CliRunner().invoke(cli, ["reproduce", "table4", "--out", str(tmp_path)])
    assert outcome.exit_code == 1
    assert "Missing: rcv1 is nowhere. Or use --stand-in imdb" in outcome.output
