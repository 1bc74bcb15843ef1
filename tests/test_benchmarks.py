"""The benchmarks run, and the peers minimise the objective that they are timed on."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """Imports a module of the benchmarks, which are scripts and not a package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("peer", "loss", "penalty"),
    [
        ("LIBLINEAR dual", "squared_hinge", "l2"),
        ("LIBLINEAR primal", "squared_hinge", "l2"),
        ("LIBLINEAR primal", "squared_hinge", "l1"),
        ("LIBLINEAR dual", "squared_epsilon_insensitive", "l2"),
        ("LIBLINEAR primal", "squared_epsilon_insensitive", "l2"),
        ("cyanure", "squared_hinge", "l2"),
        ("cyanure", "squared_hinge", "l1"),
        ("cyanure", "safe_logistic", "l1"),
    ],
)
def test_peers_minimise_our_objective(benchmark, peer, loss, penalty, sparse):
    """With a wrong C, or a ½ too many, the gap would not fall; the second alpha starts warm."""
    peers, tasks = benchmark("peers"), benchmark("tasks")
    entry, task = peers.PEERS[peer], tasks.Task(loss, penalty)
    if not entry.kind.installed():
        pytest.skip(f"{entry.kind.package} is not installed: pip install {entry.kind.package}")
    X, y = benchmark("datasets").synthetic()
    X, y = X[:500], y[:500] if "hinge" in loss or "logistic" in loss else X[:500].sum(axis=1)
    solver = entry.make(task, threads=1)
    solver.prepare(peers.stored(X, solver.storages[sparse]), y)
    evaluator, answer = tasks.Evaluator(X, y, task), None
    for alpha in (1e-2, 3e-3):
        answer = solver.solve(alpha, 1e-8, answer)
        assert answer.coef.any()
        assert evaluator.measure(answer.coef, alpha).gap < 1e-6


def test_excess_and_gap_of_a_kinked_loss_know_the_floor(benchmark):
    """At the optimum of a hinge its slopes say little, a certified lower bound everything."""
    tasks = benchmark("tasks")
    X, y = benchmark("datasets").synthetic()
    evaluator = tasks.Evaluator(X, y, tasks.Task("hinge", "l2"))
    coef = np.zeros(X.shape[1])
    alone = evaluator.measure(coef, 1e-2)
    floor = evaluator.floor(coef, 1e-2, gap=0.25)
    helped = evaluator.measure(coef, 1e-2, floor)
    assert alone.gap > 0.25 * (1 + 1e-6)
    assert helped.gap == helped.excess == pytest.approx(0.25)


def test_a_stage_that_was_killed_is_a_lower_bound(benchmark):
    runner, runs = benchmark("runner"), benchmark("runs")
    stage = runs.Stage("path", (1e-3, 1e-4), limit=7.0, floors=(0.0, 0.0))
    point = {"event": "point", "stage": "path", "alpha": 1e-3, "tol": 0.1, "seconds": 2.0,
             "gap": 1e-7, "excess": 1e-8, "reached": True, "seconds_by_excess": 1.0}  # fmt: skip
    killed = runner.stage_outcome([point], stage)
    assert not killed.reached and killed.seconds == 7.0
    late = runner.stage_outcome([point, {"event": "late", "stage": "path"}], stage)
    assert not late.reached and late.seconds == 2.0
    times = [{"event": "time", "stage": "path", "seconds": s} for s in (3.0, 5.0, 4.0)]
    done = runner.stage_outcome([point, point, *times], stage)
    assert done.reached and done.seconds == 4.0 and done.seconds_by_excess == 2.0


def test_tracking_is_measured_on_the_same_windows(benchmark):
    """Everybody has the gap that is asked for in every window, and the tracker its own record."""
    tracking = benchmark("tracking")
    X, y = benchmark("datasets").synthetic()
    windows = tracking.windows(700, 500, 50)
    facts = tracking.summary([list(tracking.race(X[:700], y[:700], windows))])
    assert facts["steps"] == 4 and len(facts["rows_read"]) == 4
    assert max(facts["largest_gaps"].values()) <= tracking.GAP
    assert facts["refitted"] == 0 and facts["ratios"][tracking.TRACKER] == 1.0
    assert tracking.COLD in facts["cpu_ratios"]


def test_the_race_from_start_to_end():
    """Made-up data, a few peers, one process each."""
    ended = subprocess.run(
        [sys.executable, str(FOLDER / "paths_vs_peers.py"), "--quick", "--threads", "1",
         "--only", "synthetic/squared_hinge-l2"],
        capture_output=True, text=True, check=False,
        env={name: v for name, v in os.environ.items() if name != "SAFESIFT_DATA"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    for words in ("safesift", "LIBLINEAR dual", "LIBLINEAR primal", "best peer", "Single fits"):
        assert words in ended.stdout
    assert "Error" not in ended.stdout


def test_kernel_peers_minimise_our_objective(benchmark, monkeypatch):
    """SVC's C belongs to our alpha, and its objective is evaluated as ours is."""
    kernels = benchmark("kernels_vs_svc")
    monkeypatch.setattr(kernels, "C_VALUES", np.array([0.5, 5.0]))
    X, y = benchmark("datasets").synthetic()
    X, y = X[:300], np.where(y[:300] > 0, 1.0, -1.0)
    ours = kernels.ours(X, y, "hinge", cache=10.0)
    svc = kernels.peer(lambda C: kernels.SVC(C=C, tol=1e-9), X, y)
    np.testing.assert_allclose(ours["values"], svc["values"], rtol=1e-6)
    nu_svc = kernels.peer(
        lambda C: kernels.NuSVC(nu=svc["nus"][list(kernels.C_VALUES).index(C)], tol=1e-9), X, y
    )
    assert len(nu_svc["each"]) == 2
    assert kernels.ridge(X, y, cache=10.0)["difference"] < 1e-3


def test_mining_from_start_to_end():
    ended = subprocess.run(
        [sys.executable, str(FOLDER / "mining.py"), "--quick", "--repeats", "1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    for words in ("synthetic", "LinearSVC", "memory"):
        assert words in ended.stdout


def test_the_benchmark_of_compression_from_start_to_end():
    ended = subprocess.run(
        [sys.executable, str(FOLDER / "compression.py"), "--quick"],
        capture_output=True, text=True, check=False,
        env={name: v for name, v in os.environ.items() if name != "SAFESIFT_DATA"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    for words in ("synthetic: test accuracy", "hybrid", "99.8 %", "holds"):
        assert words in ended.stdout
