"""What a data matrix is to the rest of the library: predictions, transposed products, their errors.

Everything above is written against `Design`; a new kind of matrix is one new class. Most have rows
that can be read in blocks, and derive from `design.rows.RowDesign`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.numerics import norm, row_blocks

Array = NDArray[np.float64]


class Design(ABC):
    """Rows a_i, n_samples of them, with a one at the end of each if `intercept`.

    Attributes `n_samples`, `n_features` (without the ones), `n_columns` (with them) and `intercept`
    describe the shape. A point has a number for each column.

    Attributes
    ----------
    row_norms : array of shape (n_samples,)
        Upper bounds on ‖a_i‖, the ones included, exact up to rounding. NaN or infinite where the
        row is, or where the squares overflow.
    dot_error : float
        |computed aᵢᵀx − exact| ≤ dot_error·‖aᵢ‖·size(x) + n_columns·UNDERFLOW.
    sum_error : float
        ‖computed Aᵀu − exact‖ ≤ sum_error·Σ|uᵢ|·‖aᵢ‖, and the same for plain sums over samples.
    remote : bool
        Whether rows, and all vectors over the samples, live on a device (`DeviceArray`).
    has_rows : bool
        Whether rows are vectors of numbers that can be read; functions of a kernel's space are not.
    """

    has_rows: bool = True
    remote: bool = False

    if TYPE_CHECKING:
        # fields of some designs, computed by others

        @property
        def n_samples(self) -> int: ...

        @property
        def n_features(self) -> int: ...

        @property
        def intercept(self) -> bool: ...

        @property
        def row_norms(self) -> Array: ...

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features, as of any matrix; the ones are not counted."""
        return self.n_samples, self.n_features

    def __repr__(self) -> str:
        more = " and an intercept" if self.intercept else ""
        return f"<{type(self).__name__}: {self.n_samples} × {self.n_features}{more}>"

    @property
    def n_columns(self) -> int:
        """Number of columns, the ones included."""
        return self.n_features + self.intercept

    @property
    @abstractmethod
    def dot_error(self) -> float:
        """Of predictions."""

    @property
    @abstractmethod
    def sum_error(self) -> float:
        """Of sums over the samples."""

    def fingerprint(self) -> bytes:
        """Tells these rows from others, in about the time of a product.

        Empty for a kind of matrix that cannot tell: it is taken to be as it was.
        """
        return b""

    def vector(self, values: Any) -> Any:
        """Numbers, one for each sample, where the rows are: as they came, unless on a device."""
        return values

    def zeros(self, *shape: int) -> Any:
        """Zeros where the rows are."""
        return np.zeros(shape)

    @property
    def sample_blocks(self) -> list[slice]:
        """The samples, in blocks that are looked at at a time."""
        return row_blocks(self.n_samples)

    def size(self, point: Array) -> float:
        """The norm of a point, or more, to which the rounding of its predictions is relative."""
        return norm(point)

    @abstractmethod
    def matvec(self, x: Array) -> Array:
        """A @ x for a vector, or for a matrix with few columns."""

    @abstractmethod
    def rmatvec(self, u: Array) -> Array:
        """Aᵀ @ u for a vector, or for a matrix with few columns."""

    @abstractmethod
    def pass_through(self, x: Array, dual: Callable[[Array, slice], Array]) -> tuple[Array, Array]:
        """The predictions A @ x and, in the same pass, Aᵀ @ dual(predictions, rows).

        x may be a vector, or a matrix with few columns.
        """
