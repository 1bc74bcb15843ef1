"""Files with wrong bytes: whatever they make of the checker, it ends, with a status, in bounds.

python -m tests.laws.proof_corruption proof.npz data.npz 10000 [seed]
"""

from __future__ import annotations

import collections
import contextlib
import io
import os
import resource
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import safesift_check


def corrupt(proof: str, data: str, times: int, seed: int = 0) -> collections.Counter:
    """How often which status comes out for files with some bytes changed, lost or doubled."""
    whole, rng, counts = (
        Path(proof).read_bytes(),
        np.random.default_rng(seed),
        collections.Counter(),
    )
    handle, name = tempfile.mkstemp(suffix=".npz")
    os.close(handle)
    for _ in range(times):
        Path(name).write_bytes(_changed(whole, rng))
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            counts[safesift_check.main([name, data])] += 1
    Path(name).unlink()
    return counts


def _changed(whole: bytes, rng) -> bytes:
    content = bytearray(whole)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(content)))
        kind = rng.integers(4)
        if kind == 0:
            content[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            content[place] = int(rng.integers(256))
        elif kind == 2:
            del content[place : place + int(rng.integers(1, 50))]
        else:
            content[place:place] = content[place : place + int(rng.integers(1, 50))]
        if not content:
            break
    return bytes(content)


if __name__ == "__main__":
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = corrupt(sys.argv[1], sys.argv[2], int(sys.argv[3]), int([*sys.argv, 0][4]))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(dict(found), f"{grown:.0f} MB more than before")
    sys.exit(grown > 200)
