import rehline  # noqa: F401  # fails where it is not installed, which is how benchopt knows
from benchmark_utils.racing import RaceSolver


class Solver(RaceSolver):
    """ReHLine: coordinate descent on the dual, warm. Its C is 1/(n·alpha).

    Its intercept is penalised.
    """

    name = "ReHLine"
    requirements = ["pip::rehline"]
    contestant = "ReHLine"
