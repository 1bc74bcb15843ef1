"""A run that was killed goes on after its last completed pass.

    run/
      run.json        which data and which arguments
      pass-000004/    what is known after so many passes: state.pickle, codes

A pass is written beside and renamed when it is complete; the one before is removed then. It is
read back with `pickle`: give no directory that somebody else may write to.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from safesift.design.block_source import BlockSource
from safesift.workflows.scale.codes import CodeStore

_RECORD, _STATE, _CODES = "run.json", "state.pickle", "codes"


class Checkpoint:
    """The directory of a run.

    Parameters
    ----------
    directory : Path
    source : BlockSource
    arguments : mapping of str to str
        What is asked of it, in words.

    Raises
    ------
    ValueError
        Where the directory is of another run: names what differs.
    """

    def __init__(self, directory: Path, source: BlockSource, arguments: Mapping[str, str]) -> None:
        self._directory, self._source = directory, source
        mine = {**arguments, **described(source)}
        record = directory / _RECORD
        if record.exists():
            self._compare(json.loads(record.read_text()), mine)
            return
        beside = directory / f".{_RECORD}.part"
        # a run that was killed before it had its name is nothing else
        if directory.exists() and any(one != beside for one in directory.iterdir()):
            raise ValueError(
                f"checkpoint={str(directory)!r} holds something else: name a new directory."
            )
        directory.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(mine, indent=1))
        os.replace(beside, record)

    def _compare(self, theirs: Mapping[str, str], mine: Mapping[str, str]) -> None:
        for name in sorted({*theirs, *mine}):
            was, now = theirs.get(name), mine.get(name)
            if was != now:
                raise ValueError(
                    f"checkpoint={str(self._directory)!r} is of another run, with {name} {was} "
                    f"where this one has {now}: name another directory, or remove it."
                )

    # --- passes -------------------------------------------------------------------------------

    def save(self, n_passes: int, state: Mapping[str, Any], codes: CodeStore) -> None:
        """Write what is known after a pass; what was known before is removed."""
        done = self._directory / f"pass-{n_passes:06d}"
        beside = self._directory / f".{done.name}.part"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        with open(beside / _STATE, "wb") as file:
            pickle.dump(dict(state), file)
            file.flush()
            os.fsync(file.fileno())
        with open(beside / _CODES, "wb") as file:
            codes.dump(file)
            file.flush()
            os.fsync(file.fileno())
        shutil.rmtree(done, ignore_errors=True)
        os.replace(beside, done)
        for other in self._passes():
            if other != done:
                shutil.rmtree(other, ignore_errors=True)

    def last(self) -> dict[str, Any] | None:
        """What was known after the last completed pass; None where there is none."""
        if not self._passes():
            return None
        with self._reading(_STATE) as file:
            state: dict[str, Any] = pickle.load(file)
        seals = state["surveyed"].seals
        # whoever makes another pass looks at all seals; where none is made nobody else does
        goes_on = any(one.active for one in state["states"])
        for part in [min(seals)] if goes_on else sorted(seals):
            self._check_data(part, seals[part])
        return state

    def load_codes(self, codes: CodeStore) -> None:
        """Give back what became of the rows up to the last completed pass."""
        with self._reading(_CODES) as file:
            codes.load(file)

    @contextmanager
    def _reading(self, name: str) -> Iterator[IO[bytes]]:
        """A file of the last completed pass, all of which is needed."""
        path = self._passes()[-1] / name
        try:
            with open(path, "rb") as file:
                yield file
        except (EOFError, OSError, pickle.UnpicklingError):
            raise ValueError(
                f"checkpoint={str(self._directory)!r} is damaged, {path.parent.name}/{name} cannot "
                "be read to its end: remove it, or name another directory."
            ) from None

    def _passes(self) -> list[Path]:
        return sorted(self._directory.glob("pass-*"))

    def _check_data(self, part: int, seals: list[tuple[int, bytes]]) -> None:
        """Refuse other data by one part."""
        blocks = self._source.blocks(part)
        if [(block.n_rows, block.seal()) for block in blocks] != seals:
            raise ValueError(
                f"checkpoint={str(self._directory)!r} is of other data, {self._source.place(part)} "
                "is not what it was: name another directory, or remove it."
            )


def described(source: BlockSource) -> dict[str, str]:
    """Which data a source has, in words, as far as that is known without reading them."""
    names = source.feature_names
    return {
        "source": type(source).__name__,
        "parts": str(source.n_parts),
        "first part": source.place(0),
        "last part": source.place(source.n_parts - 1),
        "rows": str(source.n_rows),
        "columns": "" if names is None else ", ".join(names),
        "scale": str(source.scale),
        "memory": str(source.memory),
    }
