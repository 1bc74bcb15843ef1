"""The curvature of the samples as a region of the kernel's space.

With g the gradient at h, weights w_i ≥ 0 on samples S and H = alpha·I + (1/W) Σ s_i w_i φ_i φ_iᵀ,
the difference u of an optimum and h has ‖u‖²_H ≤ −gᵀu, so ‖u‖_H ≤ ‖g‖_{H⁻¹} = G and

    |u(a)| ≤ G·√(φ(a)ᵀH⁻¹φ(a)),    alpha·φ(a)ᵀH⁻¹φ(a) = K_aa − K_aS (D + K_SS)⁻¹ K_Sa,

D = diag(alpha·W/(s_i w_i)), as long as every f_i has curvature w_i on an open interval around
t_i ± that bound (`regions.self_consistent` has the proof: a segment that starts in a set on which
the curvature holds cannot leave it). Weights that are not confirmed are taken away until all are.

An unpenalised intercept is a constant feature without penalty: with M = D + K_SS

    alpha·φ(a)ᵀH⁻¹φ(a) gains (1 − 1ᵀM⁻¹K_Sa)² / (1ᵀM⁻¹1).

Rounding: less curvature than there is is safe, so I + RKR, R = √(s w/(alpha·W)), is factored with
more on its diagonal than the factorisation can lose, and then R K_aS may be wrong by its rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from safesift.arithmetic.numerics import EPS, cholesky
from safesift.design.base import Design
from safesift.design.kernel import KernelDesign
from safesift.problem.certificate import Certificate
from safesift.problem.decisions import Bounds, decide
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.regions.ball import Balls
from safesift.regions.base import Intersection, Region, TestSet, clean

Array = NDArray[np.float64]

_MAX_ROUNDS = 6
# losses of varying curvature keep this share of it within some distance
_SHARE = 0.8
# rows whose kernels with the support are looked at at a time
_ROWS = 1024


@dataclass(frozen=True)
class KernelCurvature(Region):
    """The region of the samples' curvature, for the rows that balls leave undecided.

    Balls alone for a loss with kinks, and where no curvature is confirmed.
    """

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def build(self, certificate: Certificate) -> TestSet:
        problem, balls = certificate.problem, Balls().build(certificate)
        known = balls.own_bounds(problem)
        undecided = decide(problem, known, "always").undecided
        if math.isinf(problem.loss.smoothness) or not undecided.any():
            return balls
        found = curvature_set(certificate, known, undecided)
        return balls if found is None else Intersection((balls, found))


@dataclass(frozen=True, eq=False, repr=False)
class KernelSet(TestSet):
    """A set of functions that contains every optimum, by its bounds on the predictions."""

    found: Bounds
    name: str
    certified: bool = True

    def bounds(self, design: Design) -> Bounds:
        return self.found

    def describe(self) -> str:
        return self.name


def kernel_of(design: Design) -> KernelDesign:
    """The design, for what works in a kernel's space: whoever does refuses rows before."""
    if not isinstance(design, KernelDesign):
        raise TypeError(f"{type(design).__name__} has no kernel.")
    return design


def curvature_set(
    certificate: Certificate, known: Bounds, rows: NDArray[np.bool_]
) -> KernelSet | None:
    """Bounds on the predictions at every optimum, None where no curvature is confirmed.

    Parameters
    ----------
    certificate : Certificate
        Of a problem with a smooth loss.
    known : Bounds
        That hold already; what they confirm is not tested again.
    rows : mask
        Whose bounds are wanted: of the others only those that carry curvature are looked at.
    """
    problem, at = certificate.problem, certificate.at
    loss, y = problem.loss, problem.y
    share = 1.0 if loss.quadratic_rays else _SHARE
    weights = share * loss.curvature(at.pred, y)
    carrying = (problem.shares > 0) & (weights > 0)
    error = problem.prediction_error(at)
    # between h and an optimum, predictions are between those of both
    lower, upper = np.minimum(known.lower, at.pred), np.maximum(known.upper, at.pred)
    confirmed = loss.curvature_floor(lower - error, upper + error, y) >= weights
    for _ in range(_MAX_ROUNDS):
        if not carrying.any():
            return None
        metric = _Metric.of(certificate, np.flatnonzero(carrying), weights)
        if metric is None:
            return None
        doubtful = np.flatnonzero(carrying & ~confirmed)
        reach = metric.reach(doubtful) + error[doubtful]
        t, part = at.pred[doubtful], y[doubtful]
        floor = loss.take(doubtful).curvature_floor(t - reach, t + reach, part)
        failing = ~(floor >= weights[doubtful])
        if not failing.any():
            return metric.bounds(at, error, rows)
        carrying[doubtful[failing]] = False
    return None


@dataclass(frozen=True, eq=False)
class _Metric:
    """H by a factor of I + RKR, and the length G of the gradient in it.

    Attributes
    ----------
    support : array of ints
        S.
    roots : array
        R.
    factor : array
        L with L Lᵀ ⪰ I + RKR.
    ones : array or None
        L⁻¹R1, with an intercept.
    noise : float
        ‖computed L⁻¹R K_Sa − exact‖ ≤ noise·√K_aa.
    length : float
        G.
    """

    certificate: Certificate
    support: NDArray[np.intp]
    roots: Array
    factor: Array
    ones: Array | None
    noise: float
    length: float

    @classmethod
    def of(
        cls, certificate: Certificate, support: NDArray[np.intp], weights: Array
    ) -> _Metric | None:
        problem = certificate.problem
        gram = kernel_of(problem.design).gram
        m = len(support)
        # no more curvature than there is, whatever the rounding of shares and curvatures
        loads = problem.shares[support] * weights[support] * (1.0 - problem.curvature_error)
        roots = np.sqrt(loads / problem.alpha)
        B = gram.submatrix(support)
        B *= roots
        B *= roots[:, None]
        trace = float(np.trace(B)) + m
        lost = (2.0 * (m + 8) * EPS + 2.0 * gram.kernel.entry_error) * trace
        B[np.diag_indices_from(B)] += 1.0 + lost
        try:
            factor, _ = cholesky(B)
        except np.linalg.LinAlgError:
            return None
        noise = (4.0 * (m + 8) * EPS + 2.0 * gram.kernel.entry_error) * math.sqrt(trace)
        if not noise < 0.1:
            return None
        ones = _solve(factor, roots) if problem.fit_intercept else None
        blank = cls(certificate, support, roots, factor, ones, noise, math.nan)
        length = blank._gradient_length()
        if not math.isfinite(length):
            return None
        return cls(certificate, support, roots, factor, ones, noise, length)

    @property
    def problem(self) -> Problem:
        return self.certificate.problem

    def _gradient_length(self) -> float:
        problem, design = self.problem, kernel_of(self.problem.design)
        gamma, slope = problem.split(self.certificate.at.subgradient)
        element = design.element(gamma)
        norm_sq, norm_error = design.norm_sq(gamma)
        values = element.values[self.support]
        image = _solve(self.factor, self.roots * values)
        size = math.sqrt(norm_sq + norm_error)
        root_trace = math.sqrt(float(np.sum((self.roots * design.gram.roots[self.support]) ** 2)))
        lost = design.dot_error * element.work * root_trace + self.noise * size
        length_sq = norm_sq + norm_error - max(_length(image) - lost, 0.0) ** 2
        stretch = 1.0
        if self.ones is not None:
            own = _length(self.ones)
            rest = abs(slope - float(self.ones @ image))
            rest += own * (lost + 2.0 * self.noise * size) + 4 * EPS * abs(slope)
            length_sq += (rest / (own * (1.0 - self.noise))) ** 2
            stretch += (1.0 + 1.0 / own) ** 2
        length = math.sqrt(max(length_sq, 0.0) / problem.alpha)
        more = self.certificate.rounding.gradient * math.sqrt(stretch / problem.alpha)
        return (length + more) * (1.0 + 16 * EPS)

    def reach(self, rows: NDArray[np.intp]) -> Array:
        """G·√(φ(a)ᵀH⁻¹φ(a)), rounded upwards."""
        out = np.empty(len(rows))
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            out[part] = self._widths(rows[part])
        return self.length * out * (1.0 + 16 * EPS)

    def _widths(self, rows: NDArray[np.intp]) -> Array:
        gram = kernel_of(self.problem.design).gram
        images = _solve(self.factor, self.roots[:, None] * gram.block(rows, self.support).T)
        diagonal = gram.roots[rows]
        lengths = np.sqrt(np.einsum("ij,ij->j", images, images)) * (1.0 - 8 * EPS)
        lost = self.noise * diagonal
        width_sq = diagonal**2 - np.maximum(lengths - lost, 0.0) ** 2
        if self.ones is not None:
            own = _length(self.ones)
            rest = np.abs(1.0 - self.ones @ images) + own * (2.0 * lost) + 8 * EPS * (1.0 + lengths)
            width_sq += (rest / (own * (1.0 - self.noise))) ** 2
        return np.sqrt(np.maximum(width_sq, 0.0) / self.problem.alpha)

    def bounds(self, at: Evaluation, error: Array, rows: NDArray[np.bool_]) -> KernelSet:
        reach = np.full(len(error), math.inf)
        wanted = np.flatnonzero(rows)
        reach[wanted] = self.reach(wanted) + error[wanted]
        name = f"curvature region ({len(self.support)} samples carry it)"
        return KernelSet(clean(Bounds(at.pred - reach, at.pred + reach)), name)


def _solve(factor: Array, right: Array) -> Array:
    return solve_triangular(factor, right, lower=True, check_finite=False)


def _length(u: Array) -> float:
    return float(np.linalg.norm(u)) * (1.0 - 8 * EPS)
