"""`safesift report`: a page about the rows of a file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from safesift.cli import console
from safesift.cli.options import Options, training_of
from safesift.cli.streaming import streams
from safesift.cli.words import heard, own_words
from safesift.cli.work import Work
from safesift.faces import summaries
from safesift.faces.files import Table
from safesift.faces.reports import check_page, write_report
from safesift.penalties.norms import is_ridge
from safesift.workflows.leaving_out import LeaveOneOut, leave_one_out
from safesift.workflows.path import PathResult, safe_path
from safesift.workflows.verdicts import ScreeningResult

# the path on the page: so many levels, and so many times the alpha that was asked for either way
_LEVELS, _FACTOR = 9, 100.0


@dataclass(frozen=True, eq=False)
class FileCells:
    """All columns of a file, those that are no features among them."""

    table: Table

    @cached_property
    def names(self) -> Sequence[str]:
        return self.table.cells(np.zeros(0, dtype=np.intp))[0]

    def cells(self, rows: NDArray[np.intp]) -> NDArray:
        """Some rows, in the order that is asked for."""
        order = np.argsort(rows)
        _, held = self.table.cells(rows[order])
        found = np.empty((len(rows), len(self.names)), dtype=object)
        for place, row in zip(order, held, strict=True):
            found[place] = row
        return found


def report_file(options: Options) -> None:
    """Write a page about the rows of a file."""
    # no rows are written
    options = {**options, "output": None, "rows": False, "id": None, "effort": "full"}
    if streams(options):
        raise ValueError(
            f"{options['data']} is a pattern or a directory, and a page is about one file in "
            "memory: give the name of a file."
        )
    check_page(Path(options["page"]))
    with own_words():
        training = training_of(options)
    with console.stages("reporting") as stage, heard() as warned:
        work = Work.begun(options, training["loss"], stage)
        result = work.screened(training, stage)
        with own_words():
            found = [result, *_more(work, result, training, stage)]
            write_report(
                found, options["page"], data=FileCells(work.table), proof=options["proof"],
                command=shlex.join(["safesift", *sys.argv[1:]]),
            )  # fmt: skip
    facts = {**summaries.as_dict(result), **work.facts(result.kept), "page": options["page"]}
    facts["notes"] = [*work.notes, *warned]
    if options["as_json"]:
        work.print_json(facts)
    else:
        console.show_reported(facts)


def _more(
    work: Work, result: ScreeningResult, training: Mapping[str, Any], stage: console.Stage
) -> Iterator[LeaveOneOut | PathResult]:
    """All models without one row each, and a path around alpha, where they cost little."""
    shared = {name: value for name, value in training.items() if name != "screening"}
    given = {**shared, "sample_weight": work.weights}
    problem, seed, alpha = result.parts[0].problem, given.pop("random_state"), given["alpha"]
    if is_ridge(problem.penalty) and np.isfinite(problem.loss.smoothness):
        stage("models without a row")
        loo = leave_one_out(work.X, work.y, **given)
        yield replace(loo, columns=work.prepared.names)
    if len(result.parts) == 1 and not problem.penalty.is_constraint:
        stage("path")
        alphas = np.geomspace(alpha * _FACTOR, alpha / _FACTOR, _LEVELS)
        given |= {"alphas": alphas, "random_state": seed, "tol": work.options["tol"]}
        del given["alpha"]
        path = safe_path(work.X, work.y, **given)
        yield replace(path, feature_names=work.prepared.names)
