"""Nothing is certified by a smoothness that was only measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import safesift as ss
from safesift import losses
from safesift.losses.graph import _nodes
from safesift.losses.numeric import _Numeric
from tests.laws.strategies import examples

seeds = st.integers(0, 2**32 - 1)


class Ramps:
    """A convex function whose slope rises from −1 to 1 on three ramps.

    Two lie between two nodes of the table. The search for the steepest place follows the taller of
    them; the other is far steeper.
    """

    def __init__(self, rng):
        nodes = _nodes()
        first = rng.choice(np.flatnonzero(np.abs(nodes) < 3.0))
        low, step = nodes[first], nodes[first + 1] - nodes[first]
        self.rises = np.array([rng.uniform(0.2, 0.3), 0.4, 1.6 - rng.uniform(0.2, 0.3)])
        self.starts = np.array([
            low + rng.uniform(0.1, 0.4) * step, low + rng.uniform(0.6, 0.7) * step, low + 0.5
        ])  # fmt: skip
        widths = 10.0 ** rng.uniform(-9, -7), rng.uniform(0.1, 0.2) * step, 1.0
        self.widths = np.array(widths)

    @property
    def smoothness(self):
        return float((self.rises / self.widths).sum())

    def derivative(self, z):
        along = np.clip((z[..., None] - self.starts) / self.widths, 0.0, 1.0)
        return -1.0 + along @ self.rises

    def __call__(self, z):
        beyond = np.maximum(z[..., None] - self.starts, 0.0)
        on = np.minimum(beyond, self.widths)
        return -z + (0.5 * on**2 / self.widths + beyond - on) @ self.rises


def steep_problem(seed, known):
    """One sample, one feature: the optimum lies on the steep ramp, the centre beyond it."""
    rng = np.random.default_rng(seed)
    ramps = Ramps(rng)
    given = ramps.smoothness if known else None
    loss = losses.from_function(ramps, ramps.derivative, task="regression", smoothness=given)
    a = float(rng.choice([0.5, 1.0, 3.0]))
    alpha = a * float(1.0 - rng.uniform(0.2, 0.8) * ramps.rises[0])
    # prediction − y is where the steep ramp begins at x = 0, and beyond its end at the centre
    y, center = -float(ramps.starts[0]), 2.0 * float(ramps.widths[0]) / a
    arguments = {"loss": loss, "penalty": "l1", "alpha": alpha, "fit_intercept": False}
    return ss.screen([[a]], [y], coef=[center], **arguments)


def law_coefficients_that_are_not_zero(seed, known=False):
    """The subgradient at 0 contains no 0, so that the optimum is not there."""
    result = steep_problem(seed, known)
    assert result.certified and not result.zero_coef.any()


@examples(0.3)
@given(seed=seeds, known=st.booleans())
def test_steep_places_that_nobody_saw(seed, known):
    law_coefficients_that_are_not_zero(seed, known)


def test_a_measured_smoothness_would_prove_what_is_not_so(monkeypatch):
    monkeypatch.setattr(_Numeric, "proved_smoothness", property(lambda self: self.phi.smoothness))
    with pytest.raises(AssertionError):
        for seed in range(20):
            law_coefficients_that_are_not_zero(seed)
