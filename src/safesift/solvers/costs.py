"""What matrices cost, in passes over the data: how long cheaper steps are worth trying."""

from __future__ import annotations

from safesift.design import RowDesign
from safesift.problem.problem import Problem

# so many products of a matrix product take the time of visiting an entry
PRODUCTS_PER_ENTRY = 10
# beyond this many columns a Gram matrix costs too much
LARGEST = 5000


def mean_row_length(design: RowDesign) -> float:
    """How many entries a row has."""
    return max(design.n_entries / max(design.n_samples, 1), 1.0)


def passes_of_a_gram(design: RowDesign, n_factors: int = 1) -> int:
    """How many passes take the time of a Gram matrix that is factored so many times."""
    length, p = mean_row_length(design), design.n_columns
    factors = n_factors * p**3 / 3 / max(design.n_samples * length, 1.0)
    return max(int((length / 2 + factors) / PRODUCTS_PER_ENTRY), 1)


def too_wide(problem: Problem) -> str:
    """Why no Gram matrix is made for a problem; empty where one is."""
    if not problem.design.has_rows:
        return "it works with rows, not with a kernel"
    if problem.design.n_columns > LARGEST:
        return (
            f"X has {problem.design.n_features} features, and it works with at most {LARGEST} "
            "columns"
        )
    return ""
