"""Certified paths on a graphics card: seconds, gaps and verdicts, beside torch's L-BFGS.

    python benchmarks/gpu.py [path single hundred screen lasso mnist growth peers] [--device cuda]
                             [--rows N] [--columns P] [--sklearn] [--out FOLDER]

path      604 388 × 2 304 float32, squared hinge + l2, no intercept, ten alphas 1e-3 … 1e-5
single    the same with precision="float32"
hundred   the same with a hundred alphas
screen    `screen` at the previous alpha's optimum (of the hundred and of the ten), curvature of
          rank 100, beside a Gram matrix
lasso     safe logistic + l1, ten alphas; the processor's time on a tenth of the rows with --sklearn
mnist     digit 9 against the rest on MNIST's pixels (SAFESIFT_DATA), ten alphas
growth    cost by number of rows and of columns: `gpu.png`
peers     torch's L-BFGS to the gap of our path, at the last alpha; with --sklearn LinearSVC on the
          processor, stopped after five minutes

Rows have unit norm, from normal columns whose scales fall from 1 to 0.01; labels come from a random
direction, 5 % of them are turned around. All are made on the device. Everything is run once before
it is timed; times are the best of three, and end when the device is done. No time includes making
or moving the data. `--rows` and `--columns` make a trial of it (1000 × 20 on a processor with
`--device cpu`).
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import results
import torch
from datasets import mnist

import safesift as ss
from safesift.arithmetic.devices.arrays import DeviceArray
from safesift.arithmetic.devices.places import Place
from safesift.design.device import DeviceDesign, Placed
from safesift.regions import Curvature

ROWS, COLUMNS = 604_388, 2_304
TEN, HUNDRED = np.geomspace(1e-3, 1e-5, 10), np.geomspace(1e-3, 1e-5, 100)
REPEATS, PATIENCE = 3, 300
# L-BFGS stops after so many rounds in which the gap was not even halved
IN_VAIN = 20


def synthetic(n: int, p: int, device: str, seed: int = 0) -> tuple[torch.Tensor, np.ndarray]:
    """Rows on the device, in pieces, and their labels."""
    make = torch.Generator(device=device).manual_seed(seed)
    scales = torch.logspace(0, -2, p, device=device)
    direction = torch.randn(p, generator=make, device=device)
    X = torch.empty(n, p, device=device)
    for start in range(0, n, 65_536):
        block = torch.randn(min(65_536, n - start), p, generator=make, device=device) * scales
        X[start : start + len(block)] = block / block.norm(dim=1, keepdim=True)
    signs = torch.where(X @ direction > 0, 1, -1)
    turned = torch.rand(n, generator=make, device=device) < 0.05
    return X, torch.where(turned, -signs, signs).cpu().numpy()


def done(device: str) -> None:
    """Wait until the device is."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def timed(call: Callable[[], Any], device: str, repeats: int = REPEATS) -> tuple[float, Any]:
    """The best of some runs, after one that is not counted; and what it returned."""
    found, best = call(), math.inf
    for _ in range(repeats):
        done(device)
        began = time.perf_counter()
        found = call()
        done(device)
        best = min(best, time.perf_counter() - began)
    return best, found


def on(X: torch.Tensor) -> Any:
    """Rows that are computed with by torch, on the processor too."""
    return Placed(X, Place.of(X))


def path_facts(
    X: Any, y: np.ndarray, alphas: np.ndarray, device: str, **how: Any
) -> dict[str, Any]:
    how = {"fit_intercept": False, **how}
    seconds, path = timed(lambda: ss.safe_path(on(X), y, alphas=alphas, **how), device)
    return {
        "seconds": seconds,
        "alphas": len(alphas),
        "largest_relative_gap": float(path.relative_gaps.max()),
        "undecided": int(path.n_undecided.max()),
        "kept": [int(path.n_kept[0]), int(path.n_kept[-1])],
        "steps": int(path.n_iter.sum()),
        "passes": float(path.passes.sum()),
    }


def screen_facts(X: Any, y: np.ndarray, device: str) -> dict[str, Any]:
    """At the optimum of the alpha before the last one, with curvature in a hundred directions."""
    design = DeviceDesign(X)
    weights = DeviceArray(torch.ones(len(X), dtype=torch.float64, device=X.device))
    gram, _ = timed(lambda: design.gram(weights), device)

    def around(before: np.ndarray) -> dict[str, Any]:
        seconds, result = timed(
            lambda: ss.screen(
                on(X), y, alpha=HUNDRED[-1], fit_intercept=False, coef=before,
                screening=Curvature(rank=min(100, X.shape[1] - 1)),
            ),
            device,
        )  # fmt: skip
        return {
            "seconds": seconds,
            "dropped": int((~result.kept).sum()),
            "undecided": int(result.undecided.sum()),
        }

    before = [HUNDRED[-2], TEN[-2]]
    optima = ss.safe_path(on(X), y, alphas=before, fit_intercept=False).coefs
    return {
        "gram_seconds": gram,
        **{f"from_{alpha:.3g}": around(coef) for alpha, coef in zip(before, optima, strict=True)},
    }


def lasso_facts(X: Any, y: np.ndarray, device: str, beside: bool) -> dict[str, Any]:
    how = {"loss": "safe_logistic", "penalty": "l1"}
    facts = path_facts(X, y, TEN, device, **how)
    if beside:
        part = X[: len(X) // 10].cpu().numpy()
        began = time.perf_counter()
        ss.safe_path(part, y[: len(part)], alphas=TEN, fit_intercept=False, n_jobs=2, **how)
        facts["two_cores_on_a_tenth"] = time.perf_counter() - began
    return facts


def mnist_facts(device: str) -> dict[str, Any]:
    X, y = mnist()
    return path_facts(torch.from_numpy(X.astype(np.float32)).to(device), y, TEN, device)


def lbfgs_facts(X: torch.Tensor, y: np.ndarray, device: str, alpha: float) -> dict[str, Any]:
    """torch's L-BFGS, products in float32, until the gradient's gap is 1e-6 or stands still."""
    signs = torch.from_numpy(y).to(X.device, torch.float32)
    unit = 0.5  # P of the best constant model, which is 0 without an intercept
    coef = torch.zeros(X.shape[1], dtype=torch.float64, device=X.device, requires_grad=True)
    solver = torch.optim.LBFGS([coef], max_iter=20, history_size=20, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        short = torch.clamp(1.0 - signs * (X @ coef.float()), min=0.0)
        return 0.5 * (short.double() ** 2).mean() + 0.5 * alpha * (coef**2).sum()

    def closure() -> torch.Tensor:
        solver.zero_grad()
        value = loss()
        value.backward()
        return value

    closure()
    done(device)
    began, gaps = time.perf_counter(), [math.inf]
    # products in float32 leave noise in the gradient: where that is all, no step helps
    while gaps[-1] > 1e-6 and (len(gaps) < IN_VAIN or min(gaps[-IN_VAIN:]) <= 0.5 * gaps[-IN_VAIN]):
        solver.step(closure)
        closure()
        gaps.append(float((coef.grad**2).sum()) / (2.0 * alpha) / unit)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "relative_gap": min(gaps), "rounds_of_20": len(gaps) - 1}


_LINEAR_SVC = """
import numpy as np, sys, time
from sklearn.svm import LinearSVC
X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
began = time.perf_counter()
C = 1 / (2 * len(y) * float(sys.argv[3]))
LinearSVC(C=C, dual=False, fit_intercept=False, tol=1e-6).fit(X, y)
print(time.perf_counter() - began)
"""


def sklearn_facts(X: torch.Tensor, y: np.ndarray, alpha: float, folder: Path) -> dict[str, Any]:
    """One alpha by LinearSVC, stopped after five minutes."""
    paths = folder / "X.npy", folder / "y.npy"
    np.save(paths[0], X.cpu().numpy()), np.save(paths[1], y)
    command = [sys.executable, "-c", _LINEAR_SVC, *map(str, paths), str(alpha)]
    try:
        found = subprocess.run(
            command, timeout=PATIENCE, capture_output=True, text=True, check=True
        )
        return {"seconds": float(found.stdout), "finished": True}
    except subprocess.TimeoutExpired:
        return {"seconds": PATIENCE, "finished": False}
    finally:
        for path in paths:
            path.unlink()


def growth_facts(n: int, p: int, device: str) -> list[dict[str, Any]]:
    """Ten alphas on ever more rows, and on ever more columns."""
    sizes = [(n >> k, p) for k in (5, 4, 3, 2, 1, 0)] + [(n, p >> k) for k in (5, 4, 3, 2, 1)]
    found = []
    for rows, columns in sizes:
        if rows < 50 or columns < 2:
            continue
        X, y = synthetic(rows, columns, device)
        seconds, _ = timed(
            lambda X=X, y=y: ss.safe_path(on(X), y, alphas=TEN, fit_intercept=False), device, 1
        )
        found.append({"rows": rows, "columns": columns, "seconds": seconds})
        del X
    return found


def draw(points: list[dict[str, Any]], n: int, p: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
    for axis, name, fixed in zip(axes, ("rows", "columns"), ("columns", "rows"), strict=True):
        own = sorted(
            (one[name], one["seconds"])
            for one in points
            if one[fixed] == {"rows": n, "columns": p}[fixed]
        )
        axis.plot(*zip(*own, strict=True), "o-")
        axis.set(xlabel=name, ylabel="seconds, ten alphas", ylim=(0, None))
        axis.set_xscale("log", base=2)
        axis.set_xticks([one for one, _ in own], [f"{one:,}" for one, _ in own], rotation=30)
    figure.savefig(path, dpi=120)


def machine(device: str) -> dict[str, Any]:
    named = torch.cuda.get_device_name() if device.startswith("cuda") else "the processor"
    return {"device": named, "torch": torch.__version__, "cuda": torch.version.cuda}


def main() -> None:
    cases = ("path", "single", "hundred", "screen", "lasso", "mnist", "growth", "peers")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=[], help=" ".join(cases))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument(
        "--sklearn", action="store_true", help="beside: the processor's own solvers"
    )
    parser.add_argument("--out", type=Path, default=results.FOLDER)
    asked = parser.parse_args()
    device, out = asked.device, asked.out
    out.mkdir(exist_ok=True, parents=True)
    facts: dict[str, Any] = {**results.machine(), **machine(device)}
    facts["rows"], facts["columns"] = asked.rows, asked.columns
    X = y = None

    def note(name: str, found: Any) -> None:
        facts[name] = found
        print(name, json.dumps(found), flush=True)
        (out / "gpu.json").write_text(json.dumps(facts, indent=1) + "\n")

    for case in asked.cases or cases:
        if X is None and case not in ("mnist", "growth"):
            X, y = synthetic(asked.rows, asked.columns, device)
        if case == "path":
            note("path", path_facts(X, y, TEN, device))
        elif case == "single":
            note("single", path_facts(X, y, TEN, device, precision="float32"))
        elif case == "hundred":
            note("hundred", path_facts(X, y, HUNDRED, device))
        elif case == "screen":
            note("screen", screen_facts(X, y, device))
        elif case == "lasso":
            note("lasso", lasso_facts(X, y, device, asked.sklearn))
        elif case == "mnist":
            note("mnist", mnist_facts(device))
        elif case == "peers":
            note("lbfgs", lbfgs_facts(X, y, device, float(TEN[-1])))
            if asked.sklearn:
                note("linear_svc", sklearn_facts(X, y, float(TEN[-1]), out))
        else:
            X = y = None  # room for the others
            note("growth", growth_facts(asked.rows, asked.columns, device))
            draw(facts["growth"], asked.rows, asked.columns, out / "gpu.png")


if __name__ == "__main__":
    main()
