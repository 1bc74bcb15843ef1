"""Rows in blocks: passes, time and memory, beside bare scans of the same data.

    python benchmarks/scale.py [parquet covtype map growth race] [--rows N] [--folder scratch]

parquet   20 million × 50 float32 rows of Parquet (4 GB), squared hinge + l2, certified 1e-6: one
          alpha and ten, beside as many bare scans (reading blocks and one product with a vector)
          plus one Gram matrix
covtype   covtype from Parquet, beside in memory (SAFESIFT_DATA)
map       a memory map of 4 million × 500 float32 (8 GB): peak of anonymous memory
growth    10⁵ … 10⁸ rows × 20 made on the fly: time and memory, `results/scale.png`
race      time to a gap beside SGD, dask-ml and Spark: `scale_race.py`

Every measurement is in a process of its own, on as many threads as there are. `--rows` makes the
first, the third and the largest of the last smaller (and keeps the results apart). Files are made
in `--folder` when they are not there yet, and left there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import results
from datasets import MORE_DATASETS
from rich.table import Table
from scale_race import COLUMNS, race
from tables import wide_console

import safesift as ss
from safesift.arithmetic.threads import each, n_threads, using
from safesift.design import as_design

CASES = ("parquet", "covtype", "map", "growth")
ROWS = {"parquet": 20_000_000, "map": 4_000_000, "growth": 100_000_000}
ALPHAS = {1: np.array([1e-4]), 10: np.geomspace(1e-3, 1e-5, 10)}
LENGTH = 100_000


# --- measuring --------------------------------------------------------------------------------


class Peak:
    """The largest anonymous memory of this process while the block runs, looked at 50 times a s."""

    def __enter__(self) -> Peak:
        self.before = self.bytes = anonymous()
        self._end = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()
        return self

    def _look(self) -> None:
        while not self._end.wait(0.02):
            self.bytes = max(self.bytes, anonymous())

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._watch.join()


def anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


def compiled() -> None:
    """Modules are imported and loops compiled before anything is measured."""
    X = np.random.default_rng(0).standard_normal((3000, 20), dtype=np.float32)
    rows = ss.blocks.arrays(X, X[:, 0] > 0.1, memory="1 MB")
    ss.SafeClassifier().fit(rows)
    ss.safe_path(rows, alphas=[1e-2, 1e-3])


class Clock:
    """Seconds on the wall, and of all processors together, which a busy machine leaves alone."""

    def __enter__(self) -> Clock:
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._began[0]
        self.cpu = time.process_time() - self._began[1]


def scanned(rows: Any) -> dict[str, float]:
    """Seconds of one bare scan, and of one Gram matrix without reading."""

    def scan(part: int) -> float:
        return sum(float((block.X @ np.ones(block.X.shape[1], block.X.dtype)).sum())
                   for block in rows.blocks(part))  # fmt: skip

    def gram(part: int) -> float:
        seconds = 0.0
        for block in rows.blocks(part):
            began = time.thread_time()
            as_design(block.X, True).gram(np.ones(block.n_rows))
            seconds += time.thread_time() - began
        return seconds

    clocks = []
    with using(None):
        for _ in range(2):
            with Clock() as clock:
                list(each(scan, range(rows.n_parts)))
            clocks.append(clock)
        matrix = sum(each(gram, range(rows.n_parts)))
        threads = n_threads()
    return {
        "scan": min(clock.seconds for clock in clocks), "gram": matrix / threads,
        "scan_cpu": min(clock.cpu for clock in clocks), "gram_cpu": matrix,
    }  # fmt: skip


def fitted(rows: Any, n_alphas: int) -> dict[str, Any]:
    with Peak() as peak, Clock() as clock:
        path = ss.safe_path(rows, alphas=ALPHAS[n_alphas])
    return {
        "alphas": n_alphas, "passes": round(float(path.passes.sum())),
        "seconds": clock.seconds, "cpu": clock.cpu,
        "peak": peak.bytes, "grown": peak.bytes - peak.before,
        "relative_gap": float(path.relative_gaps.max()),
        "undecided": int(path.n_undecided.max()), "kept": path.n_kept.tolist(),
    }  # fmt: skip


# --- cases ------------------------------------------------------------------------------------


def made(k: int, p: int, length: int = LENGTH) -> tuple[np.ndarray, np.ndarray]:
    """A block of rows, columns of unequal scale, labels with noise; the same for the same k."""
    rng = np.random.default_rng([k, p])
    scales = (1.0 / np.sqrt(1.0 + np.arange(p))).astype(np.float32)
    X = rng.standard_normal((length, p), dtype=np.float32)
    signal = X.sum(axis=1) / np.float32(np.sqrt(p))
    y = signal + 0.5 * rng.standard_normal(length, dtype=np.float32) > 0.3
    X *= scales / np.linalg.norm(scales)
    return X, y.astype(np.int8)


def parquet(n: int, folder: Path) -> list[dict]:
    path = folder / f"rows-{n}.parquet"
    if not path.exists():
        _write_parquet(path, ((made(k, 50)) for k in range(n // LENGTH)))
    rows = ss.blocks.parquet(path, target="label")
    compiled()
    bare, records = scanned(rows), []
    for n_alphas in ALPHAS:
        found = fitted(rows, n_alphas)
        ratio = found["seconds"] / (found["passes"] * bare["scan"] + bare["gram"])
        cpu_ratio = found["cpu"] / (found["passes"] * bare["scan_cpu"] + bare["gram_cpu"])
        records.append({"case": "parquet", "rows": n, "columns": 50, **found, **bare,
                        "ratio": ratio, "cpu_ratio": cpu_ratio})  # fmt: skip
    return records


def _write_parquet(path: Path, blocks: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, beside = None, path.with_suffix(".part")
    for X, y in blocks:
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        table = pa.table({**columns, "label": y})
        if writer is None:
            writer = pq.ParquetWriter(beside, table.schema, use_dictionary=False)
        writer.write_table(table, row_group_size=2 * LENGTH)
    writer.close()
    beside.replace(path)


def covtype(n: int | None, folder: Path) -> list[dict]:
    X, y = MORE_DATASETS["covtype"]()
    X, y = np.ascontiguousarray(X[:n], dtype=np.float32), y[:n]
    path = folder / f"covtype-{len(y)}.parquet"
    if not path.exists():
        parts = range(0, len(y), LENGTH)
        _write_parquet(path, ((X[k : k + LENGTH], y[k : k + LENGTH]) for k in parts))
    rows = ss.blocks.parquet(path, target="label")
    compiled()
    records = []
    for n_alphas, alphas in ALPHAS.items():
        clocks = []
        for _ in range(3):
            with Clock() as clock:
                ss.safe_path(X, y, alphas=alphas)
            clocks.append(clock)
        seconds, cpu = (min(getattr(c, name) for c in clocks) for name in ("seconds", "cpu"))
        runs = [fitted(rows, n_alphas) for _ in range(3)]
        found = min(runs, key=lambda run: run["seconds"])
        records.append({"case": "covtype", "rows": len(y), "columns": X.shape[1], **found,
                        "in_memory": seconds, "ratio": found["seconds"] / seconds,
                        "cpu_ratio": min(run["cpu"] for run in runs) / cpu})  # fmt: skip
    return records


def memory_map(n: int, folder: Path) -> list[dict]:
    path, p = folder / f"map-{n}.npy", 500
    if not path.exists():
        beside = path.with_suffix(".part")
        X = np.lib.format.open_memmap(beside, "w+", np.float32, (n, p))
        for start in range(0, n, LENGTH // 10):
            rows = slice(start, min(start + LENGTH // 10, n))
            X[rows] = made(start, p, rows.stop - rows.start)[0]
        X.flush()
        beside.replace(path)
    X = np.load(path, mmap_mode="r")
    # the labels of the blocks, which are made again from their numbers
    y = np.concatenate([
        made(start, p, min(LENGTH // 10, n - start))[1] for start in range(0, n, LENGTH // 10)
    ])  # fmt: skip
    compiled()
    with Peak() as peak, Clock() as clock:
        model = ss.SafeClassifier(alpha=1e-4).fit(X, y)
    return [{
        "case": "map", "rows": n, "columns": p, "alphas": 1, "passes": model.history_[-1]["passes"],
        "seconds": clock.seconds, "cpu": clock.cpu, "peak": peak.bytes,
        "grown": peak.bytes - peak.before, "relative_gap": model.history_[-1]["relative_gap"],
    }]  # fmt: skip


def growth(n: int, folder: Path) -> list[dict]:
    compiled()
    rows = ss.blocks.calls(lambda k: made(k, 20), n // LENGTH)
    return [{"case": "growth", "rows": n, "columns": 20, **fitted(rows, 1)}]


MEASURES = {"parquet": parquet, "covtype": covtype, "map": memory_map, "growth": growth}


# --- all of them ------------------------------------------------------------------------------


def apart(case: str, rows: int | None, folder: Path) -> list[dict]:
    """A case in a process of its own."""
    command = [sys.executable, __file__, "--one", case, "--folder", str(folder)]
    command += [] if rows is None else ["--rows", str(rows)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout.splitlines()[-1])


def sizes(case: str, rows: int | None) -> list[int | None]:
    if case != "growth":
        return [rows if rows is not None else ROWS.get(case)]
    largest = rows or ROWS["growth"]
    powers = 10 ** np.arange(5, 9)
    return [int(n) for n in powers if n <= largest]


def table(records: list[dict]) -> Table:
    shown = Table(title="Rows in blocks", title_justify="left")
    shown.add_column("case")
    for column in ("rows", "columns", "alphas", "passes", "s", "cpu s",
                   "bare or in memory, s", "ratio", "of cpu s", "peak, MB", "gap"):  # fmt: skip
        shown.add_column(column, justify="right")
    for record in records:
        beside = record.get("in_memory")
        if "scan" in record:
            beside = record["passes"] * record["scan"] + record["gram"]
        shown.add_row(
            record["case"], f"{record['rows']:,}", str(record["columns"]), str(record["alphas"]),
            str(record["passes"]), f"{record['seconds']:.1f}", f"{record['cpu']:.1f}",
            "" if beside is None else f"{beside:.1f}",
            f"{record['ratio']:.2f}" if "ratio" in record else "",
            f"{record['cpu_ratio']:.2f}" if "cpu_ratio" in record else "",
            f"{record['peak'] / 1e6:.0f}", f"{record['relative_gap']:.1g}",
        )  # fmt: skip
    return shown


def plot(records: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grown = sorted((one for one in records if one["case"] == "growth"), key=lambda one: one["rows"])
    n = [one["rows"] for one in grown]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    left.loglog(n, [one["seconds"] for one in grown], "o-", label="measured")
    per_row = grown[-1]["seconds"] / n[-1]
    left.loglog(n, [per_row * rows for rows in n], ":", color="grey", label="linear")
    left.set(xlabel="rows (× 20 columns)", ylabel="seconds")
    left.legend(frameon=False)
    right.semilogx(n, [one["peak"] / 1e6 for one in grown], "o-")
    right.set(xlabel="rows (× 20 columns)", ylabel="peak of anonymous memory, MB", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=[], help=", ".join([*CASES, "race"]))
    parser.add_argument("--rows", type=int, help="so many rows")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "scale_data")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True)
    if args.one:
        print(json.dumps(MEASURES[args.one](args.rows, args.folder)))
        return
    known = {tuple(r[key] for key in ("case", "rows", "alphas")): r
             for r in results.read("scale").get("runs", [])}  # fmt: skip
    cases = args.cases or [*CASES, "race"]
    for case in cases:
        if case == "race":
            race(args.rows, args.folder, _write_parquet,
                 lambda n: (made(k, COLUMNS) for k in range(-(-n // LENGTH))))  # fmt: skip
            continue
        for n in sizes(case, args.rows):
            for record in apart(case, n, args.folder):
                known[record["case"], record["rows"], record["alphas"]] = record
            results.write("scale", {"runs": [known[key] for key in sorted(known)]}, "runs")
    if cases == ["race"]:
        return
    records = [known[key] for key in sorted(known)]
    if any(record["case"] == "growth" for record in records):
        plot(records, results.FOLDER / "scale.png")
    wide_console().print(table(records))


if __name__ == "__main__":
    main()
