"""What a page is about: results on the same samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.devices.arrays import on_host
from safesift.design.rows import RowDesign
from safesift.faces.markup import brief
from safesift.problem.problem import Problem
from safesift.problem.scales import column_name
from safesift.problem.training import Training
from safesift.workflows.leaving_out import LeaveOneOut
from safesift.workflows.leaving_out.result import strangeness
from safesift.workflows.path import PathResult
from safesift.workflows.verdicts import ScreeningResult

Array = NDArray[np.float64]

_KINDS: tuple[type, ...] = (ScreeningResult, LeaveOneOut, PathResult)


@dataclass(frozen=True, eq=False)
class Subject:
    """What a page is about.

    Attributes
    ----------
    screening, loo, path : results, or None
        At least one of them is there.
    """

    screening: ScreeningResult | None = None
    loo: LeaveOneOut | None = None
    path: PathResult | None = None

    @classmethod
    def of(cls, results: Sequence[Any]) -> Subject:
        """Results of different kinds on the same samples, or one sentence."""
        found: dict[type, Any] = {}
        for result in results:
            kind = next((kind for kind in _KINDS if isinstance(result, kind)), None)
            if kind is None:
                raise TypeError(
                    f"also holds a {type(result).__name__}: a page is about a ScreeningResult, a "
                    "LeaveOneOut and a PathResult, one of each."
                )
            if kind in found:
                raise ValueError(
                    f"also holds a second {kind.__name__}: write a page for each of them."
                )
            found[kind] = result
        subject = cls(*(found.get(kind) for kind in _KINDS))
        subject._check_samples()
        return subject

    def _check_samples(self) -> None:
        sizes = {one.design.n_samples for one in self._problems if one is not None}
        shapes = {one.design.n_features for one in self._problems if one is not None}
        if self.path is not None:
            shapes.add(self.path.coefs.shape[1])
        if len(sizes) > 1 or len(shapes) > 1:
            raise ValueError(
                "also holds results on other samples (their numbers of rows or features differ): "
                "pass results on the same ones."
            )
        if not self._have_same_targets:
            raise ValueError(
                "also holds results for another y: pass results on the same samples, with the same "
                "labels or targets."
            )

    @property
    def _have_same_targets(self) -> bool:
        """As far as the results know: of a path only the classes are left."""
        first, *others = (one.classes for one in self._results)
        if not all(_equal(first, other) for other in others):
            return False
        return self.screening is None or self.loo is None or _equal(self._screened, self.loo.y)

    @property
    def _results(self) -> list[Any]:
        return [one for one in (self.screening, self.loo, self.path) if one is not None]

    @property
    def _problems(self) -> tuple[Problem | None, ...]:
        known = (self.screening, self.loo)
        return tuple(None if one is None else one.parts[0].problem for one in known)

    # --- the model --------------------------------------------------------------------------

    @property
    def problem(self) -> Problem | None:
        """The first problem of the samples; a path does not hold them."""
        return next((one for one in self._problems if one is not None), None)

    @property
    def training(self) -> Training:
        """Of the model at one alpha, where there is one."""
        return self._results[0].training

    @property
    def classes(self) -> NDArray | None:
        return self._results[0].classes

    @property
    def coefs(self) -> Array | None:
        """A row of coefficients for each problem, at the one alpha."""
        if self.screening is not None:
            return np.atleast_2d(on_host(self.screening.coef))
        if self.loo is not None and self.problem is not None:
            split = self.problem.split
            return np.stack([on_host(split(point)[0]) for point in self.loo.points])
        return None

    # --- samples ----------------------------------------------------------------------------

    @property
    def n_samples(self) -> int | None:
        return None if self.problem is None else self.problem.design.n_samples

    @property
    def rows(self) -> RowDesign | None:
        """The samples, where they have rows that can be read."""
        design = None if self.problem is None else self.problem.design
        return design if isinstance(design, RowDesign) else None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the features."""
        known = (
            self.screening and self.screening.feature_names,
            self.loo and self.loo.columns,
            self.path and self.path.feature_names,
        )
        return next((names for names in known if names), None)

    def feature(self, column: int) -> str:
        """The name of a feature, or its number."""
        return brief(column_name(self.names, column))

    @cached_property
    def targets(self) -> NDArray:
        """Labels, numbers or intervals, as they were given."""
        if self.loo is not None:
            return self.loo.y
        return self._screened

    @property
    def _screened(self) -> NDArray:
        assert self.screening is not None and self.problem is not None
        given = self.screening.labels
        return on_host(self.problem.y) if given is None else given

    @cached_property
    def spreads(self) -> Array | None:
        """The standard deviation of every feature, samples weighted; None where there are no rows.

        Two passes, made once for all sections.
        """
        rows, problem = self.rows, self.problem
        if rows is None or problem is None:
            return None
        shares = problem.weights / problem.weights.sum()
        sums = (rows.rmatvec(shares), rows.columns_sq(shares))
        mean, square = (on_host(values)[: rows.n_features] for values in sums)
        return np.sqrt(np.maximum(square - mean**2, 0.0))

    @cached_property
    def decision(self) -> Array:
        """What the model says of every sample, a column for each of several classes."""
        if self.screening is None:
            assert self.loo is not None
            return self.loo.fitted
        found = [on_host(part.at.pred) for part in self.screening.parts]
        return found[0] if len(found) == 1 else np.stack(found, axis=1)

    @cached_property
    def doubt(self) -> Array:
        """How much a label or target is at odds with the model, best with one that has not seen it.

        The larger, the more; above 0 a label is not the one that is predicted.
        """
        if self.loo is not None:
            return self.loo.strangeness
        assert self.screening is not None
        strange = strangeness(self.decision, self.targets, self.classes)
        return np.where(self.screening.weights > 0, strange, -np.inf)


def _equal(one: NDArray | None, other: NDArray | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def hash_of(path: Path) -> str:
    """SHA-256 of a file, read a block at a time."""
    from hashlib import file_digest

    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
