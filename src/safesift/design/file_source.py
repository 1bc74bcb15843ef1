"""Files of named columns as sources of blocks, read by `pyarrow.dataset`."""

from __future__ import annotations

import glob
import importlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from os.path import abspath, commonpath, dirname, relpath
from pathlib import Path
from typing import Any

import numpy as np

from safesift.design.block_source import BLOCK_ENTRIES, Block, BlockSource, Raw
from safesift.registry import naming_extra

_FORMATS = ("parquet", "csv", "arrow", "feather")


class FileSource(BlockSource):
    """Some columns of many files, a row group or a file being a part.

    Parameters
    ----------
    paths : str, Path or sequence of them
        Files, directories, or patterns such as "clicks/**/*.parquet".
    kind : str
        The format, as `pyarrow.dataset` calls it.
    target : str or pair of str
        The column of targets, or those of the lower and upper ends of intervals; none for
        whoever reads features only.
    columns : sequence of str, optional
        The features, all other columns by default.
    weight : str, optional
        The column of weights.
    """

    def __init__(
        self,
        paths: Any,
        kind: str,
        target: str | Sequence[str],
        columns: Sequence[str] | None,
        weight: str | None,
        memory: int | str,
        scale: str | None,
        checkpoint: str | Path | None = None,
    ) -> None:
        super().__init__(memory, scale, checkpoint)
        assert kind in _FORMATS
        self.kind, self.root, self._files = kind, *found_files(paths)
        dataset = _dataset(self._files, kind, self.root)
        # of the files, partition columns included
        self.schema: Any = dataset.schema
        self._targets = [target] if isinstance(target, str) else list(target)
        self.weight_column = weight
        others = {*self._targets, *filter(None, [weight])}
        names = self.schema.names
        features = [name for name in names if name not in others]
        self._features = tuple(features if columns is None else columns)
        self.feature_names = self._features
        roles = Counter([*self._targets, *filter(None, [weight]), *self._features])
        for name, n_roles in roles.items():
            if n_roles > 1:
                raise ValueError(
                    f"the column {name!r} is named twice: one is a target, a weight or a feature, "
                    "and once."
                )
            if name not in names:
                raise ValueError(
                    f"{self._files[0]} has no column {name!r}: it has {', '.join(names[:8])}"
                    f"{', …' if len(names) > 8 else ''}."
                )
        if not self._features:
            raise ValueError(f"{self._files[0]} has no columns beside the target: name some.")
        self._parts = [part for file in dataset.get_fragments() for part in _split(file)]
        if kind == "csv" and self._targets:
            self.schema = self._with_text({*self.own_columns(0)} - {*roles})
        if kind == "parquet":
            groups = [group for part in self._parts for group in part.row_groups]
            self.n_rows = sum(group.num_rows for group in groups)

    def refuse_labels(self, what: str) -> None:
        """Refuse labels that are neither text nor numbers, for something that has only those."""
        types = _arrow("types")
        for name in self._targets:
            kind = self.schema.field(name).type
            own = kind.value_type if types.is_dictionary(kind) else kind
            plain = (types.is_boolean, types.is_integer, types.is_floating, types.is_string,
                     types.is_large_string)  # fmt: skip
            if not any(test(own) for test in plain):
                raise ValueError(
                    f"the column {name!r} is of type {kind}, and the labels of {what} are text or "
                    "whole numbers: make them so first."
                )

    def _with_text(self, names: set[str]) -> Any:
        """Columns that play no part stay as they are written: no number that an id looks like."""
        text, schema = _arrow("").string(), self.schema
        for k, own in enumerate(schema):
            schema = schema.set(k, own.with_type(text)) if own.name in names else schema
        return schema

    @property
    def n_parts(self) -> int:
        return len(self._parts)

    @property
    def files(self) -> list[str]:
        """All of them, in their order."""
        return list(self._files)

    @property
    def n_files(self) -> int:
        return len(self._files)

    def path(self, part: int) -> str:
        """The file that a part is in."""
        return self._parts[part].path

    @cached_property
    def _common(self) -> str:
        """A directory below which all files are: the one where partitions begin, or one above."""
        return commonpath([abspath(self.root or "."), *map(dirname, map(abspath, self._files))])

    def name(self, part: int) -> str:
        """Where the file of a part is below the directory of all files: no two are in one place."""
        return relpath(self.path(part), self._common)

    def own_columns(self, part: int) -> list[str]:
        """The columns that the file itself has, in its order."""
        return self._parts[part].physical_schema.names

    def place(self, part: int) -> str:
        groups = getattr(self._parts[part], "row_groups", None)
        group = "" if not groups else f", row group {groups[0].id}"
        return f"{self.path(part)}{group}"

    def to_keep(self, block: Block) -> Block:
        # features were decoded into an array of their own; targets may be a view of the whole table
        return replace(block, y=block.y.copy())

    def raw(self, part: int) -> Iterator[Raw]:
        wanted = [*self._features, *self._targets, *filter(None, [self.weight_column])]
        for batch in self.batches(part, wanted):
            yield self.decoded(batch)

    def batches(self, part: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Tables of some columns, or of all: the same rows in each, whatever the columns."""
        try:
            yield from self._batches(part, columns)
        except OSError as error:
            reason = str(error).partition("\n")[0]
            raise OSError(
                f"{self.place(part)} cannot be read, or is no longer what it was: {reason}"
            ) from None

    def _batches(self, part: int, columns: Sequence[str] | None) -> Iterator[Any]:
        wanted = self.schema.names if columns is None else list(columns)
        n_rows = max(min(BLOCK_ENTRIES, self.memory // 256) // len(self._features), 1)
        found = self._parts[part]
        own = set(found.physical_schema.names) | set(_values(found))
        lost = [name for name in wanted if name not in own]
        if lost:
            raise ValueError(
                f"{self.place(part)} has no column {lost[0]!r}, which {self._files[0]} has: give "
                "all files the same columns."
            )
        self._refuse_types(part, wanted)
        waiting: list[Any] = []
        arrow = _arrow("")
        for batch in found.to_batches(
            schema=self.schema, columns=wanted, batch_size=n_rows, batch_readahead=1,
            fragment_readahead=1, use_threads=False,
        ):  # fmt: skip
            # how a file is cut into pages must not matter: blocks of one length but the last
            waiting.append(batch)
            while sum(len(one) for one in waiting) >= n_rows:
                table = arrow.Table.from_batches(waiting).combine_chunks()
                yield table.slice(0, n_rows)
                waiting = table.slice(n_rows).to_batches()
        if waiting:
            yield arrow.Table.from_batches(waiting).combine_chunks()

    def _refuse_types(self, part: int, wanted: Sequence[str]) -> None:
        """Refuse columns of another type than in the first file that would not be what they are.

        Text is read as the type of the first file, and where that fails it is said.
        """
        if self.kind == "csv":
            return
        for own in self._parts[part].physical_schema:
            if own.name not in wanted:
                continue
            kept = self.schema.field(own.name).type
            if not _holds(kept, own.type):
                raise ValueError(
                    f"the column {own.name!r} is of type {own.type} in {self.place(part)}, but of "
                    f"type {kept} in {self._files[0]}: give it the same type in all files."
                )

    def decoded(self, table: Any) -> Raw:
        """Features, targets and weights of a table."""
        X = self.features(table)
        targets = [table.column(name).to_numpy() for name in self._targets]
        y = targets[0] if len(targets) == 1 else np.column_stack(targets)
        return Raw(
            X, y, None if self.weight_column is None else _numbers(table, self.weight_column)
        )

    def features(self, table: Any) -> Any:
        """Those of a table, as a matrix."""
        # column after column, then turned at once: twice as fast as single entries far apart
        columns = np.empty((len(self._features), len(table)), dtype=self._dtype)
        for column, name in zip(columns, self._features, strict=True):
            column[:] = _numbers(table, name)
        return np.ascontiguousarray(columns.T)

    @property
    def _dtype(self) -> Any:
        """float32 where that holds every feature exactly."""
        types = [self.schema.field(name).type for name in self._features]
        small = {"float", "halffloat", "int8", "int16", "uint8", "uint16", "bool"}
        return np.float32 if all(str(kind) in small for kind in types) else np.float64


def _numbers(table: Any, name: str) -> Any:
    column = table.column(name)
    values = column.to_numpy()
    if values.dtype.kind not in "fiub":
        if column.null_count:
            row = int(np.argmax([value is None for value in values]))
            raise ValueError(f"the column {name!r} has no entry in row {row} of the block.")
        raise ValueError(f"the column {name!r} of type {column.type} holds no numbers: encode it.")
    return values


def _holds(kept: Any, own: Any) -> bool:
    """Whether values of one type are the same in another, or Arrow says which one is not."""
    types = _arrow("types")
    kept, own = (one.value_type if types.is_dictionary(one) else one for one in (kept, own))
    if kept == own or types.is_null(own):
        return True
    if types.is_boolean(kept):
        return False  # -1 would be true
    if types.is_floating(kept) and types.is_floating(own):
        return bool(own.bit_width <= kept.bit_width)
    return _is_number(kept) == _is_number(own)


def _is_number(kind: Any) -> bool:
    types = _arrow("types")
    tests = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)
    return any(test(kind) for test in tests)


def _values(fragment: Any) -> dict[str, Any]:
    """What the directories of a file say of all its rows."""
    return dict(_arrow("dataset").get_partition_keys(fragment.partition_expression))


def _split(fragment: Any) -> list[Any]:
    """The row groups of a Parquet file; any other file is one part."""
    if not hasattr(fragment, "split_by_row_group"):
        return [fragment]
    return fragment.split_by_row_group() or [fragment]


def column_names(paths: Any, kind: str) -> list[str]:
    """Of the first file, those that directories name included."""
    root, files = found_files(paths)
    return list(_dataset(files[:1], kind, root).schema.names)


def _dataset(files: list[str], kind: str, root: str) -> Any:
    return _arrow("dataset").dataset(
        files, format=kind, partitioning="hive", partition_base_dir=root
    )


def found_files(paths: Any) -> tuple[str, list[str]]:
    """The directory below which partitions are named, and the files, in their order."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files: list[str] = []
    for path in map(str, given):
        if Path(path).is_dir():
            files += sorted(str(one) for one in Path(path).rglob("*") if _is_data(one, path))
        elif glob.has_magic(path) and not Path(path).is_file():
            files += sorted(one for one in glob.glob(path, recursive=True) if Path(one).is_file())
        else:
            files.append(path)
    if not files:
        raise ValueError(f"{', '.join(map(str, given))}: there are no such files.")
    missing = [file for file in files if not Path(file).is_file()]
    if missing:
        raise FileNotFoundError(f"{missing[0]}: there is no such file.")
    seen = Counter(map(abspath, files))
    twice = [file for file in files if seen[abspath(file)] > 1]
    if twice:
        raise ValueError(
            f"{twice[0]} is there twice, and its rows would count twice: name every file once."
        )
    first = str(given[0])
    if Path(first).is_dir():
        return first, files
    return dirname(first if Path(first).is_file() else re.split(r"[*?[]", first)[0]), files


def _is_data(path: Path, directory: str) -> bool:
    """Whether it is none of the files that others hide, or leave below a hidden directory."""
    hidden = any(name.startswith((".", "_")) for name in path.relative_to(directory).parts)
    return path.is_file() and not hidden and path.suffix != ".json"


def _arrow(part: str) -> Any:
    try:
        return importlib.import_module(f"pyarrow.{part}".rstrip("."))
    except ImportError as error:
        raise naming_extra(error) from None
