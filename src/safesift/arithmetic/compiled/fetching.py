"""Rows that are asked for before they are read, so that they are in the cache by then."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from safesift.arithmetic.compiled.rows import OPTIONS, by_columns, row

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
    if by_columns(matrix):
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
