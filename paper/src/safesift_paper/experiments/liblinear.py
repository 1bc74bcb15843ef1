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


class NewtonRun:
    """`LinearSVC(dual=False)` on some samples, without an intercept, stopped after some steps.

    LIBLINEAR cannot be continued, so each number of steps is a run of its own, except where an
    earlier one ended by itself.
    """

    def __init__(self, X: Any, y: Array, lmbda: float) -> None:
        self._X, self._y, self._lmbda = X, y, lmbda
        self._end: tuple[int, Array] | None = None

    @property
    def ended_after(self) -> int | None:
        """The number of steps after which it ended by itself, if it is known to have."""
        return None if self._end is None else self._end[0]

    def after(self, epochs: int) -> Array:
        """The coefficients after so many steps, or at the end if that comes earlier."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        if self._end is not None and epochs >= self._end[0]:
            return self._end[1]
        model = LinearSVC(
            C=1.0 / self._lmbda, dual=False, fit_intercept=False, max_iter=epochs, tol=1e-20
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            coef = model.fit(self._X, self._y).coef_[0]
        if model.n_iter_ < epochs:
            self._end = int(model.n_iter_), coef
        return coef
