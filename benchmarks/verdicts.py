"""What the book amounts to: ratios, and whether they are what was aimed at."""

from __future__ import annotations

from dataclasses import dataclass, replace

from book import Book, Place
from cases import Case
from runner import BUSY, QUIET, StageOutcome
from runs import OURS

# ours beside a load over ours without, and with an intercept over without: at most
MOST_BUSY, MOST_INTERCEPT = 3.0, 1.5
# the best peer over ours beside the same load: at least
LEAST_BUSY = 1.0
# cores that other processes keep busy, from which on nothing is quiet
DISTURBED = 0.25

MET, MISSED, OPEN, UNKNOWN = "met", "missed", "open", ""


@dataclass(frozen=True)
class Verdict:
    """A ratio and what was aimed at: "met", "missed", "open" where no peer arrived, or ""."""

    ratio: float | None
    target: float | None
    word: str

    @property
    def words(self) -> str:
        if self.word != MISSED:
            return self.word
        by = max(self.target / self.ratio, self.ratio / self.target)
        return f"missed by {by:.2f}×"


def at_least(ratio: float | None, target: float | None, *, bound: bool = False) -> Verdict:
    """Of a ratio, or (`bound`) of one that is at least that large."""
    if ratio is None or target is None:
        return Verdict(ratio, target, UNKNOWN)
    return Verdict(ratio, target, MET if ratio >= target else OPEN if bound else MISSED)


def at_most(ratio: float | None, target: float) -> Verdict:
    if ratio is None:
        return Verdict(ratio, target, UNKNOWN)
    return Verdict(ratio, target, MET if ratio <= target else MISSED)


@dataclass(frozen=True)
class Line:
    """Ours and the best peer on one stage.

    Attributes
    ----------
    peer, best : str and StageOutcome, or None
        The fastest of those that arrived; else the one that gave up first, of those for whom
        more time might have been of use. Beside a load also one that needs no run there, since
        it takes longer than ours already without.
    bound : bool
        Whether it did not arrive, or was not run, so that the ratio is at least that large.
    by_value : float or None
        The ratio if everybody had only to come near the optimal value.
    mixed : bool
        Whether the two were measured on different machines, or with different versions.
    disturbed : bool
        Whether processes that are no part of the race kept cores busy beside one of them.
    """

    ours: StageOutcome
    peer: str | None = None
    best: StageOutcome | None = None
    bound: bool = False
    by_value: float | None = None
    mixed: bool = False
    disturbed: bool = False

    @property
    def ratio(self) -> float | None:
        return None if self.best is None else self.best.seconds / self.ours.seconds


def line(book: Book, place: Place, stage: str) -> Line | None:
    """None where ours has not been run."""
    ours = book.stage(place, OURS, stage)
    if ours is None:
        return None
    names = {*book.solvers(place), *book.solvers(place._replace(load=QUIET))} - {OURS}
    found = {name: _at_least_as_long(book, place, name, stage) for name in sorted(names)}
    known = {name: one for name, one in found.items() if one is not None}
    arrived = {name: one for name, one in known.items() if one.reached}
    late = {name: one for name, one in known.items() if not one.reached and not one.stuck}
    rivals = arrived or late if place.load == QUIET else arrived | late
    if not rivals:
        return Line(ours, disturbed=_disturbed(book, place, OURS))
    peer = min(rivals, key=lambda name: rivals[name].seconds)
    by_value = min(one.seconds_by_excess for one in rivals.values()) / ours.seconds_by_excess
    ran = place if peer in book.solvers(place) else place._replace(load=QUIET)
    mixed = book.fact(place, OURS, "machine") != book.fact(ran, peer, "machine")
    disturbed = _disturbed(book, place, OURS, peer)
    return Line(ours, peer, rivals[peer], not rivals[peer].reached, by_value, mixed, disturbed)


def _at_least_as_long(book: Book, place: Place, peer: str, stage: str) -> StageOutcome | None:
    """What a peer did; of one that was not run beside a load, what it takes without is a bound."""
    found = book.stage(place, peer, stage)
    if found is None and place.load == BUSY:
        quiet = book.stage(place._replace(load=QUIET), peer, stage)
        found = None if quiet is None else replace(quiet, reached=False)
    return found


def _disturbed(book: Book, place: Place, *solvers: str) -> bool:
    others = [book.fact(place, solver, "others") for solver in solvers]
    return any(cores is not None and cores > DISTURBED for cores in others)


def against_peers(case: Case, place: Place, stage: str, found: Line) -> Verdict:
    target = case.target(stage, place.tol) if place.load == QUIET else LEAST_BUSY
    if not found.ours.reached:
        return Verdict(found.ratio, target, "our gap missed")
    return at_least(found.ratio, target, bound=found.bound)


def against_quiet(book: Book, place: Place, stage: str) -> tuple[StageOutcome, Verdict] | None:
    """Ours beside a load; None where it was not run, or not without the load."""
    quiet = book.stage(place._replace(load=QUIET), OURS, stage)
    busy = book.stage(place._replace(load=BUSY), OURS, stage)
    if quiet is None or busy is None:
        return None
    return quiet, at_most(busy.seconds / quiet.seconds, MOST_BUSY)


def against_none(
    book: Book, case: Case, place: Place, stage: str
) -> tuple[StageOutcome, Verdict] | None:
    """Ours with an intercept against ours without; None where one of the two was not run."""
    without = book.stage(place._replace(case=case.without_intercept), OURS, stage)
    with_one = book.stage(place, OURS, stage)
    if without is None or with_one is None:
        return None
    return without, at_most(with_one.seconds / without.seconds, MOST_INTERCEPT)


def asked_of_it(book: Book, case: Case, place: Place) -> float | None:
    """The gap that is asked for with an intercept over that without, both not relative."""
    without = book.fact(place._replace(case=case.without_intercept), OURS, "constant")
    with_one = book.fact(place, OURS, "constant")
    return None if without is None or with_one is None else with_one / without
