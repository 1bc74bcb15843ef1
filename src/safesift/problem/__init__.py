"""The regularised empirical risk P: values, dual, certificates, decisions about its samples."""

from safesift.problem.certificate import Certificate
from safesift.problem.evaluation import Evaluation, Folded, Rounding
from safesift.problem.problem import Evaluate, Problem, evaluate_together
from safesift.problem.risk import ChangedDataError, Risk, Targets, WeightedRows

__all__ = [
    "Certificate",
    "ChangedDataError",
    "Evaluate",
    "Evaluation",
    "Folded",
    "Problem",
    "Risk",
    "Rounding",
    "Targets",
    "WeightedRows",
    "evaluate_together",
]
