#!/usr/bin/env python3
"""Check a proof, that the data are those of its root, and that exactly what was removed is gone.

    python safesift_root.py proof.npz data.npz --seed proof.npz.seed [--exact] [--expect ...]

The statement of a proof names the root of a hash tree over the rows. Whoever has the data and the
seed of the salts can recompute it, and that is what is done here, after safesift_check has accepted
the proof. For a deletion the root before it is recomputed as well, with the leaves that were
removed. Exit status: 0 proved, 1 not proved, 2 not readable.

    leaf = H(0x00 ‖ slot ‖ salt ‖ row ‖ target ‖ weight ‖ epsilon), H = SHA-256; salt = H(seed ‖
           slot); the row as its entries other than 0; numbers are little-endian, −0 is 0; a
           deleted row leaves H(0x03 ‖ slot) in its slot. Nodes and roots as in safesift_check.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import safesift_check
from safesift_check import dense, key, need, numbers, readable, root_of, sha, slots_of, whole


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


def data_leaves(data, labels, slots, seed):
    """The leaves of the rows there are, by their slots."""
    target = numbers(data.target) if labels is None else data.target.tolist()
    extra = [data.weights] + [data.epsilon] * np.ndim(data.epsilon)
    for rows, matrix in data.blocks():
        for row, i in zip(dense(matrix), range(rows.start, rows.stop), strict=True):
            own = key(target[i]).encode() if labels else binary(target[i])
            salt, more = sha(seed, whole(slots[i])), [one[i] for one in extra]
            yield leaf(slots[i], salt, row[: data.p].astype(float), own, more)


def check_roots(statement, arrays, data, seed):
    """The data are those of the root, and exactly what was removed is missing; in words."""
    root, slots = statement["commitment"]["root"], statement["commitment"]["slots"]
    absent, removed, leaves = (arrays[name] for name in ("absent", "removed", "removed_leaves"))
    readable(slots == data.n + len(absent), "slots and rows do not fit")
    here = slots_of(data.n, absent)
    tree = [gone(slot) for slot in range(slots)]
    for slot, one in zip(here, data_leaves(data, statement["labels"], here, seed), strict=True):
        tree[slot] = one
    need(root_of(tree) == root, "the data are not those of the root")
    yield f"the data are those of the root {root}"
    before = statement["deletion"]
    readable(before is not None or len(removed) + len(leaves) == 0, "nothing was removed")
    if before is not None:
        need(0 < before["slots"] <= slots, "there were other slots")
        need(len(np.unique(removed)) == len(removed) > 0, "no row was removed, or one twice")
        need(np.isin(removed, absent) & (removed < before["slots"]), "a removed row is still there")
        readable(len(leaves) == 32 * len(removed), "leaves of removed rows are missing")
        for slot, one in zip(removed, leaves.reshape(-1, 32), strict=True):
            need(one.tobytes() != gone(slot), "a removed row was gone before")
            tree[int(slot)] = one.tobytes()
        same = root_of(tree[: before["slots"]]) == before["root"]
        need(same, "more or less is missing than was removed")
        yield f"{len(removed)} rows and no others are missing of those of the root {before['root']}"
        yield f"{slots - before['slots']} rows are new since then, whatever they hold"


def check(seed, *given):
    proof, data, lines = safesift_check.check(*given)
    return [*lines, *check_roots(*proof, data, seed)]


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
