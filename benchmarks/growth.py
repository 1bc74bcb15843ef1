"""How the cost grows with the number of rows and of columns, as fitted exponents and a picture.

    python benchmarks/growth.py [--largest-rows 2000000] [--largest-columns 20000] [--repeats 3]

Squared hinge + l2 on made-up data, no intercept, relative gap 1e-6: a single fit at alpha = 1e-4
and a path of ten alphas from 1e-3 to 1e-5. Rows 1e4 ... 2e6 at 50 columns, columns 1e2 ... 2e4 at
1e4 rows. The exponent is the slope of a line through the logarithms; a second one is of the last
three sizes, where the small costs that do not grow no longer matter.
"""

from __future__ import annotations

import argparse

import numpy as np
import results
from rich.table import Table
from screening_cost import median_seconds
from tables import wide_console

import safesift as ss

MODEL = {"loss": "squared_hinge", "penalty": "l2", "fit_intercept": False, "tol": 1e-6}
ALPHAS = {"single fit": np.array([1e-4]), "path of 10": np.geomspace(1e-3, 1e-5, 10)}
ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000)
COLUMNS = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
FIXED_COLUMNS, FIXED_ROWS = 50, 10_000


def make_data(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of unequal scale, rows of norm about 1, labels with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    scales = 1.0 / np.sqrt(1.0 + np.arange(p))
    X *= scales / np.linalg.norm(scales)
    signal = X @ (rng.standard_normal(p) / scales)
    return X, np.where(signal + signal.std() * rng.standard_normal(n) > 0, 1.0, -1.0)


def measure(n: int, p: int, repeats: int) -> dict[str, float]:
    X, y = make_data(n, p)
    record = {"rows": n, "columns": p}
    for label, alphas in ALPHAS.items():

        def call(alphas: np.ndarray = alphas) -> object:
            return ss.safe_path(X, y, alphas=alphas, **MODEL)

        call()
        record[label] = median_seconds(call, repeats)
    return record


def exponents(records: list[dict], variable: str, label: str) -> tuple[float, float]:
    """Slopes of log seconds over log size: of all sizes, and of the last three."""
    size = np.log([record[variable] for record in records])
    seconds = np.log([record[label] for record in records])
    return tuple(float(np.polyfit(size[part], seconds[part], 1)[0])
                 for part in (slice(None), slice(-3, None)))  # fmt: skip


def draw(series: dict[str, list[dict]], fitted: dict[str, dict]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(series), figsize=(10, 4), sharey=True)
    for panel, (variable, records) in zip(panels, series.items(), strict=True):
        for label in ALPHAS:
            overall, last = fitted[variable][label]
            panel.loglog(
                [r[variable] for r in records], [r[label] for r in records], "o-",
                label=f"{label}: exponent {overall:.2f}, last three {last:.2f}",
            )  # fmt: skip
        fixed = "columns" if variable == "rows" else "rows"
        panel.set(xlabel=f"{variable}, at {records[0][fixed]} {fixed}")
        panel.grid(True, which="major", alpha=0.3)
        panel.legend(frameon=False)
    panels[0].set_ylabel("seconds")
    figure.suptitle("Squared hinge + l2 to a relative gap of 1e-6")
    figure.tight_layout()
    results.FOLDER.mkdir(exist_ok=True)
    figure.savefig(results.FOLDER / "growth.png", dpi=150)
    plt.close(figure)


def table(series: dict[str, list[dict]]) -> Table:
    shown = Table(title="Seconds", title_justify="left")
    for column in ("rows", "columns", *ALPHAS):
        shown.add_column(column, justify="right")
    for records in series.values():
        for record in records:
            shown.add_row(str(record["rows"]), str(record["columns"]),
                          *(f"{record[label]:.3g}" for label in ALPHAS))  # fmt: skip
        shown.add_section()
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest-rows", type=int, default=ROWS[-1])
    parser.add_argument("--largest-columns", type=int, default=COLUMNS[-1])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    rows = [n for n in ROWS if n <= args.largest_rows]
    columns = [p for p in COLUMNS if p <= args.largest_columns]
    series = {
        "rows": [measure(n, FIXED_COLUMNS, args.repeats) for n in rows],
        "columns": [measure(FIXED_ROWS, p, args.repeats) for p in columns],
    }
    fitted = {
        variable: {label: exponents(records, variable, label) for label in ALPHAS}
        for variable, records in series.items()
    }
    results.write("growth", {"series": series, "exponents": fitted})
    draw(series, fitted)
    console = wide_console()
    console.print(table(series))
    for variable, found in fitted.items():
        for label, (overall, last) in found.items():
            console.print(f"{label}: {variable}^{overall:.2f} (last three sizes: {last:.2f})")


if __name__ == "__main__":
    main()
