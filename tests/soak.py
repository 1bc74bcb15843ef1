"""Very many planted problems through the curvature regions, on all cores.

    python -m tests.soak [--problems 100000] [--seed 0]

Each problem has an optimum that is known exactly (tests/laws/planted.py). Prints how many were
tried and how many samples were decided; ends with status 1 if a single one was decided wrongly.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from functools import partial

# one thread per process: the problems are tiny
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from safesift import regions
from tests.laws import planted, planted_laws

CHUNK = 200
REGIONS = (
    regions.Curvature(),
    regions.Curvature(),
    regions.Curvature(sharpen=False),
    regions.Curvature(rank=1),
    regions.Curvature(rank=3),
)


def draw(rng: np.random.Generator) -> tuple:
    """The setting of one problem, and the region to try on it (None for a range of alphas)."""
    setting = (
        int(rng.integers(2**32)),
        rng.choice(planted.CURVED).item(),
        rng.choice(planted.PENALTIES).item(),
        rng.choice(planted.FAMILIES).item(),
        bool(rng.integers(2)),
    )
    return setting, None if rng.random() < 0.15 else REGIONS[rng.integers(len(REGIONS))]


def run_chunk(seed: int, chunk: int) -> list[str]:
    """What went wrong in one chunk."""
    rng = np.random.default_rng([seed, chunk])
    wrong = []
    for _ in range(CHUNK):
        setting, region = draw(rng)
        try:
            if region is None:
                below, above = rng.random(2)
                planted_laws.law_planted_optimum_in_a_range(*setting, below=below, above=above)
            else:
                planted_laws.law_planted_optimum(*setting, region=region)
        except Exception:
            wrong.append(f"{setting} {region!r}\n{traceback.format_exc(limit=-2)}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    start, chunks = time.perf_counter(), -(-args.problems // CHUNK)
    wrong = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for done, found in enumerate(pool.map(partial(run_chunk, args.seed), range(chunks)), 1):
            wrong += found
            if found or done % 50 == 0:
                print(*found, f"{done * CHUNK} problems, {len(wrong)} wrong", sep="\n", flush=True)
    print(f"{chunks * CHUNK} problems, {len(wrong)} wrong, {time.perf_counter() - start:.0f} s")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
