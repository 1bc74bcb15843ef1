"""The same formulas in exact arithmetic: what floating point is measured against.

Fractions where a loss is piecewise linear-quadratic, 80 digits where it has logarithms. Additions
to the library are looked up in `definitions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from safesift import losses, penalties
from safesift.problem.problem import Problem
from tests.laws.definitions import loss_definition, penalty_definition
from tests.laws.reference import dense_rows

_CONTEXT = Context(prec=80, Emin=-999999, Emax=999999)
ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)


# --- numbers ------------------------------------------------------------------------------------


def fractions(values) -> list[Fraction]:
    """Floats as fractions, without any rounding."""
    return [Fraction(float(value)) for value in np.ravel(values)]


def dot(u: list[Fraction], v: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(u, v, strict=True)), ZERO)


def norm(u: list[Fraction]) -> Fraction:
    """‖u‖₂ to 80 digits."""
    return _from_decimal(_CONTEXT.sqrt(_decimal(dot(u, u))))


def _decimal(x: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


def _from_decimal(x: Decimal) -> Fraction:
    return Fraction(x)


def exp(x: Fraction) -> Fraction:
    # below e^-5000 nothing is left of it in float64, and its fraction would be huge
    return ZERO if x < -5000 else _from_decimal(_CONTEXT.exp(_decimal(x)))


def log(x: Fraction) -> Fraction:
    return _from_decimal(_CONTEXT.ln(_decimal(x)))


def log1p(x: Fraction) -> Fraction:
    return x - x * x / 2 if abs(x) < Fraction(1, 10**41) else log(1 + x)


def _x_log(x: Fraction, log_x: Callable[[], Fraction]) -> Fraction:
    return x * log_x() if x else ZERO


# --- losses -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExactLoss:
    """φ, φ', φ'' and φ* as functions of a margin or residual; None is +inf."""

    value: Callable[[Fraction], Fraction]
    slope: Callable[[Fraction], Fraction]
    curvature: Callable[[Fraction], Fraction]
    conjugate: Callable[[Fraction], Fraction | None]


def _positive(x: Fraction) -> Fraction:
    return max(x, ZERO)


def _sign(x: Fraction) -> int:
    return (x > 0) - (x < 0)


def _hinge(edge: Fraction) -> ExactLoss:
    return ExactLoss(
        value=lambda m: _positive(edge - m),
        slope=lambda m: -ONE if m < edge else ZERO,
        curvature=lambda m: ZERO,
        conjugate=lambda u: u * edge if -1 <= u <= 0 else None,
    )


def _squared_hinge(edge: Fraction) -> ExactLoss:
    return ExactLoss(
        value=lambda m: _positive(edge - m) ** 2 / 2,
        slope=lambda m: -_positive(edge - m),
        curvature=lambda m: ONE if m < edge else ZERO,
        conjugate=lambda u: u * edge + u * u / 2 if u <= 0 else None,
    )


def _smoothed_hinge(edge: Fraction, width: Fraction) -> ExactLoss:
    return ExactLoss(
        value=lambda m: _envelope(_positive(edge - m), width),
        slope=lambda m: -min(_positive(edge - m) / width, ONE),
        curvature=lambda m: ONE / width if edge - width < m < edge else ZERO,
        conjugate=lambda u: u * edge + width * u * u / 2 if -1 <= u <= 0 else None,
    )


def _smoothed_insensitive(epsilon: Fraction, width: Fraction) -> ExactLoss:
    return ExactLoss(
        value=lambda r: _envelope(_positive(abs(r) - epsilon), width),
        slope=lambda r: _sign(r) * min(_positive(abs(r) - epsilon) / width, ONE),
        curvature=lambda r: ONE / width if epsilon < abs(r) < epsilon + width else ZERO,
        conjugate=lambda u: epsilon * abs(u) + width * u * u / 2 if abs(u) <= 1 else None,
    )


def _envelope(excess: Fraction, width: Fraction) -> Fraction:
    """The Moreau envelope of the identity on [0, ∞)."""
    return excess * excess / (2 * width) if excess <= width else excess - width / 2


def _logistic() -> ExactLoss:
    def conjugate(u: Fraction) -> Fraction | None:
        v = -u
        if not 0 <= v <= 1:
            return None
        rest = _x_log(1 - v, lambda: log1p(-v) if v < HALF else log(1 - v))
        return rest + _x_log(v, lambda: log1p(v - 1) if v > HALF else log(v))

    def sigmoid(m: Fraction) -> Fraction:
        return 1 / (1 + exp(-m)) if m > 0 else exp(m) / (1 + exp(m))

    return ExactLoss(
        value=lambda m: _positive(-m) + log1p(exp(-abs(m))),
        slope=lambda m: -sigmoid(-m),
        curvature=lambda m: sigmoid(m) * sigmoid(-m),
        conjugate=conjugate,
    )


def _safe_logistic(mu: Fraction) -> ExactLoss:
    def depth(m: Fraction) -> Fraction:
        return min(m + mu - 1, ZERO)

    def conjugate(u: Fraction) -> Fraction | None:
        v = -u
        if not 0 <= v <= 1:
            return None
        return _x_log(1 - v, lambda: log1p(-v) if v < HALF else log(1 - v)) + mu * v

    return ExactLoss(
        value=lambda m: _exp_minus_tangent(depth(m)),
        slope=lambda m: _expm1(depth(m)),
        curvature=lambda m: exp(depth(m)) if depth(m) < 0 else ZERO,
        conjugate=conjugate,
    )


def _expm1(z: Fraction) -> Fraction:
    return z + z * z / 2 if abs(z) < Fraction(1, 10**41) else exp(z) - 1


def _exp_minus_tangent(z: Fraction) -> Fraction:
    """e^z − 1 − z, which loses two thirds of its 80 digits at most."""
    return z * z / 2 + z**3 / 6 if abs(z) < Fraction(1, 10**26) else exp(z) - 1 - z


def _squared() -> ExactLoss:
    return ExactLoss(
        value=lambda r: r * r / 2,
        slope=lambda r: r,
        curvature=lambda r: ONE,
        conjugate=lambda u: u * u / 2,
    )


def _huber(delta: Fraction) -> ExactLoss:
    return ExactLoss(
        value=lambda r: r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2),
        slope=lambda r: max(min(r, delta), -delta),
        curvature=lambda r: ONE if abs(r) < delta else ZERO,
        conjugate=lambda u: u * u / 2 if abs(u) <= delta else None,
    )


def _insensitive(epsilon: Fraction) -> ExactLoss:
    return ExactLoss(
        value=lambda r: _positive(abs(r) - epsilon),
        slope=lambda r: Fraction(_sign(r)) if abs(r) > epsilon else ZERO,
        curvature=lambda r: ZERO,
        conjugate=lambda u: epsilon * abs(u) if abs(u) <= 1 else None,
    )


def _squared_insensitive(epsilon: Fraction) -> ExactLoss:
    return ExactLoss(
        value=lambda r: _positive(abs(r) - epsilon) ** 2 / 2,
        slope=lambda r: _sign(r) * _positive(abs(r) - epsilon),
        curvature=lambda r: ONE if abs(r) > epsilon else ZERO,
        conjugate=lambda u: u * u / 2 + epsilon * abs(u),
    )


def exact_loss(loss: losses.Loss, row: int) -> ExactLoss:
    """φ of one sample."""
    match loss:
        case losses.Hinge():
            return _hinge(1 - Fraction(float(loss.mu)))
        case losses.SquaredHinge():
            return _squared_hinge(1 - Fraction(float(loss.mu)))
        case losses.SmoothedHinge():
            return _smoothed_hinge(1 - Fraction(float(loss.mu)), Fraction(float(loss.width)))
        case losses.SmoothedEpsilonInsensitive():
            return _smoothed_insensitive(
                _per_sample(loss.epsilon, row), Fraction(float(loss.width))
            )
        case losses.Logistic():
            return _logistic()
        case losses.SafeLogistic():
            return _safe_logistic(Fraction(float(loss.mu)))
        case losses.Squared():
            return _squared()
        case losses.Huber():
            return _huber(Fraction(float(loss.delta)))
        case losses.EpsilonInsensitive():
            return _insensitive(_per_sample(loss.epsilon, row))
        case losses.SquaredEpsilonInsensitive():
            return _squared_insensitive(_per_sample(loss.epsilon, row))
        # of the signed distance to the interval
        case losses.SquaredInterval():
            return _squared_insensitive(ZERO)
        case losses.AbsoluteInterval():
            return _insensitive(ZERO)
        case losses.SmoothedInterval():
            return _smoothed_insensitive(ZERO, Fraction(float(loss.width)))
    return loss_definition(loss).exact(loss)


def _per_sample(parameter, row: int) -> Fraction:
    return Fraction(float(parameter[row] if np.ndim(parameter) else parameter))


@dataclass(frozen=True)
class Interval:
    """An exact interval; None is an infinite end."""

    low: Fraction | None
    high: Fraction | None

    def excess(self, pred: Fraction) -> Fraction:
        """Signed distance of a prediction."""
        if self.high is not None and pred > self.high:
            return pred - self.high
        return pred - self.low if self.low is not None and pred < self.low else ZERO

    def support(self, nu: Fraction) -> Fraction | None:
        """The largest b·ν over the interval, None where it is +inf."""
        end = self.high if nu > 0 else self.low
        return ZERO if nu == 0 else None if end is None else nu * end


Target = Fraction | Interval


def target(y) -> Target:
    """A target as it stands in y: a number, or a row of two ends."""
    if np.ndim(y) == 0:
        return Fraction(float(y))
    return Interval(*(Fraction(float(end)) if np.isfinite(end) else None for end in y))


def value(loss: losses.Loss, row: int, pred: Fraction, y: Target) -> Fraction:
    """f(pred; y)."""
    return exact_loss(loss, row).value(_argument(loss, pred, y))


def slope(loss: losses.Loss, row: int, pred: Fraction, y: Target) -> Fraction:
    """The derivative of f(·; y), or a subgradient at a kink."""
    phi = exact_loss(loss, row).slope(_argument(loss, pred, y))
    return y * phi if loss.task == "classification" else phi


def curvature(loss: losses.Loss, row: int, pred: Fraction, y: Target) -> Fraction:
    return exact_loss(loss, row).curvature(_argument(loss, pred, y))


def conjugate(loss: losses.Loss, row: int, nu: Fraction, y: Target) -> Fraction | None:
    """f*(ν; y), None where it is +inf."""
    phi = exact_loss(loss, row)
    if loss.task == "classification":
        return phi.conjugate(y * nu)
    inside = phi.conjugate(nu)
    support = y.support(nu) if isinstance(y, Interval) else nu * y
    return None if inside is None or support is None else inside + support


def _argument(loss: losses.Loss, pred: Fraction, y: Target) -> Fraction:
    if isinstance(y, Interval):
        return y.excess(pred)
    return y * pred if loss.task == "classification" else pred - y


# --- problems -----------------------------------------------------------------------------------


def penalty_value(penalty: penalties.Penalty, coef: list[Fraction]) -> Fraction:
    """R(coef) at a feasible point."""
    l1, l2 = sum(map(abs, coef), ZERO), dot(coef, coef) / 2
    match penalty:
        case penalties.L2():
            return l2
        case penalties.L1():
            return l1
        case penalties.ElasticNet():
            share = Fraction(float(penalty.l1_ratio))
            return share * l1 + (1 - share) * l2
        case penalties.L2Ball() | penalties.L1Ball():
            return ZERO
    return penalty_definition(penalty).exact(penalty, coef)


class ExactProblem:
    """A problem whose data are the floats of another one, evaluated without rounding.

    The shares s_i/W are exact: W is the exact sum of the weights unless rows were left out.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rows = [fractions(row) for row in dense_rows(problem)]
        self.y = [target(y) for y in problem.y]
        weights = fractions(problem.weights)
        whole = problem.folded is None and float(problem.weights.sum()) == problem.divisor
        total = sum(weights, ZERO) if whole else Fraction(problem.divisor)
        self.shares = [weight / total for weight in weights]
        self.alpha = Fraction(float(problem.alpha))
        self.folded_q = fractions(problem.q)
        self.folded_r = Fraction(problem.r)
        d = problem.design.n_columns
        Q = np.zeros((d, d)) if problem.Q is None else problem.Q
        self.folded_Q = [fractions(row) for row in Q]

    def predictions(self, point: list[Fraction]) -> list[Fraction]:
        return [dot(row, point) for row in self.rows]

    def mean_loss(self, point: list[Fraction]) -> Fraction:
        terms = (
            share * value(self.problem.loss, i, pred, self.y[i])
            for i, (share, pred) in enumerate(
                zip(self.shares, self.predictions(point), strict=True)
            )
            if share
        )
        return sum(terms, ZERO)

    def objective(self, point: list[Fraction]) -> Fraction:
        """P(point)."""
        folded = dot(point, self.curved(point)) / 2 + dot(self.folded_q, point) + self.folded_r
        coef = point[: self.problem.design.n_features]
        penalty = self.alpha * penalty_value(self.problem.penalty, coef)
        return self.mean_loss(point) + folded + penalty

    def curved(self, point: list[Fraction]) -> list[Fraction]:
        """Q @ point."""
        return [dot(row, point) for row in self.folded_Q]

    def smooth_gradient(self, point: list[Fraction]) -> list[Fraction]:
        """The gradient of mean loss and folded part."""
        slopes = [
            share * slope(self.problem.loss, i, pred, self.y[i]) if share else ZERO
            for i, (share, pred) in enumerate(
                zip(self.shares, self.predictions(point), strict=True)
            )
        ]
        pulled = self.transpose(slopes)
        return [
            a + b + c for a, b, c in zip(pulled, self.curved(point), self.folded_q, strict=True)
        ]

    def transpose(self, u: list[Fraction]) -> list[Fraction]:
        """Aᵀu."""
        return [
            sum((row[j] * u[i] for i, row in enumerate(self.rows)), ZERO)
            for j in range(self.problem.design.n_columns)
        ]

    def minimiser(self, max_steps: int = 40) -> list[Fraction] | None:
        """The exact optimum for an l2 penalty, by Newton steps that end on the right pieces.

        None where they do not end: at a kink, or where the Hessian is singular.
        """
        point = [ZERO] * self.problem.design.n_columns
        for _ in range(max_steps):
            gradient = self._l2_gradient(point)
            if not any(gradient):
                return point
            step = solve(self._l2_hessian(point), gradient)
            if step is None:
                return None
            point = [a - b for a, b in zip(point, step, strict=True)]
        return None

    def _l2_gradient(self, point: list[Fraction]) -> list[Fraction]:
        gradient = self.smooth_gradient(point)
        for j in range(self.problem.design.n_features):
            gradient[j] += self.alpha * point[j]
        return gradient

    def _l2_hessian(self, point: list[Fraction]) -> list[list[Fraction]]:
        matrix = [list(row) for row in self.folded_Q]
        for i, pred in enumerate(self.predictions(point)):
            weight = self.shares[i] * curvature(self.problem.loss, i, pred, self.y[i])
            for j, a in enumerate(self.rows[i]):
                for k, b in enumerate(self.rows[i]):
                    matrix[j][k] += weight * a * b
        for j in range(self.problem.design.n_features):
            matrix[j][j] += self.alpha
        return matrix


def solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """Gauss elimination; None for a singular matrix."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    d = len(rows)
    for j in range(d):
        pivot = next((i for i in range(j, d) if rows[i][j]), None)
        if pivot is None:
            return None
        rows[j], rows[pivot] = rows[pivot], rows[j]
        for i in range(d):
            if i != j and rows[i][j]:
                factor = rows[i][j] / rows[j][j]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[j], strict=True)]
    return [rows[j][d] / rows[j][j] for j in range(d)]
