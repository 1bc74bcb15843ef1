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

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from safesift.workflows.compression.examined import Examined

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
    samples : Examined
    start : float
        A random number in [0, 1): all that is random.
    weighted : bool
        Whether the kept samples can have weights.
    """

    samples: Examined
    start: float
    weighted: bool = True

    def inclusion(self, budget: int) -> Array:
        """The probability π_i with which every sample is kept, for a number of kept samples."""
        samples = self.samples
        active = samples.active
        if budget <= active.sum():
            return _proportional(self._sizes(budget), budget)
        idle = np.where(active, 0.0, samples.weights)
        return np.where(active, 1.0, _proportional(idle, budget - active.sum()))

    def _sizes(self, budget: int) -> Array:
        """What the probabilities are proportional to."""
        dimension = self.samples.metric.dimension
        with np.errstate(divide="ignore"):
            ratio = np.float64(budget) / dimension
        spread = min(ratio / _ENOUGH, 1.0)
        typical = spread * self._even + (1.0 - spread) * self._typical
        if not (self.weighted and self.sensitivity.any()):
            return typical
        uniform = min(max((_FEW / ratio) ** 2, UNIFORM), 1.0)
        return uniform * typical + (1.0 - uniform) * self.sensitivity

    @cached_property
    def sensitivity(self) -> Array:
        """Shares of the gradient's size at the solution, adding up to 1 (or 0)."""
        samples = self.samples
        sizes = np.linalg.norm(samples.slopes, axis=1) * np.sqrt(samples.metric.leverage)
        sizes = np.where(samples.counted, samples.weights * sizes, 0.0)
        return sizes / (sizes.sum() or 1.0)

    @cached_property
    def _even(self) -> Array:
        """Shares that do not look at single samples, adding up to 1."""
        samples = self.samples
        if self.weighted:
            return samples.weights / samples.weights.sum()
        rates = np.where(samples.active, 1.0, UNIFORM) * samples.counted
        return rates / rates.sum()

    @cached_property
    def _typical(self) -> Array:
        """Shares of the samples nearest to the edge of the flat piece, adding up to 1.

        A quarter of every class, with the share of all of it: those of a rare class are harder.
        """
        codes, distance = self.samples.class_codes, np.abs(self.samples.margins)
        shares = np.zeros(len(codes))
        for code in np.unique(codes[self.samples.counted]):
            of_class = (codes == code) & self.samples.counted
            near = of_class & (distance <= np.quantile(distance[of_class], _TYPICAL))
            # what gets no new weight keeps its own, which must not count twice
            sizes = np.where(near, self.samples.weights if self.weighted else 1.0, 0.0)
            shares += self._even[of_class].sum() * sizes / sizes.sum()
        return shares

    @cached_property
    def numbers(self) -> Array:
        """A number in [0, 1) per sample: it is kept where 1 minus that is at most π_i.

        Along the samples of a class, in the order of their predictions, they are as evenly spread
        as multiples of the golden ratio, so that every part of that order gives its share.
        """
        samples = self.samples
        order = np.lexsort((samples.own_predictions, samples.class_codes, ~samples.counted))
        numbers = np.empty(len(order))
        numbers[order] = np.mod(self.start + _GOLDEN * np.arange(len(order)), 1.0)
        return numbers

    def priorities(self, budget: int) -> Array:
        """The largest ones are kept, for a budget (sequential Poisson sampling)."""
        kept = self.inclusion(budget)
        # what is certain comes first, whatever its number; 1 − u, as u may be 0
        return np.where(kept >= 1.0, np.inf, kept / (1.0 - self.numbers))

    def first_budgets(self) -> Array:
        """From which budget on a sample is kept, infinite for one without weight."""
        counted = int(self.samples.counted.sum())
        budgets = np.unique(np.geomspace(1, counted, _N_BUDGETS).round().astype(int))
        first = np.full(len(self.numbers), np.inf)
        below, before = np.zeros(len(first)), 0
        for budget in budgets:
            kept = self.inclusion(budget)
            needed = 1.0 - self.numbers
            comes = np.isinf(first) & (kept >= needed)
            rise = (needed[comes] - below[comes]) / (kept[comes] - below[comes])
            first[comes] = before + np.clip(rise, 0.0, 1.0) * (budget - before)
            below, before = kept, budget
        return first


def _proportional(sizes: Array, budget: int) -> Array:
    """Probabilities proportional to sizes that add up to the budget, none above 1."""
    certain = np.zeros(len(sizes), dtype=bool)
    while True:
        others = np.where(certain, 0.0, sizes)
        left, total = budget - certain.sum(), others.sum()
        if left <= 0 or total <= 0:
            return certain.astype(np.float64)
        kept = np.where(certain, 1.0, (left / total) * others)
        beyond = (kept >= 1.0) & ~certain
        if not beyond.any():
            return kept
        certain |= beyond
