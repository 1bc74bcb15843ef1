"""What an experiment is: data, grid and seeds, a protocol, and the paper's own numbers.

Data flow: *experiment → cells → protocol → JSON lines → table or picture → page*. A cell is a
dictionary of JSON values, one per axis of the grid; it is run once, and everything that is shown
comes from the JSON alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from safesift_paper.experiments.samples import Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = dict[str, Any]
Result = dict[str, Any]

# in a quick run every data set is replaced by the digits that come with scikit-learn
QUICK_DATA = "digits"


@dataclass(frozen=True)
class Record:
    """A line of a results file.

    Attributes
    ----------
    experiment : str
    protocol : str
        With its parameters: results of others do not count.
    cell : dict
    result : dict
    about : dict
        The data in words, their size, the time taken, versions, the machine.
    """

    experiment: str
    protocol: str
    cell: Cell
    result: Result
    about: dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """A sentence of the paper, and what the results say about it.

    Attributes
    ----------
    claim : str
    verdict : {"confirmed", "not refuted", "in part", "refuted", "open"}
    evidence : str
    """

    claim: str
    verdict: str
    evidence: str

    @classmethod
    def of_cases(cls, claim: str, cases: Sequence[bool]) -> Finding:
        """Confirmed if it holds in every case, refuted if in none."""
        if not cases:
            return cls(claim, "open", "there is no case yet")
        verdict = "confirmed" if all(cases) else "in part" if any(cases) else "refuted"
        return cls(claim, verdict, f"it holds in {sum(cases)} of {len(cases)} cases")

    def __str__(self) -> str:
        return f"*{self.claim}*: {self.verdict}; {self.evidence}."


class Protocol(ABC):
    """How a cell is run, and how the results of all cells are shown."""

    @abstractmethod
    def run(self, cell: Cell, samples: Samples | None) -> Result:
        """The numbers of one cell: JSON values only."""

    @abstractmethod
    def markdown(self, experiment: Experiment, records: Sequence[Record]) -> str:
        """A table beside the paper's numbers, and what is to be said about it."""

    def findings(self, records: Sequence[Record]) -> list[Finding]:
        """What the paper finds, confirmed or refuted by the results."""
        return []

    def figure(self, experiment: Experiment, records: Sequence[Record]) -> Figure | None:
        """A picture, for what the paper shows as one."""
        return None


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper.

    Attributes
    ----------
    name : str
        As on the command line.
    title : str
    protocol : Protocol
    grid : mapping of str to tuple
        The axes, in the order in which their product is gone through. The axis "data", where
        there is one, holds names of data sets; "seed" the seeds of the 80/20 splits, the outermost
        loop.
    quick : mapping of str to tuple
        What replaces axes in a quick run, besides the data.
    quick_protocol : Protocol, optional
        What replaces the protocol in a quick run.
    paper : mapping
        What the paper prints, in a form that the protocol knows.
    remarks : str
        Why the numbers differ from the paper's, where they do; for the full version.
    """

    name: str
    title: str
    protocol: Protocol
    grid: Mapping[str, tuple]
    quick: Mapping[str, tuple] = field(default_factory=dict)
    quick_protocol: Protocol | None = None
    paper: Mapping[Any, Any] = field(default_factory=dict)
    remarks: str = ""

    def protocol_of(self, quick: bool) -> Protocol:
        """How cells are run."""
        return self.quick_protocol if quick and self.quick_protocol is not None else self.protocol

    def cells(self, quick: bool, stand_ins: Mapping[str, str]) -> Iterator[Cell]:
        """All cells, with stand-ins in place of the data sets they stand for.

        Repeats come last: a run that is interrupted has all numbers, with wider error bars.
        """
        grid = dict(self.grid)
        if "data" in grid:
            grid["data"] = tuple(stand_ins.get(name, name) for name in grid["data"])
        if quick:
            grid |= self.quick
            if "data" in grid:
                grid["data"] = (QUICK_DATA,)
        seeds = grid.pop("seed", (None,))
        for seed, *values in product(seeds, *grid.values()):
            cell = dict(zip(grid, values, strict=True))
            yield cell if seed is None else cell | {"seed": seed}
