"""The same LinearSVC from a fraction of the rows.

LinearSVC minimises ½‖w‖² + C Σ [1 − m]₊². Our squared hinge carries a ½ and is averaged over all
W rows, so C = 1/(2·W·alpha). Dropping rows changes neither W nor C.
"""

import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

import safesift as ss

ALPHA = 1e-3


def fit(X, y, C):
    start = time.perf_counter()
    model = LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-8, max_iter=10_000).fit(X, y)
    return model.coef_[0], time.perf_counter() - start


def main() -> None:
    X, y = make_classification(20_000, 60, n_informative=20, class_sep=2.0, random_state=0)
    X /= np.sqrt((X**2).sum(axis=1).mean())
    C = 1 / (2 * len(y) * ALPHA)

    result = ss.screen(X, y, loss="squared_hinge", penalty="l2", alpha=ALPHA)
    print(result.summary())

    everything, slow = fit(X, y, C)
    kept, fast = fit(X[result.keep], y[result.keep], C)
    difference = np.abs(everything - kept).max() / np.abs(everything).max()
    print(f"LinearSVC takes {slow:.2f} s on all {len(y)} rows,")
    print(f"and {fast:.2f} s on the {result.keep.sum()} kept.")
    print(f"largest difference of a coefficient: {difference:.1e} of the largest coefficient")
    check = result.check(kept)
    print(f"check on all rows: {'passed' if check.passed else 'FAILED'}, gap {check.gap:.1e}")


if __name__ == "__main__":
    main()
