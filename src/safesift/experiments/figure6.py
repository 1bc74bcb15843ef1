"""Figure 6: compression of MNIST and SVHN, safe logistic + l1 and squared hinge + l2."""

from safesift.experiments.compression import Compression, Model
from safesift.experiments.spec import Experiment

EXPERIMENT = Experiment(
    name="figure6",
    title="Figure 6: compression, MNIST and SVHN",
    protocol=Compression(
        models=(Model("safe_logistic", "l1", 1e-5), Model("squared_hinge", "l2", 1e-6))
    ),
    grid={
        "data": ("mnist", "svhn"),
        "loss": ("safe_logistic", "squared_hinge"),
        "seed": (1, 2, 3),
    },
    quick={"seed": (1,)},
    quick_protocol=Compression(
        models=(Model("safe_logistic", "l1", 1e-3), Model("squared_hinge", "l2", 1e-4)),
        fractions=(0.0, 0.5, 0.9),
    ),
)
