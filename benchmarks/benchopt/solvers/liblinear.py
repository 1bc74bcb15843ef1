from benchmark_utils.racing import RaceSolver


class Solver(RaceSolver):
    """LIBLINEAR, as scikit-learn's LinearSVC: C = 1/(2·n·alpha), since its squares have no ½.

    The dual solver descends by coordinates, the primal one is Newton with a trust region (l2) or
    descends by coordinates (l1). No warm start. Its intercept is penalised.
    """

    name = "LIBLINEAR"
    requirements = ["scikit-learn"]
    parameters = {"dual": [True, False]}

    @property
    def contestant(self):
        return "LIBLINEAR dual" if self.dual else "LIBLINEAR primal"
