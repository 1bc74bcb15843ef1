"""Leaving samples out under l1 or the elastic net, where the support of the model stays.

On the support, with its signs, the penalty is linear or quadratic, so that models are found as with
l2. One of them is that of all features if no coefficient changes its sign and every feature outside
has a derivative strictly below the threshold; others are not settled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.compiled.leave_out import UNSETTLED
from safesift.design.rows import rows_of
from safesift.problem.problem import Problem
from safesift.solvers import Fit
from safesift.workflows.leaving_out.base import Array, Rows, base_at, smooth_pieces
from safesift.workflows.leaving_out.groups import Groups
from safesift.workflows.leaving_out.models import Models
from safesift.workflows.leaving_out.pieces import PiecewiseSpace

# models whose samples move more of them than that are not settled here
_MOST_MOVED = 64
# models that are checked at a time
_AT_ONCE = 256
# relative to its terms, no sum of products here is off by more
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class SupportSpace:
    """The models on the support, and what decides whether they are those of all features.

    Parameters
    ----------
    problem : Problem
        In all features.
    inner : PiecewiseSpace
        On the support.
    features : mask
        The support.
    """

    problem: Problem
    inner: PiecewiseSpace
    features: NDArray[np.bool_]

    @classmethod
    def of(cls, fit: Fit) -> Self | None:
        """None for losses that are not quadratic piece by piece, and where the matrix is none."""
        problem, features = fit.problem, fit.coef != 0
        if smooth_pieces(problem) is None or not features.any():
            return None
        part = problem.with_features(features)
        coef, intercept = fit.coef[features], fit.intercept
        base = base_at(part, part.join(coef, intercept))
        pieces = smooth_pieces(part)
        if base is None or pieces is None:
            return None
        if (np.sign(part.split(base.at.point)[0]) != np.sign(coef)).any():
            return None
        return cls(problem, PiecewiseSpace(base, pieces), features)

    def points(self, moves: Array) -> Array:
        """Models by how they differ from that of the base, in all features."""
        columns = np.append(self.features, True) if self.problem.fit_intercept else self.features
        found = np.zeros((len(moves), self.problem.design.n_columns))
        found[:, columns] = self.inner.points(moves)
        return found

    # of a model that is not settled the radius is ∞: times 0 that is no number, and no proof
    @np.errstate(invalid="ignore")
    def models(self, groups: Groups, todo: Rows, shifts: Array, keep: bool = False) -> Models:
        """The models without each of some groups, unsettled where the support may change."""
        found = Models.empty(groups, self.inner.base.n_columns if keep else 0)
        for start in range(0, len(todo), _AT_ONCE):
            block = slice(start, start + _AT_ONCE)
            some = todo[block]
            part = self.inner.models(groups, some, shifts[block], True, _MOST_MOVED)
            changes = self._signs_change(part, some) | self._joins(part, some, shifts[block])
            part.status[some[changes]] = UNSETTLED
            members, _ = groups.members_of(some)
            found.take(part, some, members)
            if keep:
                found.moves[some] = part.moves[some]
        return found

    def _signs_change(self, part: Models, some: Rows) -> NDArray[np.bool_]:
        """Whether a coefficient may be 0, or of another sign."""
        base, k = self.inner.base, int(self.features.sum())
        rows = np.linalg.norm(base.basis[:k], axis=1)
        coefs = base.points(part.moves[some])[:, :k]
        room = np.outer(part.radius[some] + _ROUNDING * part.length[some], rows)
        room += _ROUNDING * (np.abs(coefs) + np.abs(base.at.point[:k]))
        signs = np.sign(base.at.point[:k])
        return np.asarray(~(signs * coefs > room).all(axis=1))

    # --- features outside -------------------------------------------------------------------

    @cached_property
    def _outside(self) -> NDArray[np.intp]:
        return np.flatnonzero(~self.features)

    @cached_property
    def _derivatives(self) -> Array:
        """Of the losses at the base, by the features outside."""
        base = self.inner.base
        return self.problem.design.rmatvec(self.problem.shares * base.at.nu)[self._outside]

    @cached_property
    def _response(self) -> Array:
        """How these derivatives move with v, every sample on its piece."""
        base, design = self.inner.base, rows_of(self.problem.design)
        columns = np.append(self.features, True) if self.problem.fit_intercept else self.features
        basis = np.zeros((design.n_columns, base.n_columns))
        basis[columns] = base.basis
        return design.gram_product(basis, self.problem.shares * base.curvature)[self._outside]

    @cached_property
    def _sizes(self) -> tuple[Array, float]:
        """√(L·Σ share·a_j²) for every feature outside, and √(L·Σ share·‖z‖²)."""
        problem, base = self.problem, self.inner.base
        smoothness = problem.loss.proved_smoothness
        columns = rows_of(problem.design).columns_sq(problem.shares)[self._outside]
        return np.sqrt(smoothness * columns), float(
            np.sqrt(smoothness * (problem.shares @ base.z_norms**2))
        )

    def _off(self, errors: Array) -> float:
        """√(L·Σ share·error²): times `_sizes`, what errors of predictions do to derivatives."""
        problem = self.problem
        return float(np.sqrt(problem.loss.proved_smoothness * (problem.shares @ errors**2)))

    @cached_property
    def _derivative_error(self) -> Array:
        """Of the rounding of `_derivatives`, the slopes being known."""
        loads = self.problem.shares * np.abs(self.inner.base.at.nu)
        design = rows_of(self.problem.design)
        sizes = np.sqrt(loads.sum() * design.columns_sq(loads)[self._outside])
        return (design.sum_error + self.inner.base.share_error + _ROUNDING) * sizes

    def _joins(self, part: Models, some: Rows, shifts: Array) -> NDArray[np.bool_]:
        """Whether a feature outside may have a coefficient."""
        if not len(self._outside):
            return np.zeros(len(some), dtype=bool)
        problem, base = self.problem, self.inner.base
        columns, whole = self._sizes
        moved, sizes = self._moved(part, some)
        derivatives = self._derivatives + part.moves[some] @ self._response.T + moved
        # how far the exact optimum is from v, and rounding
        room = np.outer(part.radius[some], columns * whole)
        rounding = whole * (rows_of(problem.design).sum_error + _ROUNDING)
        room += np.outer(part.length[some], columns * (rounding + self._off(base.z_errors)))
        room += columns * self._off(base.pred_error) + self._derivative_error
        room += _ROUNDING * (sizes + np.abs(derivatives))
        alphas = problem.alpha + shifts
        thresholds = np.array([problem.penalty.sparse_threshold(float(one)) for one in alphas])
        below = np.abs(derivatives) + room < thresholds[:, None] * (1.0 - _ROUNDING)
        return np.asarray(~below.all(axis=1))

    def _moved(self, part: Models, some: Rows) -> tuple[Array, Array]:
        """What samples that moved add to the derivatives, and the size of it."""
        which, betas = part.moved[some], part.betas[some]
        used = which >= 0
        rows, places = np.unique(which[used], return_inverse=True)
        loads = np.zeros((len(some), len(rows)))
        np.add.at(loads, (np.nonzero(used)[0], places), betas[used])
        if not len(rows):
            return np.zeros((2, len(some), len(self._outside)))[0], np.zeros((len(some), 1))
        block = rows_of(self.problem.design).gathered(rows)[:, self._outside]
        return np.asarray(loads @ block), np.asarray(np.abs(loads) @ abs(block))
