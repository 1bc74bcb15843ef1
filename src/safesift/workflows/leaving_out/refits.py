"""Models without some samples, each solved for itself from the model of all of them.

For losses with kinks, for penalties whose support changes, and for whatever the faster ways have
not settled. Samples that are proved to be flat at every optimum of all cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from safesift.arithmetic.compiled.leave_out import SETTLED
from safesift.arithmetic.numerics import norm
from safesift.design.rows import rows_of
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Bounds
from safesift.problem.problem import Problem
from safesift.regions import Auto, Curvature, TestSet
from safesift.regions.base import Intersection
from safesift.solvers import Fit, Settings, solve_path
from safesift.workflows.leaving_out.base import Array, Rows
from safesift.workflows.leaving_out.groups import Groups
from safesift.workflows.leaving_out.models import Models

# relative gaps to solve to, one after the other while intervals are too long
_TOLERANCES = (1e-8, 1e-10, 1e-12, 1e-14)
# where a Newton step more makes the solution exact, it is made
_EXACT = _TOLERANCES[-1:]


@dataclass(frozen=True, eq=False)
class Refits:
    """Solves without each of some groups.

    Parameters
    ----------
    problem : Problem
        Of all samples, at the alpha that is asked for.
    level : Fit
        The model of all samples at the alpha at which flat samples leave it as it is.
    width : float
        Solve on while intervals are longer than that.
    max_iter : int
    """

    problem: Problem
    level: Fit
    width: float
    max_iter: int

    def put(
        self, groups: Groups, todo: Rows, shifts: Array, found: Models, keep: Array | None = None
    ) -> None:
        """Find the models without some groups; `keep`, where given, takes their points."""
        idle = ~groups.any(~self.level.decisions.dropped)[todo] & (shifts == 0)
        if idle.any():
            self._keep_level(groups, todo[idle], found, keep)
        for group in todo[~idle]:
            rows = groups.rows(int(group))
            fit, bounds = self._solved(rows)
            _note(found, int(group), rows, fit.at.pred[rows], bounds)
            if keep is not None:
                keep[group] = fit.at.point

    def _keep_level(self, groups: Groups, some: Rows, found: Models, keep: Array | None) -> None:
        members, _ = groups.members_of(some)
        rows = np.unique(members)
        bounds = _bounds(self.level.certificate, rows)
        pred, problem = self.level.at.pred, self.level.problem
        lower, upper = np.full((2, problem.design.n_samples), np.nan)
        lower[rows], upper[rows] = bounds
        for group in some:
            own = groups.rows(int(group))
            _note(found, int(group), own, pred[own], Bounds(lower[own], upper[own]))
            if keep is not None:
                keep[group] = self.level.at.point

    def _solved(self, rows: Rows) -> tuple[Fit, Bounds]:
        weights = self.problem.weights.copy()
        weights[rows] = 0.0
        without, start = self.problem.reweighted(weights), self.level.at.point
        best: tuple[Fit, Bounds] | None = None
        smooth = np.isfinite(without.loss.smoothness) and without.pieces
        for tol in _EXACT if smooth else _TOLERANCES:
            fit = solved(without, start, tol, self.max_iter)
            bounds = _bounds(fit.certificate, np.sort(rows))
            order = np.argsort(np.argsort(rows))
            best = fit, Bounds(bounds.lower[order], bounds.upper[order])
            if (2.0 * _half(fit.at.pred[rows], best[1]) <= self.width).all():
                break
            if fit.limited or not fit.converged:
                break
            start = fit.at.point
        assert best is not None  # there are tolerances
        return best


def solved(problem: Problem, start: Array | None, tol: float, max_iter: int = 1000) -> Fit:
    """The optimum of a problem, from a point nearby."""
    settings = replace(Settings(tol, max_iter), decided=())
    ((fit,),) = solve_path([[problem]], settings, [start])
    return fit


def _bounds(certificate: Certificate, rows: Rows) -> Bounds:
    """Of the predictions of some rows at every optimum: by balls, and by curvature."""
    sets: list[TestSet] = [Auto().build(certificate)]
    if np.isfinite(certificate.problem.loss.smoothness):
        sets.append(Curvature().build(certificate))
    design = rows_of(certificate.problem.design).only(rows)
    return Intersection(tuple(sets)).bounds(design)


def _half(pred: Array, bounds: Bounds) -> Array:
    """Of intervals around predictions that hold the bounds."""
    pred = np.clip(pred, bounds.lower, bounds.upper)
    return np.nextafter(np.maximum(bounds.upper - pred, pred - bounds.lower), np.inf)


def _note(found: Models, group: int, rows: Rows, pred: Array, bounds: Bounds) -> None:
    """The prediction of the solution, and its interval, where no shorter one is known."""
    pred, half = np.clip(pred, bounds.lower, bounds.upper), _half(pred, bounds)
    if found.status[group] == SETTLED and found.half[rows].max() < half.max():
        return
    found.pred[rows], found.half[rows] = pred, half
    found.status[group] = SETTLED
    found.length[group] = norm(pred)
