"""A kernel machine along a path of alphas
=======================================

Which samples can matter, and which provably cannot::

    python examples/kernels.py [kernels.png]

Two half moons, the squared hinge and an rbf kernel. For every alpha the samples are drawn that are
kept; the others could be deleted and the decision boundary would be the same, which is tried out.
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel

import safesift as ss

ALPHAS, GAMMA = (1e-2, 1e-3, 1e-4), 2.0


# %%
# The path, and the same machines without what was dropped
# --------------------------------------------------------
def main(picture: str) -> None:
    X, y = make_moons(600, noise=0.2, random_state=0)
    path = ss.safe_kernel_path(X, y, alphas=ALPHAS, gamma=GAMMA, fit_intercept=True)
    figure, panels = plt.subplots(1, len(ALPHAS), figsize=(10, 3.4), sharey=True)
    for k, axes in enumerate(panels):
        alpha, kept = path.alphas[k], path.kept[k]
        # fewer rows, the same divisor: alpha grows by n / n_kept
        less = ss.SafeKernelClassifier(gamma=GAMMA, alpha=alpha * len(y) / kept.sum(), tol=1e-8)
        less.fit(X[kept], y[kept])
        whole = rbf_kernel(X, gamma=GAMMA) @ path.dual_coefs[k] + path.intercepts[k]
        difference = np.abs(less.decision_function(X) - whole).max()
        same = "same model" if difference < 1e-2 else "FAILED"
        print(f"alpha {alpha:g}: {kept.sum()} of {len(y)} samples kept; {same} without the others")
        draw(axes, X, y, path, k)
    figure.tight_layout()
    figure.savefig(picture, dpi=70)


# %%
# The picture
# -----------
def draw(axes, X, y, path, k) -> None:
    kept = path.kept[k]
    across, up = np.meshgrid(np.linspace(-1.6, 2.6, 120), np.linspace(-1.2, 1.8, 100))
    grid = rbf_kernel(np.column_stack([across.ravel(), up.ravel()]), X, gamma=GAMMA)
    values = (grid @ path.dual_coefs[k] + path.intercepts[k]).reshape(across.shape)
    axes.contour(across, up, values, levels=[-1, 0, 1], colors="0.4", linestyles=[":", "-", ":"])
    axes.scatter(*X[~kept].T, s=6, color="0.85", label="dropped, with proof")
    for label, color in ((0, "tab:blue"), (1, "tab:orange")):
        axes.scatter(*X[kept & (y == label)].T, s=8, color=color)
    axes.set_title(f"alpha = {path.alphas[k]:g}: {kept.sum()} of {len(y)} kept", fontsize=10)
    axes.set(xticks=[], yticks=[])
    if k == 0:
        axes.legend(loc="lower left", fontsize=8)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "kernels.png")
