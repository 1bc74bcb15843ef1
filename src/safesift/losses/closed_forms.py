"""Infimum convolutions that are losses of the library, recognised by their conjugates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from safesift import losses
from safesift.losses import Loss
from safesift.losses.omegas import L1, Entropy, NonpositiveL1, Omega, Quadratic


def closed_form(loss: Loss, omega: Omega, mu: float) -> Loss | None:
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
            return _scaled(_l1(inner, mu), factor)
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
            return _scaled(_quadratic(inner, mu * factor), factor)
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


def _scaled(loss: Loss | None, factor: float) -> Loss | None:
    if loss is None or factor == 1.0:
        return loss
    return losses.Scaled(loss, factor)
