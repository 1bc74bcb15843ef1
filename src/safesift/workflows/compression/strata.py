"""Classes, or quantiles of the targets, each of which gives its share of the kept rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from safesift.workflows.compression.samples import Of, Rows, Samples

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# numbers have no classes: strata are as many quantiles of the targets
_N_QUANTILES = 10


@dataclass(frozen=True)
class Strata:
    """Groups of rows.

    Attributes
    ----------
    n : int
    codes : callable
        In which one every row is.
    """

    n: int
    codes: Callable[[Rows], Indices]

    @classmethod
    def of(cls, samples: Samples, stratify: bool) -> Strata:
        """The classes, or quantiles of the targets; one stratum for all if not asked for."""
        if not stratify:
            return cls(1, lambda rows: np.zeros(len(rows.weights), dtype=np.intp))
        if samples.classes is not None:
            return cls(len(samples.classes), lambda rows: rows.class_codes)
        (centers,) = samples.thinned(lambda rows: rows.centers)
        edges = np.unique(np.quantile(centers, np.linspace(0, 1, _N_QUANTILES + 1)[1:-1]))

        def codes(rows: Rows) -> Indices:
            return np.searchsorted(edges, rows.centers, side="right")

        # those that no sample of positive weight is in do not count
        found = [np.unique(codes(rows)[rows.counted]) for rows in samples.parts()]
        present = np.unique(np.concatenate(found))

        def among_present(rows: Rows) -> Indices:
            return np.minimum(np.searchsorted(present, codes(rows)), len(present) - 1)

        return cls(len(present), among_present)

    def masses(self, samples: Samples, values: Of) -> Array:
        """The total of every stratum."""
        return samples.masses(self.codes, values, self.n)


def masses_of(codes: Indices, weights: Array, n_strata: int = 0) -> Array:
    """The total weight of every stratum, of some rows."""
    # of floats already, which the signature of bincount does not say
    return np.bincount(codes, weights, minlength=n_strata).astype(np.float64, copy=False)
