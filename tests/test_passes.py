"""What is computed once is computed once: gaps, rounding bounds, passes over the data. Counted."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.datasets import load_digits

import safesift as ss
from safesift.arithmetic.tally import counting
from safesift.problem.duality import Dual
from safesift.problem.inputs import make_problems
from safesift.problem.looks import Look
from safesift.problem.passes import Request, by_group
from safesift.problem.problem import reweighted
from safesift.solvers import Settings, solve_path


@pytest.fixture
def counts(monkeypatch):
    """How often the best dual point was looked for, and sums over the samples were made."""
    counts = {"gaps": 0, "sums": 0}
    best, summed = Dual.best, Look.sums.fget

    def counted_best(self, at, known=None, **enough):
        counts["gaps"] += 1
        return best(self, at, known, **enough)

    def counted_sums(self):
        counts["sums"] += 1
        return summed(self)

    monkeypatch.setattr(Dual, "best", counted_best)
    monkeypatch.setattr(Look, "sums", property(counted_sums))
    return counts


def samples(n=300, p=8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("region", ["auto", "curvature", "gap_ball", "gradient_ball", "norm_ball"])
@pytest.mark.parametrize("penalty", ["l2", "elastic_net"])
def test_screening_around_a_solution_takes_one_gap_and_one_look(counts, region, penalty):
    X, y = samples()
    model = ss.SafeClassifier(penalty=penalty, alpha=1e-2, fit_intercept=False, tol=1e-4)
    coef = model.fit(X, y).coef_
    counts.update(gaps=0, sums=0)
    # twelve columns: the ellipsoid method, which evaluates further points, is left out of "auto"
    X = np.hstack([X, np.zeros((len(X), 4))])
    coef = np.append(coef, np.zeros(4))
    result = ss.screen(
        X, y, penalty=penalty, alpha=1e-2, coef=coef, screening=region, fit_intercept=False
    )
    assert counts == {"gaps": 1, "sums": 1}
    # nor does looking at the result
    assert result.gap > 0 and result.summary() and result.zero_coef.shape == (12,)
    assert counts == {"gaps": 1, "sums": 1}


def test_screening_under_l1_takes_one_gap_while_features_leave(counts):
    """Features that are certified to be zero leave the region, and nothing is measured again."""
    X, y = samples(p=40)
    coef = ss.SafeClassifier(penalty="l1", alpha=0.05, fit_intercept=False).fit(X, y).coef_
    assert (coef == 0).sum() > 20
    counts.update(gaps=0, sums=0)
    result = ss.screen(X, y, penalty="l1", alpha=0.05, coef=coef, fit_intercept=False)
    assert result.zero_coef.sum() > 20
    assert counts == {"gaps": 1, "sums": 1}


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
def test_a_fit_takes_one_gap_for_every_certified_point(counts, loss, penalty):
    # so few rows that no start is sought on some of them
    X, y = samples(200)
    model = ss.SafeClassifier(loss, penalty=penalty, alpha=1e-2).fit(X, y)
    assert counts["gaps"] <= len(model.history_)


# --- passes over the data -----------------------------------------------------------------------


def passes(levels) -> float:
    with counting() as tally:
        for _ in solve_path(levels, Settings()):
            pass
    return tally.rows / levels[0][0].design.n_samples


def test_answers_go_to_who_asked():
    """About the very same object: equal ones are others, and they may have no hash."""
    one, other = np.zeros(2), np.zeros(2)
    seen: list[list[str]] = []

    def answer(group: list[str]) -> list[str]:
        seen.append(group)
        return [word.upper() for word in group]

    assert by_group(list("abcd"), [one, other, one, other], answer) == list("ABCD")
    assert seen == [["a", "c"], ["b", "d"]]
    with pytest.raises(ValueError, match="zip"):
        by_group(list("abcd"), [one, other, one, other], lambda group: answer(group)[:1])


def test_every_kind_of_request_has_its_turn():
    kinds = [*kinds_of(Request)]
    assert len(kinds) > 5
    assert len({kind.turn for kind in kinds}) == len(kinds)


def kinds_of(kind: type) -> Iterator[type]:
    """All that can be asked for, inside the library."""
    if not inspect.isabstract(kind) and kind.__module__.startswith("safesift"):
        yield kind
    for derived in kind.__subclasses__():
        yield from kinds_of(derived)


def test_folds_of_several_classes_share_their_rows():
    problems = digits("squared_hinge", "l2", 1e-3, True)
    weights = (np.arange(problems[0].design.n_samples) % 3 > 0).astype(float)
    found = reweighted(problems, weights)
    assert len({id(one.risk.rows) for one in found}) == 1
    for one, whole in zip(found, problems, strict=True):
        assert one.divisor == weights.sum() and one.risk.targets is whole.risk.targets
        np.testing.assert_array_equal(one.weights, weights)


def digits(loss: str, penalty: str, alpha: float, intercept: bool):
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    inputs = make_problems(X, y, loss=loss, penalty=penalty, alpha=alpha, fit_intercept=intercept)
    return inputs.problems


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("squared_hinge", "l1"), ("safe_logistic", "l1"), ("logistic", "elastic_net")],
)
def test_ten_classes_share_their_passes(loss, penalty, intercept):
    problems = digits(loss, penalty, 1e-4, intercept)
    together = passes([list(problems)])
    alone = [passes([[problem]]) for problem in problems]
    assert together <= 2.0 * max(alone), (together, alone)
    assert sum(alone) > 4.0 * max(alone)


def test_folds_share_their_passes():
    problem = digits("squared_hinge", "l1", 1.0, True)[3]
    rng = np.random.default_rng(0)
    fold = rng.permutation(problem.design.n_samples) % 5
    folds = [problem.reweighted((fold != k).astype(float)) for k in range(5)]
    levels = [[one.at_level(alpha) for one in (problem, *folds)] for alpha in (1e-2, 1e-3, 1e-4)]
    together = passes(levels)
    alone = [passes([[level[k]] for level in levels]) for k in range(6)]
    assert together <= 2.0 * max(alone), (together, alone)
