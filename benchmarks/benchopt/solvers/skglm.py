import skglm  # noqa: F401  # fails where it is not installed, which is how benchopt knows
from benchmark_utils.racing import RaceSolver


class Solver(RaceSolver):
    """skglm with a squared hinge of ours, which it does not have, and l1; warm.

    Working sets of features, with proximal Newton steps or accelerated coordinate descent.
    """

    name = "skglm"
    requirements = ["pip::skglm"]
    parameters = {"algorithm": ["Newton", "CD"]}
    test_config = {"objective": {"penalty": "l1"}}

    @property
    def contestant(self):
        return f"skglm {self.algorithm}"
