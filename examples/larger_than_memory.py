"""Data larger than memory
=======================

An exact, certified model of Parquet files in a few passes::

    python examples/larger_than_memory.py [rows]

Writes some Parquet files (200 000 rows by default; make them as many as the disk holds), fits a
model with a budget of memory far below their size, a path of five alphas in the same number of
passes, and writes the rows that matter, file by file.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import safesift as ss

COLUMNS, PER_FILE = 20, 50_000


# %%
# Files as they might lie around
# ------------------------------
def write(folder: Path, n_rows: int) -> None:
    """Clicks of some days: many columns, a label, a weight."""
    for day in range(-(-n_rows // PER_FILE)):
        rng = np.random.default_rng(day)
        X = rng.standard_normal((PER_FILE, COLUMNS), dtype=np.float32)
        score = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(PER_FILE)
        columns = {f"x{j}": X[:, j] for j in range(COLUMNS)}
        table = pa.table({
            **columns,
            "label": np.where(score > 1.0, "click", "none"),
            "w": rng.integers(1, 3, PER_FILE).astype(float),
        })  # fmt: skip
        (folder / f"day={day}").mkdir(parents=True)
        pq.write_table(table, folder / f"day={day}" / "clicks.parquet", row_group_size=10_000)


# %%
# A model, a path, and the rows that matter
# -----------------------------------------
def main() -> None:
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "clicks"
        write(folder, n_rows)
        size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
        rows = ss.blocks.parquet(
            folder / "**" / "*.parquet", target="label", weight="w",
            columns=[f"x{j}" for j in range(COLUMNS)], memory="20 MB", scale="standard",
        )  # fmt: skip
        print(f"{rows.n_rows} rows, {size / 1e6:.0f} MB of Parquet, {rows.n_parts} row groups")

        model = ss.SafeClassifier(alpha=1e-4).fit(rows)
        for look in model.history_:
            print(
                f"  pass {look['passes']}: relative gap {look['relative_gap']:.1e}, "
                f"{look['n_held']} rows held, {look['n_moved']} left their piece"
            )
        print(f"fit: gap {model.dual_gap_:.1e}, certified on all rows")

        path = ss.safe_path(rows, alphas=np.geomspace(1e-2, 1e-5, 5))
        print(f"path: {len(path.alphas)} alphas in {path.passes.sum():.0f} passes, all together")

        result = ss.screen(rows, alpha=1e-4)
        kept = result.write(Path(scratch) / "kept")
        written = sum(file.stat().st_size for file in kept.rglob("*.parquet"))
        print(result.summary())
        print(f"kept rows: {written / 1e6:.0f} MB in the same columns, file by file")


if __name__ == "__main__":
    main()
