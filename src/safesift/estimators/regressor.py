"""Linear regression, certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from safesift.arithmetic.threads import computes
from safesift.estimators.linear import LinearModel, Samples, returned_for
from safesift.losses import Loss
from safesift.penalties import Penalty
from safesift.problem.inputs import check_weights
from safesift.regions import Region

Array = NDArray[np.float64]


class Regression(RegressorMixin, LinearModel):
    """What the regressors share."""

    _task = "regression"

    if TYPE_CHECKING:
        # a parameter of the subclasses
        epsilon: ArrayLike

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        X, y, sample_weight = self._moved(X, y, sample_weight)
        X, y = self._validated(X, y, reset=True, y_numeric=True)
        return self._samples(X, y, check_weights(sample_weight, len(y)))

    def _samples(self, X: Any, y: Array, weights: Array) -> Samples:
        """Validated arrays."""
        return Samples(X, y, weights, weights)

    def _with_parameters(self, loss: Loss) -> Loss:
        kind: Callable[..., Loss] = type(loss)
        return kind(epsilon=self.epsilon) if hasattr(loss, "epsilon") else loss

    @computes
    def predict(self, X: Any) -> Array:
        """Predictions.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return returned_for(X, self._predictions(X))


class SafeRegressor(Regression):
    """Linear regression, robust or insensitive, with a certified duality gap.

    Minimises (1/W) Σ s_i f(a_iᵀx + c − y_i) + alpha·R(x), W = Σ s_i. The intercept c is not
    penalised. Samples that are proved to be on one piece of their loss at every optimum are left
    out or folded away as the solver goes; the gap is measured on all samples.

    Parameters
    ----------
    loss : str or Loss, default="squared_epsilon_insensitive"
        "squared_epsilon_insensitive" (½[|r| − ε]₊²), "epsilon_insensitive" ([|r| − ε]₊),
        "smoothed_epsilon_insensitive", "squared" (½r²), "huber", or an object of
        `safesift.losses` with its parameters.
    epsilon : float or array of shape (n_samples,), default=0.1
        Half-width of the tube without loss, of a loss given by its name that has one.
    penalty : str or Penalty, default="l2"
        "l2" (½‖x‖₂²), "l1", "elastic_net", "l2_ball", "l1_ball", or an object such as
        ``safesift.penalties.L2Ball(radius=2.0)``.
    alpha : float, default=1e-4
        Weight of the penalty, next to the mean loss; of no effect on a ball.
    l1_ratio : float in [0, 1), optional
        Share of the l1 norm in penalty="elastic_net", 0.5 by default; None with any other.
    fit_intercept : bool, default=True
    tol : float, default=1e-6
        Relative duality gap to reach: relative to the objective of the best constant model.
    max_iter : int, default=1000
        The largest number of steps.
    screening : "auto", None, str or Region, default="auto"
        "auto": whatever is fastest; a region, by name or as an object: rows are left out where it
        decides them; None: every step reads every row. The solution is the same.
    solver : str, default="auto"
        A name of `safesift.solvers.SOLVERS`, or "auto": the one that is estimated to be the
        fastest. One that does not suit the problem is refused with the reason.
    warm_start : bool, default=False
        Start from the last solution, as in a loop over alphas.
    device : str, optional
        Where to compute, as "cuda": rows are moved there, as a whole if they fit, else block by
        block. By default where they are: arrays of torch and CuPy stay on their device.
    precision : "float64" or "float32", default="float64"
        Of the products of Gram matrices on a device: "float32" is faster on most cards. Gaps are
        measured in float64 all the same; near kinks fewer rows may be decided.
    n_jobs : int, optional
        Threads, as joblib counts them; by default as many as the process may use.
    random_state : int, RandomState or None, default=None
        For the solvers that draw random numbers.
    verbose : int, default=0
        1 prints a line per check, 2 one per step as well.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    dual_gap_ : float
        Certified: the objective is at most that far above its minimum, measured on all samples.
    n_iter_ : int
        Steps of the solver.
    kept_ : array of shape (n_samples,)
        False where the sample is proved to have no influence: without it the model is the same.
    undecided_ : array of shape (n_samples,)
        True where it is not proved on which piece of its loss the sample lies.
    history_ : list of dict
        How things stood each time the gap was measured on all samples: `passes` over the data,
        `seconds`, `gap`, `relative_gap`, `n_kept`, `n_undecided`, and `n_features`, how many are
        not proved to be zero.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        Only where X has feature names that are strings.

    Examples
    --------
    >>> import numpy as np
    >>> import safesift as ss
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X @ [1.0, -2.0, 0.0] + 3.0 + 0.1 * rng.normal(size=200)
    >>> model = ss.SafeRegressor(epsilon=0.2, penalty="l1", alpha=1e-3).fit(X, y)
    >>> print(model.coef_.round(1), round(model.intercept_, 1))
    [ 1. -2. 0.] 3.0
    >>> bool(model.kept_.sum() < 50)
    True
    """

    _remote = True

    def __init__(
        self,
        loss: str | Loss = "squared_epsilon_insensitive",
        *,
        epsilon: ArrayLike = 0.1,
        penalty: str | Penalty = "l2",
        alpha: float = 1e-4,
        l1_ratio: float | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        screening: str | Region | None = "auto",
        solver: str = "auto",
        warm_start: bool = False,
        device: str | None = None,
        precision: str = "float64",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.screening = screening
        self.solver = solver
        self.warm_start = warm_start
        self.device = device
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
