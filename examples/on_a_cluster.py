"""Rows on a cluster
=================

Only sums travel, and a lost worker changes nothing::

    python examples/on_a_cluster.py [rows]              # three processes of this machine
    python examples/on_a_cluster.py 1000000000 tcp://scheduler:8786

Makes a dask frame whose partitions stay on the workers (100 000 rows by default), fits a model of
it, kills a worker in the middle of a second fit, and compares both with what the threads of this
process find: to the last bit. (On the site it is shown without its output, since it starts
processes, and ends one of them by force.)
"""

import os
import signal
import sys
import threading
import time

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import safesift as ss

# rows that fit into the budget (1 GB by default) would be fetched and solved here, and partitions
# of more than 1/256 of it are cut into blocks: the same blocks, the same bits
COLUMNS, PER_PART, MEMORY = 20, 5_000, "30 MB"


# %%
# Partitions that any worker can make
# -----------------------------------
def clicks(part: int) -> pd.DataFrame:
    """A partition: many columns, a label, a weight. Any worker makes the same one."""
    rng = np.random.default_rng(part)
    X = rng.standard_normal((PER_PART, COLUMNS), dtype=np.float32)
    score = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(PER_PART)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(COLUMNS)])
    return frame.assign(
        label=np.where(score > 1.0, "click", "none"), w=rng.integers(1, 3, PER_PART).astype(float)
    )


def block(part: int) -> tuple:
    """The same rows for whoever has no frames."""
    frame = clicks(part)
    X = np.ascontiguousarray(frame[[f"x{j}" for j in range(COLUMNS)]].to_numpy())
    return X, frame["label"].to_numpy(), frame["w"].to_numpy()


# %%
# Two fits on the workers, one here
# ---------------------------------
def untrained() -> ss.SafeClassifier:
    """Whoever solves the sample draws random numbers: the same for all."""
    return ss.SafeClassifier(alpha=1e-4, random_state=0)


def kill_one(client: Client) -> None:
    """As a machine that fails would: a moment later one of the processes is gone."""
    pid = min(client.run(os.getpid).values())
    threading.Thread(target=lambda: (time.sleep(0.3), os.kill(pid, signal.SIGKILL))).start()


def main() -> None:
    n_parts = -(-int(sys.argv[1] if len(sys.argv) > 1 else 100_000) // PER_PART)
    if len(sys.argv) > 2:
        cluster, client = None, Client(sys.argv[2])
    else:
        cluster = LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0",
                               silence_logs=50)  # fmt: skip
        client = Client(cluster)
    frame = dd.from_map(clicks, range(n_parts), meta=clicks(0).iloc[:0]).persist()

    there = ss.blocks.dask(frame, target="label", weight="w", memory=MEMORY)
    model = untrained().fit(there)
    last = model.history_[-1]
    print(f"{len(model.kept_)} rows in {n_parts} partitions: {last['passes']} passes, "
          f"relative gap {last['relative_gap']:.1e}, {model.kept_.sum()} rows matter")  # fmt: skip

    rows = ss.blocks.calls(block, n_parts, memory=MEMORY)
    here = untrained().fit(rows)
    print(f"threads of this process find the same bits: {same(model, here)}")

    if cluster is not None:
        kill_one(client)
    with ss.engine(client):
        again = untrained().fit(rows)
    print(f"so do workers of which one was killed meanwhile: {same(again, here)}")
    client.close()
    if cluster is not None:
        cluster.close()


def same(one: ss.SafeClassifier, other: ss.SafeClassifier) -> str:
    """Coefficients, intercept, gap and verdicts."""
    alike = (
        one.coef_.tobytes() == other.coef_.tobytes()
        and one.intercept_.tobytes() == other.intercept_.tobytes()
        and one.dual_gap_ == other.dual_gap_
        and bool((np.asarray(one.kept_) == np.asarray(other.kept_)).all())
    )
    return "yes" if alike else "FAILED"


if __name__ == "__main__":
    main()
