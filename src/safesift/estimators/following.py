"""A fit that is all or nothing, and that scikit-learn's callbacks can follow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from safesift.progress import Listener, listening


class _NoCallbacks:
    """For scikit-learn before 1.9: nothing to follow with but `verbose`."""


def _as_it_is(method: Callable) -> Callable:
    return method


# the base of what callbacks can follow, and the decorator of its `fit`
Followable: Any = _NoCallbacks
_with_callbacks: Any = _as_it_is
with suppress(ImportError):
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    Followable, _with_callbacks = CallbackSupportMixin, with_callbacks

Method = TypeVar("Method", bound=Callable[..., Any])


def whole(fit: Method) -> Method:
    """Let an interrupted or failing `fit` leave the estimator as it was, and callbacks follow it.

    Callbacks see the whole fit as one task and every step of the solver as one of its subtasks.
    They cannot stop it: a solution is certified or it is none.
    """

    @_with_callbacks
    @functools.wraps(fit)
    def fit_whole(
        self: Any, X: Any, y: Any = None, sample_weight: Any = None, **params: Any
    ) -> Any:
        before = fitted_attributes(self)
        try:
            with _followed(self, X, y, sample_weight):
                return fit(self, X, y, sample_weight, **params)
        except BaseException:
            for name in fitted_attributes(self):
                delattr(self, name)
            vars(self).update(before)
            raise

    return fit_whole


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """What a fit has learned: the attributes whose names end with an underscore."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }


@contextmanager
def _followed(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[None]:
    if not hasattr(estimator, "_init_callback_context"):
        with _steps_to(_printer(estimator)):
            yield
        return
    task = estimator._init_callback_context(max_subtasks=None)
    metadata = None if sample_weight is None else {"sample_weight": sample_weight}
    seen = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
    followers = hasattr(estimator, "_skl_callbacks")
    task.call_on_fit_task_begin(**seen)
    with _steps_to(_teller(task, seen) if followers else _printer(estimator)):
        yield
    task.call_on_fit_task_end(**seen, reconstruction_attributes={})


def _steps_to(listener: Listener | None) -> AbstractContextManager:
    return nullcontext() if listener is None else listening(listener)


def _teller(task: Any, seen: dict[str, Any]) -> Listener:
    """Tells the callbacks about every step."""

    def tell(stage: str, done: int, total: int) -> None:
        step = task.subcontext(task_name=stage)
        step.call_on_fit_task_begin(**seen)
        step.call_on_fit_task_end(**seen)

    return tell


def _printer(estimator: Any) -> Listener | None:
    """Prints every step where `verbose` is 2 or more."""
    if estimator.verbose < 2:
        return None
    return lambda stage, done, total: print(f"{stage}: step {done} of at most {total}")
