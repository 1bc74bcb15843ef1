"""The laws of what a pass finds at the predictions, as plain functions.

The compiled loops are held against their NumPy form, exact arithmetic, and separate passes.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numba import njit
from scipy import sparse as scipy_sparse

from safesift.arithmetic.compiled import rows as row_loops
from safesift.arithmetic.numerics import EPS, UNDERFLOW
from safesift.design import as_design
from safesift.design.rows import RowDesign
from safesift.problem import looks
from safesift.problem.duality import Dual
from safesift.problem.looks import SampleSums
from tests.laws import exact
from tests.laws.look_cases import FEW, FIELDS, STORAGES, Case, Pass, Rows

SIDES = ("up", "down")
# what `Dual.own_gap` sets aside for the rounding of sums
SOME = 1e-6
TINY = Fraction(8 * UNDERFLOW)
# shares by which slopes are shrunk
SHRINKS = [Fraction(1, 2**k) for k in (0, 1, 3, 20, 60)]


# --- laws of single samples -----------------------------------------------------------------------


def law_of_slopes_and_values(case: Case) -> None:
    """They are those of a prediction a few roundings away, up to a few roundings.

    Slopes never fall, so that they lie between those at the two ends; and a convex function changes
    most towards one of the ends.
    """
    nu, terms = case.terms()
    for i, near in enumerate(map(Fraction, case.near)):
        here = case.exact(i)
        low, high = here.slope(here.t - near), here.slope(here.t + near)
        room = Fraction(FEW) * max(abs(low), abs(high)) + TINY
        assert low - room <= Fraction(nu[i]) <= high + room, (i, nu[i])
        value = here.value(here.t)
        ends = max(here.value(here.t - near), here.value(here.t + near))
        room = ends - value + Fraction(FEW) * value + TINY
        assert abs(Fraction(terms["loss"][i]) - value) <= room, (i, terms["loss"][i])


def law_of_exact_numbers(case: Case) -> None:
    """Where nothing is rounded on the way, slopes and values are the right ones."""
    nu, terms = case.terms()
    for i in range(case.n):
        here = case.exact(i)
        assert Fraction(nu[i]) == here.slope(here.t), i
        assert Fraction(terms["loss"][i]) == here.value(here.t), i


def law_of_terms(case: Case) -> None:
    """The terms of all sums follow from slope and value."""
    loss, (nu, terms) = case.problem.loss, case.terms()
    mass, norms, value = np.abs(nu), case.problem.design.row_norms, terms["loss"]
    error = looks.prediction_error(case.problem, case.size, case.pred, slice(0, case.n))
    for side, there in (("up", nu > 0), ("down", nu < 0)):
        np.testing.assert_array_equal(terms[f"mass_{side}"], np.where(there, mass, 0.0))
        expected = np.where(there, mass * norms, 0.0)
        np.testing.assert_allclose(terms[f"load_{side}"], expected, rtol=FEW, atol=UNDERFLOW)
        first, second = terms[f"first_{side}"], terms[f"second_{side}"]
        assert not first[~there].any() and not second[~there].any()
        if loss.quadratic_rays:
            square = np.where(there, 0.5 / loss.smoothness * nu**2, 0.0)
            np.testing.assert_allclose(second, square, rtol=FEW, atol=4 * UNDERFLOW)
            rest = np.where(there, np.maximum(value - square, 0.0), 0.0)
            assert (np.abs(first - rest) <= FEW * value + 4 * UNDERFLOW).all()
        else:
            # one or the other, and the one of the second order only where it is worth having
            assert not (first * second).any()
            np.testing.assert_array_equal(first, np.where(there & (second == 0), value, 0.0))
            assert (second <= 141.0 * value).all()
            known = there & (value < 5) & (value > 0.01) & (error < 0.1)
            assert (second[known] > 0).all()
    steepness = 0.0 if math.isinf(loss.smoothness) else loss.smoothness
    expected = norms * steepness * error
    np.testing.assert_allclose(terms["drift"], expected, rtol=FEW, atol=4 * UNDERFLOW)


def law_of_changes(case: Case) -> None:
    """Loss and slope are off by no more than change and drift, and a few roundings of themselves.

    Whatever the prediction is, up to the rounding of a product.
    """
    for nu, terms in (case.terms(), case.in_numpy()):
        for i in range(case.n):
            here, found = case.exact(i), {name: Fraction(terms[name][i]) for name in FIELDS}
            room = found["change"] + Fraction(FEW) * found["size"] + TINY
            norm, slope = Fraction(case.problem.design.row_norms[i]), Fraction(nu[i])
            drift = found["drift"] + norm * (Fraction(FEW) * abs(slope) + TINY)
            for t in here.possible:
                assert abs(found["loss"] - here.value(t)) <= room, i
                if not math.isinf(here.loss.smoothness):
                    assert norm * abs(slope - here.slope(t)) <= drift, i


def law_of_shrinking(case: Case) -> None:
    """To shrink the exact slope costs no more than what `Dual.own_gap` counts for its side."""
    for _, terms in (case.terms(), case.in_numpy()):
        for i in range(case.n):
            here, change = case.exact(i), Fraction(terms["change"][i])
            for t in here.possible:
                side = SIDES[here.slope(t) < 0]
                first = Fraction(terms[f"first_{side}"][i]) + change
                second = Fraction(terms[f"second_{side}"][i]) + change
                for shrink in SHRINKS:
                    bound = (1 + Fraction(SOME)) * shrink * (first + shrink * second) + TINY
                    assert here.cost(t, shrink) <= bound, (i, float(shrink))


def law_of_sums(case: Case) -> None:
    """Shares times terms, of samples of positive weight, up to a rounding for each."""
    look, (nu, terms), shares = (
        looks.Look(case.problem, case.size),
        case.terms(),
        case.problem.shares,
    )
    loads, counted = look.of_all(case.pred), case.problem.shares > 0
    np.testing.assert_array_equal(look.nu, nu)
    np.testing.assert_array_equal(loads, np.where(counted, shares * nu, 0.0))
    for name in FIELDS:
        expected = math.fsum(shares[counted] * terms[name][counted])
        room = (FEW if name in ("loss", "size") else FEW + case.n * EPS) * expected
        assert abs(getattr(look.sums, name) - expected) <= room + 4 * case.n * UNDERFLOW, name
    sums = look.sums
    assert sums.load == sums.load_up + sums.load_down
    for side in SIDES:
        expected = [getattr(sums, f"{name}_{side}") for name in looks.SideSums._fields]
        assert list(getattr(sums, side)) == expected


def law_of_the_numpy_form(case: Case) -> None:
    """Both forms agree, up to a few roundings of the prediction and of the terms.

    Of what shrinking costs the loops know more: in all it is the same where f* is a parabola.
    """
    loss, y, t = case.problem.loss, case.problem.y, case.pred
    (nu, terms), (plain, reference) = case.terms(), case.in_numpy()
    # around the slopes of the NumPy form: a wrong one must not make room for itself
    steep = FEW * np.abs(plain) + np.maximum(
        np.abs(loss.slope(t + case.near, y) - plain), np.abs(plain - loss.slope(t - case.near, y))
    )
    high = np.maximum(loss.value(t + case.near, y), loss.value(t - case.near, y))
    room = high - loss.value(t, y) + FEW * high
    error = looks.prediction_error(case.problem, case.size, t, slice(0, case.n))
    change = error * steep + 4.0 * room + 2.0 * FEW * reference["change"]
    if math.isinf(loss.smoothness):
        # either end of the interval may be on another side of a kink
        change = change + 4.0 * loss.lipschitz * case.near
    load = steep * case.problem.design.row_norms
    rooms = {"loss": room, "size": room, "mass": steep, "load": load, "change": change}
    rooms |= {"drift": FEW * reference["drift"]}
    assert (np.abs(nu - plain) <= steep + 8 * UNDERFLOW).all()
    for name in FIELDS:
        kind = name.split("_")[0]
        if kind in rooms:
            off = np.abs(terms[name] - reference[name])
            assert (off <= rooms[kind] + 8 * UNDERFLOW).all(), name
    for side in SIDES:
        whole = terms[f"first_{side}"] + terms[f"second_{side}"]
        off, known = whole - reference[f"first_{side}"], 4.0 * room + 8 * UNDERFLOW
        assert (off >= -known).all()
        assert not loss.quadratic_rays or (off <= known).all()


def law_of_what_is_no_number(case: Case) -> None:
    """Infinite predictions, and those that are none, come out as in NumPy: nothing is swallowed.

    A sum that is not finite need not be so in the same way: either says that nothing is known. The
    slope of a prediction that is none is none, which NumPy's comparisons do not say of kinks.
    """
    look, everything = looks.Look(case.problem, case.size), slice(0, case.n)
    loads = look(case.pred, everything)
    nu, plain_loads, sums = looks._in_numpy(case.problem, case.size, case.pred, everything)
    far, none, counted = np.isinf(case.pred), np.isnan(case.pred), case.problem.shares > 0
    np.testing.assert_array_equal(look.nu[far], nu[far])
    np.testing.assert_array_equal(loads[far], plain_loads[far])
    np.testing.assert_array_equal(np.isnan(look.nu), none)
    np.testing.assert_array_equal(np.isnan(loads), none & counted)
    found, plain = (_together(one) for one in (look.sums, SampleSums(*sums)))
    for name in plain:
        # a slope that is no number is of no side in NumPy, and so in neither sum
        if not (name.endswith(SIDES) and none[counted].any()):
            both = found[name], plain[name]
            assert math.isfinite(both[0]) == math.isfinite(both[1]), (name, both)
    assert math.isnan(look.sums.loss) or not none[counted].any()


def _together(sums: SampleSums) -> dict[str, float]:
    """What shrinking costs as one number: an infinite one may be of either order."""
    known = {name: getattr(sums, name) for name in FIELDS}
    for side in SIDES:
        known[f"cost_{side}"] = known.pop(f"first_{side}") + known.pop(f"second_{side}")
    return known


# --- laws of rows, passes and gaps ----------------------------------------------------------------

row_dot = njit(lambda matrix, i, x: row_loops.row_dot(matrix, i, x))
row_add = njit(lambda matrix, i, scale, x: row_loops.row_add(matrix, i, scale, x))
rows_dot = njit(lambda matrix, rows, x, out: row_loops.rows_dot(matrix, rows, x, out))
rows_add = njit(lambda matrix, rows, scales, x: row_loops.rows_add(matrix, rows, scales, x))


def law_of_rows(given: Rows) -> None:
    """Products with rows, of numbers of which nothing is rounded in any order."""
    X, storage, rows, x, scales = given
    design = as_design(STORAGES[storage](X), False)
    assert isinstance(design, RowDesign)
    matrix, out, total = design.compiled, np.full(len(rows), np.nan), x.copy()
    rows_dot(matrix, rows, x, out)
    np.testing.assert_array_equal(out, X[rows] @ x)
    rows_add(matrix, rows, scales, total)
    np.testing.assert_array_equal(total, x + scales @ X[rows])
    for i, scale in zip(rows, scales, strict=True):
        assert row_dot(matrix, i, x) == X[i] @ x
        one = x.copy()
        row_add(matrix, i, scale, one)
        np.testing.assert_array_equal(one, x + scale * X[i])


def law_of_a_pass(given: Pass) -> None:
    """One loop over the rows is a product, a look, and a transposed product."""
    problem, point = given
    design, size = problem.design, problem.design.size(given.point)
    assert isinstance(design, RowDesign) and design.compiled is not None
    together, apart = looks.Look(problem, size), looks.Look(problem, size)
    assert together.fused is not None
    pred, gradient = design.pass_through(point, together)
    room = design.dot_error * size * design.row_norms * 2 + 4 * UNDERFLOW
    assert (np.abs(pred - design.matvec(point)) <= room).all()
    loads = apart(pred, slice(0, design.n_samples))
    np.testing.assert_array_equal(together.nu, apart.nu)
    rows = design.gathered(np.arange(design.n_samples))
    rows = rows.toarray() if scipy_sparse.issparse(rows) else rows
    rows = np.hstack([rows, np.ones((len(rows), 1))]) if design.intercept else rows
    room = 2 * design.sum_error * (np.abs(loads) @ np.abs(rows)) + design.n_samples * UNDERFLOW
    assert (np.abs(gradient - design.rmatvec(loads)) <= room).all()
    assert (np.abs(gradient - loads @ rows) <= room).all()
    found, expected = _together(together.sums), _together(apart.sums)
    for name, value in expected.items():
        assert math.isfinite(found[name]) == math.isfinite(value), name
        near = (FEW + design.n_samples * EPS) * value
        assert not math.isfinite(value) or abs(found[name] - value) <= near, name


def law_of_own_gaps(given: Pass) -> None:
    """By what the gap of the gradient says, no point is better than the one it is known at."""
    problem, point = given
    gap, known = Dual(problem).own_gap(problem.evaluate(point)), exact.ExactProblem(problem)
    if math.isinf(gap):
        return
    here = known.objective(exact.fractions(point))
    for step in (sign * 2.0**k for k in range(-20, 8, 3) for sign in (-1, 1)):
        other = exact.fractions([*point[:-1], point[-1] + step])
        assert known.objective(other) >= here - Fraction(gap), step
