"""Steps that keep signs: models get smaller, and are minimal where no sign is in the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from safesift.design import SparseDesign
from safesift.solvers import column_model as face_module
from safesift.solvers import conjugate_gradients as module
from safesift.solvers.column_model import Face


def face(seed=0, n=60, p=12, threshold=0.1, ridge=0.0, far=1.0):
    """A model in which columns come in pairs that say nearly the same."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n, p // 2)), 2, axis=1) + 0.01 * rng.normal(size=(n, p))
    weights = rng.uniform(size=n) / n
    return Face(
        rows=SparseDesign(sparse.csr_array(X)),
        weights=weights,
        slopes=X.T @ (weights * rng.normal(size=n)),
        bends=X.T**2 @ weights + ridge,
        ridge=np.full(p, ridge),
        threshold=np.full(p, threshold),
        coef=far * rng.choice([-1.0, 1.0], size=p),
    )


def value(face, change):
    moved = face.rows.matvec(change)
    curved = face.weights @ moved**2 + face.ridge @ change**2
    return face.slopes @ change + 0.5 * curved + face.threshold @ np.abs(face.coef + change)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("far", [1e-3, 1.0, 1e6])
def test_models_get_smaller_and_signs_stay(far, ridge):
    for seed in range(20):
        model = face(seed, far=far, ridge=ridge)
        found = model.slide()
        reached = model.coef + found.change
        assert value(model, found.change) < value(model, np.zeros(12))
        assert (reached * np.sign(model.coef) >= 0).all()
        assert found.n_products > 0


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_minimal_where_no_sign_is_in_the_way(ridge, monkeypatch):
    monkeypatch.setattr(module, "_FORCING", 1e-10)
    monkeypatch.setattr(face_module, "_MOST_PRODUCTS", 500)
    model = face(far=1e6, ridge=ridge)
    X = model.rows.data.toarray()
    H = X.T @ (model.weights[:, None] * X) + np.diag(model.ridge)
    right = -(model.slopes + model.threshold * np.sign(model.coef))
    np.testing.assert_allclose(model.slide().change, np.linalg.solve(H, right), rtol=1e-5)


def test_an_intercept_may_change_its_sign():
    model = face(far=1e-3, threshold=0.0)
    reached = model.coef + model.slide().change
    assert (np.sign(reached) != np.sign(model.coef)).any()


def test_where_nothing_can_be_gained_nothing_moves():
    """Columns that are empty have no slope, and no curvature to divide by."""
    model = face(threshold=0.0)
    nothing = np.zeros(12)
    still = replace(model, rows=SparseDesign(0.0 * model.rows.data), slopes=nothing, bends=nothing)
    assert not still.slide().change.any()
