#!/usr/bin/env python3
"""Check a receipt: that a row is among the data of a statement, and what is asserted of it.

    python safesift_receipt.py receipt.json row.json [--root HEX] [--statement HEX]

row.json holds the row as its owner knows it: {"features": [...], "target": ..., "weight": 1.0} (and
"epsilon", where every row has its own). What is shown: the row is in the data behind the root that
the statement names, and the statement asserts these verdicts of it. That they are true is shown by
safesift_root with all data, not by this: it prints the hash of the statement that it has accepted,
which --statement compares. Without --root and --statement nothing is shown to somebody who does
not trust the receipt, since anybody can make a statement; what was not compared is printed. Exit
status: 0 shown, 1 not shown, 2 not readable.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from safesift_check import FORMAT, Unproved, need, readable, understood
from safesift_root import binary, leaf, sha, whole
from safesift_tables import key


def climbed(node, place, count, path):
    """The root of a tree of `count` leaves, from a leaf and its partners on the way up."""
    partners, total = [bytes.fromhex(one) for one in path], count
    while count > 1:
        if place % 2 or place + 1 < count:
            need(len(partners) > 0, "the path is too short")
            partner = partners.pop(0)
            node = sha(b"\1", partner, node) if place % 2 else sha(b"\1", node, partner)
        place, count = place // 2, (count + 1) // 2
    need(len(partners) == 0, "the path is too long")
    return sha(b"\2", FORMAT.encode(), whole(total), node).hex()


def leaf_of(receipt, statement, row):
    """The leaf of a row, from what its owner knows and the salt.

    A salt of another length could hold the first bytes of another row, or lack some of its own.
    """
    salt = bytes.fromhex(receipt["salt"])
    need(len(salt) == 32, "the salt is none")
    features = np.asarray(row["features"], dtype="<f8")
    need(features.shape == (statement["n_features"],), "the row has another number of features")
    own = [row.get("weight", 1.0)]
    own += [row["epsilon"]] if statement["epsilons"] is not None else []
    labelled, target = statement["labels"] is not None, row["target"]
    target = key(target).encode() if labelled else binary(target)
    return leaf(receipt["slot"], salt, features, target, own)


def verify(receipt, row, root=None, digest=None):
    """The verdicts that the statement asserts of a row; raises Unproved."""
    text = receipt["statement"]
    statement = understood(text)
    n, slots = statement["n_samples"], statement["slots"]
    need(root in (None, statement["root"]), "the statement is about other data")
    said = hashlib.sha256(text.encode()).hexdigest()
    need(digest in (None, said), "this is another statement")
    slot, place, verdicts = (receipt[name] for name in ("slot", "row", "verdicts"))
    readable(
        [type(one) is int for one in (slot, place, slots, *verdicts)], "places or verdicts are none"
    )
    readable({*verdicts} <= {0, 1, 2, 3}, "verdicts are none")
    need(0 <= slot < slots and 0 <= place < n, "no such row")
    found = climbed(leaf_of(receipt, statement, row), slot, slots, receipt["path"])
    need(found == statement["root"], "the row is not in the data of the statement")
    # the slot is in both leaves: what is asserted is asserted of this row
    asserted = sha(b"\0", whole(slot), bytes(verdicts))
    same = climbed(asserted, place, n, receipt["verdict_path"]) == statement["verdicts"]
    need(same, "the statement asserts something else of this row")
    return verdicts


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("receipt")
    parser.add_argument("row")
    parser.add_argument("--root", help="of the data, as their owner has published it")
    parser.add_argument("--statement", help="the hash of the statement that was checked")
    args = parser.parse_args(arguments)
    try:
        receipt, row = (json.loads(Path(name).read_text()) for name in (args.receipt, args.row))
        verdicts = verify(receipt, row, args.root, args.statement)
    except Unproved as error:
        print(f"NOT SHOWN: {error}")
        return 1
    except Exception as error:
        print(f"NOT READABLE: {type(error).__name__}: {error}")
        return 2
    words = ["nothing", "flat: of no influence", "quadratic piece", "linear piece"]
    print("IN THE DATA; asserted:", "; ".join(words[verdict] for verdict in verdicts))
    # a receipt with a statement of its own shows anything
    for name, given in (("root", args.root), ("statement", args.statement)):
        if given is None:
            print(f"not compared: the {name}, give --{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
