"""The laws of the checker, and the traps."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from tests.laws import proof_laws, proof_traps
from tests.laws.proof_problems import plant


@pytest.mark.parametrize("trap", proof_traps.TRAPS, ids=lambda trap: trap.__name__)
def test_traps(trap):
    trap(0)


def test_what_the_checker_proves_is_true():
    passed = collections.Counter()
    for seed in range(250):
        passed.update(proof_laws.law_the_checker_is_right(seed))
    # the adversary gets through with something of every kind, or nothing was tested
    assert min(passed[rule] for rule in ("gap", "ball", "features", "region")) >= 10


def test_what_it_proves_in_rational_numbers_is_true():
    passed = collections.Counter()
    for seed in range(60):
        passed.update(proof_laws.law_the_checker_is_right(1000 + seed, exact=True))
    assert passed["gap"] + passed["ball"] >= 10


def test_false_certificates_are_rejected():
    counts = [proof_laws.law_false_certificates(seed) for seed in range(25)]
    assert sum(false for false, _ in counts) >= 150


@pytest.mark.parametrize("seed", [1931, 6902, 15764, 16994, 2000002573])
def test_what_is_written_holds_with_the_roundoff_there_is(seed):
    """Balls that do not bind: nothing curves but some rows, by weights that roundoff decides on.

    And, in the last, bounds on an intercept that end at a kink.
    """
    known = plant(np.random.default_rng([987001000000000 + seed, 4242]))
    assert proof_laws.accepted(known, *proof_laws.certificate(known))
