"""The laws of leaving samples out can fail: each mistake, written into the source, breaks one.

The compiled loops are run as plain Python for that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from safesift.arithmetic.compiled import leave_out as loops
from safesift.losses import Logistic, SafeLogistic
from safesift.workflows import held_out
from safesift.workflows.leaving_out import parts, pieces, smooth, support
from tests.laws.leaving_out_laws import Case, check_exact, check_inside
from tests.laws.planted_laws import law_secant_bounds
from tests.test_leave_one_out_attacks import (
    test_curvature_that_leaves_is_not_less_because_of_rounding as curvature_that_leaves,
)
from tests.test_leave_one_out_attacks import (
    test_samples_that_cross_on_the_way_to_the_optimum_are_paid_for as crossing_samples,
)

pytestmark = pytest.mark.slow


@contextmanager
def mistaken(module: ModuleType, old: str, new: str) -> Iterator[None]:
    """Everybody uses the names of a module as they would be with a mistake in its source."""
    source = Path(module.__file__ or "").read_text()
    _MISTAKES.append((module, old, new))
    for where, right, wrong in _MISTAKES:
        if where is module:
            assert source.count(right) == 1, (source.count(right), right)
            source = source.replace(right, wrong)
    if module is loops:
        source = source.replace("import cached_njit", "import cached_njit as _")
        source = source.replace("import numpy as np", "import numpy as np\n" + _PLAIN_PYTHON, 1)
    names: dict[str, Any] = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(source, module.__file__ or "", "exec"), names)
    replaced = []
    for name, right in vars(module).items():
        if name.startswith("__") or name not in names or not callable(right):
            continue
        if right.__module__ != module.__name__:
            # imported: others compile with it
            continue
        for user in [one for key, one in sys.modules.items() if key.startswith("safesift")]:
            if vars(user).get(name) is right:
                replaced.append((user, name, right))
                setattr(user, name, names[name])
    try:
        yield
    finally:
        _MISTAKES.pop()
        for user, name, right in replaced:
            setattr(user, name, right)


# those that are made now, one inside the other
_MISTAKES: list[tuple[ModuleType, str, str]] = []
_PLAIN_PYTHON = "cached_njit = lambda **_: lambda function: function\n"


def case(seed: int, **more: Any) -> Case:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 3))
    y = np.where(X[:, 0] + rng.normal(size=24) > 0, 1, -1)
    y[:4] = [1, -1, 1, -1]
    options = {"loss": "squared_hinge", "alpha": 1e-2, "fit_intercept": bool(seed % 2)} | more
    return Case(X, y, **options)


def exact(**more: Any) -> Callable[[], None]:
    """Predictions are those of refits, for several problems."""

    def law() -> None:
        for seed in range(4):
            check_exact(case(seed, **more))

    return law


def weighted() -> None:
    for seed in range(3):
        check_exact(case(seed, sample_weight=np.tile([1.0, 3.0], 12)))


def inside(loss: str, width: float) -> Callable[[], None]:
    """Intervals hold what refits say, however long they are."""

    def law() -> None:
        for seed in range(4):
            check_inside(case(seed, loss=loss), width=width)

    return law


def unfinished() -> None:
    """Also where the search ends too early, intervals hold what refits say."""
    with mistaken(loops, "_PLAIN, _STEPS, _DAMPED = 8, 60,", "_PLAIN, _STEPS, _DAMPED = 8, 1,"):
        for seed in range(4):
            check_inside(case(seed), width=1e9)


def on_kinks(jumps: bool) -> Callable[[], None]:
    """Samples that rounding may move over a kink are paid for."""
    from tests.test_leave_one_out_attacks import (
        test_samples_that_may_be_beyond_a_kink_are_paid_for as law,
    )

    return lambda: law(jumps)


def sparse_support() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 8))
        y = X[:, 0] + 0.5 * rng.normal(size=12)
        check_inside(Case(X, y, "squared", 0.3, "l1", False), width=1e-3)


MISTAKES = {
    "nobody changes piece": (loops, "        if now != piece[j]:", "        if False:", exact()),
    "the level stays": (
        parts, "problem.alpha * ((whole - weights) / whole)", "problem.alpha + 0.0 * weights",
        exact(),
    ),
    "distances without the length of z": (
        pieces, "np.maximum(distance, 0.0) / base.z_norms", "np.maximum(distance, 0.0) / 0.2",
        exact(),
    ),
    "weights squared": (
        pieces, "base.pred_error, base.problem.shares, self", "base.pred_error, "
        "base.problem.shares**2 * len(base.at.pred), self", weighted,
    ),
    "slopes change the other way": (
        loops, "    return share[j] * (slope - _slope(quad[j], lin[j], piece[j], t))",
        "    return share[j] * (_slope(quad[j], lin[j], piece[j], t) - slope)", exact(),
    ),
    "a radius of nothing": (
        loops, "needed = (size + unsure) / curvature * (1.0 + 1e-12)", "needed = 0.0", unfinished,
    ),
    "samples that stayed are on their piece for certain": (
        loops, "unsure += share[j] * unlike * error * znorm[j]", "unsure += 0.0", on_kinks(False),
    ),
    "nothing lies between two pieces": (
        loops, "_unlike(breaks[j], quad[j], piece[j], now, error)\n        doubt",
        "abs(new_quad - old_quad)\n        doubt", on_kinks(True),
    ),
    "the gradient is forgotten": (
        loops, "    size = _dot(r, r) ** 0.5 * (1.0 + dot_error) + loose * length + eerr",
        "    size = loose * length + eerr", unfinished,
    ),
    "secants do not fall": (
        smooth, "            least = 1.0 - loose - gone - secants.below",
        "            least = 1.0 - loose - gone", inside("logistic", 1e9),
    ),
    "secants do not rise": (
        smooth, "(1.0 + loose[k] + secants.above - least_gone)", "(1.0 + loose[k] - least_gone)",
        inside("logistic", 1e9),
    ),
    "leverage is forgotten": (
        smooth, "        gone = self._load[rows] * z**2 * (1.0 + 2.0 * base.share_error)",
        "        gone = 0.0 * z", inside("logistic", 1e9),
    ),
    "rows that leave are known exactly": (
        smooth, "system.largest * (1.0 + self.base.share_error) + self._doubt(rows)",
        "system.largest * (1.0 + self.base.share_error)", curvature_that_leaves,
    ),
    "the base is its own optimum": (
        pieces, "alone.status[0], 0.0, far", "alone.status[0], 0.0, alone.radius[0]",
        crossing_samples,
    ),
    "no feature joins": (
        support, "        return np.asarray(~below.all(axis=1))",
        "        return np.zeros(len(some), dtype=bool)", sparse_support,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_noticed(name):
    module, old, new, law = MISTAKES[name]
    law()
    with mistaken(module, old, new), pytest.raises(AssertionError):
        law()


def test_certified_alphas_notice_a_mistake():
    from tests.test_leave_one_out import check_no_alpha_is_better

    check_no_alpha_is_better(0, epsilon=0.0)
    with (
        mistaken(
            held_out,
            "np.hstack([~(lower > 0), ~(upper <= 0)])",
            "np.hstack([~(lower + upper > 0), lower + upper > 0])",
        ),
        pytest.raises(AssertionError),
    ):
        for seed in range(4):
            check_no_alpha_is_better(seed, epsilon=0.0)


@pytest.mark.parametrize("loss", ["logistic", "safe_logistic"])
def test_ceilings_of_curvature_notice_a_mistake(loss, monkeypatch):
    def law() -> None:
        for seed in range(5):
            law_secant_bounds(seed, loss, "l2", "plain", False)

    law()
    kind = {"logistic": Logistic, "safe_logistic": SafeLogistic}[loss]
    monkeypatch.setattr(kind, "_curvature_ceiling", kind.curvature_floor)
    with pytest.raises(AssertionError):
        law()
