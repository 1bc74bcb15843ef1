"""Products with single rows of a matrix, whatever holds them.

A matrix is a tuple of arrays: (array,) for a dense one in C or Fortran order, (array, rows) for
some rows of one, (data, indices, indptr) for a CSR matrix. Loops that are written with `row_dot`
and `row_add` are compiled for each.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload

# sums may be reordered, which the error bounds of designs allow; NaN and infinity stay
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
inlined = njit(**OPTIONS)
# an index that is known not to be negative need not be tested for counting from the end
index = np.uint64


def row(matrix, i):
    """a_i of a dense matrix."""
    raise NotImplementedError


@overload(row, jit_options=OPTIONS)
def _row(matrix, i):
    if len(matrix) == 1:
        return lambda matrix, i: matrix[0][i]
    return lambda matrix, i: matrix[0][matrix[1][i]]


def row_dot(matrix, i, x):
    """a_iᵀx."""
    raise NotImplementedError


def row_add(matrix, i, scale, x):
    """x += scale·a_i."""
    raise NotImplementedError


@overload(row_dot, jit_options=OPTIONS)
def _row_dot(matrix, i, x):
    if len(matrix) <= 2:

        def dense(matrix, i, x):
            entries = row(matrix, i)
            value = 0.0
            for j in range(len(entries)):
                value += entries[j] * x[j]
            return value

        return dense

    def csr(matrix, i, x):
        data, indices, indptr = matrix
        value = 0.0
        for entry in range(index(indptr[i]), index(indptr[i + 1])):
            value += data[entry] * x[index(indices[entry])]
        return value

    return csr


@overload(row_add, jit_options=OPTIONS)
def _row_add(matrix, i, scale, x):
    if len(matrix) <= 2:

        def dense(matrix, i, scale, x):
            entries = row(matrix, i)
            for j in range(len(entries)):
                x[j] += scale * entries[j]

        return dense

    def csr(matrix, i, scale, x):
        data, indices, indptr = matrix
        for entry in range(index(indptr[i]), index(indptr[i + 1])):
            x[index(indices[entry])] += scale * data[entry]

    return csr


# --- blocks of rows ---------------------------------------------------------------------------


def rows_dot(matrix, rows, x, out):
    """out = (rows of the matrix) @ x."""
    raise NotImplementedError


def rows_add(matrix, rows, scales, x):
    """x += (rows of the matrix)ᵀ @ scales."""
    raise NotImplementedError


def by_columns(matrix):
    return len(matrix) == 1 and matrix[0].layout == "F"


def skips(matrix):
    """Whether leaving rows out spares time: contiguous columns are read from end to end."""
    raise NotImplementedError


@overload(skips, jit_options=OPTIONS)
def _skips(matrix):
    if by_columns(matrix):
        return lambda matrix: False
    return lambda matrix: True


@inlined
def packed(matrix, rows, loads):
    """Move rows with loads to the front, if that spares time; how many are to be read."""
    if not skips(matrix):
        return len(rows)
    n_left = 0
    for k in range(len(rows)):
        if loads[k] != 0.0:
            loads[n_left], rows[n_left] = loads[k], rows[k]
            n_left += 1
    return n_left


@inlined
def _in_a_row(rows):
    """Whether each row is the one behind the last."""
    for k in range(1, len(rows)):
        if rows[k] != rows[k - 1] + 1:
            return False
    return len(rows) > 0


@inlined
def _add_columns(columns, first, last, scales, out):
    """out += Σ scales_j·(entries first to last of column j), four columns at a time."""
    p = len(scales)
    for j in range(0, p - 3, 4):
        a, b = columns[j][first:last], columns[j + 1][first:last]
        c, d = columns[j + 2][first:last], columns[j + 3][first:last]
        q, r, s, t = scales[j], scales[j + 1], scales[j + 2], scales[j + 3]
        for k in range(len(out)):
            out[k] += q * a[k] + r * b[k] + s * c[k] + t * d[k]
    for j in range(p - p % 4, p):
        rest, scale = columns[j][first:last], scales[j]
        for k in range(len(out)):
            out[k] += scale * rest[k]


@inlined
def _dot_columns(columns, first, last, u, x):
    """x_j += uᵀ(entries first to last of column j), four columns at a time."""
    p = len(x)
    for j in range(0, p - 3, 4):
        a, b = columns[j][first:last], columns[j + 1][first:last]
        c, d = columns[j + 2][first:last], columns[j + 3][first:last]
        q = r = s = t = 0.0
        for k in range(len(u)):
            q += u[k] * a[k]
            r += u[k] * b[k]
            s += u[k] * c[k]
            t += u[k] * d[k]
        x[j] += q
        x[j + 1] += r
        x[j + 2] += s
        x[j + 3] += t
    for j in range(p - p % 4, p):
        rest, q = columns[j][first:last], 0.0
        for k in range(len(u)):
            q += u[k] * rest[k]
        x[j] += q


@overload(rows_dot, jit_options=OPTIONS)
def _rows_dot(matrix, rows, x, out):
    if by_columns(matrix):

        def columns(matrix, rows, x, out):
            out[:] = 0.0
            if _in_a_row(rows):
                _add_columns(matrix[0].T, rows[0], rows[-1] + 1, x, out)
                return
            for j in range(len(x)):
                column, scale = matrix[0][:, j], x[j]
                for k in range(len(rows)):
                    out[k] += scale * column[rows[k]]

        return columns

    def each_row(matrix, rows, x, out):
        for k in range(len(rows)):
            out[k] = row_dot(matrix, rows[k], x)

    return each_row


@overload(rows_add, jit_options=OPTIONS)
def _rows_add(matrix, rows, scales, x):
    if by_columns(matrix):

        def columns(matrix, rows, scales, x):
            if _in_a_row(rows):
                _dot_columns(matrix[0].T, rows[0], rows[-1] + 1, scales, x)
                return
            for j in range(len(x)):
                column, value = matrix[0][:, j], 0.0
                for k in range(len(rows)):
                    value += scales[k] * column[rows[k]]
                x[j] += value

        return columns

    if len(matrix) <= 2:

        def four_at_a_time(matrix, rows, scales, x):
            n = len(rows)
            for k in range(0, n - 3, 4):
                a, b = row(matrix, rows[k]), row(matrix, rows[k + 1])
                c, d = row(matrix, rows[k + 2]), row(matrix, rows[k + 3])
                p, q, r, s = scales[k], scales[k + 1], scales[k + 2], scales[k + 3]
                for j in range(len(x)):
                    x[j] += p * a[j] + q * b[j] + r * c[j] + s * d[j]
            for k in range(n - n % 4, n):
                row_add(matrix, rows[k], scales[k], x)

        return four_at_a_time

    def each_row(matrix, rows, scales, x):
        for k in range(len(rows)):
            row_add(matrix, rows[k], scales[k], x)

    return each_row
