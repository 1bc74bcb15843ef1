"""Runs the cells of an experiment that are not finished, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from safesift_paper.datasets import STAND_INS, DataUnavailableError
from safesift_paper.experiments.results import Results, surroundings
from safesift_paper.experiments.samples import samples
from safesift_paper.experiments.spec import Cell, Experiment, Protocol, Record

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is to be run, and where the results go.

    Attributes
    ----------
    folder : Path
    quick : bool
        A small version on small data, for trying things out and for tests.
    stand_ins : mapping of str to str
        The data sets that others are used in place of, by the name of what they stand for.
    """

    folder: Path
    quick: bool = False
    stand_ins: Mapping[str, str] = field(default_factory=dict)

    def cells(self, experiment: Experiment) -> list[Cell]:
        return list(experiment.cells(self.quick, self.stand_ins))

    def results(self, experiment: Experiment) -> Results:
        return Results(self.folder, experiment.name, repr(self.protocol(experiment)))

    def finished(self, experiment: Experiment) -> list[Record]:
        """The results of the cells that are finished."""
        return self.results(experiment).of(self.cells(experiment))

    def protocol(self, experiment: Experiment) -> Protocol:
        return experiment.protocol_of(self.quick)


def plan_stand_ins(names: tuple[str, ...]) -> dict[str, str]:
    """Stand-ins by what they stand for."""
    known = {stand_in: real for real, stand_in in STAND_INS.items()}
    for name in names:
        if name not in known:
            raise ValueError(
                f"--stand-in {name} is not known: choose one of {', '.join(sorted(known))}."
            )
    return {known[name]: name for name in names}


def run(experiment: Experiment, plan: Plan, tell: Tell) -> list[str]:
    """Run what is not finished yet; a sentence for every data set that cannot be had."""
    results, cells = plan.results(experiment), plan.cells(experiment)
    unavailable: dict[str, str] = {}
    for number, cell in enumerate(cells, start=1):
        where = f"{experiment.name} {number}/{len(cells)}: {describe(cell)}"
        if results.has(cell):
            continue
        if cell.get("data") in unavailable:
            continue
        tell(f"{where} …")
        try:
            record = _run(experiment.name, plan.protocol(experiment), cell)
        except DataUnavailableError as error:
            unavailable[cell["data"]] = f"{error}{_hint(cell['data'])}"
            tell(f"{where}: no data")
            continue
        results.add(record)
        tell(f"{where}: {record.about['seconds']:.1f} s")
    return list(unavailable.values())


def _run(name: str, protocol: Protocol, cell: Cell) -> Record:
    data = samples(cell["data"]) if "data" in cell else None
    start = time.perf_counter()
    result = protocol.run(cell, data)
    seconds = time.perf_counter() - start
    about = {} if data is None else data.about()
    about |= {"seconds": round(seconds, 3), **surroundings()}
    return Record(name, repr(protocol), cell, result, about)


def describe(cell: Cell) -> str:
    """A cell in a few words."""
    if not cell:
        return "the only cell"
    return ", ".join(
        str(value) if axis == "data" else f"{axis} {_short(value)}" for axis, value in cell.items()
    )


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _hint(name: str) -> str:
    if name not in STAND_INS:
        return ""
    return f" Or use --stand-in {STAND_INS[name]}, which is then named in every output."
