"""Streams of Arrow batches to samples, or a message that names all columns that are no numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.faces.files import arrow as pa
from safesift.faces.files.cells import (
    Categories,
    NotNumbers,
    known_labels,
    known_numbers,
    labels,
    numbers,
    open_ends,
)
from safesift.faces.files.table import Columns, Samples, listed


def collect(batches: Iterable[pa.RecordBatch], columns: Columns, text: Sequence[str]) -> Samples:
    """The samples of a stream of batches; the Arrow data are let go one by one.

    Parameters
    ----------
    columns : Columns
        As found: their `one_hot` are names.
    text : sequence of str
        The features that hold text.
    """
    known = {name: Categories(name, name in text) for name in columns.one_hot}
    blocks, codes, targets, weights, ids = [], [], [], [], []
    for first_row, batch in _numbered(batches):
        blocks.append(_matrix(batch, columns.numbers, first_row, columns.may_miss))
        codes.append([one.of(batch.column(name)) for name, one in known.items()])
        targets.append(_target(batch, columns, first_row))
        if columns.weights:
            weights.append(known_numbers(batch.column(columns.weights), columns.weights, first_row))
        if columns.id:
            ids.extend(batch.column(columns.id).to_pylist())
    if not blocks:
        return Samples(np.empty((0, len(columns.numbers))), np.empty(0), names=columns.numbers)
    if columns.kind == "classification":
        y = labels(pa.chunked_array(targets), _found(columns.target))
    else:
        y = np.concatenate(targets)
    return Samples(
        X=_stacked(blocks),
        y=y,
        weights=np.concatenate(weights) if weights else None,
        names=columns.numbers,
        categories=_joined(codes) if known else None,
        category_names=tuple(known),
        ids=ids if columns.id else None,
    )


def matrices(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[NDArray]:
    """The features of a stream of batches, one matrix after another."""
    for first_row, batch in _numbered(batches):
        yield _matrix(batch, names, first_row)


def labelled(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], target: str
) -> Iterator[tuple[NDArray, NDArray]]:
    """The features and the labels of a stream of batches; text stays text, whatever it holds."""
    for first_row, batch in _numbered(batches):
        found = known_labels(batch.column(target), target, first_row)
        yield _matrix(batch, names, first_row), found.to_numpy(zero_copy_only=False)


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Every batch with the number of rows before it, for messages that name a row."""
    first_row = 0
    for batch in batches:
        yield first_row, batch
        first_row += len(batch)


def _matrix(
    batch: pa.RecordBatch, names: Sequence[str], first_row: int, may_miss: bool = False
) -> NDArray:
    if not names:
        return np.empty((len(batch), 0))
    columns = [known_numbers(batch.column(name), name, first_row, may_miss) for name in names]
    return np.column_stack(columns)


def _target(batch: pa.RecordBatch, columns: Columns, first_row: int) -> NDArray | pa.Array:
    """The target of a batch; labels stay as they are until all of them are known."""
    target = _found(columns.target)
    if columns.kind == "classification":
        return batch.column(target)
    if columns.kind == "regression":
        return known_numbers(batch.column(target), target, first_row)
    upper = _found(columns.upper)
    return np.column_stack(
        [
            open_ends(batch.column(target), target, first_row, -np.inf),
            open_ends(batch.column(upper), upper, first_row, np.inf),
        ]
    )


def _found(name: str | None) -> str:
    """The column of a part that the target needs: `find_columns` refuses to go on without."""
    assert name is not None
    return name


def _stacked(blocks: list[NDArray]) -> NDArray:
    """The blocks on top of each other; each is let go once copied, so there is one copy of all."""
    n_rows = sum(map(len, blocks))
    out = np.empty((n_rows, blocks[0].shape[1]), dtype=np.result_type(*blocks))
    while blocks:
        block = blocks.pop()
        out[n_rows - len(block) : n_rows] = block
        n_rows -= len(block)
    return out


def _joined(blocks: list[list[NDArray]]) -> NDArray:
    return np.column_stack([np.concatenate(parts) for parts in zip(*blocks, strict=True)])


# --- what is wrong with the features, all of it at once -------------------------------------------


@dataclass(frozen=True)
class Survey:
    """The features that are not numbers throughout.

    Attributes
    ----------
    text, commas, other : dict of str to str
        Columns of text, of numbers with decimal commas or of something else, and what it is.
    missing, infinite : dict of str to int
        Columns of numbers where some are missing or infinite, and the first such row.
    """

    text: dict[str, str] = field(default_factory=dict)
    commas: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    infinite: dict[str, int] = field(default_factory=dict)

    @property
    def complaint(self) -> str:
        """What is wrong with them, and the options that help."""
        return " ".join(
            _sentence(found, complaint)
            for kind, complaint in _COMPLAINTS.items()
            if (found := getattr(self, kind))
        )


# what to say of columns, one or several
_COMPLAINTS = {
    "text": "{hold} {example}: make categories of {them} with --one-hot, or leave {them} out with "
    "--ignore.",
    "commas": "{hold} {example}: write points in their place.",
    "other": "{hold} {example}: leave {them} out with --ignore.",
    "missing": "{have} missing values (first in row {example}): fill those in with --impute mean, "
    "or remove the rows.",
    "infinite": "{have} infinite values (first in row {example}): remove the rows, or leave {them} "
    "out with --ignore.",
}
_ONE = {"hold": "holds", "have": "has", "them": "it"}
_SEVERAL = {word: word for word in _ONE}


def _sentence(found: Mapping[str, Any], complaint: str) -> str:
    names, examples = listed([repr(name) for name in found]), list(found.values())
    example = examples[0] if isinstance(examples[0], str) else min(examples)
    who, words = ("column", _ONE) if len(found) == 1 else ("columns", _SEVERAL)
    return f"The {who} {names} {complaint.format(example=example, **words)}"


def survey(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Survey:
    """Look at all cells of some columns."""
    found = Survey()
    for first_row, batch in _numbered(batches):
        for name in names:
            if not any(name in kind for kind in (found.text, found.commas, found.other)):
                _look(found, name, batch.column(name), first_row)
    return found


def _look(found: Survey, name: str, cells: pa.Array, first_row: int) -> None:
    try:
        values = numbers(cells, name, first_row)
    except NotNumbers as error:
        getattr(found, error.kind)[name] = error.what
        found.missing.pop(name, None)
        return
    for where, rows in ((np.isnan(values), found.missing), (np.isinf(values), found.infinite)):
        if name not in rows and where.any():
            rows[name] = first_row + int(np.argmax(where)) + 1
