"""The model of all samples at one level, and the space in which others are found from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import EPS, norm, prediction_error, total
from safesift.design.blocks import slices
from safesift.design.centered import centered
from safesift.design.rows import RowDesign, rows_of
from safesift.problem.evaluation import Evaluation
from safesift.problem.problem import Problem
from safesift.problem.risk import SHARE_ERROR
from safesift.regions.whitening import Whitening, whiten
from safesift.solvers import Settings, solve_path

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# the relative gap to which centred columns are solved for
_TOL = 1e-10
# Newton steps that make the gradient as small as it becomes
_POLISHING = 4
# beyond this many columns the matrix of all of them is not made
LARGEST = 5000
# numbers of a block of whitened rows
_BLOCK = 2**19


class Pieces(NamedTuple):
    """The pieces of every sample's loss in rising order; `breaks` are the ends between them."""

    breaks: Array
    quadratic: Array
    linear: Array

    def at(self, pred: Array) -> NDArray[np.int8]:
        """Which piece predictions lie on."""
        return (pred[:, None] > self.breaks).sum(axis=1).astype(np.int8)

    def distance(self, pred: Array, which: NDArray[np.int8]) -> Array:
        """How far predictions are from the ends of these pieces."""
        n, infinite = len(pred), np.full((len(pred), 1), math.inf)
        ends = np.hstack([-infinite, self.breaks, infinite])
        return np.minimum(pred - ends[np.arange(n), which], ends[np.arange(n), which + 1] - pred)

    def of(self, which: NDArray[np.int8]) -> tuple[Array, Array]:
        """Quadratic and linear term of a piece of each sample."""
        rows = np.arange(len(which))
        return self.quadratic[rows, which], self.linear[rows, which]


def smooth_pieces(problem: Problem) -> Pieces | None:
    """The pieces of a loss that has a slope everywhere and is quadratic or linear everywhere."""
    loss, found = problem.loss, problem.pieces
    if math.isinf(loss.smoothness) or loss.precision > 0 or not found:
        return None
    n = problem.design.n_samples
    fields = [
        np.stack([np.broadcast_to(getattr(piece, name), n) for piece in found], axis=1)
        for name in ("lower", "upper", "quadratic", "linear")
    ]
    # of pieces without length, at an infinite end or between two that touch, any order will do
    order = np.lexsort((fields[1], fields[0]), axis=1)
    lower, upper, quadratic, linear = (np.take_along_axis(one, order, axis=1) for one in fields)
    whole = (lower[:, 0] == -math.inf) & (upper[:, -1] == math.inf)
    whole &= _touching(upper[:, :-1], lower[:, 1:]).all(axis=1)
    if not whole.all():
        return None
    nowhere = lower == upper
    quadratic, linear = np.where(nowhere, 0.0, quadratic), np.where(nowhere, 0.0, linear)
    return Pieces(lower[:, 1:].copy(), quadratic, linear)


def _touching(upper: Array, lower: Array) -> NDArray[np.bool_]:
    """Whether nothing lies between an end and the next one but rounding.

    Less than what a prediction near them is known to, `numerics.prediction_error`: a sample in
    between counts as one that may be on either piece.
    """
    with np.errstate(invalid="ignore"):
        near = np.abs(lower - upper) <= 2 * EPS * (np.abs(lower) + 1.0)
    return near | (lower == upper)


@dataclass(frozen=True, eq=False)
class Base:
    """A point, and a basis T in which the objective's matrix there is the identity, nearly.

    Attributes
    ----------
    problem : Problem
    at : Evaluation
        Where the gradient is 0, up to rounding.
    curvature : array of shape (n_samples,)
        Of the samples' losses there.
    white : Whitening
        TᵀHT is within its looseness of the identity, H the exact matrix.
    scales : array of shape (n_columns,)
        How large columns are. Sums are off by a share of Σ|terms|, so that errors are measured in
        columns divided by these: one in large units does not spoil those in small ones.
    means : array of shape (n_features,), or None
        What the columns of the problem are less than those of whoever asks.
    """

    problem: Problem
    at: Evaluation
    curvature: Array
    white: Whitening
    scales: Array
    means: Array | None = None

    @property
    def design(self) -> RowDesign:
        return rows_of(self.problem.design)

    @property
    def basis(self) -> Array:
        return self.white.basis

    @property
    def n_columns(self) -> int:
        return len(self.basis)

    @property
    def looseness(self) -> float:
        """Of T, and of alpha, which is a quotient."""
        return self.white.looseness + 32 * EPS

    @cached_property
    def scaled_size(self) -> float:
        """‖diag(scales)·T‖, or more: ‖Tᵀe‖ is at most that times ‖e/scales‖."""
        return float(np.linalg.norm(self.basis * self.scales[:, None])) * (1.0 + 1e-12)

    @cached_property
    def scaled_norms(self) -> Array:
        """‖a/scales‖, or more, for every row."""
        return self.design.scaled_norms(1.0 / self.scales) * (1.0 + 8 * EPS)

    @cached_property
    def image(self) -> Array:
        """Tᵀg."""
        return self.basis.T @ self.at.subgradient

    @cached_property
    def image_error(self) -> float:
        """‖computed Tᵀg − exact‖, for the exact slopes of the pieces on which samples are taken.

        As `evaluation.rounding_of` has it for g itself, in scaled columns: the sum of the samples'
        pulls, what errors of predictions make of them (twice: on another piece than taken), and
        the few operations on the sums.
        """
        problem, at, loss = self.problem, self.at, self.problem.loss
        shares = problem.shares * self.scaled_norms
        load = total(shares, np.abs(at.nu))
        drift = 2.0 * loss.proved_smoothness * total(shares, self.pred_error)
        point = problem.alpha * at.point * (np.arange(self.n_columns) < self.design.n_features)
        sizes = [norm(one / self.scales) for one in (at.subgradient, at.loss_gradient, point)]
        gradient = (problem.design.sum_error + loss.precision) * load + drift
        # alpha is a quotient of rounded numbers, and so is its shift, which is no larger; what the
        # gradient gains with a shift is a product with T
        gradient += (self.n_columns + 32) * EPS * sum(sizes)
        gradient += problem.risk.rows.underflow / float(self.scales.min())
        return self.scaled_size * gradient * (1.0 + 1e-9)

    @cached_property
    def pred_error(self) -> Array:
        """Of predictions: |a|ᵀ|x| is at most ‖a‖‖x‖, and ‖a/scales‖‖scales·x‖ as well."""
        problem, at = self.problem, self.at
        size = norm(self.scales * at.point)
        sizes = problem.risk.targets.sizes
        scaled = prediction_error(self.design, size, self.scaled_norms, at.pred, sizes)
        scaled += problem.loss.precision * (np.abs(at.pred) + sizes + 1.0)
        return np.minimum(scaled, problem.prediction_error(at))

    @cached_property
    def z_errors(self) -> Array:
        """‖computed Tᵀa − exact‖ for every row."""
        return self.design.dot_error * self.scaled_size * self.scaled_norms

    @cached_property
    def z_norms(self) -> Array:
        """‖Tᵀa‖ or more, for every row, holding no matrix of them all."""
        ones = np.ones(self.n_columns)
        squares = self.design.projected_sq(self.basis, ones)
        return np.sqrt(squares) * (1.0 + (self.n_columns + 8) * EPS) + self.z_errors

    def whitened(self, rows: Rows) -> Array:
        """Tᵀa of some rows, at increasing indices."""
        return self.design.only(rows).matvec(self.basis)

    def blocks(self, n: int, size: int) -> list[slice]:
        """So many groups in blocks whose whitened rows fit into the cache, of some size each."""
        rows = max(_BLOCK // max(self.n_columns, 1), 64)
        return slices(n, rows // max(size, 1))

    @cached_property
    def pull_of_alpha(self) -> Array:
        """Tᵀ of an element of ∂R: what the gradient gains with alpha, no coefficient being 0."""
        coef, _ = self.problem.split(self.at.point)
        return self.basis[: len(coef)].T @ self.problem.penalty.subgradient(coef, 0.0 * coef)

    @property
    def growth(self) -> float:
        """How much looser T becomes with alpha: H ⪰ alpha·κI on the penalised coordinates."""
        return (1.0 + self.looseness) / self.problem.alpha * (1.0 + 1e-9)

    def points(self, moves: Array) -> Array:
        """Models that differ from the base by Tv, as rows, for columns as they came."""
        found: Array = self.at.point + moves @ self.basis.T
        if self.means is not None:
            found[:, -1] -= found[:, :-1] @ self.means
        return found

    @property
    def share_error(self) -> float:
        return SHARE_ERROR + 8 * EPS


def centered_base_at(problem: Problem, point: Array, steps: int = _POLISHING) -> Base | None:
    """The base at an optimum that is known roughly; columns far from zero are centred.

    The intercept absorbs that exactly: it is not penalised.
    """
    design = centered(problem.design)
    if design is None:
        return base_at(problem, point, steps)
    shifted = np.append(point[:-1], point[-1] + design.means @ point[:-1])
    moved = replace(problem, risk=problem.risk.on(design))
    # what is lost of the columns is lost of the point, too
    ((fit,),) = solve_path([[moved]], Settings(_TOL, decided=()), [shifted])
    base = base_at(moved, fit.at.point, steps)
    return None if base is None else replace(base, means=design.means)


def base_at(problem: Problem, point: Array, steps: int = _POLISHING) -> Base | None:
    """The base at an optimum that is known roughly, None where the matrix is too ill-posed.

    After at most so many looks, each with a matrix of its own where pieces change, and a step of
    Newton's from one to the next.
    """
    at = problem.evaluate(point)
    best: Base | None = None
    for _ in range(steps):
        found = _at(problem, at, best)
        if found is None:
            return best
        if best is not None and not norm(found.image) < 0.5 * norm(best.image):
            return found if norm(found.image) < norm(best.image) else best
        best = found
        if norm(best.image) <= 0.1 * best.image_error:
            return best
        at = problem.evaluate(at.point - best.basis @ best.image)
    return best


def _at(problem: Problem, at: Evaluation, before: Base | None) -> Base | None:
    curvature = problem.loss.curvature(at.pred, problem.y)
    pieces = smooth_pieces(problem)
    if pieces is not None:
        curvature = pieces.of(pieces.at(at.pred))[0]
    if before is not None and (curvature == before.curvature).all():
        return Base(problem, at, curvature, before.white, before.scales)
    design = rows_of(problem.design)
    matrix = design.gram(problem.shares * curvature)
    spread_sq = np.diag(matrix).copy()
    p = design.n_features
    ridge = problem.strong_convexity
    matrix[np.arange(p), np.arange(p)] += ridge
    spread_sq[:p] += ridge
    scales = np.sqrt(spread_sq)
    white = whiten(matrix, scales, problem.hessian_error(design.gram_error))
    return None if white is None else Base(problem, at, curvature, white, scales)
