"""The squared hinge, for one alpha or a path, and the certified gap by which models are judged."""

import numpy as np
from benchmark_utils.path import Models, geometric, measured, squared_hinge
from benchopt import BaseObjective
from tasks import Evaluator  # benchmarks/tasks.py


class Objective(BaseObjective):
    """A linear support vector machine with the squared hinge, for every alpha of a path.

    P(x, c) = (1/n) Σ ½[1 − bᵢ(aᵢᵀx + c)]₊² + alpha·R(x), with R = ½‖x‖² (l2) or ‖x‖₁ (l1). The
    intercept c is 0 (none), not penalised (free), or penalised like a coefficient (ones).

    relative_gap is the duality gap at the model, certified by one evaluator for everybody, over P
    of the best constant model: the largest of the path. value is the mean of P over the path.
    """

    name = "Squared hinge"
    requirements = ["pip::safesift"]
    min_benchopt_version = "1.10"

    # decades: from the first alpha of a path to its last
    parameters = {
        "penalty": ["l2", "l1"],
        "intercept": ["none", "free"],
        "alpha": [1e-3],
        "n_alphas": [1, 10],
        "decades": [2],
    }

    def skip(self, X, y, missing=None):
        """Where the data are missing: a data set has no word in benchopt to say so itself."""
        return missing is not None, missing

    def set_data(self, X, y, missing=None):
        self.X, self.y = X, y
        self.alphas = geometric(self.alpha, self.n_alphas, self.decades)
        self._evaluator = Evaluator(X, y, squared_hinge(self.penalty, self.intercept))

    def get_objective(self):
        return {
            "X": self.X, "y": self.y, "penalty": self.penalty, "intercept": self.intercept,
            "alphas": self.alphas,
        }  # fmt: skip

    def evaluate_result(self, coefs, intercepts):
        found = measured(self._evaluator, Models(coefs, intercepts), self.alphas)
        return {"value": found.value, "relative_gap": found.relative_gap}

    def get_one_result(self):
        """Of models that are zero."""
        return {
            "coefs": np.zeros((len(self.alphas), self.X.shape[1])),
            "intercepts": np.zeros(len(self.alphas)),
        }
