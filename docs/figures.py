"""Which figures the page of measured figures has: of which file, which rows, which columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

Row = dict[str, Any]


def plain(value: Any) -> str:
    return str(value)


def yes(value: Any) -> str:
    return "yes" if value else "no"


def count(value: float) -> str:
    """A whole number, in groups of three."""
    return f"{round(value):,}".replace(",", "\u202f")  # a space at which no line is broken


def digits(value: float) -> str:
    """Three significant digits, never with an exponent where people read seconds."""
    return count(value) if abs(value) >= 1000 else f"{value:.3g}"


def times(value: float) -> str:
    return f"{digits(value)} ×"


def small(value: float) -> str:
    """One digit and an exponent without zeros."""
    return f"{value:.0e}".replace("e-0", "e-") if value else "0"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def megabytes(value: float) -> str:
    return f"{count(value / 1e6)} MB"


@dataclass(frozen=True)
class Column:
    """A heading, the key (or keys, one inside the other) of a row, and how its value is written."""

    heading: str
    key: str | tuple[str, ...]
    written: Callable[[Any], str] = digits

    NOTHING: ClassVar[str] = "–"

    @property
    def is_number(self) -> bool:
        return self.written is not plain

    def text(self, row: Row) -> str:
        value: Any = row
        for key in (self.key,) if isinstance(self.key, str) else self.key:
            value = value.get(key) if isinstance(value, dict) else None
        return self.NOTHING if value is None else self.written(value)


@dataclass(frozen=True)
class Figure:
    """A table of the page.

    Attributes
    ----------
    source, script : str
        The file of results, and who writes it.
    title, words : str
        The heading, and what is measured, in a sentence or two.
    rows : callable
        From what is in the file to the rows of the table.
    columns : tuple of Column
        The first one names the row.
    """

    source: str
    script: str
    title: str
    words: str
    rows: Callable[[Row], Iterator[Row] | list[Row]]
    columns: tuple[Column, ...]


def entries(key: str) -> Callable[[Row], list[Row]]:
    """The rows that a file has under one key."""
    return lambda facts: facts.get(key) or []


def races(facts: Row) -> Iterator[Row]:
    """Paths to the smaller gap on a quiet machine: ours, and the fastest peer that arrived."""
    for record in facts.get("records", []):
        if record["load"] != "quiet" or record["tol"] != 1e-6:
            continue
        found = {
            solver: entry["stages"]["path"]["seconds"]
            for solver, entry in record["solvers"].items()
            if entry["stages"].get("path", {}).get("reached")
        }
        ours = found.pop("safesift", None)
        if ours is not None and found:
            best = min(found, key=lambda solver: found[solver])
            data, _, task = record["case"].partition("/")
            for sign, words in (("_", " "), ("-", ", "), ("+", ", ")):
                task = task.replace(sign, words)
            yield {"data": data, "task": task, "ours": ours, "peer": best,
                   "theirs": found[best], "ratio": found[best] / ours}  # fmt: skip


def gaps_reached(facts: Row) -> Iterator[Row]:
    for run in facts.get("runs", []):
        reached = {f"to {gap}": seconds for gap, seconds in (run.get("seconds") or {}).items()}
        yield {**run, **reached}


def cards(facts: Row) -> Iterator[Row]:
    """What was run on the graphics card, and what stands beside it."""
    names = {
        "path": "ten alphas", "single": "ten alphas, float32 throughout",
        "hundred": "a hundred alphas", "lasso": "ten alphas, safe logistic and l1",
        "mnist": "ten alphas of MNIST", "lbfgs": "torch's L-BFGS, the last alpha",
    }  # fmt: skip
    for key, name in names.items():
        if isinstance(facts.get(key), dict):
            gap = facts[key].get("largest_relative_gap", facts[key].get("relative_gap"))
            yield {**facts[key], "name": name, "gap": gap}


def growths(facts: Row) -> Iterator[Row]:
    for series in (facts.get("series") or {}).values():
        yield from series


def trackers(facts: Row) -> Iterator[Row]:
    for name, seconds in (facts.get("seconds") or {}).items():
        more = {
            key: (facts.get(key) or {}).get(name)
            for key in ("ratios", "cpu_ratios", "largest_gaps")
        }
        yield {"name": name, "seconds": seconds, **more}


def kernels(facts: Row) -> Iterator[Row]:
    for loss, found in (facts.get("ours") or {}).items():
        yield {"name": f"safesift, {loss.replace('_', ' ')}", **found}
    for name, found in (facts.get("peers") or {}).items():
        yield {"name": name, **found}


def compressions(facts: Row) -> Iterator[Row]:
    """Where a tenth, a fiftieth and a hundredth of the samples are left."""
    for data, curve in (facts.get("curves") or {}).items():
        for deleted in (0.9, 0.98, 0.99):
            if deleted in curve["fractions_deleted"]:
                at = curve["fractions_deleted"].index(deleted)
                means = {method: scores[at] for method, scores in curve["mean"].items()}
                yield {"data": data, "metric": curve["metric"], "left": curve["n_kept"][at],
                       "all": curve["all_samples"], **means}  # fmt: skip


_SIZE = (Column("rows", "rows", count), Column("columns", "columns", count))

FIGURES: tuple[Figure, ...] = (
    Figure(
        "paths_vs_peers", "paths_vs_peers.py", "Paths of alphas",
        "Paths of alphas (most have ten), every model to a relative duality gap of 1e-6, two "
        "cores, nothing else running; beside the fastest of scikit-learn, cyanure, skglm, ReHLine "
        "and adelie that arrived. Below 1 × the peer is faster.",
        races,
        (Column("data", "data", plain), Column("loss and penalty", "task", plain),
         Column("ours, s", "ours"), Column("best peer", "peer", plain),
         Column("peer, s", "theirs"), Column("peer / ours", "ratio", times)),
    ),
    Figure(
        "price_of_ridge", "price_of_ridge.py", "In units of a Ridge fit",
        "Seconds of scikit-learn's Ridge on the same rows, and of certified paths of the squared "
        "hinge.",
        entries("data"),
        (Column("data", "data", plain), Column("Ridge", ("seconds", "ridge")),
         Column("path of 10", ("seconds", "path of 10")),
         Column("path of 100", ("seconds", "path of 100")),
         Column("the same without screening", ("seconds", "path of 100, unscreened")),
         Column("cross-validation", ("seconds", "cross-validation")),
         Column("the same without screening", ("seconds", "cross-validation, unscreened"))),
    ),
    Figure(
        "screen_vs_fit", "screen_vs_fit.py", "Screening",
        "Rows that are kept, and seconds, of `screen` on raw columns beside a fit of "
        "`SafeClassifier` and `effort=\"quick\"`.",
        entries("records"),
        (Column("data", "data", plain), Column("kept by a fit", ("kept", "fit"), count),
         Column("by screen", ("kept", "screen"), count),
         Column("by quick", ("kept", "quick"), count), Column("fit, s", ("seconds", "fit")),
         Column("screen, s", ("seconds", "screen")), Column("quick, s", ("seconds", "quick"))),
    ),
    Figure(
        "scale", "scale.py", "Larger than memory",
        "Certified models of rows in blocks: passes over them, seconds, and by how much the memory "
        "of the process grew.",
        entries("runs"),
        (Column("case", "case", plain), *_SIZE, Column("alphas", "alphas", count),
         Column("passes", "passes", count), Column("seconds", "seconds"),
         Column("relative gap", "relative_gap", small), Column("memory", "grown", megabytes)),
    ),
    Figure(
        "scale_race", "scale.py", "Larger than memory, beside others",
        "Seconds from Parquet files to a relative gap; who does not say how far he is was looked "
        "at from outside, and stopped at the first look that was good enough.",
        gaps_reached,
        (Column("who", "who", plain), Column("loss", "loss", plain), *_SIZE,
         Column("to 1e-2", "to 0.01"), Column("to 1e-3", "to 0.001"),
         Column("to 1e-6", "to 1e-06"), Column("best gap", "best", small),
         Column("in, s", "in"), Column("", "failed", plain)),
    ),
    Figure(
        "gpu", "gpu.py", "On a graphics card",
        "Certified paths of dense float32 rows on the device; no time includes moving the data.",
        cards,
        (Column("what", "name", plain), Column("seconds", "seconds"),
         Column("largest relative gap", "gap", small), Column("passes", "passes"),
         Column("undecided rows", "undecided", count)),
    ),
    Figure(
        "leave_one_out", "leave_one_out.py", "All models without a row",
        "One fit, all models without one row after it, and how many times as long it takes to "
        "solve for them one by one, or to follow them by `SafeTracker`.",
        entries("models"),
        (Column("data", "data", plain), Column("rows", "n", count), Column("columns", "p", count),
         Column("intercept", "intercept", yes), Column("fit, s", "fit"), Column("all, s", "all"),
         Column("refits", "refits ×", times), Column("tracker", "tracker ×", times),
         Column("widest interval", "widest", small)),
    ),
    Figure(
        "leave_one_out", "leave_one_out.py", "Prediction intervals",
        "Share of new rows in their `jackknife_plus` intervals at level 0.9.",
        entries("coverage"),
        (Column("data", "data", plain), Column("trained on", "train", count),
         Column("tested on", "test", count), Column("jackknife+", "plus", percent),
         Column("minmax", "minmax", percent), Column("standard error", "standard error", percent)),
    ),
    Figure(
        "certify_alpha", "certify_alpha.py", "The best alpha, with a proof",
        "The validation error of the chosen alpha, the least that any alpha of the range can have, "
        "and processor time next to that of a cross-validation of 100 alphas.",
        entries("alphas"),
        (Column("data", "data", plain), Column("epsilon", "epsilon"), Column("error", "error"),
         Column("least possible", "least"), Column("alphas solved for", "solved for", count),
         Column("resolved", "resolved", yes), Column("ours / cross-validation", "×", times)),
    ),
    Figure(
        "proofs", "proofs.py", "Proofs on file",
        "What `safesift_check` takes to verify a proof, in seconds and in passes over the rows, "
        "and what the file loses of what the library had proved.",
        entries("cases"),
        (Column("data", "data", plain), Column("loss", "loss", plain),
         Column("penalty", "penalty", plain), *_SIZE, Column("dropped", "dropped", count),
         Column("in the proof", "dropped in the proof", count), Column("check, s", "check s"),
         Column("passes", "passes"), Column("bytes", "bytes", count)),
    ),
    Figure(
        "kernels_vs_svc", "kernels_vs_svc.py", "Kernel machines",
        "A path of kernel machines, seconds for all of it.",
        kernels,
        (Column("who", "name", plain), Column("seconds", "seconds")),
    ),
    Figure(
        "mining", "mining.py", "Mining a rare class",
        "The certified model of all rows from a pool that is streamed, beside fits of everything "
        "in memory.",
        entries("cases"),
        (Column("data", "data", plain), Column("rare rows", "n_rare", count),
         Column("kept", "n_kept", count), Column("LinearSVC, s", "svm_s"),
         Column("our fit, s", "fit_s"), Column("mining, s", "mining_s"),
         Column("memory of all", "memory_all", megabytes),
         Column("memory, mined", "memory_mined", megabytes)),
    ),
    Figure(
        "tracking", "tracking.py", "Following a stream",
        "A window that moves over electricity prices: seconds for all steps, and how many times "
        "those of the tracker.",
        trackers,
        (Column("who", "name", plain), Column("seconds", "seconds"),
         Column("of the tracker's", "ratios", times),
         Column("processor time", "cpu_ratios", times),
         Column("largest relative gap", "largest_gaps", small)),
    ),
    Figure(
        "compression", "compression.py", "Compression",
        "Test scores of models of a few samples, chosen by each method.",
        compressions,
        (Column("data", "data", plain), Column("score", "metric", plain),
         Column("samples left", "left", count), Column("of all samples", "all"),
         Column("hybrid", "hybrid"), Column("random", "random"),
         Column("screening", "screening")),
    ),
    Figure(
        "growth", "growth.py", "How the cost grows",
        "Seconds of a fit and of a path of ten alphas on generated rows.",
        growths,
        (*_SIZE, Column("fit", "single fit"), Column("path of 10", "path of 10")),
    ),
    Figure(
        "memory", "memory.py", "Memory of a fit",
        "The peak that a fit or a path allocates beside the data.",
        entries("peaks"),
        (Column("data", "data", plain), Column("type", "type", plain),
         Column("call", "call", plain), Column("the data", "matrix", megabytes),
         Column("peak beside it", "traced", megabytes)),
    ),
)  # fmt: skip
