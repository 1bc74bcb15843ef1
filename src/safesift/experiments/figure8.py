"""Figure 8 (appendix): compression of RCV-1."""

from safesift.experiments.compression import Compression, Model
from safesift.experiments.spec import Experiment

EXPERIMENT = Experiment(
    name="figure8",
    title="Figure 8: compression, RCV-1",
    protocol=Compression(
        models=(Model("safe_logistic", "l1", 1e-5), Model("squared_hinge", "l2", 1e-6))
    ),
    grid={"data": ("rcv1",), "loss": ("safe_logistic", "squared_hinge"), "seed": (1, 2, 3)},
    quick={"seed": (1,)},
    quick_protocol=Compression(
        models=(Model("safe_logistic", "l1", 1e-3), Model("squared_hinge", "l2", 1e-4)),
        fractions=(0.0, 0.5, 0.9),
    ),
)
