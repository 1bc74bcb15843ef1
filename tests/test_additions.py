"""Additions from outside the library: one class in one file, picked up by the law tests as it is.

The toys are in tests/additions, and so are the same with a mistake in each. The law tests run in
processes of their own, in which a plug-in has added them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import safesift as ss
from safesift.losses import LOSSES
from safesift.penalties import PENALTIES
from safesift.problem.inputs import make_problems
from safesift.regions import REGIONS
from safesift.solvers import SOLVERS, Settings, solve_path
from tests.additions.broken import Nonsense
from tests.additions.euclidean import Euclidean
from tests.additions.lipschitz_ball import LipschitzBall
from tests.additions.lookup import Lookup
from tests.additions.lopsided import Lopsided
from tests.additions.plugin import NAMES
from tests.additions.proximal_gradient import ProximalGradient
from tests.laws.definitions import NotWrittenError, written
from tests.laws.exact import exact_loss, penalty_value
from tests.laws.reference import optimum
from tests.test_solve_path import assert_certified, assert_optimal, assert_same_model

ROOT = Path(__file__).parents[1]
LAWS = {
    "loss": ["laws/test_losses.py", "laws/test_dual_form.py", "laws/test_problem.py"],
    "penalty": ["laws/test_penalties.py", "laws/test_problem.py", "test_solve_path.py"],
    "region": ["laws/test_regions.py", "laws/test_curvature.py"],
    "matrix": ["laws/test_design.py", "laws/test_problem.py"],
    "solver": ["test_solve_path.py"],
}

# --- the laws -----------------------------------------------------------------------------------


def outcomes(report: Path, names: Iterable[str], files: Iterable[str], *options: str) -> dict:
    """How the tests of some additions ended: passed, skipped, failed, or error."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.additions.plugin", "-p", "no:xdist"]
    command += ["--tb=no", f"--junitxml={report}", "-k", " or ".join(names), *options]
    command += [f"tests/{file}" for file in dict.fromkeys(files)]
    environment = os.environ | {"HYPOTHESIS_PROFILE": "few"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return {
        f"{case.get('classname')}::{case.get('name')}": case[0].tag if len(case) else "passed"
        for case in ElementTree.parse(report).iter("testcase")
    }


def of_kind(kind: str, ended: dict[str, str]) -> dict[str, str]:
    """The outcomes of the tests whose parameters name the addition of a kind."""
    return {test: how for test, how in ended.items() if NAMES[kind] in test.partition("[")[2]}


@pytest.mark.slow
def test_law_tests_pick_up_all_additions_and_they_pass(tmp_path):
    files = [file for kind in LAWS for file in LAWS[kind]]
    ended = outcomes(tmp_path / "whole.xml", NAMES.values(), files)
    assert set(ended.values()) <= {"passed", "skipped"}
    for kind, laws in LAWS.items():
        passed = [test for test, how in of_kind(kind, ended).items() if how == "passed"]
        for file in laws:
            module = f"tests.{file.removesuffix('.py').replace('/', '.')}::"
            assert any(test.startswith(module) for test in passed), (kind, file)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["loss", "penalty", "region", "matrix"])
def test_law_tests_notice_a_mistake_in_an_addition(kind, tmp_path):
    found = outcomes(
        tmp_path / "broken.xml", [NAMES[kind]], LAWS[kind][:1], "--broken", kind, "--maxfail=1"
    )
    assert "failure" in of_kind(kind, found).values()
    assert "error" not in found.values()


def test_laws_that_need_a_second_definition_are_skipped_without_one():
    with pytest.raises(NotWrittenError, match="write Lopsided"):
        exact_loss(Lopsided(), 0)
    with pytest.raises(NotWrittenError, match="write Euclidean"):
        penalty_value(Euclidean(), [])
    assert written({"hinge": LOSSES["hinge"], "lopsided": Lopsided}) == ["hinge"]


# --- how a user meets them ----------------------------------------------------------------------

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(40, 3))
CODES = RNG.integers(0, 40, size=300)
X = TABLE[CODES]
TREND = X @ np.array([1.0, -2.0, 0.5])
NUMBERS = TREND + 0.3 * RNG.normal(size=300)
LABELS = np.where(NUMBERS > 0, "up", "down")


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOSSES, "lopsided", Lopsided)
    monkeypatch.setitem(PENALTIES, "euclidean", Euclidean)
    monkeypatch.setitem(REGIONS, "lipschitz_ball", LipschitzBall)
    monkeypatch.setitem(SOLVERS, ProximalGradient.name, ProximalGradient)


def test_a_loss_goes_by_its_name(added):
    result = ss.screen(X, NUMBERS, loss="lopsided", alpha=0.1, fit_intercept=True)
    assert result.certified and result.kept.sum() < 150
    model = ss.SafeRegressor(loss="lopsided", alpha=0.1).fit(X, NUMBERS)
    assert not model.kept_.all() and model.dual_gap_ < 1e-4
    excess = model.predict(X) - NUMBERS
    # free is what lies further above than below
    assert np.mean(excess) > 0.1


def test_a_penalty_goes_by_its_name(added):
    path = ss.safe_path(X, LABELS, penalty="euclidean", alphas=[10.0, 0.1], fit_intercept=True)
    assert not path.coefs[0].any() and path.coefs[1].all()
    assert (path.relative_gaps <= 1e-6).all()


def test_a_region_goes_by_its_name(added):
    result = ss.screen(
        X, LABELS, loss="hinge", alpha=50.0, screening="lipschitz_ball", fit_intercept=False
    )
    assert result.certified and "lipschitz ball" in result.region.describe()
    assert not result.undecided.any()  # so much regularisation that no margin reaches 1
    with pytest.raises(ValueError, match="needs a Lipschitz loss"):
        ss.screen(X, LABELS, loss="squared_hinge", screening="lipschitz_ball", fit_intercept=False)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["l2", "l1", "l2_ball"])
def test_a_matrix_goes_where_an_array_does(penalty, intercept):
    lookup = Lookup(TABLE, CODES, intercept)
    how = {"penalty": penalty, "fit_intercept": intercept}
    screened, plain = (ss.screen(Z, LABELS, alpha=0.1, **how) for Z in (lookup, X))
    np.testing.assert_allclose(screened.lower, plain.lower, atol=1e-6)
    np.testing.assert_array_equal(screened.kept, plain.kept)
    paths = [ss.safe_path(Z, LABELS, alphas=[1.0, 0.1], tol=1e-10, **how) for Z in (lookup, X)]
    np.testing.assert_allclose(paths[0].coefs, paths[1].coefs, atol=1e-4)


@pytest.mark.parametrize("solver", ["newton_cg", "newton"])
def test_no_solver_asks_for_the_whole_of_a_matrix(solver, monkeypatch):
    monkeypatch.setattr(Lookup, "data", property(lambda self: pytest.fail("all rows at once")))
    path = ss.safe_path(
        Lookup(TABLE, CODES), LABELS, alphas=[0.1], solver=solver, fit_intercept=False
    )
    assert path.relative_gaps[0] <= 1e-6


@pytest.mark.parametrize("told", [False, True])
def test_a_matrix_that_was_told_otherwise_of_the_intercept_is_refused(told):
    wanted = "is not wanted" if told else "is wanted"
    for call in (ss.screen, ss.safe_path):
        with pytest.raises(ValueError, match=f"intercept={told}, but an intercept {wanted}: "):
            call(Lookup(TABLE, CODES, told), LABELS, fit_intercept=not told)


def test_a_solver_goes_by_its_name(added):
    path = ss.safe_path(
        X, LABELS, alphas=[1.0, 0.3], solver="proximal_gradient", tol=1e-5, fit_intercept=False
    )
    assert (path.relative_gaps <= 1e-5).all() and (path.n_iter > 3).all()
    with pytest.raises(ValueError, match="has kinks"):
        ss.safe_path(X, LABELS, loss="hinge", solver="proximal_gradient", fit_intercept=False)


# --- solvers ------------------------------------------------------------------------------------


def levels(penalty: str) -> list:
    problem = make_problems(
        X, NUMBERS, loss="squared_epsilon_insensitive", penalty=penalty, alpha=1.0,
        fit_intercept=True,
    ).problem  # fmt: skip
    return [[problem.at_level(level)] for level in (0.5, 0.1)]


@pytest.mark.parametrize("penalty", ["l2", "l1", "elastic_net", "euclidean"])
def test_the_solver_finds_what_the_others_find(penalty, added):
    settings = Settings(tol=1e-6, max_iter=5000)
    slow = Settings(tol=1e-6, max_iter=5000, solver="proximal_gradient")
    for (plain,), (fit,) in zip(
        solve_path(levels(penalty), settings), solve_path(levels(penalty), slow), strict=True
    ):
        assert_certified(fit, slow)
        assert_same_model(plain, fit)


@pytest.mark.parametrize("penalty", ["l2", "l1", "l2_ball"])
def test_nonsense_ends_with_a_gap_that_is_true(penalty, monkeypatch):
    monkeypatch.setitem(SOLVERS, Nonsense.name, Nonsense)
    settings = Settings(tol=1e-6, max_iter=40, solver=Nonsense.name)
    for (fit,) in solve_path(levels(penalty), settings):
        assert not fit.converged and fit.n_iter == 40
        assert 1e-3 < fit.relative_gap < np.inf
        assert_optimal(fit, optimum(fit.problem))
