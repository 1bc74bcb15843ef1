"""Every alpha of an interval, stretch by stretch, until none can be better than the best one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from operator import methodcaller
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.arithmetic.threads import each
from safesift.problem.decisions import Bounds
from safesift.problem.problem import Problem, reweighted
from safesift.regions import Curvature
from safesift.regions.center import Center
from safesift.solvers import Fit, Settings, solve_path
from safesift.workflows.alpha_bounds import Found, Nearby, covers
from safesift.workflows.held_out import HeldOut, mean_between

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Pair = tuple[float, float]

# the relative gap to which the middles of intervals are solved
_TOL = 1e-6
# so many intervals to begin with, to a decade; regions prove less, of shorter ones
_TO_A_DECADE, _OF_REGIONS = 2, 8
# into so many stretches an interval is cut around its base, and a stretch that is not settled
_STRETCHES, _AGAIN = 8, 4
# what no model nearby proves of so short an interval, relatively, is left to regions
_SHORT = 1e-3
# bounds of a part are better than those of the whole when they are nearer to each other by that
_BETTER = 0.9
# models that are found at a time, and numbers that are held of several bases
_AT_ONCE, _HELD = 64, 2**26


class Interval(NamedTuple):
    """Alphas from low to high, and between what their validation errors lie."""

    low: float
    high: float
    lower: float
    upper: float


class _Solved(NamedTuple):
    """An interval, an alpha in it, the models there, and their validation error, nearly."""

    pair: Pair
    alpha: float
    error: float
    models: list[tuple[Problem, Array]]


# an interval and its parts
_Family = tuple[Interval, list[Interval]]


class Search:
    """Intervals that are cut while they may hold a better alpha.

    Parameters
    ----------
    problems : sequence of Problem
        One for every class.
    folds : sequence of (train, test)
    held_out : sequence of HeldOut
        Of every fold.
    epsilon, alpha_tol : float
        As in `certify_alpha`.
    max_solves : int

    Attributes
    ----------
    alpha, error : float
        The best one so far, and what its error is at most.
    trials : dict
        The alphas at which models were found, with their errors, nearly.
    closed, open : lists of Interval
        In which nothing can be better by more than epsilon, and in which something may.
    """

    def __init__(
        self, problems: Sequence[Problem], folds: Sequence[tuple[Rows, Rows]],
        held_out: Sequence[HeldOut], epsilon: float, alpha_tol: float, max_solves: int,
    ) -> None:  # fmt: skip
        self._epsilon, self._alpha_tol, self._max_solves = epsilon, alpha_tol, max_solves
        self._held_out, self._n_classes = held_out, len(problems)
        self._problems = [
            problem
            for train, _ in folds
            for problem in reweighted(problems, _trained(problems[0].weights, train))
        ]
        self._covered = all(map(covers, self._problems))
        self.trials: dict[float, float] = {}
        self.closed: list[Interval] = []
        self.open: list[Interval] = []
        self._again: list[Pair] = []
        # of the alphas that were solved for: from there others are
        self._points: dict[float, list[Array]] = {}
        self.alpha, self.error = math.nan, math.inf

    def run(self, low: float, high: float) -> None:
        to_a_decade = _TO_A_DECADE if self._covered else _OF_REGIONS
        n = max(int(to_a_decade * (math.log10(high) - math.log10(low))), 1)
        pairs = _cut((low, high), n)
        while pairs:
            pairs.sort(reverse=True)
            left = self._left // self._models_each
            if self.trials and left <= 0:
                self.open += [Interval(a, b, 0.0, math.inf) for a, b in pairs]
                break
            left, prove = max(left, 1), self._by_models if self._covered else self._by_regions
            found = list(prove(pairs[:left]))
            pairs = [*pairs[left:], *self._sorted_out(found), *self._again]
            self._again = []

    def _sorted_out(self, found: list[Interval]) -> Iterator[Pair]:
        """The halves of what is not proved yet, and of what was thought to be.

        The most promising ones first. What is not affordable any more keeps its bounds.
        """
        candidates = sorted([*found, *self.open], key=lambda one: (one.lower, one.low))
        self.open, affordable = [], self._left // (2 * self._models_each)
        for one in candidates:
            if self._settled(one):
                self.closed.append(one)
            elif self._too_short(one) or affordable <= 0:
                self.open.append(one)
            else:
                affordable -= 1
                yield from _cut((one.low, one.high), 2)

    @property
    def unresolved(self) -> tuple[Interval, ...]:
        """Those in which an alpha may be better by more than epsilon."""
        return tuple(one for one in sorted(self.open) if not self._settled(one))

    def _settled(self, one: Interval) -> bool:
        return one.lower >= self.error - self._epsilon or one.upper == one.lower

    @property
    def _left(self) -> int:
        return self._max_solves - len(self.trials)

    @property
    def _models_each(self) -> int:
        """Alphas that an interval takes: of its middle, and of the ends of its stretches."""
        return _STRETCHES + 2 if self._covered else 1

    def _too_short(self, one: Interval) -> bool:
        if one.high <= one.low * (1.0 + self._alpha_tol):
            return True
        # no number in between: what would be cut is the interval itself, again and again
        return len(_cut((one.low, one.high), 2)) < 2

    def _note(self, alpha: float, error: float) -> None:
        """Its error is at most that."""
        if error < self.error:
            self.alpha, self.error = alpha, error

    def _solutions(self, alphas: Sequence[float]) -> Iterator[tuple[list[Fit], float]]:
        """The models at some alphas, in falling order, and their errors, nearly."""
        levels = [[one.at_level(alpha) for one in self._problems] for alpha in alphas]
        near = min(self._points, key=lambda known: abs(math.log(known / alphas[0])), default=None)
        starts = None if near is None else self._points[near]
        path = solve_path(levels, Settings(_TOL, decided=()), starts)
        for alpha, fits in zip(alphas, path, strict=True):
            error = self._sums([Bounds(fit.at.pred, fit.at.pred) for fit in fits])[1]
            self.trials[alpha], self._points[alpha] = error, [fit.at.point for fit in fits]
            yield fits, error

    def _sums(self, bounds: Sequence[Bounds]) -> tuple[float, float]:
        """Between what the validation error lies, for predictions in these bounds."""
        k = self._n_classes
        errors = [
            one.between(bounds[fold * k : (fold + 1) * k])
            for fold, one in enumerate(self._held_out)
        ]
        return mean_between(self._held_out, errors)

    # --- by models nearby -----------------------------------------------------------------------

    def _by_models(self, pairs: Sequence[Pair]) -> Iterator[Interval]:
        """The most promising ones first: what they hold settles others."""
        middles = [_middle(pair) for pair in pairs]
        solved = [
            _Solved(pair, alpha, error, [(fit.problem, fit.at.point) for fit in fits])
            for pair, alpha, (fits, error) in zip(
                pairs, middles, self._solutions(middles), strict=True
            )
        ]
        solved.sort(key=lambda one: (one.error, one.alpha))
        for start in range(0, len(solved), self._held_at_once):
            held = []
            # what the best error is, nearly, before anything is cut once more
            for one in solved[start : start + self._held_at_once]:
                nearby = self._nearby(one)
                if nearby is None:
                    yield self._regional(one)
                else:
                    whole = Interval(*one.pair, 0.0, math.inf)
                    held.append((one, nearby, self._cut_by_models(nearby, [whole], _STRETCHES)))
            for one, nearby, families in held:
                yield from self._refined(one, nearby, families)

    @property
    def _held_at_once(self) -> int:
        """Of so many alphas the models and all that goes with them fit into the memory."""
        design = self._problems[0].design
        numbers = len(self._problems) * (design.n_columns**2 + 16 * design.n_samples)
        return max(_HELD // numbers, 1)

    def _nearby(self, solved: _Solved) -> list[Nearby] | None:
        """None where the matrix of one of the models is too ill-posed."""
        found = list(each(lambda one: Nearby.of(*one), solved.models))
        nearby = [one for one in found if one is not None]
        if len(nearby) < len(found):
            return None
        if solved.error < self.error:
            self._between(nearby, [(solved.alpha, solved.alpha)])
        return nearby

    def _refined(
        self, solved: _Solved, nearby: Sequence[Nearby], families: Sequence[_Family]
    ) -> Iterator[Interval]:
        """Intervals that fill one of which models are known; what these cannot prove is `again`."""
        failed: list[Interval] = []
        while families:
            cut: list[Interval] = []
            for whole, parts in families:
                if not any(self._settled(part) or _better(part, whole) for part in parts):
                    failed.append(whole)
                    continue
                unproved = [part for part in parts if math.isinf(part.upper)]
                longer = [part for part in parts if self._worth_cutting(part)]
                failed, cut = failed + unproved, cut + longer
                yield from (part for part in parts if part not in unproved + longer)
            # each at so many alphas that are new
            affordable = max(self._left, 0) // (_AGAIN - 1)
            cut.sort(key=lambda one: (one.lower, one.low))
            yield from cut[affordable:]
            families = self._cut_by_models(nearby, cut[:affordable], _AGAIN)
        for one in _joined(failed):
            yield from self._left_over(solved, one)

    def _cut_by_models(
        self, nearby: Sequence[Nearby], intervals: Sequence[Interval], n: int
    ) -> list[_Family]:
        """Intervals, and the n parts of each with their bounds."""
        pairs = [_cut((one.low, one.high), n) for one in intervals]
        found = self._between(nearby, [pair for part in pairs for pair in part])
        self._try_best_of(nearby, found)
        rest = iter(found)
        return [
            (one, list(islice(rest, len(part)))) for one, part in zip(intervals, pairs, strict=True)
        ]

    def _worth_cutting(self, one: Interval) -> bool:
        return math.isfinite(one.upper) and not (self._settled(one) or self._too_short(one))

    def _left_over(self, solved: _Solved, one: Interval) -> Iterator[Interval]:
        """What models cannot prove: of a short interval regions may, another one is tried again."""
        pair = one.low, one.high
        if one.high <= one.low * (1.0 + _SHORT):
            yield self._regional(solved._replace(pair=pair))
        else:
            self._again += _cut(pair, 2) if pair == solved.pair else [pair]

    def _between(self, nearby: Sequence[Nearby], todo: Sequence[Pair]) -> list[Interval]:
        """Bounds on the errors of stretches, and the errors at their ends, nearly."""
        intervals: list[Interval] = []
        for start in range(0, len(todo), _AT_ONCE):
            some = todo[start : start + _AT_ONCE]
            # a thread for every fold
            found: list[Found] = list(each(methodcaller("between", some), nearby))
            for k, alpha in enumerate(found[0].alphas.tolist()):
                at = [Bounds(one.pred[:, k], one.pred[:, k]) for one in found]
                self.trials[alpha] = self._sums(at)[1]
            for k, (low, high) in enumerate(some):
                bounds = [one.bounds[k] for one in found]
                known = [one for one in bounds if one is not None]
                least, most = (0.0, math.inf) if len(known) < len(bounds) else self._sums(known)
                self._note(_middle((low, high)), most)
                intervals.append(Interval(low, high, least, most))
        return intervals

    def _try_best_of(self, nearby: Sequence[Nearby], found: Sequence[Interval]) -> None:
        """Prove the error of the alpha that seems to be the best end of some intervals."""
        ends = {end for one in found for end in (one.low, one.high)}
        best = min(ends, key=lambda alpha: (self.trials[alpha], alpha), default=None)
        if best is not None and self.trials[best] < self.error:
            self._between(nearby, [(best, best)])

    # --- by regions -------------------------------------------------------------------------

    def _by_regions(self, pairs: Sequence[Pair]) -> Iterator[Interval]:
        """Bounds for all alphas of some intervals, in falling order."""
        middles = [_middle(pair) for pair in pairs]
        # proving what an alpha is worth takes as long as an interval: only the best one is
        best: tuple[float, float, list[Fit]] = (math.inf, math.nan, [])
        for pair, alpha, (fits, error) in zip(
            pairs, middles, self._solutions(middles), strict=True
        ):
            if error < best[0]:
                best = error, alpha, fits
            yield self._in_regions([Center(fit.certificate, pair) for fit in fits], alpha)
        least, alpha, fits = best
        if least < self.error:
            self._in_regions([Center(fit.certificate, (alpha,)) for fit in fits], alpha)

    def _regional(self, solved: _Solved) -> Interval:
        """The same for an interval of which a model is known already."""
        certificates = [one.certify(one.evaluate(point)) for one, point in solved.models]
        return self._in_regions([Center(one, solved.pair) for one in certificates], solved.alpha)

    def _in_regions(self, centers: Sequence[Center], alpha: float) -> Interval:
        bounds = each(lambda one: Curvature().build_for(one).own_bounds(one.problem), centers)
        least, most = self._sums(list(bounds))
        low, high = min(centers[0].alphas), max(centers[0].alphas)
        self._note(alpha if low <= alpha <= high else _middle((low, high)), most)
        return Interval(low, high, least, most)


def _cut(pair: Pair, n: int) -> list[Pair]:
    """An interval in so many, of the same ratio each."""
    # powers are rounded, beyond the ends of a very short one
    ends = np.geomspace(*pair, n + 1).clip(*pair)
    ends[0], ends[-1] = pair
    return list(pairwise(np.unique(ends).tolist()))


def _middle(pair: Pair) -> float:
    low, high = pair
    return min(max(math.sqrt(low) * math.sqrt(high), low), high)


def _better(part: Interval, whole: Interval) -> bool:
    """Whether the bounds of a part are nearer to each other than those of the whole."""
    return part.upper - part.lower <= _BETTER * (whole.upper - whole.lower)


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    """Neighbours as one."""
    joined: list[Interval] = []
    for one in sorted(intervals):
        if joined and joined[-1].high == one.low:
            joined[-1] = joined[-1]._replace(high=one.high)
        else:
            joined.append(one)
    return joined


def _trained(weights: Array, train: Rows) -> Array:
    return weights * np.bincount(train, minlength=len(weights))
