"""The paper's start: LIBLINEAR's Newton method, stopped early.

The paper calls its steps epochs, and so do we in the tables that repeat it; each makes several
passes over the data.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def alpha_of(lmbda: float, n_samples: int) -> float:
    """Our alpha for the paper's λ in its tables of the squared hinge.

    There the objective is Σ [1 − t_i]²₊ + (λ/2)‖x‖²: a sum, not a mean, and without the ½ of the
    loss. Divided by 2n it is ours with alpha = λ/(2n).
    """
    return lmbda / (2.0 * n_samples)


def approximate_svm(X: Any, y: Array, lmbda: float, epochs: int) -> Array:
    """Coefficients after so many steps of `LinearSVC(dual=False)`, without an intercept."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    model = LinearSVC(C=1.0 / lmbda, dual=False, fit_intercept=False, max_iter=epochs, tol=1e-20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y).coef_[0]
