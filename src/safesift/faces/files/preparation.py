"""Features made ready for a linear model: missing values filled in, categories, scales.

The transformers are those of scikit-learn, and what they learned from all rows is recorded, so
that the same can be done to the rows that are kept. The result is that of a ColumnTransformer; it
is put together here since a ColumnTransformer takes one matrix, in which all numbers would have to
be Python objects next to the text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

from safesift.faces.files.table import Samples

SCALERS: dict[str, Callable[[], Any] | None] = {
    "none": None,
    "standard": StandardScaler,
    "maxabs": MaxAbsScaler,
    "minmax": MinMaxScaler,
}
STRATEGIES = ("mean", "median", "most_frequent", "constant")

# what a fitted transformer knows
_LEARNED = {
    SimpleImputer: ("statistics_",),
    StandardScaler: ("mean_", "scale_"),
    MaxAbsScaler: ("scale_",),
    MinMaxScaler: ("min_", "scale_"),
    OneHotEncoder: ("categories_",),
}

# as in a ColumnTransformer: a matrix with a smaller share of entries than this is sparse
_DENSE_FROM = 0.3


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features as a model gets them.

    Attributes
    ----------
    X : array or CSR matrix
    names : tuple of str, or None
        Of its columns.
    record : list or None
        What was done to which columns, in JSON types: for every part its columns and the
        transformers they went through, with what those learned. None where nothing was done.
    """

    X: Any
    names: tuple[str, ...] | None
    record: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class Preparation:
    """What is done to features before a model is trained on them.

    Attributes
    ----------
    scale : {"none", "standard", "maxabs", "minmax"}
        How features that are numbers are scaled.
    impute : {"mean", "median", "most_frequent", "constant"} or None
        What missing values become. Of categories there is no mean: there only the most frequent
        one is filled in, else what is missing stays a category of its own.
    """

    scale: str = "none"
    impute: str | None = None

    def of(self, samples: Samples) -> Prepared:
        """Fit the transformers to all rows, and apply them."""
        parts = [_Part(samples.X, samples.names, self._for_numbers(samples))]
        if samples.categories is not None:
            steps = self._imputers if self.impute == "most_frequent" else []
            parts.append(
                _Part(samples.categories, samples.category_names, [*steps, OneHotEncoder()])
            )
        parts = [part for part in parts if part.values.shape[1]]
        if not any(part.steps for part in parts):
            return Prepared(samples.X, samples.names)
        _refuse_infinite(samples.X)
        X = _side_by_side([part.fitted() for part in parts])
        names = None if samples.names is None else tuple(n for part in parts for n in part.outputs)
        return Prepared(X, names, [part.record() for part in parts])

    @property
    def _imputers(self) -> list[Any]:
        return [SimpleImputer(strategy=self.impute)] if self.impute else []

    def _for_numbers(self, samples: Samples) -> list[Any]:
        scaler = SCALERS[self.scale]
        if scaler in (StandardScaler, MinMaxScaler) and sparse.issparse(samples.X):
            raise ValueError(
                f"--scale {self.scale} shifts the features, and a sparse matrix would become a "
                "full one: use --scale maxabs."
            )
        if self.impute and not sparse.issparse(samples.X):
            _refuse_empty(samples)
        return [*self._imputers, *([scaler()] if scaler else [])]


@dataclass(frozen=True, eq=False)
class _Part:
    """Columns, and the transformers that they go through."""

    values: Any
    names: tuple[str, ...] | None
    steps: list[Any]

    def fitted(self) -> Any:
        """The columns, once they went through."""
        values = self.values
        for step in self.steps:
            values = step.fit_transform(values)
        return values

    @property
    def outputs(self) -> list[str]:
        """What the columns that come out are called."""
        names = list(self.names or ())
        for step in self.steps:
            names = step.get_feature_names_out(names).tolist()
        return names

    def record(self) -> dict[str, Any]:
        """What was done to which columns."""
        columns = None if self.names is None else list(self.names)
        return {"columns": columns, "steps": [_record(step) for step in self.steps]}


def _record(step: Any) -> dict[str, Any]:
    given = {"strategy": step.strategy} if isinstance(step, SimpleImputer) else {}
    learned = {name: _as_json(getattr(step, name)) for name in _LEARNED[type(step)]}
    return {"transformer": type(step).__name__, "parameters": given, "learned": learned}


def _as_json(values: Any) -> Any:
    """Arrays as lists; a category that stands for missing values as null."""
    if isinstance(values, list | np.ndarray):
        return [_as_json(value) for value in values]
    value = values.item() if isinstance(values, np.generic) else values
    return value if value == value else None


def _side_by_side(blocks: list[Any]) -> Any:
    """One matrix, sparse where most of it is zero."""
    if len(blocks) == 1:
        return blocks[0]
    filled = sum(block.nnz if sparse.issparse(block) else block.size for block in blocks)
    n_rows, width = blocks[0].shape[0], sum(block.shape[1] for block in blocks)
    if filled < _DENSE_FROM * n_rows * width:
        return sparse.hstack(blocks, format="csr")
    return np.hstack([b.toarray() if sparse.issparse(b) else b for b in blocks])


def _refuse_infinite(X: Any) -> None:
    """Refuse what the transformers would refuse in words of their own."""
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError("There are infinite values among the features: remove those rows.")


def _refuse_empty(samples: Samples) -> None:
    """Refuse columns without a single value: nothing can be learned from them."""
    if samples.X.dtype.kind != "f" or not samples.X.size:
        return
    empty = np.flatnonzero(np.isnan(samples.X).all(axis=0))
    if len(empty):
        name = empty[0] if samples.names is None else repr(samples.names[empty[0]])
        raise ValueError(f"The column {name} holds no value at all: leave it out with --ignore.")


def lonely_categories(samples: Samples) -> list[str]:
    """Columns of which most cells say what no other cell says: names, numbers of rows."""
    if samples.categories is None:
        return []
    columns = zip(samples.category_names, samples.categories.T, strict=True)
    return [name for name, cells in columns if 2 * len(set(cells)) > len(cells) > 1]
