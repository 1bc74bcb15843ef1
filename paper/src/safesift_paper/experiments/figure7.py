"""Figure 7 (appendix): compression for the Lasso on synthetic data."""

from __future__ import annotations

from dataclasses import dataclass

from safesift_paper.datasets import make_sparse_regression
from safesift_paper.experiments.compression import Compression, Model
from safesift_paper.experiments.samples import Samples, Split
from safesift_paper.experiments.spec import Cell, Experiment


@dataclass(frozen=True)
class LassoCompression(Compression):
    """The same on 100 synthetic samples, with 1000 more of the same law to test on.

    The paper tests on 20 % of the 100; more test samples make the curves less noisy.
    """

    def split(self, cell: Cell, samples: Samples | None) -> Split:
        data = make_sparse_regression(1100, random_state=cell["seed"])
        return Split(data.X[:100], data.X[100:], data.y[:100], data.y[100:])


EXPERIMENT = Experiment(
    name="figure7",
    title="Figure 7: compression for the Lasso, synthetic regression",
    protocol=LassoCompression(
        models=(Model("squared_epsilon_insensitive", "l1", 1e-3, (("epsilon", 0.01),)),),
        fractions=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
    ),
    grid={"loss": ("squared_epsilon_insensitive",), "seed": tuple(range(1, 11))},
    quick={"seed": (1, 2)},
    remarks="""\
As in the paper, screening does better than random deletion throughout. Our hybrid ranking falls
behind it from 40 % on: it keeps samples that represent others in the sense of leverage, which says
little where there are fewer samples than features.""",
)
