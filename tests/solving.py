"""Solvers by their names, for tests of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from safesift.problem.problem import Problem
from safesift.solvers import Fit, Settings, solve, solve_path

Path = Callable[..., Iterator[list[Fit]]]


def by(name: str) -> Path:
    """`solve_path` by one solver."""

    def path(levels: Sequence[Sequence[Problem]], settings: Settings, starts: Any = None) -> Any:
        return solve_path(levels, replace(settings, solver=name), starts)

    return path


newton_path, sparse_newton, newton_cg = by("newton"), by("sparse_newton"), by("newton_cg")
dual_descent, relay, multiplier_path = by("dual_descent"), by("relay"), by("multiplier")


def newton(problem: Problem, *, tol: float, max_iter: int = 100, start: Any = None) -> Fit:
    """One problem by Newton's method, from the best constant model, every step on all rows."""
    start = problem.constant_point if start is None else start
    return solve(problem, tol=tol, max_iter=max_iter, start=start, solver="newton")
