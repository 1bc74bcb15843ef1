"""The race in benchopt's form: everybody solves the same path, and is measured as in the race."""

from __future__ import annotations

import importlib
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks" / "benchopt"
GAP = 1e-6
# by the names of the race, with the penalties and the intercepts that they have
SOLVERS = [
    ("safesift", ("l2", "l1"), ("none", "free", "ones")),
    ("LIBLINEAR dual", ("l2",), ("none", "ones")),
    ("LIBLINEAR primal", ("l2", "l1"), ("none", "ones")),
    ("cyanure", ("l2", "l1"), ("none", "free")),
    ("skglm Newton", ("l1",), ("none", "free")),
    ("skglm CD", ("l1",), ("none", "free")),
    ("ReHLine", ("l2",), ("none", "ones")),
]
PROBLEMS = list(product(("l2", "l1"), ("none", "free", "ones")))


@pytest.fixture
def race(monkeypatch):
    """The modules of the race and of the benchmark can be imported."""
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture
def path(race):
    """What the solvers share, of which nothing needs benchopt."""
    return importlib.import_module("benchmark_utils.path")


@pytest.fixture
def rows():
    """Rows on which an intercept matters, and a penalty on it as well."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    return X, np.where(X.sum(axis=1) + rng.standard_normal(80) + 2.0 > 0, 1.0, -1.0)


def _installed(solver):
    if solver != "safesift":
        package = importlib.import_module("peers").PEERS[solver].kind.package
        pytest.importorskip(package, reason=f"{package} is not installed: pip install {package}")


def _smallest_gap(path, solver, evaluator, alphas):
    """At the loosest tolerance that will do: at smaller ones some never end."""
    for tol in 10.0 ** -np.arange(2.0, 14.0):
        found = path.measured(evaluator, solver.solve(tol), alphas)
        if found.relative_gap <= GAP:
            break
    return found.relative_gap


@pytest.mark.parametrize(
    ("solver", "penalty", "intercept"),
    [(name, *problem) for name, *kinds in SOLVERS for problem in product(*kinds)
     if not name.startswith("skglm")],  # it compiles for long: tests/test_benchmarks.py has it
)  # fmt: skip
def test_every_solver_minimises_our_objective(path, rows, solver, penalty, intercept):
    """With a wrong C, a ½ too many or a penalty on a free intercept the gap would not fall."""
    _installed(solver)
    X, y = rows
    task, alphas = path.squared_hinge(penalty, intercept), path.geometric(1e-1, 3, 1)
    assert path.why_not(solver, task) is None
    racing = path.PathSolver(solver, task, alphas)
    racing.prepare(X, y)
    assert racing.solve(racing.loosest).coefs.shape == (3, 6)
    assert _smallest_gap(path, racing, path.Evaluator(X, y, task), alphas) <= GAP


@pytest.mark.parametrize(("solver", "penalties", "intercepts"), SOLVERS)
def test_what_a_solver_does_not_solve_is_said_with_the_reason(path, solver, penalties, intercepts):
    for penalty, intercept in PROBLEMS:
        reason = path.why_not(solver, path.squared_hinge(penalty, intercept))
        if penalty not in penalties:
            assert f"does not solve the squared hinge with {penalty}" in reason
        elif intercept not in intercepts:
            assert ("penalises" if intercept == "free" else "does not penalise") in reason
        else:
            assert reason is None


def test_models_of_another_alpha_are_noticed(path, rows):
    """The gap is that of the worst alpha, the value the mean."""
    X, y = rows
    task, alphas = path.squared_hinge("l2", "none"), path.geometric(1e-1, 3, 1)
    ours = path.PathSolver("safesift", task, alphas)
    ours.prepare(X, y)
    models, evaluator = ours.solve(1e-8), path.Evaluator(X, y, task)
    good = path.measured(evaluator, models, alphas)
    models.coefs[2] = models.coefs[1]
    bad = path.measured(evaluator, models, alphas)
    worst = evaluator.measure(path.Model.of(models.coefs[2]), alphas[2]).gap
    assert good.relative_gap <= 1e-8 < 1e-3 < bad.relative_gap == worst
    assert good.value < bad.value
    zero = path.Models(np.zeros((3, 6)), np.zeros(3))
    assert path.measured(evaluator, zero, alphas).value == pytest.approx(0.5)


def test_a_path_of_one_alpha_is_that_alpha(path):
    assert path.geometric(1e-3, 1, 2) == pytest.approx([1e-3])
    assert path.geometric(1e-3, 3, 2) == pytest.approx([1e-3, 1e-4, 1e-5])


# --- with benchopt ----------------------------------------------------------------------------


@pytest.fixture
def benchmark(race):
    module = pytest.importorskip(
        "benchopt.benchmark", reason="benchopt is not installed: pip install benchopt"
    )
    return module.Benchmark(FOLDER)


def test_a_run_from_start_to_end(benchmark, tmp_path):
    """Whoever takes part arrives, and who does not solve a problem is not in it."""
    from benchopt.results import read_results
    from benchopt.runner import run_benchmark

    mine = tmp_path / "mine.py"
    mine.write_text(re.search(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.S)[1])
    file = run_benchmark(
        FOLDER, dataset_names=["Simulated[n_samples=80,n_features=6]"],
        objective_filters=["Squared hinge[alpha=0.1,n_alphas=2,intercept=[none,free,ones]]"],
        solver_names=["safesift", "LIBLINEAR[dual=True]", str(mine)],
        max_runs=30, plot_result=False, no_cache=True, output_file=str(tmp_path / "run.parquet"),
    )  # fmt: skip
    problem = ["solver_name", "p_obj_penalty", "p_obj_intercept"]
    smallest = read_results(file).groupby(problem)["objective_relative_gap"].min()
    assert smallest.max() <= GAP
    assert set(smallest.index) == {
        *(("safesift", *one) for one in PROBLEMS),
        ("LIBLINEAR[dual=True]", "l2", "none"),
        ("LIBLINEAR[dual=True]", "l2", "ones"),
        ("L-BFGS", "l2", "none"),
    }


def test_data_that_are_not_there_are_skipped_with_the_reason(benchmark, monkeypatch, tmp_path):
    monkeypatch.setenv("SAFESIFT_DATA", str(tmp_path / "nowhere"))
    (real,) = (one for one in benchmark.get_datasets() if one.name == "Real")
    objective = benchmark.get_benchmark_objective().get_instance()
    skipped, reason = objective._set_dataset(real.get_instance(data="a9a"))
    assert skipped and "SAFESIFT_DATA" in reason
    monkeypatch.setenv("SAFESIFT_DATA", str(tmp_path))
    skipped, reason = objective._set_dataset(real.get_instance(data="a9a"))
    assert skipped and "a9a.svmlight.bz2" in reason


def test_a_curve_ends_at_the_target_or_where_nothing_gets_better(benchmark):
    from benchmark_utils.racing import CertifiedGap

    def ends(gaps):
        criterion = CertifiedGap(target=1e-6, patience=2)
        return criterion.check_convergence([{"objective_relative_gap": gap} for gap in gaps])[0]

    assert ends([1.0, 1e-7])
    assert not ends([1.0, 1e-5, 1e-5, 1e-5, 1e-5])
    assert not ends([1.0, 1e-5, 2e-5, 1e-4, 1e-5 / 2])
    assert ends([1.0, 1e-5, 2e-5, 1e-4])
