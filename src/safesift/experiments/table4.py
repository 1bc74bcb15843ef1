"""Table 4 (appendix): samples screened, squared hinge + l2, RCV-1."""

from safesift.experiments.screening_l2 import L2Screening
from safesift.experiments.spec import Experiment

EXPERIMENT = Experiment(
    name="table4",
    title="Table 4: percent of samples screened, squared hinge + l2, RCV-1",
    protocol=L2Screening(),
    grid={
        "data": ("rcv1",),
        "lambda": (1.0, 10.0, 100.0),
        "epochs": (10, 20),
        "seed": (1, 2, 3),
    },
    quick={"lambda": (1.0, 10.0), "seed": (1,)},
    # (data, λ, epochs): ellipsoid, duality gap
    paper={
        ("rcv1", 1.0, 10): (7, 84),
        ("rcv1", 10.0, 10): (80, 80),
        ("rcv1", 100.0, 10): (68, 68),
        ("rcv1", 1.0, 20): (85, 85),
        ("rcv1", 10.0, 20): (80, 80),
        ("rcv1", 100.0, 20): (68, 68),
    },
)
