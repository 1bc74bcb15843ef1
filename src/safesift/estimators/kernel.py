"""Kernel machines, certified: what the classifier and the regressor share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from safesift.design.kernel_choice import KernelChoice
from safesift.estimators.linear import LinearModel, Samples
from safesift.losses import Loss
from safesift.parameters import check_positive
from safesift.penalties import L2, Penalty
from safesift.problem.inputs import on_kernel
from safesift.problem.problem import Problem
from safesift.solvers import Fit, Screening, Settings, solve_path
from safesift.solvers.kernel_working_sets import KERNEL_REGIONS

Array = NDArray[np.float64]

# entries of a block of kernels between new samples and the support
_BLOCK = 2**22


class KernelMachine(LinearModel):
    """Functions of a kernel space in place of linear ones; put before a linear estimator's base.

    A subclass has the parameters kernel, gamma, degree, coef0 and cache_size in place of penalty.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    # --- fitting ----------------------------------------------------------------------------

    def _choice(self) -> KernelChoice:
        return KernelChoice(self.kernel, self.gamma, self.degree, self.coef0)

    def _checked_penalty(self) -> Penalty:
        # before the samples are read
        self._choice()
        check_positive("cache_size", self.cache_size)
        return L2()

    # the only one for kernels
    solver = "auto"

    def _checked_screening(self) -> Screening:
        return Screening.of(self.screening, KERNEL_REGIONS)

    def _problems(
        self, samples: Samples, loss: Loss, penalty: Penalty, alpha: float
    ) -> list[Problem]:
        linear = super()._problems(samples, loss, penalty, alpha)
        gamma = self._choice().gamma_of(samples.X, samples.sample_weight)
        return on_kernel(linear, self._choice().of(samples.X, gamma), float(self.cache_size))

    def _solve(
        self,
        levels: Sequence[Sequence[Problem]],
        settings: Settings,
        starts: Sequence[Array | None] | None = None,
    ) -> Iterator[Sequence[Fit]]:
        with self._threads():
            yield from solve_path(levels, settings, starts)

    def _starts(self, problems: Sequence[Problem]) -> list[Array] | None:
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        design, n_before = problems[0].design, len(self.kept_)
        if n_before != design.n_samples or len(self.dual_coef_) != len(problems):
            raise ValueError(
                f"warm_start=True, but the last model had {n_before} samples and "
                f"{len(self.dual_coef_)} functions, and this one has {design.n_samples} and "
                f"{len(problems)}: set warm_start=False."
            )
        betas = np.zeros((len(problems), n_before))
        betas[:, self.support_] = self.dual_coef_
        intercepts = np.atleast_1d(self.intercept_)
        return [
            one.join(beta, float(c))
            for one, beta, c in zip(problems, betas, intercepts, strict=True)
        ]

    # --- fitted attributes ------------------------------------------------------------------

    def _attributes(self, samples: Samples, fits: Sequence[Fit]) -> dict[str, Any]:
        attributes = super()._attributes(samples, fits)
        betas = np.atleast_2d(attributes.pop("coef_"))
        support = np.flatnonzero(betas.any(axis=0))
        given = self.kernel == "precomputed"
        return attributes | {
            "dual_coef_": betas[:, support],
            "support_": support,
            "support_vectors_": np.empty((0, 0)) if given else samples.X[support],
            "gamma_": self._choice().gamma_of(samples.X, samples.sample_weight),
        }

    # --- using ------------------------------------------------------------------------------

    def _predictions(self, X: Any) -> Array:
        """One column per function, block by block."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        out = np.empty((X.shape[0], len(self.dual_coef_)))
        step = max(_BLOCK // max(len(self.support_), 1), 16)
        for start in range(0, X.shape[0], step):
            rows = slice(start, start + step)
            out[rows] = self._kernels(X[rows]) @ self.dual_coef_.T
        return out + self.intercept_

    def _kernels(self, X: Any) -> Array:
        """Kernels between some samples and the support."""
        if self.kernel == "precomputed":
            return X[:, self.support_].astype(np.float64)
        if not len(self.support_):
            return np.zeros((X.shape[0], 0))
        kernel = self._choice().of(self.support_vectors_, self.gamma_)
        return kernel.between(X, self.support_vectors_)
