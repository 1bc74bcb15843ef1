"""What proofs on file lose, cost and weigh, next to what the library has proved in the process.

    SAFESIFT_DATA=folder python benchmarks/proofs.py [--quick]

For each case the problem is screened, a proof is written, and `safesift_check` verifies it. *Lost*
are the rows that the library drops, or decides, and the proof does not. The cost of checking is
that of `safesift_check` on rows in memory, without hashing, in units of one pass of its own over
the rows (predictions, and one sum of rows), within one process; hashing is timed apart. The file
may have n/4 bytes + 8p² + 100 kB where the loss is smooth.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from pathlib import Path

import numpy as np
import results
from datasets import a9a, covtype, imdb, mnist
from rich.table import Table
from tables import wide_console

import safesift as ss
import safesift_check as checker
import safesift_root as roots
from safesift.workflows.proofs.rows import ProblemRows

CASES = (
    ("mnist", mnist, "squared_hinge", "l2", 1e-4),
    ("covtype", covtype, "squared_hinge", "l2", 1e-4),
    ("a9a", a9a, "squared_hinge", "l2", 1e-4),
    ("imdb", imdb, "squared_hinge", "l2", 1e-4),
    ("a9a", a9a, "squared_hinge", "l1", 1e-3),
    ("mnist", mnist, "squared_hinge", "l1", 1e-3),
    ("a9a", a9a, "hinge", "l2", 1e-3),
    ("covtype", covtype, "hinge", "l2", 1e-3),
)
QUICK = ("a9a",)


def one_pass(rows: ProblemRows) -> float:
    """Seconds for predictions and a sum of rows, with their errors: a pass of the checker."""
    began, x = time.perf_counter(), checker.near(np.ones(rows.p + 1))
    for _, cols, matrix in rows.blocks():
        checker.product(matrix.T, checker.product(matrix, x[cols]))
    return time.perf_counter() - began


def measure(name, load, loss, penalty, alpha) -> dict[str, object]:
    X, y = load()
    result = ss.screen(X, y, loss=loss, penalty=penalty, alpha=alpha)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        proof = result.write_proof(Path(folder) / "p.npz")
        writing, size = time.perf_counter() - began, (Path(folder) / "p.npz").stat().st_size
        statement, arrays = checker.read_proof(Path(folder) / "p.npz")
    rows = ProblemRows(result.problem, np.asarray(y))
    unit = min(one_pass(rows) for _ in range(3))
    began = time.perf_counter()
    with np.errstate(all="ignore"):
        tape = io.BytesIO(arrays["numbers"].tobytes())
        checker.check_part(statement, rows, 0, tape, arrays["verdicts"])
    checking, began = time.perf_counter() - began, time.perf_counter()
    list(roots.data_leaves(rows, statement, np.arange(rows.n), proof.seed))
    hashing, n = time.perf_counter() - began, rows.n
    decided = ~result.undecided | ~result.kept
    return {
        "data": name, "rows": n, "columns": rows.p,
        "loss": loss, "penalty": penalty, "alpha": alpha,
        "dropped": int((~result.kept).sum()), "dropped in the proof": int((~proof.kept).sum()),
        "drops lost %": 100 * float((proof.kept & ~result.kept).mean()),
        "verdicts lost %": 100 * float(((proof.verdicts[:, 0] == 0) & decided).mean()),
        "gap": float(result.gap), "gap in the proof": proof.gap,
        "rules": ", ".join(statement["rules"][0]),
        "passes": checking / unit, "check s": checking, "hash s": hashing, "write s": writing,
        "bytes": size, "bytes allowed": n // 4 + 8 * rows.p**2 + 100_000,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data only")
    args = parser.parse_args()
    table = Table(title="Proofs on file")
    found = []
    for case in CASES:
        if args.quick and case[0] not in QUICK:
            continue
        found.append(measure(*case))
        print(found[-1], flush=True)
    for key in found[0]:
        table.add_column(key)
    for one in found:
        table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in one.values()))
    wide_console().print(table)
    results.write("proofs", {"cases": found}, lines="cases")


if __name__ == "__main__":
    main()
