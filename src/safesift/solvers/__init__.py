"""Ways to solve a problem, and the one loop that drives them.

A solver only proposes (`solvers.base`); the driver evaluates, certifies, decides, records and
stops. To add a solver, subclass `Solver` and `register` it, from inside or outside the library: it
is then chosen by its name, `solver="mine"`, and by "auto" where its `cost` is the least. A point
that it proposes may be as bad as it likes, the gap is measured anyway; what it hands over as
evaluated already (`Proposal.at`, `slopes`, `ray`) is taken at its word.
"""

from safesift.solvers.base import SOLVERS, Proposal, Solver, Steps, choose, register
from safesift.solvers.driver import Level, Run, solve, solve_path
from safesift.solvers.dual_descent import DualDescent, Relay
from safesift.solvers.first_order import rough_solution
from safesift.solvers.kernel_working_sets import WorkingSets
from safesift.solvers.multiplier import Multiplier
from safesift.solvers.newton import Newton
from safesift.solvers.newton_cg import NewtonCG
from safesift.solvers.records import Fit, Look, Settings, print_history, spending
from safesift.solvers.screening import Screening
from safesift.solvers.sparse_newton import SparseNewton

__all__ = [
    "SOLVERS",
    "DualDescent",
    "Fit",
    "Level",
    "Look",
    "Multiplier",
    "Newton",
    "NewtonCG",
    "Proposal",
    "Relay",
    "Run",
    "Screening",
    "Settings",
    "Solver",
    "SparseNewton",
    "Steps",
    "WorkingSets",
    "choose",
    "print_history",
    "register",
    "rough_solution",
    "solve",
    "solve_path",
    "spending",
]
