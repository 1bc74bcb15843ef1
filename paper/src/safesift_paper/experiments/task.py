"""A problem whose samples are to be screened, and whose solution is known."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift import RegionError, SafeClassifier, safe_path, screen
from safesift.losses import LOSSES
from safesift.regions import Region

Array = NDArray[np.float64]

# a margin is this much on the wrong side of the flat piece before a sample was dropped wrongly
_CLEARLY = 1e-4
# levels of the way to an l1 solution per power of ten, and their relative duality gap
_PER_DECADE, _COARSE = 4, 1e-2


@dataclass(frozen=True, eq=False)
class Task:
    """Train a linear classifier without an intercept, as the paper does.

    Attributes
    ----------
    X, y : the training samples
    loss : str
    penalty : {"l1", "l2"}
    alpha : float
    tol : float
        Relative duality gap of the solution that decisions are compared with.
    """

    X: Any
    y: Array
    loss: str
    penalty: str
    alpha: float
    tol: float = 1e-9

    @cached_property
    def _solved(self) -> tuple[Array, float]:
        """Coefficients and passes: along a coarse path first, where features enter one by one."""
        kind = {"loss": self.loss, "penalty": self.penalty}
        model = SafeClassifier(
            **kind, alpha=self.alpha, fit_intercept=False, tol=self.tol, warm_start=True,
            random_state=0,
        )  # fmt: skip
        passes = 0.0
        if self._way:
            path = safe_path(self.X, self.y, alphas=self._way, tol=_COARSE, **kind)
            passes = float(path.passes.sum())
            # a warm start begins at the last model
            model.coef_, model.intercept_ = path.coefs[-1:], path.intercepts[-1:]
        model.fit(self.X, self.y)
        return model.coef_[0], passes + model.history_[-1]["passes"]

    @cached_property
    def _way(self) -> list[float]:
        """Larger alphas, falling; none under l2, which needs no such help."""
        if self.penalty != "l1":
            return []
        # where a path begins by default, no feature has entered
        (top,) = safe_path(
            self.X, self.y, n_alphas=1, eps=0.5, loss=self.loss, penalty="l1", fit_intercept=False
        ).alphas
        if self.alpha >= top:
            return []
        n_levels = 1 + math.ceil(_PER_DECADE * math.log10(top / self.alpha))
        return np.geomspace(top, self.alpha, n_levels + 1)[:-1].tolist()

    @property
    def solution(self) -> Array:
        """Certified coefficients."""
        return self._solved[0]

    @property
    def passes(self) -> float:
        """Products with as many rows as there are, until the solution was found."""
        return self._solved[1]

    @cached_property
    def margins(self) -> Array:
        """y_i a_iᵀx*."""
        return self.y * (self.X @ self.solution)

    @cached_property
    def flat_from(self) -> float:
        """The margin from which the loss is flat."""
        pieces = LOSSES[self.loss]().pieces(np.ones(1))
        (flat,) = (piece for piece in pieces if piece.is_flat)
        return float(flat.lower[0])

    @property
    def limit(self) -> float:
        """Percent of the samples that the optimum itself leaves without influence."""
        return 100.0 * float(np.mean(self.margins > self.flat_from))

    def screened(self, region: Region, coef: Array) -> dict[str, Any]:
        """The share that a region drops, and whether the optimum agrees."""
        begin = time.perf_counter()
        try:
            result = screen(
                self.X, self.y, loss=self.loss, penalty=self.penalty, alpha=self.alpha, coef=coef,
                screening=region, fold="never", fit_intercept=False,
            )  # fmt: skip
        except RegionError:
            # proved not to contain the optimum: nothing it says can be used
            return {"screened": None, "certified": False, "wrong": None}
        seconds, dropped = time.perf_counter() - begin, ~result.kept
        return {
            "screened": 100.0 * float(dropped.mean()),
            "certified": bool(result.certified),
            "wrong": int((dropped & (self.margins < self.flat_from - _CLEARLY)).sum()),
            "gap": float(result.gap),
            "seconds": round(seconds, 3),
        }


def screened_text(outcomes: list[dict[str, Any]]) -> str:
    """Several outcomes of a region: mean and deviation, and what is wrong with it."""
    from safesift_paper.experiments.tables import spread

    known = [one for one in outcomes if one["screened"] is not None]
    if not known:
        return "refused"
    text = spread(one["screened"] for one in known)
    wrong = sum(one["wrong"] for one in known)
    return f"{text} ({wrong} wrong)" if wrong else text
