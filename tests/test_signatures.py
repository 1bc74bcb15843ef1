"""One name, one place and one default for one parameter, in everything public."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import safesift as ss

# the order in which parameters stand, wherever some of them stand together
ORDER = (
    "client", "estimator", "X_pool", "model", "loo", "X", "y", "y_pool", "target", "K", "result",
    "solve",
    "fractions", "methods", "n_repeats", "test", "n_keep", "alphas", "n_alphas",
    "eps", "cv", "scoring", "metric", "quantile",
    "loss", "pred", "epsilon", "omega", "mu", "penalty", "kernel", "gamma", "degree", "coef0",
    "alpha", "alpha_range", "l1_ratio", "fraction", "fraction_tol",
    "fit_intercept", "sample_weight", "groups", "label", "pool_weight", "coef", "intercept",
    "level", "method", "reweight", "stratify",
    "effort", "width", "tol", "alpha_tol", "max_solves", "max_iter", "max_passes", "max_rounds",
    "class_weight",
    "screening", "solver", "fold", "negligible", "residue", "memory", "warm_start",
    "device", "precision", "n_jobs", "random_state", "verbose",
)  # fmt: skip

# names that were given up, and what took their place
GIVEN_UP = {
    "region": "screening", "keep": "kept", "cache_size": "memory", "block_size": "memory",
}  # fmt: skip

# parameters whose default depends on what they are for
BY_TASK = {
    "loss": "labels, numbers and intervals have a loss of their own",
    "alphas": "a path may be given its alphas only, a cross-validation a number of them",
    "alpha": "the norm of a function is another thing than that of coefficients",
    "epsilon": "the width of a tube, or how much better another alpha may be",
    "n_keep": "a sampler has a default, a function is told",
    "method": "a ranking is by what is proved, a choice also by what is typical",
    "reweight": "a sampler returns rows without weights",
    "screening": "a sampler that screens nothing would be no sampler",
    "mu": "to be found out by mu_for_fraction",
}


# what takes a loss and no data has parameters of its own
ABOUT_LOSSES = {
    "make_safe", "infimum_convolution", "pointwise_bound", "plot_losses", "alpha_from_C",
    "C_from_alpha",
}  # fmt: skip


def _callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in ss.__all__:
        if name in ABOUT_LOSSES:
            continue
        thing = getattr(ss, name)
        if inspect.isfunction(thing) or (inspect.isclass(thing) and hasattr(thing, "get_params")):
            yield name, thing


CALLABLES = dict(_callables())


def _parameters(thing: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(thing).parameters)


def test_the_walk_meets_what_is_public() -> None:
    assert {"screen", "safe_path", "compress", "SafeClassifier", "SafeTracker"} <= CALLABLES.keys()


@pytest.mark.parametrize("name", CALLABLES)
def test_parameters_have_one_name_and_one_order(name: str) -> None:
    names = list(_parameters(CALLABLES[name]))
    assert not [given_up for given_up in names if given_up in GIVEN_UP]
    assert not [unknown for unknown in names if unknown not in ORDER]
    assert names == sorted(names, key=ORDER.index)


def test_parameters_have_one_default() -> None:
    found: dict[str, dict[Any, list[str]]] = {}
    for name, thing in CALLABLES.items():
        for parameter in _parameters(thing).values():
            if parameter.default is not parameter.empty and parameter.name not in BY_TASK:
                found.setdefault(parameter.name, {}).setdefault(parameter.default, []).append(name)
    assert {name: by for name, by in found.items() if len(by) > 1} == {}


@pytest.mark.parametrize("name", CALLABLES)
def test_a_penalty_comes_with_its_ratio(name: str) -> None:
    names = _parameters(CALLABLES[name])
    assert "penalty" not in names or "l1_ratio" in names


@pytest.mark.parametrize("name", CALLABLES)
def test_options_go_by_their_names(name: str) -> None:
    """Data and what a call is about may go by their place, options may not."""
    free = [p.name for p in _parameters(CALLABLES[name]).values() if p.kind is not p.KEYWORD_ONLY]
    assert len(free) <= 5 and not {"fit_intercept", "tol", "sample_weight"} & set(free)
