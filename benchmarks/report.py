"""The tables of the race, from what is in the book."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import results
from book import RACE, Book, Place
from cases import CASES, Case
from runner import BUSY, QUIET, StageOutcome
from runs import CV, OURS, PATH, SINGLE
from tables import Sheet, number
from tasks import FREE
from verdicts import (
    MOST_BUSY,
    MOST_INTERCEPT,
    Line,
    Verdict,
    against_none,
    against_peers,
    against_quiet,
    asked_of_it,
    line,
)

_TITLES = {
    SINGLE: "Single fits at alpha = 1e-4, several classes one against the rest",
    PATH: "Paths: total seconds",
    CV: "Cross-validation, five folds, and the last fit",
}


class Report:
    """All tables of a book, and how many targets are met; of another than that of the race those
    of the load only, in which everything is of one machine."""

    def __init__(self, book: Book, cases: Iterable[Case] = CASES) -> None:
        self._book, self._cases = book, list(cases)
        self._words: Counter[str] = Counter()
        sheets = [self._busy()]
        if book.name == RACE:
            quiet = [self._quiet(stage) for stage in (SINGLE, PATH, CV)]
            sheets = [*quiet, *sheets, self._intercepts()]
        self.sheets = [sheet for sheet in sheets if sheet.rows]

    def preface(self) -> list[str]:
        """On which machines, beside which load, and how many targets are met."""
        counts = ", ".join(f"{count} {word}" for word, count in sorted(self._words.items()) if word)
        return [*self._machines(), self._loads(), f"Targets: {counts or 'none yet'}."]

    def markdown(self) -> str:
        preface = "\n".join(f"- {words}" for words in self.preface())
        sheets = "\n".join(sheet.markdown() for sheet in self.sheets)
        return f"# Paths against the peers\n\n{preface}\n\n{sheets}"

    def _quiet(self, stage: str) -> Sheet:
        """Best peer over ours."""
        sheet = Sheet(
            f"{_TITLES[stage]}, quiet",
            ("data / task", "gap", "best peer", "peer s", "ours s", "ratio", "by value", "target",
             "verdict"), 3,
        )  # fmt: skip
        for case, place, found in self._lines(stage, QUIET):
            verdict = self._counted(against_peers(case, place, stage, found))
            sheet.add(case.name, f"{place.tol:.0e}", *_peer_cells(found), _ours(found.ours),
                      _ratio(found), number(found.by_value), _aim("≥", verdict),
                      verdict.words)  # fmt: skip
        return sheet

    def _busy(self) -> Sheet:
        """Ours beside a load over ours without, and the best peer over ours there."""
        sheet = Sheet(
            "One spinning process per core beside it",
            ("data / task", "stage", "gap", "quiet s", "busy s", f"busy / quiet (≤ {MOST_BUSY:g})",
             "best peer", "peer s", "ratio (≥ 1)", "verdicts"), 3,
        )  # fmt: skip
        for stage in _TITLES:
            for case, place, found in self._lines(stage, BUSY):
                compared = against_quiet(self._book, place, stage)
                slower = None if compared is None else self._counted(compared[1])
                verdict = self._counted(against_peers(case, place, stage, found))
                words = "; ".join(v.words for v in (slower, verdict) if v is not None and v.words)
                sheet.add(
                    case.name, stage, f"{place.tol:.0e}",
                    "" if compared is None else _ours(compared[0]), _ours(found.ours),
                    "" if slower is None else number(slower.ratio), *_peer_cells(found),
                    _ratio(found), words,
                )  # fmt: skip
        return sheet

    def _intercepts(self) -> Sheet:
        sheet = Sheet(
            "An intercept, ours, quiet",
            ("data / task", "stage", "gap", "gap with / without", "without s", "with s", "ratio",
             f"verdict (≤ {MOST_INTERCEPT:g})"), 3,
        )  # fmt: skip
        for stage in _TITLES:
            for case, place, found in self._lines(stage, QUIET):
                compared = against_none(self._book, case, place, stage)
                if case.task.intercept != FREE or compared is None:
                    continue
                verdict = self._counted(compared[1])
                sheet.add(case.without_intercept, stage, f"{place.tol:.0e}",
                          number(asked_of_it(self._book, case, place)), _ours(compared[0]),
                          _ours(found.ours), number(verdict.ratio), verdict.words)  # fmt: skip
        return sheet

    def _lines(self, stage: str, load: str) -> Iterator[tuple[Case, Place, Line]]:
        """In the order of the cases."""
        for case in self._cases:
            for place in sorted(self._book.places(), reverse=True):
                if place.case == case.name and place.load == load:
                    found = line(self._book, place, stage)
                    if found is not None:
                        yield case, place, found

    def _counted(self, verdict: Verdict) -> Verdict:
        self._words[verdict.word] += 1
        return verdict

    def _machines(self) -> list[str]:
        numbers = sorted({
            self._book.fact(place, solver, "machine")
            for place in self._book.places() for solver in self._book.solvers(place)
        })  # fmt: skip
        return [_machine(self._book.machine(number)) for number in numbers]

    def _loads(self) -> str:
        """What else ran beside the quiet races, as far as it is known."""
        others = [
            self._book.fact(place, solver, "others") or 0.0
            for place in self._book.places() for solver in self._book.solvers(place)
        ]  # fmt: skip
        return (
            "Load: *quiet* with nothing of the race beside a solver, *busy* with one spinning "
            f"process per core; other processes kept at most {max(others, default=0.0):.2g} cores "
            "busy meanwhile."
        )


def case_sheet(book: Book, case: Case, load: str) -> Sheet:
    """Every solver of one case; > where it did not reach the gap in the time it was given."""
    sheet = Sheet(
        f"{case.name}, {load}",
        ("solver", "storage", "stage", "gap asked", "seconds", "gap", "by value s", ""), 3,
    )  # fmt: skip
    for place in sorted(book.places(), reverse=True):
        if (place.case, place.load) != (case.name, load):
            continue
        for solver in book.solvers(place):
            failure = book.fact(place, solver, "failure") or ""
            if failure:
                sheet.add(solver, "", "", f"{place.tol:.0e}", "", "", "", failure)
            for stage in case.stages:
                one = book.stage(place, solver, stage)
                if one is not None:
                    sheet.add(solver, one.storage or "", stage, f"{place.tol:.0e}", _ours(one),
                              f"{one.gap:.0e}", number(one.seconds_by_excess),
                              "stuck" if one.stuck else "")  # fmt: skip
    return sheet


def ridge_sheet() -> Sheet | None:
    """The multiples of a Ridge fit, where `price_of_ridge.py` has measured them."""
    from price_of_ridge import sheet

    found = results.read("price_of_ridge")
    if not found:
        return None
    known = sheet(found["data"])
    known.title += f" ({found['machine']})"
    return known


def _machine(facts: dict) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in facts["versions"].items() if value)
    return f"{facts['machine']}; {versions}."


def _ours(stage: StageOutcome) -> str:
    return f"{'' if stage.reached else '> '}{number(stage.seconds)}"


def _peer_cells(found: Line) -> tuple[str, str]:
    if found.best is None:
        return "none", ""
    return found.peer or "", _ours(found.best)


def _ratio(found: Line) -> str:
    """≥ where no peer arrived, * where the two come from different machines, ~ where disturbed."""
    if found.ratio is None:
        return ""
    marks = ("*" if found.mixed else "") + ("~" if found.disturbed else "")
    return f"{'≥ ' if found.bound else ''}{number(found.ratio)}{marks}"


def _aim(sign: str, verdict: Verdict) -> str:
    return "" if verdict.target is None else f"{sign} {verdict.target:g}"


__all__ = ["OURS", "Report", "case_sheet", "ridge_sheet"]
