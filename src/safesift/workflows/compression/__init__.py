"""Keep the rows of a data set that a model needs most, and let them stand for the others.

    X, y → `Examined` (a problem per class, solved, screened; leverage: each when first asked for)
         → scores of a method → `Ranking` → `Compressed` (indices, weights, alpha)

* `examined`: what the methods know of the samples.
* `leverage`: how far a row sticks out of the others, exactly or by random projections.
* `methods`: a score per sample; the largest are kept.
* `hybrid`: hard samples mixed with representative ones, as the budget allows.
* `calibration`: weights with which the kept rows pull at the solution as all rows do.
* `choosing`: how many and which rows, of which strata.
* `ranking`, `compressing`: what the user calls.

A method is a function in `methods.METHODS`; nothing else knows their names.
"""

from safesift.workflows.compression.compressing import Compressed, compress
from safesift.workflows.compression.ranking import Ranking, rank_samples

__all__ = [
    "Compressed",
    "Ranking",
    "compress",
    "rank_samples",
]
