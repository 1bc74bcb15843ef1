"""IntervalRegressor and XGBoost's AFT models on neuroblastoma: 5-fold coverage and distance.

    SAFESIFT_DATA=folder python benchmarks/interval_vs_aft.py

Targets are logarithms, as AFT models want them. Of IntervalRegressor it also prints, for every
alpha of the path, how many intervals were kept and decided when fitted on all data, and the
certified gap.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import safesift as ss
from safesift.problem.inputs import distance

# trains on (X, Y) and returns a function that predicts
Trainer = Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]


def load() -> tuple[np.ndarray, np.ndarray]:
    folder = os.environ.get("SAFESIFT_DATA", "")
    path = Path(folder) / "neuroblastoma.npz"
    if not folder or not path.exists():
        sys.exit("Set SAFESIFT_DATA to a folder with neuroblastoma.npz (X, lower, upper).")
    with np.load(path) as data:
        return data["X"], np.column_stack([data["lower"], data["upper"]])


def interval_regressor(alpha: float, penalty: str) -> Trainer:
    def train(X: np.ndarray, Y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        model = make_pipeline(StandardScaler(), ss.IntervalRegressor(alpha, penalty=penalty))
        return model.fit(X, Y).predict

    return train


def best_constant(X: np.ndarray, Y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Of all constants the one that hits most intervals: one of the ends."""
    ends = np.unique(Y[np.isfinite(Y)])
    hits = [(distance(np.full(len(Y), end), Y) == 0).mean() for end in ends]
    constant = ends[int(np.argmax(hits))]
    return lambda X: np.full(len(X), constant)


def aft(n_rounds: int, **options: object) -> Trainer:
    import xgboost

    parameters = {
        "objective": "survival:aft",
        "eval_metric": "aft-nloglik",
        "aft_loss_distribution": "normal",
        "aft_loss_distribution_scale": 1.0,
        "nthread": 2,
        "verbosity": 0,
        **options,
    }

    def train(X: np.ndarray, Y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        data = xgboost.DMatrix(X)
        data.set_float_info("label_lower_bound", np.exp(Y[:, 0]))
        data.set_float_info("label_upper_bound", np.exp(Y[:, 1]))
        booster = xgboost.train(parameters, data, num_boost_round=n_rounds)
        return lambda X: booster.predict(xgboost.DMatrix(X), output_margin=True)

    return train


def cross_validated(train: Trainer, X: np.ndarray, Y: np.ndarray) -> tuple[float, float, float]:
    """Share of held-out intervals hit, mean distance to them, seconds of training."""
    far, seconds = np.empty(len(Y)), 0.0
    for rows, held_out in KFold(5, shuffle=True, random_state=0).split(X):
        start = time.perf_counter()
        predict = train(X[rows], Y[rows])
        seconds += time.perf_counter() - start
        far[held_out] = distance(np.asarray(predict(X[held_out]), dtype=float), Y[held_out])
    return float((far == 0).mean()), float(far.mean()), seconds


def candidates() -> dict[str, Trainer]:
    found: dict[str, Trainer] = {"best constant": best_constant}
    for penalty, alpha in (("l2", 1e-1), ("l2", 1e-2), ("l2", 1e-3), ("l1", 1e-2), ("l1", 1e-3)):
        found[f"IntervalRegressor {penalty} alpha {alpha:g}"] = interval_regressor(alpha, penalty)
    if importlib.util.find_spec("xgboost") is None:
        print("XGBoost is not installed, so it is left out: pip install xgboost\n")
        return found
    for depth, n_rounds in ((1, 300), (2, 200), (6, 100)):
        name = f"XGBoost AFT, {n_rounds} trees of depth {depth}"
        found[name] = aft(n_rounds, max_depth=depth, learning_rate=0.1)
    found["XGBoost AFT, linear, 300 rounds"] = aft(300, booster="gblinear", learning_rate=0.1)
    return found


def compare(X: np.ndarray, Y: np.ndarray) -> None:
    print(f"{'5-fold':<38} {'coverage':>9} {'distance':>9} {'seconds':>8}")
    for name, train in candidates().items():
        coverage, far, seconds = cross_validated(train, X, Y)
        print(f"{name:<38} {coverage:9.4f} {far:9.4f} {seconds:8.2f}")


def follow_path(X: np.ndarray, Y: np.ndarray, penalty: str, largest: float) -> None:
    X = StandardScaler().fit_transform(X)
    model = ss.IntervalRegressor(penalty=penalty, tol=1e-8, warm_start=True)
    print(f"\n{penalty:<12} {'kept':>6} {'decided':>8} {'non-zero':>9} {'gap':>9} {'seconds':>8}")
    for alpha in np.geomspace(largest, 1e-4 * largest, 20):
        start = time.perf_counter()
        model.set_params(alpha=alpha).fit(X, Y)
        seconds = time.perf_counter() - start
        gap = model.history_[-1]["relative_gap"]
        print(
            f"alpha {alpha:.0e} {model.kept_.sum():6d} {(~model.undecided_).sum():8d} "
            f"{np.count_nonzero(model.coef_):9d} {gap:9.1e} {seconds:8.3f}"
        )


def main() -> None:
    X, Y = load()
    print(f"neuroblastoma: {len(Y)} intervals, {X.shape[1]} features\n")
    compare(X, Y)
    for penalty, largest in (("l2", 1.0), ("l1", 0.2)):
        follow_path(X, Y, penalty, largest)


if __name__ == "__main__":
    main()
