"""Infimum convolutions: f_μ = (f* + μΩ)* of a loss, and of the indicator of a set.

Recognised where it is a loss of the library, which its conjugate tells; numeric otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from safesift import losses
from safesift.losses import LOSSES, Loss
from safesift.losses.numeric import numeric_version
from safesift.losses.omegas import (
    L1,
    OMEGAS,
    CustomOmega,
    Entropy,
    NonpositiveL1,
    Omega,
    Quadratic,
)
from safesift.parameters import require_non_negative, require_positive
from safesift.registry import resolve

Array = NDArray[np.float64]


def infimum_convolution(
    loss: str | Loss, omega: str | Omega | Callable = "l1", mu: float = 0.5
) -> Loss:
    """f_μ = (f* + μΩ)* = inf_z f(z) + (μΩ)*(· − z), a loss like any other.

    Recognised where it is a loss of the library, numeric otherwise (`losses.from_function`). The
    two forms agree where f* + μΩ is convex and closed (Fenchel–Moreau), which is checked on a
    table.

    Parameters
    ----------
    loss : str or Loss
        A name, an object, or `losses.from_function(...)`.
    omega : str, Omega or callable, default="l1"
        A name of `losses.omegas.OMEGAS`, an object, or a Python function: see `CustomOmega`.
    mu : float, default=0.5
        Weight of Ω; inside of it for `omega="entropy"`. 0 returns the loss itself (but for
        "entropy").

    Returns
    -------
    Loss

    Examples
    --------
    The Huber loss of the paper, from |t| and ½t²:

    >>> import safesift as ss
    >>> absolute = ss.losses.EpsilonInsensitive(epsilon=0.0)
    >>> ss.infimum_convolution(absolute, "quadratic", mu=0.5)
    SmoothedEpsilonInsensitive(epsilon=0.0, width=0.5)
    """
    loss = resolve_loss(loss)
    omega = resolve_omega(omega)
    require_non_negative("mu", mu)
    if mu == 0 and not isinstance(omega, Entropy):
        return loss
    known = _closed_form(loss, omega, float(mu))
    if known is not None:
        return known
    if loss.task == "interval":
        raise ValueError(
            f"{loss!r} with omega={type(omega).__name__}: interval losses are flat already and "
            "have a closed form with 'quadratic' only; for 'l1', widen the intervals by mu instead."
        )
    convolved = numeric_version(loss).convolved(omega, float(mu))
    # makes its table: f* + μΩ may turn out not to be convex
    _ = convolved.flat
    return convolved


def make_safe(loss: str | Loss, omega: str | Omega | Callable = "l1", mu: float = 0.5) -> Loss:
    """Give a loss a flat region, so that its dual is sparse and samples can be dropped.

    `infimum_convolution` that demands a flat region. Do not screen for the original problem with
    the safe one: they have different optima.

    Parameters
    ----------
    loss : str or Loss
        A name, an object, or `losses.from_function(...)`.
    omega : str, Omega or callable, default="l1"
        A name of `losses.omegas.OMEGAS`, an object, or a Python function: see `CustomOmega`.
    mu : float, default=0.5
        Weight of Ω; inside of it for `omega="entropy"`. The larger, the more samples can be
        dropped.

    Returns
    -------
    Loss

    Examples
    --------
    >>> import safesift as ss
    >>> ss.make_safe(ss.losses.Squared(), omega="l1", mu=0.5)
    SquaredEpsilonInsensitive(epsilon=0.5)
    >>> ss.make_safe("logistic", omega="entropy", mu=0.5)
    SafeLogistic(mu=0.5)
    """
    loss, omega = resolve_loss(loss), resolve_omega(omega)
    safe = infimum_convolution(loss, omega, mu)
    if flat_interval(safe) is None:
        raise ValueError(_no_flat_region(loss, omega, mu))
    return safe


def flat_interval(loss: Loss) -> tuple[float, float] | None:
    """Where the loss is flat: an interval of margins (y = 1), of residuals (y = 0), or of
    predictions for the interval [−1, 1]; None where it is not.
    """
    y = {"classification": [1.0], "regression": [0.0], "interval": [[-1.0, 1.0]]}[loss.task]
    for piece in loss.take(slice(0, 1)).pieces(np.array(y)):
        low, high = float(np.ravel(piece.lower)[0]), float(np.ravel(piece.upper)[0])
        if piece.is_flat and low < high:
            return low, high
    return None


def resolve_loss(loss: str | Loss) -> Loss:
    """A loss from a name or an object."""
    if callable(loss) and not isinstance(loss, type):
        raise TypeError(
            "loss is a plain function: wrap it, losses.from_function(function, task='regression') "
            "or task='classification'."
        )
    return resolve("loss", loss, LOSSES, Loss)


def resolve_omega(omega: str | Omega | Callable) -> Omega:
    """An Ω from a name, an object or a function."""
    if callable(omega) and not isinstance(omega, type):
        return CustomOmega(omega)
    return resolve("omega", omega, OMEGAS, Omega)


def _no_flat_region(loss: Loss, omega: Omega, mu: float) -> str:
    name = type(omega).__name__
    if mu == 0:
        return f"mu=0 leaves {loss!r} as it is, without a flat region: give a positive mu."
    if isinstance(loss, losses.Logistic) or _minimum_at_infinity(loss):
        return (
            f"{loss!r} with omega={name} has no flat region: the loss has no minimum, so the "
            "gradient of its conjugate is unbounded at 0 and a bounded slope of Ω there changes "
            "nothing; use omega='entropy', whose slope is unbounded too."
        )
    return (
        f"{loss!r} with omega={name} has no flat region: Ω has no kink at 0; use an omega that "
        "has one, such as 'l1'."
    )


def _minimum_at_infinity(loss: Loss) -> bool:
    numeric = numeric_version(loss)
    return any(math.isinf(end) for end in numeric.phi.graph.minimum)


# --- those with a name ---------------------------------------------------------------------------


def _closed_form(loss: Loss, omega: Omega, mu: float) -> Loss | None:
    """(f* + μΩ)* where it has a name, None where it does not.

    Each line adds μΩ to the conjugate of a loss, which is

        ½u² (squared), u·edge (hinge), u·edge + ½u² (squared hinge), u·edge + ½w·u² (smoothed),
        ε|u| (+ ½u² or + ½w·u²) for the insensitive losses,

    and reads off the loss that the sum belongs to.
    """
    match omega:
        case L1():
            return _l1(loss, mu)
        case Quadratic():
            return _quadratic(loss, mu)
        case NonpositiveL1():
            return _nonpositive_l1(loss, mu)
        case Entropy() if isinstance(loss, losses.Logistic):
            return losses.SafeLogistic(mu)
    return None


def _l1(loss: Loss, mu: float) -> Loss | None:
    match loss:
        case losses.Squared():
            return losses.SquaredEpsilonInsensitive(mu)
        case losses.Huber(delta=delta):
            return _smoothed_insensitive(mu, delta, delta)
        case (
            losses.EpsilonInsensitive()
            | losses.SmoothedEpsilonInsensitive()
            | losses.SquaredEpsilonInsensitive()
        ):
            epsilon = loss.epsilon if np.ndim(loss.epsilon) == 0 else np.asarray(loss.epsilon)
            return replace(loss, epsilon=epsilon + mu)
        case (
            losses.Hinge() | losses.SquaredHinge() | losses.SmoothedHinge() | losses.SafeLogistic()
        ):
            return replace(loss, mu=loss.mu + mu)
        case losses.Scaled(loss=inner, factor=factor):
            known = _l1(inner, mu)
            return None if known is None else _scaled(known, factor)
    return None


def _quadratic(loss: Loss, mu: float) -> Loss | None:
    match loss:
        case (
            losses.Squared()
            | losses.SquaredEpsilonInsensitive()
            | losses.SquaredHinge()
            | losses.SquaredMargin()
            | losses.SquaredInterval()
        ):
            return losses.Scaled(loss, 1.0 / (1.0 + mu))
        case losses.Huber(delta=delta):
            return _smoothed_insensitive(0.0, delta * (1.0 + mu), delta)
        case losses.EpsilonInsensitive(epsilon=epsilon):
            return losses.SmoothedEpsilonInsensitive(epsilon, mu)
        case losses.Hinge(mu=threshold):
            return losses.SmoothedHinge(threshold, mu)
        case losses.AbsoluteInterval():
            return losses.SmoothedInterval(mu)
        case (
            losses.SmoothedEpsilonInsensitive() | losses.SmoothedHinge() | losses.SmoothedInterval()
        ):
            return replace(loss, width=loss.width + mu)
        case losses.Scaled(loss=inner, factor=factor):
            known = _quadratic(inner, mu * factor)
            return None if known is None else _scaled(known, factor)
    return None


def _nonpositive_l1(loss: Loss, mu: float) -> Loss | None:
    match loss:
        case losses.AbsoluteMargin():
            return losses.Hinge(mu)
        case losses.SquaredMargin():
            return losses.SquaredHinge(mu)
        case (
            losses.Hinge() | losses.SquaredHinge() | losses.SmoothedHinge() | losses.SafeLogistic()
        ):
            return _l1(loss, mu)  # their conjugates live on u ≤ 0 as it is
    return None


def _smoothed_insensitive(epsilon: float, width: float, factor: float) -> Loss:
    return _scaled(losses.SmoothedEpsilonInsensitive(epsilon, width), factor)


def _scaled(loss: Loss, factor: float) -> Loss:
    return loss if factor == 1.0 else losses.Scaled(loss, factor)


# --- of a set ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SetDistance:
    """f_μ(t) = dist(t, C)²/(2μ): the indicator of a closed convex C ⊂ R^d convolved with ½‖·‖².

    The paper calls it the Euclidean distance; it is half the *squared* distance over μ. Its
    gradient (t − P_C(t))/μ is Lipschitz with constant 1/μ, its conjugate is σ_C(u) + ½μ‖u‖² with
    σ_C the support function, and it is flat exactly on C.

    Parameters
    ----------
    projection : callable
        P_C, from an array of shape (..., d) to one of the same shape.
    support : callable, optional
        σ_C(u) = sup_{z ∈ C} uᵀz, from shape (..., d) to (...), infinite where it is.
    mu : float, default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> box = ss.SetDistance(lambda t: np.clip(t, -1.0, 1.0))
    >>> float(box.value([4.0, 5.0])), float(box.distance([4.0, 5.0]))
    (12.5, 5.0)
    """

    projection: Callable[[Array], Array]
    support: Callable[[Array], Array] | None = None
    mu: float = 1.0

    def __post_init__(self) -> None:
        require_positive("mu", self.mu)

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient."""
        return 1.0 / self.mu

    def distance(self, t: ArrayLike) -> Array:
        """dist(t, C)."""
        return np.linalg.norm(self._rest(t), axis=-1)

    def value(self, t: ArrayLike) -> Array:
        """dist(t, C)²/(2μ)."""
        return np.square(self._rest(t)).sum(axis=-1) / (2.0 * self.mu)

    def gradient(self, t: ArrayLike) -> Array:
        """(t − P_C(t))/μ."""
        return self._rest(t) / self.mu

    def conjugate(self, u: ArrayLike) -> Array:
        """σ_C(u) + ½μ‖u‖²; needs the support function."""
        if self.support is None:
            raise ValueError("support is needed for the conjugate: pass the support function of C.")
        u = np.asarray(u, dtype=np.float64)
        inside = np.asarray(self.support(u), dtype=np.float64)
        curved = 0.5 * self.mu * np.square(u).sum(axis=-1)
        return np.where(np.isposinf(inside), math.inf, inside + curved)

    def _rest(self, t: ArrayLike) -> Array:
        t = np.asarray(t, dtype=np.float64)
        return t - self.projection(t)
