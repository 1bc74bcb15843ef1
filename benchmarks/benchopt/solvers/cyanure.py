import cyanure  # noqa: F401  # fails where it is not installed, which is how benchopt knows
from benchmark_utils.racing import RaceSolver


class Solver(RaceSolver):
    """cyanure's Classifier with its own choice of solver, warm in the primal and the dual."""

    name = "cyanure"
    requirements = ["pip::cyanure"]
    contestant = "cyanure"
