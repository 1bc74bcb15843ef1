"""A cluster of three worker processes, made once for all tests of a process, and rows for it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

N_BLOCKS, LENGTH, P = 9, 400, 4


def make(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A block of rows, which workers make, too: nothing that is slow to import is needed here."""
    rng = np.random.default_rng(k)
    X = rng.normal(size=(LENGTH, P))
    y = np.where(X[:, 0] - X[:, 1] + 0.4 * rng.normal(size=LENGTH) > 0, "yes", "no")
    return X, y, rng.integers(0, 3, LENGTH).astype(float)


def frame(k: int) -> Any:
    """The same as a frame."""
    import pandas as pd

    X, y, weights = make(k)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(P)]).assign(label=y, w=weights)


@cache
def cluster() -> Any:
    """A client of three processes with a thread each; the end of this process is theirs."""
    import distributed

    made = distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0,
        silence_logs=50,
    )  # fmt: skip
    return distributed.Client(made, set_as_default=False)


def whole_cluster() -> Any:
    """The client, when all three workers are there: one that was killed comes back, or all anew."""
    client = cluster()
    try:
        client.wait_for_workers(3, timeout=20)
    except TimeoutError:
        client.close()
        client.cluster.close()
        cluster.cache_clear()
        return cluster()
    return client


class Some:
    """A client that uses some of the workers only, and lets go of nothing that it was promised."""

    asynchronous = False

    def __init__(self, client: Any, n_workers: int) -> None:
        self._client = client
        self._workers = sorted(client.scheduler_info(n_workers=-1)["workers"])[:n_workers]
        self.futures: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        return self._client.submit(*args, workers=self._workers, **kwargs)

    def compute(self, *args: Any, **kwargs: Any) -> Any:
        self.futures.append(self._client.compute(*args, workers=self._workers, **kwargs))
        return self.futures[-1]
