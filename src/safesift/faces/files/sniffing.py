"""What text holds, found out from how it begins: svmlight lines, or cells between separators."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

# from the most usual one; where two fit equally well the first is taken
_SEPARATORS = (",", "\t", ";", "|")
# there are spaces inside cells, too: they separate only where nothing else does
_LAST_RESORT = " "

_MOST_RECORDS = 200

_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_SVMLIGHT = re.compile(rb"^" + _NUMBER + rb"(?:\s+(?:qid|\d+):" + _NUMBER + rb")*$")


def is_svmlight(head: bytes, is_all: bool = True) -> bool:
    """Whether all lines are a number and index:value pairs, and one has such a pair."""
    lines = (line.partition(b"#")[0].strip() for line in _whole(head.splitlines(), is_all))
    samples = list(itertools.islice(filter(None, lines), _MOST_RECORDS))
    return all(map(_SVMLIGHT.match, samples)) and any(b":" in line for line in samples)


def find_separator(head: bytes, is_all: bool = True) -> str:
    """What is between the cells: gives every record as many cells as the header, and most of them.

    Quotes have to be where cells begin and end, first, and may be anywhere if nothing fits then.
    Where nothing does at all, a comma: then there is one column, or the file is broken, and
    whoever reads it says so.
    """
    text = head.decode("latin-1")
    for strict in (True, False):
        widths = {one: _width(text, is_all, one, strict) for one in _SEPARATORS}
        best = max(_SEPARATORS, key=lambda one: widths[one])
        if widths[best] > 1:
            return best
    return _LAST_RESORT if _width(text, is_all, _LAST_RESORT, False) > 1 else _SEPARATORS[0]


def _width(text: str, is_all: bool, separator: str, strict: bool) -> int:
    """How many cells all records have, 0 where they have not all the same number."""
    records = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=strict)
    try:
        widths = {len(cells) for cells in _whole(filter(None, records), is_all)}
    except csv.Error:
        return 0
    return widths.pop() if len(widths) == 1 else 0


def _whole(records: Iterable[T], is_all: bool) -> list[T]:
    """Some of them, without the one that the end of the text cuts through."""
    some = list(itertools.islice(records, _MOST_RECORDS))
    return some if is_all or len(some) in (1, _MOST_RECORDS) else some[:-1]
