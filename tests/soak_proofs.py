"""Very many proofs, written and checked, on all cores; it goes on where it was interrupted.

    python -m tests.soak_proofs [--problems 100000] [--minutes 60] [--processes 2] [--out FILE]

Every problem has an optimum that is known exactly (tests/laws/proof_problems.py). Its certified
result is written by the library and must be accepted, and true; an adversary's witnesses must prove
nothing false; and false certificates that are made from it must be rejected. FILE holds, for each
--seed, how far it came, what was counted and what was wrong; numbers of problems of different seeds
never meet. Ends with status 1 if a single one is wrong. Only what the library itself needs has to
be there: `PYTHONPATH=src:check python tests/soak_proofs.py` runs from a copy without installing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
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
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from rich.progress import Progress

import safesift_root
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
            safesift_root.check(proof.seed, path, data)
    part, verdicts, zero = {"gap": proof.gap}, proof.verdicts[:, 0], proof.zero_coef[0]
    assert not proof_laws.is_false(known, part, (point,), verdicts, zero)
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


def so_far(path: Path, seed: int) -> dict:
    """What is known of a seed."""
    known = json.loads(path.read_text()) if path.exists() else {}
    fresh = {"chunks": 0, "problems": 0, "seconds": 0.0, "counts": {}, "wrong": []}
    return known.get(str(seed), fresh)


def store(path: Path, seed: int, state: dict) -> None:
    known = json.loads(path.read_text()) if path.exists() else {}
    text = json.dumps({**known, str(seed): state}, indent=1)
    path.with_suffix(".part").write_text(text)
    path.with_suffix(".part").replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("build/soak_proofs.json"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    state, began = so_far(args.out, args.seed), time.perf_counter()
    before, chunks = state["seconds"], -(-args.problems // CHUNK)
    for number in range(8):  # what is compiled is compiled once, before processes are forked
        law_written_and_checked(number)
    fork = multiprocessing.get_context("fork")
    with Progress() as bar, ProcessPoolExecutor(args.processes, mp_context=fork) as pool:
        task = bar.add_task("proofs", total=chunks * CHUNK, completed=state["problems"])
        found = pool.map(partial(run_chunk, args.seed), range(state["chunks"], chunks))
        for more, bad in found:
            state["chunks"] += 1
            state["problems"] += CHUNK
            state["counts"] = dict(Counter(state["counts"]) + more)
            state["wrong"] += bad
            state["seconds"] = before + time.perf_counter() - began
            store(args.out, args.seed, state)
            print(*bad, sep="\n", end="\n" if bad else "", flush=True)
            bar.update(task, completed=state["problems"])
            if time.perf_counter() - began > 60 * args.minutes:
                break
        pool.shutdown(wait=False, cancel_futures=True)
    counts, wrong = state["counts"], len(state["wrong"])
    print(f"{state['problems']} problems, {counts}, {wrong} wrong, {state['seconds']:.0f} s")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
