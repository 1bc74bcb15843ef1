"""Solutions are those that were written down, however the library is put together."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tests.known_fits import FITS, SNAPSHOT, TIGHT, recorded

KNOWN = json.loads(SNAPSHOT.read_text())


def _fit(name: str, tol: float) -> dict:
    with warnings.catch_warnings():
        # some gaps of 1e-12 are beyond what rounding allows
        warnings.simplefilter("ignore", ConvergenceWarning)
        return recorded(name, tol)


@pytest.mark.parametrize("name", FITS)
def test_exact_fits_are_the_known_ones(name):
    known, found = KNOWN[name][str(TIGHT)], _fit(name, TIGHT)
    coef = np.asarray(known["coef"])
    # a gap that is met and no more leaves room for √(2·gap/alpha) in the coefficients, alpha ≥ 1e-3
    reach = np.sqrt(2.0 * (found["gap"] + known["gap"]) / 1e-3)
    room = max(1e-6 * max(np.abs(coef).max(), 1), min(reach, 5e-6))
    np.testing.assert_allclose(found["coef"], coef, rtol=0, atol=room)
    assert found["gap"] <= max(2.0 * known["gap"], 1e-11)
    # decisions agree, or are more
    assert found["n_kept"] <= known["n_kept"]
    assert found["n_undecided"] <= known["n_undecided"]
    assert found.get("alpha") == pytest.approx(known.get("alpha"))


@pytest.mark.parametrize("name", FITS)
def test_default_fits_are_as_near_to_the_optimum_as_their_gap_says(name):
    exact, known, found = KNOWN[name][str(TIGHT)], KNOWN[name]["1e-06"], _fit(name, 1e-6)
    # a gap of 1e-6 leaves coefficients as far from the optimum as √(2·gap/alpha), alpha ≥ 1e-3
    reach = np.sqrt(2.0 * (found["gap"] + exact["gap"]) / 1e-3) + 1e-8
    moved = np.abs(np.asarray(found["coef"]) - np.asarray(exact["coef"])).max()
    assert moved <= reach
    gap = found.get("relative_gap", found["gap"])
    assert gap <= max(2.0 * known["gap"], 1e-6)
