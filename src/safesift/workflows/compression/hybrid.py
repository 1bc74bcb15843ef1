"""Hard samples mixed with representative ones, as many of each as the budget allows.

A sample is kept with a probability π_i, and then stands for s_i/π_i samples. For m kept samples
the probabilities are proportional to a mix of

* the sensitivity s_i·‖ν_i‖·√(a_iᵀH⁻¹a_i): what the solution owes to the sample, measured by the
  gradient of its loss. Sampling in proportion to it gives the gradient at the solution the least
  variance for m samples (importance sampling), but on its own it keeps hard samples and outliers;
* a uniform share η = (1.5·d/m)², at least a fifth, at most 1, with d the effective dimension: with
  hardly more samples than dimensions, hard ones only mislead;
* below m = 4d a part 1 − m/(4d) of that share moves to the quarter of every class whose predictions
  are nearest to the edge of the flat piece. So few samples do not determine the model, which is
  bent to fit each of them: they had better be typical.

The constants are measured: see `benchmarks/compression.py`.

Where the kept samples cannot have weights, all samples that are not proved to be without influence
have the same probability instead: what they pull at the solution is then, on average, a multiple of
what all samples pull, which only changes alpha. The others pull nothing there at any rate, and have
a fifth of that probability.

Once m exceeds the number of samples that are not proved to be without influence, those are kept for
certain, and the others only carry the weight of their kind: the optimum is that of all samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from safesift.workflows.compression.samples import Rows, Samples, grouped

Array = NDArray[np.float64]

# the least share of the budget that is drawn uniformly: no weight exceeds 5 times the mean one
UNIFORM = 0.2
# samples per dimension: up to so many no hard ones are sought, from so many on no typical ones
_FEW, _ENOUGH = 1.5, 4.0
# which share of a class is typical of it
_TYPICAL = 0.25
# multiples of it are as evenly spread over [0, 1) as can be, however many there are
_GOLDEN = 0.5 * (5**0.5 - 1.0)
_N_BUDGETS = 48


@dataclass(frozen=True, eq=False)
class Hybrid:
    """The mix for given samples.

    Attributes
    ----------
    samples : Samples
    start : float
        A random number in [0, 1): all that is random.
    weighted : bool
        Whether the kept samples can have weights.
    """

    samples: Samples
    start: float
    weighted: bool = True

    def inclusion(self, budget: int) -> Callable[[Rows], Array]:
        """The probability π_i with which every sample is kept, for a number of kept samples."""
        samples, n_active = self.samples, self.samples.n_active
        if budget <= n_active:
            sizes = self._sizes(budget)
            share = _Proportional.of(samples, sizes, budget)
            return lambda rows: share(sizes(rows))
        rest = _Proportional.of(samples, _idle, budget - n_active)
        return lambda rows: np.where(rows.active, 1.0, rest(_idle(rows)))

    def _sizes(self, budget: int) -> Callable[[Rows], Array]:
        """What the probabilities are proportional to."""
        with np.errstate(divide="ignore"):
            ratio = np.float64(budget) / self.samples.dimension
        spread = min(ratio / _ENOUGH, 1.0)

        def typical(rows: Rows) -> Array:
            return spread * self._even(rows) + (1.0 - spread) * self._typical(rows)

        if not (self.weighted and self._sensitivities > 0):
            return typical
        uniform = min(max((_FEW / ratio) ** 2, UNIFORM), 1.0)
        return lambda rows: uniform * typical(rows) + (1.0 - uniform) * self.sensitivity(rows)

    def sensitivity(self, rows: Rows) -> Array:
        """Shares of the gradient's size at the solution, adding up to 1 (or 0)."""
        return _sensitivity(rows) / (self._sensitivities or 1.0)

    @cached_property
    def _sensitivities(self) -> float:
        return self.samples.sum(_sensitivity)

    def _even(self, rows: Rows) -> Array:
        """Shares that do not look at single samples, adding up to 1."""
        if self.weighted:
            return rows.weights / self.samples.total_weight
        return _rates(rows) / self._all_rates

    @cached_property
    def _all_rates(self) -> float:
        return self.samples.sum(_rates)

    def _typical(self, rows: Rows) -> Array:
        """Shares of the samples nearest to the edge of the flat piece, adding up to 1.

        A quarter of every class, with the share of all of it: those of a rare class are harder.
        """
        codes = rows.class_codes
        return self._near(rows) * self._near_rates[codes]

    def _near(self, rows: Rows) -> Array:
        """The weights of those samples, as far as they are to be had."""
        near = rows.counted & (np.abs(rows.margins) <= self._edges[rows.class_codes])
        # what gets no new weight keeps its own, which must not count twice
        return np.where(near, rows.weights if self.weighted else 1.0, 0.0)

    @cached_property
    def _edges(self) -> Array:
        """Of every class how far out a quarter of its samples is."""
        distances = self.samples.thinned(lambda rows: np.abs(rows.margins))
        return np.array([np.quantile(one, _TYPICAL) if len(one) else 0.0 for one in distances])

    @cached_property
    def _near_rates(self) -> Array:
        """The even share of every class, over what its typical samples weigh."""
        n = self.samples.n_classes

        def even(rows: Rows) -> Array:
            return np.where(rows.counted, self._even(rows), 0.0)

        shares, near = (self.samples.masses(lambda rows: rows.class_codes, values, n)
                        for values in (even, self._near))  # fmt: skip
        return np.divide(shares, near, out=np.zeros(n), where=near > 0)

    def numbers(self) -> Iterator[Array]:
        """For every part a number in [0, 1) per sample: kept where 1 minus that is at most π_i.

        Along the samples of a class, in the order of their predictions, they are as evenly spread
        as multiples of the golden ratio, so that every part of that order gives its share. Where
        samples are too many to be sorted, those between two of `Samples.thinned` come as they come.
        """
        edges = self.samples.thinned(lambda rows: rows.own_predictions)
        counts = [np.zeros(len(one) + 1, dtype=np.intp) for one in edges]
        for rows in self.samples.parts():
            for code, mine in grouped(rows.class_codes, rows.counted):
                bins = np.searchsorted(edges[code], rows.own_predictions[mine])
                counts[code] += np.bincount(bins, minlength=len(counts[code]))
        ends = np.cumsum(np.concatenate(counts))
        firsts = np.split(ends - np.concatenate(counts), np.cumsum([len(one) for one in counts]))
        for rows in self.samples.parts():
            numbers = np.zeros(len(rows.weights))
            for code, mine in grouped(rows.class_codes, rows.counted):
                mine = mine[np.argsort(rows.own_predictions[mine], kind="stable")]
                bins = np.searchsorted(edges[code], rows.own_predictions[mine])
                ranks = firsts[code][bins] + _places(bins)
                firsts[code] += np.bincount(bins, minlength=len(firsts[code]))
                numbers[mine] = np.mod(self.start + _GOLDEN * ranks, 1.0)
            yield numbers

    def priorities(self, budget: int) -> Iterator[Array]:
        """The largest ones are kept, for a budget (sequential Poisson sampling)."""
        inclusion = self.inclusion(budget)
        for rows, numbers in zip(self.samples.parts(), self.numbers(), strict=True):
            kept = inclusion(rows)
            # what is certain comes first, whatever its number; 1 − u, as u may be 0
            yield np.where(kept >= 1.0, np.inf, kept / (1.0 - numbers))

    def first_budgets(self) -> Iterator[Array]:
        """From which budget on a sample is kept, infinite for one without weight."""
        counted = self.samples.n_counted
        budgets = np.unique(np.geomspace(1, counted, _N_BUDGETS).round().astype(int))
        inclusions = [self.inclusion(budget) for budget in budgets]
        for rows, numbers in zip(self.samples.parts(), self.numbers(), strict=True):
            first = np.full(len(numbers), np.inf)
            below, before, needed = np.zeros(len(first)), 0, 1.0 - numbers
            for budget, inclusion in zip(budgets, inclusions, strict=True):
                kept = inclusion(rows)
                comes = np.isinf(first) & (kept >= needed)
                rise = (needed[comes] - below[comes]) / (kept[comes] - below[comes])
                first[comes] = before + np.clip(rise, 0.0, 1.0) * (budget - before)
                below, before = kept, budget
            yield first


def _sensitivity(rows: Rows) -> Array:
    sizes = rows.slope_sizes * np.sqrt(rows.leverage)
    return np.where(rows.counted, rows.weights * sizes, 0.0)


def _rates(rows: Rows) -> Array:
    return np.where(rows.active, 1.0, UNIFORM) * rows.counted


def _idle(rows: Rows) -> Array:
    """The weights of samples that are proved to be without influence."""
    return np.where(rows.active, 0.0, rows.weights)


def _places(bins: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of rising numbers the place of each among those that are the same."""
    firsts = np.searchsorted(bins, bins)
    return np.arange(len(bins)) - firsts


class _Proportional(NamedTuple):
    """Probabilities proportional to sizes that add up to a budget, none above 1.

    Attributes
    ----------
    rate : float
        Probability over size.
    certain : float
        Sizes from which on it is 1.
    """

    rate: float
    certain: float

    def __call__(self, sizes: Array) -> Array:
        return np.where(sizes >= self.certain, 1.0, self.rate * sizes)

    @classmethod
    def of(cls, samples: Samples, sizes: Callable[[Rows], Array], budget: int) -> _Proportional:
        """For the sizes of all samples; a round for every few that are certain."""
        found, n_certain, total = cls(0.0, np.inf), 0, samples.sum(sizes)
        while True:
            left = budget - n_certain
            if left <= 0 or total <= 0:
                return found._replace(rate=0.0)
            rate, least, n_beyond, total = left / total, np.inf, 0, 0.0
            for rows in samples.parts():
                own = sizes(rows)
                beyond = (rate * own >= 1.0) | (own >= found.certain)
                least = min(least, float(np.min(own[beyond], initial=np.inf)))
                n_beyond += int(np.count_nonzero(beyond))
                total += float(np.where(beyond, 0.0, own).sum())
            found = cls(rate, least)
            if n_beyond == n_certain:
                return found
            n_certain = n_beyond
