"""The laws of looks can fail: each mistake, written into the source, makes those named break.

The compiled loops are run as plain Python for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from safesift.arithmetic.compiled import rows, samples
from safesift.design import blocks
from safesift.losses import LOSSES
from safesift.problem import duality, looks
from tests.laws import look_cases as made
from tests.laws import look_laws as laws
from tests.laws.plain_python import interpreted


@pytest.fixture(scope="module", autouse=True)
def several_blocks():
    with made.small_blocks():
        yield


# --- sources with a mistake -----------------------------------------------------------------------


class Mistake:
    """Some text of a module's source, and what is written there instead."""

    def __init__(self, module: ModuleType, old: str, new: str) -> None:
        self.module, self.old, self.new = module, old, new

    def source(self, module: ModuleType) -> str:
        source = Path(module.__file__ or "").read_text()
        if module is not self.module:
            return source
        assert source.count(self.old) == 1, self.old
        return source.replace(self.old, self.new)


NONE = Mistake(looks, "class Look:", "class Look:")


def _module(source: str, name: str) -> dict[str, Any]:
    names = {"__name__": name}
    exec(compile(source, name, "exec"), names)
    return names


@contextmanager
def written(mistake: Mistake) -> Iterator[None]:
    """Everything that a look is made of, as plain Python, with a mistake in it."""
    of_rows = interpreted(mistake.source(rows), {})
    products = {name: of_rows[name] for name in ("row_dot", "row_add", "rows_dot", "rows_add")}
    of_samples = interpreted(mistake.source(samples), products | {"packed": of_rows["packed"]})
    of_looks = _module(mistake.source(looks), looks.__name__)
    of_duality = _module(mistake.source(duality), duality.__name__)
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for name, product in products.items():
            patch.setattr(laws, name, product)
        for name in ("look_at", "pass_through"):
            patch.setattr(samples, name, of_samples[name])
        for name in ("Look", "_in_numpy"):
            patch.setattr(looks, name, of_looks[name])
        patch.setattr(laws, "Dual", of_duality["Dual"])
        yield


# --- laws that fail -------------------------------------------------------------------------------

LAWS = {
    "slopes": laws.law_of_slopes_and_values,
    "exact": laws.law_of_exact_numbers,
    "terms": laws.law_of_terms,
    "changes": laws.law_of_changes,
    "shrinking": laws.law_of_shrinking,
    "sums": laws.law_of_sums,
    "numpy": laws.law_of_the_numpy_form,
    "no number": laws.law_of_what_is_no_number,
    "rows": laws.law_of_rows,
    "pass": laws.law_of_a_pass,
    "gaps": laws.law_of_own_gaps,
}
# generated from the name of a loss; rows have a storage instead
MADE = {
    "exact": made.dyadic_cases,
    "no number": lambda name: made.cases(name, wild=True),
    "rows": made.some_rows,
    "pass": lambda name: made.passes(name, "csr, 64 bit"),
    "gaps": made.balanced,
}


def fails(law: str, name: str) -> bool:
    """Whether the law fails for something that is made for it."""

    # rounding hides a sign only now and then, and numbers overflow as rarely
    n_examples = 200 if law in ("gaps", "no number") else 40

    @settings(settings.get_profile("few"), max_examples=n_examples)
    @given(MADE.get(law, made.cases)(name))
    def checked(one):
        LAWS[law](one)

    try:
        checked()
    except AssertionError:
        return True
    return False


def _settings() -> list[tuple[str, str]]:
    """Laws, and what they are checked on without a mistake."""
    chosen = [("rows", storage) for storage in made.STORAGES]
    chosen += [("gaps", name) for name in made.SATURATED]
    for name in ("hinge", "huber", "smoothed_interval", "logistic", "safe_logistic"):
        others = [law for law in LAWS if law not in ("rows", "gaps")]
        piecewise = LOSSES[name].quadratic_rays
        chosen += [(law, name) for law in others if piecewise or law != "exact"]
    return chosen


@pytest.mark.parametrize(("law", "name"), _settings())
def test_plain_python_keeps_the_laws(law, name):
    with written(NONE):
        assert not fails(law, name)


SLOPE = "v = min(max(v, least), most)"
LINEAR = "return v, v * (beyond - 0.5 * curvature * v)"
EXCESS = "t - min(max(t, low), high)"
RISE = "change = max(below, above) - value + 32.0 * _EPS * value"
LEAST = "return min(change, lipschitz * error) if lipschitz < np.inf else change"
FIRST = "own[FIRST_UP + down] += share * max(value - second, 0.0)"
SECOND = "own[SECOND_UP + down] += share * second"
EITHER = "if second == 0.0 or parabola:"
ENTROPY = "bound = size / (1.0 - size) if size < 1.0 else np.inf"
TABLE = "\n    low, high, least, most, curvature = loss"
MARGIN = "_bent(low, high, least, most, curvature, y[i] * t)"
LOSS = ["slopes", "exact", "numpy"]


@pytest.mark.parametrize(
    ("name", "old", "new", "broken"),
    [
        # the loss
        ("huber", SLOPE, "pass", LOSS),
        ("huber", SLOPE, "v = most", LOSS),
        ("huber", LINEAR, "return v, 0.5 * v * beyond", LOSS),
        ("squared_interval", EXCESS, "t - min(t, high)", LOSS),
        ("squared_interval", EXCESS, "min(max(t, low), high) - t", LOSS),
        ("squared_interval", TABLE, f"{TABLE}; i = 0", LOSS),
        ("squared_hinge", MARGIN, MARGIN.replace("y[i] * t", "t"), LOSS),
        ("squared_hinge", "return y[i] * v, value", "return v, value", LOSS),
        ("smoothed_hinge", "v = beyond / curvature if", "v = beyond if", LOSS),
        ("hinge", "nothing = 0.0 if t == t else np.nan", "nothing = 0.0", ["no number"]),
        ("logistic", "return -y * (small / (1.0 + small)), math.log1p(small)",
         "return -y / (1.0 + small), math.log1p(small)", ["slopes", "numpy"]),
        ("logistic", "return -y / (1.0 + small), math.log1p(small) - margin",
         "return -y / (1.0 + small), math.log1p(small)", ["slopes", "numpy"]),
        ("safe_logistic", "if z >= 0.0:", "if z >= -1.0:", ["slopes", "numpy"]),
        ("safe_logistic", "_N_TERMS = 20", "_N_TERMS = 8", ["slopes"]),
        # the sums
        ("squared", "if not share > 0.0:", "if False:", ["no number"]),
        ("squared", "loads[k] = share * v", "loads[k] = v", ["sums"]),
        ("squared", "_added(losses, rest, share * value)", "_added(losses, rest, value)", ["sums"]),
        ("squared", "return found, rest + ((total - found) + value)", "return found, total",
         ["sums"]),
        ("squared", "own[MASS_UP + down] += mass", "own[MASS_UP + down] += abs(v)", ["sums"]),
        ("squared", "down = 1 if v < 0.0 else 0", "down = 1 if v > 0.0 else 0",
         ["terms", "numpy", "shrinking"]),
        ("squared", "own[LOAD_UP + down] += mass * norm", "own[LOAD_UP + down] += mass",
         ["terms", "numpy"]),
        ("squared", "own[DRIFT] += share * norm * (smoothness * error)", "pass",
         ["terms", "numpy", "changes"]),
        ("squared", "own[LOSS] = losses + rest if abs(losses) < np.inf else losses",
         "own[LOSS] = losses if losses == losses else 0.0", ["no number"]),
        ("squared", "abs(t) + abs(size) + 1.0", "abs(t) * 0.0 + abs(size) * 0.0",
         ["terms", "numpy"]),
        ("hinge", RISE, "change = 0.0", ["changes", "numpy"]),
        ("hinge", RISE, "change = above - value", ["changes", "numpy"]),
        ("huber", "change = error * (abs(v) + 0.5 * smoothness * error)", "change = 0.0",
         ["changes", "numpy"]),
        ("huber", "change = error * (abs(v) + 0.5 * smoothness * error)",
         "change = error * abs(v)", ["changes", "numpy"]),
        ("huber", LEAST, "return change", ["numpy"]),
        ("hinge", LEAST, "return lipschitz * error", ["numpy"]),
        ("hinge", "if not error < np.inf:", "if False:", ["no number"]),
        # what shrinking costs
        ("huber", "return 0.5 * loss[-1] * v * v", "return loss[-1] * v * v",
         ["terms", "shrinking"]),
        ("huber", "return 0.5 * loss[-1] * v * v", "return 0.5 * v * v / loss[-1] ** 2", ["terms"]),
        ("huber", FIRST, "pass", ["terms", "numpy", "shrinking"]),
        ("huber", FIRST, "own[FIRST_UP + down] += share * value", ["terms", "numpy"]),
        ("huber", FIRST, "own[FIRST_UP] += share * max(value - second, 0.0)",
         ["terms", "shrinking"]),
        ("huber", SECOND, "pass", ["terms", "numpy", "shrinking"]),
        ("huber", SECOND, "own[SECOND_UP] += share * second", ["terms", "shrinking"]),
        ("huber", SECOND, "own[SECOND_UP + down] += second", ["sums"]),
        ("huber", EITHER, "if second == 0.0:", ["terms", "numpy", "shrinking"]),
        ("logistic", EITHER, "if parabola:", ["terms", "numpy", "shrinking"]),
        ("logistic", ENTROPY, "bound = size", ["shrinking"]),
        ("safe_logistic", ENTROPY, "bound = 0.1 * size", ["shrinking"]),
        ("logistic", "return bound if bound <= _MUCH * value else 0.0", "return bound", ["terms"]),
        # the pass
        ("squared_hinge", "here += x[p]", "pass", ["pass"]),
        ("squared_hinge", "part[p] = loads[:n_left].sum()", "part[p] = loads[:n].sum()", ["pass"]),
        ("squared_hinge", "for start in range(first, last, block):",
         "for start in range(first + block * (last - first > block), last, block):", ["pass"]),
        ("squared_hinge", "look(loss, start, here,", "look(loss, first, here,", ["pass"]),
        ("squared_hinge", "part[:] = 0.0", "pass", ["pass"]),
        ("squared_hinge", "gradient[:] = total", "gradient[:] = part", ["pass"]),
    ],
)  # fmt: skip
def test_mistakes_in_loops_over_samples(name, old, new, broken):
    with written(Mistake(samples, old, new)):
        assert [law for law in broken if not fails(law, name)] == []


@pytest.mark.parametrize(
    ("storage", "old", "new"),
    [
        ("float32", "value += entries[j] * x[j]", "value += abs(entries[j]) * x[j]"),
        ("C", "x[j] += scale * entries[j]", "x[j] = scale * entries[j]"),
        ("C", "range(0, n - 3, 4)", "range(0, n - 4, 4)"),
        ("C", "range(n - n % 4, n)", "range(n, n)"),
        ("C", "c, d = row(matrix, rows[k + 2]), row(matrix, rows[k + 3])",
         "c, d = row(matrix, rows[k + 3]), row(matrix, rows[k + 2])"),
        ("Fortran", "out[k] += scale * column[rows[k]]", "out[k] += scale * column[rows[k] - 1]"),
        ("Fortran", "out[:] = 0.0", "pass"),
        ("Fortran, float32", "value += scales[k] * column[rows[k]]",
         "value += scales[k] * column[rows[k] - 1]"),
        ("Fortran", "x[j] += value", "x[j] = value"),
        ("Fortran", "out[k] += q * a[k] + r * b[k] + s * c[k] + t * d[k]",
         "out[k] += q * a[k] + r * b[k] + s * d[k] + t * c[k]"),
        ("Fortran, float32", "out[k] += scale * rest[k]", "out[k] = scale * rest[k]"),
        ("Fortran", "s += u[k] * c[k]", "s += u[k] * d[k]"),
        ("Fortran, float32", "q += u[k] * rest[k]", "q += rest[k]"),
        ("Fortran", "rows[k] != rows[k - 1] + 1", "rows[k] <= rows[k - 1]"),
        ("csr", "value += data[entry] * x[index(indices[entry])]",
         "value += data[entry] * x[entry - index(indptr[i])]"),
        ("csr, float32", "x[index(indices[entry])] += scale * data[entry]",
         "x[index(indices[entry])] = scale * data[entry]"),
        ("csr, 64 bit", "out[k] = row_dot(matrix, rows[k], x)", "out[k] = row_dot(matrix, 0, x)"),
    ],
)  # fmt: skip
def test_mistakes_in_loops_over_rows(storage, old, new):
    with written(Mistake(rows, old, new)):
        assert fails("rows", storage)


@pytest.mark.parametrize(
    "new", ["loads[n_left] = loads[k]", "loads[n_left], rows[n_left] = loads[n_left], rows[k]"]
)
def test_mistakes_in_leaving_rows_out(new):
    with written(Mistake(rows, "loads[n_left], rows[n_left] = loads[k], rows[k]", new)):
        assert fails("pass", "squared_hinge")


SUMS = "for values in (mass * norms, mass, value, nothing)"
CHANGE = "total(shares, np.minimum(change, loss.lipschitz * error)),"


@pytest.mark.parametrize(
    ("name", "old", "new", "broken"),
    [
        ("squared", "design.dot_error * self._size,", "0.0,", ["terms", "changes", "numpy"]),
        ("squared", "(*found.tolist(), float(found[0]))", "(*found.tolist(), 0.0)", ["sums"]),
        ("squared", "self._problem.design.sample_blocks)",
         "self._problem.design.sample_blocks[:1])", ["sums"]),
        ("squared", "SideSums(self.load_up, self.mass_up, self.first_up, self.second_up)",
         "SideSums(self.load_up, self.mass_up, self.second_up, self.first_up)", ["sums"]),
        ("huber", SUMS, "for values in (mass * norms, mass, nothing, value)",
         ["shrinking"]),
        ("huber", SUMS, "for values in (mass * norms, mass, 0.5 * value, nothing)",
         ["numpy", "shrinking"]),
        ("huber", SUMS, "for values in (mass, mass, value, nothing)", ["numpy"]),
        ("huber", "for side in (nu > 0, nu < 0)", "for side in (nu < 0, nu > 0)",
         ["numpy", "shrinking"]),
        ("huber", CHANGE, "0.0,", ["numpy", "changes"]),
        ("huber", "total(shares, norms * drift)", "0.0", ["numpy", "changes"]),
        ("hinge", "return (ends - loss.value(pred, y)) + rounding", "return rounding",
         ["numpy", "changes"]),
    ],
)  # fmt: skip
def test_mistakes_in_looks(name, old, new, broken):
    with written(Mistake(looks, old, new)):
        assert [law for law in broken if not fails(law, name)] == []


@pytest.mark.parametrize("name", made.SATURATED)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("((sums.up, not rest < -error), (sums.down, not rest > error))",
         "((sums.up, rest > 0), (sums.down, not rest > 0))"),
        ("cost = shrink * (side.first + shrink * side.second)", "cost = 0.0"),
        ("first=(max(first) + sums.change)", "first=(min(first) + sums.change)"),
    ],
)  # fmt: skip
def test_mistakes_in_own_gaps(name, old, new):
    with written(Mistake(duality, old, new)):
        assert fails("gaps", name)


def test_a_task_that_is_left_out_is_noticed(monkeypatch):
    tasks = blocks.BlockedRows._tasks
    monkeypatch.setattr(blocks.BlockedRows, "_tasks", lambda self, *how: tasks(self, *how)[:-1])
    assert fails("pass", "squared_hinge")
