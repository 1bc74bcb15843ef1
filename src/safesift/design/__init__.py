"""The data matrix, whoever holds it.

Everything else in the library is written against the operations of `Design`; a new kind of matrix
is one new file here.
"""

from safesift.design.base import Design
from safesift.design.dense import DenseDesign
from safesift.design.factory import as_design
from safesift.design.sparse import SparseDesign

__all__ = ["DenseDesign", "Design", "SparseDesign", "as_design"]
