"""How large should μ be?
======================

As large as makes the wanted share of the samples droppable.

Ridge regression of disease progression (442 patients) with a flat region: draws choose_mu.png,
the share of droppable samples and the training R² against μ.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

import safesift as ss


def main() -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), scale(y)
    choice = ss.mu_for_fraction(X, y, loss="squared", penalty="l2", alpha=1e-2, fraction=0.5)
    print(
        f"mu = {choice.mu:.3f}: {choice.fraction:.1%} of the samples droppable, "
        f"{choice.certified:.1%} proved"
    )
    print(f"training R²: {choice.score:.4f}, with the squared loss {choice.original_score:.4f}")
    low, high = choice.objective.original
    print(f"the optimal value of the original problem lies in [{low:.3f}, {high:.3f}]")
    figure, axes = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
    choice.plot(axes)
    figure.savefig("choose_mu.png", dpi=150)


if __name__ == "__main__":
    main()
