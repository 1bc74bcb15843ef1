"""Leaving samples out of a model with a smooth loss and l2: intervals by bounds on both sides.

At the base, in the coordinates of T, the model without a group moves by w with

    0 = r + N w,     r = e − Σ share_k·ν_k·z_k,     N between A − ε₋I and A + ε₊I,

A = TᵀHT − Σ share_k·f''_k·z_k z_kᵀ over the group, and ε the largest eigenvalue of what secants of
the samples' slopes may differ from their curvature at the base, over all w with ‖w‖ ≤ R. Such a
table of ε for a few R costs a Gram matrix each, and serves all groups. Where the interval is wide,
steps are made with passes over the samples, many models at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from safesift.arithmetic import threads
from safesift.arithmetic.compiled.leave_out import SETTLED
from safesift.arithmetic.numerics import EPS, SMALLEST, norm
from safesift.regions.whitening import rounding_of_form
from safesift.workflows.leaving_out.base import Array, Base, Rows
from safesift.workflows.leaving_out.gradients import gradients_at
from safesift.workflows.leaving_out.groups import Groups
from safesift.workflows.leaving_out.models import Models

# radii for which what secants may do is computed: at these shares of all steps, a little longer
_QUANTILES = (0.3, 0.6, 0.85, 0.95, 0.99, 1.0)
_LONGER, _MUCH_LONGER = 1.5, 4.0
# models that are evaluated in one pass, and passes for each
_AT_ONCE, _PASSES = 64, 5
# up to this share of the columns, rows are fewer than what they are made of
_FEW_ROWS = 0.6


class Secants(NamedTuple):
    """What the matrix may differ from that of the base, for all models within a radius.

    `below`, `above`: of secants from the base; `least`: of curvature anywhere within the radius.
    """

    radius: float
    below: float
    above: float
    least: float


@dataclass(frozen=True, eq=False)
class SmoothSpace:
    """A base of a smooth loss.

    Parameters
    ----------
    base : Base
    width : float
        Intervals longer than that are made shorter by passes over the samples.
    """

    base: Base
    width: float

    @cached_property
    def _pull(self) -> Array:
        """share·slope of every sample."""
        return self.base.problem.shares * self.base.at.nu

    @cached_property
    def _pull_error(self) -> Array:
        base = self.base
        slope = base.problem.loss.slope_error(base.at.pred, base.pred_error, base.problem.y)
        shares = base.problem.shares
        relative = base.share_error + base.problem.loss.precision + 8 * EPS
        return shares * slope + relative * np.abs(self._pull)

    @cached_property
    def _load(self) -> Array:
        """share·curvature of every sample."""
        return self.base.problem.shares * self.base.curvature

    def points(self, moves: Array) -> Array:
        """Models by how they differ from that of the base."""
        return self.base.points(moves)

    def models(self, groups: Groups, todo: Rows, shifts: Array, keep: bool = False) -> Models:
        """The models without each of some groups, at the alpha of the base plus a shift each.

        `keep` how they differ from the base.
        """
        found = Models.empty(groups, self.base.n_columns if keep else 0)
        steps = groups.sums(np.abs(self._pull) * self.base.z_norms)[todo]
        left = 1.0 - groups.sums(self._load * self.base.z_norms**2)[todo]
        steps = steps / np.maximum(left, 0.1) + 2.0 * self._residual
        steps += np.abs(shifts) * norm(self.base.pull_of_alpha)
        shift_of = np.zeros(len(groups))
        shift_of[todo] = shifts
        table = self._table(steps)
        if groups.largest == 1:
            self._singles(groups.order[groups.starts[todo]], todo, shifts, table, found)
        else:
            self._groups(groups, todo, shift_of, table, found)
        wide = np.zeros(len(found.pred), dtype=bool)
        members, _ = groups.members_of(todo)
        wide[members] = ~(2.0 * found.half[members] <= self.width)
        wide_groups = todo[groups.any(wide)[todo]]
        for start in range(0, len(wide_groups), _AT_ONCE):
            self._sharpen(groups, wide_groups[start : start + _AT_ONCE], shift_of, table, found)
        return found

    def _groups(
        self, groups: Groups, todo: Rows, shift_of: Array, table: list[Secants], found: Models
    ) -> None:
        """Several samples at a time."""

        def work(block: slice) -> None:
            some = todo[block]
            members, starts = groups.members_of(some)
            rows, back = np.unique(members, return_inverse=True)
            own = self.base.whitened(rows)[back]
            for k, group in enumerate(some):
                part = slice(starts[k], starts[k + 1])
                self._one(int(group), members[part], own[part], shift_of[group], table, found)

        threads.run(work, self.base.blocks(len(todo), groups.largest))

    @property
    def _residual(self) -> float:
        """‖e‖, rounding included."""
        return norm(self.base.image) + self.base.image_error

    # --- what secants may do ----------------------------------------------------------------

    def _table(self, steps: Array) -> list[Secants]:
        if not len(steps):
            return []
        radii = _LONGER * np.quantile(steps, _QUANTILES)
        radii = np.unique(np.append(radii, _MUCH_LONGER * radii[-1]))
        return [self._secants(float(radius)) for radius in radii]

    def _secants(self, radius: float) -> Secants:
        base, problem = self.base, self.base.problem
        room = base.pred_error + base.z_norms * radius
        low, high = base.at.pred - room, base.at.pred + room
        floor, ceiling = problem.loss.secant_bounds(
            base.at.pred, base.pred_error, low, high, problem.y
        )
        least = problem.loss.curvature_floor(low, high, problem.y)
        here = base.curvature
        below, above, lower = (
            largest_eigenvalue(base, np.maximum(one, 0.0))
            for one in (here - floor, ceiling - here, here - least)
        )
        return Secants(radius, below, above, lower)

    # --- samples one by one -------------------------------------------------------------------

    def _singles(
        self, rows: Rows, some: Rows, shifts: Array, table: list[Secants], found: Models
    ) -> None:
        """One sample each: r is a multiple of its z, but for what is counted as an error.

        zᵀSz lies between ‖z‖²/(1 − h + ε₊) and ‖z‖²/(1 − h − ε₋), h its leverage.
        """
        base = self.base
        z, pull = base.z_norms[rows], self._pull[rows]
        gone = self._load[rows] * z**2 * (1.0 + 2.0 * base.share_error)
        loose = base.looseness + np.abs(shifts) * base.growth
        error = self._residual + np.abs(shifts) * norm(base.pull_of_alpha) * (1.0 + 1e-9)
        error = error + self._pull_error[rows] * z + np.abs(pull) * base.z_errors[rows]
        length = np.abs(pull) * z + error
        left = np.ones(len(rows), dtype=bool)
        found.pred[rows] = base.at.pred[rows]
        moves = np.zeros(len(rows))
        for secants in table:
            least = 1.0 - loose - gone - secants.below
            with np.errstate(divide="ignore", invalid="ignore"):
                here = left & (least > 0) & (length / least * (1.0 + 1e-12) < secants.radius)
            k = np.flatnonzero(here)
            left[k] = False
            # ‖z‖ is known from above; from below by twice its error
            inner = np.maximum(z[k] - 2.0 * base.z_errors[rows[k]], 0.0) * (1.0 - 1e-12)
            least_gone = gone[k] * (inner / np.maximum(z[k], SMALLEST)) ** 2
            small = inner**2 / (1.0 + loose[k] + secants.above - least_gone)
            large = z[k] ** 2 / least[k]
            middle, half = 0.5 * (small + large), 0.5 * (large - small)
            size = np.abs(pull[k])
            found.pred[rows[k]] += pull[k] * middle
            found.half[rows[k]] = size * half + z[k] * error[k] / least[k]
            found.half[rows[k]] += base.pred_error[rows[k]] + 1e-12 * size * large
            moves[k] = pull[k] * middle / np.maximum(z[k] ** 2, SMALLEST)
            found.length[some[k]] = size * z[k] / least[k]
            # w is between two multiples of z in every direction: S is between two matrices
            spread = 0.5 * (1.0 / least[k] - 1.0 / (1.0 + loose[k] + secants.above))
            found.radius[some[k]] = size * z[k] * spread + error[k] / least[k]
            found.status[some[k]] = SETTLED
        if len(found.moves):
            order = np.argsort(rows)
            found.moves[some[order]] = moves[order, None] * base.whitened(rows[order])

    # --- one model of several samples -----------------------------------------------------------

    def _start(self, rows: Rows, own: Array, shift: float) -> tuple[Array, float]:
        """r without some samples, and a bound on its error."""
        base, pull, z = self.base, self._pull[rows], self.base.z_norms[rows]
        r = base.image + shift * base.pull_of_alpha - pull @ own
        error = base.image_error + self._pull_error[rows] @ z + np.abs(pull) @ base.z_errors[rows]
        size = norm(base.image) + np.abs(pull) @ z + abs(shift) * norm(base.pull_of_alpha)
        return r, float(error + (len(rows) + base.n_columns + 8) * EPS * size)

    def _doubt(self, rows: Rows) -> float:
        """How far Σ load·z zᵀ over some samples is from the exact one, z being rounded."""
        base = self.base
        return 2.0 * float(self._load[rows] @ (base.z_norms[rows] * base.z_errors[rows]))

    def _gone(self, rows: Rows, system: _System) -> float:
        """The most curvature that leaves with some samples, in any direction."""
        return system.largest * (1.0 + self.base.share_error) + self._doubt(rows)

    def _one(
        self, group: int, rows: Rows, own: Array, shift: float, table: list[Secants], found: Models
    ) -> None:
        """The interval from the base alone."""
        base, system = self.base, _System(own, self._load[rows])
        gone = self._gone(rows, system)
        r, error = self._start(rows, own, shift)
        loose = base.looseness + abs(shift) * base.growth + self._doubt(rows)
        length = norm(r) * (1.0 + 1e-12) + error
        found.pred[rows] = base.at.pred[rows]
        for secants in table:
            kept = 1.0 - loose - gone - secants.below
            if kept > 0 and length / kept * (1.0 + 1e-12) < secants.radius:
                ends = 1.0 - loose - secants.below, 1.0 + loose + secants.above
                self._between(group, rows, own, system, r, error, ends, kept, found)
                return

    def _between(
        self, group: int, rows: Rows, own: Array, system: _System, r: Array, error: float,
        ends: tuple[float, float], kept: float, found: Models,
    ) -> None:  # fmt: skip
        """w between −(A + ε₊)⁻¹r and −(A − ε₋)⁻¹r, and what that says of the group's own rows."""
        base = self.base
        (far, rows_far), (near, rows_near) = (
            (system.solve(end, r), system.solve_rows(end)) for end in ends
        )
        middle = -0.5 * (far + near)
        # the norm of half of the difference of both ends, in rows and in r
        spread_r = max(float(r @ (far - near)), 0.0) + 64 * EPS * float(r @ far)
        spread_rows = np.maximum(np.einsum("ij,ij->i", own, rows_far - rows_near), 0.0)
        spread_rows += 64 * EPS * np.einsum("ij,ij->i", own, rows_far)
        moved, spread = own @ middle, 0.5 * math.sqrt(spread_r / kept)
        half = 0.5 * np.sqrt(spread_rows * spread_r) + base.z_norms[rows] * error / kept
        length = norm(middle) + spread + error / kept
        found.pred[rows] = base.at.pred[rows] + moved
        found.half[rows] = half + self._product_error(rows, length) + 1e-12 * np.abs(moved)
        found.length[group], found.radius[group] = norm(middle), spread + error / kept
        found.status[group] = SETTLED
        if len(found.moves):
            found.moves[group] = middle

    def _product_error(self, rows: Rows, length: float) -> Array:
        """Of the predictions of some rows by a model so far from the base."""
        base = self.base
        products = base.z_errors[rows] + (base.n_columns + 8) * EPS * base.z_norms[rows]
        return base.pred_error[rows] + products * length

    # --- steps with passes over the samples ---------------------------------------------------

    def _sharpen(
        self, groups: Groups, some: Rows, shift_of: Array, table: list[Secants], found: Models
    ) -> None:
        """Newton steps of many models at a time, each verified by its own gradient."""
        base, shifts = self.base, shift_of[some]
        parts = [groups.rows(int(group)) for group in some]
        owns = [base.whitened(np.sort(rows))[np.argsort(np.argsort(rows))] for rows in parts]
        systems = [_System(own, self._load[rows]) for own, rows in zip(owns, parts, strict=True)]
        starts = [
            self._start(rows, own, float(shift))[0]
            for rows, own, shift in zip(parts, owns, shifts, strict=True)
        ]
        moves = -np.stack([system.solve(1.0, r) for system, r in zip(systems, starts, strict=True)])
        for _ in range(_PASSES):
            _, _, residuals, errors = gradients_at(base, moves, shifts, parts)
            for k, group in enumerate(some):
                self._certify(
                    int(group), parts[k], owns[k], systems[k], moves[k], residuals[k],
                    float(errors[k]), abs(float(shifts[k])) * base.growth, table, found,
                )  # fmt: skip
            if all((2.0 * found.half[rows] <= self.width).all() for rows in parts):
                break
            steps = [system.solve(1.0, r) for system, r in zip(systems, residuals, strict=True)]
            moves = moves - np.stack(steps)

    def _certify(
        self, group: int, rows: Rows, own: Array, system: _System, move: Array, r: Array,
        error: float, loose: float, table: list[Secants], found: Models,
    ) -> None:  # fmt: skip
        base, loose = self.base, self.base.looseness + loose
        length, gone = norm(move) * (1.0 + 1e-12), self._gone(rows, system)
        for secants in table:
            kept = 1.0 - loose - secants.least - gone
            if not kept > 0:
                continue
            radius = (norm(r) + error) / kept * (1.0 + 1e-12)
            if length + radius < secants.radius:
                break
        else:
            return
        half = base.z_norms[rows] * radius + self._product_error(rows, length)
        if half.max() < found.half[rows].max():
            found.pred[rows], found.half[rows] = base.at.pred[rows] + own @ move, half
            found.length[group], found.radius[group] = length, radius
            found.status[group] = SETTLED
            if len(found.moves):
                found.moves[group] = move


def largest_eigenvalue(base: Base, curvature: Array) -> float:
    """An upper bound on the largest eigenvalue of Σ share·curvature·z zᵀ."""
    loads, design, T = base.problem.shares * curvature, base.design, base.basis
    if not np.isfinite(loads).all():
        return math.inf
    rows = np.flatnonzero(loads)
    if len(rows) <= _FEW_ROWS * base.n_columns:
        return _largest_of_few(base, rows, loads[rows])
    matrix = design.gram(loads)
    spread = np.sqrt(np.diag(matrix))
    error = rounding_of_form(T, spread, design.gram_error + base.problem.curvature_error)
    values = np.linalg.eigvalsh(T.T @ matrix @ T)
    largest = float(np.abs(values).max(initial=0.0))
    return largest * (1.0 + 64 * len(T) * EPS) + error


def _largest_of_few(base: Base, rows: Rows, loads: Array) -> float:
    """The same from the products of few rows: Σ load·z zᵀ and those have the same eigenvalues."""
    own = base.whitened(rows) * np.sqrt(loads)[:, None]
    values = np.linalg.eigvalsh(own @ own.T)
    rounding = (base.n_columns + 64 * len(rows) + 64) * EPS * float(np.vdot(own, own))
    largest = math.sqrt(float(values.max(initial=0.0)) + rounding)
    # z is rounded, and so are the loads
    largest += math.sqrt(float(loads @ base.z_errors[rows] ** 2))
    return largest**2 * (1.0 + 2.0 * base.problem.curvature_error + 16 * EPS)


class _System:
    """(cI − Σ load_k z_k z_kᵀ)⁻¹ for any c, from the singular values of the scaled rows."""

    def __init__(self, own: Array, loads: Array) -> None:
        self._own = own
        scaled = own * np.sqrt(loads)[:, None]
        if len(own) == 1:
            size = norm(scaled[0])
            self._vectors = scaled / size if size > 0 else scaled
            self._squares = np.array([size * size])
        else:
            _, values, self._vectors = np.linalg.svd(scaled, full_matrices=False)
            self._squares = values**2
        self.largest = float(self._squares.max(initial=0.0)) * (1.0 + 64 * EPS * (len(own) + 8))

    def solve(self, whole: float, right: Array) -> Array:
        """(whole·I − Σ load z zᵀ)⁻¹ right."""
        inside = 1.0 / (whole - self._squares) - 1.0 / whole
        return right / whole + (inside * (self._vectors @ right)) @ self._vectors

    def solve_rows(self, whole: float) -> Array:
        """The same for every z."""
        inside = 1.0 / (whole - self._squares) - 1.0 / whole
        return self._own / whole + ((self._own @ self._vectors.T) * inside) @ self._vectors
