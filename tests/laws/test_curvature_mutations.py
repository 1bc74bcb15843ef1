"""The laws of curvature regions can fail: each known mistake, patched in, makes one break."""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np
import pytest

from safesift import regions
from safesift.losses import Loss
from safesift.penalties import norms
from safesift.problem.risk import WeightedRows
from safesift.regions import center, curvature, features, nystrom, self_consistent
from safesift.regions.curvature_models import ExactModel
from safesift.regions.shape import Shape
from safesift.regions.whitening import whiten
from tests.laws import planted, planted_laws

pytestmark = pytest.mark.slow

CURVED = ("squared_hinge", "safe_logistic", "squared_epsilon_insensitive", "logistic", "huber")


def settings(n, losses=CURVED, penalties=("l2",), intercepts=(False,)):
    """Fixed settings over losses, penalties and families."""
    families = itertools.cycle(planted.FAMILIES)
    choices = itertools.cycle(itertools.product(losses, penalties, intercepts))
    return [
        (seed, loss, penalty, next(families), intercept)
        for seed, (loss, penalty, intercept) in zip(range(n), choices, strict=False)
    ]


def broken(drawn, law=planted_laws.law_planted_optimum, **arguments) -> bool:
    """Whether the law fails in one of the settings."""
    for setting in drawn:
        try:
            law(*setting, **arguments)
        except AssertionError:
            return True
    return False


def check_mutation(drawn, mutate, **arguments) -> None:
    assert not broken(drawn, **arguments)
    mutate()
    assert broken(drawn, **arguments)


def test_weight_raised_past_its_floor(monkeypatch):
    """f'' at the centre, taken for granted."""
    check_mutation(
        settings(200),
        lambda: monkeypatch.setattr(
            self_consistent, "_confirmed", lambda center, bounds, rows, weights, n_rounds: weights
        ),
        region=regions.Curvature(),
    )


def test_secants_above_their_floor(monkeypatch):
    right = Loss.secant_bounds

    def wrong(self, *arguments):
        floor, ceiling = right(self, *arguments)
        return np.minimum(1.5 * floor, ceiling), ceiling

    check_mutation(
        settings(300, losses=("safe_logistic", "logistic")),
        lambda: monkeypatch.setattr(Loss, "secant_bounds", wrong),
        region=regions.Curvature(),
    )


def test_ceilings_forgotten(monkeypatch):
    """With the floors as ceilings the optimum would always be the Newton step."""
    right = Loss.secant_bounds

    def wrong(self, *arguments):
        floor, _ = right(self, *arguments)
        return floor, floor + 1e-9

    check_mutation(
        settings(100),
        lambda: monkeypatch.setattr(Loss, "secant_bounds", wrong),
        region=regions.Curvature(),
    )


def test_projected_curvature_in_place_of_nystrom(monkeypatch):
    """V(VᵀMV)Vᵀ with a V that spans no invariant subspace is not below M."""

    def wrong(self, ridge):
        p = self._design.n_features
        core = self._basis.T @ self._product[:p]
        values, vectors = np.linalg.eigh(0.5 * (core + core.T))
        shrink = np.sqrt(ridge / (ridge + np.maximum(values, 0.0)))
        return Shape(p, ridge**-0.5, self._basis @ vectors, np.diag(shrink))

    check_mutation(
        settings(300),
        lambda: monkeypatch.setattr(nystrom.NystromCurvature, "shape", wrong),
        region=regions.Curvature(rank=1),
    )


def test_epsilon_on_the_intercept(monkeypatch):
    """The bound ρ says nothing about an intercept, so ε has no place on its coordinate."""

    def wrong(self, diagonal):
        padded = np.full(self._problem.design.n_columns, diagonal.max())
        padded[: len(diagonal)] = diagonal
        H = self._gram.matrix + np.diag(padded)
        return whiten(H, np.sqrt(self._gram.spread**2 + padded), self._gram.error)

    check_mutation(
        settings(300, penalties=("l1", "l2", "l2_ball"), intercepts=(True,)),
        lambda: monkeypatch.setattr(ExactModel, "whitening", wrong),
        region=regions.Curvature(),
    )


def test_n_in_place_of_total_weight(monkeypatch):
    wrong = cached_property(lambda self: self.weights / len(self.weights))
    wrong.__set_name__(WeightedRows, "shares")
    drawn = settings(100)
    assert not broken(drawn, region=regions.Curvature())
    right = planted_laws.plant

    def planted_rightly(*arguments):
        found = right(*arguments)
        monkeypatch.setattr(WeightedRows, "shares", wrong)
        vars(found.problem.risk.rows).pop("shares", None)
        return found

    for setting in drawn:
        monkeypatch.setattr(planted_laws, "plant", planted_rightly)
        if broken([setting], region=regions.Curvature()):
            return
        monkeypatch.undo()
    pytest.fail("no law noticed")


def test_penalty_curved_too_much(monkeypatch):
    """The l1 norm curves at its kink, the less the farther the optimum may be."""
    right = norms.l1_secant_floor
    check_mutation(
        settings(300, penalties=("l1",)),
        lambda: monkeypatch.setattr(
            norms, "l1_secant_floor",
            lambda coef, pull, reach, weight: right(coef, 0.0 * pull, 1e-6 * reach, weight),
        ),
        region=regions.Curvature(),
    )  # fmt: skip


def test_signs_taken_for_granted(monkeypatch):
    """Sharpening under l1 needs certain signs."""
    check_mutation(
        settings(300, penalties=("l1", "elastic_net")),
        lambda: monkeypatch.setattr(
            norms, "l1_secant_ceiling", lambda coef, lower, upper: np.zeros_like(coef)
        ),
        region=regions.Curvature(),
    )


def test_features_left_out_too_soon(monkeypatch):
    right = features.zero_features
    check_mutation(
        settings(200, penalties=("l1",)),
        lambda: monkeypatch.setattr(
            curvature, "zero_features", lambda center, energy: right(center, 1e-4 * energy)
        ),
        region=regions.Curvature(),
    )


def test_one_end_of_a_range_only(monkeypatch):
    right = center.Center.gradients.func
    wrong = cached_property(lambda self: [right(self)[0]] * len(self.alphas))
    wrong.__set_name__(center.Center, "gradients")
    check_mutation(
        settings(100),
        lambda: monkeypatch.setattr(center.Center, "gradients", wrong),
        law=planted_laws.law_planted_optimum_in_a_range, below=0.1, above=0.9,
    )  # fmt: skip
