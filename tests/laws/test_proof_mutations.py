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
GAP = "(base + losses * d + self.penalty_gap(x[:p], v * theta)).up"
MUTATIONS = {
    "the gap halved": (f"self.gap = {GAP}", f"self.gap = {GAP} / 2"),
    "the penalty's part of the gap forgotten": (GAP, "(base + losses * d).up"),
    "the losses' part of the gap forgotten": (GAP, "self.penalty_gap(x[:p], v * theta).up"),
    "an intercept whose slopes need not cancel": (
        "if self.intercept:\n            up, down", "if False:\n            up, down",
    ),
    "a multiple of the dual point that costs nothing": (
        "d = (near(1) - theta + eta).up", "d = near(eta).up",
    ),
    "slopes that are given up for nothing": ("theta, d = 0, 1", "theta, d = 0, 0"),
    "a dual point outside of the domain": (
        'need(fine, "a dual point is outside of the domain of f*")', "pass",
    ),
    "1/n for 1/W": (
        "ar.array(weights).sum() if ar.exact else math.fsum(weights)", "ar.array(len(weights))[()]",
    ),
    "a forgotten weight": (
        "shape.add(matrix, share * loss.secant_floor(t, wider))",
        "shape.add(matrix, near(loss.secant_floor(t, wider)) * (1.0 / self.data.n))",
    ),
    "closed intervals": (
        "wider = bound * (1 + ar.array(2.0**-20)[()]) + ar.array(2.0**-500)[()]",
        "wider = bound * (1 - ar.array(2.0**-50)[()]) + ar.array(2.0**-500)[()]",
    ),
    "at the end of a piece for strictly inside": (
        "after = [lower > end + self.off for end in ends]\n"
        "        before = [upper < end - self.off for end in ends]",
        "after = [lower > end - 1e-9 for end in ends]\n"
        "        before = [upper < end + 1e-9 for end in ends]",
    ),
    "a flat piece on the wrong side": (
        "np.where(self.y > 0, edge, -math.inf), np.where(self.y < 0, -edge, math.inf)",
        "np.where(self.y < 0, edge, -math.inf), np.where(self.y > 0, -edge, math.inf)",
    ),
    "v0 not verified: the wrong sign": (
        "sign, zero = np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0)), x == 0",
        "sign, zero = np.where(x > 0, -1.0, np.where(x < 0, 1.0, 0.0)), x == 0",
    ),
    "v0 at 0 beyond the penalty's slope": (
        "kinked = near(np.clip(-slope.mid, -limit, limit))", "kinked = near(-slope.mid)",
    ),
    "a radius halved": (
        "radius = ((steep + ar.root(slack.up)) / (near(1) - eta)).up",
        "radius = ((steep + ar.root(slack.up)) / (near(1) - eta)).up / 2",
    ),
    "T not verified": (
        'need(shape.least_eigenvalue() >= (near(1) - eta).up, "T does not prove the region")',
        "pass",
    ),
    "a slack forgotten": ("(steep + ar.root(slack.up))", "(steep + 0)"),
    "curvature by epsilon for nothing": (
        "slack.clip(0, math.inf) * mu / 2 + epsilon * far", "slack.clip(0, math.inf) * mu / 2",
    ),
    "curvature of a kink where there is none": (
        "np.where(coef == 0, np.maximum((tau - abs(pull[:p])).low, 0), 0)",
        "np.maximum(tau.low + 0 * coef, 0)",
    ),
    "secants that never fall": (
        "curve, share = 1 / self.k, np.minimum(room / reach, 1)",
        "curve, share = 1 / self.k, 1 + 0 * reach",
    ),
    "secants up to the linear piece and beyond": (
        "room = np.minimum(room, self.width * (1 - 4 * ar.u) - e.up)", "pass",
    ),
    "a gap ball of half the radius": (
        "self.close = ar.root((near(self.gap) * 2 / self.kappa).up)",
        "self.close = ar.root((near(self.gap) / self.kappa).up) / 2",
    ),
    "features that move half as far": (
        "moves = ar.root((self.moved * squares[: self.p] / self.k).up)",
        "moves = ar.root((self.moved * squares[: self.p] / self.k).up) / 4",
    ),
    "features up to the threshold and beyond": (
        "(abs(self.slopes) + moves).up < self.tau.low",
        "(abs(self.slopes) + moves).low < self.tau.up * 1.5",
    ),
    "a tangent that forgets the other coordinates": (
        "surplus = surplus + near(self.norm(g)) * self.close", "surplus = surplus + 0",
    ),
    "a tangent on the wrong side": (
        "return (1, (near(shift) + more).up) if rest.mid > 0",
        "return (1, near(shift).up) if rest.mid > 0",
    ),
    "a mean that is not compared": (
        "lost = self.beta * off * ar.root(self.kappa.up) / self.kappa", "lost = near(0.0)",
    ),
    "a reach halved": (
        "self.reach = np.minimum(whole, (abs(near(x[:p])) + self.close).up)",
        "self.reach = np.minimum(whole, (abs(near(x[:p])) + self.close).up) / 4",
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
