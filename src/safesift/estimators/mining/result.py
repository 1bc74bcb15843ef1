"""What mining found, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from safesift.estimators.classifier import SafeClassifier


@dataclass(frozen=True)
class MiningPass:
    """One pass over the pool.

    Attributes
    ----------
    n_rows : int
        Rows that were read.
    n_new : int
        Rows in doubt that were not held before.
    n_held : int
        Rows of the pool that were held at its end.
    n_fits : int
        How often a model was fitted to what was held, in the pass or right before it.
    seconds : float
        Since mining began.
    """

    n_rows: int
    n_new: int
    n_held: int
    n_fits: int
    seconds: float


@dataclass(frozen=True, eq=False)
class MiningResult:
    """What `mine_hard` found.

    Attributes
    ----------
    indices : array of shape (n_kept,)
        Rows of the pool that may matter, by their numbers, rising.
    X_kept : array or CSR matrix of shape (n_kept, n_features)
        Those rows.
    model_ : SafeClassifier
        The model of the training rows and the *whole* pool. `dual_gap_` is certified for all of
        them; `kept_` and `undecided_` speak of the training rows.
    dual_gap : float
        Certified: the objective on all rows is at most that far above its minimum.
    proved : bool
        Whether every other row of the pool is proved to be of no influence: with it or without it
        the optimum is the same. False where `max_passes` ended the search, where the pool kept
        changing, or where a guessed region was asked for.
    n_pool : int
        Rows of the pool.
    alpha_kept : float
        The alpha for the training rows and the kept ones alone, with a solver that averages: the
        divisor must stay that of all rows.
    history : tuple of MiningPass

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    >>> pool = np.linspace(-9.0, 0.0, 1000)[:, None]
    >>> mined = ss.mine_hard(pool, ss.SafeClassifier(alpha=0.01).fit(X, y), X, y)
    >>> mined.n_pool, mined.n_kept + mined.n_proved, mined.passes == len(mined.history)
    (1000, 1000, True)
    >>> bool(mined.indices.min() > 700), mined.X_kept.shape == (mined.n_kept, 1)
    (True, True)
    """

    indices: NDArray[np.intp]
    X_kept: Any
    model_: SafeClassifier
    dual_gap: float
    proved: bool
    n_pool: int
    alpha_kept: float
    history: tuple[MiningPass, ...]

    @property
    def n_kept(self) -> int:
        """How many rows of the pool may matter."""
        return len(self.indices)

    @property
    def n_proved(self) -> int:
        """How many rows of the pool are proved to be of no influence."""
        return self.n_pool - self.n_kept if self.proved else 0

    @property
    def passes(self) -> int:
        """How often the pool was read."""
        return len(self.history)

    def summary(self) -> str:
        """What was kept and why, in a few lines."""
        held = max(one.n_held for one in self.history)
        others = self.n_pool - self.n_kept
        why = "proved to be of no influence" if self.proved else "NOT proved to be of no influence"
        return (
            f"{self.n_kept} of {self.n_pool} rows of the pool kept, {others} others {why}\n"
            f"  {self.passes} passes over the pool, at most {held} of its rows held in memory\n"
            f"  duality gap on all rows: {self.dual_gap:.2g}"
        )
