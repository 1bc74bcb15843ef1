"""Products with single rows of a matrix, whatever holds them.

A matrix is a tuple of arrays: (array,) for a dense one in C or Fortran order, (array, rows) for
some rows of one, (data, indices, indptr) for a CSR matrix. Loops that are written with `row_dot`
and `row_add` are compiled for each.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

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


# --- rows that are not read yet ---------------------------------------------------------------

# entries to a cache line, and of how many the processor learns where a row leads
_LINE, _FAR_ENOUGH = 8, 128


@intrinsic
def _fetch_entry(typingctx, array, place):
    """Ask for the cache line of an entry; nothing is read, so that any place will do."""

    def codegen(context, builder, signature, arguments):
        entries = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(entries, [arguments[1]]), cgutils.voidptr_t)
        word, number = cgutils.voidptr_t, ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [word, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [word], kind)
        # to be read, into the nearest cache, not of the program
        builder.call(prefetch, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


def fetch(matrix, i):
    """Ask for a_i some time before it is needed: rows in random order are far from each other."""
    raise NotImplementedError


@overload(fetch, jit_options=OPTIONS)
def _fetch(matrix, i):
    if _by_columns(matrix):
        return lambda matrix, i: None

    if len(matrix) <= 2:

        def dense(matrix, i):
            entries = row(matrix, i)
            for j in range(0, min(len(entries), _FAR_ENOUGH), _LINE):
                _fetch_entry(entries, j)

        return dense

    def csr(matrix, i):
        data, indices, indptr = matrix
        start = indptr[i]
        stop = min(indptr[i + 1], start + _FAR_ENOUGH)
        for entry in range(start, stop, _LINE):
            _fetch_entry(data, entry)
            _fetch_entry(indices, entry)

    return csr


# --- blocks of rows ---------------------------------------------------------------------------


def rows_dot(matrix, rows, x, out):
    """out = (rows of the matrix) @ x."""
    raise NotImplementedError


def rows_add(matrix, rows, scales, x):
    """x += (rows of the matrix)ᵀ @ scales."""
    raise NotImplementedError


def _by_columns(matrix):
    return len(matrix) == 1 and matrix[0].layout == "F"


@overload(rows_dot, jit_options=OPTIONS)
def _rows_dot(matrix, rows, x, out):
    if _by_columns(matrix):

        def columns(matrix, rows, x, out):
            out[:] = 0.0
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
    if _by_columns(matrix):

        def columns(matrix, rows, scales, x):
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
