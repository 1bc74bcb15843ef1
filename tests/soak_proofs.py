"""Very many proofs, written and checked, on all cores; it goes on where it was interrupted.

    python -m tests.soak_proofs [--problems 100000] [--jobs 2] [--progress FILE]

Every problem has an optimum that is known exactly (tests/laws/proof_problems.py). Its certified
result is written by the library and must be accepted, and true; an adversary's witnesses must prove
nothing false; and false certificates that are made from it must be rejected. Ends with status 1 if
a single one is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

# one thread per process: the problems are tiny
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich.progress import Progress

import safesift_check
from tests.laws import proof_laws
from tests.laws.proof_problems import library_problem, plant

CHUNK = 100


def law_written_and_checked(seed: int) -> Counter:
    """A certified result, written into a file and read from there, is accepted and true."""
    from safesift.workflows.proofs import write_proof

    rng = np.random.default_rng([seed, 4242])
    known = plant(rng) if seed % 8 else proof_laws.known_problem(rng)
    problem = library_problem(known)
    point = problem.feasible(np.array([float(v) for v in known.optimum]))
    labels = known.statement["loss"]["name"].endswith("hinge")
    classes = np.array([-1.0, 1.0]) if labels else None
    with tempfile.TemporaryDirectory() as folder:
        path, data = Path(folder) / "p.npz", Path(folder) / "d.npz"
        more = {"target": known.y, "classes": classes}
        proof = write_proof(path, [problem], [point], **more)
        np.savez(data, X=known.rows.X, y=known.y, sample_weight=known.rows.weights)
        with np.errstate(all="ignore"):
            safesift_check.check(path, data, seed=proof.seed)
    part, verdicts, zero = proof.statement["parts"][0], proof.verdicts[:, 0], proof.zero_coef[0]
    assert not proof_laws.is_false(known, part, {"point": point}, verdicts, zero)
    return Counter(proofs=1, rows=len(verdicts), decided=int((verdicts > 0).sum()))


def run_chunk(seed: int, chunk: int) -> tuple[Counter, list[str]]:
    """What was done in one chunk, and what went wrong."""
    counts, wrong = Counter(), []
    for one in range(CHUNK):
        number = (seed * 10**7 + chunk) * CHUNK + one
        try:
            counts += law_written_and_checked(number)
            counts["adversary"] += len(proof_laws.law_the_checker_is_right(number, make=plant))
            if one % 25 == 0:
                counts["false"] += proof_laws.law_false_certificates(number, tries=6)[0]
        except Exception:
            wrong.append(f"{number}\n{traceback.format_exc(limit=-3)}")
    return counts, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--progress", type=Path, default=Path("build/soak_proofs.json"))
    args = parser.parse_args()
    args.progress.parent.mkdir(exist_ok=True)
    known = json.loads(args.progress.read_text()) if args.progress.exists() else {}
    key = str(args.seed)
    so_far = known.get(key, {"chunks": 0, "counts": {}})
    first, counts = so_far["chunks"], Counter(so_far["counts"])
    chunks, wrong, began = -(-args.problems // CHUNK), [], time.perf_counter()
    with ProcessPoolExecutor(args.jobs) as pool, Progress() as bar:
        task = bar.add_task("proofs", total=chunks * CHUNK, completed=first * CHUNK)
        found = pool.map(partial(run_chunk, args.seed), range(first, chunks))
        for done, (more, bad) in enumerate(found, first + 1):
            counts, wrong = counts + more, wrong + bad
            print(*bad, sep="\n", end="\n" if bad else "", flush=True)
            known[key] = {"chunks": done, "counts": dict(counts), "wrong": len(wrong)}
            args.progress.write_text(json.dumps(known))
            bar.update(task, completed=done * CHUNK)
    print(dict(counts), f"{len(wrong)} wrong, {time.perf_counter() - began:.0f} s")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
