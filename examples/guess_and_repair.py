"""A guessed radius, checked and repaired
======================================

A guess proves nothing, but ends in the right answer when it is checked.

The l1 penalty is not strongly convex, so there is no gap ball. The paper guessed a radius; here the
guess is far too small on purpose, and `solve_and_repair` brings back what it dropped wrongly.
"""

import numpy as np
from sklearn.datasets import make_classification

import safesift as ss
from safesift.solvers.first_order import short_run


def solve(problem):
    """Any solver will do; this one takes the reduced problem as it is."""
    return problem.split(short_run(problem, max_passes=3000).point)


# %%
# Guess, look, bring back
# -----------------------
def main() -> None:
    X, y = make_classification(2_000, 20, n_informative=5, class_sep=1.5, random_state=0)
    X /= np.sqrt((X**2).sum(axis=1).mean())
    arguments = {"loss": "squared_hinge", "penalty": "l1", "alpha": 1e-3}

    rough = ss.screen(X[:200], y[:200], **arguments).coef
    guess = ss.screen(X, y, **arguments, coef=rough, screening=ss.regions.GuessedBall(radius=0.5))
    print(guess.summary())

    repaired = ss.solve_and_repair(guess, solve)
    back = (repaired.result.undecided & ~guess.undecided).sum()
    print(f"solved {repaired.n_rounds} times; {back} samples decided wrongly came back")
    print(f"duality gap on all rows: {repaired.check.gap:.1e}")


if __name__ == "__main__":
    main()
