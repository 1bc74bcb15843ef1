"""What the repeats of an experiment share: splits into training and test rows, and processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift import progress
from safesift.problem.inputs import vector
from safesift.workflows.compression.ranking import seed_of

_TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on, and samples to test on."""

    train: NDArray[np.intp]
    X_test: Any
    y_test: Any


@dataclass(frozen=True)
class Run:
    """Calls a function on many arguments, in several processes, and tells how far it is."""

    n_jobs: int | None
    verbose: int

    def __call__(self, function: Callable, tasks: Sequence[tuple], stage: str) -> Iterable[Any]:
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        results = parallel(delayed(function)(*task) for task in tasks)
        return self._told(results, stage, len(tasks))

    def _told(self, results: Iterable[Any], stage: str, total: int) -> Iterator[Any]:
        for done, result in enumerate(results, start=1):
            progress.report(stage, done, total)
            if self.verbose and (done % max(total // 10, 1) == 0 or done == total):
                print(f"{stage}: {done} of {total}")
            yield result


def splits_of(
    X: Any, y: Any, test: Any, n_repeats: int, task: str, rng: np.random.Generator
) -> list[Split]:
    """Test data of each repeat: its own fifth of the samples, or what is given."""
    from sklearn.model_selection import train_test_split
    from sklearn.utils import _safe_indexing, check_consistent_length

    check_consistent_length(X, y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if test is not None:
        X_test, y_test = test
        return [Split(np.arange(n), X_test, y_test)] * n_repeats
    by = vector("y", y) if task == "classification" else None
    splits = []
    for _ in range(n_repeats):
        train, tested = train_test_split(
            np.arange(n), test_size=_TEST_SHARE, stratify=by, random_state=seed_of(rng)
        )
        splits.append(Split(train, _safe_indexing(X, tested), _safe_indexing(y, tested)))
    return splits
