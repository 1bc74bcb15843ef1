"""The paper's synthetic regression."""

from __future__ import annotations

import numpy as np

from safesift_paper.checks import check_count
from safesift_paper.datasets.base import Dataset


def make_sparse_regression(
    n_samples: int = 100,
    n_features: int = 500,
    n_informative: int = 10,
    noise: float = 0.01,
    random_state: int = 0,
) -> Dataset:
    """Draw b = Ax + ε: A uniform in [−1, 1], x sparse, ε normal.

    The paper gives the law of A, σ = 0.01 and n = 100; the other numbers are those of its
    authors' scripts. The non-zero entries of x are uniform in [−1, 1] as well.

    Parameters
    ----------
    n_samples : int, default=100
    n_features : int, default=500
    n_informative : int, default=10
        How many entries of x are not zero.
    noise : float, default=0.01
        The standard deviation of ε.
    random_state : int, default=0

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from safesift_paper.datasets import make_sparse_regression
    >>> data = make_sparse_regression(20, n_features=2, n_informative=1)
    >>> data.X.shape, data.y.shape
    ((20, 2), (20,))
    """
    n_samples = check_count("n_samples", n_samples)
    n_features = check_count("n_features", n_features)
    if not 0 <= n_informative <= n_features:
        raise ValueError(
            f"n_informative must be between 0 and n_features={n_features}, got {n_informative!r}."
        )
    rng = np.random.default_rng(random_state)
    A = rng.uniform(-1.0, 1.0, (n_samples, n_features))
    x = np.zeros(n_features)
    x[rng.permutation(n_features)[:n_informative]] = rng.uniform(-1.0, 1.0, n_informative)
    title = f"synthetic regression, {n_informative} of {n_features} features informative"
    return Dataset(
        name="synthetic", title=title, X=A, labels=A @ x + noise * rng.standard_normal(n_samples)
    )
