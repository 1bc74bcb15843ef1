"""Several computations at once that share their passes over the data.

A computation is a generator: it yields a `Request` for something that takes a pass over the rows,
is sent the answer, and returns its result. Computations on the same rows (classes, folds) wait for
each other, and one pass answers all requests of a kind. Evaluations come last: whoever needs
something else before its next one catches up with the others first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from safesift.design.base import Design
from safesift.design.rows import RowDesign

Array = NDArray[np.float64]
Result = TypeVar("Result")
Asked = TypeVar("Asked")


class Request(ABC):
    """Something that takes a pass over the rows of one design, or several.

    Attributes
    ----------
    turn : int
        Of requests that are waiting, those of the least are answered; each kind has its own.
    """

    turn: ClassVar[int]

    @classmethod
    @abstractmethod
    def answered(cls, requests: Sequence[Self]) -> Sequence[Any]:
        """The answers to several requests of this kind, in the same passes."""


Computation = Generator[Request, Any, Result]
# what carries one step of several computations out: one after the other, or on threads
Stepper = Callable[[Callable[[int], None], Iterable[int]], Any]


class OfOneDesign(Request):
    """A request about a design; each computation may have its own, such as some of the rows."""

    design: Design

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> Sequence[Array]:
        return by_group(requests, [request.design for request in requests], cls._of_one)

    @classmethod
    @abstractmethod
    def _of_one(cls, requests: Sequence[Self]) -> Sequence[Array]:
        """The answers to requests about the same design."""


def by_group(
    requests: Sequence[Asked], about: Sequence[object], answer: Callable[[list[Asked]], Sequence]
) -> list[Any]:
    """The answers to requests, those about the very same object together."""
    groups: dict[int, list[int]] = {}
    for k, one in enumerate(about):
        groups.setdefault(id(one), []).append(k)
    answers: list[Any] = [None] * len(requests)
    for group in groups.values():
        for k, found in zip(group, answer([requests[k] for k in group]), strict=True):
            answers[k] = found
    return answers


@dataclass(frozen=True, eq=False)
class Transposed(OfOneDesign):
    """Aᵀu for a vector over the samples, or for several as columns."""

    turn = 0
    design: Design
    u: Array

    @classmethod
    def _of_one(cls, requests: Sequence[Self]) -> Sequence[Array]:
        design, each = requests[0].design, [request.u for request in requests]
        if len(each) == 1:
            return [design.rmatvec(each[0])]
        products = design.rmatvec(np.column_stack(each))
        ends = np.cumsum([u.shape[1] if u.ndim > 1 else 1 for u in each])
        parts = np.split(products, ends[:-1], axis=1)
        return [
            np.ascontiguousarray(part if u.ndim > 1 else part[:, 0])
            for u, part in zip(each, parts, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class ColumnsSq(OfOneDesign):
    """Σ weights_i a_ij² for every column: the diagonal of a Gram matrix."""

    turn = 2
    design: RowDesign
    weights: Array

    @classmethod
    def _of_one(cls, requests: Sequence[Self]) -> Sequence[Array]:
        design, each = requests[0].design, [request.weights for request in requests]
        if len(each) == 1:
            return [design.columns_sq(each[0])]
        return list(np.ascontiguousarray(design.columns_sq(np.column_stack(each)).T))


@dataclass(frozen=True, eq=False)
class CurvatureProduct(OfOneDesign):
    """Aᵀ(weights ∘ Av) for a vector over the columns."""

    turn = 3
    design: Design
    v: Array
    weights: Array

    @classmethod
    def _of_one(cls, requests: Sequence[Self]) -> Sequence[Array]:
        design = requests[0].design
        if len(requests) == 1:
            (one,) = requests
            loads = Loads(lambda pred, rows: one.weights[rows] * pred, (one.weights,))
            return [design.pass_through(one.v, loads)[1]]
        weights = [request.weights for request in requests]

        def weighted(pred: Array, rows: slice) -> Array:
            return pred * np.column_stack([own[rows] for own in weights])

        points = np.column_stack([request.v for request in requests])
        return list(np.ascontiguousarray(design.pass_through(points, weighted)[1].T))


class Loads:
    """What a pass makes of predictions, in NumPy and in one compiled loop with both products.

    Parameters
    ----------
    function : callable
        (predictions, rows) ↦ loads.
    what : tuple, optional
        The same as `arithmetic.compiled.curvature` knows it; None where it does not.
    """

    def __init__(self, function: Callable[[Array, slice], Array], what: Any) -> None:
        self._function, self._what = function, what

    def __call__(self, pred: Array, rows: slice) -> Array:
        return self._function(pred, rows)

    @property
    def fused(self) -> Any:
        """`fused(matrix, rows, block, x, ones, pred, gradient)`; see `Look.fused`."""
        return None if self._what is None else self._pass

    def _pass(self, matrix: Any, rows: slice, block: int, x: Array, ones: bool, *out: Any) -> None:
        from safesift.arithmetic.compiled.curvature import pass_with

        pass_with(matrix, rows.start, rows.stop, block, x, ones, self._what, *out)


def together(
    computations: Sequence[Computation[Result]], stepper: Stepper | None = None
) -> list[Result]:
    """The results of computations on one design.

    Parameters
    ----------
    computations : sequence of generators
    stepper : callable, optional
        `stepper(step, which)` calls `step(k)` for every k of `which`; in their order by default.
    """
    results: list[Any] = [None] * len(computations)
    waiting: dict[int, Request] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(computations)))

    def step(k: int) -> None:
        try:
            waiting[k] = computations[k].send(answers[k])
        except StopIteration as ended:
            results[k] = ended.value

    while answers:
        if stepper is None:
            for k in answers:
                step(k)
        else:
            stepper(step, list(answers))
        answers = _answers(waiting)
        for k in answers:
            del waiting[k]
    return results


def alone(computation: Computation[Result]) -> Result:
    """The result of one computation."""
    return together([computation])[0]


def _answers(waiting: dict[int, Request]) -> dict[int, Any]:
    """To those requests whose turn it is."""
    if not waiting:
        return {}
    kind = min((type(request) for request in waiting.values()), key=lambda kind: kind.turn)
    which = [k for k in sorted(waiting) if type(waiting[k]) is kind]
    return dict(zip(which, kind.answered([waiting[k] for k in which]), strict=True))
