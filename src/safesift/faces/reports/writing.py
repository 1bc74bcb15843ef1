"""`write_report`: results to a page on file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from safesift.arithmetic.threads import using
from safesift.faces.files.streams import replacing
from safesift.faces.reports.cells import MOST_COLUMNS, CellSource, FeatureCells, FrameCells
from safesift.faces.reports.features import along, effects, important, most_important
from safesift.faces.reports.margins import left_out, margins
from safesift.faces.reports.page import Section, page
from safesift.faces.reports.proved import asked, by_class, headline, proved, reproduce
from safesift.faces.reports.samples import listed
from safesift.faces.reports.subject import Subject

_SUFFIXES = (".html", ".htm")


def write_report(
    results: Sequence[Any],
    path: str | Path,
    *,
    data: Any = None,
    proof: str | Path | None = None,
    command: str | None = None,
) -> Path:
    """Write a page about results on the same samples; see `ScreeningResult.report`.

    Parameters
    ----------
    results : sequence of ScreeningResult, LeaveOneOut and PathResult
        One of each at most.
    path : str or Path
    data : frame, array or CellSource, optional
        What to show of the samples.
    proof : str or Path, optional
        A file that `write_proof` wrote.
    command : str, optional
        What was typed to come here, in place of the calls of the library.
    """
    target, proof = Path(path), None if proof is None else Path(proof)
    subject = Subject.of(results)
    check_page(target)
    _check(proof, subject, data)
    if subject.problem is not None:
        subject.problem.check_unchanged()
    with using(_n_jobs(subject)):
        sections, numbers = _sections(subject, _source(subject, data), proof, command)
        made = page(headline(subject), _when(), sections, numbers)
    with replacing(target) as stream:
        stream.write(made.encode())
    return target


def check_page(path: Path) -> None:
    """Refuse a name under which no page can be written."""
    if path.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"{path.name} is no page: give it the extension .html.")
    if not path.resolve().parent.is_dir():
        raise ValueError(f"{path}: there is no such directory for the page, make it first.")
    if path.is_dir():
        raise ValueError(f"{path} is a directory: choose another name for the page.")


def _check(proof: Path | None, subject: Subject, data: Any) -> None:
    if proof is not None and not proof.is_file():
        raise ValueError(f"proof {proof}: there is no such file, write it with write_proof.")
    if data is not None and subject.problem is None:
        raise ValueError(
            "data is given, but a path does not know its samples: add a result of screen or of "
            "leave_one_out with also=[...]."
        )


def _n_jobs(subject: Subject) -> int | None:
    known = subject.screening or subject.loo
    return None if known is None else known.n_jobs


def _when() -> str:
    return f"A report of safesift, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _source(subject: Subject, data: Any) -> CellSource | None:
    """What to show of single samples: what is given, or the features that matter most."""
    if data is not None:
        if hasattr(data, "cells"):
            return data
        assert subject.n_samples is not None
        return FrameCells.of(data, subject.n_samples)
    effect, rows = effects(subject), subject.rows
    if effect is None or rows is None:
        return None
    columns = most_important(effect, MOST_COLUMNS)
    return FeatureCells(rows, columns, [subject.feature(int(one)) for one in columns])


def _sections(
    subject: Subject, source: CellSource | None, proof: Path | None, command: str | None
) -> tuple[list[Section], dict[str, Any]]:
    """In the order in which they are read, and the numbers behind their pictures."""
    pictures = {
        "margins": margins(subject), "left-out": left_out(subject), "path": along(subject),
    }  # fmt: skip
    drawn = {name: made[0] for name, made in pictures.items() if made is not None}
    numbers = {name: made[1] for name, made in pictures.items() if made is not None}

    def present() -> Iterator[tuple[str, str, Any]]:
        yield "asked", "What was asked", asked(subject)
        yield "proved", "What is proved, and how surely", proved(subject, proof)
        yield "classes", "Label by label", by_class(subject)
        yield "near", "How near every sample is", drawn.get("margins")
        yield "without", "With and without a sample", drawn.get("left-out")
        if subject.problem is not None:
            yield "rows", "The hardest samples and the most doubtful ones", listed(subject, source)
        yield "features", "Features that matter", important(subject)
        if subject.path is not None:
            yield "along", f"Along {subject.path.parameter}", drawn.get("path")
        yield "again", "How to come to the same result", reproduce(subject, command)

    return [Section(*one) for one in present() if one[2] is not None], numbers
