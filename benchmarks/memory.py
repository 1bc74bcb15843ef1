"""Peak extra memory of a fit and of a path, beside what is allowed: kept rows + O(n + p²).

    python benchmarks/memory.py [mnist covtype] [--rows N]

Per data set, type and call, in a process of its own: the peak that Python and NumPy allocate
(tracemalloc) and by how much the peak of the resident memory exceeds what was resident before, the
data included. "kept" is the largest number of rows that was not dropped, as a matrix of the same
type; "rest" is what goes beyond that, in numbers of 8 bytes per n + p². A float64 copy of float32
data would show as a peak of twice the size of the data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import results
from datasets import MORE_DATASETS
from rich.table import Table
from tables import wide_console

import safesift as ss

MODEL = {"loss": "squared_hinge", "penalty": "l2", "fit_intercept": False, "tol": 1e-6}
CALLS = {"fit": np.array([1e-4]), "path of 10": np.geomspace(1e-3, 1e-5, 10)}
TYPES = ("float32", "float64")


def resident_peak(function: Callable[[], Any]) -> int | None:
    """By how many bytes the resident memory rose at most; None where the system does not tell."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    try:
        reset.write_text("5")  # the peak starts again from what is resident now
        before = _status_bytes(status, "VmRSS")
        function()
        return _status_bytes(status, "VmHWM") - before
    except OSError:
        return None


def _status_bytes(status: Path, field: str) -> int:
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def traced_peak(function: Callable[[], Any]) -> int:
    """The peak of what Python and NumPy allocate."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measure(name: str, dtype: str, call: str, rows: int | None) -> dict[str, Any]:
    """The peaks of one call, in this process."""
    X, y = MORE_DATASETS[name]()
    X, y = np.ascontiguousarray(X[:rows], dtype=dtype), y[:rows]
    n, p = X.shape
    few = np.concatenate([np.flatnonzero(y < 0)[:2500], np.flatnonzero(y > 0)[:2500]])

    def solve(X: np.ndarray = X, y: np.ndarray = y) -> Any:
        return ss.safe_path(X, y, alphas=CALLS[call], **MODEL)

    solve(X[few], y[few])  # modules, and what is compiled
    resident = resident_peak(solve)
    traced = traced_peak(solve)
    kept = int(np.max(solve().n_kept)) * p * X.itemsize
    rest = max(traced, resident or 0) - kept
    return {
        "data": name, "type": dtype, "call": call, "shape": [n, p], "matrix": X.nbytes,
        "traced": traced, "resident": resident, "kept": kept,
        "rest_per_number": rest / (8 * (n + p * p)),
        "share_of_float64_copy": max(traced, resident or 0) / (8 * n * p),
    }  # fmt: skip


def apart(name: str, dtype: str, call: str, rows: int | None) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", name, dtype, call]
    command += [] if rows is None else ["--rows", str(rows)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


def table(records: list[dict]) -> Table:
    shown = Table(title="Peak extra memory, MB", title_justify="left")
    for column in ("data", "type", "call"):
        shown.add_column(column)
    for column in ("matrix", "traced", "resident", "kept rows", "rest / (n + p²)", "of float64"):
        shown.add_column(column, justify="right")
    for record in records:
        sizes = (record[name] for name in ("matrix", "traced", "resident", "kept"))
        shown.add_row(
            record["data"], record["type"], record["call"],
            *("" if size is None else f"{size / 1e6:.1f}" for size in sizes),
            f"{record['rest_per_number']:.1f}", f"{record['share_of_float64_copy']:.2f}",
        )  # fmt: skip
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=["mnist", "covtype"], help="data sets")
    parser.add_argument("--rows", type=int, help="so many rows only, and no results written")
    parser.add_argument("--one", nargs=3, metavar=("DATA", "TYPE", "CALL"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*args.one, args.rows)))
        return
    records = [
        apart(name, dtype, call, args.rows)
        for name in args.names for dtype in TYPES for call in CALLS
    ]  # fmt: skip
    if args.rows is None:
        results.write("memory", {"peaks": records})
    wide_console().print(table(records))


if __name__ == "__main__":
    main()
