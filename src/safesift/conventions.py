"""How the C of scikit-learn's estimators and the alpha of ours belong together."""

from __future__ import annotations

from safesift.losses import (
    LOSSES,
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Loss,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from safesift.parameters import check_positive
from safesift.registry import resolve

# how many times a loss of ours goes into the one that C multiplies there: squares lack the ½
_TIMES: dict[type[Loss], float] = {
    Hinge: 1.0,
    SquaredHinge: 2.0,
    Logistic: 1.0,
    EpsilonInsensitive: 1.0,
    SquaredEpsilonInsensitive: 2.0,
    Squared: 2.0,
}


def alpha_from_C(C: float, n_samples: float, loss: str | Loss = "squared_hinge") -> float:
    """The alpha under which a model here is that of an estimator of scikit-learn with its C.

    There, penalty + C·Σ s_i·loss_i is minimised; here, alpha·penalty + (1/W) Σ s_i·loss_i with
    W = Σ s_i. Squared losses have a factor ½ here and none there. So alpha = 1/(k·W·C) with

    =================================  ==============================================  ===
    loss                               estimators with a C                             k
    =================================  ==============================================  ===
    "hinge"                            LinearSVC(loss="hinge"), SVC                    1
    "squared_hinge"                    LinearSVC                                       2
    "logistic"                         LogisticRegression                              1
    "epsilon_insensitive"              LinearSVR, SVR                                  1
    "squared_epsilon_insensitive"      LinearSVR(loss="squared_epsilon_insensitive")   2
    "squared"                          Ridge, with C = 1/(2·its alpha)                 2
    =================================  ==============================================  ===

    under l2 and l1 alike. LinearSVC and LinearSVR penalise their intercept, which is done nowhere
    here: compare without one.

    Parameters
    ----------
    C : float
    n_samples : float
        W: the number of samples, or the sum of their weights where there are any (those of
        classes included).
    loss : str or Loss, default="squared_hinge"
        A name of the table, or an object with its parameters.

    Returns
    -------
    float

    Examples
    --------
    >>> import safesift as ss
    >>> ss.alpha_from_C(1.0, n_samples=500)
    0.001
    >>> ss.C_from_alpha(1e-3, n_samples=500, loss="logistic")
    2.0
    """
    return _other(check_positive("C", C), n_samples, loss)


def C_from_alpha(alpha: float, n_samples: float, loss: str | Loss = "squared_hinge") -> float:
    """The C of scikit-learn's estimators that an alpha is, the other way round.

    Parameters
    ----------
    alpha : float
    n_samples : float
        W: the number of samples, or the sum of their weights.
    loss : str or Loss, default="squared_hinge"
        As for `alpha_from_C`, where the table is.

    Returns
    -------
    float
    """
    return _other(check_positive("alpha", alpha), n_samples, loss)


def _other(strength: float, n_samples: float, loss: str | Loss) -> float:
    """1/(k·W·strength): the two are each other's in the same way."""
    found = resolve("loss", loss, LOSSES, Loss)
    times = _TIMES.get(type(found))
    if times is None:
        known = ", ".join(name for name, kind in LOSSES.items() if kind in _TIMES)
        raise ValueError(
            f"loss={loss!r} belongs to no estimator of scikit-learn that has a C: use one of "
            f"{known}."
        )
    return 1.0 / (times * check_positive("n_samples", n_samples) * strength)
