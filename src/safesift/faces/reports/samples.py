"""The hardest samples and the most doubtful labels, as a table to sort and to filter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.faces import summaries
from safesift.faces.markup import Markup, brief, element, joined
from safesift.faces.reports.cells import MOST_COLUMNS, CellSource, shown, sort_key
from safesift.faces.reports.subject import Subject

Rows = NDArray[np.intp]

# what they are sorted by at first
_ORDER = "doubt"
# so many of the hardest, and of the most doubtful ones
_EACH = 100


@dataclass(frozen=True, eq=False)
class Chosen:
    """The samples that are listed, and why.

    Attributes
    ----------
    rows : array of int
        The most doubtful first.
    hard, doubtful : masks over them
    """

    rows: Rows
    hard: NDArray[np.bool_]
    doubtful: NDArray[np.bool_]

    @classmethod
    def of(cls, subject: Subject) -> Chosen:
        hard = np.zeros(0, dtype=np.intp)
        if subject.screening is not None:
            score = np.where(subject.screening.kept, subject.screening.score, -np.inf)
            hard = _largest(score)
        # a label that is predicted is not in doubt
        label = subject.classes is not None
        doubtful = _largest(
            np.where(subject.doubt > 0, subject.doubt, -np.inf) if label else subject.doubt
        )
        rows = np.union1d(hard, doubtful)
        rows = rows[np.argsort(-subject.doubt[rows], kind="stable")]
        return cls(rows, np.isin(rows, hard), np.isin(rows, doubtful))


def _largest(values: NDArray) -> Rows:
    first = np.argsort(-values, kind="stable")[:_EACH]
    return first[values[first] > -np.inf]


def listed(subject: Subject, source: CellSource | None) -> Markup:
    """The table with its filter."""
    chosen = Chosen.of(subject)
    columns = [*_own_columns(subject, chosen), *_given_columns(source, chosen)]
    head = [
        element(
            "th",
            element("button", name, type="button"),
            scope="col",
            aria_sort="descending" if name == _ORDER else "none",
        )
        for name, _ in columns
    ]
    lines = [
        element("tr", *(_cell(values[k]) for _, values in columns), data_row=row)
        for k, row in enumerate(chosen.rows.tolist())
    ]
    filled = element(
        "table", element("thead", element("tr", *head)), element("tbody", *lines), id="samples"
    )
    return joined([_explained(subject, source), _filter(len(lines)), element(
        "div", filled, class_="wide scroll", tabindex=0, role="region",
        aria_label="hardest samples and most doubtful labels",
    )])  # fmt: skip


def _cell(value: Any) -> Markup:
    key = sort_key(value)
    return element("td", shown(value), class_=key and "number", data_value=key)


def _explained(subject: Subject, source: CellSource | None) -> Markup:
    by = (
        "the model that was trained without the sample"
        if subject.loo is not None
        else "the model itself, which has seen them"
    )
    what = "label" if subject.classes is not None else "target"
    unit = " (above 0 another label is predicted)" if subject.classes is not None else ""
    text = (
        f"At most {_EACH} samples that the model needs most, and at most {_EACH} whose {what} is "
        f"most at odds with {by}: what may be an error is worth a look. Doubt is how far the "
        f"{what} is from what that model says{unit}."
    )
    hidden = 0 if source is None else len(source.names) - MOST_COLUMNS
    more = f" {hidden} more columns are not shown." if hidden > 0 else ""
    return element("p", text + more)


def _filter(count: int) -> Markup:
    return element(
        "p",
        element("label", "Show only rows with ", for_="filter"),
        element("input", type="search", id="filter", placeholder="a word or a number"),
        element("output", f" {count} rows", id="found", for_="filter", aria_live="polite"),
    )


def _own_columns(subject: Subject, chosen: Chosen) -> Iterator[tuple[str, list]]:
    """What is known of the samples."""
    rows = chosen.rows
    yield "row", rows.tolist()
    why = {(True, True): "hard, doubtful", (True, False): "hard", (False, True): "doubtful"}
    pairs = zip(chosen.hard.tolist(), chosen.doubtful.tolist(), strict=True)
    yield "why", [why[pair] for pair in pairs]
    targets = subject.targets[rows]
    names = ["label" if subject.classes is not None else "target"]
    names = ["lower end", "upper end"] if targets.ndim == 2 else names
    for name, values in zip(names, np.atleast_2d(targets.T), strict=True):
        yield name, values.tolist()
    yield _ORDER, subject.doubt[rows].tolist()
    if subject.loo is not None and subject.classes is not None:
        yield "said without it", subject.loo.prediction[rows].tolist()
    if subject.screening is not None:
        yield "verdict", summaries.fates_of(subject.screening, rows)
        yield "how hard", subject.screening.score[rows].tolist()
    if subject.decision.ndim == 1:
        yield "model says", subject.decision[rows].tolist()
        if subject.screening is not None:
            yield "at least", subject.screening.lower[rows].tolist()
            yield "at most", subject.screening.upper[rows].tolist()


def _given_columns(source: CellSource | None, chosen: Chosen) -> Iterator[tuple[str, list]]:
    """What the reader knows them by."""
    if source is None:
        return
    cells = source.cells(chosen.rows)
    for column, name in enumerate(source.names[:MOST_COLUMNS]):
        yield brief(str(name)), cells[:, column].tolist()
