"""Dual coordinate descent for the logistic loss: every row responds, and none ever leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.solvers.dual_loop import Loop, Rows, Swept

Array = NDArray[np.float64]

# dual variables as near to an end as this are at it, as far as their response is concerned
_LEAST_RESPONSE = 1e-12


class EntropyLoop(Loop):
    """Epochs where f* is an entropy (`Loss.entropy_signs`); log-odds tell the dual variables."""

    def __init__(self, problem: Problem, seed: int) -> None:
        from safesift.arithmetic.compiled import entropy

        super().__init__(problem, seed, entropy, curves=True)

    def _fill_table(self) -> None:
        signs = self._problem.loss.entropy_signs(self._problem.y)
        assert signs is not None, "others are refused"
        self._table[:, self._compiled.SIGN] = signs
        # the slopes of the best constant model, which an intercept makes cancel
        self._set_odds(signs * self._intercept)

    def _set_odds(self, odds: Array) -> None:
        self._state[:] = odds
        self.nu[:] = -self._table[:, self._compiled.SIGN] * expit(-odds)

    def _begin_at(self, at: Evaluation) -> None:
        odds = self._table[:, self._compiled.SIGN] * at.pred
        self._set_odds(np.where(np.isfinite(odds), odds, 0.0))

    @property
    def _state(self) -> Array:
        return self._table[:, self._compiled.ODDS]

    def _go_on(self, further: float, last: Array) -> None:
        self._set_odds(self._state + further * (self._state - last))

    def _take_up(self, nu: Array) -> None:
        self._set_odds(-logit(np.clip(np.abs(nu), _LEAST_RESPONSE, 1.0 - _LEAST_RESPONSE)))

    def _balanced(self) -> Array:
        mass = self._problem.shares * self.nu
        up, down = float(mass[mass > 0].sum()), float(-mass[mass < 0].sum())
        if not min(up, down) > 0:
            return self.nu.copy()
        return self.nu * np.where(self.nu > 0, min(down / up, 1.0), min(up / down, 1.0))

    def _softness(self, rows: Rows) -> tuple[Rows, Array]:
        odds = self._state[rows]
        return rows, 1.0 / np.maximum(expit(odds) * expit(-odds), _LEAST_RESPONSE)

    def _sweep(self, margin: float) -> Swept:
        return Swept(
            *self._compiled.epoch(
                self._matrix, self._active, self._n_active, self._group, self._table,
                self._bias + self._middle_sq, self._z, self._intercept, self._spread, self._random,
            )
        )  # fmt: skip
