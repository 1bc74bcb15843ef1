"""What a level costs, in passes over the data: by this a solver is chosen.

The numbers were measured, and are measured again by `benchmarks/costs.py`. What a fit costs however
small its data are, some ten milliseconds, is not counted.
"""

from __future__ import annotations

from safesift.design import RowDesign, SparseDesign
from safesift.problem.problem import Problem

# so many products of a matrix product take the time of visiting an entry
PRODUCTS_PER_ENTRY = 10
# rows that are stored as sparse ones: how many times as long it takes to visit an entry, and to add
# a product of two of them to a matrix
_SPARSE_ENTRY, _SPARSE_PRODUCT = 2.7, 16.0
# beyond this many columns a Gram matrix costs too much
LARGEST = 5000
# rows with less than this share of the columns are those of texts, categories, ...
_FEW_ENTRIES = 0.1
# a pass over fewer entries costs no less, with what belongs to it
_FEWEST = 1e6
# levels of a path that make what serves all of them worth its price
LONG_PATH = 4


def mean_row_length(design: RowDesign) -> float:
    """How many entries a row has."""
    return max(design.n_entries / max(design.n_samples, 1), 1.0)


def mostly_zeros(design: RowDesign) -> bool:
    """Whether rows share few columns, as those of texts do."""
    return mean_row_length(design) < _FEW_ENTRIES * design.n_columns


def passes_of_products(design: RowDesign) -> float:
    """How many passes take the time of the products of a Gram matrix."""
    products = design.n_samples * mean_row_length(design) ** 2 / 2
    if isinstance(design, SparseDesign):
        products *= _SPARSE_PRODUCT
    return products / PRODUCTS_PER_ENTRY / _entries(design)


def passes_of_factors(design: RowDesign, n_factors: int) -> float:
    """How many passes take the time of so many Cholesky factors."""
    return n_factors * design.n_columns**3 / 3 / PRODUCTS_PER_ENTRY / _entries(design)


def passes_of_a_gram(design: RowDesign, n_factors: int = 1) -> int:
    """How many passes take the time of a Gram matrix that is factored so many times."""
    return max(int(passes_of_products(design) + passes_of_factors(design, n_factors)), 1)


def _entries(design: RowDesign) -> float:
    """How many entries of dense rows a pass seems to visit: of few, other work takes longer."""
    times = _SPARSE_ENTRY if isinstance(design, SparseDesign) else 1.0
    return max(times * design.n_samples * mean_row_length(design), _FEWEST)


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


def nearly_all_curve(problem: Problem) -> bool:
    """Whether rows far to either side curve as much, so that nearly all do wherever one is."""
    return problem.loss.quadratic_rays and problem.loss.task != "classification"
