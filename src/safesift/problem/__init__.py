"""The regularised empirical risk P: its values, its dual, and what is decided about its samples."""

from safesift.problem.evaluation import Evaluation, Quadratic, Rounding
from safesift.problem.problem import Problem, evaluate_together

__all__ = ["Evaluation", "Problem", "Quadratic", "Rounding", "evaluate_together"]
