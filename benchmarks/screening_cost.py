"""What screening costs, as ratios to plain products with the same matrix, and in memory.

    python benchmarks/screening_cost.py [--rows 60000] [--columns 784] [--repeats 7]

Every figure is a ratio of two medians taken in the same run on the same matrix. Targets: gap ball
and gradient ball at most 3 times X @ v and Xᵀ @ u together; the ellipsoid test with k = 50 at most
2 times (X @ L plus k gradient passes); the curvature region of rank 100 at most 4 products of the
matrix with 100 vectors; extra memory O(n + p·k).
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import safesift as ss


def median_seconds(function: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def peak_megabytes(function: Callable[[], object]) -> float:
    """Peak of what Python and NumPy allocate while the function runs."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def make_data(n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    X /= np.sqrt(p)
    truth = rng.standard_normal(p)
    y = np.where(X @ truth + 0.3 * rng.standard_normal(n) > 0, 1, -1)
    coef = ss.screen(X[: n // 10], y[: n // 10], alpha=1e-3, fit_intercept=False).coef
    return X, y, coef


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--columns", type=int, default=784)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    n, p, k = args.rows, args.columns, args.steps
    X, y, coef = make_data(n, p)
    rng = np.random.default_rng(1)
    v, u, L = rng.standard_normal(p), rng.standard_normal(n), rng.standard_normal((p, k))
    products = median_seconds(lambda: (X @ v, X.T @ u), args.repeats)
    wide = median_seconds(lambda: X @ L, args.repeats)
    print(f"{n} x {p} float64: X@v and X'@u together {products * 1e3:.1f} ms, "
          f"X@L with {k} columns {wide * 1e3:.1f} ms")  # fmt: skip
    print(f"{'region':<34}{'type':<10}{'seconds':>9}{'ratio':>8}{'target':>8}{'extra MB':>10}")

    def row(name: str, kind: str, run: Callable[[], object], unit: float, target: float) -> None:
        seconds = median_seconds(run, args.repeats)
        memory = peak_megabytes(run)
        print(f"{name:<34}{kind:<10}{seconds:9.3f}{seconds / unit:8.2f}{target:8.1f}{memory:10.1f}")

    single = X.astype(np.float32)
    for name in ("gap_ball", "gradient_ball"):
        for kind, matrix in (("float64", X), ("float32", single)):
            arguments = {"alpha": 1e-3, "coef": coef, "region": name}
            row(name, kind, lambda m=matrix, a=arguments: ss.screen(m, y, **a), products, 3.0)
    ellipsoid = ss.regions.Ellipsoid(n_steps=k, form="low_rank")
    row(f"ellipsoid, {k} steps, low rank", "float64",
        lambda: ss.screen(X, y, alpha=1e-3, coef=coef, screening=ellipsoid, fit_intercept=False),
        wide + k * products, 2.0)  # fmt: skip
    hundred = rng.standard_normal((p, 100))
    wide = median_seconds(lambda: X @ hundred, args.repeats)
    curvature = ss.regions.Curvature(rank=100)
    row("curvature, rank 100", "float64",
        lambda: ss.screen(X, y, alpha=1e-3, coef=coef, screening=curvature, fit_intercept=False),
        wide, 4.0)  # fmt: skip
    print(f"matrix {X.nbytes / 1e6:.0f} MB; n + p*k numbers are {8 * (n + p * k) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
