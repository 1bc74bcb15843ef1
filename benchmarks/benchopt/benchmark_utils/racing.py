"""What every solver of the race is to benchopt, and when its curve ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import StoppingCriterion
from contestants import TIGHTER

from benchmark_utils.path import PathSolver, squared_hinge, why_not


class CertifiedGap(StoppingCriterion):
    """Ends a curve at the gap that is aimed at, or where tighter tolerances no longer lower it.

    Parameters
    ----------
    target : float
        The largest relative gap of the path that is small enough.
    patience : int
        So many other models in a row without a smaller gap are enough. The same model once more,
        for a tolerance that it meets anyway, does not count.
    """

    def __init__(
        self, target: float = 1e-8, patience: int = 4, strategy: str | None = None,
        key_to_monitor: str = "relative_gap", minimize: bool = True,
    ) -> None:  # fmt: skip
        self._target, self._patience = target, patience
        super().__init__(strategy=strategy, key_to_monitor=key_to_monitor, minimize=minimize,
                         target=target, patience=patience)  # fmt: skip

    def init_stop_val(self) -> float:
        """Where a solver names its loosest tolerance: that one, and none that is infinite."""
        infinite = super().init_stop_val()
        return getattr(self.solver, "loosest", infinite)

    def check_convergence(self, objective_list: list[dict[str, Any]]) -> tuple[bool, float]:
        """Whether to stop, and how far it is on its way, in decades of the gap."""
        gaps = np.array([found[self.key_to_monitor_] for found in objective_list])
        smallest = float(gaps.min())
        idle = np.count_nonzero(np.diff(gaps[gaps.argmin() :]))
        if smallest <= self._target or idle >= self._patience:
            return True, 1.0
        return False, float(np.clip(np.log(smallest) / np.log(self._target), 0.0, 1.0))


class RaceSolver(BaseSolver):
    """Somebody who takes part in the race, by the name that the race has for them."""

    sampling_strategy = "tolerance"
    stopping_criterion = CertifiedGap()
    contestant: str

    def skip(
        self, X: Any, y: np.ndarray, penalty: str, intercept: str, alphas: np.ndarray
    ) -> tuple[bool, str | None]:
        reason = why_not(self.contestant, squared_hinge(penalty, intercept))
        return reason is not None, reason

    def set_objective(
        self, X: Any, y: np.ndarray, penalty: str, intercept: str, alphas: np.ndarray
    ) -> None:
        """Compilation and the choice of a storage, too: benchopt warms up once for all data."""
        self._path = PathSolver(self.contestant, squared_hinge(penalty, intercept), alphas)
        self._path.prepare(X, y)

    @property
    def loosest(self) -> float:
        return self._path.loosest

    def run(self, tolerance: float) -> None:
        self._models = self._path.solve(tolerance)

    def get_next(self, tolerance: float) -> float:
        """In the steps of the race."""
        return tolerance / TIGHTER

    def get_result(self) -> dict[str, np.ndarray]:
        return {"coefs": self._models.coefs, "intercepts": self._models.intercepts}
