"""A linear model as JSON: what is needed to predict, what it is of, and how far it is proved.

Nothing in such a file is ever run. Whoever reads one refuses all that he would not have written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.losses import LOSSES
from safesift.penalties import PENALTIES

Array = NDArray[np.float64]

VERSION = 1


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model, in the units of the columns as they are.

    Attributes
    ----------
    columns : list of str
    target : list of str
        The column that was predicted, or those of the lower and upper ends.
    labels : list or None
        Of a classification: the first one is below 0 where there are two.
    coefficients : list of lists of float
        A row for each label, or one where there are two, or none.
    intercept : list of float
        One for each row.
    loss, penalty : mapping
        `name`, and `parameters` by their names.
    alpha : float or None
        None under a constraint.
    gap : list of float
        The certified duality gap of each row.
    relative_gap : float
        The largest, relative to the best constant model.
    scaling : mapping or None
        `mean` and `deviation` of the columns, where the problem that was solved is the scaled one;
        coefficients are for columns that are not scaled.
    """

    columns: list[str]
    target: list[str]
    labels: list[Any] | None
    coefficients: list[list[float]]
    intercept: list[float]
    loss: Mapping[str, Any]
    penalty: Mapping[str, Any]
    alpha: float | None
    gap: list[float]
    relative_gap: float
    scaling: Mapping[str, list[float]] | None = None

    def write(self, stream: Any) -> None:
        """As JSON, to a binary stream."""
        content = {"safesift_model": VERSION, **{key: getattr(self, key) for key in KEYS}}
        stream.write(json.dumps(content, indent=1, allow_nan=False).encode() + b"\n")

    def decisions(self, X: Array) -> Array:
        """X times the coefficients plus the intercept, a column for each row of them."""
        return X @ np.array(self.coefficients).T + np.array(self.intercept)

    def predictions(self, decisions: Array) -> NDArray:
        """Labels, or numbers, from decisions."""
        if self.labels is None:
            return decisions[:, 0]
        labels = np.array(self.labels)
        if len(labels) == 2:
            return labels[(decisions[:, 0] > 0).astype(int)]
        return labels[decisions.argmax(axis=1)]


KEYS = tuple(field.name for field in fields(ModelFile))


def read_model(path: Path) -> ModelFile:
    """Read a model, or refuse it.

    Raises
    ------
    ValueError
        One sentence that names the file, and what is wrong in it.
    """
    try:
        content = json.loads(
            path.read_bytes(), object_pairs_hook=_once, parse_constant=_refuse_constant
        )
        return _model(content)
    except (UnicodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON ({error}): give the model that fit wrote.") from None
    except ValueError as error:
        raise ValueError(f"{path} is no model of this version of safesift: {error}") from None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, _ in pairs if [k for k, _ in pairs].count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice.")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"it contains {name}.")


def _model(content: Any) -> ModelFile:
    if not isinstance(content, dict) or "safesift_model" not in content:
        raise ValueError("the key 'safesift_model' is missing.")
    version = content.pop("safesift_model")
    if type(version) is not int or version != VERSION:
        raise ValueError(f"it has version {version!r}, and {VERSION} is what is read here.")
    for key in KEYS:
        if key not in content:
            raise ValueError(f"the key {key!r} is missing.")
    unknown = [key for key in content if key not in KEYS]
    if unknown:
        raise ValueError(f"the key {unknown[0]!r} is not known.")
    model = ModelFile(**content)
    _check_names(model)
    _check_numbers(model)
    _check_parts(model)
    return model


def _check_names(model: ModelFile) -> None:
    _strings("columns", model.columns)
    _strings("target", model.target)
    if set(model.target) & set(model.columns):
        raise ValueError("'target' is one of the 'columns'.")
    if len(model.target) > 2:
        raise ValueError(f"'target' has {len(model.target)} names, and at most 2 are possible.")
    if model.labels is None:
        return
    kinds = {type(label) for label in _listed("labels", model.labels)}
    if len(kinds) != 1 or not kinds <= {str, int, float, bool}:
        raise ValueError("'labels' must be text, or numbers, all of one kind.")
    if not kinds <= {str, bool} and not all(map(_is_finite, model.labels)):
        raise ValueError("'labels' contains a number that is not finite.")
    if len(set(model.labels)) < max(len(model.labels), 2):
        raise ValueError("'labels' must be two or more, and different.")


def _check_numbers(model: ModelFile) -> None:
    n_labels = 0 if model.labels is None else len(model.labels)
    n_rows = n_labels if n_labels > 2 else 1
    rows = _listed("coefficients", model.coefficients, n_rows)
    for row in rows:
        _numbers("a row of 'coefficients'", row, len(model.columns))
    _numbers("'intercept'", model.intercept, n_rows)
    _numbers("'gap'", model.gap, n_rows, lambda gap: gap >= 0)
    _numbers("'relative_gap'", [model.relative_gap], 1, lambda gap: gap >= 0)
    if model.alpha is not None:
        _numbers("'alpha'", [model.alpha], 1, lambda alpha: alpha > 0)
    if model.scaling is None:
        return
    if not isinstance(model.scaling, dict) or set(model.scaling) != {"mean", "deviation"}:
        raise ValueError("'scaling' must be null, or have 'mean' and 'deviation' and nothing else.")
    _numbers("'mean'", model.scaling["mean"], len(model.columns))
    _numbers("'deviation'", model.scaling["deviation"], len(model.columns), lambda d: d > 0)


def _check_parts(model: ModelFile) -> None:
    tables: dict[str, Mapping[str, Any]] = {"loss": LOSSES, "penalty": PENALTIES}
    for key, table in tables.items():
        part = getattr(model, key)
        if not isinstance(part, dict) or set(part) != {"name", "parameters"}:
            raise ValueError(f"{key!r} must have 'name' and 'parameters' and nothing else.")
        if not isinstance(part["name"], str) or part["name"] not in table:
            raise ValueError(f"{key!r} has the name {part['name']!r}, which is not known.")
        known = {field.name for field in fields(table[part["name"]])}
        given = part["parameters"]
        if not isinstance(given, dict) or not set(given) <= known:
            raise ValueError(f"{key!r} has parameters that {part['name']} does not have.")
        _numbers(f"the parameters of {key!r}", list(given.values()), len(given))
    task = LOSSES[model.loss["name"]]().task
    if (task == "classification") != (model.labels is not None):
        raise ValueError(f"'labels' do not go with the loss {model.loss['name']}.")


def _listed(name: str, values: Any, length: int | None = None) -> list[Any]:
    if not isinstance(values, list):
        raise ValueError(f"{name!r} must be a list.")
    if length is not None and len(values) != length:
        raise ValueError(f"{name!r} has {len(values)} entries, and there should be {length}.")
    return values


def _strings(name: str, values: Any) -> None:
    if not _listed(name, values) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name!r} must be a list of names.")
    if len(set(values)) < len(values):
        raise ValueError(f"{name!r} has a name twice.")


def _numbers(
    name: str, values: Any, length: int, holds: Callable[[float], bool] = lambda value: True
) -> None:
    if not isinstance(values, list) or len(values) != length:
        found = f"{len(values)} entries" if isinstance(values, list) else "no list"
        raise ValueError(f"{name} has {found}, and there should be {length}.")
    for value in values:
        if not _is_finite(value) or not holds(value):
            raise ValueError(f"{name} contains {value!r}.")


def _is_finite(value: Any) -> bool:
    """Whether it is a number, and one that is a finite float."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max
