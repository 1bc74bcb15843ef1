"""The laws of rows on a device, as plain functions: what is found there is what is found here.

Every law takes a `Twin`, a small problem that can be made here and there, and a `Place`. They need
nothing but NumPy and the library, so that they can be run wherever there is a card:

    python -m tests.laws.device_laws cuda cupy --problems 60
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from safesift import losses, penalties, regions
from safesift.arithmetic.devices.arrays import DeviceArray, on_host
from safesift.arithmetic.devices.places import Place, counting_transfers, place_named
from safesift.arithmetic.numerics import EPS, UNDERFLOW
from safesift.design import as_design
from safesift.design.device import DeviceDesign, Placed
from safesift.problem import looks
from safesift.problem.decisions import decide
from safesift.problem.inputs import make_problems
from safesift.problem.problem import Problem
from safesift.solvers import Fit, Screening, Settings, solve_path

TOL = 1e-6

LOSSES: dict[str, Callable[[np.random.Generator], losses.Loss]] = {
    "squared_hinge": lambda rng: losses.SquaredHinge(mu=float(rng.choice([0.0, 0.3]))),
    "smoothed_hinge": lambda rng: losses.SmoothedHinge(width=float(rng.uniform(0.05, 1.0))),
    "squared_margin": lambda rng: losses.SquaredMargin(),
    "logistic": lambda rng: losses.Logistic(),
    "safe_logistic": lambda rng: losses.SafeLogistic(mu=float(rng.choice([0.0, 0.5, 1.5]))),
    "squared": lambda rng: losses.Squared(),
    "huber": lambda rng: losses.Huber(delta=float(rng.uniform(0.1, 2.0))),
    "squared_epsilon_insensitive": lambda rng: losses.SquaredEpsilonInsensitive(
        epsilon=float(rng.uniform(0.0, 0.8))
    ),
    "smoothed_epsilon_insensitive": lambda rng: losses.SmoothedEpsilonInsensitive(
        epsilon=float(rng.uniform(0.0, 0.8)), width=float(rng.uniform(0.05, 1.0))
    ),
    "squared_interval": lambda rng: losses.SquaredInterval(),
}
PENALTIES: dict[str, penalties.Penalty] = {
    "l2": penalties.L2(),
    "l1": penalties.L1(),
    "elastic_net": penalties.ElasticNet(0.4),
    "l2_ball": penalties.L2Ball(1.3),
    "l1_ball": penalties.L1Ball(0.8),
}


@dataclass(frozen=True)
class Twin:
    """A problem that is made here and on a device, from the same numbers.

    `single` says that those are float32, `shortened` that products of Gram matrices are.
    """

    loss: str = "squared_hinge"
    penalty: str = "l2"
    intercept: bool = False
    weighted: bool = False
    single: bool = False
    shortened: bool = False
    seed: int = 0
    n: int = 0

    def arrays(self) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        rng = np.random.default_rng([self.seed, 4711])
        n, p = self.n or int(rng.integers(3, 60)), int(rng.integers(1, 6))
        X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-0.5, 0.5, size=p)
        X[rng.random(n) < 0.1] = 0.0
        X[rng.random(n) < 0.2] = X[0]
        signal = X @ rng.normal(size=p) + 0.3 * rng.normal(size=n)
        loss = LOSSES[self.loss](rng)
        y = signal
        if loss.task == "classification":
            y = np.where(signal > np.median(signal), 1.0, -1.0)
            y[:2] = -1.0, 1.0
        if loss.task == "interval":
            width = rng.uniform(0.0, 1.0, size=n)
            y = np.stack([signal - width, signal + width], axis=1)
            y[2::3, 0], y[1::3, 1] = -np.inf, np.inf
        weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
        weights[:2] = 1.0
        arguments = {
            "loss": loss,
            "penalty": PENALTIES[self.penalty],
            "alpha": float(10.0 ** rng.uniform(-3.0, 0.0)),
            "fit_intercept": self.intercept,
            "sample_weight": weights if self.weighted else None,
        }
        return X.astype(np.float32 if self.single else np.float64), y, arguments

    def here(self) -> Problem:
        X, y, arguments = self.arrays()
        return make_problems(X, y, **arguments).problem

    def there(self, place: Place) -> Problem:
        X, y, arguments = self.arrays()
        rows = Placed(place.moved(X), place, self.shortened)
        problem = make_problems(rows, y, **arguments).problem
        assert isinstance(problem.design, DeviceDesign)
        assert isinstance(problem.y, DeviceArray) and isinstance(problem.shares, DeviceArray)
        return problem

    def point(self, problem: Problem) -> np.ndarray:
        """Some point, which the penalty allows."""
        rng = np.random.default_rng([self.seed, 1])
        return problem.feasible(rng.normal(size=problem.design.n_columns))


def twins(n: int, **fields: Any) -> Iterator[Twin]:
    """So many, of every kind."""
    rng = np.random.default_rng(0)
    for seed in range(n):
        drawn = {
            "loss": list(LOSSES)[seed % len(LOSSES)],
            "penalty": str(rng.choice(list(PENALTIES))),
            **{name: bool(rng.random() < 0.5) for name in ("intercept", "weighted", "single")},
            "shortened": bool(rng.random() < 0.3),
        }
        yield Twin(**{**drawn, "seed": seed, **fields})


def exact_sum(terms: np.ndarray) -> np.ndarray:
    """Over the first axis, of float64 numbers, rounded once."""
    flat = terms.reshape(len(terms), -1)
    return np.array([math.fsum(column) for column in flat.T]).reshape(terms.shape[1:])


# --- designs --------------------------------------------------------------------------------


def law_products_are_within_their_bounds(twin: Twin, place: Place) -> None:
    """Of float32 numbers every product of two is exact in float64, so that the sums can be, too."""
    twin = replace(twin, single=True)
    X, _, _ = twin.arrays()
    rng = np.random.default_rng([twin.seed, 2])
    design = Placed(place.moved(X), place, twin.shortened).design(twin.intercept)
    rows = X.astype(np.float64)
    rows = np.column_stack([rows, np.ones(len(X))]) if twin.intercept else rows
    n, d = rows.shape
    x, u = (rng.normal(size=size).astype(np.float32).astype(np.float64) for size in (d, n))
    norms = np.sqrt(exact_sum((rows * rows).T))
    off = np.abs(on_host(design.matvec(x)) - exact_sum((rows * x).T))
    assert (off <= design.dot_error * norms * np.linalg.norm(x) + d * UNDERFLOW).all()
    off = np.linalg.norm(design.rmatvec(u) - exact_sum(rows * u[:, None]))
    assert off <= design.sum_error * float(np.abs(u) @ norms) + n * d * UNDERFLOW
    bounds = on_host(design.row_norms)
    assert (bounds >= norms * (1.0 - EPS)).all() and (
        bounds <= norms * (1.0 + 1e-12) + 1e-150
    ).all()
    weights = (rng.integers(0, 4, size=n) / 4.0) ** 2
    gram = on_host(design.gram(weights))
    whole = exact_sum(weights[:, None, None] * rows[:, :, None] * rows[:, None, :])
    size = np.sqrt(np.diag(whole))
    assert (np.abs(gram - whole) <= design.gram_error * np.outer(size, size)).all()
    np.testing.assert_array_equal(gram, gram.T)


def law_operations_are_those_of_rows_here(twin: Twin, place: Place) -> None:
    """All that a design is asked for, some of the rows and columns included."""
    X, _, _ = twin.arrays()
    rng = np.random.default_rng([twin.seed, 3])
    one, other = as_design(X, twin.intercept), Placed(place.moved(X), place).design(twin.intercept)
    n, d = one.n_samples, one.n_columns
    mask, features = rng.random(n) < 0.6, rng.random(one.n_features) < 0.7
    indices = np.flatnonzero(mask)
    pairs = [
        (one, other),
        (one.only(indices), other.only(other.vector(mask))),
        (one.take(indices), other.take(other.vector(indices))),
        (one.hold(indices), other.hold(other.vector(indices))),
        (one.columns(features), other.columns(features)),
    ]
    for here, there in pairs:
        n, d = here.n_samples, here.n_columns
        assert (there.n_samples, there.n_columns) == (n, d)
        x, u, w = rng.normal(size=(d, 3)), rng.normal(size=(n, 2)), rng.random(n)
        close(there.matvec(x), here.matvec(x))
        close(there.matvec(x[:, 0]), here.matvec(x[:, 0]))
        close(there.rmatvec(u), here.rmatvec(u))
        close(there.rmatvec(u[:, 0]), here.rmatvec(u[:, 0]))
        close(there.gram(w), here.gram(w))
        close(there.columns_sq(w), here.columns_sq(w))
        close(there.columns_sq(u**2), here.columns_sq(u**2))
        close(there.gram_product(x, w), here.gram_product(x, w))
        close(there.projected_sq(x, np.ones(3)), here.projected_sq(x, np.ones(3)))
        close(there.scaled_norms(np.abs(x[:, 0])), here.scaled_norms(np.abs(x[:, 0])))
        close(there.row_norms, here.row_norms)
        for mine, theirs in zip(
            there.weighted_sums(u[:, 0], u[:, 1]), here.weighted_sums(u[:, 0], u[:, 1]), strict=True
        ):
            close(mine, theirs)
        some = np.arange(n)[: min(n, 2)]
        close(there.numbers_of(some), here.numbers_of(some))


def close(one: Any, other: Any) -> None:
    one, other = on_host(one), np.asarray(other)
    assert one.shape == other.shape
    scale = float(np.abs(other).max(initial=0.0))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13 * scale)


# --- looks and evaluations ------------------------------------------------------------------


def law_looks_are_those_of_the_numpy_form(twin: Twin, place: Place) -> None:
    """Slopes, loads and every sum over the samples, at any predictions, kinks among them."""
    here, there = twin.here(), twin.there(place)
    rng, n = np.random.default_rng([twin.seed, 4]), here.design.n_samples
    pred = 2.0 * rng.normal(size=n)
    ends = [end for piece in here.pieces for end in (piece.lower, piece.upper)]
    for end in ends:
        pred = np.where(np.isfinite(end) & (rng.random(n) < 0.2), end, pred)
    nu, loads, sums = looks._in_numpy(here, 1.5, pred, slice(0, n))
    look = looks.Look(there, 1.5)
    found = look(there.design.vector(pred), slice(0, n))
    np.testing.assert_allclose(on_host(look.nu), nu, rtol=64 * EPS, atol=1e-300)
    np.testing.assert_allclose(on_host(found), loads, rtol=64 * EPS, atol=1e-300)
    scale = 64 * EPS + there.design.sum_error
    # errors of predictions are those of each design: of the same kind, not the same numbers
    names = looks.SampleSums._fields
    for name, mine, theirs in zip(names, look.sums, sums, strict=True):
        if name in ("change", "drift"):
            assert 0.25 * theirs <= mine * (1 + 1e-9) + 1e-300 and mine <= 4.0 * theirs + 1e-300
        else:
            assert abs(mine - theirs) <= scale * abs(theirs) + 1e-300, (name, mine, theirs)


def law_evaluations_agree(twin: Twin, place: Place) -> None:
    """Value and subgradient, up to what both say that rounding did."""
    here, there = twin.here(), twin.there(place)
    point = twin.point(here)
    one, other = here.evaluate(point), there.evaluate(point)
    off = here.rounding(one), there.rounding(other)
    assert abs(one.value - other.value) <= off[0].value + off[1].value
    apart = np.linalg.norm(one.subgradient - other.subgradient)
    assert apart <= off[0].gradient + off[1].gradient
    np.testing.assert_allclose(there.constant_value, here.constant_value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.unit, here.unit, rtol=1e-12)


# --- what is proved -------------------------------------------------------------------------


def solved(problem: Problem, tol: float = TOL, levels: tuple[float, ...] = (1.0,)) -> list[Fit]:
    """The fits of some levels, multiples of that of the problem."""
    penalty: Any = problem.penalty
    level = penalty.radius if penalty.is_constraint else problem.alpha
    path = [[problem.at_level(level * multiple)] for multiple in levels]
    settings = Settings(tol, 300, Screening(), solver="newton")
    return [fit for (fit,) in solve_path(path, settings)]


def law_gaps_bound_suboptimality(twin: Twin, place: Place) -> None:
    """P(x) − P(anything) ≤ gap, at some point and at the solution."""
    here, there = twin.here(), twin.there(place)
    best = solved(here, 1e-10)[0].at.value
    room = 1e-12 * (1.0 + abs(best))
    at = there.evaluate(twin.point(here))
    assert there.certify(at).gap >= at.value - best - room
    (fit,) = solved(there)
    assert fit.gap >= here.evaluate(fit.at.point).value - best - room


def law_solutions_agree(twin: Twin, place: Place) -> None:
    """The tolerance is reached, and models are as near to each other as their gaps imply."""
    here, there = twin.here(), twin.there(place)
    for one, other in zip(
        solved(here, levels=(4.0, 1.0)), solved(there, levels=(4.0, 1.0)), strict=True
    ):
        assert other.converged and isinstance(other.coef, np.ndarray)
        assert abs(one.at.value - other.at.value) <= one.gap + other.gap + 1e-12
        kappa = here.strong_convexity * other.problem.alpha / here.alpha
        if kappa > 0:
            apart = float(np.linalg.norm(one.coef - other.coef))
            allowed = sum(math.sqrt(2.0 * fit.gap / kappa) for fit in (one, other))
            assert apart <= allowed + 1e-12 * (1.0 + apart)


def law_verdicts_never_contradict(twin: Twin, place: Place) -> None:
    """What is decided there is on its piece at an exact solution, and where it is decided here."""
    here, there = twin.here(), twin.there(place)
    (fit,), (known,) = solved(there), solved(here, 1e-10)
    which = on_host(fit.decisions.which)
    assert isinstance(fit.kept, np.ndarray) and isinstance(fit.undecided, np.ndarray)
    own = known.decisions
    both = (which >= 1) & (own.which >= 1)
    same = (on_host(fit.decisions.lower) == own.lower) & (on_host(fit.decisions.upper) == own.upper)
    assert same[both].all()
    if here.strong_convexity > 0 and not twin.intercept:
        reach = math.sqrt(2.0 * known.gap / here.strong_convexity) * here.design.row_norms + 1e-12
        pred = known.at.pred
        inside = (pred + reach > on_host(fit.decisions.lower)) & (
            pred - reach < on_host(fit.decisions.upper)
        )
        assert inside[which >= 1].all()
    assert not fit.kept[here.weights == 0].any()


def law_regions_contain_the_optimum(twin: Twin, place: Place) -> None:
    """Bounds around a rough point hold at the solution, and are about those found here."""
    here, there = twin.here(), twin.there(place)
    known = solved(here, 1e-12)[0]
    rng = np.random.default_rng([twin.seed, 5])
    size = float(rng.choice([0.0, 1e-6, 1e-2, 0.3]))
    point = here.feasible(known.at.point + size * rng.normal(size=len(known.at.point)))
    certificates = [one.certify(one.evaluate(point)) for one in (here, there)]
    strong = here.strong_convexity > 0 and not twin.intercept
    kinds = [regions.Auto(), regions.Curvature(rank=1), regions.Curvature()]
    for region in kinds + ([regions.GapBall(), regions.GradientBall()] if strong else []):
        one, other = (region.build(proved) for proved in certificates)
        assert other.certified
        bounds = other.own_bounds(there)
        lower, upper = on_host(bounds.lower), on_host(bounds.upper)
        if strong:
            reach = math.sqrt(2.0 * known.gap / here.strong_convexity) * here.design.row_norms
            reach = reach + 1e-12 * (1.0 + np.abs(known.at.pred))
            assert (known.at.pred >= lower - reach).all()
            assert (known.at.pred <= upper + reach).all()
        decisions = decide(there, bounds, "always"), decide(here, one.own_bounds(here), "always")
        theirs, mine = (on_host(found.which) for found in decisions)
        assert (theirs == mine)[(theirs >= 1) & (mine >= 1)].all()


def law_nothing_that_grows_leaves_the_device(twin: Twin, place: Place) -> None:
    """Inside of a path no transfer is as long as a vector over the samples."""
    there = replace(twin, n=600).there(place)
    with counting_transfers() as moved:
        solved(there, levels=(10.0, 3.0, 1.0))
    assert moved and max(moved) < 300, max(moved)


LAWS = [
    law_products_are_within_their_bounds,
    law_operations_are_those_of_rows_here,
    law_looks_are_those_of_the_numpy_form,
    law_evaluations_agree,
    law_gaps_bound_suboptimality,
    law_solutions_agree,
    law_verdicts_never_contradict,
    law_regions_contain_the_optimum,
    law_nothing_that_grows_leaves_the_device,
]


def main(names: list[str], n_problems: int) -> int:
    """Run every law on some devices; how many failed."""
    n_failed = 0
    for name in names:
        place = place_named(name)
        for law in LAWS:
            began, n = time.perf_counter(), 0
            for twin in twins(n_problems):
                n += 1
                try:
                    law(twin, place)
                except Exception as error:
                    n_failed += 1
                    print(f"FAILED {law.__name__} {twin}: {type(error).__name__}: {error}")
            seconds = time.perf_counter() - began
            print(f"{place.name}: {law.__name__}: {n} problems, {seconds:.1f} s", flush=True)
    print(f"{n_failed} failures")
    return n_failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("devices", nargs="*", default=["cuda"])
    parser.add_argument("--problems", type=int, default=60, help="for each law")
    arguments = parser.parse_args()
    sys.exit(min(main(arguments.devices, arguments.problems), 1))
