"""Fits whose results are written down; `python -m tests.known_fits` writes them down anew.

Twenty-odd problems that go through every solver, every kind of data and every way in. What they
lead to must not depend on how the library is put together.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import safesift as ss

SNAPSHOT = Path(__file__).parent / "snapshots" / "fits.json"
TIGHT = 1e-12

_RNG = np.random.default_rng(7)
_X = _RNG.normal(size=(240, 6)) * np.geomspace(1.0, 0.2, 6)
_TREND = _X @ np.array([2.0, -1.5, 1.0, 0.0, 0.5, 0.0])
_LABELS = np.where(_TREND + 0.8 * _RNG.normal(size=240) > 0.3, "yes", "no")
_THREE = np.digitize(_TREND + 0.5 * _RNG.normal(size=240), [-1.0, 1.0])
_NUMBERS = _TREND + 0.4 * _RNG.normal(size=240) + 1.5
_WIDTHS = _RNG.exponential(0.5, size=240)
_ENDS = np.column_stack([_NUMBERS - _WIDTHS, _NUMBERS + _WIDTHS])
_ENDS[::7, 1], _ENDS[3::7, 0] = np.inf, -np.inf
_WEIGHTS = _RNG.integers(0, 3, size=240).astype(float)
# what scipy.sparse.random draws, but for SciPy 1.12
_DRAW = np.random.RandomState(3)
_PLACES = np.unravel_index(_DRAW.choice(150 * 900, size=2700, replace=False), (150, 900), order="F")
_WIDE = sparse.csr_matrix((_DRAW.uniform(size=2700), _PLACES), shape=(150, 900))
_WIDE_LABELS = np.where(_WIDE @ _RNG.normal(size=900) > 0, 1, -1)
# dense with more columns than a cold Newton method takes on
_BROAD = _RNG.normal(size=(80, 620))
_BROAD_LABELS = np.where(_BROAD[:, :5].sum(axis=1) > 0, 1, -1)


def _classifier(**how: Any) -> Callable[[float], dict[str, Any]]:
    X, y = how.pop("X", _X), how.pop("y", _LABELS)
    weights = how.pop("sample_weight", None)

    def fit(tol: float) -> dict[str, Any]:
        return _of(ss.SafeClassifier(tol=tol, random_state=0, **how).fit(X, y, weights))

    return fit


def _regressor(**how: Any) -> Callable[[float], dict[str, Any]]:
    return lambda tol: _of(ss.SafeRegressor(tol=tol, random_state=0, **how).fit(_X, _NUMBERS))


def _interval(**how: Any) -> Callable[[float], dict[str, Any]]:
    return lambda tol: _of(ss.IntervalRegressor(tol=tol, random_state=0, **how).fit(_X, _ENDS))


def _kernel(**how: Any) -> Callable[[float], dict[str, Any]]:
    def fit(tol: float) -> dict[str, Any]:
        model = ss.SafeKernelClassifier(tol=tol, random_state=0, **how).fit(_X, _LABELS)
        return {
            "coef": model.decision_function(_X[:20]), "gap": np.max(model.dual_gap_),
            "n_kept": model.kept_.sum(), "n_undecided": model.undecided_.sum(),
        }  # fmt: skip

    return fit


def _tracked(tol: float) -> dict[str, Any]:
    tracker = ss.SafeTracker(ss.SafeClassifier(alpha=1e-2, tol=tol)).fit(_X[:200], _LABELS[:200])
    tracker.update(add=(_X[200:], _LABELS[200:]), remove=np.arange(0, 60, 3))
    return _of(tracker.update(relabel=([1, 5], ["yes", "no"])))


def _mined(tol: float) -> dict[str, Any]:
    model = ss.SafeClassifier(alpha=1e-2, tol=tol, random_state=0).fit(_X[:80], _LABELS[:80])
    pool = _X[_LABELS == "no"]
    mined = ss.mine_hard(pool, model, _X[:80], _LABELS[:80], label="no", memory="225 kB")
    return _of(mined.model) | {"n_kept": mined.n_kept, "n_undecided": 0}


def _validated(tol: float) -> dict[str, Any]:
    model = ss.SafeClassifierCV(6, eps=1e-4, cv=3, penalty="l1", tol=tol, random_state=0)
    return _of(model.fit(_X, _THREE)) | {"alpha": model.alpha_}


def _path(tol: float) -> dict[str, Any]:
    path = ss.safe_path(
        _X, _NUMBERS, n_alphas=4, eps=1e-4, loss="huber", fit_intercept=False, tol=tol
    )
    return {
        "coef": path.coefs, "gap": path.dual_gaps.max(), "n_kept": path.n_kept.sum(),
        "n_undecided": path.n_undecided.sum(),
    }  # fmt: skip


def _of(model: Any) -> dict[str, Any]:
    coef = np.append(np.ravel(model.coef_), model.intercept_)
    return {
        "coef": coef, "gap": np.max(model.dual_gap_), "n_kept": model.kept_.sum(),
        "n_undecided": model.undecided_.sum(),
    } | _relative(model)  # fmt: skip


def _relative(model: Any) -> dict[str, float]:
    """The gap as it was asked for, where one problem says so."""
    history = getattr(model, "history_", None)
    if not history or not isinstance(history[-1], dict):
        return {}
    return {"relative_gap": history[-1].get("relative_gap", np.max(model.dual_gap_))}


FITS: dict[str, Callable[[float], dict[str, Any]]] = {
    "squared hinge": _classifier(alpha=1e-2),
    "squared hinge, weights, no intercept": _classifier(
        alpha=1e-3, sample_weight=_WEIGHTS, fit_intercept=False
    ),
    "squared hinge, three classes": _classifier(alpha=1e-3, y=_THREE, class_weight="balanced"),
    "squared hinge, l1": _classifier(alpha=1e-2, penalty="l1"),
    "squared hinge, l1, wide and sparse": _classifier(
        alpha=1e-3, penalty="l1", X=_WIDE, y=_WIDE_LABELS
    ),
    "squared hinge, wide and sparse": _classifier(alpha=1e-3, X=_WIDE, y=_WIDE_LABELS),
    "squared hinge, many columns, no intercept": _classifier(
        alpha=1e-2, X=_BROAD, y=_BROAD_LABELS, fit_intercept=False
    ),
    "squared hinge, gap ball": _classifier(alpha=1e-2, fit_intercept=False, screening="gap_ball"),
    "squared hinge, without screening": _classifier(alpha=1e-2, screening=None),
    "hinge, no intercept": _classifier(loss="hinge", alpha=1e-2, fit_intercept=False),
    "smoothed hinge, elastic net": _classifier(
        loss="smoothed_hinge", penalty="elastic_net", alpha=1e-2
    ),
    "logistic": _classifier(loss="logistic", alpha=1e-2),
    "logistic, many columns": _classifier(loss="logistic", alpha=1e-2, X=_BROAD, y=_BROAD_LABELS),
    "safe logistic, l1": _classifier(loss="safe_logistic", penalty="l1", alpha=1e-2),
    "squared hinge, l1 ball": _classifier(penalty=ss.penalties.L1Ball(1.5)),
    "squared hinge, l2 ball": _classifier(penalty=ss.penalties.L2Ball(0.8)),
    "squared": _regressor(loss="squared", alpha=1e-2),
    "squared epsilon-insensitive, l1": _regressor(penalty="l1", alpha=3e-2, epsilon=0.3),
    "epsilon-insensitive, no intercept": _regressor(
        loss="epsilon_insensitive", alpha=1e-2, epsilon=0.3, fit_intercept=False
    ),
    "huber": _regressor(loss="huber", alpha=1e-2),
    "smoothed epsilon-insensitive": _regressor(loss="smoothed_epsilon_insensitive", alpha=1e-2),
    "intervals": _interval(alpha=1e-2),
    "smoothed intervals, elastic net": _interval(
        loss="smoothed_interval", penalty="elastic_net", alpha=1e-2
    ),
    "rbf kernel, squared hinge": _kernel(alpha=1e-2),
    "rbf kernel, hinge, no intercept": _kernel(loss="hinge", alpha=1e-2, fit_intercept=False),
    "tracker": _tracked,
    "miner": _mined,
    "cross-validation, l1, three classes": _validated,
    "path of huber": _path,
}


def recorded(name: str, tol: float) -> dict[str, Any]:
    """What comes of a fit, as JSON has it."""
    return {key: np.asarray(value).tolist() for key, value in FITS[name](tol).items()}


if __name__ == "__main__":
    found = {name: {str(tol): recorded(name, tol) for tol in (TIGHT, 1e-6)} for name in FITS}
    SNAPSHOT.write_text(json.dumps(found, indent=None, separators=(",", ":")) + "\n")
