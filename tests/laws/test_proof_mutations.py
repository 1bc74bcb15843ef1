"""Mistakes in the checker, each of which a law must notice."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path

import pytest

from tests.laws import proof_laws, proof_traps

SOURCE = Path(__file__).parents[2] / "check" / "safesift_check.py"

# what is wrong -> the text, and what is there in its place
REST, GAP = "base + self.penalty_gap(x[:p], v) + slack", "rest + losses * eta, rest"
MUTATIONS = {
    "the gap halved": ("np.minimum(gap.up, total.up)", "np.minimum(gap.up, total.up) / 2"),
    "the penalty's part of the gap forgotten": (REST, "base + slack"),
    "the losses' part of the gap forgotten": (REST, "self.penalty_gap(x[:p], v) + slack"),
    "the slack of a ball forgotten": (REST, "base + self.penalty_gap(x[:p], v)"),
    "an intercept whose slopes need not cancel": (
        "if self.intercept:\n            up, down", "if False:\n            up, down",
    ),
    "slopes that are given up for nothing": (
        GAP, "rest, rest",
    ),
    "slopes beyond those of l1 for nothing": (
        "kinks + (s * x).sum() + near(abs(s).up.max()) * self.whole", "kinks + (s * x).sum()",
    ),
    "a dual point outside of the domain": (
        "(abs(nu) <= self.m) & (abs(end) < math.inf)", "(abs(nu) <= 9) & (abs(end) < math.inf)",
    ),
    "1/n for 1/W": ("/ near(weights).sum() *", "/ near(float(len(weights))) *"),
    "a forgotten weight": (
        "(self.share[rows] * loss.secant_floor(here, wider)).low",
        "near(loss.secant_floor(here, wider) * (1.0 / self.data.n)).low",
    ),
    "closed intervals": (
        "wider = bound * (1 + ar.array(2.0**-20)[()]) + ar.array(2.0**-500)[()]",
        "wider = bound * (1 - ar.array(2.0**-50)[()]) + ar.array(2.0**-500)[()]",
    ),
    "at the end of a piece for strictly inside": (
        "first = sum((lower > end + self.off).astype(int) for end in ends)\n"
        "        last = 4 - sum((upper < end - self.off).astype(int) for end in ends)",
        "first = sum((lower > end - 1e-9).astype(int) for end in ends)\n"
        "        last = 4 - sum((upper < end + 1e-9).astype(int) for end in ends)",
    ),
    "a flat piece on the wrong side": (
        "np.where(self.y > 0, edge, -math.inf), np.where(self.y < 0, -edge, math.inf)",
        "np.where(self.y < 0, edge, -math.inf), np.where(self.y > 0, -edge, math.inf)",
    ),
    "v0 not verified: the wrong sign": ("self.tau * np.sign(x)", "self.tau * -np.sign(x)"),
    "v0 at 0 beyond the penalty's slope": (
        "near(np.clip(-v.mid, -limit, limit)) * (x == 0)", "near(-v.mid) * (x == 0)",
    ),
    "a radius halved": (
        "radius = ((steep + ar.root(slack.up)) / (near(1) - eta)).up",
        "radius = ((steep + ar.root(slack.up)) / (near(1) - eta)).up / 2",
    ),
    "T not verified": (
        "need(least >= (near(1) - eta + near(ar.root(E.up)) * 2 + E).up,", "need(True,",
    ),
    "a slack forgotten": ("(steep + ar.root(slack.up))", "(steep + 0)"),
    "curvature by epsilon for nothing": (
        "slack = self.value(x)[1] + far * far * epsilon", "slack = self.value(x)[1]",
    ),
    "all the curvature of a ball": (
        "self.kappa.low / (2 if self.is_ball else 1)", "self.kappa.low",
    ),
    "curvature of a kink where there is none": (
        "kinks = np.where(x == 0, np.maximum((self.tau - abs(pull)).low, 0), 0)",
        "kinks = np.maximum(self.tau.low + 0 * x, 0)",
    ),
    "secants that never fall": (
        "curve, share = 1 / self.k, np.minimum(room / reach, 1)",
        "curve, share = 1 / self.k, 1 + 0 * reach",
    ),
    "secants up to the linear piece and beyond": (
        "room = np.minimum(np.where(self.point, reach, e.low), room)",
        "room = np.where(self.point, reach, e.low)",
    ),
    "a gap ball of half the radius": (
        "self.close = ar.root((near(gap.up) * (8 if self.is_ball else 2) / self.kappa).up)",
        "self.close = ar.root((near(gap.up) / self.kappa).up) / 2",
    ),
    "features that move half as far": (
        "ar.root((self.moved * squares).up)", "ar.root((self.moved * squares).up) / 4",
    ),
    "features up to the threshold and beyond": (
        "ar.root((self.moved * squares).up)).up < self.tau.low",
        "ar.root((self.moved * squares).up)).low < self.tau.up * 1.5",
    ),
    "features that are not proved": (
        'need(self.vanish[zero != 0], "a feature is not proved to be 0")', "pass",
    ),
    "bounds on an intercept that forget the coefficients": (
        "sums = [t + moved + low, t - moved + high]", "sums = [t + low, t + high]",
    ),
    "bounds on an intercept that nobody verifies": (
        "fine = sums[0].up < 0 and sums[1].low > 0 if", "fine = True if",
    ),
    "a rest of slopes forgotten": (
        "self.rest + self.surplus * np.maximum(-low, high)", "self.rest + 0",
    ),
    "a reach halved": (
        "self.reach = np.minimum(self.whole, (abs(near(x)) + self.close).up)",
        "self.reach = np.minimum(self.whole, (abs(near(x)) + self.close).up) / 4",
    ),
}  # fmt: skip


def mutated(old: str, new: str, source: Path = SOURCE):
    text = source.read_text()
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    spec = importlib.util.spec_from_loader(f"{source.stem}_mutated", loader=None)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    exec(compile(text.replace(old, new), spec.name, "exec"), module.__dict__)
    return module


def noticed(checker) -> bool:
    """Whether a trap or the law finds a mistake."""
    laws = (*proof_traps.TRAPS, *itertools.repeat(proof_laws.law_the_checker_is_right, 1500))
    for seed, law in enumerate(laws):
        try:
            law(seed, checker)
        except AssertionError:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mistake_is_noticed(name):
    assert noticed(mutated(*MUTATIONS[name]))


def test_there_are_enough_mistakes():
    assert len(MUTATIONS) >= 20
