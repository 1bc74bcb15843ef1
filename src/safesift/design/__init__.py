"""The data matrix, whoever holds it.

Everything else in the library is written against the operations of `Design`. To add a kind of
matrix, subclass `RowDesign` (a frozen dataclass with a field `intercept`) and say how its rows are
read in blocks; an object of it goes wherever a matrix X does (`as_design`), nothing is registered.
"""

from safesift.design.base import Design
from safesift.design.dense import DenseDesign
from safesift.design.factory import as_design
from safesift.design.rows import RowDesign
from safesift.design.sparse import SparseDesign

__all__ = ["DenseDesign", "Design", "RowDesign", "SparseDesign", "as_design"]
