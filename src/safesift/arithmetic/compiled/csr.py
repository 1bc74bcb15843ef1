"""Products with some rows of a CSR matrix, in float64 whatever the type of its entries.

Row i of the result belongs to row `rows[i]` of the matrix, whose entries are found at
`indptr[rows[i]] - offset` and on: `data` and `indices` may hold a part of the matrix only.
"""

from __future__ import annotations

import numpy as np

from safesift.arithmetic.compiled.caching import cached_njit

_compiled = cached_njit(nogil=True)
# a sum may be reordered, which the error bounds of a design allow; NaN and infinity stay
_reordered = cached_njit(nogil=True, fastmath={"reassoc", "contract"})

# an index that is known not to be negative need not be tested for counting from the end
_index = np.uint64


@_reordered
def dot(data, indices, indptr, offset, rows, x, out):
    """out = A @ x for a vector."""
    for i in range(len(rows)):
        row = rows[i]
        value = 0.0
        for entry in range(_index(indptr[row] - offset), _index(indptr[row + 1] - offset)):
            value += data[entry] * x[_index(indices[entry])]
        out[i] = value


@_compiled
def dot_many(data, indices, indptr, offset, rows, x, out):
    """out = A @ x for a matrix."""
    for i in range(len(rows)):
        row, target = rows[i], out[i]
        target[:] = 0.0
        for entry in range(_index(indptr[row] - offset), _index(indptr[row + 1] - offset)):
            value, source = data[entry], x[_index(indices[entry])]
            for j in range(len(target)):
                target[j] += value * source[j]


@_reordered
def projected_sq(data, indices, indptr, offset, rows, x, begins, ones, weights, out):
    """out = Σ_j weights_j (a_iᵀx_j + ones_j)², where row c of x is 0 before begins[c].

    `ones` is what the column of ones, which is not stored, has in x; 0 where there is none.
    """
    target = np.empty(x.shape[1])
    for i in range(len(rows)):
        row = rows[i]
        target[:] = ones
        for entry in range(_index(indptr[row] - offset), _index(indptr[row + 1] - offset)):
            value, column = data[entry], _index(indices[entry])
            source = x[column]
            for j in range(begins[column], len(target)):
                target[j] += value * source[j]
        square = 0.0
        for j in range(len(target)):
            square += weights[j] * target[j] * target[j]
        out[i] = square


@_compiled
def add_transposed(data, indices, indptr, offset, rows, u, out):
    """out += Aᵀ @ u for a vector. Rows with u = 0 are not read."""
    for i in range(len(rows)):
        load = u[i]
        if load != 0.0:
            row = rows[i]
            for entry in range(_index(indptr[row] - offset), _index(indptr[row + 1] - offset)):
                out[_index(indices[entry])] += data[entry] * load


@_compiled
def add_transposed_many(data, indices, indptr, offset, rows, u, out):
    """out += Aᵀ @ u for a matrix. Rows with u = 0 are not read."""
    for i in range(len(rows)):
        row, source = rows[i], u[i]
        if not source.any():
            continue
        for entry in range(_index(indptr[row] - offset), _index(indptr[row + 1] - offset)):
            value, target = data[entry], out[_index(indices[entry])]
            for j in range(len(source)):
                target[j] += value * source[j]


@_reordered
def norms_sq(data, indices, indptr, offset, rows, out):
    """out = ‖a_i‖²."""
    for i in range(len(rows)):
        row = rows[i]
        value = 0.0
        for entry in range(_index(indptr[row] - offset), _index(indptr[row + 1] - offset)):
            size = np.float64(data[entry])
            value += size * size
        out[i] = value


@_compiled
def add_gram(data, indices, indptr, offset, rows, weights, stripe, n_stripes, out):
    """out += Σ weights_i a_i a_iᵀ, each pair of entries of a row once, at its earlier column.

    Only the rows stripe, stripe + n_stripes, … of `out` are written, so that several threads may
    share it; n_stripes is a power of two. The Gram matrix is out + outᵀ with the diagonal counted
    once.
    """
    for i in range(len(rows)):
        row = rows[i]
        stop = _index(indptr[row + 1] - offset)
        for first in range(_index(indptr[row] - offset), stop):
            column = indices[first]
            if column & (n_stripes - 1) == stripe:
                scaled = weights[i] * data[first]
                target = out[column]
                for second in range(first, stop):
                    target[_index(indices[second])] += scaled * data[second]


@_compiled
def add_products(
    data, indices, indptr, offset, rows, weights, places, ones, stripe, n_stripes, out
):  # fmt: skip
    """out_k += Σ weights_i a_ij a_i where column j has the place k, and not −1.

    With `ones`, a_i ends with a one that is not stored. Stripes are those of `add_gram`.
    """
    for i in range(len(rows)):
        row = rows[i]
        start, stop = _index(indptr[row] - offset), _index(indptr[row + 1] - offset)
        for first in range(start, stop):
            place = places[_index(indices[first])]
            if place >= 0 and place & (n_stripes - 1) == stripe:
                scaled = weights[i] * data[first]
                target = out[place]
                for second in range(start, stop):
                    target[_index(indices[second])] += scaled * data[second]
                if ones:
                    target[-1] += scaled


@_compiled
def count_entries(indices, indptr, first, last, place, counts):
    """counts_i = how many entries of row i, first to last, are in columns with a place (not -1)."""
    for i in range(first, last):
        n = 0
        for entry in range(_index(indptr[i]), _index(indptr[i + 1])):
            n += place[_index(indices[entry])] >= 0
        counts[i] = n


@_compiled
def take_entries(data, indices, indptr, first, last, place, starts, out_data, out_indices):
    """The same entries, with their places for columns, from starts_i on for row i.

    Every entry is written to where the next one belongs, and stays if it has a place: whether it
    has cannot be guessed, and a wrong guess takes longer.
    """
    for i in range(first, last):
        at, stop = starts[i], starts[i + 1]
        for entry in range(_index(indptr[i]), _index(indptr[i + 1])):
            if at == stop:
                break
            column = place[_index(indices[entry])]
            out_data[at], out_indices[at] = data[entry], column
            at += column >= 0


@_compiled
def count_columns(indices, indptr, first, last, counts):
    """counts_j += how many entries the rows first to last have in column j."""
    for entry in range(_index(indptr[first]), _index(indptr[last])):
        counts[_index(indices[entry])] += 1


@_compiled
def sort_entries(data, indices, indptr, first, last, places, out_data, out_rows):
    """Write the entries of the rows first to last by columns, from places_j on for column j.

    `places` is changed.
    """
    for i in range(first, last):
        for entry in range(_index(indptr[i]), _index(indptr[i + 1])):
            column = _index(indices[entry])
            place = _index(places[column])
            out_data[place], out_rows[place] = data[entry], i
            places[column] += 1
