"""Time to a relative gap of 1e-2, 1e-3 and 1e-6 from Parquet, beside what people use otherwise.

    python benchmarks/scale.py race [--rows N] [--folder scratch]

    safesift         squared hinge and logistic loss, to each of the three gaps: certified
    SGD              SGDClassifier.partial_fit over the same blocks, squared hinge; its schedule is
                     chosen on a twentieth of the rows beforehand, which is not on its clock
    dask-ml          LogisticRegression of a dask array of the same file, by all its solvers that
                     have a smooth l2 penalty
    Spark            LinearSVC, local[2], L-BFGS; the hinge is all it has

Every one is measured on its own objective, l2 and no intercept (that of dask-ml is penalised).
A gap is the objective on all rows less a certified lower bound on its minimum, over the objective
at 0, computed off the clock. Lower bounds are those of safesift, of the hinge from rows in memory.
For whoever does not say how far he is (all but safesift) the clock is stopped at the first look
that is good enough: nobody would have known. Reading is on the clock. Whoever is not there after
five minutes, looks included, is stopped.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import results
from rich.table import Table
from tables import wide_console

import safesift as ss
from safesift.losses import LOSSES

ROWS, COLUMNS, ALPHA = 2_000_000, 50, 1e-4
GAPS = (1e-2, 1e-3, 1e-6)
# seconds, looks off the clock included, after which whoever is not there is stopped
PATIENCE = 300.0
# looks of SGD: after these shares of the first epoch, then after every epoch
_LOOKS, _EPOCHS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0), 20
_ITERATIONS = (2, 5, 10, 20, 50, 100, 200)


# --- objectives -------------------------------------------------------------------------------


class Objective:
    """A loss, l2, no intercept: its value on all rows, and a bound on its minimum from below."""

    def __init__(self, path: Path, name: str) -> None:
        self._rows, self._loss = blocks(path), LOSSES[name]()
        self.name, self.at_zero = name, self.value(np.zeros(COLUMNS))
        self.bound = self._bound(path)

    def value(self, coef: np.ndarray) -> float:
        losses, n = 0.0, 0
        for part in range(self._rows.n_parts):
            for block in self._rows.blocks(part):
                y = np.where(block.y == 1, 1.0, -1.0)
                losses += float(self._loss.value(block.X @ coef, y).sum())
                n += block.n_rows
        return losses / n + 0.5 * ALPHA * float(coef @ coef)

    def _bound(self, path: Path) -> float:
        model = ss.SafeClassifier(self.name, alpha=ALPHA, fit_intercept=False, tol=1e-9)
        if self.name == "hinge":
            X, y = in_memory(path)
            model.set_params(tol=1e-7).fit(X, y)
        else:
            model.fit(blocks(path))
        return self.value(model.coef_[0]) - float(model.dual_gap_)

    def gap(self, coef: np.ndarray) -> float:
        return (self.value(np.asarray(coef, dtype=np.float64)) - self.bound) / self.at_zero


def blocks(path: Path) -> Any:
    return ss.blocks.parquet(path, target="label")


def in_memory(path: Path) -> tuple[np.ndarray, np.ndarray]:
    rows = blocks(path)
    found = [block for part in range(rows.n_parts) for block in rows.blocks(part)]
    return np.concatenate([one.X for one in found]), np.concatenate([one.y for one in found])


# --- contestants ------------------------------------------------------------------------------

# seconds on the clock, and coefficients
Look = tuple[float, np.ndarray]


def safesift(path: Path, loss: str) -> Iterator[Look]:
    model = ss.SafeClassifier(loss, alpha=ALPHA, fit_intercept=False)
    for gap in GAPS:
        began = time.perf_counter()
        model.set_params(tol=gap).fit(blocks(path))
        yield time.perf_counter() - began, model.coef_[0].copy()


def sgd(path: Path, loss: str) -> Iterator[Look]:
    """What is 2·½[1 − t]₊² there is [1 − t]₊²: its alpha is twice ours."""
    rows = blocks(path)
    model = _tuned_sgd(rows)
    seconds, looks = 0.0, set()
    for epoch in range(_EPOCHS):
        n_seen = 0
        for part in range(rows.n_parts):
            began = time.perf_counter()
            for block in rows.blocks(part):
                model.partial_fit(block.X, block.y, classes=[0, 1])
                n_seen += block.n_rows
            seconds += time.perf_counter() - began
            share = n_seen / rows.n_rows
            due = [look for look in _LOOKS if look <= share and look not in looks]
            if (epoch == 0 and due) or share == 1.0:
                looks.update(due)
                yield seconds, model.coef_[0].copy()


def _tuned_sgd(rows: Any) -> Any:
    """The schedule that is best after two epochs of a twentieth of the rows."""
    from sklearn.linear_model import SGDClassifier

    few = [block for part in range(max(rows.n_parts // 20, 1)) for block in rows.blocks(part)]
    X, y = np.concatenate([one.X for one in few]), np.concatenate([one.y for one in few])
    loss, signs = LOSSES["squared_hinge"](), np.where(y == 1, 1.0, -1.0)

    def made(rate: str, eta0: float, average: bool) -> Any:
        return SGDClassifier(
            "squared_hinge", alpha=2 * ALPHA, fit_intercept=False, learning_rate=rate, eta0=eta0,
            average=average, random_state=0,
        )  # fmt: skip

    def value(settings: tuple) -> float:
        model = made(*settings)
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(2):
                model.partial_fit(X, y, classes=[0, 1])
            coef = model.coef_[0]
            found = float(loss.value(X @ coef, signs).mean() + 0.5 * ALPHA * coef @ coef)
        return found if np.isfinite(found) else np.inf

    rates = [("optimal", 0.1), *(("invscaling", eta) for eta in (0.01, 0.1, 1.0)),
             *(("constant", eta) for eta in (1e-4, 1e-3, 1e-2))]  # fmt: skip
    return made(*min(((*rate, average) for rate in rates for average in (False, True)), key=value))


def dask_ml(path: Path, loss: str, solver: str) -> Iterator[Look]:
    """It minimises the sum of the losses plus ½/C‖x‖², where columns are not normalised first.

    Its Newton method and its gradient descent have no penalty, whatever they are told.
    """
    import dask.array as da
    import dask.dataframe as dd
    from dask_ml.linear_model import LogisticRegression

    n = blocks(path).n_rows
    for iterations in _ITERATIONS:
        began = time.perf_counter()
        frame = dd.read_parquet(path).compute()
        X = frame.drop(columns="label").to_numpy(dtype=np.float64)
        y, chunk = frame["label"].to_numpy(), -(-n // 16)
        model = LogisticRegression("l2", C=1.0 / (n * ALPHA), fit_intercept=False, solver=solver,
                                   max_iter=iterations, tol=1e-12,
                                   solver_kwargs={"normalize": False})  # fmt: skip
        model.fit(da.from_array(X, chunks=(chunk, X.shape[1])), da.from_array(y, chunks=chunk))
        seconds = time.perf_counter() - began
        yield seconds, np.ravel(model.coef_)


def spark(path: Path, loss: str) -> Iterator[Look]:
    """Its session is there before the clock starts; rows are cached, as its guide advises."""
    from pyspark.ml.classification import LinearSVC
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    session = (SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
               .config("spark.ui.enabled", "false").getOrCreate())  # fmt: skip
    session.sparkContext.setLogLevel("ERROR")
    names, rehearsed = list(blocks(path).feature_names), False
    # the first run is a rehearsal: what Java compiles on the way is not on the clock
    for iterations in (2, *_ITERATIONS):
        began = time.perf_counter()
        frame = session.read.parquet(str(path))
        rows = VectorAssembler(inputCols=names, outputCol="features").transform(frame)
        rows = rows.select("features", rows["label"].cast("double").alias("label")).cache()
        model = LinearSVC(maxIter=iterations, regParam=ALPHA, tol=1e-12, fitIntercept=False,
                          standardization=False).fit(rows)  # fmt: skip
        seconds = time.perf_counter() - began
        rows.unpersist()
        if rehearsed:
            yield seconds, model.coefficients.toArray()
        rehearsed = True
    session.stop()


# name -> the loss it has, and how it is run
CONTESTANTS: dict[str, tuple[str, Callable[[Path, str], Iterator[Look]]]] = {
    "safesift": ("squared_hinge", safesift),
    "SGD": ("squared_hinge", sgd),
    "safesift, logistic": ("logistic", safesift),
    **{
        f"dask-ml {solver}": ("logistic", partial(dask_ml, solver=solver))
        for solver in ("lbfgs", "proximal_grad", "admm")
    },
    "Spark LinearSVC": ("hinge", spark),
}  # fmt: skip


# --- the race ---------------------------------------------------------------------------------


def raced(name: str, path: Path, tell: Callable[[dict[str, Any]], None]) -> None:
    """Tell of seconds to every gap, and of the best one that was reached, after every look."""
    loss, run = CONTESTANTS[name]
    record: dict[str, Any] = {"who": name, "loss": loss, "seconds": {}, "best": None, "in": None}
    objective, best = Objective(path, loss), np.inf
    tell(record)
    try:
        for seconds, coef in run(path, loss):
            gap = objective.gap(coef)
            if gap < best:
                best, record["best"], record["in"] = gap, gap, seconds
            for wanted in GAPS:
                if gap <= wanted * (1 + 1e-9):
                    known = record["seconds"].get(f"{wanted:g}", np.inf)
                    record["seconds"][f"{wanted:g}"] = min(known, seconds)
            tell(record)
            if len(record["seconds"]) == len(GAPS):
                break
    except ImportError as error:
        record["failed"] = f"not installed ({error.name})"
    except Exception as error:  # what a peer cannot do is a result
        record["failed"] = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
    tell(record)


def apart(name: str, path: Path) -> dict[str, Any]:
    """A contestant in a process of its own, and what it told before its time was up."""
    command = [sys.executable, __file__, name, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        # the first line is told when the objective is known: the clock of patience starts there
        told = json.loads(process.stdout.readline())
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        for line in process.stdout:
            told = json.loads(line)
        late.cancel()
    return told


def race(n: int | None, folder: Path, write: Callable[..., None], rows: Callable) -> None:
    """All of them, each in a process of its own; results go to `results/scale_race.json`."""
    n = n or ROWS
    path = folder / f"race-{n}.parquet"
    if not path.exists():
        write(path, rows(n))
    known = {(one["rows"], one["who"]): one for one in results.read("scale_race").get("runs", [])}
    for name in CONTESTANTS:
        known[n, name] = {"rows": n, "columns": COLUMNS, **apart(name, path)}
        results.write("scale_race", {"runs": [known[key] for key in sorted(known)]}, "runs")
    wide_console().print(table([one for (rows, _), one in known.items() if rows == n]))


def table(records: list[dict]) -> Table:
    shown = Table(title="Seconds to a relative gap, from Parquet", title_justify="left")
    for column in ("who", "loss", *(f"{gap:g}" for gap in GAPS), "best", "in, s"):
        shown.add_column(column, justify="left" if column in ("who", "loss") else "right")
    for record in records:
        times = [record["seconds"].get(f"{gap:g}") for gap in GAPS]
        best = record.get("failed") or ("" if record["best"] is None else f"{record['best']:.1e}")
        shown.add_row(record["who"], record["loss"],
                      *("" if s is None else f"{s:.1f}" for s in times), best,
                      "" if record["in"] is None else f"{record['in']:.1f}")  # fmt: skip
    return shown


def main() -> None:
    name, path = sys.argv[1], Path(sys.argv[2])
    told = sys.stdout

    def tell(record: dict[str, Any]) -> None:
        print(json.dumps(record), file=told, flush=True)

    with contextlib.redirect_stdout(sys.stderr):
        if name.startswith("safesift"):  # loops are compiled before the clock starts
            X = np.random.default_rng(0).standard_normal((3000, COLUMNS), dtype=np.float32)
            ss.SafeClassifier(CONTESTANTS[name][0]).fit(ss.blocks.arrays(X, X[:, 0] > 0.1))
        raced(name, path, tell)


if __name__ == "__main__":
    main()
