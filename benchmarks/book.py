"""What is known of the race: outcomes by case, accuracy, load and solver, kept in a file."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import results
from runner import Outcome, StageOutcome
from runs import OURS, Floors

# of the file of results
RACE = "paths_vs_peers"
# of figures that are read by people; lower bounds are kept as they are
_DIGITS = 4


class Place(NamedTuple):
    """Where a stage was run: on which case, to which gap, beside which load."""

    case: str
    tol: float
    load: str


class Book:
    """Records, one per case, accuracy and load: what every solver did, stage by stage.

    Machines are written down once, and referred to by number: pieces of the race may come from
    different ones, or from different versions.

    Parameters
    ----------
    name : str, default=RACE
        Of the file of results.
    kept : bool
        Whether there is one.
    """

    def __init__(self, name: str = RACE, *, kept: bool) -> None:
        self.name, self._kept = name, kept
        known = results.read(name) if kept else {}
        self._machines: list[dict] = known.get("machines", [])
        self._records: dict[Place, dict] = {
            Place(record["case"], record["tol"], record["load"]): record
            for record in known.get("records", [])
        }

    def places(self) -> list[Place]:
        return list(self._records)

    def solvers(self, place: Place) -> list[str]:
        """Those of whom something is known, failures included; ours first."""
        return list(self._records.get(place, {}).get("solvers", {}))

    def stage(self, place: Place, solver: str, name: str) -> StageOutcome | None:
        entry = self._entry(place, solver)
        found = entry.get("stages", {}).get(name)
        if found is None:
            return None
        missing = {key: math.nan for key, value in found.items() if value is None}
        kept = {"chosen": found["chosen"], "storage": found["storage"]}
        return StageOutcome(**found | missing | kept)

    def storage(self, place: Place, solver: str, name: str) -> str | None:
        """Of the matrix, where the stage was run."""
        found = self.stage(place, solver, name)
        return None if found is None else found.storage

    def fact(self, place: Place, solver: str, name: str) -> Any:
        """Its "failure", "others", "machine" or "constant"."""
        return self._entry(place, solver).get(name)

    def floors(self, place: Place, name: str) -> Floors | None:
        found = self._records.get(place, {}).get("floors", {}).get(name)
        return None if found is None else tuple(map(tuple, found))

    def machine(self, number: int) -> dict[str, Any]:
        return self._machines[number]

    def put(self, case: str, load: str, solver: str, outcome: Outcome, facts: dict) -> None:
        """Take in what a solver did, in place of what was known of the same stages."""
        for tol in facts["tols"]:
            place = Place(case, tol, load)
            record = self._records.setdefault(
                place, {**place._asdict(), "solvers": {}, "floors": {}}
            )
            entry = record["solvers"].setdefault(solver, {"stages": {}})
            entry |= {
                "failure": outcome.failure, "others": outcome.others,
                "machine": self._machine_number(), "limit": facts["limit"],
                "constant": outcome.constant,
            }  # fmt: skip
            for key, stage in outcome.stages.items():
                name, _, of = key.partition("@")
                if float(of) == tol:
                    entry["stages"][name] = asdict(_rounded(stage))
                    if key in outcome.floors:
                        record["floors"][name] = outcome.floors[key]
            if OURS in record["solvers"]:
                record["solvers"] = {OURS: record["solvers"].pop(OURS), **record["solvers"]}
        if self._kept:
            results.write(self.name, self._facts(), lines="records")

    def _facts(self) -> dict[str, Any]:
        records = [self._records[place] for place in sorted(self._records)]
        return {"machines": self._machines, "records": records}

    def _entry(self, place: Place, solver: str) -> dict[str, Any]:
        return self._records.get(place, {}).get("solvers", {}).get(solver, {})

    def _machine_number(self) -> int:
        this = results.machine()
        if this not in self._machines:
            self._machines.append(this)
        return self._machines.index(this)


def _rounded(stage: StageOutcome) -> StageOutcome:
    return replace(
        stage,
        seconds=_short(stage.seconds),
        seconds_by_excess=_short(stage.seconds_by_excess),
        gap=_short(stage.gap),
        times=[_short(seconds) for seconds in stage.times],
        tols=[_short(tol) for tol in stage.tols],
    )


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
