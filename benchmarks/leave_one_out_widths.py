"""How long the intervals of all models without one sample are, for every loss and penalty.

    SAFESIFT_DATA=folder python benchmarks/leave_one_out_widths.py [--rows 500] [--alone 60]

Of every loss with every penalty, without and with an intercept: the median of upper − lower over
the spread (standard deviation) of the predictions, the largest over three generated problems and,
beside it, on rows of a9a; alpha = 1e-2. Targets of regressions are numbers, of intervals those
numbers and more. What is refused is listed as that. "solved for": the share of models that had to
be solved for one by one. Where all of them are, because of a kink or of l1 with a loss without
pieces, one generated problem and fewer rows of a9a have to do.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import results
from datasets import a9a
from tables import Sheet, number, wide_console

import safesift as ss
from safesift.losses import LOSSES

ALPHA = 1e-2
PENALTIES = ("l2", "elastic_net", "l1")
SHAPES = ((200, 8), (300, 40), (500, 15))
COLUMNS = ("loss", "penalty", "intercept", "generated", "a9a", "longest", "solved for", "seconds")
ASKED = 1e-3


class Samples(NamedTuple):
    name: str
    X: Any
    score: np.ndarray


def generated() -> Iterator[Samples]:
    """Correlated columns, of which a few matter."""
    for seed, (n, p) in enumerate(SHAPES):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
        yield Samples("generated", X, X[:, :3].sum(axis=1) / 2.0 + rng.normal(size=n))


def real(rows: int) -> Samples:
    X, y = a9a()
    chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:rows])
    return Samples("a9a", X[chosen], np.asarray(y[chosen], dtype=float))


def targets(loss: str, score: np.ndarray) -> np.ndarray:
    """Labels, numbers or intervals."""
    task = LOSSES[loss]().task
    if task == "classification":
        return np.where(score > 0, 1, -1)
    return score if task == "regression" else np.stack([score, score + 0.5], axis=1)


def measure(samples: Samples, loss: str, penalty: str, intercept: bool) -> dict[str, Any]:
    """Lengths of intervals over the spread of the predictions; None where it is refused."""
    row = {"data": samples.name, "loss": loss, "penalty": penalty, "intercept": intercept}
    began = time.process_time()
    try:
        loo = ss.leave_one_out(
            samples.X, targets(loss, samples.score), loss=loss, penalty=penalty, alpha=ALPHA,
            fit_intercept=intercept,
        )  # fmt: skip
    except ValueError as refusal:
        return row | {"refused": str(refusal)}
    lengths = (loo.upper - loo.lower) / np.std(loo.decision)
    return row | {
        "median": float(np.median(lengths)),
        "largest": float(lengths.max()),
        "solved for": loo.n_refits / len(lengths),
        "cpu seconds": time.process_time() - began,
    }


def one_by_one(loss: str, penalty: str) -> bool:
    """Whether all models are solved for."""
    kind = LOSSES[loss]()
    return math.isinf(kind.smoothness) or (penalty != "l2" and not kind.quadratic_rays)


def line(rows: list[dict[str, Any]], loss: str, penalty: str, intercept: bool) -> list[str]:
    """What is shown of a loss and a penalty."""
    names = [loss, penalty, "yes" if intercept else "no"]
    if "refused" in rows[0]:
        return [*names, "refused", "", "", "", ""]
    made, real_ones = ([row for row in rows if (row["data"] == "a9a") == on] for on in (0, 1))
    figures = [max((row["median"] for row in part), default=None) for part in (made, real_ones)]
    longest = max(row["largest"] for row in rows)
    solved = max(row["solved for"] for row in rows)
    spent = sum(row["cpu seconds"] for row in rows)
    return [*names, *map(number, figures), number(longest), f"{solved:.0%}", f"{spent:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500, help="of a9a")
    parser.add_argument("--alone", type=int, default=60, help="the same, one by one")
    arguments = parser.parse_args()
    made = [*generated()]
    all_together, alone = [*made, real(arguments.rows)], [made[0], real(arguments.alone)]
    sheet = Sheet("length of intervals over the spread of predictions", COLUMNS, n_names=3)
    rows: list[dict[str, Any]] = []
    kinds = sorted(product(LOSSES, PENALTIES), key=lambda kind: one_by_one(*kind))
    for (loss, penalty), intercept in product(kinds, (False, True)):
        data = alone if one_by_one(loss, penalty) else all_together
        own = [measure(samples, loss, penalty, intercept) for samples in data]
        sheet.add(*line(own, loss, penalty, intercept))
        print(*sheet.rows[-1], flush=True)
        rows += own
        # the last ones take long: what there is by then is not lost
        results.write("leave_one_out_widths", {"alpha": ALPHA, "widths": rows}, lines="widths")
    wide_console().print(sheet.table())
    longer = [row for row in rows if row.get("median", 0.0) > ASKED]
    print(f"{len(longer)} of {len(rows)} medians above {ASKED:g}")


if __name__ == "__main__":
    main()
