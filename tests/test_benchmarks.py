"""The benchmarks run, and the peers minimise the objective that they are timed on."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import replace
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


GAP = 1e-5
# peer, loss and penalty, and the intercepts that it has
PEERS = [
    ("LIBLINEAR dual", "squared_hinge", "l2", ("none", "ones")),
    ("LIBLINEAR dual", "logistic", "l2", ("none", "ones")),
    ("LIBLINEAR dual", "squared_epsilon_insensitive", "l2", ("none", "ones")),
    ("LIBLINEAR primal", "squared_hinge", "l2", ("none", "ones")),
    ("LIBLINEAR primal", "squared_hinge", "l1", ("none", "ones")),
    ("LIBLINEAR primal", "logistic", "l2", ("none", "ones")),
    ("LIBLINEAR primal", "logistic", "l1", ("none", "ones")),
    ("LIBLINEAR primal", "squared_epsilon_insensitive", "l2", ("none", "ones")),
    ("lbfgs", "logistic", "l2", ("none", "free")),
    ("newton-cholesky", "logistic", "l2", ("none", "free")),
    ("cyanure", "squared_hinge", "l2", ("none", "free")),
    ("cyanure", "squared_hinge", "l1", ("none", "free")),
    ("cyanure", "safe_logistic", "l1", ("none", "free")),
    ("cyanure", "logistic", "l2", ("none", "free")),
    ("cyanure", "logistic", "l1", ("none", "free")),
    ("ReHLine", "squared_hinge", "l2", ("none", "ones")),
    ("ReHLine", "squared_epsilon_insensitive", "l2", ("none", "ones")),
    ("skglm Newton", "squared_hinge", "l1", ("none", "free")),
    ("skglm Newton", "safe_logistic", "l1", ("none", "free")),
    ("skglm Newton", "logistic", "l1", ("none", "free")),
    ("skglm CD", "squared_hinge", "l1", ("none", "free")),
    ("skglm CD", "safe_logistic", "l1", ("none", "free")),
    ("skglm CD", "logistic", "l1", ("none", "free")),
    ("skglm lbfgs", "logistic", "l2", ("none",)),
    ("adelie", "logistic", "l2", ("none", "free")),
    ("adelie", "logistic", "l1", ("none", "free")),
]
# of which only the values can be compared: a model does not tell the slopes at its kinks
KINKED = [
    ("LIBLINEAR dual", "hinge", ("none", "ones")),
    ("ReHLine", "hinge", ("none", "ones")),
    ("skglm dual", "hinge", ("none",)),
    ("LIBSVM", "hinge", ("free",)),
]
SEVERAL = [
    ("LIBLINEAR dual", "squared_hinge", "none"),
    ("LIBLINEAR dual, threads", "squared_hinge", "ones"),
    ("LIBLINEAR primal", "logistic", "ones"),
    ("cyanure", "squared_hinge", "free"),
    ("cyanure", "logistic", "free"),
    ("lbfgs", "logistic", "free"),
    ("ReHLine", "squared_hinge", "ones"),
    ("adelie", "logistic", "none"),
]


def _peer(benchmark, name, task):
    entry = benchmark("peers").PEERS[name]
    if not entry.kind.installed():
        pytest.skip(f"{entry.kind.package} is not installed: pip install {entry.kind.package}")
    assert entry.supports(task)
    return entry.make(task, threads=2)


def _tightened(solver, evaluator, alpha, warm=None, floors=None):
    """The answer at the loosest tolerance that will do: at smaller ones some never end."""
    for tol in 10.0 ** -np.arange(2.0, 14.0):
        answer = solver.solve(alpha, tol, warm)
        gap = evaluator.measure(answer.model, alpha, floors).gap
        if gap < GAP:
            break
    return answer, gap


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("name", "loss", "penalty", "intercept"),
    [(*peer, intercept) for *peer, intercepts in PEERS for intercept in intercepts],
)
def test_peers_minimise_our_objective(benchmark, name, loss, penalty, intercept, sparse):
    """With a wrong C, a ½ too many or a penalty on a free intercept the gap would not fall.

    The second alpha starts warm.
    """
    tasks = benchmark("tasks")
    task = tasks.Task(loss, penalty, intercept)
    solver = _peer(benchmark, name, task)
    X, y = _unbalanced(benchmark("datasets"), classes=task.classifies)
    solver.prepare(benchmark("peers").stored(X, solver.storages[sparse]), y)
    evaluator, answer = tasks.Evaluator(X, y, task), None
    for alpha in (1e-1, 3e-2):
        answer, gap = _tightened(solver, evaluator, alpha, answer)
        assert gap < GAP
        assert answer.model.coef.any()
        assert (intercept == "none") == (not answer.model.intercept.any())


@pytest.mark.parametrize(
    ("name", "loss", "intercept"),
    [(*peer, intercept) for *peer, intercepts in KINKED for intercept in intercepts],
)
def test_peers_with_kinks_reach_our_values(benchmark, name, loss, intercept):
    tasks, contestants = benchmark("tasks"), benchmark("contestants")
    task = tasks.Task(loss, "l2", intercept)
    solver, ours = _peer(benchmark, name, task), contestants.Ours(task, threads=1)
    X, y = _unbalanced(benchmark("datasets"), classes=True)
    solver.prepare(X, y)
    ours.prepare(X, y)
    stage = benchmark("runs").Stage("single", 1e-8, (1e-1,), limit=60.0)
    found = ours.search(stage, evaluator := tasks.Evaluator(X, y, task), lambda *_, **__: None)
    assert found.reached
    _, gap = _tightened(solver, evaluator, 1e-1, floors=found.stage.floors[0])
    assert gap < GAP


@pytest.mark.parametrize(("name", "loss", "intercept"), SEVERAL)
def test_peers_separate_each_class_from_the_rest(benchmark, name, loss, intercept):
    tasks = benchmark("tasks")
    task = tasks.Task(loss, "l2", intercept, n_classes=3)
    solver = _peer(benchmark, name, task)
    X, y = benchmark("datasets").synthetic_three()
    X, y = X[:500], y[:500]
    solver.prepare(benchmark("peers").stored(X, solver.storages[0]), y)
    answer, gap = _tightened(solver, tasks.Evaluator(X, y, task), 1e-2)
    assert gap < GAP
    assert answer.model.coef.shape == (3, X.shape[1])


def _unbalanced(datasets, *, classes):
    """Rows on which an intercept matters, and a penalty on it as well."""
    X, y = datasets.synthetic()
    X = 5.0 * X[:500]
    scores = X.sum(axis=1) + 4.0
    return X, np.where(scores + y[:500] > 0, 1.0, -1.0) if classes else scores


def test_an_intercept_that_is_penalised_is_another_problem(benchmark):
    """The evaluator tells the two apart: one's optimum is not the other's."""
    tasks, contestants = benchmark("tasks"), benchmark("contestants")
    X, y = _unbalanced(benchmark("datasets"), classes=True)
    stage = benchmark("runs").Stage("single", 1e-6, (1e-1,), limit=60.0, tols=(1e-8,))
    models, evaluators = {}, {}
    for intercept in ("free", "ones"):
        task = tasks.Task("squared_hinge", "l2", intercept)
        ours = contestants.Ours(task, threads=1)
        ours.prepare(X, y)
        (fitted,) = ours.perform(stage)
        models[intercept], evaluators[intercept] = fitted.model, tasks.Evaluator(X, y, task)
    for intercept, other in (("free", "ones"), ("ones", "free")):
        assert evaluators[intercept].measure(models[intercept], 1e-1).gap < GAP
        assert evaluators[intercept].measure(models[other], 1e-1).gap > 10 * GAP


def test_the_worst_class_counts(benchmark):
    tasks = benchmark("tasks")
    X, y = benchmark("datasets").synthetic_three()
    task = tasks.Task("squared_hinge", "l2", n_classes=3)
    several = tasks.Evaluator(X, y, task)
    coef = np.zeros((3, X.shape[1]))
    alone = [
        tasks.Evaluator(X, np.where(y == label, 1.0, -1.0), task).measure(
            tasks.Model.of(coef[0]), 1e-2
        )
        for label in range(3)
    ]
    measured = several.measure(tasks.Model.of(coef), 1e-2)
    assert measured.gap == max(one.gap for one in alone) > min(one.gap for one in alone)


def test_excess_and_gap_of_a_kinked_loss_know_the_floor(benchmark):
    """At the optimum of a hinge its slopes say little, a certified lower bound everything."""
    tasks = benchmark("tasks")
    X, y = benchmark("datasets").synthetic()
    evaluator = tasks.Evaluator(X, y, tasks.Task("hinge", "l2"))
    model = tasks.Model.of(np.zeros(X.shape[1]))
    alone = evaluator.measure(model, 1e-2)
    floors = evaluator.floors(model, 1e-2, [0.25])
    helped = evaluator.measure(model, 1e-2, floors)
    assert alone.gap > 0.25 * (1 + 1e-6)
    assert helped.gap == helped.excess == pytest.approx(0.25)


def test_a_stage_that_was_killed_is_a_lower_bound(benchmark):
    runner, runs = benchmark("runner"), benchmark("runs")
    stage = runs.Stage("path", 1e-6, (1e-3, 1e-4), limit=7.0)
    point = {"event": "alpha", "alpha": 1e-3, "tol": 0.1, "seconds": 2.0, "gap": 1e-7,
             "reached": True, "seconds_by_excess": 1.0}  # fmt: skip
    killed = runner.stage_outcome([point], stage)
    assert not killed.reached and killed.seconds == 7.0
    late = runner.stage_outcome([point, {"event": "late"}], stage)
    assert not late.reached and late.seconds == 2.0
    times = [{"event": "time", "seconds": s} for s in (3.0, 5.0, 4.0)]
    tols = {"event": "tols", "tols": [0.1, 0.1]}
    done = runner.stage_outcome([point, point, tols, *times], stage)
    assert done.reached and done.seconds == 4.0 and done.seconds_by_excess == 2.0
    ours = [{"event": "by_value", "seconds": 1.5}, {"event": "point", "alpha": 1e-3, "gap": 1e-7,
            "reached": True}]  # fmt: skip
    assert runner.stage_outcome([*ours, tols, *times], stage).seconds_by_excess == 1.5
    stuck = runner.stage_outcome(
        [point | {"reached": False}, tols, {"event": "stuck"}, *times], stage
    )
    assert stuck.stuck and not stuck.reached


def _outcome(benchmark, seconds, **facts):
    runner = benchmark("runner")
    stage = runner.StageOutcome(seconds, **{"reached": True, "gap": 1e-7} | facts)
    return runner.Outcome({"path": "C"}, 0.5, {"path@1e-06": stage})


def _book(benchmark, outcomes, load="quiet", case="mnist/squared_hinge-l2"):
    book = benchmark("book").Book(kept=False)
    for solver, outcome in outcomes.items():
        book.put(case, load, solver, outcome, {"limit": 120.0, "tols": [1e-6]})
    return book, benchmark("book").Place(case, 1e-6, load)


def test_who_arrives_is_compared_and_who_is_stuck_never_does(benchmark):
    verdicts = benchmark("verdicts")
    solvers = {
        "safesift": _outcome(benchmark, 2.0),
        "LIBLINEAR dual": _outcome(benchmark, 1.0, reached=False, stuck=True),
        "cyanure": _outcome(benchmark, 120.0, reached=False),
    }
    book, place = _book(benchmark, solvers)
    found = verdicts.line(book, place, "path")
    assert (found.peer, found.ratio, found.bound) == ("cyanure", 60.0, True)
    assert not found.disturbed
    solvers["cyanure"].others = 0.9
    assert verdicts.line(*_book(benchmark, solvers), "path").disturbed
    book, place = _book(benchmark, solvers | {"ReHLine": _outcome(benchmark, 7.0)})
    found = verdicts.line(book, place, "path")
    assert (found.peer, found.ratio, found.bound) == ("ReHLine", 3.5, False)
    (case,) = (case for case in benchmark("cases").CASES if case.name == place.case)
    verdict = verdicts.against_peers(case, place, "path", found)
    assert verdict.target == 4.0 and verdict.words == "missed by 1.14×"


@pytest.mark.parametrize(
    ("ratio", "bound", "word"), [(4.0, False, "met"), (3.9, False, "missed"), (3.9, True, "open")]
)
def test_verdicts(benchmark, ratio, bound, word):
    assert benchmark("verdicts").at_least(ratio, 4.0, bound=bound).word == word


def test_results_are_kept_solver_by_solver(benchmark, monkeypatch, tmp_path):
    """Our side is replaced, the peers' stays; and the tables say what they are of."""
    results = benchmark("results")
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    Book, Place = benchmark("book").Book, benchmark("book").Place
    facts = {"limit": 120.0, "tols": [1e-6]}
    for solver, seconds in (("cyanure", 8.0), ("safesift", 2.0), ("safesift", 1.0)):
        case = "mnist/squared_hinge-l2"
        Book(kept=True).put(case, "quiet", solver, _outcome(benchmark, seconds), facts)
    case = "mnist/squared_hinge-l2+intercept"
    with_one = replace(_outcome(benchmark, 4.0), constant=0.125)
    Book(kept=True).put(case, "quiet", "safesift", with_one, facts)
    case = "mnist/squared_hinge-l2"
    Book(kept=True).put(case, "busy", "safesift", _outcome(benchmark, 2.5), facts)
    book = Book(kept=True)
    place = Place(case, 1e-6, "quiet")
    assert book.solvers(place) == ["safesift", "cyanure"]
    assert book.stage(place, "cyanure", "path").seconds == 8.0
    report = benchmark("report").Report(book)
    text = report.markdown()
    assert "cyanure | 8 | 1 | 8 " in text  # peer, its seconds, ours, ratio
    # the gap that is asked for, the times without and with an intercept
    assert "| 0.25 | 1 | 4 | 4 | missed by 2.67× |" in text
    # quiet and busy, where cyanure need not run: it takes at least its quiet time
    assert "| 1 | 2.5 | 2.5 | cyanure | > 8 | ≥ 3.2 | met; met |" in text
    assert "cores" in text and "numpy" in text and "spinning" in text
    # the page of another book is about the load
    other = Book("elsewhere", kept=True)
    for load, seconds in (("quiet", 1.0), ("busy", 2.0)):
        other.put(case, load, "safesift", _outcome(benchmark, seconds), facts)
    (sheet,) = benchmark("report").Report(Book("elsewhere", kept=True)).sheets
    assert "spinning" in sheet.markdown() and "| 1 | 2 | 2 |" in sheet.markdown()


def test_beside_a_load_only_the_best_run_and_their_tolerances_are_known(benchmark):
    race = benchmark("paths_vs_peers")
    outcomes = {
        "safesift": _outcome(benchmark, 2.0, tols=[1e-6] * 10),
        "LIBLINEAR dual": _outcome(benchmark, 5.0, tols=[0.1] * 10),
        "LIBLINEAR primal": _outcome(benchmark, 16.0, tols=[0.1] * 10),
        "ReHLine": _outcome(benchmark, 5.0, reached=False),
        "cyanure": _outcome(benchmark, 7.0, tols=[0.1] * 10),
    }
    book, place = _book(benchmark, outcomes)
    facts = {"limit": 120.0, "tols": [place.tol]}
    book.put(place.case, "busy", "safesift", _outcome(benchmark, 6.0), facts)
    (case,) = (case for case in benchmark("cases").CASES if case.name == place.case)
    runner = benchmark("runner").Runner(Path(), 1, 1, "busy")
    busy = race.Race(book, runner, None, (1e-6,), 120.0, False, False)
    stages = {
        solver: [stage for name in case.stages for stage in busy._stages(case, solver, name)]
        for solver in outcomes
    }
    assert [stage.name for stage in stages["safesift"] if stage.tols] == ["path"]
    assert stages["LIBLINEAR dual"][-1].tols == (0.1,) * 10
    for name in ("LIBLINEAR primal", "ReHLine", "cyanure"):
        assert "path" not in [stage.name for stage in stages[name]]


def test_spinning_processes_end_with_an_error(benchmark):
    with pytest.raises(RuntimeError, match="over"), benchmark("runner").spinning(2) as started:
        assert [process.poll() for process in started] == [None, None]
        raise RuntimeError("over")
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "synthetic/squared_hinge-l2"),
         ("LIBLINEAR dual", "LIBLINEAR primal", "best peer", "Single fits", "Paths")),
        (("--busy", "--ours", "--only", "synthetic/hinge-l2+intercept"), ("spinning", "busy")),
        (("--tol", "1e-3", "--only", "synthetic-three/squared_hinge-l2+ones*"),
         ("Cross-validation", "LIBLINEAR dual, threads")),
    ],
)  # fmt: skip
def test_the_race_from_start_to_end(arguments, words):
    """Made-up data, a few peers, one process each."""
    ended = subprocess.run(
        [sys.executable, str(FOLDER / "paths_vs_peers.py"), "--quick", "--threads", "1",
         *arguments],
        capture_output=True, text=True, check=False,
        env={name: v for name, v in os.environ.items() if name != "SAFESIFT_DATA"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    for word in ("safesift", *words):
        assert word in ended.stdout
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
