"""`make_safe` and `infimum_convolution`: f_μ = (f* + μΩ)*."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from safesift.losses import LOSSES, Logistic, Loss
from safesift.losses.closed_forms import closed_form
from safesift.losses.numeric import numeric_version
from safesift.losses.omegas import OMEGAS, CustomOmega, Entropy, Omega
from safesift.parameters import require_non_negative
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
    known = closed_form(loss, omega, float(mu))
    if known is not None:
        return known
    if loss.task == "interval":
        raise ValueError(
            f"{loss!r} with omega={type(omega).__name__}: interval losses are flat already and "
            "have a closed form with 'quadratic' only; for 'l1', widen the intervals by mu instead."
        )
    return _checked(numeric_version(loss).convolved(omega, float(mu)))


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
        raise ValueError(f"{_no_flat_region(loss, omega, mu)}")
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


def _checked(loss: Loss) -> Loss:
    """The same loss, with its table made: f* + μΩ may turn out not to be convex."""
    _ = loss.flat
    return loss


def _no_flat_region(loss: Loss, omega: Omega, mu: float) -> str:
    name = type(omega).__name__
    if mu == 0:
        return f"mu=0 leaves {loss!r} as it is, without a flat region: give a positive mu."
    if isinstance(loss, Logistic) or _minimum_at_infinity(loss):
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
