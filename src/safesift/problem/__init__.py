"""The regularised empirical risk P: values, dual, certificates, decisions about its samples."""

from safesift.problem.certificate import Certificate
from safesift.problem.evaluation import Evaluation, Quadratic, Rounding
from safesift.problem.problem import Evaluate, Problem, evaluate_together
from safesift.problem.risk import Risk, Targets, WeightedRows

__all__ = [
    "Certificate",
    "Evaluate",
    "Evaluation",
    "Problem",
    "Quadratic",
    "Risk",
    "Rounding",
    "Targets",
    "WeightedRows",
    "evaluate_together",
]
