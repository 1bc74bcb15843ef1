"""Turn what a user passes into a `Problem`, or say in one sentence what is wrong with it.

Interval targets: two columns of ends, either of them possibly infinite, checked row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from safesift.alerts import warn
from safesift.design import as_design
from safesift.design.arrays import plain_array, refuse_missing
from safesift.design.kernel import GramColumns, KernelDesign
from safesift.design.kernels import Kernel, PrecomputedKernel
from safesift.losses import LOSSES, Loss
from safesift.parameters import check_positive
from safesift.penalties import PENALTIES, ElasticNet, Penalty
from safesift.penalties.function_norm import SquaredNorm
from safesift.problem.problem import Problem
from safesift.problem.risk import Risk
from safesift.registry import resolve

Array = NDArray[np.float64]


def as_intervals(y: Any) -> Array:
    """Targets as an array of lower and upper ends, of shape (n_samples, 2).

    Parameters
    ----------
    y : array or frame of shape (n_samples, 2) or (n_samples,)
        Lower and upper ends, -inf and inf where there is none. One column means intervals of
        width zero.

    Raises
    ------
    ValueError
        Where an end is NaN, the lower end exceeds the upper one, both ends are infinite, or a
        finite number is missing altogether; the message names the first rows.
    """
    array = plain_array("y", y)
    if array.ndim == 2 and array.shape[1] == 1:
        _warn_about_column()
        array = array[:, 0]
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] != 2):
        raise ValueError(
            f"y has shape {array.shape}: interval targets have two columns, the lower and the "
            "upper ends, or one column for intervals of width zero."
        )
    numbers = _numbers(array)
    if numbers.ndim == 1:
        _check_numbers(numbers)
        return np.column_stack([numbers, numbers])
    _check_ends(numbers)
    return numbers


def distance(pred: Array, intervals: Array) -> Array:
    """How far predictions are from their intervals, 0 inside."""
    return np.maximum(np.maximum(intervals[:, 0] - pred, pred - intervals[:, 1]), 0.0)


def _warn_about_column() -> None:
    from sklearn.exceptions import DataConversionWarning

    warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples, ), for example using ravel().",
        DataConversionWarning,
    )


def _numbers(array: NDArray) -> Array:
    try:
        if array.dtype.kind == "c":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y must hold numbers, the ends of intervals, got {array.dtype}: convert it first."
        ) from None


def _check_numbers(y: Array) -> None:
    _refuse(np.isnan(y), "y contains NaN", "remove those samples first")
    _refuse(
        np.isinf(y),
        "y contains infinity",
        "remove those samples, or pass two columns, the ends of intervals",
    )


def _check_ends(y: Array) -> None:
    low, high = y.T
    _refuse(
        np.any(np.isnan(y), axis=1),
        "y contains NaN",
        "write -inf or inf for an end that is not known, or remove those samples",
    )
    _refuse(
        ~np.any(np.isfinite(y), axis=1),
        "y has intervals without a finite end",
        "such samples say nothing, remove them",
    )
    _refuse(
        low > high,
        "y has intervals whose lower end exceeds the upper one",
        "the columns are lower, upper",
    )


def _refuse(bad: NDArray[np.bool_], what: str, remedy: str, most: int = 5) -> None:
    if not bad.any():
        return
    rows = np.flatnonzero(bad)
    named = ", ".join(map(str, rows[:most])) + (", …" if len(rows) > most else "")
    count = f"{len(rows)} row{'s' if len(rows) > 1 else ''}"
    raise ValueError(f"{what} in {count} ({named}): {remedy}.")


@dataclass(frozen=True, eq=False)
class Inputs:
    """The problems that samples make: one, or one per class against the rest, on the same rows.

    Attributes
    ----------
    problems : tuple of Problem
    classes : array or None
        The labels of samples of positive weight; of two, the second stands for 1. None where y
        holds numbers.
    labels : array or None
        Of all samples.
    """

    problems: tuple[Problem, ...]
    classes: NDArray | None = None
    labels: NDArray | None = None

    @property
    def problem(self) -> Problem:
        """The only one."""
        if len(self.problems) == 1:
            return self.problems[0]
        assert self.labels is not None and self.classes is not None  # one problem per class
        hint = " (or a regression loss)" if self.labels.dtype.kind in "fi" else ""
        raise ValueError(
            f"y has {len(self.classes)} classes, and two are needed here: pass y == label for "
            f"one label against the rest{hint}."
        )


def make_problems(
    X: Any,
    y: Any,
    *,
    loss: str | Loss,
    penalty: str | Penalty,
    alpha: float,
    l1_ratio: float | None = None,
    fit_intercept: bool = True,
    sample_weight: Any = None,
    classes: NDArray | None = None,
) -> Inputs:
    """Check the arguments, cheapest first, and build the problems.

    Parameters
    ----------
    X, y, loss, penalty, alpha, l1_ratio, fit_intercept, sample_weight
        As in `safesift.screen`; more than two labels make a problem each.
    classes : array, optional
        The labels that count, by default those of samples of positive weight.
    """
    loss = resolve("loss", loss, LOSSES, Loss)
    penalty = check_penalty(penalty, l1_ratio)
    alpha = check_positive("alpha", alpha)
    targets = as_intervals(y) if loss.task == "interval" else vector("y", y)
    n_samples = _n_rows(X)
    if len(targets) != n_samples:
        raise ValueError(f"y has {len(targets)} entries but X has {n_samples} rows.")
    weights = check_weights(sample_weight, n_samples)
    _check_per_sample(loss, n_samples)
    if loss.task == "classification":
        classes = label_classes(targets, weights) if classes is None else classes
        columns = one_against_rest(targets, classes)
    else:
        columns = [_real_targets(targets) if loss.task == "regression" else targets]
    design = as_design(X, fit_intercept)
    if design.remote:
        _refuse_on_device(loss)
    risk = Risk.of(design, loss, columns[0], weights)
    problem = Problem(risk, penalty, alpha)
    problems = (problem, *(problem.with_targets(y) for y in columns[1:]))
    return Inputs(problems, classes, None if classes is None else targets)


def _refuse_on_device(loss: Loss) -> None:
    """Say which losses are not computed on a device, and what to use in their place."""
    if loss.n_parameters is not None:
        raise ValueError("loss: epsilon must be one number for rows on a device.")
    if loss.precision > 0:
        raise ValueError(
            f"loss={loss!r} is known by functions of Python, which read no arrays on a device: use "
            "a loss of the library, or rows of this process."
        )
    if math.isinf(loss.proved_smoothness):
        raise ValueError(
            f"loss={loss!r} has kinks, at which slopes are not known from predictions, and is not "
            "solved on a device: use its smooth relative ('squared_hinge', 'smoothed_hinge', "
            "'squared_epsilon_insensitive', 'smoothed_epsilon_insensitive'), or rows of this "
            "process."
        )


def one_against_rest(labels: NDArray, classes: NDArray) -> list[Array]:
    """Labels as -1 and 1: for the second of two classes, or for each of several."""
    positive = classes[1:] if len(classes) == 2 else classes
    return [np.where(labels == label, 1.0, -1.0) for label in positive]


def check_penalty(penalty: str | Penalty, l1_ratio: float | None) -> Penalty:
    """The penalty by its name, with the ratio of an elastic net where one is given."""
    if l1_ratio is None:
        return resolve("penalty", penalty, PENALTIES, Penalty)
    if penalty != "elastic_net":
        raise ValueError(
            f"l1_ratio={l1_ratio!r} goes with penalty='elastic_net' only, got "
            f"penalty={penalty!r}: set l1_ratio=None."
        )
    return ElasticNet(l1_ratio)


def check_weights(sample_weight: Any, n_samples: int, name: str = "sample_weight") -> Array:
    """Weights as float64, ones by default; `name` is that of the argument."""
    if sample_weight is None:
        return np.ones(n_samples)
    weights = vector(name, sample_weight)
    if len(weights) != n_samples:
        raise ValueError(f"{name} has {len(weights)} entries but X has {n_samples} rows.")
    weights = _real(name, weights)
    if (weights < 0).any():
        raise ValueError(
            f"{name} is negative (first at {np.flatnonzero(weights < 0)[0]}): "
            "use weights of 0 or more."
        )
    if not (weights > 0).any():
        raise ValueError(f"{name} is zero everywhere: give some sample a positive weight.")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError(f"{name} is too large to add up: divide it by its largest entry.")
    return weights


def row_numbers(rows: Any) -> NDArray[np.intp]:
    """Rows as a splitter names them, by numbers or by a mask, as numbers."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.intp, copy=False)


def check_point(problem: Problem, coef: Any, intercept: float) -> Array:
    """Given coefficients and intercept as a point of the problem."""
    try:
        if np.iscomplexobj(coef):
            raise TypeError
        coef = np.array(coef, dtype=np.float64)
        intercept = float(np.squeeze(intercept))
    except (TypeError, ValueError):
        raise TypeError(
            "coef and intercept must hold real numbers, as a fitted linear model has them."
        ) from None
    if coef.ndim == 2 and coef.shape[0] == 1:
        coef = coef[0]  # scikit-learn's coef_ of a binary classifier
    p = problem.design.n_features
    if coef.shape != (p,):
        raise ValueError(f"coef has shape {coef.shape}, but X has {p} features.")
    if not (np.isfinite(coef).all() and math.isfinite(intercept)):
        raise ValueError("coef or intercept contains NaN or infinity: pass a finite solution.")
    if intercept != 0.0 and not problem.fit_intercept:
        raise ValueError(
            f"intercept={intercept!r} but fit_intercept=False: set fit_intercept=True, or pass a "
            "solution without intercept."
        )
    return problem.join(coef, intercept)


def _n_rows(X: Any) -> int:
    try:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
    except ValueError:
        raise ValueError("X has rows of different lengths: pass a matrix.") from None
    if len(shape) != 2:
        raise ValueError(
            f"X must have 2 dimensions, got {len(shape)}: reshape it to (n_samples, n_features)."
        )
    if 0 in shape:
        raise ValueError(
            f"X is empty (shape {shape[0]} × {shape[1]}): pass at least one sample and one feature."
        )
    return shape[0]


def vector(name: str, values: Any) -> NDArray:
    """One entry per sample."""
    if values is None:
        raise ValueError(f"{name} is None: pass one entry per sample.")
    array = plain_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        several = " (several targets of a sample are several problems)" if name == "y" else ""
        raise ValueError(
            f"{name} must have one entry per sample, got shape {array.shape}: pass one "
            f"column{several}."
        )
    return array


def _real(name: str, values: NDArray) -> Array:
    try:
        if not _may_be_numbers(values):
            raise TypeError
        array = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {values.dtype}.") from None
    if not np.isfinite(array).all():
        raise ValueError(
            f"{name} contains NaN or infinity (first at {np.flatnonzero(~np.isfinite(array))[0]}): "
            "remove those samples first."
        )
    return array


def _may_be_numbers(values: NDArray) -> bool:
    """Numbers, or objects such as decimals; a text is none, even of digits."""
    if values.dtype == object:
        return not any(isinstance(entry, str | bytes) for entry in values)
    return values.dtype.kind in "fiub"


def _real_targets(y: NDArray) -> Array:
    if not _may_be_numbers(y):
        raise ValueError(
            f"y must hold numbers for a regression loss, got {y.dtype}: "
            "use a classification loss for labels."
        )
    return _real("y", y)


def label_classes(y: NDArray, weights: Array) -> NDArray:
    """The labels that samples of positive weight have, at least two."""
    check_labels(y)
    classes = _distinct(y[weights > 0])
    if len(classes) == 1:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}, among samples of positive weight): "
            "classification needs two."
        )
    return classes


def _distinct(y: NDArray) -> NDArray:
    """The labels there are, in order; two numbers are found without sorting all of them."""
    if y.dtype.kind not in "biuf" or not len(y):
        return np.unique(y)
    ends = np.stack([y.min(), y.max()])
    two = ends[0] < ends[1] and bool(((y == ends[0]) | (y == ends[1])).all())
    return ends if two else np.unique(y)


def check_labels(y: NDArray) -> None:
    """Refuse targets that are no labels, before they become as many classes as there are samples.

    What labels are is scikit-learn's to say (`check_classification_targets`): strings, or whole
    numbers, however many. It warns where more than half of them differ.
    """
    if y.dtype.kind == "f":
        _refuse_continuous(_real("y", y))
    refuse_missing("y", y)
    if y.dtype.kind == "S":
        return  # bytes, which scikit-learn leaves to the user to decode
    if y.dtype.kind in "biuf" and len(y) > 3 and len(_distinct(y)) == 2:
        return  # two whole numbers
    try:
        check_classification_targets(y)
    except TypeError:
        raise ValueError("y mixes labels of different types: use numbers or strings.") from None
    except ValueError:
        kinds = sorted({type(entry).__name__ for entry in y.tolist()})
        if len(kinds) > 1:
            raise ValueError(
                f"y mixes labels of different types ({', '.join(kinds)}): make all of them "
                "strings, or all of them whole numbers."
            ) from None
        raise ValueError(
            f"y holds {kinds[0]} objects, which are no labels: use whole numbers or strings."
        ) from None


def _refuse_continuous(y: Array) -> None:
    fractional = np.flatnonzero(y != np.rint(y))
    if fractional.size:
        raise ValueError(
            f"y is continuous (such as {y[fractional[0]]:.6g}), and a classification loss needs "
            "labels: use a regression loss, or whole numbers or strings for labels."
        )


def _check_per_sample(loss: Loss, n_samples: int) -> None:
    if loss.n_parameters not in (None, n_samples):
        raise ValueError(
            f"loss: epsilon has {loss.n_parameters} entries but X has {n_samples} rows: pass one "
            "number, or one per sample."
        )


def on_kernel(problems: Sequence[Problem], kernel: Kernel, memory: int) -> list[Problem]:
    """Problems that share their samples, with functions of the kernel's space as their points."""
    if isinstance(kernel, PrecomputedKernel) and kernel.indefinite:
        warn(
            f"X has negative eigenvalues, down to -{kernel.shift:.2g} or so, and is no kernel "
            f"matrix: the model, and all that is certified, is that of X + {kernel.shift:.2g}·I; "
            "compute X in double precision, or add a multiple of the identity."
        )
    design = KernelDesign(GramColumns(kernel, memory), problems[0].fit_intercept)
    norm = SquaredNorm(design)
    return [replace(problem, risk=problem.risk.on(design), penalty=norm) for problem in problems]
