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
MUTATIONS = {
    "the gap halved": ("self.gap = (fenchel", "self.gap = near(0.5).mid * (fenchel"),
    "the penalty's part of the gap forgotten": (
        "(fenchel + self.penalty_gap(x, v * theta)).up", "fenchel.up",
    ),
    "the losses' part of the gap forgotten": (
        "(fenchel + self.penalty_gap(x, v * theta)).up", "self.penalty_gap(x, v * theta).up",
    ),
    "an intercept whose slopes need not cancel": (
        "if self.intercept and pushing:", "if False:",
    ),
    "a multiple of the dual point that costs nothing": (
        "d = (near(1) - theta + eta).up", "d = near(eta).up",
    ),
    "a dual point outside of the domain": (
        'need(loss.in_domain(own), "a dual point is outside of the domain of f*")', "pass",
    ),
    "rows that gain from the shrinking of others": (
        "first = (-linear - half * 2).clip(0, math.inf)", "first = -linear - half * 2",
    ),
    "1/n for 1/W": ("total = math.fsum(data.weights) if", "total = float(len(data.weights)) if"),
    "a forgotten weight": (
        "shape.add(block, near(loss.secant_floor(t, wider)) * share)",
        "shape.add(block, near(loss.secant_floor(t, wider)) * (1.0 / self.n))",
    ),
    "closed intervals": (
        "wider = bound * (1 + ar.array(2.0**-20)[()]) + ar.array(2.0**-500)[()]",
        "wider = bound * (1 - ar.array(2.0**-50)[()])",
    ),
    "at the end of a piece for strictly inside": (
        "(lower > self.lo.up)) & (~self.has_hi | (upper < self.hi.low))",
        "(lower > self.lo.low - 1e-9)) & (~self.has_hi | (upper < self.hi.up + 1e-9))",
    ),
    "a flat piece on the wrong side": (
        "self.has_lo, self.has_hi = ends, ends, self.y > 0, self.y < 0",
        "self.has_lo, self.has_hi = ends, ends, self.y < 0, self.y > 0",
    ),
    "v0 not verified: the wrong sign": (
        "sign, zero = np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0)), x == 0",
        "sign, zero = np.where(x > 0, -1.0, np.where(x < 0, 1.0, 0.0)), x == 0",
    ),
    "v0 at 0 beyond the penalty's slope": (
        "kinked = near(np.clip(-slope.mid, -limit, limit))", "kinked = near(-slope.mid)",
    ),
    "a radius halved": (
        "radius = ((steep + ar.root(slack.up)) / (1 - eta)).up",
        "radius = ((steep + ar.root(slack.up)) / (1 - eta)).up / 2",
    ),
    "T not verified": (
        'need(shape.least_eigenvalue() >= (1 - eta).up, "T does not prove the region")', "pass",
    ),
    "a slack forgotten": ("(steep + ar.root(slack.up))", "(steep + 0)"),
    "curvature of a kink where there is none": (
        "np.where(x == 0, np.maximum((tau - abs(pull)).low, 0), 0)",
        "np.maximum(tau.low + 0 * x, 0)",
    ),
    "secants that never fall": (
        "share = np.minimum(np.maximum(room, 0) / reach, 1)", "share = 1 + 0 * reach",
    ),
    "a gap ball of half the radius": (
        "self.close = ar.root((near(self.gap) * 2 / self.kappa).up)",
        "self.close = ar.root((near(self.gap) / self.kappa).up) / 2",
    ),
    "features that move half as far": (
        "moves = ar.root((self.moved * self.squares / self.k).up)",
        "moves = ar.root((self.moved * self.squares / self.k).up) / 4",
    ),
    "features up to the threshold and beyond": (
        "(abs(self.slopes) + moves).up < self.tau.low",
        "(abs(self.slopes) + moves).low < self.tau.up * 1.5",
    ),
    "a tangent that forgets the other coordinates": (
        "+ near(self.norm(g)) * self.close", "+ 0",
    ),
    "a tangent on the wrong side": (
        "return (1, (near(shift) + more).up) if rest.mid > 0",
        "return (1, near(shift).up) if rest.mid > 0",
    ),
    "a mean that is not compared": (
        "lost = self.beta * off * ar.root(self.kappa.up) / self.kappa", "lost = near(0.0)",
    ),
    "a reach halved": (
        "self.reach = np.minimum(whole, (abs(near(x)) + self.close).up)",
        "self.reach = np.minimum(whole, (abs(near(x)) + self.close).up) / 4",
    ),
}  # fmt: skip


def mutated(old: str, new: str):
    text = SOURCE.read_text()
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    spec = importlib.util.spec_from_loader("safesift_check_mutated", loader=None)
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
