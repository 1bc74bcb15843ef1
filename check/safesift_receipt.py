#!/usr/bin/env python3
"""Check a receipt: that a row is among the data of a statement, and what is asserted of it.

    python safesift_receipt.py receipt.json row.json [--root HEX]

row.json holds the row as its owner knows it: {"features": [...], "target": ..., "weight": 1.0} (and
"epsilon", where every row has its own). What is shown: the row is in the data behind the root that
the statement names, and the statement asserts these verdicts of it. That they are true is shown by
safesift_check with all data, not by this. Exit status: 0 shown, 1 not shown, 2 not readable.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from safesift_check import FORMAT, Unproved, binary, key, need, sha, whole


def climbed(node, place, count, path):
    """The root of a tree of `count` leaves, from a leaf and its partners on the way up."""
    partners, total = [bytes.fromhex(one) for one in path], count
    while count > 1:
        if place % 2 or place + 1 < count:
            partner = partners.pop(0)
            node = sha(b"\1", partner, node) if place % 2 else sha(b"\1", node, partner)
        place, count = place // 2, (count + 1) // 2
    need(not partners, "the path is too long")
    return sha(b"\2", FORMAT.encode(), whole(total), node).hex()


def leaf_of(receipt, statement, row):
    """The leaf of a row, from what its owner knows and the salt."""
    features = np.asarray(row["features"], dtype="<f8")
    need(features.shape == (statement["n_features"],), "the row has another number of features")
    cols = np.flatnonzero(features)
    own = [row.get("weight", 1.0)]
    own += [row["epsilon"]] if statement["columns"]["epsilon"] is not None else []
    labelled, target = statement["labels"] is not None, row["target"]
    target = key(target).encode() if labelled else binary(target)
    entries = [whole(len(cols), 4), cols.astype("<u4").tobytes(), binary(features[cols])]
    last = [binary(number) for number in own]
    place, salt = whole(receipt["slot"]), bytes.fromhex(receipt["salt"])
    return sha(b"\0", place, salt, *entries, whole(len(target), 4), target, *last)


def verify(receipt, row, root=None):
    """The verdicts that the statement asserts of a row; raises Unproved."""
    statement = json.loads(receipt["statement"])
    committed = statement["commitment"]
    need(root is None or root == committed["root"], "the statement is about other data")
    slot, slots = receipt["slot"], committed["slots"]
    need(0 <= slot < slots and 0 <= receipt["row"] < statement["n_samples"], "no such row")
    found = climbed(leaf_of(receipt, statement, row), slot, slots, receipt["path"])
    need(found == committed["root"], "the row is not in the data of the statement")
    verdicts = bytes(receipt["verdicts"])
    asserted = sha(b"\0", whole(receipt["row"]), verdicts)
    n, path = statement["n_samples"], receipt["verdict_path"]
    same = climbed(asserted, receipt["row"], n, path) == committed["verdicts"]
    need(same, "the statement asserts something else of this row")
    return list(verdicts)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("receipt")
    parser.add_argument("row")
    parser.add_argument("--root", help="of the data, as their owner has published it")
    args = parser.parse_args(arguments)
    try:
        receipt, row = (json.loads(Path(name).read_text()) for name in (args.receipt, args.row))
        verdicts = verify(receipt, row, args.root)
    except Unproved as error:
        print(f"NOT SHOWN: {error}")
        return 1
    except Exception as error:
        print(f"NOT READABLE: {type(error).__name__}: {error}")
        return 2
    words = ["nothing", "flat: of no influence", "quadratic piece", "linear piece"]
    print("IN THE DATA; asserted:", "; ".join(words[verdict] for verdict in verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
