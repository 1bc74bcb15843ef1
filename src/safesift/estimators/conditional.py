"""Methods that an estimator has under some of its parameters only."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any


class Conditional:
    """A method that is there if a check passes; else `hasattr` is False, and the error says why.

    As scikit-learn's `available_if`, which has its own "no attribute" reach the user, and the
    reason only as what caused it.
    """

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], object]) -> None:
        self._method, self._check = method, check
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: type) -> Callable[..., Any]:
        if estimator is None:
            return self._method
        self._check(estimator)
        return MethodType(self._method, estimator)


def available_if(check: Callable[[Any], object]) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a method; the check raises an AttributeError with the reason it is not there."""
    return lambda method: Conditional(method, check)
