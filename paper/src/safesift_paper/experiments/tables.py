"""Markdown tables, and numbers as they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from safesift_paper.experiments.spec import Record

# percentages that are this close are printed as the same
ROUNDED = 0.05


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spread(values: Iterable[float | None], digits: int = 1) -> str:
    """Mean and, where there are several, standard deviation."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    mean = f"{np.mean(known):.{digits}f}"
    return mean if len(known) == 1 else f"{mean} ± {np.std(known):.{digits}f}"


def repeats_of(records: Sequence[Record]) -> list[list[Record]]:
    """Records that differ in their seed only, together."""
    groups: dict[tuple, list[Record]] = {}
    for record in records:
        place = tuple(value for axis, value in record.cell.items() if axis != "seed")
        groups.setdefault(place, []).append(record)
    return list(groups.values())


def data_names(records: Sequence[Record]) -> list[str]:
    """The data sets of some records, in their order."""
    return list(dict.fromkeys(record.cell["data"] for record in records))


def origin(records: Sequence[Record]) -> str:
    """The data sets in words, stand-ins named as such."""
    lines = []
    for name in data_names(records):
        about = next(record.about for record in records if record.cell["data"] == name)
        line = f"- **{name}**: {about['data']}, {about['n_samples']} × {about['n_features']}"
        if about["stands_in_for"]:
            line += f"; **a stand-in** for {about['stands_in_for']}, not the paper's data"
        lines.append(line + ".")
    return "\n".join(lines)


def label(record: Record) -> str:
    """The name of a data set, with what it stands in for."""
    name, stands_in_for = record.cell["data"], record.about["stands_in_for"]
    return f"{name} (for {stands_in_for})" if stands_in_for else name


def paper_name(record: Record) -> str:
    """The name under which the paper's numbers are found: that of the real data set."""
    return record.about["stands_in_for"] or record.cell["data"]
