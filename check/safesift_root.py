#!/usr/bin/env python3
"""Check a proof, that the data are those of its root, and that exactly what was removed is gone.

    python safesift_root.py proof.npz data.npz --seed proof.npz.seed [--exact] [--expect ...]

The statement of a proof names the roots of two hash trees, over the rows and over what is asserted
of them. Whoever has the data and the seed of the salts can recompute them, and that is what is done
here, after safesift_check has accepted the proof. Then the hash of the statement is printed, which
safesift_receipt compares. For a deletion the root before it is recomputed as well, with the leaves
that were removed. Exit status: 0 proved, 1 not proved, 2 not readable.

    leaf = H(0x00 ‖ slot ‖ salt ‖ row ‖ target ‖ weight ‖ epsilon), H = SHA-256; salt = H(seed ‖
           slot); the row as its entries other than 0; numbers are little-endian, −0 is 0; a
           deleted row leaves H(0x03 ‖ slot) in its slot; of verdicts H(0x00 ‖ slot ‖ verdicts);
    node = H(0x01 ‖ left ‖ right), one without a partner goes up as it is;
    root = H(0x02 ‖ format ‖ number of leaves ‖ top).
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

import numpy as np

import safesift_check
from safesift_check import FORMAT, doubles, need, readable
from safesift_tables import key


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def whole(number, size=8):
    return int(number).to_bytes(size, "little")


def root_of(nodes):
    count = len(nodes)
    while len(nodes) > 1:
        pairs = [sha(b"\1", *nodes[i : i + 2]) for i in range(0, len(nodes) - 1, 2)]
        nodes = pairs + nodes[2 * len(pairs) :]
    return sha(b"\2", FORMAT.encode(), whole(count), *nodes).hex()


def slots_of(n, absent):
    """The places of the rows in the tree over the data; rows that were removed left theirs."""
    slots = np.setdiff1d(np.arange(n + len(absent)), absent.astype(np.int64))
    need(len(slots) == n, "slots and rows do not fit")
    return slots


def binary(values):
    return (np.asarray(values, "<f8") + 0.0).tobytes()


def leaf(slot, salt, row, target, more):
    """Of a row with its target as bytes; `more` are its weight and its own epsilon."""
    cols = np.flatnonzero(row)
    entries = [whole(len(cols), 4), cols.astype("<u4").tobytes(), binary(row[cols])]
    own = [binary(one) for one in more]
    return sha(b"\0", whole(slot), salt, *entries, whole(len(target), 4), target, *own)


def gone(slot):
    """What a deleted row leaves behind."""
    return sha(b"\3", whole(slot))


def verdict_leaves(verdicts, slots):
    """The leaves of what is asserted of rows; the slot says of which."""
    pairs = zip(slots, verdicts, strict=True)
    return [sha(b"\0", whole(slot), row.tobytes()) for slot, row in pairs]


def data_leaves(data, statement, slots, seed):
    """The leaves of the rows there are, by their slots."""
    labelled = statement["labels"] is not None
    target = data.target[:, 0].tolist() if labelled else doubles(data.target)
    extra = [data.weights] + [data.epsilon] * (statement["epsilons"] is not None)
    for rows, cols, matrix in data.blocks():
        for entries, i in zip(matrix, range(rows.start, rows.stop), strict=True):
            row = np.zeros(data.p + 1)
            row[cols] = entries
            own = key(target[i]).encode() if labelled else binary(target[i])
            salt, more = sha(seed, whole(slots[i])), [one[i] for one in extra]
            yield leaf(slots[i], salt, row[: data.p], own, more)


def check_roots(statement, arrays, data, verdicts, seed):
    """The data are those of the root, and exactly what was removed is missing; in words."""
    root, slots = statement["root"], statement["slots"]
    absent, removed, leaves = (arrays[name] for name in ("absent", "removed", "removed_leaves"))
    readable(slots == data.n + len(absent), "slots and rows do not fit")
    here = slots_of(data.n, absent)
    asserted = root_of(verdict_leaves(np.stack(verdicts, axis=1), here))
    need(asserted == statement["verdicts"], "the verdicts have another root")
    tree = [gone(slot) for slot in range(slots)]
    for slot, one in zip(here, data_leaves(data, statement, here, seed), strict=True):
        tree[slot] = one
    need(root_of(tree) == root, "the data are not those of the root")
    yield f"statement {hashlib.sha256(arrays['statement'].tobytes()).hexdigest()}"
    yield f"the data are those of the root {root}"
    before, old = statement["root_before"], statement["slots_before"]
    readable(before is not None or len(removed) + len(leaves) == 0, "nothing was removed")
    if before is not None:
        need(0 < old <= slots, "there were other slots")
        need(len(np.unique(removed)) == len(removed) > 0, "no row was removed, or one twice")
        need(np.isin(removed, absent) & (removed < old), "a removed row is still there")
        readable(len(leaves) == 32 * len(removed), "leaves of removed rows are missing")
        for slot, one in zip(removed, leaves.reshape(-1, 32), strict=True):
            need(one.tobytes() != gone(slot), "a removed row was gone before")
            tree[int(slot)] = one.tobytes()
        need(root_of(tree[:old]) == before, "more or less is missing than was removed")
        yield f"{len(removed)} rows and no others are missing of those of the root {before}"
        yield f"{slots - old} rows are new since then, whatever they hold"


def check(seed, *given):
    proof, data, verdicts, lines = safesift_check.check(*given)
    return [*lines, *check_roots(*proof, data, verdicts, seed)]


def seed_of(path):
    """The bytes of a seed, written in hexadecimal."""
    return bytes.fromhex(Path(path).read_text(encoding="utf-8").strip())


def main(arguments=None):
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--seed", required=True, help="the file of the seed")
    own, rest = parser.parse_known_args(arguments)
    return safesift_check.main(rest, lambda *given: [check(seed_of(own.seed), *given)])


if __name__ == "__main__":
    sys.exit(main())
