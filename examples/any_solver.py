"""The same coefficients from a tenth of the rows, by any solver
=============================================================

What is dropped must not change the divisor W of the mean loss. A solver that *sums* the loss keeps
its constant: LinearSVC minimises ½‖w‖² + C Σ [1 − m]₊², so that C = 1/(2·W·alpha) before and after.
One that *averages* over its rows, as cyanure and XGBoost's linear booster do, takes `alpha_kept`.
"""

import importlib.util
import json
import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

import safesift as ss

ALPHA = 1e-3


# %%
# Solvers of others
# -----------------
# Each returns its coefficients for some rows.
def linear_svc(X, y, result, alpha):
    """Sums: C belongs to all rows, whatever alpha the rows at hand have."""
    C = 1 / (2 * result.problem.divisor * ALPHA)
    model = LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-8, max_iter=10_000)
    return model.fit(X, y).coef_.ravel()


def cyanure(X, y, result, alpha):
    """Averages ½[1 − m]₊² over its rows."""
    from cyanure.estimators import Classifier

    model = Classifier(
        loss="sqhinge", lambda_1=alpha, fit_intercept=False, tol=1e-10, verbose=False, n_threads=1
    )
    return model.fit(np.ascontiguousarray(X), y).coef_.ravel()


def xgboost_linear(X, y, result, alpha):
    """Averages too, and takes any loss as a function; it always fits an intercept."""
    import xgboost

    def squared_hinge(pred, data):
        sign = 2 * data.get_label() - 1
        short = np.maximum(1 - sign * pred, 0)
        return -sign * short, (short > 0).astype(float)

    parameters = {
        "booster": "gblinear", "updater": "coord_descent", "lambda": alpha, "eta": 1.0,
        "base_score": 0.0, "disable_default_eval_metric": 1, "nthread": 1,
    }  # fmt: skip
    booster = xgboost.train(parameters, xgboost.DMatrix(X, y), 100, obj=squared_hinge)
    saved = json.loads(booster.save_raw("json"))
    return np.array(saved["learner"]["gradient_booster"]["model"]["weights"])[:-1]


# solver, the package it needs, whether it has an intercept
SOLVERS = [
    (linear_svc, "sklearn", False),
    (cyanure, "cyanure", False),
    (xgboost_linear, "xgboost", True),
]


# %%
# On all rows, and on what is left
# --------------------------------
def timed(solver, *arguments):
    start = time.perf_counter()
    return solver(*arguments), time.perf_counter() - start


def main() -> None:
    X, y = make_classification(
        20_000, 60, n_informative=20, n_clusters_per_class=1, class_sep=4.0, flip_y=0.002,
        random_state=0,
    )  # fmt: skip
    X /= np.sqrt((X**2).sum(axis=1).mean())
    for solver, package, intercept in SOLVERS:
        if importlib.util.find_spec(package) is None:
            print(f"{solver.__name__}: {package} is not installed")
            continue
        result = ss.screen(X, y, loss="squared_hinge", alpha=ALPHA, fit_intercept=intercept)
        keep = result.kept
        everything, slow = timed(solver, X, y, result, ALPHA)
        fewer, fast = timed(solver, X[keep], y[keep], result, result.alpha_kept)
        difference = np.abs(everything - fewer).max() / np.abs(everything).max()
        verdict = "same coefficients" if difference < 1e-4 else "FAILED"
        print(f"{solver.__name__}: {slow:.2f} s on all {len(y)} rows, {fast:.2f} s on {keep.sum()}")
        print(f"  {verdict}: they differ by {difference:.1e} of the largest")


if __name__ == "__main__":
    main()
