"""½xᵀQx + qᵀx + r over rows that come and go, with bounds on the rounding of all that was added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, UNDERFLOW, length_bound
from safesift.design.rows import RowDesign
from safesift.problem.evaluation import Quadratic

Array = NDArray[np.float64]


class Terms(NamedTuple):
    """½·quadratic·t² + linear·t + constant of some rows, times their weights; any sign."""

    quadratic: Array
    linear: Array
    constant: Array


@dataclass(frozen=True, eq=False)
class RunningQuadratic(Quadratic):
    """The sums over rows of what they contribute, not divided by the total weight.

    Attributes
    ----------
    Q_error, q_error, r_error : float
        ‖computed − exact‖, in the Frobenius norm, the 2-norm and absolutely, for all that was ever
        added or taken away. What a removed row leaves behind is no more than that.
    Q_size, q_size : float
        Bounds on the norms of Q and q.
    """

    Q: Array
    Q_error: float = 0.0
    q_error: float = 0.0
    r_error: float = 0.0
    Q_size: float = 0.0
    q_size: float = 0.0

    @classmethod
    def zero(cls, n_columns: int) -> RunningQuadratic:
        return cls(np.zeros(n_columns), 0.0, np.zeros((n_columns, n_columns)))

    def plus(self, rows: RowDesign, terms: Terms) -> RunningQuadratic:
        """With the terms of some rows; taken away, if they have the other sign.

        Sums over the rows are off by the error of the design times the sum of their sizes, and
        adding them to what is there by EPS times the result; products may underflow.
        """
        # of the sums, of weights times coefficients, and of these: 1/width, for example
        lost, norms = rows.gram_error + 8 * EPS, rows.row_norms
        gram, column = rows.weighted_sums(terms.quadratic, terms.linear)
        Q, q, r = self.Q + gram, self.q + column, self.r + float(terms.constant.sum())
        Q_size, q_size = length_bound(Q.ravel()), length_bound(q)
        quadratic, linear, constant = map(np.abs, terms)
        tiny = 4 * UNDERFLOW * (float(norms @ norms) + len(norms) * rows.n_columns)
        return RunningQuadratic(
            q, r, Q,
            self.Q_error + lost * float((quadratic * norms) @ norms) + EPS * Q_size + tiny,
            self.q_error + lost * float(linear @ norms) + EPS * q_size + tiny,
            self.r_error + lost * float(constant.sum()) + EPS * abs(r) + tiny,
            Q_size, q_size,
        )  # fmt: skip

    def size(self, length: float) -> float:
        return self.Q_size * length + self.q_size

    def rounding(self, length: float) -> float:
        """What computing the value at points of some length may lose."""
        return (len(self.q) + 8) * EPS * (length * self.size(length) + abs(self.r))

    def residue(self, length: float) -> float:
        """By how much the value at points of some length is off at most, on account of errors."""
        return self.r_error + length * (self.q_error + 0.5 * length * self.Q_error)

    def gradient_error(self, length: float) -> float:
        """By how much the gradient at points of some length is off, its own rounding included."""
        lost = (len(self.q) + 4) * EPS
        return self.Q_error * length + self.q_error + lost * self.size(length)
